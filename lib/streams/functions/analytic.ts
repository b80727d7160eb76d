// Functions that remember earlier rows, with one state for each partition. `next` is called before WHERE, for each
// row whose condition WHEN is true, so the state does not depend on what a rule emits. States are in checkpoints:
// what `save` returns must be readable by `load` in later releases.

import type { AnalyticFunction, AnalyticState, ArgumentNames } from '../function.ts';
import { describe, isNull, StreamFailure, type StreamValue, type StreamValueObject } from '../values/values.ts';
import { booleanOf, floatOf, indexOf } from './arguments.ts';
import { MAX_ELEMENTS } from './bounds.ts';
import { Comparisons } from './equality.ts';

/** An analytic function whose state is one value that can be saved. */
function analytic(
  row: Pick<AnalyticFunction, 'name' | 'params' | 'about' | 'check' | 'wildcard'>,
  // biome-ignore lint/suspicious/noExplicitAny: each function saves what it loads
  make: (state: any, names: ArgumentNames) => AnalyticState
): AnalyticFunction {
  return {
    ...row,
    kind: 'analytic',
    family: 'analytic',
    make: (_, names) => make(undefined, names),
    load: (_, names, state) => make(state, names)
  };
}

function isSame(left: StreamValue, right: StreamValue): boolean {
  return new Comparisons().isSame(left, right);
}

/** The last values of lag(), in a ring buffer. */
interface Ring {
  /** Capacity; -1 before the first row. */
  size: number;
  values: StreamValue[];
  /** Index of the oldest value, once there are `size` values. */
  oldest: number;
}

function lag(saved: Ring | undefined): AnalyticState {
  const ring = saved ?? { size: -1, values: [], oldest: 0 };
  const due = (args: readonly StreamValue[]): StreamValue => {
    if (ring.size === -1) ring.size = args.length < 2 ? 1 : countOf(args[1]);
    const isFull = ring.size > 0 && ring.values.length === ring.size;
    return isFull ? (ring.values[ring.oldest] ?? null) : (args[2] ?? null);
  };
  return {
    next(args) {
      const result = due(args);
      const isIgnored = isNull(args[0]) && (args.length < 4 || booleanOf(args[3], 'the fourth arg is not a bool'));
      if (isIgnored || ring.size === 0) return result;
      if (ring.values.length < ring.size) ring.values.push(args[0]);
      else {
        ring.values[ring.oldest] = args[0];
        ring.oldest = (ring.oldest + 1) % ring.size;
      }
      return result;
    },
    skipped: due,
    save: () => ({ ...ring, values: [...ring.values] })
  };
}

function countOf(value: StreamValue): number {
  const count = indexOf(value);
  if (count < 0 || count > MAX_ELEMENTS)
    throw new StreamFailure(`lag: ${count} is not a number of rows from 0 to ${MAX_ELEMENTS}`);
  return count;
}

function checkLag([, count]: readonly (StreamValue | undefined)[]): string | undefined {
  return typeof count === 'bigint' && count < 0n ? 'the index should not be a negative integer' : undefined;
}

function latest(saved: { value: StreamValue } | undefined): AnalyticState {
  let value: StreamValue = saved?.value;
  return {
    next(args) {
      if (!isNull(args[0])) value = args[0];
      return value ?? args[1] ?? null;
    },
    skipped: (args) => value ?? args[1] ?? null,
    save: () => ({ value })
  };
}

/** The columns of the previous rows, by name. */
export class PreviousColumns {
  readonly #values: Map<string, StreamValue>;

  constructor(saved: Iterable<readonly [name: string, value: StreamValue]> = []) {
    this.#values = new Map(saved);
  }

