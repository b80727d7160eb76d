import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Timer, TimingWheel } from '../../lib/base/timing-wheel.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { samples } from '../support/samples.ts';
import { randomSource } from '../topics/slow-matcher.ts';

const DAY_MS = 86_400_000;

const alarm = (ring: (nowMs: number) => void): Timer => ({
  dueMs: Infinity,
  slot: undefined,
  previous: undefined,
  next: undefined,
  ring
});

const setUp = (tickMs = 100) => {
  const clock = new ManualClock();
  const errors: unknown[] = [];
  const wheel = new TimingWheel(clock, tickMs, (error) => errors.push(error));
  const rung: string[] = [];
  const named = (name: string) => alarm((nowMs) => rung.push(`${name} at ${nowMs}`));
  return { clock, wheel, errors, rung, named };
};

describe('TimingWheel', () => {
  it('calls a timer once, at the first tick that is not before its time', () => {
    const { clock, wheel, rung, named } = setUp();
    const one = named('a');
    wheel.arm(one, 250);
    assert.equal(one.dueMs, 250);
    assert.equal(wheel.size, 1);
    clock.advance(299);
    assert.deepEqual(rung, []);
    clock.advance(DAY_MS);
    assert.deepEqual(rung, ['a at 300']);
    assert.equal(one.dueMs, Infinity);
    assert.equal(wheel.size, 0);
    assert.equal(clock.pending, 0);
  });

  it('calls timers in order of due tick, and in order of arming within one', () => {
    const { clock, wheel, rung, named } = setUp();
    for (const [name, delayMs] of [
      ['d', 900],
      ['b', 350],
      ['c', 310],
      ['a', 100]
    ] as const) {
      wheel.arm(named(name), delayMs);
    }
    clock.advance(1000);
    assert.deepEqual(rung, ['a at 100', 'b at 400', 'c at 400', 'd at 900']);
  });

  it('moves a timer that is armed again', () => {
    const { clock, wheel, rung, named } = setUp();
    const one = named('a');
    wheel.arm(one, 100);
    wheel.arm(one, 500);
    assert.equal(wheel.size, 1);
    clock.advance(400);
    assert.deepEqual(rung, []);
    wheel.armAt(one, 700);
    clock.advance(1000);
    assert.deepEqual(rung, ['a at 700']);
  });

  it('accepts an earlier timer while it waits for a later one', () => {
    const { clock, wheel, rung, named } = setUp();
    wheel.arm(named('late'), 5000);
    clock.advance(1000);
    wheel.arm(named('soon'), 100);
    clock.advance(100);
    assert.deepEqual(rung, ['soon at 1100']);
    clock.advance(DAY_MS);
    assert.deepEqual(rung, ['soon at 1100', 'late at 5000']);
  });

  it('never calls a timer that was disarmed or armed without end', () => {
    const { clock, wheel, rung, named } = setUp();
    const [a, b] = [named('a'), named('b')];
    wheel.arm(a, 100);
    wheel.disarm(a);
    wheel.disarm(a);
    wheel.arm(b, 100);
    wheel.arm(b, Infinity);
    assert.equal(wheel.size, 0);
    clock.advance(DAY_MS);
    assert.deepEqual(rung, []);
  });

  it('uses no timer of the clock while nothing is armed', () => {
    const { clock, wheel, named } = setUp();
    assert.equal(clock.pending, 0);
    wheel.arm(named('a'), Infinity);
    assert.equal(clock.pending, 0);
    wheel.arm(named('b'), 100);
    wheel.arm(named('c'), 200);
    assert.equal(clock.pending, 1);
    clock.advance(DAY_MS);
    assert.equal(clock.pending, 0);
  });

  it('treats a delay below zero as zero', () => {
    const { clock, wheel, rung, named } = setUp();
    clock.advance(1000);
    wheel.arm(named('a'), -5000);
    clock.advance(0);
    assert.deepEqual(rung, ['a at 1000']);
  });

  it('lets a timer arm itself, disarm another one and arm others when it is called', () => {
    const { clock, wheel, rung, named } = setUp();
    const neighbour = named('neighbour');
    let rings = 0;
    const again = alarm((nowMs) => {
      rung.push(`again at ${nowMs}`);
      wheel.disarm(neighbour);
      if (++rings < 3) wheel.arm(again, 100);
      if (rings === 1) wheel.arm(named('other'), 0);
    });
    wheel.arm(again, 100);
    wheel.arm(neighbour, 100);
    clock.advance(DAY_MS);
    assert.deepEqual(rung, ['again at 100', 'other at 100', 'again at 200', 'again at 300']);
  });

  it('calls all timers that became due while the process was suspended, in order of ticks', () => {
    const { clock, wheel, rung, named } = setUp();
    wheel.arm(named('b'), 2000);
    wheel.arm(named('a'), 1000);
    wheel.arm(named('c'), 90_000);
    clock.stall(60_000);
    clock.advance(0);
    assert.deepEqual(rung, ['a at 60000', 'b at 60000']);
    clock.advance(DAY_MS);
    assert.equal(rung[2], 'c at 90000');
  });

  it('rings timers that are due together in several turns, in their order, if they take long', () => {
    const clock = new ManualClock();
    const turns: (() => void)[] = [];
    const wheel = new TimingWheel(clock, 100, assert.ifError, (run) => turns.push(run));
    const rung: number[] = [];
    const slow = (number: number) =>
      alarm(() => {
        rung.push(number);
        clock.stall(1);
        if (number === 0) wheel.arm(slow(100), 0); // the next tick
      });
    for (let number = 0; number < 100; number++) wheel.arm(slow(number), 100);
    const inTurns: number[] = [];
    clock.advance(100);
    for (let before = 0; before < rung.length; turns.shift()?.()) {
      inTurns.push(rung.length - before);
      before = rung.length;
    }
    assert.deepEqual(inTurns, Array(20).fill(5), 'timers that ring in a turn');
    clock.advance(100);
    assert.deepEqual(
      rung,
      Array.from({ length: 101 }, (_, number) => number)
    );
    assert.deepEqual([wheel.size, turns.length], [0, 0]);
  });

  it('rings all timers that are due at once while the clock stands still, as that of a test', () => {
    const clock = new ManualClock();
    const wheel = new TimingWheel(clock, 100, assert.ifError, () => assert.fail('one turn is enough'));
    let rings = 0;
    for (let number = 0; number < 100_000; number++)
      wheel.arm(
        alarm(() => rings++),
        100
      );
    clock.advance(100);
    assert.equal(rings, 100_000);
  });

  it('reports an error that a timer throws, and calls the others', () => {
    const { clock, wheel, errors, rung, named } = setUp();
    const thrown = new Error('broken');
    const broken = alarm(() => {
      throw thrown;
    });
    wheel.arm(broken, 100);
    wheel.arm(named('same tick'), 100);
    wheel.arm(named('next tick'), 200);
    clock.advance(300);
    assert.deepEqual(errors, [thrown]);
    assert.deepEqual(rung, ['same tick at 100', 'next tick at 200']);
  });

  it('continues even if the error handler throws', () => {
    const clock = new ManualClock();
    const rung: number[] = [];
    const wheel = new TimingWheel(clock, 100, (error) => {
      throw error;
    });
    const broken = alarm(() => {
      throw new Error('broken');
    });
    wheel.arm(broken, 100);
    wheel.arm(
      alarm((nowMs) => rung.push(nowMs)),
      100
    );
    assert.throws(() => clock.advance(100), /broken/);
    clock.advance(100);
    assert.deepEqual(rung, [100]);
  });

  it('removes all timers when cleared, and can be used again', () => {
    const { clock, wheel, rung, named } = setUp();
    const one = named('a');
    wheel.arm(one, 100);
    wheel.arm(named('b'), 5000);
    wheel.clear();
    assert.equal(wheel.size, 0);
    assert.equal(wheel.slotCount, 0);
    assert.equal(clock.pending, 0);
    clock.advance(DAY_MS);
    assert.deepEqual(rung, []);
    wheel.arm(one, 100);
    clock.advance(100);
    assert.equal(rung.length, 1);
  });

  it('keeps no slots for disarmed timers: 100,000 session expiries that were cancelled', () => {
    const { clock, wheel, named } = setUp();
    const long = named('long');
    wheel.arm(long, 365 * DAY_MS);
    const one = named('a');
    for (let i = 0; i < 100_000; i++) {
      clock.stall(100);
      wheel.arm(one, 7 * DAY_MS);
      wheel.disarm(one);
    }
    assert.equal(wheel.size, 1);
    assert.ok(wheel.slotCount < 200, `${wheel.slotCount} slots`);
  });

  it('rings never early and at most a tick late over random arming and disarming', () => {
    const source = randomSource('timing wheel');
    const { clock, wheel } = setUp(10);
    const due = new Map<Timer, number>();
    let rings = 0;
    const alarms = Array.from({ length: 300 }, () => {
      const own: Timer = alarm((nowMs) => {
        const dueMs = due.get(own);
        assert.ok(dueMs !== undefined, 'rings though it is not armed');
        assert.ok(nowMs >= dueMs, 'rings early');
        assert.ok(nowMs < dueMs + 10, 'rings late');
        due.delete(own);
        rings++;
      });
      return own;
    });
    const errors: unknown[] = [];
    const checked = new TimingWheel(clock, 10, (error) => errors.push(error));
    for (let round = 0; round < samples(20_000); round++) {
      const one = source.pick(alarms);
      if (source.below(3) === 0) {
        checked.disarm(one);
        due.delete(one);
      } else {
        const delayMs = source.below(source.pick([5, 500, 50_000]));
        checked.arm(one, delayMs);
        due.set(one, clock.monotonic() + delayMs);
      }
      clock.advance(source.below(7));
      assert.equal(checked.size, due.size);
    }
    clock.advance(DAY_MS);
    assert.deepEqual(errors, []);
    assert.equal(due.size, 0);
    assert.equal(wheel.size, 0);
    assert.ok(rings > samples(5000), `${rings} rings`);
  });
});
