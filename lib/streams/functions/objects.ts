import { setKey } from '../../sql/values.ts';
import {
  describe,
  isArray,
  isNull,
  isStruct,
  StreamFailure,
  type StreamValue,
  type StreamValueObject
} from '../values/values.ts';
import { arrayOf, structOf, textOf } from './arguments.ts';
import { PURE, type StreamFunctionEntry, streamFamily } from './family.ts';

function ofStruct(name: string, about: string, run: (struct: StreamValueObject) => StreamValue): StreamFunctionEntry {
  return {
    name,
    params: ['struct'],
    about,
    ifNull: null,
    isPure: true,
    run: (value: StreamValue) => run(structOf(value))
  };
}

function fromLists(first: StreamValue, second: StreamValue): StreamValue {
  const keys = arrayOf(first, 'first argument should be []string');
  const values = arrayOf(second, 'second argument should be []interface{}');
  if (keys.length !== values.length)
    throw new StreamFailure(`the length of the arguments should be same, but are ${keys.length} and ${values.length}`);
  if (keys.length === 0) return null;
  const result: Record<string, StreamValue> = {};
  for (const [index, key] of keys.entries()) {
    if (typeof key !== 'string') throw new StreamFailure(`first argument should be []string, but has ${describe(key)}`);
    setKey(result, key, values[index]);
  }
  return result;
}

function zip(value: StreamValue): StreamValue {
  const pairs = arrayOf(value, 'each argument should be [][2]interface{}');
  if (pairs.length === 0) return null;
  const result: Record<string, StreamValue> = {};
  for (const pair of pairs) {
    if (isNull(pair)) continue;
    if (!isArray(pair) || pair.length !== 2)
      throw new StreamFailure(`each argument should be [][2]interface{}, but has ${describe(pair)}`);
    if (typeof pair[0] !== 'string')
      throw new StreamFailure(`the first element in the list item should be string, but is ${describe(pair[0])}`);
    setKey(result, pair[0], pair[1]);
  }
  return result;
}

function items(struct: StreamValueObject): StreamValue {
  const entries = Object.entries(struct);
  return entries.length === 0 ? null : entries;
}

function concat(...args: StreamValue[]): StreamValue {
  const result: Record<string, StreamValue> = {};
  for (const arg of args)
    if (!isNull(arg)) for (const [key, value] of Object.entries(structOf(arg))) setKey(result, key, value);
  return result;
}

function construct(...args: StreamValue[]): StreamValue {
  const result: Record<string, StreamValue> = {};
  for (let at = 0; at + 1 < args.length; at += 2) {
    const [key, value] = [args[at], args[at + 1]];
    if (isNull(key) || isNull(value)) continue;
    if (typeof key !== 'string' && !(key instanceof Uint8Array))
      throw new StreamFailure(`key ${describe(key)} is not a string`);
    setKey(result, textOf(key), value);
  }
  return result;
}

function checkConstruct(literals: readonly (StreamValue | undefined)[]): string | undefined {
  if (literals.length % 2 !== 0) return 'the args must be key value pairs';
  const at = literals.findIndex((each, index) => index % 2 === 0 && each !== undefined && typeof each !== 'string');
  return at === -1 ? undefined : `Expect string type for parameter ${at + 1}`;
}

/** The keys given by arguments: each is a string or an array of strings. */
function keysOf(named: readonly StreamValue[]): string[] {
  return named.flatMap((each) => {
    if (isArray(each)) return each.map(textOf);
    if (typeof each === 'string') return [each];
    throw new StreamFailure(`the argument should be slice or string, got ${describe(each)}`);
  });
}

const FIRST = 'the first argument should be map[string]interface{}';

/** The members whose keys are not listed. */
function erase(value: StreamValue, named: StreamValue): StreamValue {
  const keys = new Set(keysOf([named]));
  const result: Record<string, StreamValue> = {};
  for (const [key, each] of Object.entries(structOf(value, FIRST))) if (!keys.has(key)) setKey(result, key, each);
  return result;
}

/** The members listed by keys, or by paths such as `a.b`, whose structs contain only the listed members. */
function pick(value: StreamValue, ...named: StreamValue[]): StreamValue {
  const struct = structOf(value, FIRST);
  const result: Record<string, StreamValue> = {};
  for (const path of keysOf(named)) {
    if (Object.hasOwn(struct, path)) setKey(result, path, struct[path]);
    else pickPath(struct, path.split('.'), result);
  }
  return result;
}

/** A struct that is picked as a whole is not copied; a struct that is created here is modified. */
function pickPath(struct: StreamValueObject, keys: readonly string[], result: Record<string, StreamValue>): void {
  let from: StreamValue = struct;
  for (const key of keys) {
    if (isNull(from) || !isStruct(from) || !Object.hasOwn(from, key)) return;
    from = from[key];
  }
  let [source, to] = [struct, result];
  for (const key of keys.slice(0, -1)) {
    source = source[key] as StreamValueObject;
    const known = Object.hasOwn(to, key) ? to[key] : undefined;
    if (known === source) return; // the whole struct has been picked already
    if (known === undefined) setKey(to, key, {});
    to = to[key] as Record<string, StreamValue>;
  }
  setKey(to, keys[keys.length - 1], from);
}

export const OBJECT_FUNCTIONS = streamFamily('objects', [
  ofStruct('keys', 'The keys of a struct.', (struct) => Object.keys(struct)),
  ofStruct('values', 'The values of a struct.', (struct) => Object.values(struct)),
  ofStruct('items', 'The members of a struct as arrays of key and value; null if there are none.', items),
  ofStruct('object_size', 'Number of members.', (struct) => BigInt(Object.keys(struct).length)),
  ofStruct('obj_to_kvpair_array', 'The members of a struct as {"key": ..., "value": ...}.', (struct) =>
    Object.entries(struct).map(([key, value]) => ({ key, value }))
  ),
  {
    name: 'object',
    params: ['array', 'array'],
    about: 'A struct of an array of keys and an array of values; null if they are empty.',
    ...PURE,
    run: fromLists
  },
  {
    name: 'zip',
    params: ['array'],
    about: 'A struct of an array with arrays of key and value; null if it is empty.',
    ...PURE,
    run: zip
  },
  {
    name: 'object_construct',
    params: ['any...'],
    about: 'A struct of keys and values in turn, without those that are null.',
    check: checkConstruct,
    isPure: true,
    run: construct
  },
  {
    name: 'object_concat',
    params: ['struct', 'struct', 'struct...'],
    about: 'The members of all structs; of equal keys the last one is kept, null is omitted.',
    isPure: true,
    run: concat
  },
  {
    name: 'erase',
    params: ['struct', 'any'],
    about: 'A struct without a key, or without those of an array.',
    ...PURE,
    run: erase
  },
  {
    name: 'object_pick',
    params: ['struct', 'any', 'any...'],
    about: 'A struct with only the members of keys or of paths such as a.b, which are strings or an array of strings.',
    ...PURE,
    run: pick
  }
]);
