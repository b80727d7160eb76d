import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import { encode } from '../../lib/packets/encode.ts';
import type { Packet } from '../../lib/packets/types.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import type { Store } from '../../lib/store/store.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { ack, summarize } from '../support/flows.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish, sendAll, startBroker, subscribe, turns, unsubscribe } from '../support/wire.ts';
import { FaultyStore } from './faulty-store.ts';

/** A broker whose commits take as long as a test requires while its time continues. */
async function stage(options: BrokerOptions = {}): Promise<{
  broker: Broker;
  clock: ManualClock;
  /**
   * Defers commits from now on.
   * @returns a function that releases them
   */
  hold(): () => Promise<void>;
  /** Lets time pass in steps of a second. */
  pass(seconds: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const inner = memoryStore();
  let gate: Promise<void> | undefined;
  let letGo = () => {};
  const store: Store = {
    name: 'slow',
    open: () => inner.open(),
    close: () => inner.close(),
    read: (from, to, limit) => inner.read(from, to, limit),
    commit: async (batch) => {
      await gate;
      await inner.commit(batch);
    }
  };
  const clock = new ManualClock();
  const broker = await startBroker({ store, clock, ...options });
  broker.on('error', () => {}); // warnings about slow commits
  return {
    broker,
    clock,
    hold: () => {
      gate = new Promise((resolve) => (letGo = resolve));
      return async () => {
        gate = undefined;
        letGo();
        await turns();
      };
    },
    pass: async (seconds) => {
      for (let left = seconds; left > 0; left--) {
        clock.advance(1000);
        await turns(5);
      }
    },
    [Symbol.asyncDispose]: async () => {
      gate = undefined;
      letGo();
      await broker.stop();
    }
  };
}

describe('retryInterval with persisted sessions', () => {
  const subscriber = { clientId: 's', version: 4, clean: false } as const;

  it('does not resend a QoS 2 message that waits for its commit, so it is delivered once', async () => {
    await using it = await stage({ retryInterval: '2s' });
    const client = await rawClient(it.broker, subscriber);
    await granted(client, 1, { topic: 't', qos: 2 });
    const go = it.hold();
    void it.broker.publish('t', 'x', { qos: 2 });
    await it.pass(11);
    await client.nothing();
    await go();
    assert.deepEqual(summarize(await client.rest()), ['publish 1 q2 t=x']);
    await it.pass(5);
    assert.equal(summarize(await client.rest())[0], 'publish 1 q2 dup t=x');
    client.send(ack('pubrec', 1));
    await turns();
    assert.deepEqual(summarize(await client.rest()), ['pubrel 1']);
    client.send(ack('pubcomp', 1));
    await it.pass(5);
    await client.nothing();
  });

  it('does not resend a PUBREL whose PUBREC waits for its commit', async () => {
    await using it = await stage({ retryInterval: '2s' });
    const client = await rawClient(it.broker, subscriber);
    await granted(client, 1, { topic: 't', qos: 2 });
    await it.broker.publish('t', 'x', { qos: 2 });
    await client.next('publish');
    const go = it.hold();
    client.send(ack('pubrec', 1));
    await it.pass(11);
    await client.nothing();
    await go();
    assert.deepEqual(summarize(await client.rest()), ['pubrel 1']);
    await it.pass(5);
    assert.equal(summarize(await client.rest())[0], 'pubrel 1');
  });

  it('does not resend a message that waits for the commit of its publisher, even to a session that is not persisted', async () => {
    await using it = await stage({ retryInterval: '2s' });
    const client = await rawClient(it.broker, { version: 4 });
    await granted(client, 1, { topic: 't', qos: 1 });
    const writer = await rawClient(it.broker, { clientId: 'w', version: 4, clean: false });
    const go = it.hold();
    writer.send(publish('t', 'x', { qos: 2, messageId: 7 }));
    await it.pass(11);
    await client.nothing();
    await go();
    assert.deepEqual(summarize(await client.rest()), ['publish 1 q1 t=x']);
    client.send(ack('puback', 1));
    await turns();
    await it.pass(5);
    await client.nothing();
  });
});

describe('The connection of a receiver', () => {
  it('drops and counts the QoS 0 messages that wait for the commit of their publisher when it closes', async () => {
    await using it = await stage();
    const drops: string[] = [];
    it.broker.on('message.dropped', ({ message, reason, client }) => {
      drops.push(`${client?.clientId} ${message.topic} ${reason}`);
    });
    const reader = await rawClient(it.broker, { clientId: 'r' });
    await granted(reader, 1, { topic: 't', qos: 0 });
    const writer = await rawClient(it.broker, { clientId: 'w', version: 4, clean: false });
    const go = it.hold();
    writer.send(publish('t', 'x', { qos: 2, messageId: 7 }));
    await turns();
    await reader.nothing();
    reader.stream.destroy();
    await turns();
    assert.deepEqual(drops, ['r t qos0_msg']);
    assert.equal(it.broker.metrics.counter('delivery.dropped.qos0_msg'), 1);
    await go();
    assert.deepEqual(summarize(await writer.rest()), ['pubrec 7']);
    assert.equal(drops.length, 1);
  });

  it('drops only the QoS 0 messages that were not sent when a listener closes it between two of them', async () => {
    await using it = await stage();
    const events: string[] = [];
    it.broker.on('message.dropped', ({ message, reason }) => events.push(`${message.payload} ${reason}`));
    it.broker.on('message.delivered', ({ message }) => {
      events.push(`${message.payload} delivered`);
      if (String(message.payload) === 'x2') void it.broker.sessions.kick('r');
    });
    const reader = await rawClient(it.broker, { clientId: 'r' });
    await granted(reader, 1, { topic: 't', qos: 0 });
    const writer = await rawClient(it.broker, { clientId: 'w', version: 4, clean: false });
    const go = it.hold();
    for (let n = 1; n <= 4; n++) writer.send(publish('t', `x${n}`, { qos: 2, messageId: n }));
    await turns();
    await go();
    await turns();
    assert.deepEqual(events, ['x1 delivered', 'x2 delivered', 'x3 qos0_msg', 'x4 qos0_msg']);
    assert.equal(it.broker.metrics.counter('delivery.dropped.qos0_msg'), 2);
  });
});

describe('Answers that wait for a commit', () => {
  const client = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 3_600 } } as const;
  const floods: { what: string; answer: Packet['cmd']; packet(id: number): Packet; most: number; count: number }[] = [
    { what: 'PUBREL', answer: 'pubcomp', packet: (id) => ack('pubrel', id), most: 10_000, count: 40_000 },
    {
      what: 'repeated PUBLISH of QoS 2',
      answer: 'pubrec',
      packet: () => publish('t', '', { qos: 2, messageId: 1, dup: true }),
      most: 10_000,
      count: 40_000
    },
    { what: 'SUBSCRIBE', answer: 'suback', packet: (id) => subscribe(id, 'a'), most: 1_100, count: 5_000 },
    { what: 'UNSUBSCRIBE', answer: 'unsuback', packet: (id) => unsubscribe(id, 'a'), most: 1_100, count: 5_000 }
  ];
  for (const { what, answer, packet, most, count } of floods)
    it(`limits waiting answers: a client that continues with ${what} is not read until they have been sent`, async () => {
      await using it = await stage();
      const flood = await rawClient(it.broker, client);
      flood.send(publish('t', '', { qos: 2, messageId: 1 }));
      await flood.next('pubrec');
      const go = it.hold();
      void it.broker.sessions.get('c').subscribe('x');
      await turns();
      for (let id = 1; id <= count; id += 1_000) {
        flood.send(...Array.from({ length: 1_000 }, (_, n) => packet(id + n)));
        await turns(60);
      }
      const { recvPkt } = it.broker.sessions.get('c').counters();
      assert.ok(recvPkt > 1_000 && recvPkt < most, `${recvPkt} packets read`);
      await go();
      await turns(500);
      assert.equal(flood.received.filter(({ cmd }) => cmd === answer).length - (answer === 'pubrec' ? 1 : 0), count);
    });
});

