import { readFile } from 'node:fs/promises';
import type { Broker } from '../../lib/index.ts';

/**
 * Facts about the virtual machine of the original products, or their closest equivalents here. Sessions take the place
 * of its processes, because it has one process per client.
 */
interface Runtime {
  /** Average load of the machine over 1, 5 and 15 minutes. */
  readonly load: readonly number[];
  /** Maximum number of file descriptors; 0: unlimited or unknown. */
  readonly maxDescriptors: number;
  /** Bytes allocated by V8 and by buffers. */
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

/** Read the current state of the runtime. */
export async function readRuntime({ settings, sessions }: Broker): Promise<Runtime> {
  const { heapTotal, heapUsed, external } = process.memoryUsage();
  return {
    load: process.getBuiltinModule('node:os').loadavg(),
    maxDescriptors: await readMaxDescriptors(),
    memoryTotal: heapTotal + external,
    memoryUsed: heapUsed + external,
    maxProcesses: settings.maxSessions,
    processes: sessions.count
  };
}

/** Read every time, because the limit can be changed from outside. Only Linux has the file. */
async function readMaxDescriptors(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'latin1').catch(() => '');
  return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? 0);
}
