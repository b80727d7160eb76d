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
  /** Contents of a file. */
  readFile(path: string): Promise<Buffer>;
  /** Import a package that need not be installed. */
  importPackage(name: string): Promise<unknown>;
  /** Hear SIGINT and SIGTERM instead of ending by them. @returns a function that goes back */
  onSignal(listener: (signal: 'SIGINT' | 'SIGTERM') => void): () => void;
  /** Wait, until the signal aborts at the latest. */
  delay(ms: number, signal: AbortSignal): Promise<void>;
  /** End the process at once. */
  exit(code: number): void;
}

/** A subcommand of `embermq`. */
export interface Command {
  /** One line for the list of commands. */
  readonly summary: string;
  /** What `embermq help <command>` prints. */
  help(): string;
  /** @returns the exit code. Throws BrokerError for what the user can mend: its message is printed, without a stack. */
  run(args: readonly string[], shell: Shell): Promise<number>;
}

/** Write a line to standard error. */
export function tell(shell: Shell, line: string): void {
  shell.stderr.write(`${line}\n`);
}

/** Read a file that the command line names. @throws BrokerError FILE_UNREADABLE */
export function readFileFor(shell: Shell, path: string): Promise<Buffer> {
  return shell.readFile(path).catch((cause: Error) => {
    throw new BrokerError('FILE_UNREADABLE', `can not read ${path}: ${cause.message}`, { cause });
  });
}
