'use strict';

const { registerBroker } = require('./broker-node.js');

module.exports = (RED) => registerBroker(RED, 'embermq broker');
