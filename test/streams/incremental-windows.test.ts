import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deserialize, serialize } from 'node:v8';
import { aggregateFunctions } from '../../lib/streams/functions/aggregates.ts';
import { makeAggregate } from '../../lib/streams/operators/aggregate.ts';
import type { AggregateCall, GroupSpec } from '../../lib/streams/operators/groups.ts';
import type { MakeOperator, Operator } from '../../lib/streams/operators/operator.ts';
import { makeWatermark } from '../../lib/streams/operators/watermark.ts';
import type { WindowShape, WindowSpec } from '../../lib/streams/operators/windows/spec.ts';
import { isIncremental, makeIncrementalWindow, makeWindow } from '../../lib/streams/operators/windows/window.ts';
import {
  type Collection,
  type Evaluate,
  type GroupRow,
  StreamRow,
  type Tuple
} from '../../lib/streams/values/tuple.ts';
import type { StreamValue } from '../../lib/streams/values/values.ts';
import { testTools, VirtualClock } from './virtual-clock.ts';

/** A generator of numbers below a limit (mulberry32). */
function random(seed: number): (limit: number) => number {
  return (limit) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
}

const column =
  (name: string): Evaluate =>
  (tuple) =>
    tuple.column(name);

function callsOf(names: readonly string[]): AggregateCall[] {
  const rows = new Map(aggregateFunctions().map((row) => [row.name, row]));
  return names.map((name) => ({
    function: rows.get(name) as AggregateCall['function'],
    args: name === 'last_value' ? [column('a'), () => true] : [column('a')]
  }));
}

const NAMES = ['count', 'sum', 'avg', 'min', 'max', 'stddev', 'vars', 'last_value'];

const SHAPES: readonly WindowShape[] = [
  { kind: 'tumbling', unit: 'ms', lengthMs: 50 },
  { kind: 'hopping', unit: 'ms', lengthMs: 50, intervalMs: 20 },
  { kind: 'hopping', unit: 'ms', lengthMs: 20, intervalMs: 50 },
  { kind: 'sliding', lengthMs: 50, delayMs: 0 },
  { kind: 'sliding', lengthMs: 50, delayMs: 0, when: (tuple) => (tuple.column('w') as number) > 5 },
  { kind: 'sliding', lengthMs: 50, delayMs: 15 },
  { kind: 'session', unit: 'ms', lengthMs: 60, timeoutMs: 9 },
  { kind: 'count', count: 7, interval: 7 },
  { kind: 'count', count: 7, interval: 3 },
  {
    kind: 'state',
    conditions: [(tuple) => (tuple.column('w') as number) > 7, (tuple) => (tuple.column('w') as number) < 2],
    partitionBy: [column('k')]
  },
  { kind: 'state', conditions: [(tuple) => (tuple.column('w') as number) > 7], partitionBy: [] }
];

function specOf(shape: WindowShape, isEventTime: boolean): WindowSpec {
  const settings = { isEventTime, align: 'clock', emitsEmpty: false, offsetMinutes: () => 0 } as const;
  return { ...shape, ...settings, mostRows: 1_000_000, mostGroups: 1000 };
}

type Emission = readonly StreamValue[];

/** Operators that can be saved and continued by new ones. */
class Continued {
  readonly clock: VirtualClock;
  readonly emitted: Emission[] = [];
  readonly #makes: readonly MakeOperator<never, never>[];
  #operators: Operator<never>[] = [];

  constructor(clock: VirtualClock, makes: readonly MakeOperator<never, never>[]) {
    this.clock = clock;
    this.#makes = makes;
    this.#open([]);
  }

  push(tuple: Tuple): void {
    this.#operators[0].push(tuple as never, 0);
  }

