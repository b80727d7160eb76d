import { InvalidInput, StateError } from '../base/errors.ts';
import { Kind } from '../store/keys.ts';
import type { Durable, Ledger } from '../store/ledger.ts';
import type { Draft } from '../store/record.ts';
import { frozen, type TableEntry } from '../store/table-record.ts';

/**
 * Configuration of the app or of an adapter, kept with the broker's state: small, and all of it in memory. Values are what JSON can say; those
 * that come out are frozen copies of what went in, since a change within one would not be kept.
 */
export interface Table<V> extends Iterable<readonly [key: string, value: V]> {
  readonly name: string;
  readonly size: number;
  get(key: string): V | undefined;
  has(key: string): boolean;
  /**
   * Takes effect at once; resolves when it is kept. Where it is not, what was there before is there again.
   * @throws BrokerError STORE_FAILED; StateError BROKER_NOT_STARTED (with a store: what is in it is known from the start on); InvalidInput
   *   TABLE_KEY_INVALID, TABLE_VALUE_INVALID
   */
  set(key: string, value: V): Promise<void>;
  /** @returns false if it was not there; resolves when that is kept. @throws as `set` */
  delete(key: string): Promise<boolean>;
}

/** What UTF-8 has no form for. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** All tables of a broker. */
export class Tables {
  readonly #ledger: Ledger | undefined;
  readonly #tables = new Map<string, PersistedTable>();

  /** @param ledger undefined: what is set is gone with the process */
  constructor(ledger: Ledger | undefined) {
    this.#ledger = ledger;
  }

  /** @throws InvalidInput TABLE_NAME_INVALID */
  table(name: string): PersistedTable {
    if (typeof name !== 'string' || !/^[\w.-]{1,64}$/.test(name))
      throw new InvalidInput('TABLE_NAME_INVALID', 'name', '1 to 64 letters, digits, ".", "-" and "_"', name);
    let table = this.#tables.get(name);
    if (table === undefined) this.#tables.set(name, (table = new PersistedTable(name, this.#ledger)));
    return table;
  }

  restore({ table, key, value }: TableEntry): void {
    this.table(table).restore(key, value);
  }
}

/** @throws InvalidInput TABLE_VALUE_INVALID */
function jsonOf(value: unknown): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(value, (_key, inner: unknown) => {
      if (typeof inner === 'number' && !Number.isFinite(inner)) throw new RangeError('JSON would say null');
      if (inner instanceof Map || inner instanceof Set) throw new TypeError('JSON would say {}');
      return inner;
    });
  } catch {} // these, a circle, a bigint, a toJSON that throws
  if (json === undefined) throw new InvalidInput('TABLE_VALUE_INVALID', 'value', 'something that JSON can say', value);
  return json;
}

/** What is put back under a key if a change of it is not kept. */
interface OldValue {
  readonly isThere: boolean;
  readonly value: unknown;
}

class PersistedTable implements Table<unknown>, Durable {
  isDirty = false;
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

  async set(key: string, value: unknown): Promise<void> {
    this.#checkOpen();
    if (typeof key !== 'string' || LONE_SURROGATE.test(key))
      throw new InvalidInput('TABLE_KEY_INVALID', 'key', 'text without half a surrogate pair', key);
    const json = jsonOf(value);
    this.#checkStore();
    this.#rememberOld(key);
    this.#values.set(key, frozen(json)); // what the caller does with its object later is not kept either
    await this.#persist();
  }

  async delete(key: string): Promise<boolean> {
    this.#checkOpen();
    const isThere = this.#values.has(key);
    if (!isThere && !this.#changed.has(key) && !this.#writing.has(key)) return false;
    this.#checkStore();
    if (isThere) this.#rememberOld(key);
    this.#values.delete(key);
    await this.#persist(); // one that is gone already may come back, if that is not kept
    return isThere;
  }

  [Symbol.iterator](): Iterator<readonly [string, unknown]> {
    return this.#values[Symbol.iterator]();
  }

  restore(key: string, value: unknown): void {
    this.#values.set(key, value);
  }

  #checkStore(): void {
    if (this.#ledger?.isFailed) throw this.#ledger.refusal();
  }

  #checkOpen(): void {
    if (this.#ledger?.isOpen === false)
      throw new StateError(
        'BROKER_NOT_STARTED',
        `table "${this.name}": the broker is not started, so its store is not open`
      );
  }

  /** A key is about to change. Of several changes that wait for one commit none stands if it fails. */
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

  /** What the store holds under these keys now is not known: what they had before is written again. */
  commitFailed(): void {
    const before = new Map([...this.#changed, ...this.#writing]); // where both have a key, that was first
    this.#changed = before;
    this.#writing = new Map();
    for (const [key, { isThere, value }] of before) {
      if (isThere) this.#values.set(key, value);
      else this.#values.delete(key);
    }
  }
}
