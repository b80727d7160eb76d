import { deserialize, serialize } from 'node:v8';
import type { KeptStreamRecord, StreamRecordStore } from '../host.ts';
import { loadTuple, type SavedTuple, saveTuple } from '../operators/saved-tuples.ts';
import type { Row } from '../tuple.ts';

/** Size of the parts of a checkpoint in the store, in bytes. */
const PART_BYTES = 131_072;
/** Approximate size of a record beside its body, in bytes. */
const RECORD_BYTES = 32;

/** A row in the log. */
export interface LoggedRow extends KeptStreamRecord {
  /** It is in the store. */
  isCommitted: boolean;
  /** The store has refused it, and its publisher was told. */
  isRefused: boolean;
}

/** A row of the log, as it reaches the rule again. */
export interface ReplayedRow {
  /** Position of its source. */
  readonly position: number;
  readonly row: Row;
}

/** What the store has of a rule: its last checkpoint, and the rows that have arrived since then. */
export class RuleLog {
  readonly #rule: string;
  readonly #store: StreamRecordStore;
  #parts: KeptStreamRecord[] = [];
  #rows: LoggedRow[] = [];
  /** Number of the first row. Rows are numbered from 0, in the order in which they arrive. */
  #first = 0;
  #bytes = 0;

  /** It begins with the records that the store had at the start. */
  constructor(rule: string, store: StreamRecordStore) {
    this.#rule = rule;
    this.#store = store;
    for (const record of store.take(rule)) {
      if (record.kind === 'state') this.#parts.push(record);
      else this.#note(Object.assign(record, { isCommitted: true, isRefused: false }));
    }
  }

  /** Number of rows since the last checkpoint. */
  get length(): number {
    return this.#rows.length;
  }

  /** Number of the next row. */
  get end(): number {
    return this.#first + this.#rows.length;
  }

  /** A row by its number. */
  at(number: number): LoggedRow | undefined {
    return this.#rows[number - this.#first];
  }

  /** Approximate size of these rows in the store. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The state of the last checkpoint, as `v8.serialize` has written it; undefined: there is none. */
  get state(): Buffer | undefined {
    return this.#parts.length === 0 ? undefined : Buffer.concat(this.#parts.map(({ body }) => body));
  }

  /** The rows since the last checkpoint, in the order in which they arrived. */
  *rows(): Iterable<ReplayedRow> {
    for (const { body, isRefused } of this.#rows) {
      if (isRefused) continue;
      const [position, saved] = deserialize(body) as [number, SavedTuple];
      yield { position, row: loadTuple(saved) as Row };
    }
  }

  /** Add a row. Its publisher is answered when it is in the store. @param committed called when it is there, or has been refused */
  append(position: number, row: Row, committed?: () => void): LoggedRow {
    const logged: LoggedRow = {
      rule: this.#rule,
      kind: 'row',
      body: serialize([position, saveTuple(row)]),
      isCommitted: false,
      isRefused: false,
      committed() {
        logged.isCommitted = true;
        committed?.();
      },
      refused() {
        logged.isRefused = true;
        committed?.();
      }
    };
    this.#note(logged);
    this.#store.add(logged);
    return logged;
  }

  /**
   * Replace the checkpoint. The changes are in the commit of this turn.
   * @param state what `v8.serialize` has written
   * @param end number of the first row that it has not seen
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

  /** Delete everything. */
  discard(): void {
    for (const record of [...this.#parts, ...this.#rows]) this.#store.remove(record);
    this.#parts = [];
    this.#first = this.end;
    this.#rows = [];
    this.#bytes = 0;
  }

  #note(row: LoggedRow): void {
    this.#rows.push(row);
    this.#bytes += row.body.length + RECORD_BYTES;
  }

  #takeTo(end: number): readonly LoggedRow[] {
    const taken = this.#rows.splice(0, Math.max(0, end - this.#first));
    this.#first += taken.length;
    for (const { body } of taken) this.#bytes -= body.length + RECORD_BYTES;
    return taken;
  }
}
