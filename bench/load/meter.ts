import { coresBusyUs, usageOf } from '../support/proc.ts';
import type { FullTask } from './task.ts';

/** The resources used between two readings. */
export interface Span {
  readonly seconds: number;
  readonly brokerCpuUs: number;
  /** The CPU time of this process, the load generator. */
  readonly loadCpuUs: number;
  /** The share of the cores that other processes used; NaN if the processes are not pinned. */
  readonly othersBusy: number;
  /** The growth of the broker's resident memory. */
  readonly grownBytes: number;
  readonly residentBytes: number;
}

/**
 * Start measuring a broker and this process.
 * @returns a function that returns the resources used since then
 */
export function meter({ pid, cores }: Pick<FullTask, 'pid' | 'cores'>): () => Span {
  const before = reading(pid, cores);
  return () => {
    const after = reading(pid, cores);
    const brokerCpuUs = after.cpuUs - before.cpuUs;
    const loadCpuUs = after.ownUs - before.ownUs;
    const othersUs = after.coresUs - before.coresUs - brokerCpuUs - loadCpuUs;
    return {
      seconds: (after.atMs - before.atMs) / 1000,
      brokerCpuUs,
      loadCpuUs,
      othersBusy: Math.max(0, othersUs / (after.atMs - before.atMs) / 1000 / cores.length),
      grownBytes: after.residentBytes - before.residentBytes,
      residentBytes: after.residentBytes
    };
  };
}

function reading(pid: number, cores: readonly number[]) {
  const own = process.cpuUsage();
  return { atMs: performance.now(), ownUs: own.user + own.system, coresUs: coresBusyUs(cores), ...usageOf(pid) };
}
