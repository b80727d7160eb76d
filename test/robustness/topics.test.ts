import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { encode } from '../../lib/packets/encode.ts';
import { type CachedRoute, RouteCache } from '../../lib/routing/route-cache.ts';
import { FilterIndex } from '../../lib/topics/trie.ts';
import { turns } from '../fuzz/wire.ts';
import { sized } from '../support/samples.ts';
import { client, isServed, kinds, memory, payloads, publish, startTestBed, subscribe } from './support.ts';

const SLASHES = '/'.repeat(65_535);

/** Counts the levels that topics are split into while a function runs, as a measure of the work of a lookup. */
function levelsCut(run: () => void): number {
  const { slice } = String.prototype;
  let count = 0;
  String.prototype.slice = function (...range) {
    count++;
    return slice.apply(this, range);
  };
  try {
    run();
  } finally {
    String.prototype.slice = slice;
  }
  return count;
}

describe('A topic of 65,535 slashes', () => {
  it('refuses a topic of 65,535 slashes above maxTopicLevels, in PUBLISH, SUBSCRIBE and wills', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const publisher = await client(broker);
    publisher.say(publish(SLASHES, 'x'));
    await turns(2);
    const [told] = publisher.take();
    assert.ok(told.cmd === 'disconnect' && told.reasonCode === 0x90);
    const subscriber = await client(broker);
    subscriber.say(subscribe(1, 0, SLASHES, `${'+/'.repeat(32_767)}#`));
    await turns(2);
    const [answer] = subscriber.take();
    assert.deepEqual(answer.cmd === 'suback' && answer.granted, [0x8f, 0x8f]);
  });

  it('costs no more than the depth of the filters', () => {
    const index = new FilterIndex<{ id: number }>();
    for (let id = 0; id < 10_000; id++) index.add(`+/${id}/+/#`, { id });
    const value = { id: -1 };
    index.add('+/+/#', value);
    const cut = levelsCut(() => assert.equal(index.match(SLASHES, []), 1));
    assert.ok(cut <= 4, `split into ${cut} levels`);
    // The most work for a trie: both branches at each of 16 levels.
    const forks = new FilterIndex<{ id: number }>();
    for (let id = 0; id < 4_096; id++) {
      const levels = Array.from({ length: 12 }, (_, at) => ((id >> at) & 1 ? 'a' : '+'));
      forks.add(levels.join('/'), { id });
    }
    const found: { id: number }[] = [];
    const most = levelsCut(() => forks.match('a/'.repeat(6_000), found));
    assert.ok(most <= 13, `split into ${most} levels`);
    assert.equal(found.length, 0);
  });

  it('routes a topic of 65,535 slashes if it is allowed, and does not store it in the route cache', async () => {
    await using it = await startTestBed({ maxTopicLevels: 0 });
    const { broker } = it;
    const subscriber = await client(broker);
    subscriber.say(subscribe(1, 0, '+/+/#'));
    const publisher = await client(broker);
    const before = memory();
    let heard = 0;
    const topics = sized(120, 300);
    for (let count = 0; count < topics; count++) {
      const topic = `${count}${SLASHES}`.slice(0, 65_535);
      publisher.say(publish(topic, String(count)), publish(topic, String(count)));
      await turns(1);
      heard += payloads(subscriber).length;
      subscriber.received.length = 0;
    }
    assert.equal(heard, 2 * topics);
    assert.ok(memory() - before < topics * 28_000, `${memory() - before} bytes`);
  });
});

