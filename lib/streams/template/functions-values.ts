import { parseJson } from '../formats/json.ts';
import { StreamFailure } from '../values/values.ts';
import { fn, type TemplateFunctions, toFloat, toInteger } from './function-table.ts';
import { jsonText } from './json-text.ts';
import { printInner } from './print.ts';
import {
  isList,
  isMade,
  isObject,
  isTruthy,
  makeObject,
  memberOf,
  sortedKeys,
  type TemplateObject,
  type TemplateValue,
  typeOf
} from './template-value.ts';

type List = readonly TemplateValue[];

const COMPACT = { escapesHtml: true, indent: '' };

/**
 * Functions of numbers: those whose names end in f compute with floats, the others with integers, as in the sprig
 * collection.
 */
export const NUMBER_FUNCTIONS: TemplateFunctions = {
  // the result has the type of the first argument, as in the original before it included sprig
  add: fn('any any...', (first: TemplateValue, ...others: List) =>
    typeof first === 'number'
      ? others.reduce<number>((sum, each) => sum + toFloat(each), first)
      : others.reduce<bigint>((sum, each) => wrapped(sum + toInteger(each)), toInteger(first))
  ),
  add1: fn('whole', (value: bigint) => wrapped(value + 1n)),
  sub: fn('whole whole', (a: bigint, b: bigint) => wrapped(a - b)),
  mul: fn('whole whole...', (...values: bigint[]) => values.reduce((product, each) => wrapped(product * each))),
  div: fn('whole whole', (a: bigint, b: bigint) => wrapped(a / divisor(b))),
  mod: fn('whole whole', (a: bigint, b: bigint) => a % divisor(b)),
  max: fn('whole whole...', (...values: bigint[]) => values.reduce((most, each) => (each > most ? each : most))),
  min: fn('whole whole...', (...values: bigint[]) => values.reduce((least, each) => (each < least ? each : least))),
  addf: fn('float float...', (...values: number[]) => values.reduce((sum, each) => sum + each)),
  subf: fn('float float...', (...values: number[]) => values.reduce((rest, each) => rest - each)),
  mulf: fn('float float...', (...values: number[]) => values.reduce((product, each) => product * each)),
  divf: fn('float float...', (...values: number[]) => values.reduce((quotient, each) => quotient / each)),
  maxf: fn('float float...', (...values: number[]) => Math.max(...values)),
  minf: fn('float float...', (...values: number[]) => Math.min(...values)),
  floor: fn('float', Math.floor),
  ceil: fn('float', Math.ceil),
  round: fn('float int', (value: number, digits: number) => rounded(value, digits)),
  int: fn('whole', (value: bigint) => value),
  int64: fn('whole', (value: bigint) => value),
  float64: fn('float', (value: number) => value),
  atoi: fn('string', (text: string) => toInteger(text)),
  until: fn('int', (count: number) => steps(0, count, count < 0 ? -1 : 1)),
  untilStep: fn('int int int', steps)
};

/** Maximum number of elements that `until` creates. */
const MAX_STEPS = 1_000_000;

function steps(start: number, stop: number, step: number): bigint[] {
  const count = step === 0 ? 0 : Math.max(0, Math.ceil((stop - start) / step));
  if (count > MAX_STEPS) throw new StreamFailure(`more than ${MAX_STEPS} numbers`);
  return Array.from({ length: count }, (_, at) => BigInt(start + at * step));
}

function wrapped(value: bigint): bigint {
  return BigInt.asIntN(64, value);
}

function divisor(value: bigint): bigint {
  if (value === 0n) throw new StreamFailure('integer divide by zero');
  return value;
}

function rounded(value: number, digits: number): number {
  const factor = 10 ** digits;
  const scaled = value * factor;
  const whole = Math.sign(scaled) * Math.floor(Math.abs(scaled) + 0.5);
  return Number.isFinite(scaled) ? whole / factor : value;
}

