import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { type Listener, listen, tls, ws } from '../../adapters/net/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { connect } from '../support/wire.ts';
import { readBytes, UPGRADE } from './stub-broker.ts';

const CONNACK = '20020000';
const DISCONNECT = Buffer.from([0xe0, 0]);

let broker: Broker;
let certificates: Certificates;
const sockets: Socket[] = [];

before(() => {
  certificates = makeCertificates();
});

after(() => certificates[Symbol.dispose]());

beforeEach(async () => {
  broker = createBroker({ allowAnonymous: true });
  await broker.start();
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await broker.stop({ timeoutMs: 0 });
});

/** Connect a client that never closes its side first. */
function dial({ port, protocol }: Listener): Socket {
  const options = { port: port as number, host: '127.0.0.1', allowHalfOpen: true };
  const socket = protocol === 'mqtt:ssl' ? connectTls({ ...options, ca: certificates.ca.cert }) : connectTcp(options);
  socket.on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

/** Connects a client that closes with its peer. */
function dialFully({ port }: Listener): Socket {
  const socket = connectTcp({ port: port as number, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

/** Builds the frame of a client, masked with zeros. */
function frame(payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x82, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}

/** Connects a client. @returns a function that sends a packet */
async function client(listener: Listener): Promise<(packet: Buffer) => void> {
  const socket = dial(listener);
  const isFramed = listener.protocol === 'mqtt:ws';
  if (isFramed) {
    socket.write(UPGRADE);
    let answer = '';
    while (!answer.endsWith('\r\n\r\n')) answer += (await readBytes(socket, 1)).toString('latin1');
  }
  const say = (packet: Buffer) => socket.write(isFramed ? frame(packet) : packet);
  say(encode(connect(4), 4));
  if (isFramed) await readBytes(socket, 2);
  assert.equal((await readBytes(socket, 4)).toString('hex'), CONNACK);
  return say;
}

const TRANSPORTS = {
  TCP: () => listen(broker, { port: 0, maxConnections: 1 }),
  TLS: () => listen(broker, tls({ port: 0, maxConnections: 1, ...certificates.server })),
  WebSocket: () => listen(broker, ws({ port: 0, maxConnections: 1 }))
} as const;

describe('maxConnections of a listener', () => {
  for (const [name, open] of Object.entries(TRANSPORTS)) {
    it(`does not count a connection over ${name} that the broker has begun to close, although its socket is open`, async () => {
      const listener = await open();
      const say = await client(listener);
      assert.equal(listener.info().currentConnections, 1);
      const gone = broker.nextEvent('client.disconnected');
      say(DISCONNECT);
      await gone;
      assert.equal(listener.info().currentConnections, 0);
      await client(listener);
      assert.deepEqual(listener.info().currentConnections, 1);
      assert.equal(listener.info().shutdownCount.max_connections, undefined);
    });
  }

  it('counts each connection once after the closing ones have closed', async () => {
    const listener = await listen(broker, { port: 0, maxConnections: 2 });
    const first = await client(listener);
    await client(listener);
    const gone = broker.nextEvent('client.disconnected');
    first(DISCONNECT);
    await gone;
    const [closing] = sockets;
    const closed = new Promise((resolve) => closing.on('close', resolve));
    closing.end();
    await closed;
    await client(listener);
    assert.equal(listener.info().currentConnections, 2);
  });

  for (const [name, open] of Object.entries(TRANSPORTS)) {
    it(`frees one place for a connection over ${name} whose socket closes before the broker closes it`, async () => {
      const listener = await open();
      for (let time = 0; time < 3; time++) {
        await client(listener);
        assert.equal(listener.info().currentConnections, 1);
        const gone = broker.nextEvent('client.disconnected');
        sockets[time].destroy();
        await gone;
        await new Promise(setImmediate); // the listener may see the socket close in the next turn
        assert.equal(listener.info().currentConnections, 0);
      }
    });
  }

  it('admits a client that disconnects and reconnects at once a hundred times', async () => {
    const listener = await listen(broker, { port: 0, maxConnections: 1 });
    for (let time = 0; time < 100; time++) {
      (await client(listener))(DISCONNECT);
      sockets[time].end();
    }
    assert.equal(listener.info().shutdownCount.max_connections, undefined);
  });

  it('refuses a client for which no place becomes free within half a second, and waiting clients when the listener closes', async () => {
    const listener = await listen(broker, { port: 0, maxConnections: 1 });
    await client(listener);
    const second = dialFully(listener);
    await once(second, 'close');
    assert.equal(listener.info().shutdownCount.max_connections, 1);
    const third = dialFully(listener);
    await once(third, 'connect');
    await new Promise(setImmediate);
    const closed = once(third, 'close');
    await listener.close();
    await closed;
    assert.deepEqual(listener.info().currentConnections, 1);
  });

  it('raises an alarm while the places of a listener are taken, and clears it below nine tenths', async () => {
    const changes: string[] = [];
    broker.on('alarm.raised', ({ alarm }) => changes.push(`raised ${alarm.id}`));
    broker.on('alarm.cleared', ({ alarm }) => changes.push(`cleared ${alarm.id}`));
    const listener = await listen(broker, { port: 0, maxConnections: 2, name: 'gate' });
    const first = await client(listener);
    assert.deepEqual(changes, []);
    await client(listener);
    assert.deepEqual(changes, ['raised too_many_connections:gate']);
    const gone = broker.nextEvent('client.disconnected');
    first(DISCONNECT);
    await gone;
    assert.deepEqual(changes, ['raised too_many_connections:gate', 'cleared too_many_connections:gate']);
    await client(listener);
    await listener.close();
    assert.deepEqual(changes.slice(2), ['raised too_many_connections:gate', 'cleared too_many_connections:gate']);
  });
});

describe('A full broker', () => {
  const LIMITS = [
    ['maxConnections of its listener', {}, { maxConnections: 1 }],
    ['maxConnections', { maxConnections: 1 }, {}],
    ['maxConnectionsPerAddress', { maxConnectionsPerAddress: 1 }, {}]
  ] as const;

  for (const [name, options, listening] of LIMITS)
    for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const)
      it(`serves a client that disconnects by ${leave} and reconnects at once, fifty times, with ${name} at 1`, async () => {
        await broker.stop({ timeoutMs: 0 });
        broker = createBroker({ allowAnonymous: true, ...options });
        await broker.start();
        const listener = await listen(broker, { port: 0, ...listening });
        for (let time = 0; time < 50; time++) {
          await client(listener); // fails if it is reset
          sockets[time][leave]();
        }
        assert.equal(broker.metrics.counter('connections.refused'), 0);
        assert.equal(listener.info().shutdownCount.max_connections, undefined);
      });

  it('serves the client that has waited longest when a place becomes free, and refuses the others after half a second', async () => {
    await broker.stop({ timeoutMs: 0 });
    broker = createBroker({ allowAnonymous: true, maxConnections: 1 });
    await broker.start();
    const listener = await listen(broker, { port: 0 });
    const say = await client(listener);
    const waiting = [dialFully(listener), dialFully(listener)];
    for (const socket of waiting) socket.write(encode(connect(4), 4));
    await Promise.all(waiting.map((socket) => once(socket, 'connect')));
    await new Promise(setImmediate);
    const closed = once(waiting[1], 'close');
    say(DISCONNECT);
    assert.equal((await readBytes(waiting[0], 4)).toString('hex'), CONNACK);
    await closed;
    assert.deepEqual(listener.info().shutdownCount.max_connections, 1);
    assert.equal(broker.metrics.counter('connections.refused'), 1);
  });

  it('closes the streams that wait for a place when it stops', async () => {
    await broker.stop({ timeoutMs: 0 });
    broker = createBroker({ allowAnonymous: true, maxConnections: 1 });
    await broker.start();
    const listener = await listen(broker, { port: 0 });
    await client(listener);
    const waiting = dialFully(listener);
    await once(waiting, 'connect');
    await new Promise(setImmediate);
    const closed = once(waiting, 'close');
    await broker.stop({ timeoutMs: 0 });
    await closed;
  });
});
