import type { Collection, JoinedRow, StreamRow, Tuple } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';
import { collectionOf } from './collection.ts';
import type { MakeOperator, Operator, OperatorSetup } from './operator.ts';
import { loadTuple, type SavedTuple, saveTuple } from './saved-tuples.ts';
import { streamRow } from './stream-row.ts';

/**
 * A collection with the rows of tables, by the position of the table. The array stays the same until its table changes.
 */
export interface AlignedCollection extends Collection {
  readonly tables: ReadonlyMap<number, readonly JoinedRow[]>;
}

/** A table of a statement. */
interface TableSpec {
  /** Position among the sources of the statement. */
  readonly source: number;
  /**
   * RETAIN_SIZE: number of latest rows in the table. `all`: the rows up to its end, at which they replace the previous
   * ones.
   */
  readonly retain: number | 'all';
}

interface AlignerSpec {
  readonly sources: number;
  /** In the order of the ports, from port 1 on. Port 0 is that of the stream or the window. */
  readonly tables: readonly TableSpec[];
  /** The limit `windowRows`, for each table. */
  readonly mostRows: number;
}

interface SavedTable {
  readonly rows: readonly SavedTuple[];
  readonly coming: readonly SavedTuple[];
}

/**
 * Make the operator that adds the current rows of tables to each row or window. Tables never trigger evaluations.
 * `flush` at the port of a table signals that its source has ended, with any time [stream rules 5.4].
 */
export function makeJoinAligner(spec: AlignerSpec): MakeOperator<Tuple | Collection, AlignedCollection> {
  return (setup) => new JoinAligner(spec, setup);
}

class JoinAligner implements Operator<Tuple | Collection> {
  readonly #setup: OperatorSetup<AlignedCollection>;
  readonly #tables: readonly Table[];

  constructor(spec: AlignerSpec, setup: OperatorSetup<AlignedCollection>) {
    this.#setup = setup;
    this.#tables = spec.tables.map((table) => new Table(table, spec));
  }

  push(item: Tuple | Collection, port: number): void {
    if (port > 0) {
      this.#tables[port - 1].add(item as StreamRow);
      return;
    }
    const tables = new Map(this.#tables.map((table) => [table.source, table.rows()]));
    this.#setup.output.push({ ...collectionOf(item), tables });
  }

  flush(time: number, port: number): void {
    if (port > 0) this.#tables[port - 1].end();
    else this.#setup.output.flush(time);
  }

  save(): SavedTable[] {
    return this.#tables.map((table) => table.save());
  }

  load(state: unknown): void {
    for (const [index, saved] of (state as SavedTable[]).entries()) this.#tables[index].load(saved);
  }
}

class Table {
  readonly source: number;
  readonly #retain: number | 'all';
  readonly #sources: number;
  readonly #most: number;
  readonly #order: readonly number[];
  /** The joined rows; a new array after each change, created when needed. */
  #rows: readonly JoinedRow[] = [];
  /** For a table with RETAIN_SIZE, all rows; otherwise the rows after the last end. */
  #coming: JoinedRow[] = [];
  #hasChanged = false;

  constructor({ source, retain }: TableSpec, { sources, mostRows }: AlignerSpec) {
    this.source = source;
    this.#retain = retain;
    this.#sources = sources;
    this.#most = mostRows;
    this.#order = [source];
  }

  /** @throws StreamFailure */
  add(row: StreamRow): void {
    if (this.#retain === 'all' && this.#coming.length >= this.#most)
      throw new StreamFailure(`a table has at most ${this.#most} rows: use a smaller one, or raise bounds.windowRows`);
    this.#coming.push(streamRow(row, this.source, this.#sources, this.#order));
    if (this.#retain === 'all') return;
    const most = Math.min(this.#retain, this.#most);
    // Rows are dropped in batches, so that the cost of each row is constant.
    if (this.#coming.length >= 2 * most) this.#coming = this.#coming.slice(-most);
    this.#hasChanged = true;
  }

  end(): void {
    if (this.#retain !== 'all') return;
    this.#rows = this.#coming;
    this.#coming = [];
  }

  rows(): readonly JoinedRow[] {
    if (this.#hasChanged) this.#rows = this.#coming.slice(-Math.min(this.#retain as number, this.#most));
    this.#hasChanged = false;
    return this.#rows;
  }

  save(): SavedTable {
    return { rows: this.rows().map(saveTuple), coming: this.#coming.map(saveTuple) };
  }

  load({ rows, coming }: SavedTable): void {
    this.#rows = rows.map((row) => loadTuple(row) as JoinedRow);
    this.#coming = coming.map((row) => loadTuple(row) as JoinedRow);
  }
}
