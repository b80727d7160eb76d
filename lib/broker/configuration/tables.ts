// A change is visible at once and undone if its commit fails: the value before the first change since the last commit
// is remembered for each key. After a failure the old values are written again, because the failed commit may be in
// the store. Tables of the broker begin with `$`, which names of tables of the app must not contain. Entries return
// from the store in the order of their keys; an owner that needs another order calls `reorder` after the start.

import { InvalidInput, StateError } from '../../base/errors.ts';
import type { CommitFailure, Durable } from '../../store/durable.ts';
import { Kind } from '../../store/keys.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { Draft } from '../../store/record.ts';
import { frozen, type TableEntry } from '../../store/table-record.ts';

/**
 * A key-value table of the app or an adapter, which is persisted with the state of the broker.
 *
 * All entries are in memory, so a table suits small amounts of data such as configuration. Values must be representable as JSON. The table
 * returns frozen copies of the values that were set, because a change within a value would not be persisted.
 */
export interface Table<V> extends Iterable<readonly [key: string, value: V]> {
  /** The name of the table. */
  readonly name: string;
  /** Number of entries. */
  readonly size: number;
  /** The value of a key; undefined if there is none. */
  get(key: string): V | undefined;
  /** True if the table has the key. */
  has(key: string): boolean;
  /**
   * Set the value of a key. The change takes effect immediately.
   * @returns a promise that resolves when the change is persisted. If its commit fails, the previous value is restored
   * @throws BrokerError STORE_FAILED; StateError BROKER_NOT_STARTED (with a store, whose content is not known before the start); InvalidInput
   *   TABLE_KEY_INVALID, TABLE_VALUE_INVALID
   */
  set(key: string, value: V): Promise<void>;
  /** Delete a key. @returns whether the key existed; the promise resolves when the deletion is persisted @throws as `set` */
  delete(key: string): Promise<boolean>;
}

/** A surrogate without its pair, which UTF-8 cannot represent. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** All tables of a broker. */
export class Tables {
  readonly #ledger: Ledger | undefined;
  readonly #tables = new Map<string, PersistedTable>();

  /** @param ledger undefined: tables are not persisted */
  constructor(ledger: Ledger | undefined) {
    this.#ledger = ledger;
  }

  /** The table of a name, which is created if it does not exist. @throws InvalidInput TABLE_NAME_INVALID */
  table(name: string): PersistedTable {
    if (typeof name !== 'string' || !/^[\w.-]{1,64}$/.test(name))
      throw new InvalidInput('TABLE_NAME_INVALID', 'name', '1 to 64 letters, digits, ".", "-" and "_"', name);
    return this.own(name);
  }

  /** A table of the broker. @param name begins with `$`, so that it differs from those of the app */
  own(name: string): PersistedTable {
    let table = this.#tables.get(name);
    if (table === undefined) this.#tables.set(name, (table = new PersistedTable(name, this.#ledger)));
    return table;
  }

  restore({ table, key, value }: TableEntry): void {
    this.own(table).restore(key, value);
  }
}

/** @throws InvalidInput TABLE_VALUE_INVALID */
function jsonOf(value: unknown): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(value, (_key, inner: unknown) => {
      if (typeof inner === 'number' && !Number.isFinite(inner))
        throw new RangeError('JSON.stringify() would return null');
      if (inner instanceof Map || inner instanceof Set) throw new TypeError('JSON.stringify() would return {}');
      return inner;
    });
  } catch {} // the errors above, a cyclic object, a bigint, or an error of toJSON()
  if (json === undefined)
    throw new InvalidInput('TABLE_VALUE_INVALID', 'value', 'a value that JSON can represent', value);
  return json;
}

/** The state of a key before a change, which is restored if the commit fails. */
interface OldValue {
  readonly isThere: boolean;
  readonly value: unknown;
}

