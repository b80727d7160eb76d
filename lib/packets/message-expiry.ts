import type { Message } from './message.ts';

/** Monotonic time in milliseconds at which a message expires; `Infinity`: never. */
export function expiresAtMs({ expiryInterval, takenAtMs }: Message): number {
  return expiryInterval < 0 ? Infinity : takenAtMs + expiryInterval * 1000;
}

/**
 * Tell whether a message has expired and must not be delivered.
 *
 * Not specified: with an interval of 0 the message is still delivered to clients that can receive it at once.
 */
export function hasExpired(message: Message, nowMs: number): boolean {
  return message.expiryInterval >= 0 && nowMs >= expiresAtMs(message) && nowMs > message.takenAtMs;
}

/** Whole seconds since the broker accepted a message. */
export function secondsInBroker({ takenAtMs }: Message, nowMs: number): number {
  return Math.floor((nowMs - takenAtMs) / 1000);
}
