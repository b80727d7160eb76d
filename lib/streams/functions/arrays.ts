// Arguments are never changed: rows are shared by all rules on a stream, and values share their parts. What a
// function makes is limited before it exists (`checkElements`). A row of the table says how null is handled
// (`ifNull`) and whether calls with constants may be evaluated once (`isPure`).

import { setKey } from '../../sql/values.ts';
import type { StreamFunctionTools } from '../function.ts';
import {
  describe,
  isArray,
  isNull,
  isNumber,
  isStruct,
  printed,
  StreamFailure,
  type StreamValue
} from '../values/values.ts';
import { arrayOf, floatOf, indexOf, integerOf, textOf } from './arguments.ts';
import { checkElements, MAX_ELEMENTS, TextParts } from './bounds.ts';
import { Comparisons, DistinctValues } from './equality.ts';
import { PURE, type StreamFunctionEntry, streamFamily } from './family.ts';

const SECOND = 'second argument should be array of interface{}';

/** Concatenate arrays; null counts as an empty one. @throws StreamFailure */
export function concatenated(args: readonly StreamValue[]): readonly StreamValue[] {
  const result: StreamValue[] = [];
  for (const arg of args) if (!isNull(arg)) append(result, arrayOf(arg, 'argument should be array of interface{}'));
  return result;
}

function append(result: StreamValue[], elements: readonly StreamValue[]): void {
  checkElements(result.length + elements.length);
  for (const element of elements) result.push(element);
}

function ofArray(
  name: string,
  about: string,
  run: (array: readonly StreamValue[]) => StreamValue
): StreamFunctionEntry {
  return {
    name,
    params: ['array'],
    about,
    ifNull: null,
    isPure: true,
    run: (value: StreamValue) => run(arrayOf(value))
  };
}

function ofArrays(
  name: string,
  about: string,
  run: (left: readonly StreamValue[], right: readonly StreamValue[]) => StreamValue,
  ifNull: null | false = null
): StreamFunctionEntry {
  return {
    name,
    params: ['array', 'array'],
    about,
    ifNull,
    isPure: true,
    run: (left: StreamValue, right: StreamValue) => run(arrayOf(left), arrayOf(right, SECOND))
  };
}

function positionIn(array: StreamValue, value: StreamValue, step: 1 | -1): bigint {
  if (isNull(array)) return -1n;
  const elements = arrayOf(array);
  const comparisons = new Comparisons();
  for (let at = step === 1 ? 0 : elements.length - 1; at >= 0 && at < elements.length; at += step)
    if (comparisons.isSame(elements[at], value)) return BigInt(at);
  return -1n;
}

function elementAt(value: StreamValue, at: StreamValue): StreamValue {
  if (isArray(value)) {
    const index = indexOf(at);
    if (index >= value.length || -index > value.length)
      throw new StreamFailure(`index out of range: ${index} of ${value.length}`);
    return value.at(index);
  }
  if (!isStruct(value))
    throw new StreamFailure(
      `first argument should be []interface{} or map[string]interface{}, but got ${describe(value)}`
    );
  if (typeof at !== 'string') throw new StreamFailure(`second argument should be string, but got ${describe(at)}`);
  return Object.hasOwn(value, at) ? value[at] : null;
}

function remove(array: StreamValue, value: StreamValue): StreamValue {
  const comparisons = new Comparisons();
  return arrayOf(array).filter((each) => !comparisons.isSame(each, value));
}

function distinct(elements: Iterable<StreamValue>): StreamValue[] {
  const values = new DistinctValues();
  return [...elements].filter((each) => values.add(each));
}

function setOf(elements: readonly StreamValue[]): DistinctValues {
  const values = new DistinctValues();
  for (const each of elements) values.add(each);
  return values;
}

/** The greatest element or, with -1, the least. @throws StreamFailure if the elements cannot be compared */
function extreme(array: readonly StreamValue[], sign: 1 | -1): StreamValue {
  let result: StreamValue = null;
  for (const each of array) {
    if (isNull(each)) continue;
    if (!isNumber(each) && typeof each !== 'string') throw new StreamFailure(`found invalid arg ${describe(each)}`);
    if (result === null) result = each;
    else if (isNumber(each) !== isNumber(result))
      throw new StreamFailure(`requires ${isNumber(result) ? 'float64' : 'string'} but found ${describe(each)}`);
    else if (sign === 1 ? each > (result as typeof each) : each < (result as typeof each)) result = each;
  }
  return result;
}

