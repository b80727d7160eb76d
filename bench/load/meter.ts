import { coresBusyUs, usageOf } from '../support/proc.ts';
import type { FullTask } from './task.ts';

/** What passed between two readings. */
export interface Span {
  readonly seconds: number;
  readonly brokerCpuUs: number;
  /** CPU time of this process, the load generator. */
  readonly loadCpuUs: number;
  /** What part of the cores others used; NaN when the processes are not pinned. */
  readonly othersBusy: number;
  /** How much the broker's resident memory grew. */
  readonly grownBytes: number;
  readonly residentBytes: number;
}

/** Begins to measure a broker and this process; the function returned tells what was used since. */
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
