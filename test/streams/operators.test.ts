import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aggregateFunctions } from '../../lib/streams/functions/aggregates.ts';
import { makeLookup } from '../../lib/streams/operators/lookup.ts';
import { makeOrder } from '../../lib/streams/operators/order.ts';
import { TimeQueue } from '../../lib/streams/operators/time-queue.ts';
import { boundariesOf } from '../../lib/streams/operators/windows/boundaries.ts';
import { checkWindow } from '../../lib/streams/operators/windows/spec.ts';
import { type Collection, StreamRow, type Tuple } from '../../lib/streams/values/tuple.ts';
import type { StreamValue, StreamValueObject } from '../../lib/streams/values/values.ts';
import { testTools, VirtualClock } from './virtual-clock.ts';

const tools = testTools({ now: () => 0 });

/** The result of an aggregate function for a list of arguments. */
function aggregate(name: string, rows: readonly (readonly StreamValue[])[]): StreamValue {
  const row = aggregateFunctions().find((each) => each.name === name);
  const accumulator = row?.make(tools);
  for (const [n, args] of rows.entries()) accumulator?.add(args, new StreamRow({ n, x: args[0] }, 0));
  return accumulator?.result();
}

const column = (values: readonly StreamValue[]) => values.map((value) => [value]);

describe('aggregate functions', () => {
  const cases: readonly (readonly [name: string, rows: readonly (readonly StreamValue[])[], result: StreamValue])[] = [
    ['avg', column([100n, 150n, 200n]), 150n],
    ['avg', column([1n, 2n]), 1n],
    ['avg', column([-1n, -2n]), -1n],
    ['avg', column([1n, 2.5, null]), 1.75],
    ['avg', [], null],
    ['sum', column([9_007_199_254_740_993n, 1n]), 9_007_199_254_740_994n],
    ['sum', column([1n, 0.5]), 1.5],
    ['sum', column([null]), null],
    ['min', column(['b', 'a', null]), 'a'],
    ['max', column([1n, 2.5, Number.NaN]), 2.5],
    ['max', column([null]), null],
    ['count', column([1, null, undefined, 'x']), 2n],
    ['count', [], 0n],
    ['collect', column([1, null]), [1, null]],
    [
      'deduplicate',
      ['a', 'b', 'a'].map((x) => [x, true]),
      [
        { n: 0, x: 'a' },
        { n: 1, x: 'b' }
      ]
    ],
    ['deduplicate', ['a', 'b'].map((x) => [x, false]), { n: 1, x: 'b' }],
    ['deduplicate', ['a', 'b', 'a'].map((x) => [x, false]), null],
    ['stddev', column([2, 4, 4, 4, 5, 5, 7, 9]), 2],
    ['var', column([2n, 4n, 4n, 4n, 5n, 5n, 7n, 9n]), 4],
    ['vars', column([1, 3]), 2],
    ['stddevs', column([1]), null],
    ['percentile_cont', [1, 2, 3, 4].map((x) => [x, 0.5]), 2.5],
    ['percentile_disc', [1, 2, 3, 4].map((x) => [x, 0.5]), 2],
    ['median', column([5, 1, null, 3]), 3],
    ['median', column([1n, 2n]), 1.5],
    ['last_value', [1, null].map((x) => [x, true]), 1],
    ['last_value', [1, null].map((x) => [x, false]), null],
    ['merge_agg', column([{ a: 1, b: 1 }, 3, { b: 2 }]), { a: 1, b: 2 }]
  ];
  for (const [name, rows, result] of cases)
    it(`${name} of ${rows.map(([value]) => String(value)).join(', ') || 'nothing'}`, () => {
      assert.deepEqual(aggregate(name, rows), result);
    });

  it('refuses values that an aggregate function cannot aggregate', () => {
    for (const name of ['avg', 'sum', 'stddev', 'median'])
      assert.throws(() => aggregate(name, column(['foo'])), /found invalid arg string\(foo\)/);
    assert.throws(() => aggregate('max', column([1, 'a'])), /run max function error: found invalid arg string\(a\)/);
    assert.throws(() => aggregate('percentile_cont', [[1, 2]]), /a number from 0 to 1/);
  });

  it('removes numbers of any size without leaving a rounding error', () => {
    const row = aggregateFunctions().find(({ name }) => name === 'sum');
    const sum = row?.makeSliding?.(tools);
    const row0 = new StreamRow({}, 0);
    const large = [1e308, 1e308, Number.POSITIVE_INFINITY, Number.NaN, 1e16, 0.1];
    for (const value of large) sum?.add([value], row0);
    for (const value of large.slice(0, 5)) sum?.remove?.([value], row0);
    assert.equal(sum?.result(), 0.1);
  });

  it('sums infinite numbers as long as they are in the window', () => {
    const sum = aggregateFunctions()
      .find(({ name }) => name === 'sum')
      ?.makeSliding?.(tools);
    const row = new StreamRow({}, 0);
    const results: unknown[] = [];
    for (const value of [1.5, Infinity, Infinity, -Infinity]) {
      sum?.add([value], row);
      results.push(sum?.result());
    }
    for (const value of [Infinity, Infinity, -Infinity]) {
      sum?.remove?.([value], row);
      results.push(sum?.result());
    }
    assert.deepEqual(results, [1.5, Infinity, Infinity, Number.NaN, Number.NaN, -Infinity, 1.5]);
  });
});