function average(array: readonly StreamValue[]): StreamValue {
  let [total, count] = [0, 0];
  for (const each of array)
    if (!isNull(each)) {
      total += floatOf(each);
      count++;
    }
  return count === 0 ? null : total / count;
}

/** Number of all elements and members of a value, up to the limit. */
function weightOf(value: StreamValue): number {
  let weight = 1;
  const waiting: StreamValue[] = [value];
  while (waiting.length > 0 && weight <= MAX_ELEMENTS) {
    const each = waiting.pop();
    const members = isArray(each) ? each : isStruct(each) ? Object.values(each) : [];
    weight += members.length;
    for (const member of members) if (typeof member === 'object') waiting.push(member);
  }
  return weight;
}

function repeat(value: StreamValue, times: StreamValue): StreamValue {
  const count = indexOf(times);
  if (count < 0) throw new StreamFailure(`second argument should not be negative, but is ${count}`);
  checkElements(count);
  checkElements(count * weightOf(value));
  return new Array(count).fill(value);
}

function sequence(first: StreamValue, last: StreamValue, by?: StreamValue): StreamValue {
  const [start, stop] = [integerOf(first), integerOf(last)];
  const step = by === undefined ? (start < stop ? 1n : -1n) : integerOf(by);
  if (step === 0n) throw new StreamFailure('invalid step: should not be zero');
  if (step > 0n ? stop < start : stop > start) return [];
  const count = (stop - start) / step + 1n;
  checkElements(Number(count));
  return Array.from({ length: Number(count) }, (_, index) => start + BigInt(index) * step);
}

function flatten(array: readonly StreamValue[]): StreamValue {
  const result: StreamValue[] = [];
  for (const each of array) append(result, isArray(each) ? each : [each]);
  return result;
}

function join(array: StreamValue, separator: StreamValue, ...nulls: StreamValue[]): StreamValue {
  const parts = new TextParts();
  const by = textOf(separator);
  let isFirst = true;
  for (const each of arrayOf(array)) {
    if (isNull(each) && nulls.length === 0) continue;
    if (!isFirst) parts.add(by);
    parts.add(textOf(isNull(each) ? nulls[0] : each));
    isFirst = false;
  }
  return parts.toString();
}

/** Maximum number of characters of the texts by which elements are sorted. */
const MAX_SORTED = 16_777_216;

/** Sort numbers by value, followed by all other elements by their text. */
function sort(array: readonly StreamValue[]): StreamValue {
  const numbers = array.filter(isNumber).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const others: { readonly each: StreamValue; readonly text: string }[] = [];
  let characters = 0;
  for (const each of array) {
    if (isNumber(each)) continue;
    const text = isNull(each) ? printed(each) : textOf(each);
    characters += text.length;
    if (characters > MAX_SORTED)
      throw new StreamFailure(`array_sort: the elements have more than ${MAX_SORTED} characters as text`);
    others.push({ each, text });
  }
  others.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  return [...numbers, ...others.map(({ each }) => each)];
}

function shuffle(tools: StreamFunctionTools) {
  return (value: StreamValue) => {
    const array = [...arrayOf(value)];
    for (let last = array.length - 1; last > 0; last--) {
      const at = Math.floor(tools.random() * (last + 1));
      [array[last], array[at]] = [array[at], array[last]];
    }
    return array;
  };
}

function fromPairs(array: readonly StreamValue[]): StreamValue {
  const result: Record<string, StreamValue> = {};
  for (const pair of array) {
    if (!isStruct(pair))
      throw new StreamFailure(`array item should be map[string]interface{}, but got ${describe(pair)}`);
    if (Object.keys(pair).length !== 2 || typeof pair.key !== 'string' || !Object.hasOwn(pair, 'value'))
      throw new StreamFailure(`array item should be key-value pair, but got ${describe(pair)}`);
    setKey(result, pair.key, pair.value);
  }
  return result;
}

