import type { Message } from '../packets/message.ts';

/** A message of `$delayed/...` that will be published later. */
export interface DelayedMessage {
  readonly message: Message;
  /** The topic to which it will be published. */
  readonly topic: string;
  /** The time at which it will be published, in milliseconds since 1970. */
  readonly dueWallMs: number;
}
