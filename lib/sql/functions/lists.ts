// Functions never change their arguments: values are shared by all rules that read an event, so a result is a copy or
// shares parts. `weighs` says how heavy a result can be in terms of the arguments; without it every result is walked.
// `scans` names a list that is read completely and counts towards the work of an event.

import { bounded } from '../arithmetic.ts';
import { isSame } from '../compare.ts';
import { stringOf } from '../json.ts';
import { SqlFailure } from '../sql-error.ts';
import { describe, isList, isObject, kindOf, own, setKey, type Value, type ValueObject } from '../values.ts';
import { type FunctionWork, family } from './function.ts';

type Items = readonly Value[];

/** @param number from 1 */
function element(name: string, number: number | bigint, list: Items): Value {
  if (number < 1 || number > list.length)
    throw new SqlFailure(`${name}: the list has ${list.length} elements, so there is no element ${number}`);
  return list[Number(number) - 1];
}

function part(start: number | bigint, length: number | bigint, list: Items): Value {
  if (start < 1 || length < 0) throw new SqlFailure(`sublist: start ${start} or length ${length} is too small`);
  const from = Number(start) - 1;
  return list.slice(from, from + Number(length));
}

/** Decodes JSON. Undefined: the text is not valid JSON. */
type Decode = (text: string) => Value;

/** The object that a value is or encodes as JSON; undefined for other values. */
function objectIn(value: Value, decode: Decode): ValueObject | undefined {
  const object = typeof value === 'string' ? decode(value) : value;
  return isObject(object) ? object : undefined;
}

/** The value at a sequence of keys in an object; JSON text along the path is decoded. */
export function valueAt(keys: readonly string[], value: Value, decode: Decode, fallback?: Value): Value {
  let object = isObject(value) ? value : undefined;
  let found: Value;
  for (const key of keys) {
    found = object === undefined ? undefined : own(object, key);
    if (found === undefined) return fallback;
    object = objectIn(found, decode);
  }
  return found;
}

function decodeBy(work: FunctionWork): Decode {
  return (text) => work.decode(text);
}

/** A copy of an object with the value set at a path. Non-objects along the path are replaced by objects. */
function put(work: FunctionWork, keys: readonly string[], value: Value, target: Value): Value {
  if (keys.length === 0) return value;
  const present = objectIn(target, decodeBy(work)) ?? {};
  work.copied(Object.keys(present).length);
  const object = { ...present };
  setKey(object, keys[0], put(work, keys.slice(1), value, own(object, keys[0])));
  return object;
}

/** Check that an argument is an object. @throws SqlFailure */
function checkedObject(name: string, value: Value): ValueObject {
  if (!isObject(value)) throw new SqlFailure(`${name} needs an object, but has ${describe(value)}`);
  return value;
}

/** @param separator the first of two arguments; ", " if the list is the only argument */
function joined(separator: Value, list: Value): Value {
  const [between, items] = list === undefined ? [', ', separator] : [separator, list];
  if (typeof between !== 'string') throw new SqlFailure(`join_to_string needs a string, but has ${describe(between)}`);
  if (!isList(items)) throw new SqlFailure(`join_to_string needs a list, but has ${describe(items)}`);
  const texts = items.map(stringOf);
  const length = texts.reduce((sum, text) => sum + text.length + between.length, 0);
  return bounded(length, () => texts.join(between));
}

function isEmpty(work: FunctionWork, value: Value): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (isList(value) || value instanceof Uint8Array) return value.length === 0;
  return isObject(value) && memberCount(work, value) === 0;
}

/** The number of members of an object, which JavaScript has to list. */
function memberCount(work: FunctionWork, object: ValueObject): number {
  const { length } = Object.keys(object);
  work.copied(length);
  return length;
}

