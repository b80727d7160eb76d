import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AnyStateMachine, createMachine, initialTransition, transition } from 'xstate';
import { type Chart, type ChartState, firstStep, isFinal, nextStep } from '../../lib/base/chart.ts';

/** Returns numbers from 0 to below `limit` that follow from a seed. */
function random(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

const EVENTS = ['a', 'b', 'c'];

/** Returns a chart of three levels with random transitions. Every state has an action at its entry and at its exit. */
function randomChart(below: (limit: number) => number): Chart {
  const paths = ['x', 'y', 'z'].flatMap((outer) => [outer, ...['p', 'q'].map((inner) => `${outer}.${inner}`)]);
  const targets = (path: string) => {
    const on: Record<string, string | { target: string; reenter: true }> = {};
    for (const event of EVENTS) {
      if (below(2) === 0) continue;
      const target = paths[below(paths.length)];
      on[event] = target === path ? { target: `#chart.${target}`, reenter: true } : `#chart.${target}`;
    }
    return on;
  };
  const state = (path: string, inner: readonly string[]): ChartState => ({
    entry: [`enter ${path}`],
    exit: `leave ${path}`,
    on: targets(path),
    ...(inner.length > 0 && {
      initial: inner[below(inner.length)],
      states: Object.fromEntries(inner.map((name) => [name, state(`${path}.${name}`, [])]))
    })
  });
  const states = Object.fromEntries(['x', 'y', 'z'].map((name) => [name, state(name, ['p', 'q'])]));
  return { id: 'chart', initial: 'x', states };
}

function joined(value: unknown): string {
  if (typeof value === 'string') return value;
  const [[outer, inner]] = Object.entries(value as Record<string, unknown>);
  return `${outer}.${joined(inner)}`;
}

type Taken = [snapshot: { value: unknown }, actions: { type: string }[]];
const begin = initialTransition as unknown as (machine: AnyStateMachine) => Taken;
const take = transition as unknown as (machine: AnyStateMachine, from: unknown, event: object) => Taken;

describe('A chart', () => {
  it('takes the same steps as the machine of xstate with this configuration', () => {
    const seed = Date.now() >>> 0;
    const below = random(seed);
    for (let round = 0; round < 200; round++) {
      const chart = randomChart(below);
      const machine = createMachine(chart as never) as AnyStateMachine;
      let [snapshot, taken] = begin(machine);
      let step = firstStep(chart);
      for (let count = 0; count < 30; count++) {
        const where = `seed ${seed}, round ${round}, step ${count}`;
        assert.equal(step.to, joined(snapshot.value), where);
        const actions = taken.map(({ type }) => type);
        assert.deepEqual(step.actions, actions, where);
        const type = EVENTS[below(EVENTS.length)];
        const from = step.to;
        [snapshot, taken] = take(machine, snapshot, { type });
        step = nextStep(chart, from, type) ?? { to: from, actions: [] };
      }
    }
  });

  it('has ended in a final state', () => {
    const chart: Chart = { id: 'chart', initial: 'x', states: { x: { on: { a: 'y' } }, y: { type: 'final' } } };
    assert.deepEqual(nextStep(chart, 'x', 'a'), { to: 'y', actions: [] });
    assert.deepEqual([isFinal(chart, 'x'), isFinal(chart, 'y')], [false, true]);
    assert.equal(nextStep(chart, 'y', 'a'), undefined);
  });

  it('names a target that does not exist', () => {
    const chart: Chart = { id: 'chart', initial: 'x', states: { x: { on: { a: 'y.z' } } } };
    assert.throws(() => nextStep(chart, 'x', 'a'), /the chart chart has no state y/);
  });
});
