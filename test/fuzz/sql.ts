import { compileStatement } from '../../lib/sql/compile-statement.ts';
import { decodeJson, encodeJson } from '../../lib/sql/json.ts';
import { printStatement } from '../../lib/sql/print.ts';
import { PlainRow } from '../../lib/sql/row.ts';
import { SqlError, SqlFailure } from '../../lib/sql/sql-error.ts';
import { parseStatement } from '../../lib/sql/statement.ts';
import { Float, type Value } from '../../lib/sql/values.ts';
import { CASE_FILES, readCases } from '../sql/cases.ts';
import { StatementMaker } from '../sql/generated.ts';
import { DIALECT, FUNCTIONS, tools } from '../sql/support.ts';
import type { Random } from './random.ts';

const PIECES = [
  'SELECT',
  'FROM',
  '"t"',
  "'",
  '"',
  '(',
  ')',
  '[',
  ']',
  '..',
  '.',
  ',',
  '-',
  'CASE',
  'END',
  'NOT',
  '1',
  '\n',
  '--',
  '\0',
  '😀',
  '\ud800'
];

/** Values that a function hardly expects. */
const HOSTILE: readonly Value[] = [
  undefined,
  null,
  true,
  0,
  -1,
  1,
  7,
  1.5,
  -0.5,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
  2n ** 64n,
  -(2n ** 200n),
  new Float(0),
  new Float(-0),
  new Float(1e308),
  '',
  'a',
  '1',
  '\0',
  '\ud800',
  '😀é',
  '~s~p~999999999b~*c',
  '(a+)+$',
  '{"a":{"b":[1,2,{"c":null}]}}',
  '__proto__',
  'a.b.c',
  'second',
  'leading',
  '%Y-%m-%d',
  'x'.repeat(2000),
  Buffer.from([0xff, 0xfe, 0]),
  [],
  [1, 'a', null, [2]],
  {},
  { a: { b: 1 }, constructor: 2, length: 3 }
];

export interface SqlFuzzOptions {
  readonly runs: number;
  readonly random: Random;
}

/**
 * Parse and evaluate damaged statements, and call functions with hostile values.
 * @returns how many statements and calls had which end
 * @throws Error for an error that is none of SQL
 */
export function fuzzSql({ runs, random }: SqlFuzzOptions): Record<string, number> {
  const ends = { evaluated: 0, failed: 0, invalid: 0 };
  const maker = new StatementMaker(random);
  const texts = CASE_FILES.flatMap((file) => readCases(file).map(({ sql }) => sql));
  const names = [...FUNCTIONS.keys()];
  for (let run = 0; run < runs; run++) {
    const sql =
      run % 3 === 0
        ? callOf(random.pick(names), random)
        : damaged(run % 3 === 1 ? random.pick(texts) : printStatement(maker.statement(), DIALECT), random);
    ends[evaluated(sql, random)]++;
  }
  return ends;
}

function evaluated(sql: string, random: Random): 'evaluated' | 'failed' | 'invalid' {
  try {
    const statement = parseStatement(sql, DIALECT);
    const compiled = compileStatement(statement, { text: sql, dialect: DIALECT, functions: FUNCTIONS, tools: tools() });
    const columns = {
      a: random.pick(HOSTILE),
      b: random.pick(HOSTILE),
      c: random.pick(HOSTILE),
      d: random.pick(HOSTILE)
    };
    const outputs = compiled.run(new PlainRow({ payload: random.pick(HOSTILE), ...columns }, decodeJson));
    encodeJson(outputs ?? null);
    return 'evaluated';
  } catch (error) {
    if (error instanceof SqlError) return 'invalid';
    // what a function throws that does not know its arguments is the cause
    if (error instanceof SqlFailure && error.cause === undefined) return 'failed';
    throw new Error(`${JSON.stringify(sql)}: ${(error as Error).message}`, { cause: error });
  }
}

function callOf(name: string, random: Random): string {
  const args = ['a', 'b', 'c', 'd'].slice(0, random.below(5));
  return `SELECT ${name}(${args.join(', ')}) AS v FROM "t"`;
}

/** A text with some pieces removed, doubled or put in. */
function damaged(text: string, random: Random): string {
  let result = text;
  for (let edits = random.below(4); edits > 0; edits--) {
    const at = random.below(result.length + 1);
    const length = random.below(6);
    const piece = random.pick([random.pick(PIECES), result.slice(at, at + length), '']);
    result = result.slice(0, at) + piece + result.slice(at + random.pick([0, length]));
  }
  return result;
}
