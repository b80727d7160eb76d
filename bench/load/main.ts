import { pathToFileURL } from 'node:url';
import { runBystander } from './bystander.ts';
import { runIdle, runStorm } from './connections.ts';
import { runFlow, runWild } from './flow.ts';
import { runOffline, runRetained } from './kept.ts';
import { Load } from './load.ts';
import { runLogins, runWrongLogins } from './logins.ts';
import { runResets } from './resets.ts';
import { type Outcome, TASK_DEFAULTS, type Task } from './task.ts';

/**
 * The load generator, a separate process: `node main.js '{"mode":"pairs","port":1883,"pid":4711}'` prints one line of JSON.
 *
 * It uses 0.1 to 0.5 us per message if messages arrive in bursts: frames are encoded once and patched, all sockets read into the same
 * memory, and packets are decoded in place.
 */

const MODES: Readonly<Record<Task['mode'], (load: Load) => Promise<Record<string, number>>>> = {
  pairs: runFlow,
  fanin: runFlow,
  fanout: runFlow,
  wild: runWild,
  storm: runStorm,
  resets: runResets,
  idle: runIdle,
  retained: runRetained,
  offline: runOffline,
  bystander: runBystander,
  logins: runLogins,
  'wrong-logins': runWrongLogins
};

/** Run one task with a listening broker. Rejects if the broker refuses a connection or a subscription. */
export async function runTask(task: Task): Promise<Outcome> {
  const load = new Load({ ...TASK_DEFAULTS, ...task });
  try {
    const figures = await MODES[task.mode](load);
    return { figures, faults: load.faults() };
  } finally {
    load.destroy();
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const outcome = await runTask(JSON.parse(process.argv[2]));
  process.stdout.write(`${JSON.stringify(outcome)}\n`, () => process.exit(0));
}
