import { readFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import type { Broker } from '../../lib/index.ts';

/**
 * What the interface tells about the virtual machine of the original products, and what comes closest to it here. Sessions stand for its
 * processes, because it has one for each client.
 */
interface Runtime {
  /** Average load of the machine over 1, 5 and 15 minutes. */
  readonly load: readonly number[];
  /** Limit of file descriptors; 0: there is none, or it is unknown. */
  readonly maxDescriptors: number;
  /** Bytes that V8 has allocated, and buffers. */
  readonly memoryTotal: number;
  /** Bytes in use. */
  readonly memoryUsed: number;
  /** Maximum number of sessions; 0: unlimited. */
  readonly maxProcesses: number;
  /** Number of sessions, connected or not. */
  readonly processes: number;
}

/** The version of the runtime. */
export const RUNTIME_VERSION = process.version;

/** Read the figures of the runtime at this moment. */
export async function readRuntime({ settings, sessions }: Broker): Promise<Runtime> {
  const { heapTotal, heapUsed, external } = process.memoryUsage();
  return {
    load: loadavg(),
    maxDescriptors: await readMaxDescriptors(),
    memoryTotal: heapTotal + external,
    memoryUsed: heapUsed + external,
    maxProcesses: settings.maxSessions,
    processes: sessions.count
  };
}

/** The limit is read each time, because it can be changed from outside. Only Linux has the file. */
async function readMaxDescriptors(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'latin1').catch(() => '');
  return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? 0);
}
