import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { SqlError } from '../../lib/sql/sql-error.ts';
import { StreamFailure, type StreamValue, type StreamValueObject } from '../../lib/streams/values/values.ts';
import { Random } from '../fuzz/random.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';
import { evaluate, readValue, showValue } from './expression-support.ts';

interface Case {
  readonly place: string;
  readonly row: StreamValueObject;
  readonly meta: StreamValueObject;
  readonly expression: string;
  readonly expected: string;
}

/** Lines are comments, `row {...}` and `meta {...}` for the cases that follow, and `EXPRESSION -> EXPECTED`. */
function readCases(): Case[] {
  const lines = readFileSync(join(import.meta.dirname, 'cases', 'expressions.txt'), 'utf8').split('\n');
  const cases: Case[] = [];
  let [row, meta]: StreamValueObject[] = [{}, {}];
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '' || line.startsWith('# ')) continue;
    if (line.startsWith('row ')) row = readValue(line.slice(4)) as StreamValueObject;
    else if (line.startsWith('meta ')) meta = readValue(line.slice(5)) as StreamValueObject;
    else {
      const at = line.lastIndexOf(' -> ');
      if (at === -1) throw new Error(`expressions.txt:${index + 1} has no " -> "`);
      cases.push({
        place: `expressions.txt:${index + 1}`,
        row,
        meta,
        expression: line.slice(0, at).trim(),
        expected: line.slice(at + 4).trim()
      });
    }
  }
  return cases;
}

function resultOf(expression: string, row: StreamValueObject, meta: StreamValueObject = {}): string {
  try {
    return showValue(evaluate(expression, row, meta));
  } catch (error) {
    if (error instanceof SqlError) return `error ${error.fault}${error.hint === undefined ? '' : ` (${error.hint})`}`;
    if (error instanceof StreamFailure) return `fails ${error.message}`;
    throw error;
  }
}

describe('expressions over streams', () => {
  for (const { place, row, meta, expression, expected } of readCases())
    it(`${place}: ${expression} gives ${expected}`, () => {
      assert.equal(resultOf(expression, row, meta), expected);
    });
});

/** Operators, as slow and obvious as possible: integers unchanged, floats by conversion. */
function obvious(operator: string, left: StreamValue, right: StreamValue): string {
  const nulls = [left, right].filter((value) => value === null).length;
  if (nulls > 0) {
    return ['=', '!=', '<', '<=', '>', '>='].includes(operator) ? 'false' : 'null';
  }
  const isNumeric = [left, right].every((value) => typeof value === 'number' || typeof value === 'bigint');
  const isText = typeof left === 'string' && typeof right === 'string';
  const isComparison = ['=', '!=', '<', '>', '<=', '>='].includes(operator);
  if (isText && isComparison) {
    const order = Buffer.compare(Buffer.from(left as string), Buffer.from(right as string));
    return String(holds(operator, order));
  }
  const isWordComparison = operator === '=' || operator === '!=';
  if (typeof left === 'boolean' && typeof right === 'boolean' && isWordComparison)
    return String((left === right) === (operator === '='));
  if (!isNumeric) return 'fails';
  // all floats of the test are exact multiples of 1/4, so that they can be compared as integers
  if (isComparison) return String(holds(operator, Number(quarters(left) - quarters(right))));
  const isZero = Number(right) === 0;
  if (isZero && (operator === '/' || operator === '%')) return 'fails';
  const isInteger = typeof left === 'bigint' && typeof right === 'bigint';
  const result = isInteger ? integers(operator, left, right) : floats(operator, Number(left), Number(right));
  return showValue(result);
}

function quarters(value: StreamValue): bigint {
  return typeof value === 'bigint' ? value * 4n : BigInt((value as number) * 4);
}

function holds(operator: string, order: number): boolean {
  if (order === 0) return ['=', '<=', '>='].includes(operator);
  return operator === '!=' || (order < 0 ? operator.startsWith('<') : operator.startsWith('>'));
}

function integers(operator: string, left: bigint, right: bigint): bigint {
  const results: Record<string, () => bigint> = {
    '+': () => left + right,
    '-': () => left - right,
    '*': () => left * right,
    '/': () => left / right,
    '%': () => left % right
  };
  const wrapped = results[operator]() & 0xffff_ffff_ffff_ffffn;
  return wrapped >= 1n << 63n ? wrapped - (1n << 64n) : wrapped;
}

function floats(operator: string, left: number, right: number): number {
  if (operator === '+') return left + right;
  if (operator === '-') return left - right;
  if (operator === '*') return left * right;
  return operator === '/' ? left / right : left % right;
}

const OPERATORS = ['+', '-', '*', '/', '%', '=', '!=', '<', '>', '<=', '>='];
const VALUES: readonly StreamValue[] = [
  null,
  true,
  false,
  '',
  'a',
  'b',
  '\uffff',
  '😀',
  0n,
  0,
  -1n,
  7n,
  7,
  7.25,
  -2.5,
  2,
  2n ** 62n,
  2n ** 63n - 1n,
  -(2n ** 63n),
  9007199254740993n,
  9007199254740992
];

/** A value as a literal of SQL, if there is one. */
function literal(value: StreamValue): string | undefined {
  if (value === null || (typeof value === 'bigint' && value < 0n) || (typeof value === 'number' && value < 0))
    return undefined;
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}.0` : `${value}`;
  return String(value);
}

describe('operators over random values', () => {
  it('gives the same results as a slow evaluation, for columns and for literals', () => {
    const seed = readSeed();
    const random = new Random(seed);
    for (let round = 0; round < samples(1000); round++) {
      const operator = random.pick(OPERATORS);
      const [a, b] = [random.pick(VALUES), random.pick(VALUES)];
      const left = random.once(3) ? (literal(a) ?? 'a') : 'a';
      const right = random.once(2) ? (literal(b) ?? 'b') : 'b';
      const result = resultOf(`${left} ${operator} ${right}`, { a, b }).replace(/^fails .*/, 'fails');
      const shown = `${shownSeed(seed)}: ${left} ${operator} ${right} with ${showValue({ a, b })}`;
      assert.equal(result, obvious(operator, a, b), shown);
    }
  });
});
