import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileRule } from '../../lib/rules/index.ts';
import { SqlError } from '../../lib/sql/sql-error.ts';
import { compileStreamRule } from '../../lib/streams/index.ts';

const CASE = 'use CASE WHEN condition THEN a ELSE b END';
const EQUALITY = 'equality is a single =';

async function hintOf(compile: (sql: string) => Promise<unknown>, sql: string): Promise<string | undefined> {
  try {
    await compile(sql);
  } catch (error) {
    if (error instanceof SqlError) return error.hint;
    throw error;
  }
  throw new Error('the statement is valid');
}

/** Test the hint of each statement. */
function check(compile: (sql: string) => Promise<unknown>, cases: Readonly<Record<string, string | undefined>>): void {
  for (const [sql, hint] of Object.entries(cases))
    it(`answers ${sql} with ${hint ?? 'no hint'}`, async () => {
      assert.equal(await hintOf(compile, sql), hint);
    });
}

describe('The hint of a statement over events in the SQL of others', () => {
  check(compileRule, {
    'SELECT a FROM "t" WHERE a == 1': EQUALITY,
    'SELECT payload->a FROM "t"': 'use a dot: payload.a',
    'SELECT count(*) FROM "t"': 'each event is evaluated separately; aggregates such as count(*) are for stream rules',
    'SELECT avg(a) FROM "t"': 'each event is evaluated separately; aggregates are for stream rules',
    'SELECT if(a > 1, 1, 2) FROM "t"': CASE,
    'SELECT nvl(a, 1) FROM "t"': 'did you mean coalesce()?',
    'SELECT len(a) FROM "t"': 'did you mean strlen()?',
    'SELECT xyz(a) FROM "t"': undefined,
    'FOREACH payload.l AS s DO s FROM "t" INCASE s > 1':
      'INCASE is before FROM: FOREACH list DO fields INCASE condition FROM "a/b"'
  });
});

describe('The hint of a statement over streams in the SQL of others', () => {
  check(compileStreamRule, {
    'SELECT a FROM demo WHERE a == 1': EQUALITY,
    'SELECT a || b FROM demo': 'join strings with concat(a, b)',
    'SELECT if(a > 1, 1, 2) FROM demo': CASE,
    'SELECT iif(a > 1, 1, 2) FROM demo': CASE,
    'SELECT nvl(a, 1) FROM demo': 'did you mean coalesce()?',
    'SELECT mean(a) FROM demo': 'did you mean avg()?',
    'SELECT avrg(a) FROM demo': 'did you mean avg()?',
    'SELECT xyz(a) FROM demo': undefined,
    'SELECT a FROM demo GROUP BY TUMBLING(ss, 10)': 'did you mean tumblingwindow()?',
    'SELECT a FROM demo GROUP BY TUMBLINGWINDW(ss, 10)': 'did you mean tumblingwindow()?'
  });
});
