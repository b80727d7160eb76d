import type { Evaluate, JoinedRow } from '../values/tuple.ts';
import { isNull, StreamFailure, type StreamValue } from '../values/values.ts';
import { testOf } from './condition.ts';

/** Maximum number of evaluations of ON per row that a join may create. */
const PAIRS_PER_ROW = 100;

/** Types of comparable values, as bits. Null equals nothing, and belongs to all types. */
const NUMBERS = 1;
const STRINGS = 2;
const BOOLEANS = 4;
const OTHERS = 8;

/** The limits of a join for one emission, derived from the limit `joinRows`. */
export class JoinBudget {
  readonly #most: number;
  #rows = 0;
  #pairs = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** @throws StreamFailure */
  addRow(): void {
    if (++this.#rows > this.#most)
      throw new StreamFailure(
        `a join creates at most ${this.#most} rows: join on more columns, use a shorter window, or raise bounds.joinRows`
      );
  }

  /** @throws StreamFailure */
  addPair(): void {
    if (++this.#pairs > this.#most * PAIRS_PER_ROW)
      throw new StreamFailure(
        `a join compares at most ${this.#most * PAIRS_PER_ROW} pairs of rows: join on an equality of columns, use a shorter window, or raise bounds.joinRows`
      );
  }
}

/** Rows by the value of an expression. */
interface Index {
  readonly rows: ReadonlyMap<StreamValue, readonly number[]>;
  /** The types of the values. */
  readonly types: number;
}

/** The indexes of rows that stay the same for several emissions, such as those of a table. */
const indexes = new WeakMap<readonly JoinedRow[], WeakMap<Evaluate, Index>>();

/** The side of a join in which matches for the rows of the other side are searched. */
interface SearchedSide {
  readonly rows: readonly JoinedRow[];
  /** One side of an equality of ON; if absent, all rows are compared. */
  readonly key?: Evaluate;
}

/** The other side. */
interface SearchingSide {
  readonly rows: readonly JoinedRow[];
  readonly key?: Evaluate;
}

/**
 * Call a function for each pair of rows that ON accepts, in the order of the rows.
 *
 * With an equality, rows are found by its value, if all values are of types that the equality accepts; otherwise all
 * pairs are evaluated, so that comparing different types fails as specified.
 * @param join the row of a pair, by the positions of its rows
 * @param found takes the position of a row; `matches` calls its function with the positions of matching rows until it
 *   returns true
 */
export function eachMatch(
  searching: SearchingSide,
  searched: SearchedSide,
  options: {
    readonly on: Evaluate | undefined;
    readonly join: (searching: number, searched: number) => JoinedRow;
    readonly budget: JoinBudget;
  },
  found: (position: number, matches: (visit: (searched: number, row: JoinedRow) => boolean) => void) => void
): void {
  const { on, join, budget } = options;
  const accepts = on && testOf(on);
  const candidates = candidatesOf(searching, searched);
  for (let position = 0; position < searching.rows.length; position++)
    found(position, (visit) => {
      const list = candidates?.(position);
      const count = list === undefined ? searched.rows.length : list.length;
      for (let index = 0; index < count; index++) {
        budget.addPair();
        const at = list === undefined ? index : list[index];
        const row = join(position, at);
        if ((accepts === undefined || accepts(row)) && visit(at, row)) return;
      }
    });
}

const NONE: readonly number[] = [];

/** The candidates for a row; undefined: all rows. */
function candidatesOf(
  searching: SearchingSide,
  searched: SearchedSide
): ((position: number) => readonly number[]) | undefined {
  if (searching.key === undefined || searched.key === undefined) return undefined;
  const index = indexOf(searched.rows, searched.key);
  let { types } = index;
  const values: StreamValue[] = [];
  for (const row of searching.rows) {
    const value = searching.key(row);
    types |= typeOf(value);
    values.push(hashed(value));
  }
  const isOneType = (types & (types - 1)) === 0 && types !== OTHERS;
  return isOneType ? (position) => index.rows.get(values[position]) ?? NONE : undefined;
}

function indexOf(rows: readonly JoinedRow[], key: Evaluate): Index {
  const known = indexes.get(rows) ?? new WeakMap<Evaluate, Index>();
  indexes.set(rows, known);
  const found = known.get(key);
  if (found !== undefined) return found;
  const positions = new Map<StreamValue, number[]>();
  let types = 0;
  for (let position = 0; position < rows.length; position++) {
    const value = key(rows[position]);
    if (isNull(value)) continue;
    types |= typeOf(value);
    const list = positions.get(hashed(value));
    if (list === undefined) positions.set(hashed(value), [position]);
    else list.push(position);
  }
  const index = { rows: positions, types };
  known.set(key, index);
  return index;
}

function typeOf(value: StreamValue): number {
  switch (typeof value) {
    case 'number':
    case 'bigint':
      return NUMBERS;
    case 'string':
      return STRINGS;
    case 'boolean':
      return BOOLEANS;
    default:
      return isNull(value) ? 0 : OTHERS;
  }
}

/**
 * Map equal values to the same value: integers become numbers. ON decides between values that this does not
 * distinguish.
 */
function hashed(value: StreamValue): StreamValue {
  if (typeof value === 'bigint') return Number(value);
  return value;
}
