// A topic enters the route cache when a client publishes to it a second time. Topics that occur once (10,000 retained
// topics) would fill the cache: 1,200 bytes each instead of 850. A second rule, by which a full cache with a low hit
// rate took only a sample of the new topics, made no measurable difference (600,000 different topics, and 150,000 and
// 400,000 in a circle, from a client and from the app), so it is gone.

import { LRUCache } from 'lru-cache';

/** The fields of a route that the cache uses. The caller sets `weight`, the cache sets the others. */
export interface CachedRoute {
  /** True if the route is not (or no longer) in the cache. Code that has stored a stale route must look up the topic again. */
  isStale: boolean;
  /** The `generation` of the cache when the route was added. */
  generation: number;
  /** The share of `maxWeight` that the route takes: 1 + number of targets. Must not change while the route is cached. */
  weight: number;
}

interface RouteCacheOptions<R> {
  /** Maximum sum of weights. Each 64 characters of a topic weigh 1 more. Default: 100,000, which takes about 10 MB. */
  readonly maxWeight?: number;
  /** Called with each route that is removed. The route is stale and no longer counts against `maxWeight`. */
  readonly onRemove?: (route: R) => void;
}

/** Topics longer than this are not cached. V8 gives very long strings of equal length the same hash; see TextMap. */
const MAX_TOPIC_LENGTH = 4096;

/**
 * A cache of routes by topic name, which evicts the least recently used first.
 *
 * A change of a filter without wildcards invalidates the topic of that name. A change of a wildcard filter invalidates all topics, by a new
 * generation. A route that is also stored elsewhere is valid while `!route.isStale && route.generation === cache.generation`.
 *
 * Topics that are used once are not worth adding; `Routing` adds a topic when a client publishes to it a second time.
 */
export class RouteCache<R extends CachedRoute> {
  /** Incremented by each `invalidateAll`. */
  generation = 0;
  readonly maxWeight: number;
  readonly #lru: LRUCache<string, R>;

  constructor(options: RouteCacheOptions<R> = {}) {
    this.maxWeight = options.maxWeight ?? 100_000;
    const { onRemove } = options;
    // `max` is not set, because it would allocate lists of that length at once.
    this.#lru = new LRUCache<string, R>({
      maxSize: this.maxWeight,
      sizeCalculation: weigh,
      dispose: (route) => {
        route.isStale = true;
        onRemove?.(route);
      }
    });
  }

  /** The valid route of a topic. If there is none, the caller computes the route and calls `set`. */
  get(topic: string): R | undefined {
    const route = this.#lru.get(topic);
    return route?.generation === this.generation ? route : undefined;
  }

  /**
   * Add a route that has just been computed. The route that it replaces becomes stale.
   *
   * @returns false if the route was not added (heavier than the cache, topic too long); it is marked stale and may be used once
   */
  set(topic: string, route: R): boolean {
    route.generation = this.generation;
    if (topic.length > MAX_TOPIC_LENGTH || weigh(route, topic) > this.maxWeight) {
      this.#lru.delete(topic);
      route.isStale = true;
      return false;
    }
    route.isStale = false;
    this.#lru.set(topic, route);
    return true;
  }

  /** Remove the route of a topic, because the filter of that name was added, removed or changed. */
  invalidate(topic: string): void {
    this.#lru.delete(topic);
  }

  /** Invalidate all routes, because a wildcard filter was added, removed or changed. Takes constant time; new routes evict the old ones. */
  invalidateAll(): void {
    this.generation++;
  }

  /** Remove every route, so that the cache references no subscribers. */
  clear(): void {
    this.#lru.clear();
  }

  /** The number of topics, including those with outdated routes. */
  get size(): number {
    return this.#lru.size;
  }

  /** The sum of the weights, at most `maxWeight`. */
  get weight(): number {
    return this.#lru.calculatedSize;
  }
}

/** The weight of a route. It includes the length of the topic, because targets alone would not bound the memory. */
function weigh(route: CachedRoute, topic: string): number {
  return route.weight + (topic.length >>> 6);
}
