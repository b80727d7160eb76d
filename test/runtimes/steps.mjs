// Runs the steps of a script on Node, Bun or Deno. Prints a line for each step, and ends with 1 at the first that fails.
import process from 'node:process';
import { clearTimeout, setTimeout } from 'node:timers';

const STEP_MS = 10_000;

const { versions } = process;
/** The name of the runtime: `node`, `bun` or `deno`. */
export const runtime = ['bun', 'deno'].find((name) => name in versions) ?? 'node';
/** The folder with the built package: the first parameter of the script. */
export const dist = new URL(`../../${process.argv[2] ?? 'dist'}/`, import.meta.url);

/** Run steps in their order. Each has ten seconds. */
export async function runSteps(steps) {
  let number = 0;
  for (const [name, run] of Object.entries(steps)) {
    number++;
    try {
      await within(run());
      console.log(`ok ${number} - ${name}`);
    } catch (error) {
      console.log(`not ok ${number} - ${name}: ${error?.stack ?? error}`);
      process.exit(1);
    }
  }
  console.log(`${runtime} ${versions[runtime]}: ${number} of ${number} steps`);
}

function within(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${STEP_MS} ms`)), STEP_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