class PersistedTable implements Table<unknown>, Durable {
  isDirty = false;
  /** Number of failed commits whose changes were undone. */
  undone = 0;
  readonly name: string;
  readonly #ledger: Ledger | undefined;
  readonly #values = new Map<string, unknown>();
  #changed = new Map<string, OldValue>();
  #writing = new Map<string, OldValue>();

  constructor(name: string, ledger: Ledger | undefined) {
    this.name = name;
    this.#ledger = ledger;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: string): unknown {
    return this.#values.get(key);
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  set(key: string, value: unknown): Promise<void> {
    return this.#set(key, value, false);
  }

  /** As `set`; moves the key to the end of the iteration. */
  append(key: string, value: unknown): Promise<void> {
    return this.#set(key, value, true);
  }

  async #set(key: string, value: unknown, isLast: boolean): Promise<void> {
    this.#checkOpen();
    if (typeof key !== 'string' || LONE_SURROGATE.test(key))
      throw new InvalidInput('TABLE_KEY_INVALID', 'key', 'a string without unpaired surrogates', key);
    const json = jsonOf(value);
    this.#checkStore();
    this.#rememberOld(key);
    if (isLast) this.#values.delete(key);
    this.#values.set(key, frozen(json)); // a copy: later changes to the caller's object would not be persisted
    await this.#persist();
  }

  async delete(key: string): Promise<boolean> {
    this.#checkOpen();
    const isThere = this.#values.has(key);
    if (!isThere && !this.#changed.has(key) && !this.#writing.has(key)) return false;
    this.#checkStore();
    if (isThere) this.#rememberOld(key);
    this.#values.delete(key);
    await this.#persist(); // also for a key deleted before: it would return if that deletion is not persisted
    return isThere;
  }

  [Symbol.iterator](): Iterator<readonly [string, unknown]> {
    return this.#values[Symbol.iterator]();
  }

  restore(key: string, value: unknown): void {
    this.#values.set(key, value);
  }

  /** Sort the entries. The order is not persisted: the store returns them in the order of their keys. */
  reorder(compare: (a: never, b: never) => number): void {
    const entries = [...this.#values].sort(([, a], [, b]) => compare(a as never, b as never));
    this.#values.clear();
    for (const [key, value] of entries) this.#values.set(key, value);
  }

  #checkStore(): void {
    if (this.#ledger?.isFailed) throw this.#ledger.refusal();
  }

  #checkOpen(): void {
    if (this.#ledger?.isOpen === false)
      throw new StateError('BROKER_NOT_STARTED', `table "${this.name}": the store is not open; start the broker first`);
  }

  /** Save the state of a key before its first change since the last commit. If the commit fails, all changes of the key are undone. */
  #rememberOld(key: string): void {
    if (this.#ledger === undefined || this.#changed.has(key)) return;
    this.#changed.set(key, { isThere: this.#values.has(key), value: this.#values.get(key) });
  }

  async #persist(): Promise<void> {
    if (this.#ledger === undefined) return;
    this.#ledger.promise(this, 256);
    await this.#ledger.committed(this.#ledger.ticket);
  }

  write(draft: Draft): void {
    this.#writing = this.#changed;
    this.#changed = new Map();
    for (const key of this.#writing.keys()) {
      draft.key(Kind.table).tail(this.name).u8(0).tail(key);
      if (this.#values.has(key))
        draft
          .value()
          .bytes(Buffer.from(JSON.stringify(this.#values.get(key))))
          .put();
      else draft.delete();
    }
  }

  committed(): void {
    this.#writing = new Map();
  }

  /** Restore the old values and write them again, because the failed commit may be in the store or not. */
  commitFailed(failure: CommitFailure): void {
    const before = new Map([...this.#changed, ...this.#writing]); // for a key in both, #writing has the older value
    this.#changed = before;
    this.#writing = new Map();
    if (failure === 'retried') return;
    this.undone++;
    for (const [key, { isThere, value }] of before) {
      if (isThere) this.#values.set(key, value);
      else this.#values.delete(key);
    }
  }
}