  restart(): void {
    const states = this.#operators.map((operator) => deserialize(serialize(operator.save?.())));
    for (const operator of this.#operators) operator.close?.();
    this.#open(states);
  }

  #open(states: readonly unknown[]): void {
    let output: { push(item: unknown): void; flush(time: number): void } = {
      push: (item) => this.emitted.push(shown(item as Collection)),
      flush: () => undefined
    };
    this.#operators = [];
    for (const [index, make] of [...this.#makes.entries()].reverse()) {
      const failed = (error: unknown) => assert.fail(error as Error);
      const next = output;
      const operator: Operator<never> = make({
        output: next as never,
        timers: this.clock,
        count: () => undefined,
        failed
      });
      if (states[index] !== undefined) operator.load?.(states[index]);
      operator.open?.();
      this.#operators.unshift(operator);
      output = {
        push: (item) => operator.push(item as never, 0),
        flush: (time) => (operator.flush === undefined ? next.flush(time) : operator.flush(time, 0))
      };
    }
  }
}

/** The range and the groups of an emission. */
function shown({ tuples, range }: Collection): Emission {
  return [
    range.start,
    range.end,
    ...(tuples as readonly GroupRow[]).flatMap((group) => [group.column('n'), ...group.aggregates])
  ];
}

/** Floats may differ in their last digits, because sums from which values are removed are rounded in another order. */
function assertAlike(actual: readonly Emission[], expected: readonly Emission[]): void {
  assert.equal(actual.length, expected.length);
  const isAlike = (left: StreamValue, right: StreamValue) =>
    left === right ||
    (typeof left === 'number' &&
      typeof right === 'number' &&
      Math.abs(left - right) <= 1e-9 * Math.max(Math.abs(left), Math.abs(right), 1));
  for (const [index, emission] of actual.entries()) {
    const isSame =
      emission.length === expected[index].length && emission.every((value, at) => isAlike(value, expected[index][at]));
    if (!isSame) assert.deepEqual(emission, expected[index], `emission ${index}`);
  }
}

function rowsOf(
  next: (limit: number) => number,
  count: number,
  isEventTime: boolean
): { at: number; row: StreamRow }[] {
  let at = 1000;
  return Array.from({ length: count }, (_, n) => {
    at += next(4) === 0 ? next(40) : next(4);
    const values = [next(1000) / 4, BigInt(next(1000)), null, next(10)];
    const row = { n, k: `k${next(3)}`, w: next(10), a: values[next(values.length)] };
    return { at, row: new StreamRow(row, isEventTime ? at - next(25) : at) };
  });
}

describe('windows that aggregate rows as they arrive', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  for (const isEventTime of [false, true])
    for (const shape of SHAPES) {
      if (isEventTime && shape.kind === 'count') continue;
      const { kind, ...lengths } = shape;
      const title = `${kind} ${JSON.stringify(lengths)}${isEventTime ? ' in the time of events' : ''}`;
      it(`gives the same results as windows that store rows, even after restarts: ${title} (seed ${seed})`, () => {
        const next = random(seed);
        const names = NAMES.filter((name) => isIncremental(shape, callsOf([name])));
        assert.deepEqual(names, NAMES);
        const clock = new VirtualClock(1000);
        const tools = testTools(clock);
        const groups: GroupSpec = { keys: [column('k')], aggregates: callsOf(names), tools, mostGroups: 100 };
        const spec = specOf(shape, isEventTime);
        const before = isEventTime
          ? [makeWatermark({ streams: 1, idleTimeout: 0, lateTolerance: 20, mostRows: 1000 })]
          : [];
        const plainly = [...before, makeWindow(spec), makeAggregate(groups, tools.frame)] as never[];
        const early = [...before, makeIncrementalWindow(spec, groups)] as never[];
        const [kept, aggregated, restarted] = [plainly, early, early].map((makes) => new Continued(clock, makes));
        const keptRestarted = new Continued(clock, plainly);
        for (const { at, row } of rowsOf(next, 400, isEventTime)) {
          clock.advanceTo(at);
          if (next(10) === 0) for (const each of [restarted, keptRestarted]) each.restart();
          for (const each of [kept, aggregated, restarted, keptRestarted]) each.push(row);
        }
        clock.advanceTo(1_000_000);
        assert.ok(kept.emitted.length > 5, `only ${kept.emitted.length} emissions`);
        assertAlike(aggregated.emitted, kept.emitted);
        assertAlike(restarted.emitted, kept.emitted);
        assertAlike(keptRestarted.emitted, kept.emitted);
      });
    }
});

describe('a sliding window of many rows', () => {
  it('takes constant time for each row of a sliding window', () => {
    const clock = new VirtualClock(0);
    const tools = testTools(clock);
    const shape: WindowShape = { kind: 'sliding', lengthMs: 100_000, delayMs: 0 };
    const groups: GroupSpec = { keys: [], aggregates: callsOf(['sum', 'max', 'count']), tools, mostGroups: 10 };
    let last: readonly StreamValue[] = [];
    const output = {
      push: ({ tuples }: Collection) => {
        last = (tuples[0] as GroupRow).aggregates;
      },
      flush: () => undefined
    };
    const failed = (error: unknown) => assert.fail(error as Error);
    const window = makeIncrementalWindow(
      specOf(shape, true),
      groups
    )({
      output,
      timers: clock,
      count: () => undefined,
      failed
    });
    for (let time = 0; time < 300_000; time++) {
      window.push(new StreamRow({ a: time }, time), 0);
      window.flush?.(time, 0);
    }
    assert.equal(last[1], 299_999);
    assert.equal(last[0], ((299_999 + 199_999) / 2) * 100_001);
  });
});
