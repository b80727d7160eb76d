import { setImmediate as turn } from 'node:timers/promises';

/**
 * A measured function.
 * @returns its cost
 */
export type Work = () => Promise<number> | number;

/**
 * Alternate between works: other work on the machine has a larger effect than the difference between them.
 * @param warming number of rounds before the measured ones, to warm up the compiler
 * @returns the costs of each work, round by round
 */
export async function takeTurns(works: readonly Work[], rounds: number, warming: number): Promise<number[][]> {
  const costs = works.map((): number[] => []);
  globalThis.gc?.();
  for (let round = -warming; round < rounds; round++) {
    for (const [at, work] of works.entries()) {
      const cost = await work();
      if (round >= 0) costs[at].push(cost);
      await turn();
    }
  }
  return costs;
}

/** The CPU time of all threads for one of `count` calls, in microseconds. */
export function cpuUs(count: number, call: () => unknown): number {
  const before = process.cpuUsage();
  for (let i = 0; i < count; i++) call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

/** Bytes of heap and buffers in use after garbage collections. Needs `--expose-gc`. */
export async function heldBytes(): Promise<number> {
  // Buffers are only released after the collection that found them unused.
  for (let times = 0; times < 3; times++) {
    globalThis.gc?.();
    await turn();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
