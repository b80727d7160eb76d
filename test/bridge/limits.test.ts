import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type BridgeOptions, bridge } from '../../adapters/bridge/index.ts';
import { encode, PacketReader } from '../../lib/adapter.ts';
import { type Broker, createBroker, type Packet, type Properties } from '../../lib/index.ts';
import { VirtualClock } from '../../lib/testing/index.ts';
import { until } from '../support/until.ts';
import { connected, listener, Pair } from './pair.ts';

describe('The limits of this broker for its clients', () => {
  it('exempts a bridge from the keep alive and the size limit of CONNECT', async () => {
    const clock = new VirtualClock();
    const limits = { serverKeepalive: 10, maxKeepalive: 10, maxConnectSize: 64, idleTimeout: 1 };
    const name = 'a-name-of-64-letters'.padEnd(64, '-');
    await using pair = await Pair.open({ name, out: [{ filter: 'out/#', qos: 1 }] }, { near: { ...limits, clock } });
    await clock.advance(40_000); // less than the keep alive of the bridge
    const far = await listener(pair.far);
    await pair.near.publish('out/x', '1', { qos: 1 });
    assert.equal(String((await far.next()).payload), '1');
    assert.deepEqual([pair.link.state, pair.link.counters.connected], ['connected', 1]);
  });
});

const ACCEPTED = { cmd: 'connack', sessionPresent: false, reasonCode: 0 } as const;

