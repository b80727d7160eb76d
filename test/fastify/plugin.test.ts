import assert from 'node:assert/strict';
import { type EventEmitter, once as onceOf } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import websocket from '@fastify/websocket';
import { createBroker } from 'embermq';
import { type FastifyMqttOptions, fastifyMqtt } from 'embermq/fastify';
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify';
import mqtt, { type MqttClient } from 'mqtt';
import { WebSocket } from 'ws';

const SECRET = { id: 'me', secret: 'a secret' };
const AUTHORIZATION = `Basic ${Buffer.from(`${SECRET.id}:${SECRET.secret}`).toString('base64')}`;

const apps: FastifyInstance[] = [];
const clients: MqttClient[] = [];

function makeApp(options: FastifyServerOptions = {}): FastifyInstance {
  const app = Fastify(options);
  apps.push(app);
  return app;
}

async function appWith(options: FastifyMqttOptions = {}): Promise<FastifyInstance> {
  const app = makeApp();
  await app.register(fastifyMqtt, options);
  return app;
}

async function connectTo(url: string): Promise<MqttClient> {
  const client = await mqtt.connectAsync(url, { reconnectPeriod: 0, protocolVersion: 5 });
  clients.push(client);
  return client;
}

/** Clients and brokers have separate event types. */
function once(emitter: unknown, event: string): Promise<unknown[]> {
  return onceOf(emitter as EventEmitter, event);
}

function portOf(app: FastifyInstance): number {
  return (app.addresses()[0] as AddressInfo).port;
}

afterEach(async () => {
  for (const client of clients.splice(0)) client.end(true);
  for (const app of apps.splice(0)) await app.close();
});

