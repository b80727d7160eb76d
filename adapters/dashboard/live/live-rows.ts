// Views whose rows change often watch the rows in view: they are read once a second, and those that have changed are sent.

import { Fault } from '../../rest/index.ts';
import type { LiveKind, OpenWatch, RowsName, WatchContext } from './live-kind.ts';

/** A row that is in view. */
export interface LiveRow {
  /** The current row; undefined if it has not changed in the last second. */
  change(nowMs: number): object | undefined;
  /** Called when the row is no longer in view. */
  close?(): void;
}

/** The rows of a watch. */
interface RowSource {
  /** Begin to show a row. */
  row(id: string): LiveRow;
  /** Called at each update of the rows in view, before the first new one, and when the watch is closed. */
  changed?(): void;
  /** More fields of an event with rows. */
  fields?(): object;
}

/** A kind of rows. */
interface RowsKind {
  /** The name of the rows in the shared state and in messages. */
  readonly of: RowsName;
  /** Maximum number of rows of all watches of the console. */
  readonly maxRows: number;
  /** The ids of the rows that are asked for. @throws Fault wrongParameter */
  readonly read: LiveKind<readonly string[]>['read'];
  open(context: WatchContext): RowSource;
}

/** Rows that change often, by their ids: those in view that have changed, once a second. */
export function liveRows({ of, maxRows, read, open }: RowsKind): LiveKind<readonly string[]> {
  return {
    read,
    open(context, ids) {
      const watch = new RowsWatch(context, of, maxRows, open(context));
      try {
        watch.update(ids);
      } catch (error) {
        watch.close();
        throw error;
      }
      return watch;
    }
  };
}

class RowsWatch implements OpenWatch<readonly string[]> {
  readonly #context: WatchContext;
  readonly #of: RowsName;
  readonly #maxRows: number;
  readonly #source: RowSource;
  readonly #rows = new Map<string, LiveRow>();
  readonly #stop: () => void;

  constructor(context: WatchContext, of: RowsName, maxRows: number, source: RowSource) {
    this.#context = context;
    this.#of = of;
    this.#maxRows = maxRows;
    this.#source = source;
    this.#stop = context.everySecond(() => this.#show());
  }

  /** Rows that stay in view continue. @throws Fault tooMany */
  update(ids: readonly string[]): void {
    const wanted = new Set(ids);
    const { rows: counts } = this.#context.shared;
    const count = counts[this.#of] - this.#rows.size + wanted.size;
    if (count > this.#maxRows)
      throw new Fault(
        'tooMany',
        `the tabs of the console together show ${this.#maxRows} ${this.#of} live, and no more can be: close one of them`
      );
    counts[this.#of] = count;
    for (const [id, row] of this.#rows) {
      if (wanted.has(id)) continue;
      row.close?.();
      this.#rows.delete(id);
    }
    this.#source.changed?.();
    for (const id of wanted) if (!this.#rows.has(id)) this.#rows.set(id, this.#source.row(id));
  }

  close(): void {
    this.#stop();
    this.update([]);
  }

  #show(): void {
    const { broker, emit } = this.#context;
    const nowMs = broker.clock.monotonic();
    const rows = [...this.#rows.values()].map((row) => row.change(nowMs)).filter((row) => row !== undefined);
    if (rows.length > 0) emit({ at: broker.clock.now(), ...this.#source.fields?.(), rows });
  }
}
