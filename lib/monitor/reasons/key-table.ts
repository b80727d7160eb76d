import { Chain, Link } from './chain.ts';
import type { KeptRecord } from './kept-record.ts';

/** Estimated memory of a key without its name, in bytes. */
const KEY_BYTES = 384;

/** The last records about a client, topic or rule. */
export class Key extends Link<Key> {
  name: string;
  /** The oldest first. */
  readonly records: KeptRecord[] = [];
  /** Time of the latest record that is no longer kept. */
  lostAt: number;

  /** @param lostAt time of the latest record that is no longer kept and may have been about this name */
  constructor(name: string, lostAt: number) {
    super();
    this.name = name;
    this.lostAt = lostAt;
  }

  get bytes(): number {
    return KEY_BYTES + 2 * this.name.length;
  }

  /** Use the key for another name. */
  rename(name: string, lostAt: number): void {
    this.name = name;
    this.records.length = 0;
    this.lostAt = lostAt;
  }

  /** Remove the oldest record. @param messages if more records than these are about messages, it is the oldest of them */
  shift(messages: number): KeptRecord {
    const isTooMany = this.records.filter(isOfMessage).length > messages;
    const [oldest] = this.records.splice(isTooMany ? this.records.findIndex(isOfMessage) : 0, 1);
    this.lost(oldest);
    return oldest;
  }

  /** Note that a record is no longer kept. */
  lost(record: KeptRecord): void {
    this.lostAt = Math.max(this.lostAt, record.at);
  }

  delete(record: KeptRecord): void {
    const at = this.records.indexOf(record);
    if (at === -1) return;
    this.records.splice(at, 1);
    this.lost(record);
  }
}

/** Limits of a `KeyTable`. */
export interface KeyLimits {
  readonly keys: number;
  /** Maximum number of records for each key. */
  readonly records: number;
  /** The part of them that messages may take from records of other events. Default: all. */
  readonly messages?: number;
}

/** The keys of one kind (clients, topics or rules) that were used last, each with its last records. */
export class KeyTable {
  readonly #limits: KeyLimits;
  /** Called with a record that is in one list fewer. */
  readonly #released: (record: KeptRecord) => void;
  /** Called with the change of the estimated memory. */
  readonly #grown: (bytes: number) => void;
  readonly #keys = new Map<string, Key>();
  readonly #order = new Chain<Key>();
  /** The table of a name before it is in this one; it passes on its records. */
  readonly #earlier: KeyTable | undefined;
  /** Time of the latest record of the keys that are no longer kept. */
  #lostAt = -Infinity;

  constructor(
    limits: KeyLimits,
    released: (record: KeptRecord) => void,
    grown: (bytes: number) => void,
    earlier?: KeyTable
  ) {
    this.#limits = limits;
    this.#released = released;
    this.#grown = grown;
    this.#earlier = earlier;
  }

  has(name: string): boolean {
    return this.#keys.has(name);
  }

  /** The records about a name, the oldest first. */
  records(name: string): readonly KeptRecord[] {
    return this.#keys.get(name)?.records ?? this.#earlier?.records(name) ?? [];
  }

  /** The key of a name, which becomes the one that was used last. */
  use(name: string): Key {
    const known = this.#keys.get(name);
    if (known !== undefined) {
      this.#order.touch(known);
      return known;
    }
    const lostAt = this.lostAt(name);
    const earlier = this.#earlier?.take(name);
    const oldest = this.#keys.size < this.#limits.keys ? undefined : this.#order.oldest;
    const key = oldest === undefined ? new Key(name, lostAt) : this.#reuse(oldest, name, lostAt);
    if (earlier !== undefined) key.records.push(...earlier.records);
    this.#keys.set(name, key);
    this.#order.add(key);
    this.#grown(key.bytes);
    return key;
  }

  /** Add a record to the key of a name, from which an old one is removed if it has too many. @param name undefined or '': no key */
  add(name: string | undefined, record: KeptRecord): void {
    if (!name) return;
    const key = this.use(name);
    const { records } = key;
    if (records[records.length - 1] === record) return; // publisher and receiver are the same client
    record.hold(1);
    records.push(record);
    const { records: limit, messages = limit } = this.#limits;
    if (records.length > limit) this.#released(key.shift(messages));
  }

  /** Remove a record from the key of a name, if it is there. */
  delete(name: string | undefined, record: KeptRecord): void {
    if (name === undefined) return;
    const key = this.#keys.get(name);
    if (key === undefined) return;
    key.delete(record);
    if (key.records.length > 0) return;
    this.#lostAt = Math.max(this.#lostAt, key.lostAt);
    this.#discard(key);
  }

  /** Remove the key of a name, whose records another table takes over. */
  take(name: string): Key | undefined {
    const key = this.#keys.get(name);
    if (key !== undefined) this.#discard(key);
    return key;
  }

  /** Time of the latest record about a name that is no longer kept; -Infinity: all are. */
  lostAt(name: string): number {
    const key = this.#keys.get(name);
    return key === undefined ? Math.max(this.#lostAt, this.#earlier?.lostAt(name) ?? -Infinity) : key.lostAt;
  }

  #reuse(key: Key, name: string, lostAt: number): Key {
    this.#discard(key);
    this.#lostAt = Math.max(this.#lostAt, key.lostAt);
    for (const record of key.records) {
      this.#lostAt = Math.max(this.#lostAt, record.at);
      this.#released(record);
    }
    key.rename(name, lostAt);
    return key;
  }

  #discard(key: Key): void {
    this.#order.remove(key);
    this.#keys.delete(key.name);
    this.#grown(-key.bytes);
  }
}

/** Tell whether a record is about a message, not about a connection, a session or a subscription. */
function isOfMessage({ row, topic }: KeptRecord): boolean {
  return row.drop !== undefined || row.isOfMessage === true || (topic !== undefined && row.isFilter !== true);
}
