import type { Readable, Writable } from 'node:stream';
import { BrokerError } from '../../lib/index.ts';

/** What a command can reach of the process it runs in; tests hand it something else. */
export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  readonly stdin: Readable;
  /** How long standard input is, where it is a file; undefined: nobody knows. */
  readonly stdinBytes: number | undefined;
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  /** Contents of a file; with `maxBytes`, only of a regular one that is no longer. */
  readFile(path: string, maxBytes?: number): Promise<Buffer>;
  /** Import a package that need not be installed. */
  importPackage(name: string): Promise<unknown>;
  /** Hear SIGINT and SIGTERM instead of ending by them. @returns a function that goes back */
  onSignal(listener: (signal: 'SIGINT' | 'SIGTERM') => void): () => void;
  /** From now on call the listener at SIGHUP, which no longer ends the process. @returns a function that takes it away: then nothing happens */
  onHangup(listener: () => void): () => void;
  /** From now on give memory back after a burst. @returns a function that ends that */
  collectWhenIdle(): () => void;
  /** Wait, until the signal aborts at the latest. */
  delay(ms: number, signal: AbortSignal): Promise<void>;
  /** End the process at once. */
  exit(code: number): void;
}

/** A subcommand of `embermq`. */
export interface Command {
  /** One line for the list of commands. */
  readonly summary: string;
  /** It goes on when standard output can no longer be written to. Any other command ends then, as a process does that knows SIGPIPE. */
  readonly outlivesOutput?: boolean;
  /** What `embermq help <command>` prints. */
  help(): string;
  /** @returns the exit code. Throws BrokerError for what the user can mend: its message is printed, without a stack. */
  run(args: readonly string[], shell: Shell): Promise<number>;
}

/** Bytes that wait to be written to standard error from which further lines are dropped: its reader may have stopped reading. */
const MAX_UNREAD_BYTES = 1_048_576;

/** Write a line to standard error. */
export function tell(shell: Shell, line: string): void {
  if (shell.stderr.writableLength < MAX_UNREAD_BYTES) shell.stderr.write(`${line}\n`);
}

/** Read a file that the command line names. @throws BrokerError FILE_UNREADABLE */
export function readFileFor(shell: Shell, path: string, maxBytes?: number): Promise<Buffer> {
  return shell.readFile(path, maxBytes).catch((cause: Error) => {
    throw new BrokerError('FILE_UNREADABLE', `can not read ${path}: ${cause.message}`, { cause });
  });
}
