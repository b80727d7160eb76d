// The outputs of a trace: a function reads each entry at once, a stream in the next turn. Both bound the bytes that wait.
// Entries beyond that are dropped before they are made, and the next line has their number. A stream counts the entries
// of the turn by their size, and their lines by their length once they are made, so a line can still be dropped then;
// all later ones of the same turn are, too, so that the numbers of dropped lines stay in order.

import type { Writable } from 'node:stream';
import { asError } from '../../base/errors.ts';
import type { TraceEntry, TraceRecord } from './trace-entry.ts';

/** A function that receives the lines of a trace. */
export type TraceFunction = (record: TraceRecord, line: string) => unknown;

/** Called when the output of a trace has ended. @param error undefined: the stream was ended by others */
export type Ended = (error: Error | undefined) => void;

/** The destination of the entries of a trace, with the counters of the trace. */
export abstract class TraceOutput {
  /** Number of lines written, or kept. */
  lines = 0;
  /** Size of these lines. */
  bytes = 0;
  /** Number of entries dropped because there was no room. */
  dropped = 0;
  /** Number of entries that were dropped since the last line. */
  #missing = 0;

  /** True if further entries would be dropped, so that they need not be made. */
  abstract readonly isFull: boolean;
  /** Take an entry. */
  abstract take(entry: TraceEntry): void;
  /** Note that no more entries follow. */
  abstract end(): void;

  /** Make the lines of the entries that wait. */
  flush(): void {}

  /** Count an entry that is dropped. */
  drop(): void {
    this.dropped++;
    this.#missing++;
  }

  /** Make the object of a line, with the number of entries that were dropped before it. */
  protected recordOf(entry: TraceEntry): TraceRecord {
    const record = entry.read();
    return this.#missing === 0 ? record : { ...record, droppedBefore: this.#missing };
  }

  /** Count a line. */
  protected written(bytes: number): void {
    this.#missing = 0;
    this.lines++;
    this.bytes += bytes;
  }
}

/** Reports the end of a stream to its outputs. They share two listeners, because Node.js warns about more than ten. */
class StreamWatch {
  static readonly #all = new WeakMap<Writable, StreamWatch>();
  readonly #ended = new Set<Ended>();
  readonly #onError = (error: Error) => this.#tell(error);
  readonly #onClose = () => this.#tell(undefined);

