import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { SqlError } from '../../lib/sql/sql-error.ts';
import { StreamFailure, type StreamValueObject } from '../../lib/streams/values/values.ts';
import { readValue } from './expression-support.ts';
import { evaluate, FUNCTIONS, show } from './function-support.ts';

interface Case {
  readonly place: string;
  readonly row: StreamValueObject;
  readonly expression: string;
  readonly expected: string;
}

/** Lines are comments, `row {...}` for the cases that follow, and `EXPRESSION -> EXPECTED`; `*` at the end stands for any text. */
function readCases(): Case[] {
  const lines = readFileSync(join(import.meta.dirname, 'cases', 'functions.txt'), 'utf8').split('\n');
  const cases: Case[] = [];
  let row: StreamValueObject = {};
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '' || line.startsWith('# ')) continue;
    const place = `functions.txt:${index + 1}`;
    if (line.startsWith('row ')) row = readValue(line.slice(4)) as StreamValueObject;
    else {
      const [expression, expected] = line.split(' -> ');
      if (expected === undefined) throw new Error(`${place} has no " -> "`);
      cases.push({ place, row, expression, expected });
    }
  }
  return cases;
}

function resultOf({ expression, row }: Case): string {
  try {
    return show(evaluate(expression, row));
  } catch (error) {
    if (error instanceof SqlError) return `error ${error.fault}`;
    if (error instanceof StreamFailure) return `fails ${error.message}`;
    throw error;
  }
}

const CASES = readCases();

describe('functions over streams', () => {
  for (const each of CASES)
    it(`${each.place}: ${each.expression} gives ${each.expected}`, () => {
      const result = resultOf(each);
      if (each.expected.endsWith('*')) assert.ok(result.startsWith(each.expected.slice(0, -1)), result);
      else assert.equal(result, each.expected);
    });

  it('contains a case for each function', () => {
    const text = CASES.map(({ expression }) => expression.toLowerCase()).join('\n');
    const missing = [...FUNCTIONS.values()]
      .filter(({ kind }) => kind === 'scalar' || kind === 'context')
      .filter(({ name }) => !new RegExp(`\\b${name}\\(`).test(text));
    assert.deepEqual(
      missing.map(({ name }) => name),
      ['newuuid']
    );
  });

  it('gives functions unique names in lower case', () => {
    for (const [name, row] of FUNCTIONS) assert.equal(row.name, name.toLowerCase());
  });

  it('creates a new UUID of version 1 for each call of newuuid()', () => {
    const [first, second] = [evaluate('newuuid()', {}), evaluate('newuuid()', {})];
    for (const uuid of [first, second])
      assert.match(String(uuid), /^[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.notEqual(first, second);
  });
});
