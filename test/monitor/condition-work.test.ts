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

/** A condition in which a condition occurs many times. */
function many(condition: string): string {
  return Array(40).fill(condition).join(' OR ');
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

const objectOf = (size: number) => Object.fromEntries(Array.from({ length: size }, (_, at) => [`key ${at}`, at]));
const textOf = (end: string) => 'x'.repeat(300_000) + end;
/** Bytes that are not UTF-8 at their end. */
const bytesOf = (end: number) => Buffer.concat([Buffer.alloc(300_000, 'x'), Buffer.from([0xff, end])]);
const LARGE: Readonly<Record<string, Value>> = {
  text: textOf(''),
  bytes: Buffer.alloc(300_000, 0xff),
  list: Array.from({ length: 300_000 }, (_, index) => index),
  object: objectOf(20_000)
};

/** The functions that read no more than a bounded part of an argument, at least in one place. */
const CONSTANT = [
  // they take a part of it
  ...['coalesce', 'sublist', 'map', 'map_get', 'mget'],
  // they look at its type
  ...['is_array', 'is_bool', 'is_float', 'is_int', 'is_map', 'is_not_null', 'is_null', 'is_num', 'is_str'],
  // they compare it with a small value
  ...['contains', 'eq'],
  // they know the length of a string or a list
  'is_empty',
  // they replace what is not an object
  ...['map_put', 'mput']
];

/** Comparisons and copies of two values that differ at their ends only, or not at all. */
const LONG_WORK = [
  ...['=', '!=', '<', '>', '<=', '>='].flatMap((operator) => [`o ${operator} p`, `t ${operator} u`]),
  ...['o IN (p, 1)', 't IN (u)', 'o NOT IN (p)', 't =~ u'],
  ...['CASE o WHEN p THEN 2 ELSE 3 END = 1', 'CASE t WHEN u THEN 2 ELSE 3 END = 1'],
  ...['eq(o, p)', 'eq(t, u)', 'contains(o, objects)', 'contains(t, texts)'],
  ...['b = c', 'b < c', 'b IN (c)', 'eq(b, c)', 'b = t', 't < b', 't > b', 'eq(t, b)', 'l = k', 'l < k', 'l IN (k)'],
  ...[
    "map_put('a', 1, o) = 1",
    "map_put('o.a', 1, outer) = 1",
    "mput('a', 1, o) = 1",
    'map_size(o) = 1',
    'is_empty(o)'
  ],
  ...['n div m = 1', 'n mod m = 1', 'div(n, m) = 1', 'mod(n, m) = 1']
];

/** Comparisons that are decided by a small part of large values. */
const SHORT_WORK = [
  ...['=', '<'].flatMap((operator) => [`o ${operator} fewer`, `o ${operator} l`, `l ${operator} t`, `b ${operator} l`]),
  ...['=', '>='].flatMap((operator) => [
    `l ${operator} other`,
    `t ${operator} 'a'`,
    `'a' ${operator} b`,
    `b ${operator} 'a'`
  ]),
  ...['o IN (fewer, l, t)', 'l IN (other, shorter, o)', 't IN (b, o)', 't IN (longer)', 't = longer', 'b IN (t)'],
  ...['eq(o, fewer)', 'eq(l, o)', "eq('a', t)", 'contains(o, objects)', 'CASE o WHEN fewer THEN 2 ELSE 3 END = 1']
];

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

  it('counts what every function reads of a large argument, unless it takes constant time', async () => {
    const uncounted = new Set<string>();
    for (const row of functions)
      for (const call of Object.keys(LARGE).flatMap((column) => callsWith(row, column)))
        if ((await failureOf(many(`${call} = 'z'`), LARGE)) === undefined) uncounted.add(row.name);
    assert.deepEqual([...uncounted].sort(), CONSTANT.toSorted());
  });

  for (const one of LONG_WORK)
    it(`counts the work of ${one}, because people who may only read could block the broker with it`, async () => {
      const [o, p] = [objectOf(5_000), objectOf(5_000)];
      const [t, u] = [textOf('1'), textOf('2')];
      const more = { objects: [p], texts: [u], outer: { o }, n: 7n ** 20_000n, m: 3n ** 9_000n };
      const [b, c, l, k] = [bytesOf(1), bytesOf(2), Array(40_000).fill(1), Array(40_000).fill(1)];
      const failure = await failureOf(many(`(${one}) = 'never'`), { o, p, t, u, b, c, l, k, ...more });
      assert.match(failure ?? '', /reads and makes more than 262144 characters/);
    });

  it('counts only what a comparison reads of large values', async () => {
    const heavy = (size: number) => Object.fromEntries(Array.from({ length: size }, (_, at) => [`k${at}`, textOf('')]));
    const columns = { o: heavy(20), fewer: heavy(19), l: [0, heavy(20)], other: [1, heavy(20)], shorter: [0] };
    const all = { ...columns, objects: [columns.fewer], t: textOf(''), longer: textOf('1'), b: bytesOf(1) };
    for (const one of SHORT_WORK) assert.equal(await failureOf(many(`(${one}) = 'never'`), all), undefined, one);
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