export const LIST_FUNCTIONS = family('lists and objects', [
  {
    name: 'nth',
    params: ['integer', 'list'],
    returns: 'any',
    weighs: 'part',
    about: 'An element of a list, from 1.',
    run: (number: number | bigint, list: Items) => element('nth', number, list)
  },
  {
    name: 'length',
    params: ['list'],
    returns: 'integer',
    about: 'Number of elements.',
    isTotal: true,
    run: (list: Items) => list.length
  },
  {
    name: 'sublist',
    params: ['integer', 'any', 'list?'],
    returns: 'list',
    weighs: 'part',
    about: 'sublist(length, list) or sublist(start, length, list): a part of a list; start is from 1.',
    run: (first: number, second: Value, list: Items | undefined) => {
      if (list === undefined) {
        if (!Array.isArray(second)) throw new SqlFailure(`sublist needs a list, but has ${describe(second)}`);
        return part(1, first, second);
      }
      if (kindOf(second) !== 'integer') throw new SqlFailure(`sublist needs an integer, but has ${describe(second)}`);
      return part(first, second as number, list);
    }
  },
  {
    name: 'first',
    params: ['list'],
    returns: 'any',
    weighs: 'part',
    about: 'The first element.',
    run: (list: Items) => element('first', 1, list)
  },
  {
    name: 'last',
    params: ['list'],
    returns: 'any',
    weighs: 'part',
    about: 'The last element.',
    run: (list: Items) => element('last', Math.max(1, list.length), list)
  },
  {
    name: 'contains',
    params: ['any', 'list'],
    returns: 'boolean',
    about: "Whether a value is in a list; 1 is neither '1' nor 1.0.",
    scans: 1,
    countsWork: true,
    run: (work: FunctionWork, value: Value, list: Items) => list.some((item) => isSame(value, item, work))
  },
  {
    name: 'map_get',
    params: ['string', 'json', 'any?'],
    returns: 'any',
    weighs: 'part',
    about: 'The value at a path with dots in an object or its JSON text, or else the third argument.',
    isTotal: true,
    countsWork: true,
    run: (work: FunctionWork, path: string, object: Value, fallback: Value) =>
      valueAt(path.split('.'), object, decodeBy(work), fallback)
  },
  {
    name: 'map_put',
    params: ['string', 'any', 'json'],
    returns: 'any',
    weighs: 'sum',
    about:
      'A copy of an object with a value at a path with dots; non-objects along the path are replaced, and an absent value changes nothing.',
    countsWork: true,
    run: (work: FunctionWork, path: string, value: Value, target: Value) =>
      value === undefined ? target : put(work, path.split('.'), value, target)
  },
  {
    name: 'mget',
    params: ['string', 'json', 'any?'],
    returns: 'any',
    weighs: 'part',
    about: 'The value of a key, which may contain dots, or else the third argument.',
    isTotal: true,
    countsWork: true,
    run: (work: FunctionWork, key: string, object: Value, fallback: Value) =>
      valueAt([key], object, decodeBy(work), fallback)
  },
  {
    name: 'mput',
    params: ['string', 'any', 'json'],
    returns: 'any',
    weighs: 'sum',
    about: 'An object with a value for a key, which may contain dots; otherwise as map_put.',
    countsWork: true,
    run: (work: FunctionWork, key: string, value: Value, target: Value) =>
      value === undefined ? target : put(work, [key], value, target)
  },
  {
    name: 'map_keys',
    params: ['json'],
    returns: 'list',
    weighs: 'part',
    about: 'The keys of an object or its JSON text.',
    run: (object: Value) => Object.keys(checkedObject('map_keys', object))
  },
  {
    name: 'map_values',
    params: ['json'],
    returns: 'list',
    weighs: 'part',
    about: 'The values of an object or its JSON text.',
    run: (object: Value) => Object.values(checkedObject('map_values', object))
  },
  {
    name: 'map_size',
    params: ['json'],
    returns: 'integer',
    about: 'Number of keys of an object or its JSON text.',
    countsWork: true,
    run: (work: FunctionWork, object: Value) => memberCount(work, checkedObject('map_size', object))
  },
  {
    name: 'join_to_string',
    params: ['any', 'list?'],
    returns: 'string',
    about:
      'join_to_string(separator, list) or join_to_string(list): the elements as one string; default separator: ", ".',
    scans: 1,
    run: joined
  },
  {
    name: 'coalesce',
    params: ['any', 'any...'],
    returns: 'any',
    weighs: 'part',
    about: 'The first argument that is neither absent nor null.',
    isTotal: true,
    run: (...values: Value[]) => values.find((value) => value !== undefined && value !== null)
  },
  {
    name: 'is_empty',
    params: ['any'],
    returns: 'boolean',
    about: 'Whether a value is absent, null, or a string, list or object without content.',
    isTotal: true,
    countsWork: true,
    run: isEmpty
  },
  { name: 'map_new', params: [], returns: 'object', about: 'An empty object.', isTotal: true, run: () => ({}) },
  { name: 'null', params: [], returns: 'any', about: 'The null of JSON.', isTotal: true, run: () => null }
]);
