import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StreamFunction, StreamParameter } from '../../lib/streams/function.ts';
import { StreamRow } from '../../lib/streams/values/tuple.ts';
import { isStruct, StreamFailure, type StreamValue } from '../../lib/streams/values/values.ts';
import { Random } from '../fuzz/random.ts';
import { FUNCTIONS, TOOLS } from './function-support.ts';

const LARGE = Array.from({ length: 5_000 }, (_, index) => index);

/** A value of each kind, including those that are easily forgotten. */
const VALUES: readonly (readonly [name: string, value: StreamValue])[] = [
  ['null', null],
  ['absent', undefined],
  ['false', false],
  ['true', true],
  ['zero', 0n],
  ['two', 2n],
  ['minus one', -1n],
  ['the largest integer', 2n ** 63n - 1n],
  ['the smallest integer', -(2n ** 63n)],
  ['a float', 1.5],
  ['negative zero', -0],
  ['a large float', 1e300],
  ['NaN', Number.NaN],
  ['infinity', -Infinity],
  ['an empty string', ''],
  ['a string', 'abc'],
  ['a long string', 'ab '.repeat(20_000)],
  ['half a character', '\ud800'],
  ['the name of a prototype', '__proto__'],
  ['an expression', '(a*)*b'],
  ['an invalid expression', '(?<'],
  ['a path', '$..*[? @..* == $..*]'],
  ['a type', 'bigint'],
  ['a method', 'gzip'],
  ['a pattern', 'yyyy-MM-dd HH:mm:ssSSS XXX'],
  ['a duration', '-1h30m'],
  ['a date', '2023-06-15T22:30:45Z'],
  ['a function', 'to_json'],
  ['JSON', '{"a":[1,{"b":null}]}'],
  ['deep JSON', '['.repeat(5_000)],
  ['a time', new Date(0)],
  ['an invalid time', new Date(Number.NaN)],
  ['the last time', new Date(8.64e15)],
  ['bytes', new Uint8Array([0, 255, 128])],
  ['an empty array', []],
  ['an array', [1, 'a', null, [2n], { a: 1 }]],
  ['a large array', LARGE],
  ['a deep array', JSON.parse('['.repeat(5_000) + ']'.repeat(5_000))],
  ['an array of one large array', new Array(40).fill(LARGE)],
  [
    'pairs',
    [
      ['a', 1],
      ['__proto__', 2]
    ]
  ],
  ['an empty struct', {}],
  ['a struct', { key: 'a', value: [1], __proto: 1 }],
  ['a struct with a hostile key', JSON.parse('{"__proto__":{"a":1},"constructor":2,"":3}')],
  ['a deep struct', JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`)]
];

const ROW = new StreamRow({}, 0);

/** The index of the argument that stands for `*` in calls of functions that return columns. */
const STAR = 3;

/** A call of a function with any arguments, as in compiled statements. */
function callOf(row: StreamFunction): (args: readonly StreamValue[]) => unknown {
  switch (row.kind) {
    case 'scalar':
      return (args) => (row.nullIsNull && (args[0] ?? null) === null && args.length > 0 ? null : row.run(...args));
    case 'context': {
      const run = row.make(TOOLS);
      return (args) => run(ROW, ...args);
    }
    case 'aggregate':
      return (args) => {
        const state = row.make(TOOLS);
        state.add(args, ROW);
        return state.result();
      };
    case 'analytic':
      return (args) => {
        const state = row.make(
          TOOLS,
          args.map(() => '')
        );
        state.next(args, ROW);
        state.skipped?.(args, ROW);
        state.next(args, ROW);
        return state.save();
      };
    default:
      return (args) => {
        const names = args.map((_, index) => (index === STAR ? undefined : `c${index}`));
        // the result of `*` is always the row
        row.make(TOOLS, names).next(
          args.map((value, index) => (index === STAR && !isStruct(value) ? { value } : value)),
          ROW
        );
      };
  }
}

/** The numbers of arguments that a call may have, up to 4. */
function countsOf(params: readonly StreamParameter[]): number[] {
  const least = params.filter((param) => !/[?.]$/.test(param)).length;
  const most = params.some((param) => param.endsWith('...')) ? 4 : params.length;
  return Array.from({ length: Math.max(1, most - least + 1) }, (_, index) => least + index);
}

/** Call a function, which may fail only with a `StreamFailure`. @returns milliseconds */
function check(
  row: StreamFunction,
  call: (args: readonly StreamValue[]) => unknown,
  picks: readonly (readonly [string, StreamValue])[]
): number {
  const started = process.cpuUsage();
  try {
    call(picks.map(([, value]) => value));
  } catch (error) {
    const shown = `${row.name}(${picks.map(([name]) => name).join(', ')})`;
    assert.ok(error instanceof StreamFailure, `${shown} has thrown ${(error as Error).stack}`);
    assert.ok(error.message.length < 1000, `${shown} has a message of ${error.message.length} characters`);
  }
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1000;
}

describe('functions over streams with hostile values', () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = new Random(seed);

  for (const row of FUNCTIONS.values())
    it(`${row.name}() fails only with a StreamFailure, and without delay`, () => {
      const call = callOf(row);
      let slowest = 0;
      for (const count of countsOf(row.params)) {
        if (count === 0) slowest = Math.max(slowest, check(row, call, []));
        for (let position = 0; position < count; position++)
          for (const value of VALUES) {
            const picks = Array.from({ length: count }, (_, index) =>
              index === position ? value : random.pick(VALUES)
            );
            slowest = Math.max(slowest, check(row, call, picks));
          }
      }
      assert.ok(slowest < 5000, `seed ${seed}: a call took ${slowest} ms of CPU`);
    });

  it('leaves the prototype of objects unchanged', () => {
    assert.deepEqual(Object.keys(Object.prototype), []);
    assert.equal(({} as Record<string, unknown>).a, undefined);
  });
});
