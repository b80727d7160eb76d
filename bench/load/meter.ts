import { usageOf } from '../support/proc.ts';

/** What passed between two readings. */
export interface Span {
  readonly seconds: number;
  readonly brokerCpuUs: number;
  /** CPU time of this process, the load generator. */
  readonly loadCpuUs: number;
  /** How much the broker's resident memory grew. */
  readonly grownBytes: number;
  readonly residentBytes: number;
}

/** Begins to measure a broker and this process; the function returned tells what was used since. */
export function meter(pid: number): () => Span {
  const before = reading(pid);
  return () => {
    const after = reading(pid);
    return {
      seconds: (after.atMs - before.atMs) / 1000,
      brokerCpuUs: after.cpuUs - before.cpuUs,
      loadCpuUs: after.ownUs - before.ownUs,
      grownBytes: after.residentBytes - before.residentBytes,
      residentBytes: after.residentBytes
    };
  };
}

function reading(pid: number) {
  const own = process.cpuUsage();
  return { atMs: performance.now(), ownUs: own.user + own.system, ...usageOf(pid) };
}
