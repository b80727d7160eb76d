import { PassThrough } from 'node:stream';
import type { Shell } from '../../adapters/cli/command.ts';
import { readFileUpTo } from '../../adapters/cli/config-text.ts';

/** A process for a command under test. Tests read its output, define its files and send signals. */
export interface TestShell extends Shell {
  readonly env: Record<string, string | undefined>;
  readonly stdin: PassThrough & { isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
  stdinBytes: number | undefined;
  readonly stdout: PassThrough & { isTTY?: boolean; columns?: number };
  readonly stderr: PassThrough & { isTTY?: boolean };
  readonly files: Map<string, string | Buffer>;
  /** The delays that were requested, in milliseconds. No time passes; a delay ends in the next turn of the event loop. */
  readonly delays: number[];
  /** The codes that `exit` was called with. */
  readonly exits: number[];
  /** The current number of signal handlers. */
  readonly signalListeners: Set<unknown>;
  signal(name: 'SIGINT' | 'SIGTERM'): void;
  /** Send SIGHUP. Throws if it would end the process. */
  hangUp(): void;
  /** The output since the last call. */
  out(): string;
  err(): string;
  /** Wait until standard output contains a line that matches. @returns the line */
  line(pattern: RegExp): Promise<string>;
}

/** Without these, commands under test would use the default HTTP ports. Flags override them. */
export const NO_HTTP = {
  EMBERMQ_HTTP_PORT: 'off',
  EMBERMQ_HTTP_EARLIER_PORT: 'off',
  EMBERMQ_RULES_PORT: 'off',
  EMBERMQ_DASHBOARD_PORT: 'off'
};

export function testShell(): TestShell {
  const files = new Map<string, string | Buffer>();
  const exits: number[] = [];
  const delays: number[] = [];
  const listeners = new Set<(signal: 'SIGINT' | 'SIGTERM') => void>();
  let hungUp = (): void => {
    throw new Error('SIGHUP ends the process');
  };
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  let seen = '';
  const take = (stream: PassThrough) => String(stream.read() ?? '');
  return {
    env: { ...NO_HTTP },
    pid: 4711,
    stdin: new PassThrough(),
    stdinBytes: undefined,
    stdout,
    stderr,
    files,
    exits,
    delays,
    signalListeners: listeners,
    async readFile(path, maxBytes) {
      const text = files.get(path);
      return text === undefined ? readFileUpTo(path, maxBytes) : Buffer.from(text);
    },
    importPackage: (name) => import(name),
    collectWhenIdle: () => () => {},
    async delay(ms) {
      delays.push(ms);
      await new Promise((resolve) => setImmediate(resolve));
    },
    onSignal(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onHangup(listener) {
      hungUp = listener;
      return () => {
        hungUp = () => {};
      };
    },
    hangUp: () => hungUp(),
    exit: (code) => exits.push(code),
    signal(name) {
      for (const listener of [...listeners]) listener(name);
    },
    out: () => take(stdout),
    err: () => take(stderr),
    async line(pattern) {
      for (;;) {
        seen += take(stdout);
        const lines = seen.split('\n');
        const at = lines.slice(0, -1).findIndex((line) => pattern.test(line));
        if (at >= 0) {
          seen = lines.slice(at + 1).join('\n');
          return lines[at];
        }
        await new Promise((resolve) => stdout.once('readable', resolve));
      }
    }
  };
}

/** The ports and the process id in the `ready` line of a running `serve`. Rejects if it ends before. */
export async function readyPorts(shell: TestShell, code: Promise<number>): Promise<Record<string, number>> {
  const line = await Promise.race([shell.line(/^ready \{.*\}$/), code]);
  if (typeof line === 'number') throw new Error(`serve ended with ${line} before it was ready: ${shell.err()}`);
  return JSON.parse(line.slice('ready '.length));
}
