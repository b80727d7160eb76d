// The records of one rule: the parts of its last checkpoint, and the rows since then, by a number in the order of
// arrival. `save` replaces the parts and removes the rows up to `end` in one turn, which is one commit. A row whose
// commit fails is marked as refused and never replayed, because its publisher sends it again. While another
// definition of the rule is tried, the content of the previous one is set aside and stays in the store, so that the
// rule can go back to it. Only the run that owns the log may write to it; a run that is still closing when the next
// one begins no longer does.

import { deserialize, serialize } from 'node:v8';
import type { KeptStreamRecord, StreamRecordStore } from '../host.ts';
import { loadTuple, type SavedTuple, saveTuple } from '../operators/saved-tuples.ts';
import type { StreamRow } from '../values/tuple.ts';
import type { Checkpoints } from './checkpoints.ts';

/** Size of the parts of a checkpoint in the store, in bytes. */
const PART_BYTES = 131_072;
/** Approximate size of a record besides its body, in bytes. */
const RECORD_BYTES = 32;
/** Marks a record with several rows. */
const MANY = 1;

/** A row in the log, or several rows of a long message. */
export interface LoggedRow extends KeptStreamRecord {
  /** Position in the order of arrival. */
  readonly number: number;
  /** Number of its rows. */
  readonly rows: number;
  /** True if the row is committed. */
  isCommitted: boolean;
  /** True if the store refused the row and its publisher has been notified. */
  isRefused: boolean;
}

/** A record of the log that is replayed to the rule. */
interface ReplayedRow {
  readonly logged: LoggedRow;
  /** Position of its source. */
  readonly position: number;
  readonly rows: readonly StreamRow[];
}

interface LogContent {
  readonly parts: readonly KeptStreamRecord[];
  readonly rows: readonly LoggedRow[];
}

/** The stored state of a rule: its last checkpoint, and the rows that arrived since. */
export class RuleLog {
  #owner: Checkpoints | undefined;
  readonly #rule: string;
  readonly #store: StreamRecordStore;
  #parts: KeptStreamRecord[] = [];
  #rows: LoggedRow[] = [];
  /** Number of the next row. */
  #next = 0;
  #bytes = 0;
  #length = 0;
  /** Number of refused records. */
  #refused = 0;
  /** The content that belongs to another definition of the rule. */
  #aside: LogContent | undefined;

  /** Reads the records that the store had at the start. */
  constructor(rule: string, store: StreamRecordStore) {
    this.#rule = rule;
    this.#store = store;
    for (const record of store.take(rule)) {
      if (record.kind === 'state') this.#parts.push(record);
      // the number of rows is known only when the record is read
      else this.#note(Object.assign(record, { number: this.#next++, rows: 1, isCommitted: true, isRefused: false }));
    }
  }

  /** Set the current run, or none. A run that ended while writing no longer changes the log. */
  ownedBy(owner: Checkpoints | undefined): void {
    this.#owner = owner;
  }

  isOwnedBy(owner: Checkpoints): boolean {
    return this.#owner === owner;
  }

  /** Number of rows since the last checkpoint. */
  get length(): number {
    return this.#length;
  }

  /** Number of the next row. */
  get end(): number {
    return this.#next;
  }

  /** Approximate size of these rows in the store, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The state of the last checkpoint as written by `v8.serialize`; undefined if there is none. */
  get state(): Buffer | undefined {
    return this.#parts.length === 0 ? undefined : Buffer.concat(this.#parts.map(({ body }) => body));
  }