describe('The Fastify plugin', () => {
  it('serves MQTT over WebSocket on the server of the app, and gives routes the broker as fastify.mqtt', async () => {
    const app = await appWith();
    app.post('/alarm', async () => {
      await app.mqtt.publish('alarms', 'fire');
      return 'sent';
    });
    await app.listen({ port: 0 });
    const client = await connectTo(`ws://127.0.0.1:${portOf(app)}/mqtt`);
    await client.subscribeAsync('alarms');
    const message = once(client, 'message');
    assert.equal((await app.inject({ method: 'POST', url: '/alarm' })).body, 'sent');
    assert.equal(String((await message)[1]), 'fire');
  });

  it('serves each address to which the name localhost is bound', async () => {
    const app = await appWith();
    await app.listen({ port: 0, host: 'localhost' });
    for (const { address, family, port } of app.addresses() as AddressInfo[]) {
      const host = family === 'IPv6' ? `[${address}]` : address;
      assert.ok((await connectTo(`ws://${host}:${port}/mqtt`)).connected, host);
    }
  });

  it('decorates the app when registered as a plugin, even in a context with a prefix', async () => {
    const app = makeApp();
    await app.register(async (context) => {
      await context.register(fastifyMqtt);
      context.get('/state', async () => context.mqtt.state);
    });
    assert.equal((await app.inject('/state')).body, 'connected');
    assert.equal(app.hasDecorator('mqtt'), false);
  });

  it('starts the broker when the app is ready, before onReady hooks that were added after it', async () => {
    const app = makeApp();
    const states: string[] = [];
    await app.register(fastifyMqtt);
    states.push(app.mqtt.state);
    app.addHook('onReady', async () => void states.push(app.mqtt.state));
    await app.ready();
    await app.close();
    states.push(app.mqtt.state);
    assert.deepEqual(states, ['idle', 'connected', 'disconnected']);
  });

  it('takes another path, and lets @fastify/websocket serve its routes on the same server', async () => {
    for (const order of ['before', 'after']) {
      const app = makeApp();
      if (order === 'before') await app.register(websocket);
      await app.register(fastifyMqtt, { webSocket: '/broker' });
      if (order === 'after') await app.register(websocket);
      await app.register(async (context) => {
        context.get('/app', { websocket: true }, (socket) => socket.send('from the app'));
      });
      await app.listen({ port: 0 });
      const base = `ws://127.0.0.1:${portOf(app)}`;
      assert.ok((await connectTo(`${base}/broker`)).connected);
      const socket = new WebSocket(`${base}/app`);
      const [said] = await once(socket, 'message');
      assert.equal(String(said), 'from the app', order);
      await app.close();
    }
  });

  it('opens separate ports, and none for WebSocket with webSocket: false', async () => {
    const app = await appWith({ webSocket: false, listen: [0, { port: 0, name: 'second' }] });
    await app.ready();
    const ports = app.mqtt.listeners().map(({ address }) => address?.port);
    assert.equal(ports.length, 2);
    for (const port of ports) assert.ok((await connectTo(`mqtt://127.0.0.1:${port}`)).connected);
  });

  it('mounts several revisions of the management interface and the interface of stream rules', async () => {
    const app = await appWith({
      management: [
        { revision: 'later', prefix: '/api/v4' },
        { revision: 'hosted', unmatched: 'next' }
      ],
      streamsApi: { credentials: 'none' }
    });
    app.post('/echo', async ({ body }) => body);
    await app.mqtt.applications.create(SECRET);
    const headers = { authorization: AUTHORIZATION, host: 'localhost' };
    for (const url of ['/api/v4/clients', '/api/clients'])
      assert.deepEqual((await app.inject({ url, headers })).json().data, [], url);
    assert.equal((await app.inject({ url: '/api/v4/clients' })).statusCode, 401);
    const message = { topic: 't', payload: 'x', clientid: 'rest' };
    const published = once(app.mqtt, 'message.publish');
    const answer = await app.inject({ method: 'POST', url: '/api/v4/mqtt/publish', headers, payload: message });
    assert.equal(answer.json().code, 0, answer.body);
    assert.equal(((await published)[0] as { message: { topic: string } }).message.topic, 't');
    const sql = 'CREATE STREAM demo () WITH (DATASOURCE="t/#", FORMAT="json")';
    const created = await app.inject({ method: 'POST', url: '/streams-api/streams', headers, payload: { sql } });
    assert.equal(created.statusCode, 201, created.body);
    assert.deepEqual((await app.inject({ url: '/streams-api/streams', headers })).json(), ['demo']);
    assert.deepEqual((await app.inject({ method: 'POST', url: '/echo', payload: { a: 1 } })).json(), { a: 1 });
  });

  it('sends events to webhooks, including those of its stop', async () => {
    const events: string[] = [];
    const app = await appWith({ webhooks: { onEvent: ({ action }) => void events.push(action) } });
    await app.listen({ port: 0 });
    await connectTo(`ws://127.0.0.1:${portOf(app)}/mqtt`);
    await app.close();
    assert.deepEqual([events[0], events.includes('client_disconnected')], ['client_connect', true]);
  });

  it('logs to the logger of the app', async () => {
    const lines: string[] = [];
    const app = makeApp({ logger: { level: 'info', stream: { write: (line) => void lines.push(line) } } });
    await app.register(fastifyMqtt);
    await app.ready();
    assert.ok(lines.some((line) => JSON.parse(line).msg === 'broker started'));
  });

  it('does not stop a broker that the app has started, but closes everything it has opened there', async () => {
    await using broker = await createBroker().start();
    const app = await appWith({ broker, listen: 0 });
    await app.listen({ port: 0 });
    assert.equal(app.mqtt, broker);
    const [tcp] = broker.listeners().filter(({ protocol }) => protocol === 'mqtt:tcp');
    const urls = [`ws://127.0.0.1:${portOf(app)}/mqtt`, `mqtt://127.0.0.1:${tcp.address?.port}`];
    const connected = await Promise.all(urls.map(connectTo));
    const closed = Promise.all(connected.map((client) => once(client, 'close')));
    await app.close();
    await closed;
    assert.deepEqual([broker.state, broker.listeners()], ['connected', []]);
  });
});

