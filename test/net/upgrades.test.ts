import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createSecure } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import mqtt, { type MqttClient } from 'mqtt';
import { WebSocket, WebSocketServer } from 'ws';
import { attachWebSocket, upgradeHandler } from '../../adapters/net/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { StubBroker, UPGRADE } from './stub-broker.ts';

/** The used parts of other WebSocket packages, which are loaded by name so that their types need no installation. */
interface Packages {
  fastify: (options: object) => {
    readonly server: Server;
    register(plugin: unknown, set?: object): Promise<unknown>;
    get(path: string, options: object, run: (socket: WebSocket, request: unknown) => void): unknown;
    listen(options: object): Promise<string>;
    close(): Promise<void>;
  };
  'socket.io': new (
    server: Server,
    options: object
  ) => { on(event: 'connection', run: (socket: { emit(event: string, text: string): void }) => void): void };
  'socket.io-client': (url: string, options: object) => EventEmitter & { close(): void };
  '@fastify/websocket': object;
}

async function load<N extends keyof Packages>(name: N): Promise<Packages[N]> {
  const module = (await import(name)) as { default: unknown; Server?: unknown };
  return (name === 'socket.io' ? module.Server : module.default) as Packages[N];
}

let broker: Broker;
const clients: MqttClient[] = [];
const closing: (() => unknown)[] = [];

beforeEach(async () => {
  broker = await createBroker().start();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.end(true);
  await broker.stop({ timeoutMs: 0 });
  for (const close of closing.splice(0)) await close();
});

async function listening<S extends Server>(server: S): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Checks that the message of a client over WebSocket is acknowledged and delivered. */
async function servesMqtt(url: string, options: object = {}): Promise<void> {
  const heard = new Promise<string>((resolve) => {
    broker.subscribe('up', ({ payload }) => resolve(payload.toString()));
  });
  const client = await mqtt.connectAsync(url, { ...options, reconnectPeriod: 0 });
  clients.push(client);
  await client.publishAsync('up', url, { qos: 1 });
  assert.equal(await heard, url);
}

/** Returns the first message that a plain WebSocket receives. */
async function says(url: string): Promise<string> {
  const client = new WebSocket(url);
  closing.push(() => client.terminate());
  const [message] = await once(client, 'message');
  return String(message);
}

