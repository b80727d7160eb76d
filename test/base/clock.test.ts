import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it, mock } from 'node:test';
import { systemClock } from '../../lib/base/clock.ts';
import { evalFlags, urlOf } from '../support/programs.ts';

describe('systemClock', () => {
  it('reports wall time and a separate monotonic time', () => {
    assert.ok(Math.abs(systemClock.now() - Date.now()) < 1000);
    const first = systemClock.monotonic();
    assert.ok(systemClock.monotonic() >= first);
  });

  it('never calls a function before its delay has passed by monotonic time', async () => {
    const late = await Promise.all(
      [0, 0.4, 1.2, 2.7, 5, 9.9].map(
        (delayMs) =>
          new Promise<number>((resolve) => {
            const dueMs = systemClock.monotonic() + delayMs;
            systemClock.setTimeout(() => resolve(systemClock.monotonic() - dueMs), delayMs);
            // The clock's own timers do not keep the process running.
            setTimeout(() => {}, 100);
          })
      )
    );
    for (const ms of late) assert.ok(ms >= 0, `${ms} ms early`);
  });

  it('does not call the function of a cleared timer', async () => {
    const timer = systemClock.setTimeout(() => assert.fail('was cleared'), 1);
    systemClock.clearTimeout(timer);
    await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it('starts no timer for an infinite delay, and accepts clearing it', () => {
    const timer = systemClock.setTimeout(() => assert.fail('never'), Infinity);
    assert.equal(timer, undefined);
    systemClock.clearTimeout(timer);
  });

  it('does not call at once for delays that exceed the range of Node', async () => {
    const timers = [2 ** 31, 2 ** 32 + 1, 1e15].map((delayMs) =>
      systemClock.setTimeout(() => assert.fail(`fired for ${delayMs}`), delayMs)
    );
    await new Promise((resolve) => setTimeout(resolve, 10));
    for (const timer of timers) systemClock.clearTimeout(timer);
  });

  it('ignores the fake timers and dates of a test framework', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 0 });
    try {
      assert.ok(systemClock.now() > 1e12);
      await new Promise<void>((resolve) => {
        const keepAlive = setImmediateLoop();
        systemClock.setTimeout(() => {
          keepAlive.stop();
          resolve();
        }, 2);
      });
    } finally {
      mock.timers.reset();
    }
  });

  it('does not keep the process running', () => {
    const script = `import { systemClock } from '${urlOf('lib/base/clock.ts')}'; systemClock.setTimeout(() => {}, 60_000);`;
    const { status, signal } = spawnSync(process.execPath, evalFlags(script), { timeout: 20_000 });
    assert.deepEqual({ status, signal }, { status: 0, signal: null });
  });
});

/** Keeps the event loop running while timers are faked. */
function setImmediateLoop(): { stop: () => void } {
  let isRunning = true;
  const turn = () => {
    if (isRunning) setImmediate(turn);
  };
  turn();
  return {
    stop: () => {
      isRunning = false;
    }
  };
}
