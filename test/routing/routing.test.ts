import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import type { Route } from '../../lib/routing/route.ts';
import { type CachedRoute, RouteCache } from '../../lib/routing/route-cache.ts';
import { Routing } from '../../lib/routing/routing.ts';
import { type Subscriber, Subscription } from '../../lib/routing/subscription.ts';
import { FilterIndex } from '../../lib/topics/trie.ts';
import { rawClient } from '../support/raw-client.ts';
import { nothing, publish, sendAll, startBroker } from '../support/wire.ts';

const SETTINGS = { sharedSubscriptionStrategy: 'random', sharedDispatchAckEnabled: false } as const;

function subscription(filter: string): Subscription {
  const subscriber = { clientId: '', mountpoint: '' } as unknown as Subscriber;
  return new Subscription(subscriber, filter, 0, false, false, 0, undefined);
}

/** Creates a routing table in which each topic with two levels has `reach` subscribers. */
function setUp(maxWeight: number, reach: number) {
  const routing = new Routing(SETTINGS, maxWeight);
  for (let count = 0; count < reach; count++) routing.add(subscription('+/#'));
  const resolve = (topic: string): Route => {
    const buf = Buffer.from(`..${topic}..`);
    return routing.resolve(buf, 2, buf.length - 2);
  };
  return { routing, resolve };
}

function weightOf(routes: Iterable<Route>): number {
  let weight = 0;
  for (const { targets, groups } of routes) weight += targets.length + groups.length;
  return weight;
}

describe('Routing', () => {
  it('limits the number of targets in all cached routes, even if callers still hold them', () => {
    const { routing, resolve } = setUp(1_000, 9);
    const routes = new Set<Route>();
    for (let at = 0; at < 500; at++) {
      resolve(`t/${at}`);
      routes.add(resolve(`t/${at}`)).add(resolve(`t/${at}`));
      routes.add(routing.of(`t/${at}`));
    }
    assert.equal(routes.size, 500);
    assert.ok(weightOf(routes) <= 1_000, `${weightOf(routes)} targets are in memory`);
    assert.equal(resolve('t/0').targets.length, 9, 'a topic that has left the cache is found again');
  });

  it('retains no route that has left the cache', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const { routing, resolve } = setUp(1_000, 9);
    const routes: WeakRef<Route>[] = [];
    for (let at = 0; at < 500; at++) {
      resolve(`t/${at}`);
      routes.push(new WeakRef(resolve(`t/${at}`)));
      if (at % 2 === 0) routing.changed(`t/${at}`);
    }
    await setImmediate();
    collect();
    const alive = routes.filter((route) => route.deref() !== undefined).length;
    assert.ok(alive > 0 && alive <= 100, `${alive} routes are in memory`);
  });

  it('distinguishes a fresh route from an outdated one, whether it is cached or not', () => {
    const { routing, resolve } = setUp(1_000, 1);
    const once = resolve('a/once');
    resolve('a/kept');
    const kept = resolve('a/kept');
    const fresh = () => [routing.isFresh(once), routing.isFresh(kept)];
    assert.deepEqual(fresh(), [true, true]);
    routing.add(subscription('a/other'));
    assert.deepEqual(fresh(), [false, true], 'only a cached route is known to be unaffected');
    assert.equal(routing.freshened(once).targets.length, 1);
    routing.add(subscription('a/kept'));
    assert.deepEqual(fresh(), [false, false]);
    assert.equal(routing.freshened(kept).targets.length, 2);
    const again = resolve('a/kept');
    assert.equal(routing.isFresh(again), true);
    routing.add(subscription('#'));
    assert.equal(routing.isFresh(again), false);
    assert.equal(resolve('a/kept').targets.length, 3);
  });

  it('finds by its bytes a route that was first looked up by its name', () => {
    const { routing, resolve } = setUp(1_000, 1);
    routing.of('a/é');
    const named = routing.of('a/é');
    assert.equal(named.bytes.length, 0);
    resolve('a/é');
    assert.equal(resolve('a/é'), named);
    assert.deepEqual(named.bytes, Buffer.from('a/é'));
    assert.equal(named.bytes.buffer.byteLength, 4, 'the bytes have a separate buffer');
  });
});

