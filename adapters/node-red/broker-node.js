// The broker as a node. Its fields, messages and status are those of node-red-contrib-aedes, so that old flows need no change.
'use strict';

const { join } = require('node:path');
const http = require('node:http');
const https = require('node:https');
const net = require('node:net');
const tls = require('node:tls');
const { Aedes } = require('embermq/aedes');
const { levelStore } = require('embermq/level');
const { createWebSocketStream, WebSocketServer } = require('ws');

/** Events of the first output whose payload is the client, with an error for the last ones. */
const CLIENT_EVENTS = [
  'client',
  'clientReady',
  'clientDisconnect',
  'keepaliveTimeout',
  'clientError',
  'connectionError'
];
/** Events after which the number of clients is shown. */
const SHOWN_AFTER = CLIENT_EVENTS.filter((event) => event !== 'client');

/** Registers a type of node. */
exports.registerBroker = (RED, type) => {
  RED.nodes.registerType(
    type,
    function BrokerNode(config) {
      RED.nodes.createNode(this, config);
      const ports = new Ports(RED, this, config);
      const started = ports.start().catch((error) => ports.failed(error));
      this.on('close', (done) => {
        started.then(() => ports.stop()).then(() => done(), done);
      });
    },
    {
      credentials: {
        username: { type: 'text' },
        password: { type: 'password' },
        certdata: { type: 'text' },
        keydata: { type: 'password' }
      }
    }
  );
};

/** The broker of a node, with its ports. */
class Ports {
  #RED;
  #node;
  #config;
  #aedes;
  #servers = [];
  #sockets = new Set();
  /** The broker or one of its ports could not be opened. */
  #hasFailed = false;
  /** Removes the path from the server of Node-RED. */
  #leavePath = () => {};

  constructor(RED, node, config) {
    this.#RED = RED;
    this.#node = node;
    this.#config = config;
  }

