import type { Accumulator } from '../function.ts';
import { describe, integer, isNull, StreamFailure, type StreamValue } from '../values/values.ts';

/**
 * Floats from here on are summed on a smaller scale, so that their sum does not become infinite and remain so after
 * they leave again.
 */
const LARGE = 2 ** 960;
const SCALE = 2 ** -100;

/**
 * A sum from which floats can be removed. The rounding errors are summed, too (Neumaier), so that they do not grow with
 * the length of the stream.
 */
class ReversibleSum {
  #sum = 0;
  #errors = 0;

  add(value: number): void {
    const sum = this.#sum + value;
    this.#errors += Math.abs(this.#sum) >= Math.abs(value) ? this.#sum - sum + value : value - sum + this.#sum;
    this.#sum = sum;
  }

  get value(): number {
    return this.#sum + this.#errors;
  }

  save(): readonly number[] {
    return [this.#sum, this.#errors];
  }

  load([sum, errors]: readonly number[]): void {
    this.#sum = sum;
    this.#errors = errors;
  }
}

/** The floats of a window whose rows leave one by one. */
class SlidingFloats {
  readonly #small = new ReversibleSum();
  readonly #large = new ReversibleSum();
  /** Number of values that are NaN. */
  #nan = 0;
  #plus = 0;
  #minus = 0;

  change(value: number, sign: 1 | -1): void {
    if (Number.isFinite(value)) {
      if (Math.abs(value) < LARGE) this.#small.add(sign * value);
      else this.#large.add(sign * value * SCALE);
    } else if (Number.isNaN(value)) this.#nan += sign;
    else if (value > 0) this.#plus += sign;
    else this.#minus += sign;
  }

  get value(): number {
    if (this.#nan > 0 || (this.#plus > 0 && this.#minus > 0)) return Number.NaN;
    if (this.#plus > 0) return Number.POSITIVE_INFINITY;
    if (this.#minus > 0) return Number.NEGATIVE_INFINITY;
    const large = this.#large.value;
    return large === 0 ? this.#small.value : (large + this.#small.value * SCALE) / SCALE;
  }

  save(): readonly (number | readonly number[])[] {
    return [this.#small.save(), this.#large.save(), this.#nan, this.#plus, this.#minus];
  }

  load([small, large, nan, plus, minus]: ReturnType<SlidingFloats['save']>): void {
    this.#small.load(small as readonly number[]);
    this.#large.load(large as readonly number[]);
    this.#nan = nan as number;
    this.#plus = plus as number;
    this.#minus = minus as number;
  }
}

/** The state of `Totals` in a checkpoint. */
interface SavedTotals {
  readonly integers: number | bigint;
  readonly integerCount: number;
  readonly floatCount: number;
  readonly floats: number;
  readonly sliding: ReturnType<SlidingFloats['save']> | undefined;
}

/** Check whether an integer has more than 64 bits, so that it counts as a float. */
function isWide(value: bigint): boolean {
  return !Number.isSafeInteger(Number(value)) && integer(value) !== value;
}

/** Computes the result of `sum` and `avg` from their state. Called only if there is a value. */
export type TotalResult = (
  integers: bigint,
  floats: number,
  counts: { integers: number; floats: number }
) => StreamValue;

/** Sum and count of numbers. Nulls are not counted. Integers are summed as numbers as long as these are exact. */
export class Totals implements Accumulator {
  readonly #name: string;
  readonly #result: TotalResult;
  readonly #sliding: SlidingFloats | undefined;
  #integers: number | bigint = 0;
  #integerCount = 0;
  #floats = 0;
  #floatCount = 0;

  constructor(name: string, result: TotalResult, isSliding: boolean) {
    this.#name = name;
    this.#result = result;
    this.#sliding = isSliding ? new SlidingFloats() : undefined;
  }

  add(args: readonly StreamValue[]): void {
    const value = args[0];
    if (typeof value === 'number') this.#addFloat(value);
    else if (typeof value === 'bigint') {
      if (isWide(value)) this.#addFloat(Number(value));
      else {
        this.#addInteger(value);
        this.#integerCount++;
      }
    } else if (!isNull(value)) throw invalidArgument(this.#name, value);
  }

  remove(args: readonly StreamValue[]): void {
    const value = args[0];
    if (typeof value === 'number' || (typeof value === 'bigint' && isWide(value))) {
      this.#sliding?.change(Number(value), -1);
      this.#floatCount--;
    } else if (typeof value === 'bigint') {
      this.#addInteger(-value);
      this.#integerCount--;
    }
  }

  result(): StreamValue {
    const [integers, floats] = [this.#integerCount, this.#floatCount];
    if (integers + floats === 0) return null;
    return this.#result(BigInt(this.#integers), this.#sliding?.value ?? this.#floats, { integers, floats });
  }

  save(): SavedTotals {
    return {
      integers: this.#integers,
      integerCount: this.#integerCount,
      floats: this.#floats,
      floatCount: this.#floatCount,
      sliding: this.#sliding?.save()
    };
  }

  static load(name: string, result: TotalResult, saved: unknown): Totals {
    const { integers, integerCount, floats, floatCount, sliding } = saved as SavedTotals;
    const totals = new Totals(name, result, sliding !== undefined);
    totals.#integers = integers;
    totals.#integerCount = integerCount;
    totals.#floats = floats;
    totals.#floatCount = floatCount;
    if (sliding !== undefined) totals.#sliding?.load(sliding);
    return totals;
  }

  #addFloat(value: number): void {
    if (this.#sliding === undefined) this.#floats += value;
    else this.#sliding.change(value, 1);
    this.#floatCount++;
  }

  #addInteger(value: bigint): void {
    if (typeof this.#integers === 'number') {
      const sum = this.#integers + Number(value);
      if (Number.isSafeInteger(sum) && Number.isSafeInteger(Number(value))) {
        this.#integers = sum;
        return;
      }
    }
    this.#integers = BigInt(this.#integers) + value;
  }
}

/** The sum: an integer if all values are. */
export const sumOf: TotalResult = (integers, floats, counts) =>
  counts.floats > 0 ? Number(integers) + floats : integer(integers);

/** The average; for integers an integer, rounded towards zero [stream rules 17.17]. */
export const averageOf: TotalResult = (integers, floats, counts) =>
  counts.floats > 0
    ? (Number(integers) + floats) / (counts.integers + counts.floats)
    : integer(integers / BigInt(counts.integers));

/** The error for an argument that a function cannot aggregate. */
export function invalidArgument(name: string, value: StreamValue): StreamFailure {
  return new StreamFailure(`run ${name} function error: found invalid arg ${describe(value)}`);
}
