import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodeJson } from '../../lib/sql/json.ts';
import { SqlError, SqlFailure } from '../../lib/sql/sql-error.ts';
import { CASE_FILES, readCases, type SqlCase } from './cases.ts';
import { PlainRow } from './plain-row.ts';
import { evaluate, MembersRow } from './support.ts';

/** The result of a case, as written in its file. */
function resultOf({ sql, event, isExpression }: SqlCase, Row = PlainRow): string {
  try {
    const outputs = evaluate(sql, event, Row);
    if (outputs === undefined) return 'nothing';
    if (!isExpression) return encodeJson(outputs);
    const [output] = outputs as readonly Record<string, never>[];
    return Object.hasOwn(output, 'v') ? encodeJson(output.v) : 'absent';
  } catch (error) {
    if (error instanceof SqlError) return `error ${error.message.replaceAll('\n', ' ')}`;
    if (error instanceof SqlFailure) return `fails ${error.message}`;
    throw error;
  }
}

for (const file of CASE_FILES)
  describe(`SQL of ${file}`, () => {
    for (const row of readCases(file))
      it(`${row.place}: ${row.sql} gives ${row.expected}`, () => {
        const result = resultOf(row);
        const [kind] = /^(error|fails) /.exec(row.expected) ?? [''];
        if (kind === '') assert.equal(result, row.expected);
        else assert.ok(result.startsWith(kind) && result.includes(row.expected.slice(kind.length)), result);
      });

    it('returns the same results if rows read members of JSON without the others', () => {
      MembersRow.reads = 0;
      for (const row of readCases(file)) assert.equal(resultOf(row, MembersRow), resultOf(row), row.place);
      assert.ok(MembersRow.reads > 0);
    });
  });
