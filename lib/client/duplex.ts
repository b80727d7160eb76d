import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers';
import type { WorkCount } from '../work.ts';

/** Bytes that lie in an end unread before its peer's writes wait, and written before `write` returns false. */
const HIGH_WATER_MARK = 65_536;

type Done = (error?: Error | null) => void;

/**
 * Two streams, each of which reads what the other writes: a connection without a socket.
 *
 * Bytes arrive later, as they would from a socket, so no write runs the other side's code. A reader that pauses holds the writer
 * back (`write` returns false, then 'drain'). `end` reaches the other side as 'end'; `destroy` as 'end' behind what was written before, or,
 * with an error, as an error with code ECONNRESET. What is written to an end that is gone is lost without an error.
 *
 * @param work counts bytes from the write until the other side's reader has them; bytes in front of a reader that paused are at rest
 */
export function duplexPair(work?: WorkCount): [Duplex, Duplex] {
  const one = new End(work);
  const other = new End(work);
  one.peer = other;
  other.peer = one;
  return [one, other];
}

const settled = Promise.resolve();

/** Run behind the code in hand. A promise, because test frameworks fake `process.nextTick` and `queueMicrotask`. */
function runLater(run: () => void): void {
  void settled.then(() => {
    try {
      run();
    } catch (error) {
      setImmediate(() => {
        throw error; // a reader's mistake is an uncaught exception, as with a socket
      });
    }
  });
}

class End extends Duplex {
  peer!: End;
  readonly #work: WorkCount | undefined;
  /** Written here and not yet handed to the peer. */
  #outgoing: Buffer[] = [];
  #written: Done | undefined;
  #isScheduled = false;
  /** The peer's bytes find room here. */
  #hasRoom = true;
  #isPeerGone = false;
  /** There will be nothing more to read. */
  #isEnded = false;
  /** The bytes on their way from here stand in the work count. */
  #isCounted = false;

  constructor(work: WorkCount | undefined) {
    super({ highWaterMark: HIGH_WATER_MARK, allowHalfOpen: false });
    this.#work = work;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#send([chunk], done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: Done): void {
    this.#send(
      chunks.map(({ chunk }) => chunk),
      done
    );
  }

  override _final(done: Done): void {
    runLater(() => {
      this.peer.#endReading();
      done();
    });
  }

  override _read(): void {
    this.#hasRoom = true;
    if (this.peer.#outgoing.length > 0) this.peer.#schedule();
  }

  override _destroy(error: Error | null, done: Done): void {
    this.peer.#updateWorkCount();
    runLater(() => {
      this.peer.#onPeerDestroyed(error, this.#outgoing);
      this.#outgoing = [];
      this.#updateWorkCount();
    });
    done(error);
  }

  override read(size?: number): unknown {
    const chunk = super.read(size);
    this.peer.#updateWorkCount();
    return chunk;
  }

  override pause(): this {
    super.pause();
    this.peer.#updateWorkCount();
    return this;
  }

  override resume(): this {
    super.resume();
    this.peer.#updateWorkCount();
    return this;
  }

  #send(chunks: Buffer[], done: Done): void {
    if (this.#isPeerGone) {
      runLater(done);
      return;
    }
    // copies: what one side does to its buffers later is not the other side's concern
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
    while (at < this.#outgoing.length && peer.#hasRoom && !peer.destroyed && !this.destroyed) {
      peer.#hasRoom = peer.push(this.#outgoing[at++]);
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

  /** The peer is destroyed; `rest` is what it had written before. */
  #onPeerDestroyed(error: Error | null, rest: Buffer[]): void {
    this.#isPeerGone = true;
    this.#outgoing = [];
    this.#completeWrite();
    if (this.destroyed) return;
    if (error !== null) {
      this.destroy(
        Object.assign(new Error('the other end of the stream failed', { cause: error }), { code: 'ECONNRESET' })
      );
    } else if (!this.#isEnded) {
      for (const chunk of rest) this.push(chunk);
      this.#endReading();
    }
    this.#updateWorkCount();
  }

  #endReading(): void {
    if (this.#isEnded || this.destroyed) return;
    this.#isEnded = true;
    this.push(null);
  }

  /** Bring the work count in line with where the bytes sent from here are. */
  #updateWorkCount(): void {
    const { peer } = this;
    const isMoving =
      this.#isScheduled ||
      (this.#outgoing.length > 0 && peer.#hasRoom && !this.destroyed) ||
      (peer.readableLength > 0 && peer.readableFlowing === true && !peer.destroyed);
    if (isMoving === this.#isCounted) return;
    this.#isCounted = isMoving;
    if (isMoving) this.#work?.begin();
    else this.#work?.end();
  }
}