describe('Apps that share and start a broker', () => {
  for (const order of [
    [0, 1],
    [1, 0]
  ])
    it(`keeps a shared broker until the last app closes, in the order ${order.join(', ')}`, async () => {
      const broker = createBroker();
      const both = [await appWith({ broker, webSocket: '/a' }), await appWith({ broker, listen: 0, webSocket: '/b' })];
      await Promise.all(both.map(async (app) => app.ready()));
      const [tcp] = broker.listeners().filter(({ protocol }) => protocol === 'mqtt:tcp');
      const client = await connectTo(`mqtt://127.0.0.1:${tcp.address?.port}`);
      const closed = once(client, 'close');
      const [first, last] = order.map((at) => both[at]);
      await first.close();
      assert.equal(broker.state, 'connected');
      await last.mqtt.publish('a', 'x');
      assert.equal(broker.listeners().length, last === both[1] ? 2 : 1);
      await last.close();
      await closed;
      assert.deepEqual([broker.state, broker.listeners()], ['disconnected', []]);
    });

  it('closes apps with a shared broker concurrently', async () => {
    const broker = createBroker();
    const both = [await appWith({ broker, webSocket: '/a' }), await appWith({ broker, webSocket: '/b' })];
    await Promise.all(both.map(async (app) => app.ready()));
    await Promise.all(both.map(async (app) => app.close()));
    assert.equal(broker.state, 'disconnected');
  });

  it('closes an app despite an event stream, while another app continues to use the broker', async () => {
    const broker = createBroker();
    const settings = { broker, closeTimeout: 50, management: true } as const;
    const [app, other] = [await appWith({ ...settings, webSocket: '/a' }), await appWith({ broker, webSocket: '/b' })];
    await other.ready();
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    await broker.applications.create(SECRET);
    const stream = await fetch(`${url}/api/v4/x/events`, { headers: { authorization: AUTHORIZATION } });
    const ended = assert.rejects(stream.text());
    await app.close();
    await ended;
    assert.equal(broker.state, 'connected');
  });

  it('lets apps use the broker in turn, and leaves no listeners behind', async () => {
    const broker = createBroker();
    for (let round = 0; round < 3; round++) {
      const app = await appWith({ broker, listen: 0 });
      await app.ready();
      assert.equal(broker.listeners().length, 2);
      await app.close();
      assert.deepEqual([broker.state, broker.listeners()], ['disconnected', []]);
    }
  });

  it('lets apps use the broker after failing to start it', async () => {
    const taken = await appWith({ listen: 0, webSocket: false });
    await taken.ready();
    const broker = createBroker();
    const failing = await appWith({ broker, listen: taken.mqtt.listeners()[0].address?.port });
    await assert.rejects(async () => failing.ready(), { code: 'LISTENER_BIND_FAILED' });
    await failing.close();
    const app = await appWith({ broker });
    await app.ready();
    assert.equal(broker.state, 'connected');
    await app.close();
    assert.deepEqual([broker.state, broker.listeners()], ['disconnected', []]);
  });
});

describe('Sibling contexts', () => {
  it('gives each context a separate broker, on separate paths', async () => {
    const app = makeApp();
    const states: string[] = [];
    for (const path of ['/one', '/two'])
      app.register(async (context) => {
        await context.register(fastifyMqtt, { webSocket: path });
        context.addHook('onReady', async () => void states.push(context.mqtt.state));
      });
    await app.listen({ port: 0 });
    assert.deepEqual(states, ['connected', 'connected']);
    for (const path of ['/one', '/two']) await connectTo(`ws://127.0.0.1:${portOf(app)}${path}`);
  });
});

