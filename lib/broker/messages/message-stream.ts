import { onAbort } from '../../base/abort-listeners.ts';
import { InvalidInput } from '../../base/errors.ts';
import { detachFromPublisher, type Message } from '../../packets/message.ts';
import type { SubscribeOptions } from './handler-subscriber.ts';

/** Options of `broker.messages`. */
export interface MessageStreamOptions extends SubscribeOptions {
  /** Maximum number of unread messages. At the limit, the oldest one is dropped. Default 1000. */
  readonly highWaterMark?: number;
}

/** An async iterator of messages with a bounded buffer. */
export class MessageStream implements AsyncIterableIterator<Message> {
  readonly #highWaterMark: number;
  readonly #signal: AbortSignal | undefined;
  readonly #releaseSignal: () => void;
  readonly #onDrop: (message: Message) => void;
  readonly #waiting: Message[] = [];
  readonly #readers: { resolve(result: IteratorResult<Message>): void; reject(error: unknown): void }[] = [];
  #end: () => void = () => undefined;
  #isEnded = false;

  /** @throws InvalidInput OPTION_INVALID */
  constructor(highWaterMark = 1_000, signal: AbortSignal | undefined, onDrop: (message: Message) => void) {
    if (typeof highWaterMark !== 'number' || !(highWaterMark >= 1))
      throw new InvalidInput('OPTION_INVALID', 'highWaterMark', 'a number of messages, 1 or more', highWaterMark);
    this.#highWaterMark = highWaterMark;
    this.#signal = signal;
    this.#onDrop = onDrop;
    this.#releaseSignal = onAbort(signal, this.#abort);
    if (signal?.aborted) this.#isEnded = true;
  }

  /** Set the function to call when the iteration ends. If it has ended already, the function is called immediately. */
  onEnd(end: () => void): void {
    this.#end = end;
    if (this.#isEnded) end();
  }

  /** Pass a message to the reader that waits, or to the buffer. If the buffer is full, its oldest message is dropped. */
  push(message: Message): void {
    if (this.#isEnded) return;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      detachFromPublisher(message); // the reader continues in a later turn
      reader.resolve({ value: message, done: false });
      return;
    }
    if (this.#waiting.length >= this.#highWaterMark) this.#onDrop(this.#waiting.shift() as Message);
    detachFromPublisher(message);
    this.#waiting.push(message);
  }

  /** @throws the reason of the signal if it has aborted and all buffered messages are read */
  next(): Promise<IteratorResult<Message>> {
    const message = this.#waiting.shift();
    if (message !== undefined) return Promise.resolve({ value: message, done: false });
    if (this.#signal?.aborted) return Promise.reject(this.#signal.reason);
    if (this.#isEnded) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  return(): Promise<IteratorResult<Message>> {
    this.#close();
    this.#waiting.length = 0;
    for (const reader of this.#readers.splice(0)) reader.resolve({ value: undefined, done: true });
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  readonly #abort = (): void => {
    this.#close();
    for (const reader of this.#readers.splice(0)) reader.reject(this.#signal?.reason);
  };

  #close(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#releaseSignal();
    this.#end();
  }
}
