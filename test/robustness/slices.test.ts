import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { encode } from '../../lib/packets/encode.ts';
import { RetainedMessages } from '../../lib/retained/retained-messages.ts';
import { RetainedStore } from '../../lib/retained/retained-store.ts';
import { type Peer, turns } from '../fuzz/wire.ts';
import { sized } from '../support/samples.ts';
import { client, memory, publish, startTestBed, subscribe } from './support.ts';

/** Lets turns pass until `isDone`, and checks that another client is answered in each of them. */
async function watched(other: Peer, isDone: () => boolean, mostTurns: number): Promise<number> {
  other.take();
  for (let turn = 1; turn <= mostTurns; turn++) {
    other.say({ cmd: 'pingreq' });
    await turns(2); // read in one turn, written in the next
    assert.deepEqual(
      other.take().map(({ cmd }) => cmd),
      ['pingresp'],
      `turn ${turn}`
    );
    if (isDone()) return turn;
  }
  assert.fail(`not done after ${mostTurns} turns`);
}

async function retain(broker: Broker, count: number): Promise<void> {
  for (let at = 0; at < count; at++) void broker.publish(`kept/${at % 1_000}/${at}`, 'x', { retain: true });
  await turns(1);
}

describe('Many retained messages', () => {
  for (const [qos, count] of [
    [0, sized(20_000, 100_000)],
    [1, sized(10_000, 30_000)]
  ] as const) {
    it(`sends many retained messages to one subscriber in slices, QoS ${qos}`, async () => {
      await using it = await startTestBed();
      const { broker } = it;
      for (let at = 0; at < count; at++) void broker.publish(`kept/${at % 1_000}/${at}`, 'x', { retain: true, qos });
      await turns(1);
      const other = await client(broker);
      const subscriber = await client(broker, { properties: { receiveMaximum: 65_535 } });
      subscriber.say(subscribe(1, qos, '#'));
      let received = 0;
      let most = 0;
      const taken = await watched(
        other,
        () => {
          let some = 0;
          for (const packet of subscriber.take()) {
            if (packet.cmd !== 'publish') continue;
            some++;
            if (qos > 0) subscriber.say({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
          }
          subscriber.received.length = 0;
          most = Math.max(most, some);
          received += some;
          return received >= count;
        },
        qos === 0 ? 1_000 : 5_000
      );
      assert.equal(received, count);
      assert.ok(most <= 2_000, `${most} in one turn`);
      assert.ok(taken >= count / 1_000, `all in ${taken} turns`);
    });
  }

  it('sends retained messages in slices of the same size to a subscriber that requests them many times in one chunk', async () => {
    await using it = await startTestBed();
    await retain(it.broker, 5_000);
    const subscriber = await client(it.broker);
    const filters = ['kept', '+'].flatMap((first) => ['#', '+/#', '+/+', '+/+/#'].map((rest) => `${first}/${rest}`));
    subscriber.say(Buffer.concat(filters.map((filter, at) => encode(subscribe(at + 1, 0, filter), 5))));
    const slices: number[] = [];
    let empty = 0; // turns in which messages are only searched
    for (let received = 0; received < 40_000; ) {
      await turns(1);
      const count = subscriber.take().filter(({ cmd }) => cmd === 'publish').length;
      subscriber.received.length = 0;
      empty = count > 0 ? 0 : empty + 1;
      assert.ok(empty < 10, `nothing arrived after ${received}`);
      slices.push(count);
      received += count;
    }
    assert.ok(Math.max(...slices) <= 1_000, `${Math.max(...slices)} in one turn`);
  });

  it('looks up retained messages once for a newer message that must not overtake them, for any number of waiting subscriptions', async (t) => {
    await using it = await startTestBed();
    const { broker } = it;
    await retain(broker, 1_000);
    const publisher = await client(broker);
    const subscriber = await client(broker, { properties: { receiveMaximum: 1 } });
    const filters = Array.from({ length: 50 }, (_, at) => `kept/${at}/#`);
    void broker.publish('kept/0/0', 'old', { retain: true, qos: 1 });
    subscriber.say(subscribe(1, 1, '#', 'kept/#', '+/#', ...filters));
    await turns(3);
    subscriber.take();
    const get = t.mock.method(RetainedMessages.prototype, 'get');
    publisher.say(publish('kept/0/0', 'new', 1, 1));
    assert.equal(get.mock.callCount(), 1);
  });

  it('searches retained messages in slices, each topic once, and lets no newer message overtake them', async (t) => {
    await using it = await startTestBed();
    const { broker } = it;
    const count = sized(12_000, 20_000);
    await retain(broker, count);
    let compared = 0;
    const iterate = RetainedStore.prototype[Symbol.iterator];
    RetainedStore.prototype[Symbol.iterator] = function* (this: RetainedStore<unknown>) {
      for (const entry of iterate.call(this)) {
        compared++;
        yield entry;
      }
    };
    t.after(() => (RetainedStore.prototype[Symbol.iterator] = iterate));
    const other = await client(broker);
    const subscriber = await client(broker);
    subscriber.say(subscribe(1, 0, '#', '+/+/+'));
    const got: [topic: string, payload: string][] = [];
    let turn = 0;
    const isDone = () => {
      assert.ok(compared <= 8_000, `${compared} in a turn`);
      compared = 0;
      if (++turn === 2) {
        void broker.publish('kept/0/0', 'new', { retain: true });
        void broker.publish('kept/1/1', 'new');
      }
      for (const packet of subscriber.take())
        if (packet.cmd === 'publish') got.push([packet.topic, packet.payload.toString()]);
      return got.length >= 2 * count;
    };
    await watched(other, isDone, 1_000);
    const payloads = (name: string) => got.filter(([topic]) => topic === name).map(([, payload]) => payload);
    assert.deepEqual(payloads('kept/0/0'), ['new'], 'it has replaced the retained message');
    assert.deepEqual(payloads('kept/1/1'), ['x', 'x', 'new']);
    assert.equal(new Set(got.map(([topic]) => topic)).size, count);
  });

  it('releases the resources when the subscriber disconnects partway, and continues when it reconnects', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const count = sized(6_000, 20_000);
    for (let at = 0; at < count; at++) void broker.publish(`kept/${at}`, String(at), { retain: true, qos: 1 });
    const options = { version: 4, clientId: 'half', clean: false } as const;
    const first = await client(broker, options);
    first.say(subscribe(1, 1, '#'));
    await turns(3);
    const seen = new Set<string>();
    const read = (peer: Peer, packets = peer.take()) => {
      for (const packet of packets) {
        if (packet.cmd !== 'publish') continue;
        seen.add(packet.payload.toString());
        peer.say({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
      }
    };
    read(first);
    await turns(2);
    first.wire.destroy();
    await turns(2);
    assert.ok(seen.size < 2_000);
    void broker.publish(`kept/${count - 1}`, 'newer', { qos: 1 });
    await turns(1);
    const again = await client(broker, options);
    read(again, again.received);
    for (let turn = 0; turn < 400 && seen.size <= count; turn++) {
      await turns(2);
      read(again);
    }
    assert.equal(seen.size, count + 1, 'every retained message and the newer one');
    const order = [...seen];
    assert.ok(order.indexOf(`${count - 1}`) < order.indexOf('newer'), 'in order');
  });
});

describe('A SUBSCRIBE with very many filters', () => {
  it('uses little memory and delays no client if all filters match the same retained messages', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    await retain(broker, 2_000);
    const other = await client(broker);
    const greedy = await client(broker, { clientId: 'greedy' });
    greedy.wire.listen(false);
    const before = memory();
    // Many times `#`, and then all equivalent filters written with `+`.
    const filters = Array.from({ length: sized(5_000, 20_000) }, () => '#');
    const pairs = sized(400, 1_000);
    for (let at = 0; at < pairs; at++) filters.push(`kept/${at}/#`, `+/${at}/+`);
    greedy.say(subscribe(1, 1, ...filters));
    await watched(other, () => broker.sessions.get('greedy').counters().subscriptions > 2 * pairs, 100);
    for (let turn = 0; turn < 50; turn++) await turns(1);
    assert.ok(memory() - before < 20 * 2 ** 20, `${memory() - before} bytes`);
    void broker.publish('kept/1/1', 'newer');
    await watched(other, () => true, 1);
  });

  it('grants a SUBSCRIBE with very many filters in slices, and removes its subscriptions in slices', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const other = await client(broker);
    const peer = await client(broker, { clientId: 'many' });
    const filters = Array.from({ length: sized(12_000, 50_000) }, (_, at) => `f/${at}/+`);
    const count = () => broker.sessions.get('many').counters().subscriptions;
    const frame = encode(subscribe(1, 0, ...filters), 5);
    peer.say(Buffer.concat([frame, encode({ cmd: 'pingreq' }, 5)]));
    let last = 0;
    await watched(
      other,
      () => {
        assert.ok(count() - last <= 4_000, `${count() - last} at once`);
        last = count();
        return last === filters.length;
      },
      100
    );
    await turns(4);
    assert.deepEqual(
      peer.take().map(({ cmd }) => cmd),
      ['suback', 'pingresp'],
      'later packets wait'
    );
    peer.say({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: filters });
    await watched(
      other,
      () => {
        assert.ok(last - count() <= 4_000, `${last - count()} at once`);
        last = count();
        return last === 0;
      },
      100
    );
    await turns(4);
    const [answer] = peer.take();
    assert.ok(answer.cmd === 'unsuback' && answer.granted.length === filters.length);
    assert.ok(answer.cmd === 'unsuback' && answer.granted.every((code) => code === 0));
  });

  it('abandons a SUBSCRIBE with very many filters partway when its connection ends', async () => {
    await using it = await startTestBed();
    const { broker, failures } = it;
    const filters = Array.from({ length: 50_000 }, (_, at) => `f/${at}/+`);
    const peer = await client(broker);
    peer.say(subscribe(1, 0, ...filters));
    peer.wire.destroy();
    for (let turn = 0; turn < 100; turn++) await turns(1);
    assert.equal(broker.metrics.gauge('subscriptions'), 0);
    assert.equal(engineOf(broker).services.work.count, 0);
    assert.deepEqual(failures, []);
  });
});

describe('Filters that are removed at once', () => {
  it('removes many filters in slices', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const other = await client(broker);
    const peer = await client(broker);
    const packets = sized(2, 10);
    for (let packet = 0; packet < packets; packet++) {
      const filters = Array.from({ length: 10_000 }, (_, at) => `f/${packet}/${at}/+`);
      peer.say(subscribe(packet + 1, 0, ...filters));
      for (let turn = 0; turn < 12; turn++) await turns(1);
    }
    let last = broker.metrics.gauge('subscriptions');
    assert.equal(last, packets * 10_000);
    peer.wire.destroy();
    const taken = await watched(
      other,
      () => {
        const left = broker.metrics.gauge('subscriptions');
        assert.ok(last - left <= 4_000, `${last - left} in one turn`);
        last = left;
        return left === 0;
      },
      300
    );
    assert.ok(taken >= packets * 2.5);
    await turns(1);
    assert.equal(engineOf(broker).services.work.count, 0);
  });

  it('matches no messages with filters that are being removed', async () => {
    await using it = await startTestBed();
    const { broker, failures } = it;
    const peer = await client(broker, { clientId: 'leaving' });
    peer.say(subscribe(1, 1, ...Array.from({ length: 20_000 }, (_, at) => `f/${at}`)));
    for (let turn = 0; turn < 30; turn++) await turns(1);
    const publisher = await client(broker);
    peer.say({ cmd: 'disconnect', reasonCode: 0 });
    await turns(1);
    publisher.say(publish('f/19999', 'x', 1, 1));
    await turns(2);
    const back = await client(broker, { clientId: 'leaving' });
    for (let turn = 0; turn < 40; turn++) await turns(1);
    assert.deepEqual(back.take(), []);
    assert.equal(broker.metrics.gauge('subscriptions'), 0);
    assert.deepEqual(failures, []);
  });
});