/** Functions of lists and objects, with the names of the sprig collection. */
export const LIST_FUNCTIONS: TemplateFunctions = {
  list: fn('any...', (...values: List) => values),
  tuple: fn('any...', (...values: List) => values),
  first: fn('list', (list: List) => list[0]),
  last: fn('list', (list: List) => list[list.length - 1]),
  rest: fn('list', (list: List) => list.slice(1)),
  initial: fn('list', (list: List) => list.slice(0, -1)),
  append: fn('list any', (list: List, value) => [...list, value]),
  push: fn('list any', (list: List, value) => [...list, value]),
  prepend: fn('list any', (list: List, value) => [value, ...list]),
  concat: fn('list...', (...lists: List[]) => lists.flat(1)),
  reverse: fn('list', (list: List) => [...list].reverse()),
  uniq: fn('list', distinct),
  without: fn('list any...', (list: List, ...out: List) =>
    list.filter((value) => !out.some((each) => isSame(each, value)))
  ),
  compact: fn('list', (list: List) => list.filter(isTruthy)),
  has: fn('any any', (value, list) => isList(list) && list.some((each) => isSame(each, value))),
  dict: fn('any...', (...pairs: List) => {
    const object = makeObject();
    for (let i = 0; i < pairs.length; i += 2) object[keyOf(pairs[i])] = i + 1 < pairs.length ? pairs[i + 1] : '';
    return object;
  }),
  get: fn('object string', (object: TemplateObject, key: string) => memberOf(object, key) ?? ''),
  set: fn('object string any', (object: TemplateObject, key: string, value) => {
    (checkMade(object) as Record<string, TemplateValue>)[key] = value;
    return object;
  }),
  unset: fn('object string', (object: TemplateObject, key: string) => {
    delete (checkMade(object) as Record<string, TemplateValue>)[key];
    return object;
  }),
  hasKey: fn('object string', (object: TemplateObject, key: string) => Object.hasOwn(object, key)),
  keys: fn('object...', (...objects: TemplateObject[]) => objects.flatMap(sortedKeys)),
  values: fn('object', (object: TemplateObject) => sortedKeys(object).map((key) => object[key])),
  pluck: fn('string object...', (key: string, ...objects: TemplateObject[]) =>
    objects.filter((object) => Object.hasOwn(object, key)).map((object) => object[key])
  ),
  pick: fn('object string...', (object: TemplateObject, ...keys: string[]) =>
    makeObject(Object.entries(object).filter(([key]) => keys.includes(key)))
  ),
  omit: fn('object string...', (object: TemplateObject, ...keys: string[]) =>
    makeObject(Object.entries(object).filter(([key]) => !keys.includes(key)))
  ),
  merge: fn('object object...', (...objects: TemplateObject[]) =>
    makeObject([...objects].reverse().flatMap((object) => Object.entries(object)))
  )
};

/** The first of each group of equal values. */
function distinct(list: List): List {
  const seen = new Set<TemplateValue>();
  return list.filter((value) => {
    const key = value ?? null;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** A key of `dict`, printed if it is not a string. */
function keyOf(value: TemplateValue): string {
  return typeof value === 'string' ? value : printInner(value, 1000);
}

function checkMade(object: TemplateObject): object {
  if (isMade(object)) return object;
  throw new StreamFailure('set and unset can change only objects that dict has created, not the rows of an output');
}

/** Check whether two values are equal; lists and objects only if they are identical. */
function isSame(a: TemplateValue, b: TemplateValue): boolean {
  return Object.is(a, b) || ((a ?? null) === null && (b ?? null) === null);
}

/** Functions of any value. @param most maximum number of characters */
export function valueFunctions(most: number): TemplateFunctions {
  return {
    json: fn('any', (value) => jsonText(value, COMPACT, most)),
    toJson: fn('any', (value) => jsonText(value, COMPACT, most)),
    toRawJson: fn('any', (value) => jsonText(value, { escapesHtml: false, indent: '' }, most)),
    toPrettyJson: fn('any', (value) => jsonText(value, { escapesHtml: true, indent: '  ' }, most)),
    fromJson: fn('string', parsed),
    base64: fn('any', (value: TemplateValue) => {
      const isScalar = !isList(value) && !isObject(value);
      return Buffer.from(isScalar ? printInner(value, most) : jsonText(value, COMPACT, most)).toString('base64');
    }),
    default: fn('any any...', (otherwise: TemplateValue, value?: TemplateValue) =>
      isTruthy(value) ? value : otherwise
    ),
    empty: fn('any', (value) => !isTruthy(value)),
    coalesce: fn('any...', (...values: List) => values.find(isTruthy)),
    all: fn('any...', (...values: List) => values.every(isTruthy)),
    any: fn('any...', (...values: List) => values.some(isTruthy)),
    ternary: fn('any any bool', (yes, no, isTrue: boolean) => (isTrue ? yes : no)),
    typeOf: fn('any', typeOf),
    kindOf: fn('any', kindOf),
    kindIs: fn('string any', (kind: string, value: TemplateValue) => kindOf(value) === kind),
    fail: fn('string', (message: string) => {
      throw new StreamFailure(message);
    })
  };
}

function kindOf(value: TemplateValue): string {
  if (value === undefined || value === null) return 'invalid';
  return isList(value) ? 'slice' : isObject(value) ? 'map' : value instanceof Date ? 'struct' : typeOf(value);
}

function parsed(text: string): TemplateValue {
  try {
    return parseJson(text) as TemplateValue;
  } catch {
    return undefined; // as in the original; a missing value prints <no value>
  }
}