describe('attachWebSocket together with other WebSocket servers on one HTTP server', () => {
  for (const order of ['before', 'after']) {
    it(`serves its path while ws, added ${order} it, serves another`, async () => {
      const server = createServer();
      const port = await listening(server);
      const add = () => {
        const app = new WebSocketServer({ server, path: '/app' });
        app.on('connection', (client) => client.send('from ws'));
      };
      if (order === 'before') add();
      attachWebSocket(broker, server);
      if (order === 'after') add();
      await servesMqtt(`ws://127.0.0.1:${port}/mqtt`);
      assert.equal(await says(`ws://127.0.0.1:${port}/app`), 'from ws');
    });

    it(`serves its path while Socket.IO, added ${order} it, serves its own`, async () => {
      const [SocketServer, dial] = [await load('socket.io'), await load('socket.io-client')];
      const server = createServer();
      const port = await listening(server);
      const add = () => {
        const app = new SocketServer(server, { destroyUpgradeTimeout: 1 });
        app.on('connection', (client) => client.emit('greeting', 'from Socket.IO'));
      };
      if (order === 'before') add();
      attachWebSocket(broker, server);
      if (order === 'after') add();
      await servesMqtt(`ws://127.0.0.1:${port}/mqtt`);
      for (const transports of [['websocket'], ['polling', 'websocket']]) {
        const client = dial(`http://127.0.0.1:${port}`, { transports, forceNew: true });
        closing.push(() => client.close());
        assert.deepEqual(await once(client, 'greeting'), ['from Socket.IO']);
      }
      await servesMqtt(`ws://127.0.0.1:${port}/mqtt`);
    });
  }

  it('serves its path while @fastify/websocket serves its routes', async () => {
    const fastify = await load('fastify');
    const app = fastify({});
    await app.register(await load('@fastify/websocket'));
    await app.register(async (scope: typeof app) => {
      scope.get('/app', { websocket: true }, (socket) => socket.send('from Fastify'));
    });
    attachWebSocket(broker, app.server);
    const url = (await app.listen({ port: 0, host: '127.0.0.1' })).replace('http', 'ws');
    closing.push(() => app.close());
    await servesMqtt(`${url}/mqtt`);
    assert.equal(await says(`${url}/app`), 'from Fastify');
  });

  it('passes no request for its path to the upgrade listeners of the app', async () => {
    const server = createServer();
    const port = await listening(server);
    const seen: (string | undefined)[] = [];
    server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      seen.push(request.url);
      socket.destroy();
    });
    attachWebSocket(broker, server);
    await servesMqtt(`ws://127.0.0.1:${port}/mqtt?a=b`);
    await assert.rejects(says(`ws://127.0.0.1:${port}/other`));
    assert.deepEqual(seen, ['/other']);
  });

  it('restores emit of the server when it closes, even if emit had been replaced before', async () => {
    const [plain, replaced] = [createServer(), createServer()];
    const own = (...args: Parameters<Server['emit']>) => EventEmitter.prototype.emit.apply(replaced, args);
    replaced.emit = own as Server['emit'];
    for (const server of [plain, replaced]) {
      const listener = await attachWebSocket(broker, server);
      assert.ok(Object.hasOwn(server, 'emit'));
      await listener.close();
    }
    assert.equal(Object.hasOwn(plain, 'emit'), false);
    assert.equal(replaced.emit, own);
  });

  it('works after another replacement of emit, and serves again when it is reopened', async () => {
    const server = createServer((_request, response) => response.end());
    const port = await listening(server);
    const listener = await attachWebSocket(broker, server);
    const { emit } = server;
    server.emit = ((...args: Parameters<Server['emit']>) => emit.apply(server, args)) as Server['emit'];
    const over = server.emit;
    await servesMqtt(`ws://127.0.0.1:${port}/mqtt`);
    await listener.close();
    assert.equal(server.emit, over);
    await assert.rejects(says(`ws://127.0.0.1:${port}/mqtt`));
    await listener.open();
    await servesMqtt(`ws://127.0.0.1:${port}/mqtt`);
    await listener.close();
    assert.equal(server.emit, over);
  });

  it('passes no request for its path to other listeners if it is reopened after another package replaced emit without it', async () => {
    const server = createServer();
    const port = await listening(server);
    const listener = await attachWebSocket(broker, server);
    server.emit = ((...args: Parameters<Server['emit']>) =>
      EventEmitter.prototype.emit.apply(server, args)) as Server['emit'];
    await listener.close();
    const seen: (string | undefined)[] = [];
    server.prependListener('upgrade', (request: IncomingMessage, socket: Duplex) => {
      seen.push(request.url);
      socket.destroy();
    });
    await listener.open();
    await servesMqtt(`ws://127.0.0.1:${port}/mqtt`);
    assert.deepEqual(seen, []);
  });

  it('accepts a server of another class, as in other runtimes and realms', async () => {
    const server = createServer();
    const port = await listening(server);
    const foreign = Object.assign(new EventEmitter(), { address: () => ({ address: '127.0.0.1', family: '', port }) });
    server.on('upgrade', (...event) => foreign.emit('upgrade', ...event));
    const listener = await attachWebSocket(broker, foreign as unknown as Server);
    assert.equal(listener.port, port);
    await servesMqtt(`ws://127.0.0.1:${port}/mqtt`);
  });
});

describe('attachWebSocket on a secure server', () => {
  let certificates: Certificates;
  before(() => {
    certificates = makeCertificates();
  });
  after(() => certificates[Symbol.dispose]());

  for (const [kind, create] of [
    ['HTTPS', createSecure],
    ['HTTP/2, with allowHTTP1', (options: object) => createSecureServer({ ...options, allowHTTP1: true })]
  ] as const) {
    it(`serves ${kind}, and reports the client certificate`, async () => {
      const { ca, server, client } = certificates;
      const options = { cert: server.cert, key: server.key, ca: ca.cert, requestCert: true };
      const secure = create(options) as Server;
      const port = await listening(secure);
      attachWebSocket(broker, secure, { usernameFrom: 'cn' });
      assert.deepEqual(
        broker.listeners().map(({ name, protocol }) => [name, protocol]),
        [['wss:/mqtt', 'mqtt:wss']]
      );
      const connected = broker.nextEvent('client.connected');
      await servesMqtt(`wss://127.0.0.1:${port}/mqtt`, { ca: ca.cert, cert: client.cert, key: client.key });
      const { username, transportInfo: connection } = (await connected).client;
      assert.equal(username, 'device-1');
      assert.equal(connection.transport, 'wss');
      assert.equal(connection.certificate?.subject, 'CN=device-1,O=Plant');
    });
  }
});