describe('A topic that is published once', () => {
  const { match } = FilterIndex.prototype;
  const { set } = RouteCache.prototype;
  let matched: string[] = [];
  let cached: string[] = [];
  beforeEach(() => {
    matched = [];
    cached = [];
    FilterIndex.prototype.match = function (this: FilterIndex<object>, topic: string, into: object[]) {
      matched.push(topic);
      return match.call(this, topic, into as never);
    } as typeof match;
    RouteCache.prototype.set = function (topic: string, route: CachedRoute) {
      cached.push(topic);
      return set.call(this, topic, route);
    };
  });
  afterEach(() => {
    FilterIndex.prototype.match = match;
    RouteCache.prototype.set = set;
  });

  const TOPICS = ['a/1', 'a/2', 'a/3'];
  /** Publishes from a client to three topics, and returns the topics that the broker looks up. */
  const cases: Record<string, [BrokerOptions, (topic: string) => string]> = {
    'on the fast path': [{}, (topic) => topic],
    'with a publish hook': [{ hooks: { publish: () => undefined } }, (topic) => topic],
    'with a publish hook that takes its time': [{ hooks: { publish: async () => undefined } }, (topic) => topic],
    'with a publish hook that changes the payload': [
      { hooks: { publish: () => ({ payload: 'changed' }) as never } },
      (topic) => topic
    ],
    'with an authorizePublish hook': [{ hooks: { authorizePublish: async () => true } }, (topic) => topic],
    'with rewrite rules': [{ rewrite: ['a/# ^a/(.*)$ b/$1'] }, (topic) => topic.replace('a', 'b')],
    'with rewrite rules that leave it': [{ rewrite: ['c/# ^c/(.*)$ b/$1'] }, (topic) => topic],
    'under a mount point': [{ mountpoint: 'm/' }, (topic) => `m/${topic}`]
  };
  for (const [name, [options, routed]] of Object.entries(cases)) {
    it(`looks up ${name} once, and caches nothing`, async () => {
      await using broker = await startBroker({ sysInterval: 0, ...options });
      broker.on('message.publish', () => undefined);
      const client = await rawClient(broker);
      matched = [];
      sendAll(client, ...TOPICS.map((topic) => publish(topic)));
      await nothing(client);
      assert.deepEqual(matched, TOPICS.map(routed));
      assert.deepEqual(cached, []);
    });
  }

  it('looks up a topic that the app publishes once, and caches it at the second time', async () => {
    await using broker = await startBroker({ sysInterval: 0 });
    for (const topic of TOPICS) await broker.publish(topic, 'x');
    assert.deepEqual(matched, TOPICS);
    assert.deepEqual(cached, []);
    for (let count = 0; count < 3; count++) await broker.publish('a/1', 'x');
    assert.deepEqual(matched, [...TOPICS, 'a/1']);
    assert.deepEqual(cached, ['a/1']);
  });

  it('delivers it to clients that a listener or a hook has subscribed in the meantime', async () => {
    for (const isCold of [true, false]) {
      await using broker = await startBroker({ sysInterval: 0 });
      const seen: string[] = [];
      if (!isCold) for (let count = 0; count < 3; count++) await broker.publish('a/1', 'before');
      broker.once('message.publish', () => {
        broker.subscribe('a/1', ({ payload }) => seen.push(`listener ${payload}`));
      });
      const client = await rawClient(broker);
      client.send(publish('a/1', 'x'));
      await nothing(client);
      const remove = broker.hook('publish', async () => {
        broker.subscribe('a/+', ({ payload }) => seen.push(`hook ${payload}`));
      });
      client.send(publish('a/1', 'y'));
      await nothing(client);
      remove();
      await broker.publish('a/1', 'z');
      assert.deepEqual(seen.sort(), ['hook y', 'hook z', 'listener x', 'listener y', 'listener z']);
    }
  });
});

describe('A topic that is published repeatedly', () => {
  it('skips reading, rewriting and look-up each time under a mount point with rewrite rules', async () => {
    await using broker = await startBroker({ mountpoint: 'm/', rewrite: ['a/# ^a/(.*)$ b/$1'] });
    const seen: string[] = [];
    broker.subscribe('m/#', ({ topic, payload }) => seen.push(`${topic} ${payload}`));
    const client = await rawClient(broker);
    const { get } = RouteCache.prototype;
    let asked = 0;
    RouteCache.prototype.get = function (topic: string) {
      asked++;
      return get.call(this, topic);
    };
    try {
      sendAll(client, ...['1', '2', '3', '4'].map((payload) => publish('a/x', payload)), publish('c', '5'));
      sendAll(client, publish('a/x', '6'));
      await nothing(client);
    } finally {
      RouteCache.prototype.get = get;
    }
    assert.deepEqual(seen, ['m/b/x 1', 'm/b/x 2', 'm/b/x 3', 'm/b/x 4', 'm/c 5', 'm/b/x 6']);
    assert.ok(asked <= 4, `${asked} lookups by name`);
  });
});
