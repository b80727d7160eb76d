// Lookups can end in any order, but emissions keep the order of rows: an item waits in `#pending` until those before
// it are complete, and so does the time that has been reached behind it. A checkpoint contains the items that wait,
// and they are looked up again. An answer that arrives later is outside of the call of any operator, so its failures
// go to `failed` instead of being thrown. After `close`, answers are ignored.

import { errorText } from '../../base/errors.ts';
import type { OpenLookup } from '../types.ts';
import { type Collection, type Evaluate, type Frame, JoinedRow, StreamRow, type Tuple } from '../values/tuple.ts';
import { isNull, StreamFailure, type StreamValue, type StreamValueObject } from '../values/values.ts';
import { collectionOf } from './collection.ts';
import { testOf } from './condition.ts';
import { LookupCache } from './lookup-cache.ts';
import { JoinBudget } from './matches.ts';
import type { MakeOperator, Operator, OperatorSetup } from './operator.ts';
import { loadTuple, type SavedTuple, saveTuple } from './saved-tuples.ts';
import { streamRow } from './stream-row.ts';

interface LookupSpec {
  readonly kind: 'inner' | 'left';
  /** Position of the lookup table among the sources of the statement. */
  readonly source: number;
  readonly sources: number;
  /** The columns of the table that ON compares, and the expressions with which they are compared. */
  readonly keys: readonly string[];
  readonly values: readonly Evaluate[];
  /** The rest of the ON condition, evaluated for the joined row. */
  readonly on?: Evaluate;
  /** The open lookup table. */
  readonly lookup: Pick<OpenLookup, 'find'>;
  /** Absent if there is no cache. */
  readonly cache?: { readonly ttlMs: number; readonly keepsMissing: boolean };
  /** Maximum number of rows or windows that wait for their lookups: the option `bufferLength`. */
  readonly mostPending: number;
  /** The limit `joinRows`. */
  readonly mostRows: number;
  readonly frame: Frame;
}

/** A row or window that is waiting. */
interface Pending {
  readonly item: Collection;
  /** The time that was reached after it, before the next one. */
  time: number | undefined;
  /** The rows found for each tuple. */
  readonly found: (readonly StreamValueObject[])[];
  left: number;
  failure?: unknown;
}

interface SavedPending {
  readonly tuples: readonly SavedTuple[];
  readonly range: Collection['range'];
  readonly time: number | undefined;
}

/**
 * Make the operator that joins rows with those of a lookup table. Emissions keep the order of rows even if lookups
 * complete in another order.
 * @returns its `push` throws StreamFailure if too many rows wait; a failed lookup is reported by `failed`
 */
export function makeLookup(spec: LookupSpec): MakeOperator<Tuple | Collection, Collection> {
  return (setup) => new Lookup(spec, setup);
}

class Lookup implements Operator<Tuple | Collection> {
  readonly #spec: LookupSpec;
  readonly #setup: OperatorSetup<Collection>;
  readonly #cache: LookupCache;
  /** In order of arrival; the first one is not complete. */
  readonly #pending: Pending[] = [];
  #restored: readonly Pending[] = [];
  #isClosed = false;

  constructor(spec: LookupSpec, setup: OperatorSetup<Collection>) {
    this.#spec = spec;
    this.#setup = setup;
    this.#cache = new LookupCache(spec, setup.timers);
  }

  open(): void {
    const restored = this.#restored;
    this.#restored = [];
    for (const { item, time } of restored) {
      this.#begin(item);
      if (time !== undefined) this.flush(time);
    }
  }

  push(item: Tuple | Collection): void {
    if (this.#pending.length >= this.#spec.mostPending)
      throw new StreamFailure(
        `${this.#pending.length} rows wait for a lookup, which is too slow: use a cache, or raise the option bufferLength`
      );
    this.#begin(collectionOf(item));
  }

  flush(time: number): void {
    if (this.#pending.length === 0) this.#setup.output.flush(time);
    else this.#pending[this.#pending.length - 1].time = time;
  }

  close(): void {
    this.#isClosed = true;
  }

  save(): SavedPending[] {
    return [...this.#restored, ...this.#pending].map(({ item, time }) => ({
      tuples: item.tuples.map(saveTuple),
      range: item.range,
      time
    }));
  }

  load(state: unknown): void {
    this.#restored = (state as SavedPending[]).map(({ tuples, range, time }) => {
      return { item: { tuples: tuples.map(loadTuple), range }, time, found: [], left: 0 };
    });
  }

  #begin(item: Collection): void {
    const { tuples, range } = item;
    this.#spec.frame.range = range;
    const keys = tuples.map((tuple) => this.#spec.values.map((value) => value(tuple)));
    const entry: Pending = { item, time: undefined, found: new Array(tuples.length), left: tuples.length };
    this.#pending.push(entry);
    for (const [index, values] of keys.entries()) this.#find(entry, index, values);
    this.#drain();
  }

  #find(entry: Pending, index: number, values: readonly StreamValue[]): void {
    const settle = (rows: readonly StreamValueObject[]) => {
      entry.found[index] = rows;
      entry.left--;
    };
    const fail = (reason: unknown) => {
      entry.failure = reason;
      settle([]);
    };
    if (values.some(isNull)) {
      settle([]); // null equals nothing
      return;
    }
    try {
      const rows = this.#cache.find(values);
      if (!(rows instanceof Promise)) settle(rows);
      else void rows.then(settle, fail).then(() => this.#drainLater());
    } catch (error) {
      fail(error);
    }
  }

  /** The graph is not on the call stack here, so failures are reported to it. */
  #drainLater(): void {
    if (this.#isClosed) return;
    try {
      this.#drain();
    } catch (error) {
      this.#setup.failed(error);
    }
  }

  #drain(): void {
    while (this.#pending.length > 0 && this.#pending[0].left === 0) {
      const entry = this.#pending.shift() as Pending;
      if (entry.failure === undefined) this.#emit(entry.item, entry.found);
      else this.#setup.failed(failureOf(entry.failure), entry.item.range.cause);
      if (entry.time !== undefined) this.#setup.output.flush(entry.time);
    }
  }

  #emit({ tuples, range }: Collection, found: readonly (readonly StreamValueObject[])[]): void {
    const { kind, on, source, mostRows, frame } = this.#spec;
    const accepts = on && testOf(on);
    const budget = new JoinBudget(mostRows);
    const rows: JoinedRow[] = [];
    frame.range = range;
    try {
      for (const [index, tuple] of tuples.entries()) {
        const left = this.#joined(tuple);
        const before = rows.length;
        for (const values of found[index]) {
          const parts = left.parts.slice();
          parts[source] = new StreamRow(values, tuple.timestamp);
          const row = new JoinedRow(parts, [...left.order, source], left.slots.slice());
          if (accepts !== undefined && !accepts(row)) continue;
          budget.addRow();
          rows.push(row);
        }
        if (rows.length === before && kind === 'left') rows.push(left);
      }
    } catch (error) {
      this.#setup.failed(error, range.cause);
      return;
    }
    if (rows.length > 0) this.#setup.output.push({ tuples: rows, range });
  }

  /** A row that is not joined yet belongs to the stream after FROM. */
  #joined(tuple: Tuple): JoinedRow {
    return tuple instanceof JoinedRow ? tuple : streamRow(tuple as StreamRow, 0, this.#spec.sources);
  }
}

function failureOf(reason: unknown): StreamFailure {
  if (reason instanceof StreamFailure) return reason;
  return new StreamFailure(`lookup failed: ${errorText(reason)}`, reason);
}