  static add(stream: Writable, ended: Ended): void {
    const known = StreamWatch.#all.get(stream);
    const watch = known ?? new StreamWatch();
    watch.#ended.add(ended);
    if (known !== undefined) return;
    StreamWatch.#all.set(stream, watch);
    stream.on('error', watch.#onError);
    stream.on('close', watch.#onClose);
  }

  static remove(stream: Writable, ended: Ended): void {
    const watch = StreamWatch.#all.get(stream);
    if (watch === undefined || !watch.#ended.delete(ended) || watch.#ended.size > 0) return;
    StreamWatch.#all.delete(stream);
    stream.off('error', watch.#onError);
    stream.off('close', watch.#onClose);
  }

  #tell(error: Error | undefined): void {
    for (const ended of [...this.#ended]) ended(error);
  }
}

/** The part of `Traces` that outputs use. */
export interface OutputHost {
  /** Run a function in the next turn. */
  later(run: () => void): void;
  /** Run a function whose actions on the broker are not traced. */
  untraced(run: () => void): void;
}

/** An entry whose line is not made yet. */
interface WaitingEntry {
  readonly entry: TraceEntry;
  /** Number of entries after it that were dropped. */
  droppedAfter: number;
}

/**
 * Output to a stream. The lines of a turn are made in the next one, so that no packet waits for them. The bytes that the stream has not
 * written yet are limited; further entries are dropped.
 */
export class StreamOutput extends TraceOutput {
  /** True from the first entry that was dropped until half of the waiting bytes are written. */
  isFull = false;
  readonly #stream: Writable;
  readonly #maxBytes: number;
  readonly #isEnded: boolean;
  readonly #host: OutputHost;
  #onEnd: Ended | undefined;
  #entries: WaitingEntry[] = [];
  /** Size of these entries. */
  #entryBytes = 0;
  /** Size of the lines that the stream has not written yet. */
  #waitingBytes = 0;
  readonly #onStreamEnd: Ended = (error) => this.#ended(error);

  /** @param isEnded end the stream after the last line */
  constructor(stream: Writable, maxBytes: number, isEnded: boolean, host: OutputHost, onEnd: Ended) {
    super();
    this.#stream = stream;
    this.#maxBytes = maxBytes;
    this.#isEnded = isEnded;
    this.#host = host;
    this.#onEnd = onEnd;
    StreamWatch.add(stream, this.#onStreamEnd);
  }

  take(entry: TraceEntry): void {
    const bytes = entry.keep();
    const waitingBytes = this.#entryBytes + this.#waitingBytes;
    if (waitingBytes > 0 && waitingBytes + bytes > this.#maxBytes) {
      this.isFull = true;
      this.drop();
      return;
    }
    this.#entryBytes += bytes;
    if (this.#entries.push({ entry, droppedAfter: 0 }) === 1) this.#host.later(() => this.flush());
  }

  override drop(): void {
    const last = this.#entries.at(-1);
    if (last === undefined) super.drop();
    else last.droppedAfter++;
  }

  override flush(): void {
    if (this.#entries.length === 0) return;
    this.#host.untraced(() => {
      try {
        this.#flush();
      } catch (error) {
        this.#ended(asError(error));
      }
    });
  }

  #flush(): void {
    const entries = this.#entries;
    this.#entries = [];
    this.#entryBytes = 0;
    let hasRoom = true;
    for (const { entry, droppedAfter } of entries) {
      if (this.#onEnd === undefined) return;
      hasRoom = hasRoom && this.#write(entry);
      for (let count = hasRoom ? droppedAfter : droppedAfter + 1; count > 0; count--) super.drop();
    }
    this.isFull = !hasRoom || (this.isFull && this.#waitingBytes > this.#maxBytes / 2);
  }

  /** @returns false if too many bytes wait already */
  #write(entry: TraceEntry): boolean {
    const stream = this.#stream;
    if (!stream.writable) {
      this.#ended(stream.errored ?? undefined);
      return true;
    }
    const line = `${JSON.stringify(this.recordOf(entry))}\n`;
    const bytes = Buffer.byteLength(line);
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > this.#maxBytes) return false;
    this.#waitingBytes += bytes;
    this.written(bytes);
    stream.write(line, (error) => {
      this.#waitingBytes -= bytes;
      if (this.#waitingBytes <= this.#maxBytes / 2) this.isFull = false;
      if (error == null && this.#waitingBytes === 0 && this.#onEnd === undefined) this.#release();
    });
    return true;
  }

  end(): void {
    this.flush();
    this.#onEnd = undefined;
    const stream = this.#stream;
    if (this.#isEnded && stream.writable) stream.end();
    else if (this.#waitingBytes === 0) this.#release();
  }

  /**
   * Remove the listener after the last line has been written. Until then an error of the stream is expected, and would be an uncaught
   * exception without a listener.
   */
  #release(): void {
    if (this.#isEnded) return;
    StreamWatch.remove(this.#stream, this.#onStreamEnd);
  }

  #ended(error: Error | undefined): void {
    const onEnd = this.#onEnd;
    this.#onEnd = undefined;
    onEnd?.(error);
  }
}

/** Output to a function, which reads each entry at once. The number of lines whose promises are pending is limited; further lines are dropped. */
export class FunctionOutput extends TraceOutput {
  readonly #to: TraceFunction;
  readonly #maxBytes: number;
  #onEnd: Ended | undefined;
  #openBytes = 0;

  constructor(to: TraceFunction, maxBytes: number, onEnd: Ended) {
    super();
    this.#to = to;
    this.#maxBytes = maxBytes;
    this.#onEnd = onEnd;
  }

  get isFull(): boolean {
    return this.#openBytes >= this.#maxBytes;
  }

  take(entry: TraceEntry): void {
    const record = this.recordOf(entry);
    const line = JSON.stringify(record);
    const bytes = Buffer.byteLength(line);
    const result = this.#to(record, line);
    if (typeof (result as PromiseLike<unknown> | undefined)?.then === 'function') {
      this.#openBytes += bytes;
      const settled = () => {
        this.#openBytes -= bytes;
      };
      (result as PromiseLike<unknown>).then(settled, (error: unknown) => {
        settled();
        this.#onEnd?.(asError(error));
      });
    }
    this.written(bytes);
  }

  end(): void {
    this.#onEnd = undefined;
  }
}
