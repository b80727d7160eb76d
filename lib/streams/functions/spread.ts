import type { Accumulator } from '../function.ts';
import { isNull, isNumber, type StreamValue } from '../values/values.ts';
import { invalidArgument, sumOf, Totals } from './totals.ts';

/** The measure of dispersion to compute. */
export interface SpreadKind {
  readonly name: string;
  /** If true, the measure is that of a sample: divided by one less than the number of values. */
  readonly isSample: boolean;
  readonly isRoot: boolean;
}

function spreadOf({ isSample, isRoot }: SpreadKind, count: number, squares: number): StreamValue {
  const divisor = isSample ? count - 1 : count;
  if (divisor < 1) return null;
  const variance = Math.max(squares, 0) / divisor;
  return isRoot ? Math.sqrt(variance) : variance;
}

/** Variance and standard deviation of a group whose rows leave all at once (Welford). */
export class Spread implements Accumulator {
  readonly #kind: SpreadKind;
  #count = 0;
  #mean = 0;
  /** Sum of the squares of the differences from the mean. */
  #squares = 0;

  constructor(kind: SpreadKind, [count, mean, squares]: readonly number[] = [0, 0, 0]) {
    this.#kind = kind;
    this.#count = count;
    this.#mean = mean;
    this.#squares = squares;
  }

  add(args: readonly StreamValue[]): void {
    const value = args[0];
    if (isNull(value)) return;
    if (!isNumber(value)) throw invalidArgument(this.#kind.name, value);
    const number = Number(value);
    const difference = number - this.#mean;
    this.#mean += difference / ++this.#count;
    this.#squares += difference * (number - this.#mean);
  }

  result(): StreamValue {
    return spreadOf(this.#kind, this.#count, this.#squares);
  }

  save(): unknown {
    return [this.#count, this.#mean, this.#squares];
  }
}

interface SavedSliding {
  readonly base: number;
  readonly count: number;
  readonly sum: unknown;
  readonly squares: unknown;
}

/** The same for rows that leave one by one: sums of the differences from the first value, and of their squares. */
export class SlidingSpread implements Accumulator {
  readonly #kind: SpreadKind;
  #base = 0;
  #count = 0;
  #sum = new Totals('', sumOf, true);
  #squares = new Totals('', sumOf, true);

  constructor(kind: SpreadKind) {
    this.#kind = kind;
  }

  add(args: readonly StreamValue[]): void {
    const value = args[0];
    if (isNull(value)) return;
    if (!isNumber(value)) throw invalidArgument(this.#kind.name, value);
    if (this.#count++ === 0) this.#begin(Number(value));
    const difference = Number(value) - this.#base;
    this.#sum.add([difference]);
    this.#squares.add([difference * difference]);
  }

  remove(args: readonly StreamValue[]): void {
    const value = args[0];
    if (isNull(value)) return;
    this.#count--;
    const difference = Number(value) - this.#base;
    this.#sum.remove([difference]);
    this.#squares.remove([difference * difference]);
  }

  result(): StreamValue {
    if (this.#count === 0) return null;
    const sum = this.#sum.result() as number;
    return spreadOf(this.#kind, this.#count, (this.#squares.result() as number) - (sum * sum) / this.#count);
  }

  save(): SavedSliding {
    return { base: this.#base, count: this.#count, sum: this.#sum.save(), squares: this.#squares.save() };
  }

  static load(kind: SpreadKind, saved: unknown): Accumulator {
    if (Array.isArray(saved)) return new Spread(kind, saved);
    const { base, count, sum, squares } = saved as SavedSliding;
    const spread = new SlidingSpread(kind);
    spread.#base = base;
    spread.#count = count;
    spread.#sum = Totals.load('', sumOf, sum);
    spread.#squares = Totals.load('', sumOf, squares);
    return spread;
  }

  #begin(base: number): void {
    this.#base = Number.isFinite(base) ? base : 0;
    this.#sum = new Totals('', sumOf, true);
    this.#squares = new Totals('', sumOf, true);
  }
}
