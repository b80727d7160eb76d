// Ten steps that show whether the built package works under a runtime: `node test/runtimes/smoke.mjs [DIST]`, after `npm run build`; the same
// with `bun` or `deno run -A`. Prints a line for each step, and ends with 1 at the first that fails.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { WebSocket as WsWebSocket } from 'ws';
import { dist, runSteps } from './steps.mjs';

const LASTING = { clean: false, sessionExpiry: '1h' };
/** CONNECT of MQTT 3.1.1, client id `web`, keep alive 60 s. */
const CONNECT = Uint8Array.of(0x10, 15, 0, 4, 77, 81, 84, 84, 4, 2, 0, 60, 0, 3, 119, 101, 98);

const world = {};

/** CONNECT is answered with CONNACK. */
async function connectsOverWebSocket(port) {
  const socket = new (globalThis.WebSocket ?? WsWebSocket)(`ws://127.0.0.1:${port}/mqtt`, 'mqtt');
  socket.binaryType = 'arraybuffer';
  const answer = new Promise((resolve, reject) => {
    socket.onmessage = ({ data }) => resolve([...new Uint8Array(data)]);
    socket.onerror = (event) => reject(event.error ?? new Error(event.message));
  });
  socket.onopen = () => socket.send(CONNECT);
  assert.deepEqual(await answer, [0x20, 2, 0, 0]);
  assert.equal(world.broker.sessions.get('web').transportInfo.transport, 'ws');
  socket.close();
}

/** The next event of a client. */
function next(client, event) {
  return new Promise((resolve) => client.on(event, resolve));
}

const STEPS = {
  'import the package': async () => {
    for (const [name, path] of Object.entries({
      lib: 'lib/index.js',
      net: 'adapters/net/index.js',
      testing: 'adapters/testing/index.js',
      level: 'adapters/level/index.js'
    })) {
      world[name] = await import(new URL(path, dist).href);
    }
  },
  'start a broker': async () => {
    world.broker = await world.lib.createBroker().start();
    assert.equal(world.broker.state, 'connected');
  },
  'serve a client over TCP': async () => {
    const listener = await world.net.listen(world.broker, 0);
    const connected = world.broker.nextEvent('client.connected');
    world.tcp = await world.lib.connectClient(connect(listener.port, '127.0.0.1'), { clientId: 'tcp' });
    const { transport, remoteAddress } = (await connected).client.transportInfo;
    assert.deepEqual([transport, remoteAddress], ['tcp', '127.0.0.1']);
  },
  'publish and subscribe with a client in the process': async () => {
    world.client = await world.broker.connect({ clientId: 'inner' });
    const heard = next(world.client, 'message');
    await world.client.subscribe('a/+');
    await world.tcp.publish('a/b', 'QoS 1', { qos: 1 });
    assert.equal((await heard).payload.toString(), 'QoS 1');
  },
  'deliver QoS 2 both ways': async () => {
    await world.tcp.subscribe('c', { qos: 2 });
    const heard = next(world.tcp, 'message');
    await world.client.publish('c', 'QoS 2', { qos: 2 });
    const message = await heard;
    assert.deepEqual([message.payload.toString(), message.qos], ['QoS 2', 2]);
  },
  'hand out a retained message': async () => {
    await world.broker.publish('state', 'open', { retain: true });
    const heard = next(world.tcp, 'message');
    await world.tcp.subscribe('state');
    const message = await heard;
    assert.deepEqual([message.payload.toString(), message.retain], ['open', true]);
  },
  'resume a session with what waited': async () => {
    const first = await world.broker.connect({ clientId: 'lasting', ...LASTING });
    await first.subscribe('jobs', { qos: 1 });
    await first.disconnect();
    await world.broker.publish('jobs', 'kept', { qos: 1 });
    const second = await world.broker.connect({ clientId: 'lasting', ...LASTING });
    assert.equal(second.connack.sessionPresent, true);
    assert.equal((await next(second, 'message')).payload.toString(), 'kept');
  },
  'serve a client over WebSocket, also on an HTTP server': async () => {
    const listener = await world.net.listen(world.broker, world.net.ws({ port: 0 }));
    await connectsOverWebSocket(listener.port);
    const server = createServer((_request, response) => response.end('the app'));
    world.net.attachWebSocket(world.broker, server);
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address();
    await connectsOverWebSocket(port);
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'the app');
    server.close();
  },
  'turn the clock of the test kit by a day': async () => {
    const kit = await world.testing.createTestBroker();
    const client = await kit.broker.connect({ clientId: 'device', clean: false, sessionExpiry: '23h' });
    await client.disconnect();
    assert.equal(kit.broker.sessions.has('device'), true);
    await kit.clock.advance('1d');
    assert.equal(kit.broker.sessions.has('device'), false);
    await kit[Symbol.asyncDispose]();
  },
  'stop the broker': async () => {
    const gone = next(world.tcp, 'close');
    await world.broker.stop();
    await gone;
    assert.equal(world.broker.state, 'disconnected');
  }
};

await runSteps(STEPS);
