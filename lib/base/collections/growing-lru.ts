import { LRUCache } from 'lru-cache';

const ONE = () => 1;

/**
 * A cache of up to `max` entries. Unlike a cache with the option `max`, it does not allocate lists of that length at once: 0.2 MB for
 * 10,000.
 */
export function growingLru<V extends {}>(max: number): LRUCache<string, V> {
  return new LRUCache<string, V>({ maxSize: max, sizeCalculation: ONE });
}
