import type { BoundSlots } from '../expressions/bound.ts';
import { type Evaluate, PENDING } from '../values/tuple.ts';
import type { Value } from '../values/values.ts';

/** New slots for a tuple, none of which is computed. */
export function freshSlots(count: number): Value[] {
  return new Array<Value>(count).fill(PENDING);
}

/** The slots of a tuple of an emission: what is known of its row, without what depends on the emission. */
export function emissionSlots({ ofEmission }: BoundSlots, slots: readonly Value[]): Value[] {
  const copy = slots.slice();
  for (const slot of ofEmission) copy[slot] = PENDING;
  return copy;
}

/** What reads a slot, and computes it at the first use. */
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
