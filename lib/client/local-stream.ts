// Clients in this process use no Duplex of Node.js. A Duplex takes 2 KB, and V8 optimizes some forty functions of
// Node's streams while a test connects its clients, which took more CPU time than running them. `LocalStream` has
// only the members that connections and clients use. 1,000 clients of `kit.connect`, with four ends of streams each,
// take 180 ms of CPU time instead of 255, and those of `broker.connect` 120 instead of 186.

import { setImmediate } from 'node:timers';
import type { ByteStream } from '../base/byte-stream.ts';
import type { WorkCount } from '../base/pending-work.ts';

/** The size of the read and write buffers of each end in bytes. When they are full, `write` returns false. */
const HIGH_WATER_MARK = 65_536;

/** The listeners of a stream by event. */
interface Listeners {
  data: ((chunk: Buffer) => void) | undefined;
  drain: (() => void) | undefined;
  end: (() => void) | undefined;
  error: ((error: Error) => void) | undefined;
  close: (() => void) | undefined;
}

/** The content of an empty buffer: most streams hold no bytes between two turns. */
const NONE: Buffer[] = [];

const settled = Promise.resolve();

/**
 * Create two connected streams, as `duplexPair` does, for code that uses only the members of `ByteStream`.
 *
 * They behave like the ends of `duplexPair` at a tenth of the cost: a Duplex of Node.js takes 2 KB, and its functions have to be compiled.
 * @param work counts bytes from the write until the reader of the other side gets them; bytes that wait for a paused reader do not count
 */
export function localPair(work: WorkCount): [LocalStream, LocalStream] {
  const one = new LocalStream(work);
  const other = new LocalStream(work, one);
  return [one, other];
}