describe('ends of windows', () => {
  const utc = () => 0;
  const settings = { align: 'clock', isEventTime: false, offsetMinutes: utc } as const;

  it('places ends of windows at multiples within the parent unit, and then at regular intervals', () => {
    const { first, next, skip } = boundariesOf({ ...settings, unit: 'ss', intervalMs: 7000 });
    assert.equal(first(60_000), 67_000);
    assert.equal(first(119_000), 123_000);
    assert.equal(next(123_000), 130_000);
    assert.equal(skip(123_000, 137_000), 144_000);
  });

  it('places ends of windows of days at midnight of the zone, even when its offset changes', () => {
    // summer time ends on 2026-10-25 at 01:00 UTC
    const change = Date.UTC(2026, 9, 25, 1);
    const offsetMinutes = (time: number) => (time < change ? 120 : 60);
    const { first, next } = boundariesOf({ ...settings, unit: 'dd', intervalMs: 86_400_000, offsetMinutes });
    const end = first(Date.UTC(2026, 9, 24, 12));
    assert.equal(new Date(end).toISOString(), '2026-10-24T22:00:00.000Z');
    assert.equal(new Date(next(end)).toISOString(), '2026-10-25T23:00:00.000Z');
  });

  it('refuses window lengths that cannot be used', () => {
    assert.match(checkWindow({ kind: 'count', count: 3, interval: 3 }, true) ?? '', /unsupported window type/);
    assert.equal(
      checkWindow({ kind: 'count', count: 3, interval: 5 }, false),
      'The second parameter value 5 should be less than the first parameter 3.'
    );
    assert.equal(checkWindow({ kind: 'tumbling', unit: 'ss', lengthMs: 1000 }, true), undefined);
  });
});

describe('a queue by time', () => {
  it('returns items in the order of their times, and in order of arrival for equal times', () => {
    const seed = Date.now() % 1_000_000;
    let state = seed;
    const next = (limit: number) => (state = (state * 48_271 + 11) % 2_147_483_647) % limit;
    const queue = new TimeQueue<number>();
    const waiting: { time: number; item: number }[] = [];
    for (let item = 0; item < 2000; item++) {
      const time = item / 4 + next(30);
      queue.push(time, item);
      waiting.push({ time, item });
      if (next(3) > 0) continue;
      waiting.sort((a, b) => a.time - b.time || a.item - b.item);
      assert.equal(queue.firstTime, waiting[0].time, `seed ${seed}`);
      assert.equal(queue.shift(), waiting.shift()?.item, `seed ${seed}`);
    }
    assert.deepEqual(
      queue.entries().map(({ item }) => item),
      waiting.sort((a, b) => a.time - b.time || a.item - b.item).map(({ item }) => item)
    );
  });
});

describe('order', () => {
  const sorted = (values: readonly StreamValue[], isDescending = false) => {
    let result: readonly Tuple[] = [];
    const output = {
      push: (item: Tuple | Collection) => (result = (item as Collection).tuples),
      flush: () => undefined
    };
    const setup = { output: output as never, timers: new VirtualClock(), count: () => undefined, failed: assert.fail };
    const operator = makeOrder([{ evaluate: (tuple) => tuple.column('a'), isDescending }], tools.frame)(setup);
    const tuples = values.map((a, n) => new StreamRow({ a, n }, 0));
    operator.push({ tuples, range: { start: 0, end: 0, trigger: 0 } }, 0);
    return result.map((tuple) => tuple.column('n'));
  };

  it('sorts stably, with null last in both directions', () => {
    assert.deepEqual(sorted([2, null, 1n, 2n, 1]), [2, 4, 0, 3, 1]);
    assert.deepEqual(sorted([2, null, 1n, 2n, 1], true), [0, 3, 2, 4, 1]);
  });

  it('refuses to sort values of different types', () => {
    assert.throws(() => sorted([1n, 'a']), { message: 'incompatible types for comparison: int64 and string' });
  });
});

