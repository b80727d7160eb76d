import { LRUCache } from 'lru-cache';

/** What the cache needs to know of a route. A caller sets `weight`; the other two belong to the cache. */
export interface CachedRoute {
  /** True when the cache does not hold this route, or no longer: whoever does must look the topic up again. */
  stale: boolean;
  /** The cache's `generation` when the route was put in. */
  generation: number;
  /** What it counts against the bound: 1 + number of targets. Must not change while the route is cached. */
  weight: number;
}

export interface RouteCacheOptions<R> {
  /** Bound on the sum of weights, where each 64 characters of a topic weigh 1 more. Default 100,000, some 10 MB. */
  readonly maxWeight?: number;
  /** Lookups after which the hit rate is looked at. Default 4,096. */
  readonly reviewEvery?: number;
  /** Hit rate below which a full cache takes only a sample of new topics. Default 0.25: what a hit saves (1.7 us at 1 M filters) then no
   *  longer pays for the insertions (1.1 us each) of what is never asked for again. */
  readonly minHitRate?: number;
  /** One in how many new topics goes in while sampling. Default 16. */
  readonly sampleEvery?: number;
  /** Called with each route that leaves: it is stale, and counts against the bound no longer. */
  readonly onLeave?: (route: R) => void;
}

/** Topics longer than this are looked up each time: V8 gives very long texts of one length the same hash, see TextMap. */
const MAX_TOPIC_LENGTH = 4096;

/**
 * Routes by topic name, the least recently used leaving first.
 *
 * A change of an exact filter invalidates the topic of its name, a change of a wildcard all topics at once, by a new generation. A route
 * that is kept elsewhere, too, is good while `!route.stale && route.generation === cache.generation`.
 *
 * When topics do not come again, putting them in costs more than it brings: a cache that is full and seldom hit takes one topic in
 * `sampleEvery` until the hit rate recovers.
 */
export class RouteCache<R extends CachedRoute> {
  /** Goes up with each `invalidateAll`. */
  generation = 0;
  /** Lookups, and those of them that found their topic, since the hit rate was last looked at. */
  lookups = 0;
  hits = 0;
  /** Whether only a sample of new topics goes in at present. */
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
    const { onLeave } = options;
    // no `max`: it would make lists of that length at once
    this.#lru = new LRUCache<string, R>({
      maxSize: this.maxWeight,
      sizeCalculation: weigh,
      dispose: (route, _topic, reason) => {
        route.stale = true;
        if (reason === 'evict') this.#evicted++;
        onLeave?.(route);
      }
    });
  }

  /** The route of a topic, if there is one that holds; else compute it and `set` it. */
  get(topic: string): R | undefined {
    this.lookups++;
    const route = this.#lru.get(topic);
    if (route === undefined) return undefined;
    // an outdated one is a hit as to the question whether topics come again
    this.hits++;
    return route.generation === this.generation ? route : undefined;
  }

  /**
   * Put in a route that was computed just now. The one it replaces becomes stale.
   *
   * @returns false when the route was not kept (heavier than the whole cache, topic too long, not in the sample): it is marked stale, use it once
   */
  set(topic: string, route: R): boolean {
    if (this.lookups >= this.#reviewEvery) this.#review();
    route.generation = this.generation;
    if (topic.length > MAX_TOPIC_LENGTH || weigh(route, topic) > this.maxWeight) {
      this.#lru.delete(topic);
      route.stale = true;
      return false;
    }
    if (this.isSampling && ++this.#skipped < this.#sampleEvery && !this.#lru.has(topic)) {
      route.stale = true;
      return false;
    }
    this.#skipped = 0;
    route.stale = false;
    this.#lru.set(topic, route);
    return true;
  }

  /** An exact filter came, went or changed: forget the route of the topic of that name. */
  invalidate(topic: string): void {
    this.#lru.delete(topic);
  }

  /** A wildcard filter came, went or changed: no route put in so far holds any longer. Takes no time; they leave as others come. */
  invalidateAll(): void {
    this.generation++;
  }

  /** Drop every route, so that nothing here keeps a target alive. */
  clear(): void {
    this.#lru.clear();
  }

  /** Number of topics, outdated routes included. */
  get size(): number {
    return this.#lru.size;
  }

  /** Sum of the weights, at most `maxWeight`. */
  get weight(): number {
    return this.#lru.calculatedSize;
  }

  #review(): void {
    const isSeldomHit = this.hits < this.lookups * this.#minHitRate;
    // while there is room a low rate only says that the cache is young
    this.isSampling = isSeldomHit && (this.isSampling || this.#evicted > 0);
    this.lookups = 0;
    this.hits = 0;
    this.#evicted = 0;
  }
}

/** A bound on targets alone would not bound the memory that topics take. */
function weigh(route: CachedRoute, topic: string): number {
  return route.weight + (topic.length >>> 6);
}
