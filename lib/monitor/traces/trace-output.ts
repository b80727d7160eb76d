import type { Writable } from 'node:stream';
import { asError } from '../../base/errors.ts';

/** One line of a trace. The README describes the fields. */
export interface TraceRecord {
  /** Time in UTC, as ISO 8601. */
  readonly time: string;
  readonly [field: string]: unknown;
}

/** A function that receives the lines of a trace. */
export type TraceFunction = (record: TraceRecord, line: string) => unknown;

/** Called when the output of a trace has ended. @param error undefined: the stream was ended by others */
type Ended = (error: Error | undefined) => void;

/** The lines of a trace, on their way to a stream or a function. */
export interface TraceOutput {
  /** True if further lines would be dropped, so that they need not be built. */
  readonly isFull: boolean;
  /** Write a line. @returns its bytes; 0 if it was dropped because too many bytes wait already */
  write(record: TraceRecord): number;
  /** Note that no more lines follow. */
  end(): void;
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

/** Output to a stream. The number of lines that the stream has not written yet is limited; further lines are dropped. */
export class StreamOutput implements TraceOutput {
  /** True from the first line that was dropped until half of the waiting bytes are written. */
  isFull = false;
  readonly #stream: Writable;
  readonly #maxBytes: number;
  readonly #isEnded: boolean;
  #onEnd: Ended | undefined;
  #waitingBytes = 0;
  readonly #onStreamEnd: Ended = (error) => this.#ended(error);

  /** @param isEnded end the stream after the last line */
  constructor(stream: Writable, maxBytes: number, isEnded: boolean, onEnd: Ended) {
    this.#stream = stream;
    this.#maxBytes = maxBytes;
    this.#isEnded = isEnded;
    this.#onEnd = onEnd;
    StreamWatch.add(stream, this.#onStreamEnd);
  }

  write(record: TraceRecord): number {
    const stream = this.#stream;
    if (!stream.writable) {
      this.#ended(stream.errored ?? undefined);
      return 0;
    }
    const line = `${JSON.stringify(record)}\n`;
    const bytes = Buffer.byteLength(line);
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > this.#maxBytes) {
      this.isFull = true;
      return 0;
    }
    this.#waitingBytes += bytes;
    stream.write(line, (error) => {
      this.#waitingBytes -= bytes;
      if (this.#waitingBytes <= this.#maxBytes / 2) this.isFull = false;
      if (error == null && this.#waitingBytes === 0 && this.#onEnd === undefined) this.#release();
    });
    return bytes;
  }

  end(): void {
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

/** Output to a function, which is called at once. The number of lines whose promises are pending is limited; further lines are dropped. */
export class FunctionOutput implements TraceOutput {
  readonly #to: TraceFunction;
  readonly #maxBytes: number;
  #onEnd: Ended | undefined;
  #openBytes = 0;

  constructor(to: TraceFunction, maxBytes: number, onEnd: Ended) {
    this.#to = to;
    this.#maxBytes = maxBytes;
    this.#onEnd = onEnd;
  }

  get isFull(): boolean {
    return this.#openBytes >= this.#maxBytes;
  }

  write(record: TraceRecord): number {
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
    return bytes;
  }

  end(): void {
    this.#onEnd = undefined;
  }
}