describe('a lookup join', () => {
  function lookupOf(
    find: (values: readonly StreamValue[]) => readonly StreamValueObject[] | Promise<readonly StreamValueObject[]>
  ) {
    const clock = new VirtualClock();
    const emitted: StreamValue[][] = [];
    const failures: string[] = [];
    const output = {
      push: ({ tuples }: Collection) => emitted.push(tuples.map((tuple) => [tuple.column('a'), tuple.column('b')])),
      flush: (time: number) => emitted.push([`flush ${time}`])
    };
    const failed = (error: unknown) => failures.push((error as Error).message);
    const operator = makeLookup({
      kind: 'left',
      source: 1,
      sources: 2,
      keys: ['id'],
      values: [(tuple) => tuple.column('id')],
      lookup: { find: (_keys, values) => find(values) },
      cache: { ttlMs: 1000, keepsMissing: true },
      mostPending: 2,
      mostRows: 10,
      frame: tools.frame
    })({ output: output as never, timers: clock, count: () => undefined, failed });
    const push = (id: StreamValue, a: StreamValue) => operator.push(new StreamRow({ id, a }, clock.now()), 0);
    return { clock, emitted, failures, operator, push };
  }

  it('keeps the order of rows, and of the times after them, while lookups complete in another order', async () => {
    const ends = new Map<StreamValue, (rows: readonly StreamValueObject[]) => void>();
    const { emitted, operator, push } = lookupOf(([id]) => new Promise((resolve) => ends.set(id, resolve)));
    push(1, 'first');
    operator.flush?.(5, 0);
    push(2, 'second');
    assert.throws(() => push(3, 'third'), /2 rows wait for a lookup/);
    ends.get(2)?.([]);
    await new Promise(setImmediate);
    assert.deepEqual(emitted, []);
    ends.get(1)?.([{ b: 10 }, { b: 11 }]);
    await new Promise(setImmediate);
    assert.deepEqual(emitted, [
      [
        ['first', 10],
        ['first', 11]
      ],
      ['flush 5'],
      [['second', undefined]]
    ]);
  });

  it('passes on only the last time that was reached after a row', async () => {
    let end: (rows: readonly StreamValueObject[]) => void = () => undefined;
    const { emitted, operator, push } = lookupOf(() => new Promise((resolve) => (end = resolve)));
    push(1, 'first');
    for (let time = 0; time < 5; time++) operator.flush?.(time, 0);
    assert.equal((operator.save?.() as unknown[] | undefined)?.length, 1, 'nothing but the row is kept');
    end([{ b: 10 }]);
    await new Promise(setImmediate);
    assert.deepEqual(emitted, [[['first', 10]], ['flush 4']]);
  });

  it('gives up on a lookup that does not complete, and continues with the next row', async () => {
    const { clock, emitted, failures, push } = lookupOf(([id]) => (id === 1 ? new Promise(() => {}) : [{ b: 20 }]));
    push(1, 'first');
    push(2, 'second');
    clock.advanceTo(29_999);
    await new Promise(setImmediate);
    assert.deepEqual([emitted, failures], [[], []]);
    clock.advanceTo(30_000);
    await new Promise(setImmediate);
    assert.deepEqual(failures, ['a lookup has not completed within 30000 ms: check its source']);
    assert.deepEqual(emitted, [[['second', 20]]]);
  });

  it('queries each key once until the cache expires, and reports failed lookups', () => {
    let asked = 0;
    const { clock, emitted, failures, push } = lookupOf(([id]) => {
      asked++;
      if (id === 9) throw new Error('no connection');
      if (id === 8) return undefined as never;
      return id === 1 ? [{ b: 10 }] : [];
    });
    for (const id of [1, 1, 2, 2]) push(id, 'x');
    assert.equal(asked, 2);
    clock.advanceTo(1000);
    push(1, 'y');
    assert.equal(asked, 3);
    push(9, 'z');
    push(8, 'z');
    assert.deepEqual(failures, ['lookup failed: no connection', 'the lookup did not return a list of rows']);
    assert.equal(emitted.length, 5);
  });
});
