import type { Evaluate, Tuple } from '../values/tuple.ts';
import { describe, isNull, StreamFailure, type StreamValue } from '../values/values.ts';

/** Tests whether a condition holds for a tuple. */
export type Test = (tuple: Tuple) => boolean;

/**
 * Make a test from an expression. Null counts as false [stream rules 17.16].
 * @returns a function that throws StreamFailure for a value that is neither boolean nor null
 */
export function testOf(condition: Evaluate): Test {
  return (tuple) => isTrue(condition(tuple));
}

/** Check whether the value of a condition is true. @throws StreamFailure as above */
export function isTrue(value: StreamValue): boolean {
  if (value === true) return true;
  if (value === false || isNull(value)) return false;
  throw new StreamFailure(`invalid condition that returns non-bool value ${describe(value)}`);
}
