// People who may only read can write conditions, so that every function has to count its work before it does it. The work is observed where it is
// done, and not by the time that it takes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileCondition } from '../../lib/monitor/tail/condition.ts';
import { typeAt } from '../../lib/sql/functions/calls.ts';
import { STORE_FUNCTIONS } from '../../lib/sql/functions/encoding.ts';
import type { SqlFunction } from '../../lib/sql/functions/function.ts';
import { decodeJson } from '../../lib/sql/json.ts';
import type { Value } from '../../lib/sql/values.ts';
import { PlainRow } from '../sql/plain-row.ts';
import { FUNCTIONS } from '../sql/support.ts';

const FACTS = { now: () => 0, nullIsNull: false };
/** Characters that a condition may read and make for one event, and those among them that it may find as readers see them. */
const [MAX_CHARACTERS, MAX_SEGMENTED] = [262_144, 2_621];

const shared = new Set(STORE_FUNCTIONS.map(({ name }) => name));
const functions = [...FUNCTIONS.values()].filter(({ name }) => !shared.has(name));

/** An argument that each function accepts at a place where it is not the large one. */
function small(row: SqlFunction, index: number): string {
  const choice = row.choices?.[index]?.[0];
  if (choice !== undefined) return `'${choice}'`;
  return SMALL[typeAt(row.params, index)];
}

const SMALL = {
  any: "'a'",
  json: 'few',
  string: "'a'",
  bytes: "'a'",
  integer: '1',
  number: '1',
  boolean: 'true',
  list: 'two',
  object: 'few'
};

/** Formats for which the values are read, in each way. */
const FORMATS = ['~s', '~.1s', '~9s', '~p', '~9p', '~9w'];

/** The calls of a function with a column at each place, and those of `sprintf` with formats that use it. */
function callsWith(row: SqlFunction, column: string): string[] {
  if (row.name === 'sprintf') return FORMATS.map((format) => `sprintf('${format}', ${column})`);
  if (row.name === 'sprintf_s') return FORMATS.map((format) => `sprintf_s('${format}', [${column}])`);
  const { params } = row;
  const least = params.filter((param) => !/[?.]$/.test(param)).length;
  const counts = Array.from({ length: params.length - least + 1 }, (_, more) => least + more);
  return counts.flatMap((count) =>
    Array.from({ length: count }, (_, place) => {
      const args = Array.from({ length: count }, (_, index) => (index === place ? column : small(row, index)));
      return `${row.name}(${args.join(', ')})`;
    })
  );
}

/** The number of characters that are segmented while a function runs. */
function segmentedBy(run: () => void): number {
  const { segment } = Intl.Segmenter.prototype;
  let count = 0;
  Intl.Segmenter.prototype.segment = function (text: string) {
    count += text.length;
    return segment.call(this, text);
  };
  try {
    run();
  } finally {
    Intl.Segmenter.prototype.segment = segment;
  }
  return count;
}

/** Evaluate a condition. @returns why it has failed; undefined if it has not */
async function failureOf(where: string, columns: Readonly<Record<string, Value>>): Promise<string | undefined> {
  const condition = await compileCondition(where, FACTS);
  try {
    condition(new PlainRow({ two: [1, 2], few: { a: 1 }, ...columns }, decodeJson));
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
}

const LONG = 'é'.repeat(200_000);
const TEXTS: Readonly<Record<string, Value>> = {
  text: LONG,
  bytes: Buffer.from(LONG, 'latin1'),
  texts: [LONG],
  object: { a: LONG, [LONG]: 1 },
  json: JSON.stringify({ a: LONG })
};

describe('Work of conditions', () => {
  it('bounds the characters that every function finds as readers see them, in each argument', async () => {
    const columns = { two: [1, 2], few: { a: 1 }, topic: LONG, payload: LONG, clientid: LONG, ...TEXTS };
    const calls = functions.flatMap((row) => Object.keys(TEXTS).flatMap((column) => callsWith(row, column)));
    for (const call of calls) {
      const condition = await compileCondition(`${call} = 'z'`, FACTS);
      const count = segmentedBy(() => {
        try {
          condition(new PlainRow(columns, decodeJson));
        } catch {
          // of the wrong type, or more work than is allowed
        }
      });
      assert.ok(count <= MAX_SEGMENTED + 512, `${call} has segmented ${count} characters`);
    }
  });

  it('counts the texts that sprintf() reads, also if little of them is shown', async () => {
    const columns = { text: 'x'.repeat(100_000) };
    for (const format of FORMATS) {
      const calls = (count: number) => `sprintf('${format.repeat(count)}', ${Array(count).fill('text')}) = 'z'`;
      assert.match((await failureOf(calls(3), columns)) ?? '', new RegExp(`more than ${MAX_CHARACTERS} characters`));
      assert.equal(await failureOf(calls(1), columns), undefined, format);
    }
  });

  it('bounds the characters that sprintf() finds in what other functions have made', async () => {
    const where = "sprintf('~1s', pad('é', 250000, 'trailing', 'é')) = 'z'";
    const condition = await compileCondition(where, FACTS);
    const count = segmentedBy(() =>
      assert.throws(() => condition(new PlainRow({}, decodeJson)), /more than 262144 characters/)
    );
    assert.ok(count <= MAX_SEGMENTED, `${count}`);
  });
});
