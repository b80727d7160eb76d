import type { Readable, Writable } from 'node:stream';
import { BrokerError } from '../../lib/index.ts';
import type { FlagTable } from './flags.ts';

/** The parts of the process that a command uses. Tests pass replacements. */
export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
  /** Length of standard input in bytes if it is a file, otherwise undefined. */
  readonly stdinBytes: number | undefined;
  /** `columns`: the width of the terminal. */
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  /** Read a file. With `maxBytes`, it must be a regular file of at most this size. */
  readFile(path: string, maxBytes?: number): Promise<Buffer>;
  /** Import an optional package. */
  importPackage(name: string): Promise<unknown>;
  /** Handle SIGINT and SIGTERM, which then no longer end the process. @returns a function that removes the handler */
  onSignal(listener: (signal: 'SIGINT' | 'SIGTERM') => void): () => void;
  /** Handle SIGHUP, which then no longer ends the process. @returns a function that removes the handler; SIGHUP is ignored afterwards */
  onHangup(listener: () => void): () => void;
  /** Return memory to the system whenever the process is idle after a burst. @returns a function that ends this */
  collectWhenIdle(): () => void;
  /** Wait for `ms` milliseconds, or until the signal aborts. */
  delay(ms: number, signal: AbortSignal): Promise<void>;
  /** End the process immediately. */
  exit(code: number): void;
}

/** The flags and words that may follow the words of a command line, for the completion of a shell. */
export interface Completed {
  /** Flags that may follow here, and after each of the next words. */
  readonly flags?: FlagTable;
  /** The next words, and what may follow each. */
  readonly words?: Readonly<Record<string, Completed>>;
  /** The kind of its other arguments, if they are names of files. */
  readonly files?: 'file' | 'folder';
}

/** A subcommand of `embermq`. */
export interface Command {
  /** One line for the overview of the commands. */
  readonly summary: string;
  /**
   * True if the command continues when standard output can no longer be written to. Other commands then end, as on
   * SIGPIPE.
   */
  readonly outlivesOutput?: boolean;
  /** True if `-h` names a host, as in mosquitto_pub, unless it stands alone. For other commands, it prints the help. */
  readonly hasHostFlag?: boolean;
  /** The flags and words that may follow the name of the command. */
  completed(): Completed;
  /**
   * The output of `embermq help <command>`.
   * @param args the words after the command; most commands have only one help text
   */
  help(args: readonly string[]): string;
  /**
   * Run the command.
   * @returns the exit code
   * @throws BrokerError for errors that the user can resolve; only its message is printed, without a stack
   */
  run(args: readonly string[], shell: Shell): Promise<number>;
}

/** While standard error has this many unwritten bytes, further lines are dropped, because its reader may have stopped reading. */
const MAX_UNREAD_BYTES = 1_048_576;

/** Control characters other than line feeds, line separators, and characters that change the direction of text. */
const UNPRINTABLE = /[^\P{Cc}\n]|[\u2028\u2029\p{Bidi_Control}]/gu;

/**
 * Write a line to standard error, with unprintable characters escaped. The caller replaces line feeds inside values.
 */
export function log(shell: Shell, line: string): void {
  if (shell.stderr.writableLength < MAX_UNREAD_BYTES) shell.stderr.write(`${printable(line)}\n`);
}

/** Escape characters that a terminal would not print, except line feeds. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** Escape characters that a terminal would not print, and line feeds. */
export function oneLine(text: string): string {
  return printable(text).replaceAll('\n', '\\n');
}

/** A value as JSON in one line. Characters that a terminal would not print are escaped, as JSON allows in all its strings. */
export function jsonLine(value: unknown): string {
  return printable(JSON.stringify(value));
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Read a file that the user has named. @throws BrokerError FILE_UNREADABLE */
export function readFileFor(shell: Shell, path: string, maxBytes?: number): Promise<Buffer> {
  return shell.readFile(path, maxBytes).catch((cause: Error) => {
    throw new BrokerError('FILE_UNREADABLE', oneLine(`cannot read ${path}: ${cause.message}`), { cause });
  });
}
