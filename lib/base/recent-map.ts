/** One entry of a `RecentMap`, in the list of all entries by their last use. */
interface Entry<V> {
  readonly key: string;
  value: V;
  weight: number;
  /** Used before this one. */
  older: Entry<V> | undefined;
  /** Used after this one. */
  newer: Entry<V> | undefined;
}

/** Options of `RecentMap`. */
export interface RecentMapOptions<V> {
  /** The weight of an entry, which must not change while it is in the map. Default: 1. */
  readonly weigh?: (value: V, key: string) => number;
  /** Called with each value that has left the map, or was replaced by another one. */
  readonly onRemove?: (value: V) => void;
}

/** A map of limited weight, which removes the entry whose last use (`get` or `set`) is the longest ago. */
export class RecentMap<V> {
  readonly #max: number;
  readonly #weigh: ((value: V, key: string) => number) | undefined;
  readonly #onRemove: ((value: V) => void) | undefined;
  readonly #entries = new Map<string, Entry<V>>();
  #oldest: Entry<V> | undefined = undefined;
  #newest: Entry<V> | undefined = undefined;
  #weight = 0;

  /** @param max the greatest sum of weights; by default, the greatest number of entries */
  constructor(max: number, { weigh, onRemove }: RecentMapOptions<V> = {}) {
    this.#max = max;
    this.#weigh = weigh;
    this.#onRemove = onRemove;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry !== this.#newest) {
      this.#unlink(entry);
      this.#append(entry);
    }
    return entry.value;
  }

  /** An entry that is heavier than the map is removed at once. */
  set(key: string, value: V): void {
    const weight = this.#weigh?.(value, key) ?? 1;
    const known = this.#entries.get(key);
    if (known === undefined) {
      const entry = { key, value, weight, older: undefined, newer: undefined };
      this.#entries.set(key, entry);
      this.#append(entry);
      this.#weight += weight;
    } else {
      const before = known.value;
      this.#unlink(known);
      this.#append(known);
      this.#weight += weight - known.weight;
      known.value = value;
      known.weight = weight;
      if (before !== value) this.#onRemove?.(before);
    }
    while (this.#weight > this.#max && this.#oldest !== undefined) this.delete(this.#oldest.key);
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#unlink(entry);
    this.#weight -= entry.weight;
    this.#onRemove?.(entry.value);
  }

  clear(): void {
    while (this.#oldest !== undefined) this.delete(this.#oldest.key);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The sum of the weights. */
  get weight(): number {
    return this.#weight;
  }

  #append(entry: Entry<V>): void {
    entry.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  #unlink(entry: Entry<V>): void {
    const { older, newer } = entry;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    entry.older = undefined;
    entry.newer = undefined;
  }
}