export const ARRAY_FUNCTIONS = streamFamily('arrays', [
  {
    name: 'cardinality',
    params: ['any'],
    about: 'Number of elements; 0 for null and for other values than arrays.',
    isPure: true,
    run: (value: StreamValue) => BigInt(isArray(value) ? value.length : 0)
  },
  {
    name: 'array_cardinality',
    params: ['array'],
    about: 'Number of elements that are not null; 0 for null.',
    ifNull: 0n,
    isPure: true,
    run: (value: StreamValue) => BigInt(arrayOf(value).filter((each) => !isNull(each)).length)
  },
  {
    name: 'array_position',
    params: ['array', 'any'],
    about: 'Index of the first element with a value, from 0; -1 if there is none.',
    isPure: true,
    run: (array: StreamValue, value: StreamValue) => positionIn(array, value, 1)
  },
  {
    name: 'array_last_position',
    params: ['array', 'any'],
    about: 'Index of the last element with a value, from 0; -1 if there is none.',
    isPure: true,
    run: (array: StreamValue, value: StreamValue) => positionIn(array, value, -1)
  },
  {
    name: 'element_at',
    params: ['any', 'any'],
    about: 'An element of an array by its index, from 0 or from -1 backwards; a member of a struct by its key.',
    ...PURE,
    run: elementAt
  },
  {
    name: 'array_contains',
    params: ['array', 'any'],
    about: 'Whether an element has a value, which may be null; false if the array is null.',
    isPure: true,
    run: (array: StreamValue, value: StreamValue) => positionIn(array, value, 1) !== -1n
  },
  ofArrays(
    'array_contains_any',
    'Whether two arrays have an element in common.',
    (left, right) => {
      const values = setOf(left);
      return right.some((each) => values.has(each));
    },
    false
  ),
  {
    name: 'array_create',
    params: ['any...'],
    about: 'An array of the arguments, without those that are null; null if all are.',
    isPure: true,
    run: (...args: StreamValue[]) => {
      const elements = args.filter((each) => !isNull(each));
      return elements.length === 0 ? null : elements;
    }
  },
  {
    name: 'array_remove',
    params: ['array', 'any'],
    about: 'The elements without those that have a value, which may be null; null if the array is null.',
    isPure: true,
    run: (array: StreamValue, value: StreamValue) => (isNull(array) ? null : remove(array, value))
  },
  ofArrays('array_intersect', 'The distinct elements that both arrays contain.', (left, right) => {
    const values = setOf(left);
    return distinct(right.filter((each) => values.has(each)));
  }),
  {
    name: 'array_union',
    params: ['array', 'array'],
    about: 'The distinct elements of both arrays; null counts as an empty array.',
    isPure: true,
    run: (left: StreamValue, right: StreamValue) =>
      distinct(concatenated([isNull(left) ? null : arrayOf(left), isNull(right) ? null : arrayOf(right, SECOND)]))
  },
  ofArrays(
    'array_except',
    'The distinct elements of the first array that the second does not contain.',
    (left, right) => {
      const values = setOf(right);
      return distinct(left.filter((each) => !values.has(each)));
    }
  ),
  ofArray('array_max', 'The greatest number or string, ignoring null.', (array) => extreme(array, 1)),
  ofArray('array_min', 'The least number or string, ignoring null.', (array) => extreme(array, -1)),
  ofArray('array_avg', 'The average of the numbers as a float, ignoring null.', average),
  ofArray('array_distinct', 'The elements, each value once.', distinct),
  ofArray('array_flatten', 'The elements of an array, with each nested array replaced by its elements.', flatten),
  ofArray('array_sort', 'The elements in order: numbers, then others by their text.', sort),
  ofArray('kvpair_array_to_obj', 'A struct of an array with {"key": ..., "value": ...}.', fromPairs),
  {
    name: 'array_join',
    params: ['array', 'string', 'string?'],
    about: 'The elements as one string with separators; null is left out, or replaced by the third argument.',
    run: (array: StreamValue, separator: StreamValue, ...nulls: StreamValue[]) =>
      isNull(array) || isNull(separator) ? null : join(array, separator, ...nulls),
    isPure: true
  },
  { name: 'array_shuffle', params: ['array'], about: 'The elements in random order.', ifNull: null, make: shuffle },
  {
    name: 'array_concat',
    params: ['array', 'array...'],
    about: 'The arrays concatenated; null counts as an empty array.',
    isPure: true,
    run: (...args: StreamValue[]) => concatenated(args)
  },
  { name: 'repeat', params: ['any', 'bigint'], about: 'An array that repeats a value.', ...PURE, run: repeat },
  {
    name: 'sequence',
    params: ['bigint', 'bigint', 'bigint?'],
    about: 'The integers from a start to a stop, by a step; by 1 or -1 without one.',
    ...PURE,
    run: sequence
  }
]);