/** One end of a `localPair`. Its events are emitted asynchronously, each event to all of its listeners in the order of `on`. */
class LocalStream implements ByteStream {
  destroyed = false;
  errored: Error | null = null;
  readableEnded = false;
  writableEnded = false;
  writableLength = 0;
  writableNeedDrain = false;
  readonly #work: WorkCount;
  #peer: LocalStream;
  readonly #listeners: Listeners = {
    data: undefined,
    drain: undefined,
    end: undefined,
    error: undefined,
    close: undefined
  };
  /** Chunks that were written here and not yet passed to the peer. */
  #outgoing = NONE;
  /** Chunks of the peer that wait because reading is paused. */
  #incoming = NONE;
  #incomingBytes = 0;
  /** Undefined until there is a listener of 'data', or `pause` or `resume` was called. */
  #isFlowing: boolean | undefined = undefined;
  #isScheduled = false;
  /** True if the end of the data has been passed to the peer. */
  #isFinished = false;
  /** True if the peer has ended the data, or is destroyed. */
  #isEnded = false;
  #isPeerGone = false;
  #isClosed = false;

  constructor(work: WorkCount, peer?: LocalStream) {
    this.#work = work;
    this.#peer = peer ?? this;
    if (peer !== undefined) peer.#peer = this;
  }

  get writable(): boolean {
    return !this.writableEnded && !this.destroyed;
  }

  on(event: 'data', listener: (chunk: Buffer) => void): this;
  on(event: 'error', listener: (error: Error) => void): this;
  on(event: 'drain' | 'end' | 'close', listener: () => void): this;
  on(event: keyof Listeners, listener: (value: never) => void): this {
    const listeners = this.#listeners as { [E in keyof Listeners]: ((value: never) => void) | undefined };
    const first = listeners[event];
    listeners[event] = first === undefined ? listener : both(first, listener);
    if (event === 'data' && this.#isFlowing !== false) this.resume();
    return this;
  }

  /** Write a copy, because the writer may reuse its buffers. */
  write(chunk: Buffer): boolean {
    return this.writeUnchanged(Buffer.from(chunk));
  }

  writeUnchanged(chunk: Buffer): boolean {
    if (this.writableEnded || this.destroyed) return false;
    if (this.#isPeerGone) return true;
    if (this.#outgoing === NONE) this.#outgoing = [chunk];
    else this.#outgoing.push(chunk);
    this.writableLength += chunk.length;
    if (this.#peer.#hasRoom) this.#schedule();
    if (this.writableLength < HIGH_WATER_MARK) return true;
    this.writableNeedDrain = true;
    return false;
  }

  /** Has no effect, because all bytes of a turn are passed on together. */
  cork(): void {}

  /** Has no effect. */
  uncork(): void {}

  pause(): void {
    this.#isFlowing = false;
  }

  resume(): void {
    if (this.#isFlowing === true) return;
    this.#isFlowing = true;
    if (this.#incoming.length > 0 || this.#isEnded) this.#schedule();
  }

  isPaused(): boolean {
    return this.#isFlowing === false;
  }

  end(): void {
    if (this.writableEnded) return;
    this.writableEnded = true;
    this.writableNeedDrain = false;
    this.#schedule();
  }

  destroy(error?: Error): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.writableNeedDrain = false;
    this.errored = error ?? null;
    this.#schedule();
    this.#work.begin();
    // after all promises, as with a Duplex: code that waits for a connection adds its listeners before the connection is closed
    setImmediate(() => this.#emitClose());
  }

  /** True if the peer may pass on another chunk. */
  get #hasRoom(): boolean {
    return this.#incomingBytes < HIGH_WATER_MARK;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    this.#work.begin();
    // a promise, because test frameworks fake `process.nextTick` and `queueMicrotask`
    void settled.then(this.#runLater);
  }

  readonly #runLater = (): void => {
    this.#isScheduled = false;
    try {
      if (!this.destroyed) this.#run();
      if (this.destroyed) this.#close();
    } catch (error) {
      this.#schedule();
      setImmediate(() => {
        throw error; // an error thrown by a reader is an uncaught exception, as with a socket
      });
    } finally {
      this.#work.end();
    }
  };

  /** Emit the data that waits here, and pass on what was written. */
  #run(): void {
    if (this.#incoming.length > 0) this.#read();
    if (this.#isEnded) this.#emitEnd();
    if (this.#outgoing.length > 0) this.#passOn();
    if (this.#outgoing.length > 0) return;
    if (this.writableNeedDrain) this.#drained();
    if (this.writableEnded) this.#finish();
  }

  #read(): void {
    const chunks = this.#incoming;
    let at = 0;
    try {
      while (at < chunks.length && this.#isFlowing === true && !this.destroyed) {
        const chunk = chunks[at++];
        this.#incomingBytes -= chunk.length;
        this.#listeners.data?.call(this, chunk);
      }
    } finally {
      this.#incoming = without(chunks, at); // also if a listener throws
    }
    if (this.#hasRoom && this.#peer.#outgoing.length > 0) this.#peer.#schedule();
  }

  #passOn(): void {
    const peer = this.#peer;
    const chunks = this.#outgoing;
    let at = 0;
    try {
      while (at < chunks.length && peer.#hasRoom && !peer.destroyed && !this.destroyed) {
        const chunk = chunks[at++];
        this.writableLength -= chunk.length;
        peer.#receive(chunk);
      }
    } finally {
      this.#outgoing = without(chunks, at); // also if a reader throws
    }
  }

  #drained(): void {
    this.writableNeedDrain = false;
    this.#listeners.drain?.call(this);
  }

  #receive(chunk: Buffer): void {
    if (this.#isFlowing === true && this.#incoming.length === 0) this.#listeners.data?.call(this, chunk);
    else this.#keep(chunk);
  }

  #keep(chunk: Buffer): void {
    if (this.#incoming === NONE) this.#incoming = [chunk];
    else this.#incoming.push(chunk);
    this.#incomingBytes += chunk.length;
  }

  #finish(): void {
    if (!this.#isFinished) {
      this.#isFinished = true;
      this.#peer.#endReading();
    }
    if (this.readableEnded) this.destroy();
  }

  #endReading(): void {
    if (this.#isEnded || this.destroyed) return;
    this.#isEnded = true;
    this.#emitEnd();
  }

  #emitEnd(): void {
    if (this.readableEnded || this.#incoming.length > 0 || this.#isFlowing !== true || this.destroyed) return;
    this.readableEnded = true;
    this.#listeners.end?.call(this);
    this.end();
    this.#schedule();
  }

  /** Discard the unread data, and report the end to the peer. */
  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const rest = this.#outgoing;
    this.#outgoing = this.#incoming = NONE;
    this.#peer.#peerClosed(this.errored, rest);
  }

  #emitClose(): void {
    const { error, close } = this.#listeners;
    try {
      if (this.errored !== null) {
        if (error === undefined) throw this.errored;
        error.call(this, this.errored);
      }
      close?.call(this);
    } finally {
      this.#work.end();
    }
  }

  /** Called when the peer is destroyed. @param rest the data that it had written before */
  #peerClosed(error: Error | null, rest: readonly Buffer[]): void {
    this.#isPeerGone = true;
    this.#outgoing = NONE;
    this.writableLength = 0;
    if (this.destroyed) return;
    if (error !== null) {
      this.destroy(
        Object.assign(new Error('the other end of the stream failed', { cause: error }), { code: 'ECONNRESET' })
      );
      return;
    }
    if (!this.#isEnded) {
      for (const chunk of rest) this.#keep(chunk);
      this.#isEnded = true;
    }
    this.#schedule();
  }
}

/** Remove this many chunks from the beginning. Calling `shift` for each chunk would move all others if there are many. */
function without(chunks: Buffer[], count: number): Buffer[] {
  if (count === 0) return chunks;
  return count === chunks.length ? NONE : chunks.slice(count);
}

function both<T>(first: (value: T) => void, second: (value: T) => void) {
  return function (this: unknown, value: T): void {
    first.call(this, value);
    second.call(this, value);
  };
}