describe('10,000 filters with wildcards', () => {
  it('delivers one copy of a message for 10,000 filters of one client, in one lookup', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const greedy = await client(broker, { version: 4, clientId: 'greedy' });
    for (let id = 0; id < 10; id++) {
      const filters = Array.from({ length: 1_000 }, (_, at) => {
        const number = id * 1_000 + at;
        return Array.from({ length: 14 }, (_, bit) => ((number >> bit) & 1 ? 'a' : '+')).join('/');
      });
      greedy.say(subscribe(id + 1, 1, ...filters.map((filter) => `${filter}/#`)));
      await turns(1);
    }
    greedy.take();
    const publisher = await client(broker);
    const topic = Array.from({ length: 14 }, () => 'a').join('/');
    const frame = encode(publish(topic, 'x'), 5);
    let looked = 0;
    const match = FilterIndex.prototype.match;
    FilterIndex.prototype.match = function (this: FilterIndex<object>, ...given: Parameters<typeof match>) {
      looked++;
      return match.apply(this, given as never);
    } as typeof match;
    try {
      for (let count = 0; count < 200; count++) publisher.say(frame);
      await turns(2);
    } finally {
      FilterIndex.prototype.match = match;
    }
    assert.equal(payloads(greedy).length, 200);
    assert.ok(looked <= 3, `${looked} lookups for 200 messages of one topic`);
    assert.ok(await isServed(publisher));
  });

  it('keeps the route cache within its limit with 10,000 filters and topics that are published once', async () => {
    const caches = new Set<RouteCache<CachedRoute>>();
    const { set } = RouteCache.prototype;
    RouteCache.prototype.set = function (...given) {
      caches.add(this);
      return set.apply(this, given);
    };
    after(() => {
      RouteCache.prototype.set = set;
    });
    await using it = await startTestBed({ routeCacheTargets: 1_000 });
    const { broker } = it;
    const subscriber = await client(broker);
    subscriber.say(subscribe(1, 0, '+/+/#'));
    const publisher = await client(broker);
    const sent = 5_000;
    for (let count = 0; count < sent; count++) {
      const frame = encode(publish(`never/${count}/again`, ''), 5);
      publisher.say(frame, frame, frame); // often enough to be cached
      if (count % 100 === 0) await turns(1);
    }
    await turns(2);
    assert.equal(payloads(subscriber).length, sent * 3);
    assert.ok(caches.size > 0);
    for (const { weight } of caches) assert.ok(weight <= 1_000, `weight ${weight}`);
  });
});

describe('Names that contain wildcards', () => {
  it('refuses a mount point with names that contain wildcards', async () => {
    await using it = await startTestBed({ mountpoint: 'home/%c/%u/' });
    for (const [clientId, username, code] of [
      ['#', 'u', 0x85],
      ['a+b', 'u', 0x85],
      ['c', '+', 0x86],
      ['c', '#', 0x86]
    ] as const) {
      const peer = await client(it.broker, { clientId, username });
      const [answer] = peer.received;
      assert.ok(answer.cmd === 'connack' && answer.reasonCode === code, `${clientId} ${username}`);
    }
    assert.deepEqual(it.failures, []);
  });

  it('accepts wildcards in client ids, user names and $SYS topics', async () => {
    await using it = await startTestBed();
    const observer = await client(it.broker);
    observer.say(subscribe(1, 0, '$SYS/brokers/+/clients/+/connected'));
    await turns(2);
    observer.take();
    for (const clientId of ['#', '+', 'a/#', '$SYS/#', '$share/g/#']) {
      const peer = await client(it.broker, { clientId, username: '#' });
      assert.ok(await isServed(peer), clientId);
    }
    await turns(2);
    assert.ok(kinds(observer).every((cmd) => cmd === 'publish'));
    assert.deepEqual(it.failures, []);
  });

  it('refuses a name that makes a topic longer than MQTT allows', async () => {
    await using it = await startTestBed({ mountpoint: 'a'.repeat(100), maxTopicLevels: 0 });
    const long = 't'.repeat(65_500);
    const observer = await client(it.broker);
    for (const qos of [0, 1] as const) {
      const peer = await client(it.broker);
      peer.say(publish(long, 'x', qos, qos > 0 ? 1 : undefined));
      await turns(2);
      const last = peer.take().at(-1);
      assert.ok(last?.cmd === 'disconnect' && last.reasonCode === 0x90, JSON.stringify(last));
    }
    const subscriber = await client(it.broker);
    subscriber.say(subscribe(1, 0, long));
    await turns(2);
    const [answer] = subscriber.take();
    assert.deepEqual(answer.cmd === 'suback' && answer.granted, [0x8f]);
    const will = { topic: long, payload: Buffer.from('gone'), qos: 0 as const, retain: false };
    const willing = await client(it.broker, { clientId: 'w', will }); // a longer id would exceed maxConnectSize
    const [welcome] = willing.received;
    assert.ok(welcome.cmd === 'connack' && welcome.reasonCode === 0x90, JSON.stringify(welcome));
    assert.ok(await isServed(observer));
    assert.deepEqual(it.failures, []);
  });
});