  /** The rows since the last checkpoint, in order of arrival. @param end number of the first row to exclude */
  *rows(end: number): Iterable<ReplayedRow> {
    for (const logged of [...this.#rows]) {
      if (logged.isRefused || logged.number >= end) continue;
      const [position, saved] = rowsOf(logged.body);
      yield { logged, position, rows: saved.map((each) => loadTuple(each) as StreamRow) };
    }
  }

  /** Append rows of one message. Its publisher is acknowledged when they are committed. */
  append(position: number, rows: readonly StreamRow[]): LoggedRow {
    const logged: LoggedRow = {
      rule: this.#rule,
      kind: 'row',
      body: serialize(rows.length === 1 ? [position, saveTuple(rows[0])] : [position, rows.map(saveTuple), MANY]),
      number: this.#next++,
      rows: rows.length,
      isCommitted: false,
      isRefused: false,
      committed: () => {
        logged.isCommitted = true;
        this.#owner?.committed();
      },
      refused: () => this.#refuse(logged)
    };
    this.#note(logged);
    this.#store.add(logged);
    return logged;
  }

  /**
   * Replace the checkpoint in the commit of this turn.
   * @param state output of `v8.serialize`
   * @param end number of the first row that the state does not include
   */
  save(state: Buffer, end: number): void {
    const gone = this.#takeTo(end);
    const before = this.#parts;
    this.#parts = [];
    for (let at = 0; at < state.length; at += PART_BYTES) {
      const part = { rule: this.#rule, kind: 'state', body: state.subarray(at, at + PART_BYTES) } as const;
      this.#parts.push(part);
      this.#store.add(part);
    }
    for (const record of [...before, ...gone]) this.#store.remove(record);
  }

  /**
   * Start with an empty log. The previous content stays in the store until `forgetAside`, because the rule may return
   * to its previous definition.
   */
  setAside(): void {
    this.#aside = { parts: this.#parts, rows: this.#rows };
    this.#reset();
  }

  /** Delete the content that was set aside. */
  forgetAside(): void {
    if (this.#aside === undefined) return;
    for (const record of [...this.#aside.parts, ...this.#aside.rows]) this.#store.remove(record);
    this.#aside = undefined;
  }

  /**
   * Restore the content that was set aside, and delete what was added since.
   * @returns false if nothing was set aside
   */
  takeBack(): boolean {
    if (this.#aside === undefined) return false;
    const { parts, rows } = this.#aside;
    this.#aside = undefined;
    this.discard();
    this.#parts = [...parts];
    for (const row of rows) if (!row.isRefused) this.#note(row);
    return true;
  }

  /** Delete everything. */
  discard(): void {
    this.forgetAside();
    for (const record of [...this.#parts, ...this.#rows]) this.#store.remove(record);
    this.#reset();
  }

  #reset(): void {
    this.#parts = [];
    this.#rows = [];
    this.#bytes = 0;
    this.#length = 0;
    this.#refused = 0;
  }

  #note(row: LoggedRow): void {
    this.#rows.push(row);
    this.#bytes += sizeOf(row);
    this.#length += row.rows;
  }

  /** Refused rows would fill the memory while the store fails, so they are removed in batches. */
  #refuse(row: LoggedRow): void {
    row.isRefused = true;
    if (this.#has(row)) {
      this.#drop(row);
      this.#refused++;
      if (2 * this.#refused >= this.#rows.length) {
        this.#rows = this.#rows.filter(({ isRefused }) => !isRefused);
        this.#refused = 0;
      }
    }
    this.#owner?.committed();
  }

  /** Check whether a row was added since the last checkpoint. */
  #has({ number }: LoggedRow): boolean {
    return this.#rows.length > 0 && number >= this.#rows[0].number;
  }

  #drop(row: LoggedRow): void {
    this.#bytes -= sizeOf(row);
    this.#length -= row.rows;
  }

  #takeTo(end: number): readonly LoggedRow[] {
    let count = 0;
    while (count < this.#rows.length && this.#rows[count].number < end) count++;
    const taken = this.#rows.splice(0, count);
    for (const row of taken)
      if (row.isRefused) this.#refused--;
      else this.#drop(row);
    return taken;
  }
}

/** @returns the position of the source and the rows of a record */
function rowsOf(body: Buffer): [position: number, rows: readonly SavedTuple[]] {
  const [position, saved, many] = deserialize(body) as [number, SavedTuple | readonly SavedTuple[], typeof MANY?];
  return [position, (many === MANY ? saved : [saved]) as readonly SavedTuple[]];
}

function sizeOf({ body }: KeptStreamRecord): number {
  return body.length + RECORD_BYTES;
}
