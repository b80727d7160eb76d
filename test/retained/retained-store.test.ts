import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RetainedStore } from '../../lib/retained/retained-store.ts';
import { cpuMs } from '../support/cpu.ts';
import { samples, sized } from '../support/samples.ts';
import { randomFilter, randomName, randomSource, slowMatches } from '../topics/slow-matcher.ts';

function topics(store: RetainedStore<unknown>, filter: string): string[] {
  return store.match(filter).map((entry) => entry.topic);
}

function filled(...names: string[]): RetainedStore<number> {
  const store = new RetainedStore<number>();
  for (const [i, name] of names.entries()) store.put(name, i, 1);
  return store;
}

describe('RetainedStore', () => {
  it('stores one message for each topic, the last one [MQTT-3.3.1-5]', () => {
    const store = new RetainedStore<string>();
    assert.equal(store.put('a/b', 'one', 3), 'stored');
    const first = store.get('a/b')!;
    assert.equal(store.put('a/b', 'two!', 4), 'replaced');
    const second = store.get('a/b')!;
    assert.deepEqual([second.message, second.bytes, second.isLive], ['two!', 4, true]);
    assert.ok(second.seq > first.seq);
    assert.deepEqual([first.message, first.isLive], ['one', false]);
    assert.equal(store.count, 1);
    assert.equal(store.bytes, 4);
    assert.equal(store.delete('a/b'), second);
    assert.equal(second.isLive, false);
    assert.equal(store.delete('a/b'), undefined);
    assert.equal(store.get('a/b'), undefined);
    assert.equal(store.count, 0);
    assert.equal(store.bytes, 0);
  });

  it('returns the oldest message first, and counts a replaced message as new', () => {
    const store = filled('x/1', 'x/2/3', 'x/4', 'x', 'y');
    assert.deepEqual(topics(store, 'x/#'), ['x/1', 'x/2/3', 'x/4', 'x']);
    store.put('x/1', 9, 1);
    store.put('x/2/3', 9, 1);
    assert.deepEqual(topics(store, 'x/#'), ['x/4', 'x', 'x/1', 'x/2/3']);
    assert.deepEqual(topics(store, '#'), ['x/4', 'x', 'y', 'x/1', 'x/2/3']);
    assert.deepEqual(topics(store, 'x/+'), ['x/4', 'x/1']);
    assert.deepEqual(topics(store, 'x'), ['x']);
    assert.deepEqual(topics(store, 'z'), []);
  });

  it('excludes topics with "$" from filters that begin with a wildcard [MQTT-4.7.2-1]', () => {
    const store = filled('$SYS', '$SYS/a', '$x/a/b/c', 'a', 'b/$c', '$SYS/b/c');
    assert.deepEqual(topics(store, '#'), ['a', 'b/$c']);
    assert.deepEqual(topics(store, '+'), ['a']);
    assert.deepEqual(topics(store, '+/#'), ['a', 'b/$c']);
    assert.deepEqual(topics(store, '+/a'), []);
    assert.deepEqual(topics(store, '$SYS/#'), ['$SYS', '$SYS/a', '$SYS/b/c']);
    assert.deepEqual(topics(store, '$x/#'), ['$x/a/b/c']);
    assert.deepEqual(topics(store, 'b/+'), ['b/$c']);
  });

  it('refuses new topics above maxMessages, and replaces existing ones', () => {
    const store = new RetainedStore<number>({ maxMessages: 2 });
    assert.equal(store.put('a', 1, 1), 'stored');
    assert.equal(store.put('b', 1, 1), 'stored');
    assert.equal(store.put('c', 1, 1), 'refused');
    assert.equal(store.put('a', 2, 1), 'replaced');
    assert.equal(store.count, 2);
    assert.deepEqual(topics(store, '#'), ['b', 'a']);
    store.delete('b');
    assert.equal(store.put('c', 1, 1), 'stored');
  });

  it('does not count messages of 0 bytes towards any limit, and never refuses them', () => {
    const store = new RetainedStore<number>({ maxMessages: 1, maxBytes: 5 });
    for (const topic of ['$a', '$b']) assert.equal(store.put(topic, 1, 0), 'stored');
    assert.equal(store.put('a', 1, 5), 'stored');
    assert.equal(store.put('b', 1, 5), 'refused');
    assert.equal(store.put('$c', 1, 0), 'stored');
    assert.equal(store.put('$a', 2, 0), 'replaced');
    assert.equal(store.put('$a', 3, 1), 'refused', 'another message of that topic counts');
    assert.equal(store.get('$a'), undefined);
    store.delete('a');
    assert.equal(store.put('$b', 2, 5), 'replaced');
    assert.equal(store.put('a', 2, 5), 'refused');
    assert.equal(store.put('$b', 3, 0), 'replaced');
    assert.equal(store.put('a', 3, 5), 'stored');
    assert.deepEqual([store.count, store.bytes], [3, 5]);
  });

  it('observes maxBytes exactly, and does not return a message that a refused one should have replaced', () => {
    const store = new RetainedStore<number>({ maxBytes: 10 });
    assert.equal(store.put('a', 1, 6), 'stored');
    assert.equal(store.put('b', 1, 5), 'refused');
    assert.equal(store.put('b', 1, 4), 'stored');
    assert.equal(store.bytes, 10);
    assert.equal(store.put('a', 2, 5), 'replaced');
    assert.equal(store.put('a', 2, 6), 'replaced');
    const a = store.get('a')!;
    assert.equal(store.put('a', 3, 7), 'refused');
    assert.equal(a.isLive, false);
    assert.deepEqual(topics(store, '#'), ['b']);
    assert.equal(store.bytes, 4);
    assert.equal(store.put('c', 1, 11), 'refused');
  });

  it('agrees with matching each topic in turn, while messages are added and removed', () => {
    const source = randomSource('RetainedStore');
    const store = new RetainedStore<number>();
    // The slow version is a Map in insertion order.
    const slow = new Map<string, number>();
    let hits = 0;
    for (let step = 0; step < samples(30_000); step++) {
      const isGrowing = Math.floor(step / samples(5000)) % 2 === 0;
      const topic = randomName(source);
      if (source.below(10) < (isGrowing ? 8 : 2)) {
        assert.equal(store.put(topic, step, step), slow.has(topic) ? 'replaced' : 'stored');
        slow.delete(topic);
        slow.set(topic, step);
      } else {
        assert.equal(store.delete(topic)?.message, slow.get(topic));
        slow.delete(topic);
      }
      if (step % 25 !== 0) continue;
      const filter = randomFilter(source);
      const expected = [...slow].filter(([topic]) => slowMatches(filter, topic));
      hits += expected.length;
      assert.deepEqual(
        store.match(filter).map((entry) => [entry.topic, entry.message]),
        expected,
        filter
      );
      assert.equal(store.count, slow.size);
    }
    assert.ok(hits > samples(500), `only ${hits} hits`);
    const entries = [...store];
    assert.deepEqual(new Set(entries.map((entry) => entry.topic)), new Set(slow.keys()));
    assert.equal(
      store.bytes,
      [...slow.values()].reduce((sum, bytes) => sum + bytes, 0)
    );
    for (const entry of store) store.delete(entry.topic);
    assert.ok(entries.every((entry) => !entry.isLive));
    assert.equal(store.count, 0);
    assert.equal(store.bytes, 0);
    assert.deepEqual(topics(store, '#'), []);
  });

  it('finds topics deeper than its tree, for every kind of filter', () => {
    const depths = [30, 31, 32, 33, 34, 35, 60];
    const base = (levels: number) => Array.from({ length: levels }, (_, i) => `l${i}`).join('/');
    const names = depths.flatMap((depth) => [
      base(depth),
      `${base(depth)}/x`,
      `other/${base(depth)}`,
      `${base(depth)}/`
    ]);
    const store = filled(...names);
    const filters = depths.flatMap((depth) => [
      `${base(depth)}/#`,
      `${base(depth)}/+`,
      `${'+/'.repeat(depth)}x`,
      `${'+/'.repeat(depth)}+`,
      `${'+/'.repeat(depth)}#`,
      `+/${base(depth)}`,
      `l0/+/${base(depth).split('/').slice(2).join('/')}/#`
    ]);
    for (const filter of filters) {
      assert.deepEqual(
        topics(store, filter),
        [...new Set(names)].filter((name) => slowMatches(filter, name)),
        filter
      );
    }
    for (const name of names) store.delete(name);
    assert.deepEqual(topics(store, '#'), []);
  });

  it('accepts topics of 65,535 slashes without recursion and without a node for each level', () => {
    const slashes = '/'.repeat(65_530);
    const store = new RetainedStore<number>();
    const count = sized(200, 1000);
    const before = cpuMs();
    for (let i = 0; i < count; i++) store.put(`${slashes}${i}`, i, 1);
    assert.equal(store.match('#').length, count);
    assert.deepEqual(
      store.match(`${'+/'.repeat(32_000)}#`).map((entry) => entry.message),
      Array.from({ length: count }, (_, i) => i)
    );
    for (let i = 0; i < count; i++) store.delete(`${slashes}${i}`);
    assert.ok(cpuMs() - before < count * 5);
    assert.equal(store.count, 0);
  });

  it('returns very many messages in one call', () => {
    const store = new RetainedStore<number>();
    const count = sized(45_000, 200_000);
    for (let i = 0; i < count; i++) store.put(`r/${i % 450}/${Math.floor(i / 450)}`, i, 1);
    for (let i = 0; i < count; i += 3) store.put(`r/${i % 450}/${Math.floor(i / 450)}`, i, 1);
    for (const filter of ['#', 'r/#', 'r/+/+']) {
      const entries = store.match(filter);
      assert.equal(entries.length, count);
      assert.ok(entries.every((entry, i) => entry.isLive && (i === 0 || entries[i - 1]!.seq < entry.seq)));
    }
    assert.equal(store.match('r/+/7').length, 450);
    assert.equal(store.match('r/7/+').length, Math.ceil((count - 7) / 450));
  });
});
