/** Trace files: a stream for `broker.trace` that writes to files of a limited size. */
import type { FileHandle } from 'node:fs/promises';
import { open, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { type FieldValues, field, readOptions } from '../../lib/adapter.ts';
import { BrokerError, type Size } from '../../lib/index.ts';

const OPTIONS = {
  maxBytes: field('size', 10_485_760, 'Maximum size of one file.', { unit: 'bytes', min: 4_096 }),
  files: field('integer', 2, 'Number of files that are kept, including the current one.', { min: 2, max: 1_000 })
} as const;

/** Options of `traceFile`. */
export interface TraceFileOptions {
  /** Maximum size of one file. Default 10 MB. */
  readonly maxBytes?: Size;
  /** Number of files that are kept, including the current one: at least 2, which is the default. */
  readonly files?: number;
}

type Settings = FieldValues<typeof OPTIONS>;

/** A chunk that waits to be written. */
interface Chunk {
  readonly chunk: Buffer;
}

/**
 * Open a file for a trace. Lines are appended. When the file has reached `maxBytes`, it is renamed to `PATH.1` (the
 * previous `PATH.1` to `PATH.2`, and so on; the oldest one is deleted), and a new file begins. Files are readable only
 * by their owner, because traces contain payloads.
 *
 * ```ts
 * const trace = broker.trace({ clientId: 'pump-7', to: await traceFile('pump-7.jsonl'), durationMs: '1h' });
 * ```
 *
 * If writing fails later, for example because the disk is full, the trace ends and the broker emits an `error` event.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID; BrokerError TRACE_FILE_FAILED if the file cannot be opened
 */
export async function traceFile(path: string, options: TraceFileOptions = {}): Promise<Writable> {
  const settings = readOptions(OPTIONS, options, 'traceFile');
  try {
    return new TraceFile(path, settings, ...(await openAt(path)));
  } catch (error) {
    throw failed(path, error as NodeJS.ErrnoException);
  }
}

class TraceFile extends Writable {
  readonly #path: string;
  readonly #settings: Settings;
  #file: FileHandle;
  #bytes: number;

  constructor(path: string, settings: Settings, file: FileHandle, bytes: number) {
    super({ decodeStrings: true });
    this.#path = path;
    this.#settings = settings;
    this.#file = file;
    this.#bytes = bytes;
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.#writeAll([{ chunk }], done);
  }

  override _writev(chunks: Chunk[], done: (error?: Error) => void): void {
    this.#writeAll(chunks, done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#file.close().then(
      () => done(error),
      (cause: NodeJS.ErrnoException) => done(error ?? failed(this.#path, cause))
    );
  }

  #writeAll(chunks: readonly Chunk[], done: (error?: Error) => void): void {
    this.#write(chunks.map(({ chunk }) => chunk)).then(
      () => done(),
      (error: NodeJS.ErrnoException) => done(failed(this.#path, error))
    );
  }

  /** Write as many lines at once as the file has room for. */
  async #write(lines: readonly Buffer[]): Promise<void> {
    const { maxBytes } = this.#settings;
    let part: Buffer[] = [];
    for (const line of lines) {
      if (this.#bytes > 0 && this.#bytes + line.length > maxBytes) {
        await this.#file.appendFile(Buffer.concat(part));
        part = [];
        await this.#rotate();
      }
      part.push(line);
      this.#bytes += line.length;
    }
    await this.#file.appendFile(Buffer.concat(part));
  }

  async #rotate(): Promise<void> {
    const { files } = this.#settings;
    const path = this.#path;
    await this.#file.close();
    for (let number = files - 1; number > 0; number--)
      await rename(number === 1 ? path : `${path}.${number - 1}`, `${path}.${number}`).catch(unlessMissing);
    [this.#file, this.#bytes] = await openAt(path);
  }
}

async function openAt(path: string): Promise<[file: FileHandle, bytes: number]> {
  const present = await stat(path).catch(unlessMissing);
  if (present !== undefined && !present.isFile()) throw new Error('it is not a regular file');
  const file = await open(path, 'a', 0o600);
  return [file, present?.size ?? 0];
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

function failed(path: string, cause: NodeJS.ErrnoException): BrokerError {
  const reason =
    cause.code === 'ENOENT'
      ? `the folder ${dirname(path)} does not exist`
      : cause.code === 'ENOSPC'
        ? 'the disk is full'
        : cause.message;
  return new BrokerError('TRACE_FILE_FAILED', `cannot write the trace file ${path}: ${reason}`, { cause });
}
