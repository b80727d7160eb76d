import type { BoundSlots } from '../expressions/bound.ts';
import { type Evaluate, PENDING } from '../values/tuple.ts';
import type { StreamValue } from '../values/values.ts';

/** New slots for a tuple, none of them computed. */
export function freshSlots(count: number): StreamValue[] {
  return new Array<StreamValue>(count).fill(PENDING);
}

/** The slots of a tuple of an emission: the values of its row, without those that depend on the emission. */
export function emissionSlots({ ofEmission }: BoundSlots, slots: readonly StreamValue[]): StreamValue[] {
  const copy = slots.slice();
  for (const slot of ofEmission) copy[slot] = PENDING;
  return copy;
}

/** Make a function that reads a slot, and computes its value at the first use. */
export function lazily(slot: number, evaluate: Evaluate): Evaluate {
  return (tuple) => {
    const { slots } = tuple;
    const known = slots[slot];
    if (known !== PENDING) return known;
    const value = evaluate(tuple);
    slots[slot] = value;
    return value;
  };
}