/** A bridge to a server that answers CONNECT with these properties, and each other packet as the test says. */
async function limited(
  context: TestContext,
  properties: Properties,
  answer: (packet: Packet, send: (packet: Packet) => void, write: (bytes: Buffer) => void) => void,
  options: Partial<BridgeOptions> = {},
  near: Broker = createBroker()
) {
  const received: Packet[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const reader = new PacketReader({ side: 'server' });
    const send = (packet: Packet) => void socket.write(encode(packet, 5));
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      for (const packet of reader.push(chunk)) {
        received.push(packet);
        if (packet.cmd === 'connect') send({ ...ACCEPTED, properties });
        else answer(packet, send, (bytes) => void socket.write(bytes));
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  await near.start();
  const url = `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const link = bridge(near, { url, backOff: 5, maxBackOff: 20, out: [{ filter: 'out/#', qos: 2 }], ...options });
  context.after(async () => {
    link.close();
    for (const socket of sockets) socket.destroy();
    server.close();
    await near.stop();
  });
  await connected(near, link);
  const published = () => received.filter((packet) => packet.cmd === 'publish');
  return { near, link, received, published };
}

/** Acknowledge a message. */
function acknowledge(packet: Packet, send: (packet: Packet) => void): void {
  if (packet.cmd === 'publish' && packet.qos > 0)
    send({ cmd: packet.qos === 1 ? 'puback' : 'pubrec', messageId: packet.messageId as number, reasonCode: 0 });
  if (packet.cmd === 'pubrel') send({ cmd: 'pubcomp', messageId: packet.messageId, reasonCode: 0 });
}

describe('The limits announced by a server', () => {
  for (const maximumQoS of [0, 1] as const)
    it(`keeps Maximum QoS ${maximumQoS}, even for messages queued with a higher one`, async (context) => {
      const { near, link, received, published } = await limited(context, { maximumQoS }, acknowledge);
      for (const qos of [0, 1, 2] as const) await near.publish('out/x', `${qos}`, { qos });
      await until(() => published().length >= 3 && link.size === 0);
      const isOffline = near.nextEvent('client.disconnected');
      link.stop();
      await isOffline;
      for (const qos of [1, 2] as const) await near.publish('out/x', `waited ${qos}`, { qos });
      link.start();
      await until(() => published().length >= 5 && link.size === 0);
      assert.deepEqual(
        published().map(({ qos, payload }) => [String(payload), qos]),
        ['0', '1', '2', 'waited 1', 'waited 2'].map((text) => [text, text === '0' ? 0 : maximumQoS])
      );
      assert.equal(received.filter(({ cmd }) => cmd === 'pubrel').length, 0);
      assert.equal(link.counters.connected, 2);
    });

  it('keeps Retain Available 0', async (context) => {
    const { near, published } = await limited(context, { retainAvailable: 0 }, acknowledge);
    await near.publish('out/x', '1', { qos: 1, retain: true });
    await until(() => published().length >= 1);
    assert.equal(published()[0].retain, false);
  });

  it('keeps Maximum Packet Size, and completes larger messages locally', async (context) => {
    const { near, link, published } = await limited(context, { maximumPacketSize: 200 }, acknowledge, {
      out: [{ filter: 'out/#', qos: 2, remotePrefix: 'a-prefix-of-some-letters/' }]
    });
    for (const qos of [0, 1, 2] as const)
      for (let length = 100; length < 250; length += 5) await near.publish('out/x', Buffer.alloc(length), { qos });
    await near.publish('out/x', 'end', { qos: 1 });
    await until(() => String(published().at(-1)?.payload) === 'end' && link.size === 0);
    assert.ok(published().length > 3);
    for (const packet of published()) assert.ok(encode(packet, 5).length <= 200);
    assert.equal(link.counters.connected, 1);
  });

  it('keeps Receive Maximum, even if it becomes smaller than the number of messages in flight', async (context) => {
    const limits: Properties = { receiveMaximum: 20 };
    const waiting: (() => void)[] = [];
    const { near, link, received, published } = await limited(context, limits, (packet, send) =>
      waiting.push(() => acknowledge(packet, send))
    );
    for (let i = 0; i < 50; i++) await near.publish('out/x', `${i}`, { qos: 2 });
    await until(() => published().length >= 20);
    limits.receiveMaximum = 3;
    link.stop();
    received.length = 0;
    waiting.length = 0;
    link.start();
    while (link.size > 0) {
      let open = 0;
      for (const { cmd } of received) open += cmd === 'publish' ? 1 : cmd === 'pubrel' ? -1 : 0;
      assert.ok(open <= 3, `${open} are in flight`);
      waiting.shift()?.();
      await setImmediate();
    }
    assert.deepEqual(
      published().map(({ payload }) => Number(String(payload))),
      Array.from({ length: 50 }, (_, number) => number)
    );
  });

  it('keeps Server Keep Alive: sends a PINGREQ in time, and disconnects from a silent server', async (context) => {
    const clock = new VirtualClock();
    const near = createBroker({ clock });
    const { link, received } = await limited(
      context,
      { serverKeepAlive: 8 },
      (packet, send) => packet.cmd === 'pingreq' && received.length < 5 && send({ cmd: 'pingresp' }),
      {},
      near
    );
    const lost = near.nextEvent('bridge.disconnected');
    while (received.filter(({ cmd }) => cmd === 'pingreq').length < 3) {
      const count = received.length;
      assert.equal(link.state, 'connected');
      await clock.advance(6_000);
      await until(() => received.length !== count);
    }
    await clock.advance(12_000);
    assert.match(`${(await lost).error}`, /no longer answers/);
  });
});

describe('Messages that a server refuses', () => {
  it('sends a message again if the quota is exceeded (0x97), and counts it for any other reason', async (context) => {
    let count = 0;
    const { near, link, published } = await limited(context, {}, (packet, send) => {
      if (packet.cmd !== 'publish') return acknowledge(packet, send);
      const reasonCode = String(packet.payload) === 'bad' ? 0x99 : count++ < 2 ? 0x97 : 0;
      send({ cmd: packet.qos === 1 ? 'puback' : 'pubrec', messageId: packet.messageId as number, reasonCode });
    });
    for (const qos of [1, 2] as const) await near.publish('out/x', 'bad', { qos });
    for (const qos of [1, 2] as const) await near.publish('out/x', 'good', { qos });
    await until(() => link.size === 0);
    assert.equal(link.counters.refused, 2);
    assert.ok(link.counters.connected > 1);
    assert.deepEqual(
      published()
        .slice(-2)
        .map(({ payload }) => String(payload)),
      ['good', 'good']
    );
  });

  it('keeps messages that the server acknowledged or published before it closed at once', async (context) => {
    const goodbye: Packet = { cmd: 'disconnect', reasonCode: 0x8b };
    const message = { cmd: 'publish', topic: 'in/x', payload: Buffer.from('last'), dup: false, retain: false } as const;
    const { near, link, published } = await limited(
      context,
      {},
      (packet, send, write) => {
        if (packet.cmd === 'subscribe') send({ cmd: 'suback', messageId: packet.messageId, granted: [0] });
        if (packet.cmd !== 'publish') return;
        const acknowledged: Packet = { cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 };
        write(Buffer.concat([acknowledged, { ...message, qos: 0 } as const, goodbye].map((one) => encode(one, 5))));
      },
      { in: [{ filter: 'in/#', qos: 0 }] }
    );
    const here = await listener(near, 'in/#');
    await near.publish('out/x', '1', { qos: 1 });
    assert.equal(String((await here.next()).payload), 'last');
    await near.nextEvent('bridge.connected');
    assert.deepEqual([published().length, link.size], [1, 0]);
  });
});
