import type { MessageInput } from '../packets/message.ts';

/** The will of a session. */
export interface WillState {
  readonly message: MessageInput;
  readonly delayMs: number;
}

/** The will of a session, and when it is due. */
export class Will implements WillState {
  readonly message: MessageInput;
  readonly delayMs: number;
  /** Monotonic milliseconds at which the will is published; `Infinity` while the client is connected. */
  dueMs = Infinity;

  constructor({ message, delayMs }: WillState) {
    this.message = message;
    this.delayMs = delayMs;
  }

  /** The connection has closed. @param nowMs monotonic milliseconds of that */
  delayFrom(nowMs: number): void {
    this.dueMs = nowMs + this.delayMs;
  }

  /** The client has returned. */
  wait(): void {
    this.dueMs = Infinity;
  }
}
