import type { Parameter } from '../../lib/sql/functions/function.ts';
import { decodeJson } from '../../lib/sql/json.ts';
import { Float, isList, isNumber, isObject, kindOf, type Value } from '../../lib/sql/values.ts';
import { FUNCTIONS } from '../sql/support.ts';
import type { Random } from './random.ts';

const PIECES = [
  ...['SELECT', 'FROM', 'WHERE', 'FOREACH', 'DO', 'INCASE', 'AS', 'CASE', 'WHEN', 'THEN', 'ELSE', 'END', 'IN', 'NOT'],
  ...['AND', 'OR', 'div', 'mod', 'true', 'payload', 'upper(', '"t"', "'a'", '1', '1.5e3', '-0', '-- x\n', '*'],
  ...['(', ')', '[', ']', '..', '.', ',', ';', '=~', '<>', '<=', '=', '+', '-', '/', "'", '"', '`', '#', '|', '!'],
  ...['\n', '\0', '\ufeff', '\u2028', 'é', '😀', '\ud800', '__proto__', 'constructor', '9'.repeat(400)]
];

const LONG = 'x'.repeat(100_000);
const DEEP_TEXT = `${'[{"a":'.repeat(480)}1${'}]'.repeat(480)}`;
const TOO_DEEP_TEXT = '['.repeat(200_000) + ']'.repeat(200_000);

/** Unexpected values. Events and the functions of apps can contain any of them. */
const HOSTILE: readonly Value[] = [
  ...[undefined, null, true, false],
  ...[0, -0, -1, 1, 2, 7, 1.5, -0.5, 1e-320, 1e308, Number.NaN, Infinity, -Infinity],
  ...[Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2n ** 64n, -(2n ** 200n), 2n ** 5000n],
  ...[new Float(0), new Float(-0), new Float(1e308), new Float(Number.NaN)],
  ...['', 'a', '1', '-1', '1e5', '\0', '\ud800', '\udc00a', '😀é', '~s~p~999999999b~*c', '(a+)+$', '[', '__proto__'],
  ...['{"a":{"b":[1,2,{"c":null}]}}', '{"__proto__":{"polluted":1}}', 'a.b.c', 'second', 'leading', '%Y-%m-%d'],
  ...[' '.repeat(1000), '9'.repeat(2000), `0.${'0'.repeat(2000)}1`, LONG, `"${LONG}"`, DEEP_TEXT, TOO_DEEP_TEXT],
  ...[Buffer.from([0xff, 0xfe, 0]), Buffer.alloc(10_000, 0xc3), new Uint8Array(0)],
  ...[[], [1, 'a', null, [2]], [undefined], Array.from({ length: 20_000 }, (_, i) => i), decodeJson(DEEP_TEXT)],
  ...[{}, { a: { b: 1 }, constructor: 2, length: 3 }, decodeJson('{"__proto__":{"polluted":1},"a":[1]}')],
  nested(3000)
];

const ACCEPTS: Readonly<Record<string, (value: Value) => boolean>> = {
  string: (value) => typeof value === 'string',
  bytes: (value) => typeof value === 'string' || value instanceof Uint8Array,
  integer: (value) => kindOf(value) === 'integer',
  number: isNumber,
  boolean: (value) => typeof value === 'boolean',
  list: isList,
  object: isObject
};

/** A value with more levels than JSON may have. */
function nested(levels: number): Value {
  let value: Value = 1;
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

export function hostileValue(random: Random): Value {
  return random.pick(HOSTILE);
}

/** A value that a function accepts for a parameter, so that the function is reached. */
function hostileArgument(param: Parameter, random: Random): Value {
  const accepts = ACCEPTS[param.replace(/\?$|\.\.\.$/, '')];
  return accepts === undefined ? hostileValue(random) : random.pick(HOSTILE.filter(accepts));
}

/** The names of the columns that hold arguments. */
const COLUMNS = ['a', 'b', 'c', 'd', 'e'];

/** A call of a function, with hostile values for its arguments: of its types, or of any. */
export function hostileCall(random: Random): { readonly sql: string; readonly columns: Record<string, Value> } {
  const { name, params, choices } = random.pick([...FUNCTIONS.values()]);
  const isFitting = !random.once(4);
  const count = isFitting ? params.length - random.below(2) : random.below(COLUMNS.length);
  const columns: Record<string, Value> = {};
  for (const [index, column] of COLUMNS.slice(0, Math.max(0, count)).entries()) {
    const param = params[Math.min(index, params.length - 1)];
    const choice = choices?.[index];
    if (!isFitting || param === undefined) columns[column] = hostileValue(random);
    else columns[column] = choice === undefined ? hostileArgument(param, random) : random.pick(choice);
  }
  return { sql: `SELECT ${name}(${Object.keys(columns).join(', ')}) AS v FROM "t"`, columns };
}

/** A string of pieces of statements, in any order. */
export function soup(random: Random): string {
  const space = random.pick(['', ' ']);
  const pieces = Array.from({ length: random.below(30) }, () => random.pick(PIECES));
  return `${random.pick(['', 'SELECT ', 'SELECT * FROM "t" WHERE ', 'FOREACH '])}${pieces.join(space)}`;
}

/** Parts around an expression, which can be put inside each other any number of times. */
const WRAPS: readonly (readonly [before: string, after: string])[] = [
  ['(', ')'],
  ['[', ']'],
  ['NOT ', ''],
  ['- ', ''],
  ['1 + ', ''],
  ['', ' + 1'],
  ['', ' AND true'],
  ['', '.a'],
  ['', '[1]'],
  ['a[', ']'],
  ['upper(', ')'],
  ['CASE WHEN ', ' THEN 1 END'],
  ['CASE 1 WHEN 1 THEN ', ' END'],
  ['1 IN (', ')'],
  ["concat('a', ", ')']
];

/** A statement with an expression that is nested deeply, to the longest statement and beyond. */
export function deep(random: Random): string {
  const [before, after] = random.pick(WRAPS);
  const times = random.pick([10, 400, 499, 501, 5000, 20_000]);
  return `SELECT ${before.repeat(times)}payload${after.repeat(times)} FROM "t"`;
}

/** A string with some pieces removed, doubled or inserted. */
export function damaged(text: string, random: Random): string {
  let result = text;
  for (let edits = random.below(4); edits > 0; edits--) {
    const at = random.below(result.length + 1);
    const length = random.below(6);
    const piece = random.pick([random.pick(PIECES), result.slice(at, at + length), '']);
    result = result.slice(0, at) + piece + result.slice(at + random.pick([0, length]));
  }
  return result;
}

/** Bytes of a payload: JSON that is damaged, or any bytes. */
export function hostilePayload(random: Random): Buffer {
  const text = random.pick([
    '{"a":{"b":[1,2,{"c":null}]},"msg":"hello","x":1.0}',
    '[1,2,3]',
    '"\\ud800"',
    DEEP_TEXT,
    '-0'
  ]);
  const bytes = Buffer.from(random.once(3) ? damaged(text, random) : text);
  for (let edits = random.below(3); edits > 0; edits--) bytes[random.below(bytes.length)] = random.below(256);
  return random.once(8) ? random.bytes(random.below(40)) : bytes;
}

const PLACEHOLDERS = ['a', 'a.b', 'item', 'payload', '__proto__', 'constructor.name', 'a.b.c.d.e', '', 'a-b', '1'];

/** The template of an action. */
export function template(random: Random): string {
  return Array.from({ length: random.below(4) }, () => `\${${random.pick(PLACEHOLDERS)}}${random.pick(PIECES)}`).join(
    ''
  );
}
