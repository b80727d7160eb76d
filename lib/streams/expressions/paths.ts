import type { Evaluate, Tuple } from '../values/tuple.ts';
import {
  isArray,
  isNull,
  isStruct,
  member,
  printed,
  StreamFailure,
  type StreamValue,
  typeName
} from '../values/values.ts';

/** A compiled step of a path. */
export type StepClosure = (value: StreamValue, tuple: Tuple) => StreamValue;

/** Access the value of a key: `a->b`, `a.b`. */
export function keyStep(key: string): StepClosure {
  return (value) => {
    if (isNull(value)) return null;
    if (!isStruct(value))
      throw new StreamFailure(`the result ${printed(value)} is not a type of map[string]interface{}`);
    return member(value, key);
  };
}

/** Access an element: `a[0]`, `a[-1]`. */
export function indexStep(index: Evaluate): StepClosure {
  return (value, tuple) => {
    if (isNull(value)) return null;
    const list = listOf(value);
    const given = wholeNumber(index(tuple));
    if (given === undefined) return null;
    const at = given < 0 ? list.length + given : given;
    if (at < 0 || at >= list.length) throw new StreamFailure(`out of index: ${given} of ${list.length}`);
    return list[at];
  };
}

/** Access a part, from one index up to, but not including, another: `a[1:3]`. Negative indexes count from the end. */
export function partStep(from: Evaluate | undefined, to: Evaluate | undefined): StepClosure {
  return (value, tuple) => {
    if (isNull(value)) return null;
    const list = listOf(value);
    const start = bound('start', from, 0, list.length, tuple);
    const end = bound('end', to, list.length, list.length, tuple);
    if (start === undefined || end === undefined) return null;
    if (start > end) throw new StreamFailure(`the start value ${start} is behind the end value ${end}`);
    return list.slice(start, end);
  };
}

function bound(
  name: string,
  evaluate: Evaluate | undefined,
  absent: number,
  length: number,
  tuple: Tuple
): number | undefined {
  if (evaluate === undefined) return absent;
  const given = wholeNumber(evaluate(tuple));
  if (given === undefined) return undefined;
  const at = given < 0 ? length + given : given;
  if (at < 0 || at > length) throw new StreamFailure(`${name} value is out of index: ${given} of ${length}`);
  return at;
}

function listOf(value: StreamValue): readonly StreamValue[] {
  if (!isArray(value)) throw new StreamFailure(`[] is an invalid operation for ${typeName(value)}`);
  return value;
}

/** An index; undefined for null. The numbers of streams without a schema are floats. */
function wholeNumber(value: StreamValue): number | undefined {
  if (isNull(value)) return undefined;
  const number = typeof value === 'bigint' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number))
    throw new StreamFailure(`an index must be an integer, but found ${typeName(value)}(${printed(value)})`);
  return number;
}
