import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import { EVENT_NAMES } from '../../lib/events/catalogue.ts';
import type { Hooks } from '../../lib/events/hooks.ts';
import type { Packet } from '../../lib/packets/types.ts';
import { Peer, turns } from '../fuzz/wire.ts';
import { type Bed, client, connect, isServed, kinds, payloads, publish, startTestBed, subscribe } from './support.ts';

type Misbehaviour = readonly [name: string, answer: () => never | Promise<never>, waitMs: number];

const MISBEHAVIOURS: readonly Misbehaviour[] = [
  [
    'throws',
    () => {
      throw new Error('hook broke');
    },
    0
  ],
  ['rejects', () => Promise.reject(new Error('hook broke')), 0],
  ['never answers', () => new Promise<never>(() => {}), 5_100],
  [
    'answers with a thenable that throws',
    () => {
      const broken = {
        // biome-ignore lint/suspicious/noThenProperty: an app may return such an object
        then: () => {
          throw new Error('hook broke');
        }
      };
      return broken as unknown as Promise<never>;
    },
    0
  ]
];

/** Waits until the work of the hooks is complete. */
async function wait({ pass }: Bed, waitMs: number): Promise<void> {
  await turns(3);
  await pass(waitMs);
  await turns(3);
}

describe('A hook that misbehaves', () => {
  for (const [how, answer, waitMs] of MISBEHAVIOURS) {
    for (const hook of ['preConnect', 'authenticate'] as const) {
      it(`refuses that one CONNECT: ${hook} ${how}`, async () => {
        const onlyBad = (({ client: { clientId } }: { client: { clientId: string } }) =>
          clientId === 'bad' ? answer() : true) as Hooks['preConnect'];
        await using it = await startTestBed({ hooks: { [hook]: onlyBad } });
        const other = await client(it.broker);
        const peer = new Peer(it.broker, 5);
        peer.say(connect({ clientId: 'bad' }), publish('a', 'delayed'));
        await turns(3);
        assert.ok(await isServed(other), 'other clients are served in the meantime');
        await wait(it, waitMs);
        const [refusal] = peer.take();
        assert.ok(refusal.cmd === 'connack' && refusal.reasonCode >= 0x80);
        assert.ok(peer.isClosed);
        assert.equal(it.failures.length, 1);
        assert.equal(it.failures[0].during, `hook ${hook}`);
        assert.ok(await isServed(other));
      });
    }

    for (const hook of ['authorizePublish', 'publish'] as const) {
      it(`refuses that one PUBLISH: ${hook} ${how}`, async () => {
        const onlyBad = (({ message }: { message: { topic: string } }) =>
          message.topic === 'bad' ? answer() : true) as Hooks['authorizePublish'];
        await using it = await startTestBed({ hooks: { [hook]: onlyBad } });
        const observer = await client(it.broker);
        observer.say(subscribe(1, 0, '#'));
        await turns(2);
        observer.take();
        const peer = await client(it.broker);
        peer.say(publish('bad', 'x', 1, 1), publish('good', 'behind it', 1, 2));
        await turns(3);
        assert.ok(await isServed(observer));
        await wait(it, waitMs);
        const acks = peer.take().map((packet) => (packet.cmd === 'puback' ? packet.reasonCode >= 0x80 : packet.cmd));
        assert.deepEqual(acks, [true, false]);
        observer.take();
        assert.deepEqual(
          observer.received.flatMap((packet) => (packet.cmd === 'publish' ? [packet.topic] : [])),
          ['good']
        );
        assert.equal(it.failures.length, 1);
        assert.ok(await isServed(peer));
      });

      it(`drops that one will: ${hook} ${how}`, async () => {
        const onlyBad = (({ message }: { message: { topic: string } }) =>
          message.topic === 'bad' ? answer() : true) as Hooks['authorizePublish'];
        await using it = await startTestBed({ hooks: { [hook]: onlyBad } });
        const observer = await client(it.broker);
        observer.say(subscribe(1, 0, '#'));
        const will = { topic: 'bad', payload: Buffer.from(''), qos: 0 as const, retain: false };
        const peer = await client(it.broker, { will, clientId: 'willing' });
        peer.wire.destroy();
        await wait(it, waitMs);
        assert.deepEqual(kinds(observer), ['suback']);
        assert.ok(!it.broker.sessions.has('willing'));
        assert.equal(it.failures.length, 1);
      });
    }

    it(`refuses that one filter: authorizeSubscribe ${how}`, async () => {
      await using it = await startTestBed({
        hooks: { authorizeSubscribe: ({ filter }) => (filter === 'bad' ? answer() : true) }
      });
      const peer = await client(it.broker);
      peer.say(subscribe(1, 1, 'good', 'bad', 'fine'), { cmd: 'pingreq' });
      await wait(it, waitMs);
      const [suback, ping] = peer.take();
      assert.ok(suback.cmd === 'suback');
      assert.deepEqual(suback.granted, [1, 0x80, 1]);
      assert.equal(ping.cmd, 'pingresp');
      assert.equal(it.failures.length, 1);
    });
  }

  it('drops that one delivery: deliver throws', async () => {
    await using it = await startTestBed({
      hooks: {
        deliver: ({ client: { clientId } }) => {
          if (clientId === 'bad') throw new Error('hook broke');
        }
      }
    });
    const [bad, good, publisher] = [
      await client(it.broker, { clientId: 'bad' }),
      await client(it.broker),
      await client(it.broker)
    ];
    for (const peer of [bad, good]) peer.say(subscribe(1, 0, 'a'));
    publisher.say(publish('a', 'x'));
    await turns(2);
    assert.deepEqual([payloads(bad), payloads(good)], [[], ['x']]);
    assert.ok(await isServed(bad));
    assert.equal(it.failures.length, 1);
  });

  it('buffers no more than maxHeldBytes of a connection while it decides', async () => {
    await using it = await startTestBed({
      maxHeldBytes: 10_000,
      maxPacketSize: 10_000,
      hooks: { authorizePublish: ({ message }) => (message.topic === 'bad' ? new Promise(() => {}) : true) }
    });
    const other = await client(it.broker);
    const peer = await client(it.broker);
    const flood = Buffer.alloc(200_000);
    for (let at = 0; at < flood.length; at += 2) flood[at] = 0xc0;
    peer.say(publish('bad', 'x', 1, 1));
    for (let at = 0; at < flood.length; at += 1_000) peer.say(flood.subarray(at, at + 1_000));
    await turns(3);
    assert.ok(peer.isClosed || peer.wire.readableLength > 150_000, 'the connection is closed, or bytes are unread');
    assert.ok(await isServed(other));
  });
});

