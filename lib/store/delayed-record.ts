import type { Message } from '../packets/message.ts';

/** A message of `$delayed/...` that waits for its time. */
export interface DelayedMessage {
  readonly message: Message;
  /** Where it will be published. */
  readonly topic: string;
  /** Wall-clock milliseconds. */
  readonly dueWallMs: number;
}
