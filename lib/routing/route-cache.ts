import { LRUCache } from 'lru-cache';

/** The fields of a route that the cache uses. The caller sets `weight`, the cache sets the others. */
export interface CachedRoute {
  /** Whether the route is not (or no longer) in the cache. Code that has stored a stale route must look up the topic again. */
  isStale: boolean;
  /** The `generation` of the cache when the route was added. */
  generation: number;
  /** The share of `maxWeight` that the route takes: 1 + number of targets. Must not change while the route is cached. */
  weight: number;
}

export interface RouteCacheOptions<R> {
  /** The greatest sum of weights. Each 64 characters of a topic weigh 1 more. Default: 100,000, which takes about 10 MB. */
  readonly maxWeight?: number;
  /** The number of lookups after which the hit rate is evaluated. Default: 4,096. */
  readonly reviewEvery?: number;
  /**
   * The hit rate below which a full cache adds only a sample of the new topics. Default: 0.25. Below that, the time that hits save
   * (1.7 us each with 1 million filters) is less than the time to insert topics that are not looked up again (1.1 us each).
   */
  readonly minHitRate?: number;
  /** While sampling, one in this number of new topics is added. Default: 16. */
  readonly sampleEvery?: number;
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
 * If topics are rarely used again, adding them costs more than it saves. A full cache with a low hit rate therefore adds only one topic in
 * `sampleEvery` until the hit rate recovers.
 */
export class RouteCache<R extends CachedRoute> {
  /** Incremented by each `invalidateAll`. */
  generation = 0;
  /** The number of lookups since the hit rate was last evaluated, and how many of them found their topic. */
  lookups = 0;
  hits = 0;
  /** Whether only a sample of the new topics is added at present. */
  isSampling = false;
  readonly maxWeight: number;
  readonly #lru: LRUCache<string, R>;
  readonly #reviewEvery: number;
  readonly #minHitRate: number;
  readonly #sampleEvery: number;
  #skipped = 0;
  #evicted = 0;

  constructor(options: RouteCacheOptions<R> = {}) {
    this.maxWeight = options.maxWeight ?? 100_000;
    this.#reviewEvery = options.reviewEvery ?? 4096;
    this.#minHitRate = options.minHitRate ?? 0.25;
    this.#sampleEvery = options.sampleEvery ?? 16;
    const { onRemove } = options;
    // `max` is not set, because it would allocate lists of that length at once.
    this.#lru = new LRUCache<string, R>({
      maxSize: this.maxWeight,
      sizeCalculation: weigh,
      dispose: (route, _topic, reason) => {
        route.isStale = true;
        if (reason === 'evict') this.#evicted++;
        onRemove?.(route);
      }
    });
  }

  /** The valid route of a topic. If there is none, the caller computes the route and calls `set`. */
  get(topic: string): R | undefined {
    this.lookups++;
    const route = this.#lru.get(topic);
    if (route === undefined) return undefined;
    // An outdated route counts as a hit: it shows that the topic is used again.
    this.hits++;
    return route.generation === this.generation ? route : undefined;
  }

  /**
   * Add a route that has just been computed. The route that it replaces becomes stale.
   *
   * @returns false if the route was not added (heavier than the cache, topic too long, not in the sample); it is marked stale and may be
   *   used once
   */
  set(topic: string, route: R): boolean {
    if (this.lookups >= this.#reviewEvery) this.#review();
    route.generation = this.generation;
    if (topic.length > MAX_TOPIC_LENGTH || weigh(route, topic) > this.maxWeight) {
      this.#lru.delete(topic);
      route.isStale = true;
      return false;
    }
    if (this.isSampling && ++this.#skipped < this.#sampleEvery && !this.#lru.has(topic)) {
      route.isStale = true;
      return false;
    }
    this.#skipped = 0;
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

  #review(): void {
    const isSeldomHit = this.hits < this.lookups * this.#minHitRate;
    // As long as nothing was evicted, a low hit rate only means that the cache is new.
    this.isSampling = isSeldomHit && (this.isSampling || this.#evicted > 0);
    this.lookups = 0;
    this.hits = 0;
    this.#evicted = 0;
  }
}

/** The weight of a route. It includes the length of the topic, because targets alone would not bound the memory. */
function weigh(route: CachedRoute, topic: string): number {
  return route.weight + (topic.length >>> 6);
}