describe('handleUpgrade', () => {
  it('accepts requests that the host has routed to it, whatever their path', async () => {
    const server = createServer();
    const port = await listening(server);
    const mqttUpgrades = upgradeHandler(broker, { name: 'tenants', maxConnections: 2 });
    assert.equal(mqttUpgrades.name, 'tenants');
    const app = new WebSocketServer({ noServer: true });
    server.on('upgrade', (request, socket, head) => {
      if (request.url?.startsWith('/tenants/')) mqttUpgrades.handleUpgrade(request, socket, head);
      else app.handleUpgrade(request, socket, head, (client) => client.send('from the app'));
    });
    await servesMqtt(`ws://127.0.0.1:${port}/tenants/a`);
    await servesMqtt(`ws://127.0.0.1:${port}/tenants/b?x=y`);
    assert.equal(await says(`ws://127.0.0.1:${port}/else`), 'from the app');
    assert.equal(mqttUpgrades.info().currentConnections, 2);
    await assert.rejects(servesMqtt(`ws://127.0.0.1:${port}/tenants/c`));
    assert.deepEqual(mqttUpgrades.info().shutdownCount, { max_connections: 1 });
  });

  it('can be used as an upgrade listener, and has no option path [OPTION_UNKNOWN]', async () => {
    const server = createServer().on('upgrade', upgradeHandler(broker).handleUpgrade);
    await servesMqtt(`ws://127.0.0.1:${await listening(server)}/`);
    assert.throws(() => upgradeHandler(broker, { path: '/mqtt' } as object), { code: 'OPTION_UNKNOWN' });
  });

  it('answers 503 while the broker is not started, and serves afterwards', async () => {
    const later = createBroker();
    const server = createServer().on('upgrade', upgradeHandler(later).handleUpgrade);
    const port = await listening(server);
    const statusOf = async () => {
      const client = new WebSocket(`ws://127.0.0.1:${port}/`, 'mqtt');
      closing.push(() => client.terminate());
      client.on('error', () => {});
      return new Promise<number>((resolve) => {
        client.on('unexpected-response', (_request, response) => resolve(response.statusCode as number));
        client.on('open', () => resolve(101));
      });
    };
    assert.equal(await statusOf(), 503);
    await later.start();
    assert.equal(await statusOf(), 101);
    await later.stop({ timeoutMs: 0 });
    assert.equal(await statusOf(), 503);
  });

  it('counts no connection for a socket that has closed while the host decided', async () => {
    const handler = upgradeHandler(broker, { maxConnections: 1 });
    let isFirst = true;
    const server = createServer().on('upgrade', async (request, socket, head) => {
      if (isFirst) {
        isFirst = false;
        socket.on('error', () => {});
        client.resetAndDestroy();
        await new Promise((resolve) => socket.once('close', resolve));
      }
      handler.handleUpgrade(request, socket, head);
      server.emit('decided');
    });
    const port = await listening(server);
    const client = connect(port, '127.0.0.1');
    client.write(UPGRADE);
    await once(server, 'decided');
    assert.equal(handler.info().currentConnections, 0);
    await servesMqtt(`ws://127.0.0.1:${port}/`);
  });

  it('reports a socket that was already upgraded, and keeps working', async () => {
    const stub = new StubBroker();
    const handler = upgradeHandler(stub);
    const app = new WebSocketServer({ noServer: true });
    const server = createServer().on('upgrade', (request, socket, head) => {
      app.handleUpgrade(request, socket, head, () => {});
      handler.handleUpgrade(request, socket, head);
    });
    const client = new WebSocket(`ws://127.0.0.1:${await listening(server)}/`, 'mqtt');
    client.on('error', () => {});
    await once(client, 'close');
    assert.match(stub.reports[0].error.message, /more than once/);
    assert.deepEqual(handler.info().shutdownCount, { upgrade_failed: 1 });
  });
});
