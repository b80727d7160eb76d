import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RouteCache } from '../../lib/routing/route-cache.ts';
import { samples } from '../support/samples.ts';
import { randomSource } from '../topics/slow-matcher.ts';

class Route {
  isStale = false;
  generation = 0;
  readonly weight: number;

  constructor(weight = 1) {
    this.weight = weight;
  }
}

/** Look up a topic as the broker does: compute its route and add it if it is not cached. */
function use(cache: RouteCache<Route>, topic: string, weight = 1): Route {
  const known = cache.get(topic);
  if (known !== undefined) return known;
  const route = new Route(weight);
  cache.set(topic, route);
  return route;
}

describe('RouteCache', () => {
  it('keeps a route until the filter with the name of its topic changes', () => {
    const cache = new RouteCache<Route>();
    const a = use(cache, 'a');
    const b = use(cache, 'b');
    assert.equal(cache.get('a'), a);
    cache.invalidate('a');
    cache.invalidate('unknown');
    assert.equal(a.isStale, true);
    assert.equal(cache.get('a'), undefined);
    assert.equal(b.isStale, false);
    assert.equal(cache.get('b'), b);
    const again = use(cache, 'a');
    assert.notEqual(again, a);
    assert.equal(again.isStale, false);
  });

  it('invalidates every route at once with a new generation, and accepts new ones', () => {
    const cache = new RouteCache<Route>();
    const old = use(cache, 'a');
    cache.invalidateAll();
    assert.equal(old.generation === cache.generation, false);
    assert.equal(cache.get('a'), undefined);
    const fresh = use(cache, 'a');
    assert.equal(fresh.generation, cache.generation);
    assert.equal(cache.get('a'), fresh);
    assert.equal(old.isStale, true, 'the replaced one is stale');
    assert.equal(cache.size, 1);
  });

  it('calls onRemove for each route that is replaced, invalidated or evicted', () => {
    const left: string[] = [];
    const names = new Map<Route, string>();
    const cache = new RouteCache<Route>({
      maxWeight: 2,
      onRemove: (route) => left.push(`${names.get(route)} ${route.isStale}`)
    });
    for (const topic of ['a', 'b', 'c']) names.set(use(cache, topic), topic);
    assert.deepEqual(left, ['a true']);
    cache.invalidate('b');
    cache.invalidateAll();
    use(cache, 'c');
    assert.deepEqual(left, ['a true', 'b true', 'c true']);
  });

  it('accepts the same route again without marking it stale', () => {
    const cache = new RouteCache<Route>();
    const route = use(cache, 'a');
    cache.invalidateAll();
    assert.equal(cache.set('a', route), true);
    assert.equal(route.isStale, false);
    assert.equal(cache.get('a'), route);
  });

  it('evicts the least recently used routes by weight and marks them stale', () => {
    const cache = new RouteCache<Route>({ maxWeight: 10 });
    const a = use(cache, 'a', 4);
    const b = use(cache, 'b', 4);
    use(cache, 'a');
    const c = use(cache, 'c', 5);
    assert.deepEqual([a.isStale, b.isStale, c.isStale], [false, true, false]);
    assert.equal(cache.weight, 9);
    const d = use(cache, 'd', 10);
    assert.deepEqual([a.isStale, c.isStale, d.isStale], [true, true, false]);
    assert.equal(cache.weight, 10);
  });

  it('does not add a route that is heavier than the cache, and removes the route that it replaces', () => {
    const cache = new RouteCache<Route>({ maxWeight: 10 });
    const a = use(cache, 'a', 4);
    const other = use(cache, 'b', 4);
    const big = new Route(11);
    assert.equal(cache.set('a', big), false);
    assert.deepEqual([a.isStale, big.isStale, other.isStale], [true, true, false]);
    assert.equal(cache.get('a'), undefined);
  });

  it('counts the length of topics, so that long topics do not fill the memory', () => {
    const cache = new RouteCache<Route>({ maxWeight: 10_000 });
    for (let i = 0; i < 1000; i++) use(cache, `${'x'.repeat(3200)}${i}`);
    assert.equal(cache.size, 196);
    assert.equal(use(cache, 'x'.repeat(5000)).isStale, true);
    assert.equal(cache.size, 196);
  });

  it('removes all routes on clear()', () => {
    const cache = new RouteCache<Route>();
    const a = use(cache, 'a');
    cache.clear();
    assert.equal(a.isStale, true);
    assert.equal(cache.size, 0);
    assert.equal(cache.weight, 0);
  });

  it('contains exactly the routes that are neither stale nor outdated', () => {
    const { below } = randomSource('RouteCache');
    const cache = new RouteCache<Route>({ maxWeight: 60 });
    const last = new Map<string, Route>();
    for (let step = 0; step < samples(20_000); step++) {
      const topic = `t/${below(below(3000) < 1500 ? 10 : 1000)}`;
      const dice = below(100);
      if (dice === 0) cache.invalidateAll();
      else if (dice < 5) cache.invalidate(topic);
      else {
        const known = last.get(topic);
        const isGood = known !== undefined && !known.isStale && known.generation === cache.generation;
        const route = cache.get(topic);
        assert.equal(route, isGood ? known : undefined);
        if (route === undefined) {
          const fresh = new Route(1 + below(70));
          cache.set(topic, fresh);
          last.set(topic, fresh);
        }
      }
      assert.ok(cache.weight <= 60);
    }
  });
});