  async start() {
    const node = this.#node;
    const { mqtt_port, mqtt_ws_bind, mqtt_ws_port, mqtt_ws_path, usetls } = this.#config;
    if (![mqtt_port, mqtt_ws_bind === 'path' ? mqtt_ws_path : mqtt_ws_port].some(isSet))
      node.warn('No client can connect: set the MQTT port, or a port or a path for WebSocket');
    const security = usetls ? this.#certificate() : undefined;
    this.#aedes = new Aedes({ ...this.#store(), ...this.#authentication() });
    this.#sendEvents();
    // Ports open before the store has, because nodes `mqtt in` of the flow wait 15 s after a refused connection; clients wait for the broker.
    const isListening = this.#aedes.listen();
    isListening.catch(() => {}); // reported below
    const { handle } = this.#aedes;
    await this.#open(mqtt_port, async (port) => {
      checkPort(port, 'MQTT port');
      const server = security === undefined ? net.createServer(handle) : tls.createServer(security, handle);
      await this.#listen(server, port, 'port');
      node.status({ fill: 'green', shape: 'dot', text: 'node-red:common.status.connected' });
    });
    if (mqtt_ws_bind === 'path') await this.#open(mqtt_ws_path, (path) => this.#servePath(path));
    else
      await this.#open(mqtt_ws_port, async (port) => {
        checkPort(port, 'WebSocket port');
        const server = security === undefined ? http.createServer() : https.createServer(security);
        const sockets = new WebSocketServer({ server }).on('connection', this.#serveWebSocket);
        sockets.on('error', () => {}); // reported by `#listen`
        await this.#listen(server, port, 'ws port');
      });
    await isListening;
  }

  /** Open a port or a path, unless its field is empty. If it cannot be opened, the others are nevertheless. */
  async #open(place, open) {
    if (!isSet(place)) return;
    try {
      await open(place);
    } catch (error) {
      this.failed(error);
    }
  }

  /** Report that the broker, or one of its ports, cannot be opened. The ports that are open stay open. */
  failed(error) {
    this.#hasFailed = true;
    this.#node.error(`Error: ${error.message}`);
    this.#node.status({ fill: 'red', shape: 'ring', text: 'node-red:common.status.disconnected' });
  }

  async stop() {
    this.#leavePath();
    if (this.#aedes !== undefined) await new Promise((resolve) => this.#aedes.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }

  #certificate() {
    const { certdata: cert, keydata: key } = this.#node.credentials ?? {};
    if (!cert || !key) throw new Error('TLS is switched on, but there is no certificate or no private key');
    try {
      tls.createSecureContext({ cert, key });
    } catch (error) {
      throw new Error(`The certificate or the private key is not valid: ${error.message}`);
    }
    return { cert, key };
  }

  /** The store: memory, or a folder in the user directory for nodes that are persistent. */
  #store() {
    const { id } = this.#node;
    const { dburl, persistence_bind, persist } = this.#config;
    const isMongo = Boolean(dburl) || persistence_bind === 'mongodb';
    if (!isMongo && !persist) return {};
    const folder = join(this.#RED.settings.userDir, 'embermq', id);
    if (isMongo)
      this.#node.warn(
        `MongoDB is not used: the broker keeps its state in ${folder}. Messages and subscriptions in MongoDB are not taken over`
      );
    return { persistence: levelStore(folder) };
  }

  #authentication() {
    const { username, password } = this.#node.credentials ?? {};
    if (!username !== !password)
      this.#node.warn(
        `Every client is accepted, because the ${username ? 'password' : 'username'} is empty: set both username and password, or none`
      );
    if (!username || !password) return {};
    return {
      authenticate: (client, user, secret, done) => {
        const isRight = user === username && secret?.toString() === password;
        if (isRight) client.user = user;
        done(null, isRight);
      }
    };
  }

  #listen(server, port, name) {
    const node = this.#node;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    return new Promise((resolve, reject) => {
      server.once('error', ({ code, message }) =>
        reject(new Error(code === 'EADDRINUSE' ? `Port ${port} is already in use` : `Port ${port}: ${message}`))
      );
      server.listen(Number(port), () => {
        this.#servers.push(server);
        server.on('error', (error) => node.error(error));
        node.log(`Binding embermq broker on ${name}: ${port}`);
        resolve();
      });
    });
  }

  #serveWebSocket = (socket, request) => {
    const stream = createWebSocketStream(socket);
    this.#sockets.add(stream);
    stream.on('close', () => this.#sockets.delete(stream));
    this.#aedes.handle(stream, request);
  };

  /** Serve MQTT over WebSocket on the server of Node-RED. */
  #servePath(given) {
    const { server, settings } = this.#RED;
    const path = `${(settings.httpNodeRoot || '/').replace(/\/$/, '')}/${given.replace(/^\//, '')}`;
    const { webSocketNodeVerifyClient: verifyClient } = settings;
    const sockets = new WebSocketServer({ noServer: true, ...(verifyClient ? { verifyClient } : {}) });
    const paths = (server[PATHS] ??= new Set());
    if (paths.has(path)) throw new Error(`The path ${path} is used by another broker`);
    const upgrade = (request, socket, head) => {
      if (request.url.split('?', 1)[0] !== path) return;
      sockets.handleUpgrade(request, socket, head, this.#serveWebSocket);
    };
    paths.add(path);
    server.on('upgrade', upgrade);
    this.#leavePath = () => {
      paths.delete(path);
      server.off('upgrade', upgrade);
    };
    this.#node.log(`Binding embermq broker on ws path: ${path}`);
  }

  #sendEvents() {
    const node = this.#node;
    const aedes = this.#aedes;
    const send = (topic, payload) => node.send([{ topic, payload }, null]);
    for (const event of CLIENT_EVENTS)
      aedes.on(event, (client, err) => {
        send(event, err === undefined ? { client: factsOf(client) } : { client: factsOf(client), err });
        if (SHOWN_AFTER.includes(event) && !aedes.closed)
          node.status({
            ...(this.#hasFailed ? { fill: 'red', shape: 'ring' } : { fill: 'green', shape: 'dot' }),
            text: `connected ${aedes.connectedClients}`
          });
      });
    aedes.on('subscribe', (subscriptions, client) => {
      const [{ topic, qos }] = subscriptions;
      send('subscribe', { topic, qos, subscriptions, client: factsOf(client) });
    });
    aedes.on('unsubscribe', (topics, client) => {
      send('unsubscribe', { topic: topics[0], topics, client: factsOf(client) });
    });
    // observing all messages closes the fast path of the broker
    if (node.wires?.[1]?.length > 0)
      aedes.on('publish', (packet, client) => {
        const payload = { packet, client: client === null ? null : factsOf(client) };
        node.send([null, { topic: 'publish', payload }]);
      });
    aedes.on('error', (error) => node.error(error));
  }
}

/** Whether the field of a port or a path is not empty. */
function isSet(place) {
  return Boolean(place) && place !== '0';
}

function checkPort(port, field) {
  const number = Number(port);
  if (Number.isInteger(number) && number > 0 && number <= 65_535) return;
  throw new Error(`${field}: expected a number from 1 to 65535, got "${port}"`);
}

/** The paths that brokers serve on a server. */
const PATHS = Symbol('embermq.paths');

/**
 * The fields of a client, and the methods that flows can call. It is a plain object, because Node-RED copies messages: a copy of the client itself would
 * have no values.
 */
function factsOf(client) {
  const { id, clean, version, connecting, connected, closed, will, user } = client;
  return {
    id,
    clean,
    version,
    connecting,
    connected,
    closed,
    will,
    ...(user === undefined ? {} : { user }),
    close: (done) => client.close(done),
    publish: (packet, done) => client.publish(packet, done)
  };
}
