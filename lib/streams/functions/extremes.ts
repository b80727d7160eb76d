import type { Accumulator } from '../function.ts';
import { compareAlike, isNull, isNumber, kindOf, type StreamValue } from '../values/values.ts';
import { invalidArgument } from './totals.ts';

/** 1: greatest, -1: least. */
type Direction = 1 | -1;

/**
 * Check whether a value takes part. Null and NaN do not.
 * @throws StreamFailure for a value that cannot be ordered, or not with the current extreme
 */
function takesPart(name: string, value: StreamValue, present: StreamValue): boolean {
  if (isNull(value) || Number.isNaN(value)) return false;
  const kind = kindOf(value);
  const hasOrder = isNumber(value) || kind === 'string' || kind === 'datetime';
  const isAlike = isNull(present) || kindOf(present) === kind || (isNumber(value) && isNumber(present));
  if (!hasOrder || !isAlike) throw invalidArgument(name, value);
  return true;
}

/** `min` and `max` of a group whose rows leave all at once. */
export class Extreme implements Accumulator {
  readonly #name: string;
  readonly #direction: Direction;
  #value: StreamValue;

  constructor(name: string, direction: Direction, value?: StreamValue) {
    this.#name = name;
    this.#direction = direction;
    this.#value = value;
  }

  add(args: readonly StreamValue[]): void {
    const value = args[0];
    if (!takesPart(this.#name, value, this.#value)) return;
    if (isNull(this.#value) || compareAlike(value, this.#value) * this.#direction > 0) this.#value = value;
  }

  result(): StreamValue {
    return this.#value ?? null;
  }

  save(): unknown {
    return [this.#value ?? null];
  }
}

interface SavedSliding {
  readonly added: number;
  readonly removed: number;
  readonly entries: readonly (readonly [number: number, value: StreamValue])[];
}

/**
 * `min` and `max` of a group whose rows leave one by one: a queue of the values that can still become the extreme,
 * because no later value is better. The first one is the extreme. Equal values are kept, because the earlier one may be
 * an integer and the later one a float.
 */
export class SlidingExtreme implements Accumulator {
  readonly #name: string;
  readonly #direction: Direction;
  /** Values with their numbers, from `#head` on. */
  #values: StreamValue[] = [];
  #numbers: number[] = [];
  #head = 0;
  #added = 0;
  #removed = 0;

  constructor(name: string, direction: Direction) {
    this.#name = name;
    this.#direction = direction;
  }

  add(args: readonly StreamValue[]): void {
    const value = args[0];
    const values = this.#values;
    if (!takesPart(this.#name, value, values[values.length - 1])) return;
    while (values.length > this.#head && compareAlike(value, values[values.length - 1]) * this.#direction > 0) {
      values.pop();
      this.#numbers.pop();
    }
    values.push(value);
    this.#numbers.push(this.#added++);
  }

  remove(args: readonly StreamValue[]): void {
    const value = args[0];
    if (isNull(value) || Number.isNaN(value)) return;
    if (this.#numbers[this.#head] === this.#removed) this.#head++;
    this.#removed++;
    if (this.#head === this.#values.length || this.#head >= 1024) this.#compact();
  }

  result(): StreamValue {
    return this.#values[this.#head] ?? null;
  }

  save(): SavedSliding {
    const numbers = this.#numbers.slice(this.#head);
    const entries = numbers.map((number, index) => [number, this.#values[this.#head + index]] as const);
    return { added: this.#added, removed: this.#removed, entries };
  }

  static load(name: string, direction: Direction, saved: unknown): Accumulator {
    if (Array.isArray(saved)) return new Extreme(name, direction, saved[0]);
    const { added, removed, entries } = saved as SavedSliding;
    const extreme = new SlidingExtreme(name, direction);
    extreme.#added = added;
    extreme.#removed = removed;
    extreme.#numbers = entries.map(([number]) => number);
    extreme.#values = entries.map(([, value]) => value);
    return extreme;
  }

  #compact(): void {
    if (this.#head * 2 < this.#values.length) return;
    this.#values = this.#values.slice(this.#head);
    this.#numbers = this.#numbers.slice(this.#head);
    this.#head = 0;
  }
}
