import type { MessageInput } from '../../packets/message.ts';

/** The will of a session. */
export interface WillState {
  readonly message: MessageInput;
  readonly delayMs: number;
}

/** The will of a session, and the time at which it is due. */
export class Will implements WillState {
  readonly message: MessageInput;
  readonly delayMs: number;
  /** Monotonic milliseconds at which the will is published; `Infinity` while the client is connected. */
  dueMs = Infinity;
  /** The record of the will, if the session is not persisted. */
  #record: { changed(): void } | undefined = undefined;

  constructor({ message, delayMs }: WillState) {
    this.message = message;
    this.delayMs = delayMs;
  }

  /** Start the delay, because the connection has closed. @param nowMs monotonic milliseconds of that */
  delayFrom(nowMs: number): void {
    this.dueMs = nowMs + this.delayMs;
  }

  get isPersisted(): boolean {
    return this.#record !== undefined;
  }

  /** Persist the will with this record. */
  persistIn(record: { changed(): void }): void {
    this.#record = record;
    record.changed();
  }

  /** Note that the will comes from this record. */
  restored(record: { changed(): void }): void {
    this.#record = record;
  }

  /** Delete the record of the will with the next commit, because the will has been taken from its session. */
  taken(): void {
    this.#record?.changed();
  }

  /** Stop the delay, because the client has returned. */
  wait(): void {
    this.dueMs = Infinity;
  }
}
