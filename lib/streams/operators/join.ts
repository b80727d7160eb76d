import type { JoinKind } from '../../sql/tree.ts';
import { type Collection, type Evaluate, type Frame, JoinedRow, type StreamRow, type Tuple } from '../values/tuple.ts';
import type { AlignedCollection } from './join-aligner.ts';
import { eachMatch, JoinBudget } from './matches.ts';
import type { MakeOperator } from './operator.ts';
import { joinSlots } from './stream-row.ts';

/** A JOIN of a statement. */
interface JoinStep {
  readonly kind: JoinKind;
  /** Position of the joined stream or table among the sources of the statement. */
  readonly source: number;
  /** The whole condition, evaluated for the joined row; if absent, all pairs match. */
  readonly on?: Evaluate;
  /**
   * An equality that ON implies, if there is one: the side of the earlier sources and that of the joined one. It makes
   * the join faster.
   */
  readonly equality?: { readonly left: Evaluate; readonly right: Evaluate };
}

interface JoinSpec {
  /** Position of the source after FROM. */
  readonly first: number;
  readonly steps: readonly JoinStep[];
  /** The option `joinRows`. */
  readonly rows: 'merged' | 'pairs';
  /** The limit `joinRows`. */
  readonly mostRows: number;
  readonly frame: Frame;
}

/**
 * Make the operator that joins the rows of each collection, from left to right. Its input is rows of `streamRow`, with
 * tables added by a join aligner.
 *
 * With `merged`, a row of LEFT, RIGHT, FULL and CROSS is joined with its first match only, as in the original [stream
 * rules 5.4]. If no row remains, nothing is emitted.
 * @returns its `push` throws StreamFailure
 */
export function makeJoin(spec: JoinSpec): MakeOperator<Collection | AlignedCollection, Collection> {
  return ({ output }) => ({
    push(collection) {
      const { tuples, range } = collection;
      const tables = 'tables' in collection ? collection.tables : undefined;
      spec.frame.range = range;
      const budget = new JoinBudget(spec.mostRows);
      const rowsOf = (source: number) => tables?.get(source) ?? rowsOfStream(tuples, source);
      let rows = rowsOf(spec.first);
      let order: readonly number[] = [spec.first];
      for (const step of spec.steps) {
        order = step.kind === 'right' ? [step.source, ...order] : [...order, step.source];
        rows = new StepRun(step, { order, isMerged: spec.rows === 'merged', budget }).join(rows, rowsOf(step.source));
      }
      if (rows.length > 0) output.push({ tuples: rows, range });
    }
  });
}

function rowsOfStream(tuples: readonly Tuple[], source: number): readonly JoinedRow[] {
  return (tuples as readonly JoinedRow[]).filter(({ parts }) => parts[source] !== undefined);
}

interface StepOptions {
  /** The order in which columns are looked up. */
  readonly order: readonly number[];
  readonly isMerged: boolean;
  readonly budget: JoinBudget;
}

/** One join of one collection. */
class StepRun {
  readonly #step: JoinStep;
  readonly #options: StepOptions;
  readonly #rows: JoinedRow[] = [];

  constructor(step: JoinStep, options: StepOptions) {
    this.#step = step;
    this.#options = options;
  }

  join(left: readonly JoinedRow[], right: readonly JoinedRow[]): readonly JoinedRow[] {
    const { kind } = this.#step;
    if (kind === 'right') this.#outer(right, left, (a, b) => this.#pair(left[b], right[a]));
    else if (kind === 'full') this.#full(left, right);
    else this.#outer(left, right, (a, b) => this.#pair(left[a], right[b]));
    return this.#rows;
  }

  /**
   * Add the matches of the rows of a side and, for an outer join, the rows without a match.
   * @returns the rows of the other side that match
   */
  #outer(
    rows: readonly JoinedRow[],
    others: readonly JoinedRow[],
    join: (position: number, other: number) => JoinedRow
  ): ReadonlySet<number> {
    const { kind, on, equality } = this.#step;
    const { isMerged, budget } = this.#options;
    const isFlipped = kind === 'right';
    const isSingle = isMerged && kind !== 'inner';
    const keepsAll = kind === 'left' || kind === 'right' || kind === 'full' || (kind === 'cross' && isMerged);
    const matched = new Set<number>();
    const searching = { rows, key: isFlipped ? equality?.right : equality?.left };
    const searched = { rows: others, key: isFlipped ? equality?.left : equality?.right };
    eachMatch(searching, searched, { on, join, budget }, (position, matches) => {
      let isAlone = true;
      matches((other, row) => {
        if (kind === 'full') matched.add(other);
        if (isAlone || !isSingle) this.#add(row);
        isAlone = false;
        return isSingle && kind !== 'full';
      });
      if (isAlone && keepsAll) this.#add(this.#ordered(rows[position]));
    });
    return matched;
  }

  #full(left: readonly JoinedRow[], right: readonly JoinedRow[]): void {
    const matched = this.#outer(left, right, (a, b) => this.#pair(left[a], right[b]));
    for (let position = 0; position < right.length; position++)
      if (!matched.has(position)) this.#add(this.#ordered(right[position]));
  }

  #add(row: JoinedRow): void {
    this.#options.budget.addRow();
    this.#rows.push(row);
  }

  /** A row of one side only. */
  #ordered({ parts, slots }: JoinedRow): JoinedRow {
    return new JoinedRow(parts, this.#options.order, slots);
  }

  #pair(left: JoinedRow, right: JoinedRow): JoinedRow {
    const { source } = this.#step;
    const parts = left.parts.slice();
    parts[source] = right.parts[source] as StreamRow;
    return new JoinedRow(parts, this.#options.order, joinSlots(left.slots, right.slots));
  }
}
