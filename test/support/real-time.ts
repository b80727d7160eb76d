import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';
import timers from 'node:timers';

/** Lets real time that a broker waits for pass at once. */
export async function inNoTime(t: TestContext, run: () => Promise<void>): Promise<void> {
  const { setTimeout } = timers;
  t.mock.method(timers, 'setTimeout', (run: () => void) => setTimeout(run, 0));
  syncBuiltinESMExports();
  try {
    await run();
  } finally {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  }
}

/** Resolves after all timers of `node:timers` that have been set before, with no delay. */
export function timersPassed(): Promise<void> {
  return new Promise((resolve) => {
    timers.setTimeout(resolve, 0);
  });
}
