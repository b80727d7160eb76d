// The type of node-red-contrib-aedes, for flows that have it. It is a separate set: if that package is installed too, Node-RED loads its type only, and
// names both packages in the log.
'use strict';

const { registerBroker } = require('./broker-node.js');

module.exports = (RED) => registerBroker(RED, 'aedes broker');
