// If a peer is destroyed while a write waits, 'end' must come before 'drain'. With the opposite order the broker sent
// its queue to a client that was gone, and counted 591 of 600 messages as delivered. Code of the other side never
// runs within a write. Chunks are copied, because writers reuse their buffers. Promises are used instead of
// `process.nextTick`, which test frameworks replace. Bytes on their way are counted in `WorkCount` until their reader
// has them, so that a test kit knows when nothing is in progress; bytes for a reader that is paused are not.

import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers';
import { stream } from '../base/builtins.ts';
import type { WorkCount } from '../base/pending-work.ts';

/** The size of the read and write buffers of each end in bytes. When they are full, `write` returns false. */
const HIGH_WATER_MARK = 65_536;

type Done = (error?: Error | null) => void;

/**
 * Create two connected streams: each reads what is written to the other. They replace a socket within one process.
 *
 * Bytes arrive asynchronously, as from a socket, so a write never runs code of the other side. If the reader pauses, the writer has to wait
 * (`write` returns false, 'drain' follows). After `end` the other side emits 'end'. After `destroy` it receives the bytes written before
 * and emits 'end'; after `destroy` with an error it emits an error with the code ECONNRESET. Writes to an end whose peer is destroyed are
 * discarded without an error.
 *
 * @param work counts bytes from the write until the reader of the other side gets them; bytes that wait for a paused reader do not count
 */
export function duplexPair(work?: WorkCount): [Duplex, Duplex] {
  const one = new End(work);
  const other = new End(work);
  one.peer = other;
  other.peer = one;
  return [one.stream, other.stream];
}

const settled = Promise.resolve();

/** Run a function after the current code. It uses a promise, because test frameworks fake `process.nextTick` and `queueMicrotask`. */
function runLater(run: () => void): void {
  void settled.then(() => {
    try {
      run();
    } catch (error) {
      setImmediate(() => {
        throw error; // an error thrown by a reader is an uncaught exception, as with a socket
      });
    }
  });
}

/** One end. It has a Duplex instead of being one, because a class that extends Duplex loads `node:stream` at import. */
class End {
  readonly stream: Duplex;
  peer!: End;
  readonly #work: WorkCount | undefined;
  /** Chunks that were written here and not yet passed to the peer. */
  #outgoing: Buffer[] = [];
  #written: Done | undefined;
  #isScheduled = false;
  /** True if the read buffer of this end accepts bytes from the peer. */
  #hasRoom = true;
  #isPeerGone = false;
  /** True if the end of the data has been signalled to the reader. */
  #isEnded = false;
  /** True if the bytes in transit from here are included in the work count. */
  #isCounted = false;

  constructor(work: WorkCount | undefined) {
    this.#work = work;
    this.stream = new (stream().Duplex)({
      highWaterMark: HIGH_WATER_MARK,
      allowHalfOpen: false,
      write: (chunk: Buffer, _encoding, done) => this.#send([chunk], done),
      writev: (chunks: { chunk: Buffer }[], done) =>
        this.#send(
          chunks.map(({ chunk }) => chunk),
          done
        ),
      final: (done) =>
        runLater(() => {
          this.peer.#endReading();
          done();
        }),
      read: () => {
        this.#hasRoom = true;
        if (this.peer.#outgoing.length > 0) this.peer.#schedule();
      },
      destroy: (error, done) => this.#destroy(error, done)
    });
    this.#observeReading();
  }

  /** Update the work count of the peer whenever the reader takes bytes, pauses or resumes. */
  #observeReading(): void {
    const { stream } = this;
    const { read, pause, resume } = stream;
    stream.read = (size?: number): unknown => {
      const chunk = read.call(stream, size);
      this.peer.#updateWorkCount();
      return chunk;
    };
    stream.pause = (): Duplex => {
      pause.call(stream);
      this.peer.#updateWorkCount();
      return stream;
    };
    stream.resume = (): Duplex => {
      resume.call(stream);
      this.peer.#updateWorkCount();
      return stream;
    };
  }

  #destroy(error: Error | null, done: Done): void {
    this.peer.#updateWorkCount();
    runLater(() => {
      this.peer.#onPeerDestroyed(error, this.#outgoing);
      this.#outgoing = [];
      this.#updateWorkCount();
    });
    done(error);
  }

  #send(chunks: Buffer[], done: Done): void {
    if (this.#isPeerGone) {
      runLater(done);
      return;
    }
    // The chunks are copied, because the writer may reuse its buffers.
    this.#outgoing = chunks.map((chunk) => Buffer.from(chunk));
    this.#written = done;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#updateWorkCount();
    runLater(() => this.#deliver());
  }

  #deliver(): void {
    this.#isScheduled = false;
    const { peer } = this;
    let at = 0;
    while (at < this.#outgoing.length && peer.#hasRoom && !peer.stream.destroyed && !this.stream.destroyed) {
      peer.#hasRoom = peer.stream.push(this.#outgoing[at++]);
    }
    this.#outgoing = this.#outgoing.slice(at);
    if (this.#outgoing.length === 0) this.#completeWrite();
    this.#updateWorkCount();
  }

  #completeWrite(): void {
    const done = this.#written;
    this.#written = undefined;
    done?.();
  }

  /** Called when the peer is destroyed. `rest` is the data that it had written before. */
  #onPeerDestroyed(error: Error | null, rest: Buffer[]): void {
    this.#isPeerGone = true;
    this.#outgoing = [];
    if (this.stream.destroyed) {
      this.#completeWrite();
      return;
    }
    if (error !== null) {
      this.stream.destroy(
        Object.assign(new Error('the other end of the stream failed', { cause: error }), { code: 'ECONNRESET' })
      );
      this.#completeWrite();
    } else {
      if (!this.#isEnded) {
        for (const chunk of rest) this.stream.push(chunk);
        this.#endReading();
      }
      this.#completeWriteLater();
    }
    this.#updateWorkCount();
  }

  /** Complete the write in progress after 'end' has been emitted: on 'drain' a writer would send its waiting data to a destroyed peer. */
  #completeWriteLater(): void {
    if (this.#written === undefined) return;
    this.#work?.begin();
    setImmediate(() => {
      try {
        this.#completeWrite();
      } finally {
        this.#work?.end();
      }
    });
  }

  #endReading(): void {
    if (this.#isEnded || this.stream.destroyed) return;
    this.#isEnded = true;
    this.stream.push(null);
  }

  /** Update the work count after the bytes sent from here, or the state of their reader, have changed. */
  #updateWorkCount(): void {
    const { peer } = this;
    const isMoving =
      this.#isScheduled ||
      (this.#outgoing.length > 0 && peer.#hasRoom && !this.stream.destroyed) ||
      (peer.stream.readableLength > 0 && peer.stream.readableFlowing === true && !peer.stream.destroyed);
    if (isMoving === this.#isCounted) return;
    this.#isCounted = isMoving;
    if (isMoving) this.#work?.begin();
    else this.#work?.end();
  }
}