  /**
   * Compare a row with the previous ones, and remember it. An absent column is null.
   * @param changed called with each change
   */
  change(row: StreamValueObject, isNullIgnored: boolean, changed: (name: string, value: StreamValue) => void): void {
    const comparisons = new Comparisons();
    const compare = (name: string, value: StreamValue) => {
      if ((isNullIgnored && isNull(value)) || comparisons.isSame(value, this.#values.get(name))) return;
      this.#values.set(name, value);
      changed(name, value);
    };
    for (const name of Object.keys(row)) compare(name, row[name]);
    if (!isNullIgnored) for (const name of this.#values.keys()) if (!Object.hasOwn(row, name)) compare(name, null);
  }

  /** The state for a checkpoint. */
  save(): (readonly [name: string, value: StreamValue])[] {
    return [...this.#values];
  }
}

/** Previous values, by the index of their argument. */
class PreviousValues {
  readonly values: StreamValue[];

  constructor(values: StreamValue[]) {
    this.values = values;
  }

  /**
   * Check whether a value differs from the previous one, and replace it. A first value that is null is not a change.
   */
  change(index: number, value: StreamValue, isNullIgnored: boolean): boolean {
    if ((isNullIgnored && isNull(value)) || isSame(value, this.values[index])) return false;
    this.values[index] = value;
    return true;
  }
}

function changedColumn(saved: StreamValue[] | undefined): AnalyticState {
  const previous = new PreviousValues(saved ?? []);
  return {
    next: ([isNullIgnored, value]) =>
      previous.change(0, value, booleanOf(isNullIgnored, 'first arg is not a bool')) ? value : null,
    skipped: () => null,
    save: () => [...previous.values]
  };
}

/** The state of `had_changed`: values by the index of their argument, and the columns of `*`. */
interface SavedChanges {
  readonly values: StreamValue[];
  readonly columns: readonly (readonly [name: string, value: StreamValue])[];
}

function hadChanged(saved: SavedChanges | StreamValue[] | undefined, names: ArgumentNames): AnalyticState {
  const { values, columns } =
    saved === undefined || Array.isArray(saved) ? { values: saved ?? [], columns: [] } : saved;
  const previous = new PreviousValues(values);
  const row = new PreviousColumns(columns);
  return {
    next(args) {
      const isNullIgnored = booleanOf(args[0], 'first arg is not a bool');
      let hasChanged = false;
      for (let index = 1; index < args.length; index++)
        if (index < names.length && names[index] === undefined) {
          row.change(args[index] as StreamValueObject, isNullIgnored, () => (hasChanged = true));
        } else if (previous.change(index - 1, args[index], isNullIgnored)) hasChanged = true;
      return hasChanged;
    },
    skipped: () => false,
    save: (): SavedChanges => ({ values: [...previous.values], columns: row.save() })
  };
}

interface Monitored {
  previous: StreamValue;
  isFirst: boolean;
  captured: StreamValue;
}

/**
 * Watch a value for a change to a target.
 * @param args value, optional target, and whether null is ignored
 * @returns whether the value has changed to the target
 */
function hasChangedTo(state: Monitored, args: readonly StreamValue[]): boolean {
  const [value, target] = args;
  const isNullIgnored = args.length > 2 && booleanOf(args[2], 'the arg to ignore null is not a bool');
  if (isNullIgnored && isNull(value)) return false;
  const hasChanged = state.isFirst || !isSame(value, state.previous);
  state.previous = value;
  state.isFirst = false;
  return hasChanged && (args.length < 2 || isSame(value, target));
}

function monitored(saved: Monitored | undefined): Monitored {
  return saved ?? { previous: null, isFirst: true, captured: null };
}

function changeTo(saved: Monitored | undefined): AnalyticState {
  const state = monitored(saved);
  return { next: (args) => hasChangedTo(state, args), skipped: () => false, save: () => ({ ...state }) };
}

function changeCapture(saved: Monitored | undefined): AnalyticState {
  const state = monitored(saved);
  return {
    next([value, ...watched]) {
      if (hasChangedTo(state, watched)) state.captured = value;
      return state.captured;
    },
    save: () => ({ ...state })
  };
}

function consecutiveCount(saved: { count: number } | undefined): AnalyticState {
  let count = saved?.count ?? 0;
  return {
    next([condition]) {
      count = isMet(condition) ? count + 1 : 0;
      return BigInt(count);
    },
    save: () => ({ count })
  };
}

function consecutiveStart(saved: { isMet: boolean; value: StreamValue } | undefined): AnalyticState {
  const state = saved ?? { isMet: false, value: null };
  return {
    next([condition, value]) {
      const isNowMet = isMet(condition);
      if (!isNowMet) state.value = null;
      else if (!state.isMet) state.value = value;
      state.isMet = isNowMet;
      return state.value;
    },
    save: () => ({ ...state })
  };
}

function isMet(condition: StreamValue): boolean {
  return !isNull(condition) && booleanOf(condition, 'the condition is not a bool');
}

/** The state of acc_* functions. */
interface Accumulated {
  count: number;
  sum: number;
  result: number;
  hasBegun: boolean;
}

/**
 * @param add updates the state with a number
 * @param resultOf the result; null and other rows that are not added do not change it
 */
function accumulating(
  name: string,
  about: string,
  add: (state: Accumulated, value: StreamValue) => void,
  resultOf: (state: Accumulated) => StreamValue
): AnalyticFunction {
  const row = {
    name,
    params: ['any', 'boolean?', 'boolean?'] as const,
    about: `${about} Optionally starts when the second argument is true, and ends when the third is.`,
    check: (literals: readonly (StreamValue | undefined)[]) =>
      literals.length === 2 ? 'Expect 1/3 arguments but found 2.' : undefined
  };
  return analytic(row, (saved: Accumulated | undefined) => {
    const state = saved ?? { count: 0, sum: 0, result: 0, hasBegun: false };
    return {
      next(args) {
        if (args.length < 3) add(state, args[0]);
        else {
          if (!state.hasBegun) Object.assign(state, { count: 0, sum: 0, result: 0 });
          if (isNull(args[1]) ? false : booleanOf(args[1], 'onBegin should be boolean')) state.hasBegun = true;
          if (state.hasBegun) add(state, args[0]);
          if (isNull(args[2]) ? false : booleanOf(args[2], 'onReset should be boolean')) state.hasBegun = false;
        }
        return resultOf(state);
      },
      save: () => ({ ...state })
    };
  });
}

function numberOf(value: StreamValue): number {
  if (typeof value !== 'number' && typeof value !== 'bigint')
    throw new StreamFailure(`the value should be number, but got ${describe(value)}`);
  return floatOf(value);
}

/** Add numbers, ignoring null. */
function adding(compute: (state: Accumulated, number: number) => number) {
  return (state: Accumulated, value: StreamValue): void => {
    if (isNull(value)) return;
    const number = numberOf(value);
    state.result = compute(state, number);
    state.sum += number;
    state.count++;
  };
}

export const ANALYTIC_FUNCTIONS: readonly AnalyticFunction[] = [
  analytic(
    {
      name: 'lag',
      params: ['any', 'bigint?', 'any?', 'boolean?'],
      about:
        'lag(value, n, default, ignoreNull): the value of n rows before, by default of the previous one; rows whose value is null are skipped, unless ignoreNull is false.',
      check: checkLag
    },
    lag
  ),
  analytic(
    { name: 'latest', params: ['any', 'any?'], about: 'The last value that is not null, or the second argument.' },
    latest
  ),
  analytic(
    {
      name: 'changed_col',
      params: ['boolean', 'any'],
      about:
        'The value if it differs from the previous one, or else null; the first argument says whether null is ignored.'
    },
    changedColumn
  ),
  analytic(
    {
      name: 'had_changed',
      params: ['boolean', 'any', 'any...'],
      wildcard: 'rows',
      about:
        'Whether any value differs from the previous one; the first argument says whether null is ignored. * stands for all columns.'
    },
    hadChanged
  ),
  analytic(
    {
      name: 'change_to',
      params: ['any', 'any?', 'boolean?'],
      about: 'change_to(value, target, ignoreNull): whether a value has changed, to a target if there is one.'
    },
    changeTo
  ),
  analytic(
    {
      name: 'change_capture',
      params: ['any', 'any', 'any?', 'boolean?'],
      about:
        'change_capture(kept, value, target, ignoreNull): the first argument as it was when the second last changed, to a target if there is one.'
    },
    changeCapture
  ),
  analytic(
    {
      name: 'consecutive_count',
      params: ['boolean'],
      about: 'Number of consecutive rows for which a condition is true.'
    },
    consecutiveCount
  ),
  analytic(
    {
      name: 'consecutive_start',
      params: ['boolean', 'any'],
      about: 'The second argument as it was when the condition became true; null while it is false.'
    },
    consecutiveStart
  ),
  accumulating(
    'acc_sum',
    'Sum of all numbers so far, as a float.',
    adding(({ sum }, number) => sum + number),
    ({ result }) => result
  ),
  accumulating(
    'acc_max',
    'Greatest number so far, as a float.',
    adding(({ count, result }, number) => (count === 0 ? number : Math.max(result, number))),
    ({ result }) => result
  ),
  accumulating(
    'acc_min',
    'Least number so far, as a float.',
    adding(({ count, result }, number) => (count === 0 ? number : Math.min(result, number))),
    ({ result }) => result
  ),
  accumulating(
    'acc_avg',
    'Average of all numbers so far, as a float.',
    adding(({ sum, count }, number) => (sum + number) / (count + 1)),
    ({ result }) => result
  ),
  accumulating(
    'acc_count',
    'Number of all values so far that are not null.',
    (state, value) => {
      if (!isNull(value)) state.count++;
    },
    ({ count }) => BigInt(count)
  )
];
