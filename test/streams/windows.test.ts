import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { caseFiles, readStatementCases, runCase } from './statement-cases.ts';

for (const file of caseFiles('windows-'))
  describe(file, () => {
    for (const each of readStatementCases(file)) {
      it(each.title, () => {
        const { emitted, counts } = runCase(each);
        assert.deepEqual(emitted, each.expected);
        assert.deepEqual(counts, each.counts);
      });

      if (!each.isContinuous) continue;
      it(`${each.title}: gives the same if the rule is saved and continued`, () => {
        for (let saveAt = 1; saveAt < each.rows.length; saveAt++)
          assert.deepEqual(runCase(each, saveAt).emitted, each.expected, `before row ${saveAt}`);
      });
    }
  });
