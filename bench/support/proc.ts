import { readdirSync, readFileSync } from 'node:fs';

/** The resources that a process has used so far. Values that the system does not provide are NaN. */
export interface Usage {
  /** The CPU time of all threads, in microseconds. */
  readonly cpuUs: number;
  /** The resident memory, in bytes. */
  readonly residentBytes: number;
}

/** Read the CPU time and memory of a process from /proc. */
export function usageOf(pid: number): Usage {
  return { cpuUs: cpuUs(pid), residentBytes: residentBytes(pid) };
}

/**
 * Read the CPU time of all threads of a process, in microseconds. `schedstat` counts nanoseconds. `stat` counts ticks of 10 ms, and is
 * used only if the kernel provides no `schedstat`.
 */
export function cpuUs(pid: number): number {
  try {
    let ns = 0;
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
    }
    return ns / 1000;
  } catch {
    return ticksUs(pid);
  }
}

function ticksUs(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === undefined) return Number.NaN;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

/** Read the resident memory of a process, in bytes. */
export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`) ?? '');
  return line === null ? Number.NaN : Number(line[1]) * 1024;
}

/** Read the CPU time that all processes used on the given cores, in microseconds with a resolution of 10 ms; NaN if unknown. */
export function coresBusyUs(cores: readonly number[]): number {
  const stat = read('/proc/stat');
  if (stat === undefined || cores.length === 0) return Number.NaN;
  let ticks = 0;
  for (const core of cores) {
    const line = new RegExp(`^cpu${core} (.*)$`, 'm').exec(stat)?.[1] ?? '';
    const [user, nice, system, , , irq, softirq, steal] = line.split(' ').map(Number);
    ticks += user + nice + system + irq + softirq + steal;
  }
  return ticks * 10_000;
}

/** The number of files that this process may open; Infinity if unknown. */
export function openFilesLimit(): number {
  const line = /^Max open files\s+(\d+)/m.exec(read('/proc/self/limits') ?? '');
  return line === null ? Number.POSITIVE_INFINITY : Number(line[1]);
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}
