import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BaseServices } from '../../lib/base/base-services.ts';
import { WorkCount } from '../../lib/base/pending-work.ts';
import { TimingWheel } from '../../lib/base/timing-wheel.ts';

const failed = (error: unknown) => assert.fail(`reported: ${String(error)}`);

/** Services for a part of the broker that is tested alone: the time is what `now` returns, and an error fails the test. */
export function standingServices(now: () => number, pause: () => Promise<void> = nextTurn): BaseServices {
  const clock = { now, monotonic: now, setTimeout: () => undefined, clearTimeout: () => undefined };
  return {
    clock,
    wheel: new TimingWheel(clock, 100, failed),
    work: new WorkCount(),
    later: setImmediate,
    pause,
    failed
  };
}
