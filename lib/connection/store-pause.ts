import type { Waiter } from '../store/durable.ts';
import type { Ledger } from '../store/ledger.ts';
import { UnwrittenShare } from '../store/unwritten.ts';
import { Pause, type PausedConnection } from './pause.ts';

/** Pauses reading from a publisher while too many bytes that its messages have added to the next commits are unwritten. */
export class StorePause implements Waiter {
  readonly #connection: PausedConnection;
  readonly #ledger: Ledger;
  readonly #share = new UnwrittenShare();

  constructor(connection: PausedConnection, ledger: Ledger) {
    this.#connection = connection;
    this.#ledger = ledger;
  }

  /** Charge the publisher for these bytes, and pause reading if they are too many. */
  charge(bytes: number): void {
    const { unwritten } = this.#ledger;
    unwritten.charge(this.#share, bytes);
    if (unwritten.isMuch && unwritten.isTooMuch(this.#share)) this.#pause();
  }

  #pause(): void {
    const { reader } = this.#connection;
    if ((reader.pauses & Pause.store) !== 0 || this.#ledger.isFailed) return;
    reader.pause(Pause.store);
    this.#ledger.wait(this);
  }

  commitSucceeded(): boolean {
    return this.#mustWait();
  }

  commitFailed(): boolean {
    return this.#mustWait();
  }

  #mustWait(): boolean {
    const { unwritten, isFailed } = this.#ledger;
    if (unwritten.isTooMuch(this.#share) && !isFailed && !this.#connection.isClosed) return true;
    this.#connection.reader.resume(Pause.store);
    return false;
  }
}