it('ends the connection of a new client after slowConsumerTimeout if the commit of its CONNECT does not end', async () => {
  await using it = await stage({ slowConsumerTimeout: '20s' });
  const reasons: string[] = [];
  it.broker.on('client.disconnected', ({ reason }) => reasons.push(reason));
  it.hold();
  const stream = it.broker.stream();
  stream.resume();
  stream.write(
    encode({ cmd: 'connect', protocolVersion: 4, bridge: false, clientId: 'c', clean: false, keepalive: 0 }, 4)
  );
  await it.pass(15);
  assert.deepEqual([stream.destroyed, reasons], [false, []]);
  await it.pass(10);
  assert.deepEqual(reasons, ['slow_consumer']);
  stream.destroy();
});

it('limits the QoS 0 messages queued behind waiting answers, as for a client that does not read', async () => {
  await using it = await stage({ maxMqueueLen: 500 });
  const client = await rawClient(it.broker, { clientId: 's' });
  await granted(client, 1, { topic: 't', qos: 0 });
  const writer = await rawClient(it.broker, {
    clientId: 'w',
    clean: false,
    properties: { sessionExpiryInterval: 3_600 }
  });
  const go = it.hold();
  writer.send(publish('t', '0', { qos: 2, messageId: 1 }));
  await turns();
  for (let n = 1; n < 5_000; n++) void it.broker.publish('t', `${n}`);
  assert.equal(it.broker.sessions.get('s').counters().mqueueLen, 500);
  await client.nothing();
  await go();
  const got = await payloads(client);
  const first = got.length - 500;
  assert.ok(first > 0 && first < 2_500, `${first} before the queue`);
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `${from + n}`);
  assert.deepEqual(got, [...numbers(0, first), ...numbers(4_500, 5_000)]);
});