describe('A listener that throws', () => {
  for (const isAsync of [false, true]) {
    it(`disturbs nothing in any event${isAsync ? ', as a promise' : ''}`, async (context) => {
      context.mock.method(process, 'emitWarning', () => {});
      await using it = await startTestBed({ maxInflight: 1, maxMqueueLen: 1 });
      const { broker, pass } = it;
      const asked = new Set<string>();
      for (const name of EVENT_NAMES) {
        broker.on(name, () => {
          asked.add(name);
          if (isAsync) return Promise.reject(new Error(`listener of ${name} broke`));
          throw new Error(`listener of ${name} broke`);
        });
      }
      await everything(it);
      (await client(broker)).say({ cmd: 'pingreq' });
      const { events } = engineOf(broker).services; // there is no store that could fail here, and no bridge
      events.emit('bridge.connected', { bridge: 'a', sessionPresent: false });
      events.emit('bridge.disconnected', { bridge: 'a', error: undefined });
      events.emit('rule.disconnected', { rule: 'a', reason: 'its resource is gone' });
      await broker.rules.create({ sql: 'SELECT * FROM "inspected"', actions: ['inspect'] });
      await broker.publish('inspected', 'x');
      await broker.streams.create('CREATE STREAM logged () WITH (DATASOURCE="logged", FORMAT="JSON")');
      const streamRule = { id: 'a', sql: 'SELECT * FROM logged', actions: [{ log: { unknown: 1 } }] };
      await broker.streams.rules.create(streamRule);
      await broker.publish('logged', '{"a": 1}');
      await broker.streams.stop();
      await broker.streams.start();
      const rejected = { client: undefined, address: '192.0.2.1', reason: 'malformed_packet', reasonCode: 0x81 };
      events.emit('client.rejected', { ...rejected, why: 'the packet is malformed' });
      events.emit('store.upgraded', { count: 1, text: 'a' });
      events.emit('store.failed', { error: new Error('full') });
      events.emit('store.recovered', {});
      broker.alarms.raise({ id: 'a' });
      broker.alarms.clear('a');
      await broker.access.banned.create({ kind: 'clientId', who: 'nobody' });
      await broker.configuration.set('maxInflight', 2);
      await broker.access.usernames.create('ann', 'password');
      await broker.access.create({ name: 'rules', authorize: () => true, reload: () => {} });
      await broker.access.reload('rules');
      const listener = { name: 'x', open: async () => {}, close: async () => {} } as never;
      broker.attach(listener);
      broker.detach(listener);
      const exposure = { host: '0.0.0.0', zone: 'external' };
      broker.attach({ name: 'exposed', exposure, open: async () => {}, close: async () => {} } as never);
      await pass(10);
      await broker.stop();
      await broker.start();
      const missing = EVENT_NAMES.filter((name) => !asked.has(name));
      assert.deepEqual(missing, [], 'each of them was called');
      assert.ok(await isServed(await client(broker)));
    });
  }

  it('disturbs nothing as an inspector of actors', async () => {
    await using it = await startTestBed();
    it.broker.inspect(() => {
      throw new Error('inspector broke');
    });
    const publisher = await client(it.broker);
    const subscriber = await client(it.broker, { clientId: 'c', properties: { sessionExpiryInterval: 10 } });
    subscriber.say(subscribe(1, 0, 'a'));
    publisher.say(publish('a', 'x'));
    await turns(2);
    assert.deepEqual(payloads(subscriber), ['x']);
    subscriber.wire.leave();
    await it.pass(0);
    await it.pass(11_000);
    assert.ok(!it.broker.sessions.has('c'));
    assert.ok(it.failures.every(({ error }) => error.message === 'inspector broke'));
    assert.ok(it.failures.length > 0, 'the error is reported');
  });

  it('disturbs nothing as a handler of the app, or when it disconnects clients', async () => {
    await using it = await startTestBed();
    const { broker, failures } = it;
    broker.subscribe('a', () => {
      throw new Error('handler broke');
    });
    const [first, second, publisher] = [
      await client(broker, { clientId: 'first' }),
      await client(broker, { clientId: 'second' }),
      await client(broker, { clientId: 'publisher' })
    ];
    for (const peer of [first, second]) peer.say(subscribe(1, 1, 'a'));
    await turns(2);
    for (const peer of [first, second]) peer.take();
    broker.on('message.delivered', ({ client: { clientId } }) => {
      if (clientId === 'first') broker.sessions.get('first').kick();
    });
    broker.on('message.publish', ({ message }) => {
      if (message.payload.toString() === 'last') broker.sessions.get('publisher').kick();
    });
    publisher.say(publish('a', 'x', 1, 1), publish('a', 'last', 1, 2), publish('a', 'too late', 1, 3));
    await turns(3);
    assert.deepEqual(payloads(second), ['x', 'last']);
    assert.ok(first.isClosed && publisher.isClosed);
    assert.deepEqual(
      failures.map(({ error }) => error.message),
      ['handler broke', 'handler broke']
    );
    assert.ok(await isServed(second));
  });
});

/** Causes every event. */
async function everything({ broker, pass }: Bed): Promise<void> {
  const options = { clientId: 'same', clean: false, properties: { sessionExpiryInterval: 5, receiveMaximum: 1 } };
  const first = await client(broker, options);
  first.say(subscribe(1, 1, 'a'), publish('a', '1', 1, 1), publish('a', '2', 1, 2), publish('a', '3', 1, 3));
  first.say(publish('nobody', 'x'));
  await turns(2);
  for (const packet of first.take() as Packet[])
    if (packet.cmd === 'publish') first.say({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
  await turns(2);
  const second = await client(broker, options); // takes over
  second.say({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['a'] });
  await turns(2);
  second.wire.leave();
  await turns(2);
  const third = await client(broker, { ...options, clean: true }); // discards
  await turns(2);
  third.wire.leave();
  await pass(6_000); // expires
}
