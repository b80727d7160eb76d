import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_CHARACTERS } from '../../lib/sql/lexer.ts';
import { SqlError, SqlFailure } from '../../lib/sql/sql-error.ts';
import { parseStatement } from '../../lib/sql/statement.ts';
import { DIALECT, evaluate } from './support.ts';

function errorOf(sql: string): SqlError {
  try {
    parseStatement(sql, DIALECT);
  } catch (error) {
    if (error instanceof SqlError) return error;
    throw error;
  }
  throw new Error('the statement is valid');
}

describe('An SqlError', () => {
  it('contains the line, the column, a mark below the error and a hint', () => {
    const error = errorOf('SELECT qos,\n  clientid\nFROM t/a WHERE qos = 1');
    assert.deepEqual([error.code, error.line, error.column], ['SQL_INVALID', 3, 7]);
    assert.equal(error.hint, 'put topics in double quotes: FROM "a/b"');
    assert.equal(
      error.message,
      [
        'syntax error before: "/": expected WHERE at line 3, column 7',
        '  FROM t/a WHERE qos = 1',
        '        ^',
        'hint: put topics in double quotes: FROM "a/b"'
      ].join('\n')
    );
  });

  it('shows the part of a long line around the error, with the mark below it', () => {
    const [, shown, mark] = errorOf(`SELECT ${'a, '.repeat(100)} FROM "t"`).message.split('\n');
    assert.equal(shown.slice(mark.indexOf('^')).slice(0, 4), 'FROM');
    assert.ok(shown.length < 110);
  });

  it('shows tabs and control characters as spaces, so that the mark is in the right column', () => {
    const [, shown, mark] = errorOf('SELECT\tqos\tFROM t/a').message.split('\n');
    assert.equal(shown.trimStart(), 'SELECT qos FROM t/a');
    assert.equal(shown[mark.indexOf('^')], '/');
  });
});

describe('A statement that is too large', () => {
  it('rejects a statement with too many characters', () => {
    assert.match(errorOf(`SELECT '${'a'.repeat(MAX_CHARACTERS)}' FROM "t"`).message, /the maximum is 65536/);
    const error = errorOf(`\n${' '.repeat(MAX_CHARACTERS)}`);
    assert.deepEqual([error.line, error.column], [1, 1]);
  });

  it('rejects an integer with too many digits', () => {
    assert.match(errorOf(`SELECT ${'9'.repeat(20_001)} FROM "t"`).message, /^the number 9{60} is too large/);
  });

  for (const [what, sql] of [
    ['parentheses', `SELECT ${'('.repeat(5000)}1${')'.repeat(5000)} FROM "t"`],
    ['operators', `SELECT ${'1 + '.repeat(5000)}1 FROM "t"`],
    ['signs', `SELECT ${'- '.repeat(5000)}1 FROM "t"`],
    ['NOT', `SELECT ${'NOT '.repeat(5000)}a FROM "t"`],
    ['calls', `SELECT ${'abs('.repeat(5000)}1${')'.repeat(5000)} FROM "t"`],
    ['lists', `SELECT ${'['.repeat(5000)}1${']'.repeat(5000)} FROM "t"`],
    ['indexes', `SELECT ${'a['.repeat(5000)}1${']'.repeat(5000)} FROM "t"`],
    ['CASE', `SELECT ${'CASE WHEN a THEN '.repeat(3000)}1 FROM "t"`],
    ['steps', `SELECT a${'.b'.repeat(5000)} FROM "t"`]
  ])
    it(`rejects too many levels of ${what}`, () => {
      assert.match(errorOf(sql).message, /has more than 500 (levels|steps)/);
    });

  it('accepts a statement up to the limit', () => {
    assert.deepEqual(evaluate(`SELECT ${'1 + '.repeat(400)}1 AS v FROM "t"`), [{ v: 401 }]);
    assert.deepEqual(evaluate(`SELECT ${'('.repeat(400)}1${')'.repeat(400)} AS v FROM "t"`), [{ v: 1 }]);
  });
});

describe('An event that is too large', () => {
  it('fails for more than 10000 outputs', () => {
    const payload = JSON.stringify({ list: Array.from({ length: 10_001 }, (_, index) => index) });
    assert.throws(() => evaluate('FOREACH payload.list FROM "t"', { payload }), {
      constructor: SqlFailure,
      message: 'INCASE: the event has more than 10000 outputs'
    });
  });

  it('treats JSON with very many levels as absent, and does not end the process', () => {
    for (const opening of ['[', '{"a":', '[1.0,'])
      assert.deepEqual(evaluate('SELECT payload.a AS v FROM "t"', { payload: opening.repeat(100_000) }), [{}]);
    const deep = `${'[1.0,'.repeat(5000)}1${']'.repeat(5000)}`;
    assert.deepEqual(evaluate('SELECT payload[1] AS v FROM "t"', { payload: deep }), [{}]);
    const nested = `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`;
    assert.throws(() => evaluate('SELECT json_encode(payload.a) AS v FROM "t"', { payload: nested }), {
      message: 'SELECT: the value has more than 1000 levels'
    });
    assert.throws(() => evaluate('SELECT payload.a = payload.a AS v FROM "t"', { payload: nested }), SqlFailure);
  });

  it('treats JSON with an integer of more than 20000 digits as absent', () => {
    const gives = (digits: number) =>
      evaluate('SELECT is_int(payload.a) AS v FROM "t"', { payload: `{"a":${'9'.repeat(digits)}}` });
    assert.deepEqual(gives(20_000), [{ v: true }]);
    assert.deepEqual(gives(20_001), [{ v: false }]);
  });

  it('fails if a string or an integer becomes too long', () => {
    const doubled = `SELECT pad('', 16000000) AS a, a + a AS b FROM "t"`;
    assert.throws(() => evaluate(doubled), { message: 'SELECT: the result has more than 16777216 characters' });
    const squares = Array.from({ length: 20 }, (_, index) => `x${index} * x${index} AS x${index + 1}`);
    assert.throws(() => evaluate(`SELECT 10 AS x0, ${squares} FROM "t"`), { message: /more than 65536 bits/ });
  });
});