describe('Acknowledgements of one type, when a commit fails', () => {
  const writer = { clientId: 'w', clean: false, properties: { sessionExpiryInterval: 3_600 } } as const;

  /** Starts a broker on a working store, with an offline session that is subscribed to `kept`, and a client whose PUBREL is due. */
  async function failing(): Promise<{ kit: TestBroker; store: FaultyStore; client: RawClient }> {
    const store = new FaultyStore();
    const kit = await createTestBroker({ store, leakCheck: false });
    kit.broker.on('error', () => {});
    const reader = await rawClient(kit.broker, { ...writer, clientId: 'reader' });
    await granted(reader, 1, { topic: 'kept', qos: 2 });
    reader.cut();
    const client = await rawClient(kit.broker, writer);
    client.send(publish('nobody', 'x', { qos: 2, messageId: 1 }));
    await client.next('pubrec');
    await kit.clock.advance('1s');
    return { kit, store, client };
  }

  for (const [qos, cmd] of [
    [1, 'puback'],
    [2, 'pubrec']
  ] as const) {
    it(`sends acknowledgements in the order of their messages of QoS ${qos}, including refusals`, async () => {
      const { kit, store, client } = await failing();
      await using _ = kit;
      const fail = store.failLater();
      // A message that was persisted before and has been sent again, or one that is not persisted.
      const unkept =
        qos === 1 ? publish('nobody', '', { qos, messageId: 3 }) : publish('nobody', '', { qos, messageId: 1 });
      sendAll(client, publish('kept', '', { qos, messageId: 2 }), unkept, publish('kept', '', { qos, messageId: 4 }));
      await client.nothing();
      fail();
      await turns();
      const got = summarize(await client.rest());
      await kit.clock.advance('20s');
      const accepted = qos === 1 ? 'puback 3 0x10' : 'pubrec 1';
      assert.deepEqual(got, [`${cmd} 2 0x97`, accepted, `${cmd} 4 0x97`]);
    });

    it(`sends acknowledgements of QoS ${qos} before a PUBCOMP that waits for the store, and lets no refusal overtake them`, async () => {
      const { kit, store, client } = await failing();
      await using _ = kit;
      client.send(publish('nobody', 'x', { qos: 2, messageId: 9 }));
      await client.next('pubrec');
      await kit.clock.advance('1s');
      const fail = store.failLater();
      client.send(ack('pubrel', 9));
      await client.nothing();
      fail();
      store.fault = 'rejects';
      await turns();
      client.send(
        qos === 1
          ? publish('nobody', '', { qos, messageId: 3 })
          : publish('nobody', '', { qos, messageId: 1, dup: true }),
        publish('kept', '', { qos, messageId: 4 })
      );
      const got = summarize(await client.rest());
      store.fault = undefined;
      await kit.clock.advance('20s');
      assert.deepEqual(got, [qos === 1 ? 'puback 3 0x10' : 'pubrec 1', `${cmd} 4 0x97`]);
      assert.deepEqual(summarize(await client.rest()), ['pubcomp 9']);
    });
  }
});
