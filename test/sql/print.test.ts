import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { printStatement } from '../../lib/sql/print.ts';
import { parseStatement } from '../../lib/sql/statement.ts';
import { Random } from '../fuzz/random.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';
import { CASE_FILES, readCases } from './cases.ts';
import { StatementMaker, withoutPlaces } from './generated.ts';
import { DIALECT } from './support.ts';

const print = (sql: string) => printStatement(parseStatement(sql, DIALECT), DIALECT);

describe('A printed statement', () => {
  it('prints a statement that has the same tree and prints to the same text', () => {
    const seed = readSeed();
    const maker = new StatementMaker(new Random(seed));
    for (let count = 0; count < samples(3000); count++) {
      const statement = maker.statement();
      const text = printStatement(statement, DIALECT);
      const parsed = parseStatement(text, DIALECT);
      assert.deepEqual(withoutPlaces(parsed), withoutPlaces(statement), `${shownSeed(seed)}: ${text}`);
      assert.equal(print(text), text, shownSeed(seed));
    }
  });

  it('keeps the meaning of all valid statements of the text files', () => {
    for (const file of CASE_FILES)
      for (const { sql, expected } of readCases(file))
        if (!expected.startsWith('error')) assert.equal(print(print(sql)), print(sql));
  });

  it('prints keywords in upper case, aliases with AS, and no unnecessary parentheses', () => {
    assert.equal(
      print('select (a+1)*2 b, not (x and y) from t where ((a = 1)) or b<>2 -- c'),
      'SELECT (a + 1) * 2 AS b, NOT (x AND y) FROM "t" WHERE a = 1 OR b != 2'
    );
  });
});
