import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, readlink, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import { availableParallelism, totalmem, userInfo } from 'node:os';
import { promisify } from 'node:util';
import { getHeapStatistics } from 'node:v8';

/** Sizes of a file system. */
interface FileSystem {
  /** The number by which the kernel knows its type; 0 if it is not Linux. */
  readonly type: number;
  readonly bytes: number;
  /** Bytes that the user of the process can write. */
  readonly freeBytes: number;
  /** Number of files that it can have; 0: no limit. */
  readonly files: number;
  readonly freeFiles: number;
}

/** Facts about the machine and this process. Tests replace some of them. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  /** Such as `22.11.0`. */
  readonly nodeVersion: string;
  /** User id of the process; undefined on Windows. */
  readonly uid: number | undefined;
  readonly userName: string;
  readonly cores: number;
  /** The limit of the heap of a Node.js process with the options of this one. */
  readonly heapBytes: number;
  /** The memory that this process may use: of the machine, or of its container. */
  readonly memoryBytes: number;
  /** The time zone of the process. */
  readonly timeZone: string;
  /** Milliseconds since 1970. */
  now(): number;
  fileSystem(path: string): Promise<FileSystem>;
  /** Read a file of the system, such as `/proc/self/limits`; undefined if there is none. */
  readText(path: string): Promise<string | undefined>;
  /** Tell whether the clock is synchronised with a server; undefined if that is unknown. */
  isClockSynchronized(): Promise<boolean | undefined>;
  /** Find the process that listens on a TCP port; undefined if that is unknown. */
  listenerOf(port: number): Promise<number | undefined>;
  /** Open a connection and close it. Resolves with the reason if that is not possible. */
  connectionFailure(host: string, port: number): Promise<string | undefined>;
}

/** The maximum time of another program. */
const PROGRAM_MS = 3_000;
/** The maximum time to open a connection. */
const CONNECT_MS = 3_000;

/** This machine. */
export const thisMachine: Machine = {
  platform: process.platform,
  nodeVersion: process.versions.node,
  uid: process.getuid?.(),
  get userName() {
    try {
      return userInfo().username;
    } catch {
      return `${process.getuid?.()}`; // a container may have no name for its user
    }
  },
  cores: availableParallelism(),
  heapBytes: getHeapStatistics().heap_size_limit,
  memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Infinity),
  timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  now: Date.now,
  async fileSystem(path) {
    const { type, bsize, blocks, bavail, files, ffree } = await statfs(path);
    const isLinux = process.platform === 'linux';
    return { type: isLinux ? type : 0, bytes: blocks * bsize, freeBytes: bavail * bsize, files, freeFiles: ffree };
  },
  readText: (path) => readFile(path, 'utf8').catch(() => undefined),
  async isClockSynchronized() {
    const args = ['show', '--property=NTPSynchronized', '--value'];
    const answer = await promisify(execFile)('timedatectl', args, { timeout: PROGRAM_MS }).catch(() => undefined);
    return { yes: true, no: false }[answer?.stdout.trim() ?? ''];
  },
  async listenerOf(port) {
    const inodes = new Set<string>();
    for (const table of ['/proc/net/tcp', '/proc/net/tcp6'])
      for (const line of (await thisMachine.readText(table))?.split('\n') ?? []) {
        const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
        if (state === LISTENING && Number.parseInt(local.split(':')[1], 16) === port) inodes.add(`socket:[${inode}]`);
      }
    if (inodes.size === 0) return undefined;
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []); // of another user, or ended
      for (const descriptor of descriptors)
        if (inodes.has(await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => ''))) return Number(pid);
    }
    return undefined;
  },
  async connectionFailure(host, port) {
    const socket = connect({ host, port });
    try {
      await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS) });
      return undefined;
    } catch (error) {
      const { code, name } = error as NodeJS.ErrnoException;
      return name === 'AbortError' ? `no answer within ${CONNECT_MS / 1_000} seconds` : (code ?? name);
    } finally {
      socket.on('error', () => {}); // of an attempt that was given up
      socket.destroy();
    }
  }
};

/** The state of a listening socket in /proc/net/tcp. */
const LISTENING = '0A';