describe('Closing the app', () => {
  it('disconnects WebSocket clients with reason code 0x8B, so that they do not keep the server open', async () => {
    const app = await appWith();
    await app.listen({ port: 0 });
    const client = await connectTo(`ws://127.0.0.1:${portOf(app)}/mqtt`);
    const told = once(client, 'disconnect');
    await app.close();
    assert.equal(((await told)[0] as { reasonCode: number }).reasonCode, 0x8b);
    assert.equal(app.mqtt.state, 'disconnected');
  });

  it('lets a request in progress publish, and TCP clients receive it', async () => {
    const app = await appWith({ listen: 0, webSocket: false });
    const steps = new EventTarget();
    const begun = once(steps, 'begun');
    app.get('/slow', async () => {
      const goOn = once(steps, 'goOn');
      steps.dispatchEvent(new Event('begun'));
      await goOn;
      await app.mqtt.publish('late', 'x');
      return app.mqtt.state;
    });
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const client = await connectTo(`mqtt://127.0.0.1:${app.mqtt.listeners()[0].address?.port}`);
    await client.subscribeAsync('late');
    const heard = once(client, 'message');
    const answer = fetch(`${url}/slow`, { headers: { connection: 'close' } });
    await begun;
    app.server.once('close', () => assert.equal(app.mqtt.state, 'connected'));
    const closed = app.close();
    setImmediate(() => steps.dispatchEvent(new Event('goOn')));
    assert.equal(await (await answer).text(), 'connected');
    assert.equal(String((await heard)[1]), 'x');
    await closed;
  });

  it('waits at most closeTimeout for a WebSocket without a CONNECT and an event stream', async () => {
    const app = await appWith({ closeTimeout: 50, management: true });
    await app.mqtt.applications.create(SECRET);
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const stream = await fetch(`${url}/api/v4/x/events`, { headers: { authorization: AUTHORIZATION } });
    const socket = new WebSocket(`${url.replace('http', 'ws')}/mqtt`, 'mqtt');
    await once(socket, 'open');
    const closed = once(socket, 'close');
    await app.close();
    await closed;
    await stream.text();
    assert.equal(app.mqtt.state, 'disconnected');
  });

  for (const begin of ['ready', 'inject'] as const)
    it(`leaves no broker running in the same turn as ${begin}`, async () => {
      const app = await appWith({ listen: 0 });
      const calls = { ready: () => app.ready(), inject: () => app.inject('/') };
      void calls[begin]();
      await app.close();
      await new Promise(setImmediate);
      assert.notEqual(app.mqtt.state, 'connected');
      assert.ok(app.mqtt.listeners().every(({ address }) => address === undefined));
    });

  it('leaves nothing open if the app was never ready', async () => {
    const app = makeApp();
    app.register(fastifyMqtt, { listen: 0 });
    await app.close();
    assert.equal(
      app.mqtt.listeners().every(({ address }) => address === undefined),
      true
    );
  });
});

describe('Errors of the Fastify plugin', () => {
  it('names the option and the remedy', async () => {
    const wrong: [object, RegExp][] = [
      [{ websocket: '/x' }, /"websocket".*webSocket/],
      [{ prefix: '/broker' }, /give the paths in webSocket.path, management.prefix/],
      [{ webSocket: 'mqtt' }, /path/],
      [{ broker: 1 }, /broker/],
      [{ management: 'later' }, /management/],
      [{ management: { revision: 'newest' } }, /revision/],
      [{ listen: { port: 'x' } }, /port/]
    ];
    for (const [options, message] of wrong) {
      const app = makeApp();
      await assert.rejects(async () => app.register(fastifyMqtt, options as FastifyMqttOptions), message);
    }
  });

  it('reports that the plugin is already registered', async () => {
    const app = await appWith();
    await assert.rejects(async () => app.register(fastifyMqtt), { code: 'PLUGIN_REGISTERED' });
  });

  it('passes the error of a port in use to app.ready, and the app can be closed', async () => {
    const other = await appWith({ listen: 0, webSocket: false });
    await other.ready();
    const port = other.mqtt.listeners()[0].address?.port as number;
    const app = await appWith({ listen: port });
    await assert.rejects(async () => app.ready(), { code: 'LISTENER_BIND_FAILED' });
    await app.close();
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  });
});
