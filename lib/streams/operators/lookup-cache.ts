import { isThenable } from '../../events/hooks.ts';
import type { OpenLookup } from '../types.ts';
import { StreamFailure, type StreamValue, type StreamValueObject } from '../values/values.ts';
import { type Key, keyOfValues } from './keys.ts';
import type { Timers } from './operator.ts';

/** Maximum number of keys whose rows are cached; the oldest are dropped. */
const MAX_KEYS = 10_000;
/** Time limit of a lookup, in milliseconds. */
const FIND_MS = 30_000;

type Rows = readonly StreamValueObject[];

interface Cached {
  readonly rows: Rows;
  readonly expiresAt: number;
}

interface CacheSpec {
  readonly keys: readonly string[];
  readonly lookup: Pick<OpenLookup, 'find'>;
  readonly cache?: { readonly ttlMs: number; readonly keepsMissing: boolean };
}

/** Finds rows of a lookup table: in the cache, by a pending lookup for the same values, or by a new one. */
export class LookupCache {
  readonly #spec: CacheSpec;
  readonly #timers: Timers;
  readonly #cached = new Map<Key, Cached>();
  readonly #underWay = new Map<Key, Promise<Rows>>();

  constructor(spec: CacheSpec, timers: Timers) {
    this.#spec = spec;
    this.#timers = timers;
  }

  /** @throws the errors of the lookup */
  find(values: readonly StreamValue[]): Rows | Promise<Rows> {
    const key = keyOfValues(values);
    const cached = this.#cached.get(key);
    if (cached !== undefined && cached.expiresAt > this.#timers.now()) return cached.rows;
    const underWay = this.#underWay.get(key);
    if (underWay !== undefined) return underWay;
    const rows = this.#spec.lookup.find(this.#spec.keys, values) as Rows | Promise<Rows>;
    if (!isThenable(rows)) return this.#keep(key, rows);
    const found = this.#within(rows)
      .then((each) => this.#keep(key, each))
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, found);
    return found;
  }

  #within(rows: Promise<Rows>): Promise<Rows> {
    return new Promise((resolve, reject) => {
      const late = () => reject(new StreamFailure(`a lookup has not completed within ${FIND_MS} ms: check its source`));
      const cancel = this.#timers.at(this.#timers.now() + FIND_MS, late);
      Promise.resolve(rows).finally(cancel).then(resolve, reject);
    });
  }

  #keep(key: Key, rows: Rows): Rows {
    if (!Array.isArray(rows)) throw new StreamFailure('the lookup did not return a list of rows');
    const { cache } = this.#spec;
    this.#cached.delete(key);
    if (cache === undefined || (rows.length === 0 && !cache.keepsMissing)) return rows;
    if (this.#cached.size >= MAX_KEYS) this.#cached.delete(this.#cached.keys().next().value as Key);
    this.#cached.set(key, { rows, expiresAt: this.#timers.now() + cache.ttlMs });
    return rows;
  }
}
