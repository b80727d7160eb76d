import { StreamFailure } from '../values/values.ts';
import { fn, type TemplateFunctions } from './function-table.ts';
import { joined, printAll, printInner } from './print.ts';
import { formatted } from './printf.ts';
import { isList, isObject, isTruthy, memberOf, type TemplateValue, typeOf } from './template-value.ts';

/**
 * The functions of Go's text/template. `and` and `or` are part of the compiler.
 * @param most maximum number of characters
 */
export function goFunctions(most: number): TemplateFunctions {
  const print = (values: readonly TemplateValue[]) => printAll(values, most);
  return {
    and: fn('any any...', (first) => first),
    or: fn('any any...', (first) => first),
    not: fn('any', (value) => !isTruthy(value)),
    len: fn('any', lengthOf),
    index: fn('any any...', (value: TemplateValue, ...keys: TemplateValue[]) => keys.reduce(indexed, value)),
    slice: fn('any int...', sliced),
    print: fn('any...', (...values) => print(values)),
    printf: fn('string any...', (format: string, ...values) => formatted(format, values, most)),
    println: fn('any...', (...values) => `${joined(values, ' ', (value) => printInner(value, most), most)}\n`),
    html: fn('any...', (...values) => print(values).replace(/[<>&'"\0]/g, (character) => HTML[character])),
    js: fn('any...', (...values) => print(values).replace(/[\\'"<>&=\p{Cc}]/gu, escapedJs)),
    urlquery: fn('any...', (...values) => escapedQuery(print(values))),
    call: fn('any any...', (value) => {
      throw new StreamFailure(`non-function of type ${typeOf(value)}`);
    }),
    eq: fn('any any any...', (first: TemplateValue, ...others: TemplateValue[]) =>
      others.some((other) => isEqual(first, other))
    ),
    ne: fn('any any', (a, b) => !isEqual(a, b)),
    lt: fn('any any', (a, b) => compared(a, b) < 0),
    le: fn('any any', (a, b) => compared(a, b) <= 0),
    gt: fn('any any', (a, b) => compared(a, b) > 0),
    ge: fn('any any', (a, b) => compared(a, b) >= 0)
  };
}

function lengthOf(value: TemplateValue): bigint {
  if (typeof value === 'string') return BigInt(Buffer.byteLength(value));
  if (isList(value)) return BigInt(value.length);
  if (isObject(value)) return BigInt(Object.keys(value).length);
  throw new StreamFailure(value === undefined || value === null ? 'len of nil' : `len of type ${typeOf(value)}`);
}

function indexed(value: TemplateValue, key: TemplateValue): TemplateValue {
  if (isObject(value)) {
    if (typeof key === 'string') return memberOf(value, key);
    throw new StreamFailure(`value has type ${typeOf(key)}; should be string`);
  }
  if (value === undefined || value === null) throw new StreamFailure('index of untyped nil');
  if (!isList(value) && typeof value !== 'string') throw new StreamFailure(`can't index item of type ${typeOf(value)}`);
  if (typeof key !== 'bigint') throw new StreamFailure(`cannot index slice/array with type ${typeOf(key)}`);
  const elements = typeof value === 'string' ? Buffer.from(value) : value;
  const at = Number(key);
  if (at < 0 || at >= elements.length) throw new StreamFailure(`index out of range: ${at}`);
  const element = elements[at];
  return typeof value === 'string' ? BigInt(element as number) : element;
}

function sliced(value: TemplateValue, start = 0, end?: number): TemplateValue {
  if (!isList(value) && typeof value !== 'string')
    throw new StreamFailure(`list should be type of slice or array but ${typeOf(value)}`);
  const elements: readonly TemplateValue[] | Buffer = typeof value === 'string' ? Buffer.from(value) : value;
  const stop = end ?? elements.length;
  if (start < 0 || stop > elements.length || start > stop)
    throw new StreamFailure(`slice index out of range: ${start}, ${stop}`);
  return Buffer.isBuffer(elements) ? elements.toString('utf8', start, stop) : elements.slice(start, stop);
}

/** Values of different types are not compared, except with null. @throws StreamFailure */
function isEqual(a: TemplateValue, b: TemplateValue): boolean {
  const [isNullA, isNullB] = [a === undefined || a === null, b === undefined || b === null];
  if (isNullA || isNullB) return isNullA && isNullB;
  if (typeof a === 'object' || typeof b === 'object') {
    if (a instanceof Date && b instanceof Date) return a.getTime() === b.getTime();
    const [value] = typeof a === 'object' ? [a] : [b];
    throw new StreamFailure(`non-comparable type ${printInner(value, 100)}: ${typeOf(value)}`);
  }
  checkTypes(a, b);
  return a === b;
}

function compared(a: TemplateValue, b: TemplateValue): number {
  const isOrdered = ['string', 'number', 'bigint'].includes(typeof a);
  if (!isOrdered || b === undefined || b === null) throw new StreamFailure('invalid type for comparison');
  checkTypes(a, b);
  const [x, y] = [a as number, b as number];
  return x < y ? -1 : x > y ? 1 : x === y ? 0 : Number.NaN;
}

function checkTypes(a: TemplateValue, b: TemplateValue): void {
  if (typeof a !== typeof b && !isLargeBeside(a, b) && !isLargeBeside(b, a))
    throw new StreamFailure(`incompatible types for comparison: ${typeOf(a)} and ${typeOf(b)}`);
}

/**
 * A data integer that cannot be represented exactly as a float is the only one that is not a float; it is nevertheless
 * compared with floats.
 */
function isLargeBeside(a: TemplateValue, b: TemplateValue): boolean {
  return typeof a === 'bigint' && typeof b === 'number' && !Number.isSafeInteger(Number(a));
}

const HTML: Readonly<Record<string, string>> = {
  '<': '&lt;',
  '>': '&gt;',
  '&': '&amp;',
  "'": '&#39;',
  '"': '&#34;',
  '\0': '\uFFFD'
};

function escapedJs(character: string): string {
  if (`\\'"`.includes(character)) return `\\${character}`;
  return `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Percent-encode a part of a query. */
function escapedQuery(text: string): string {
  const encoded = encodeURIComponent(Buffer.from(text).toString());
  return encoded
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}
