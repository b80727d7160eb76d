import { onAbort } from '../base/abort-listeners.ts';
import { matches, parseSharedFilter } from '../topics/topic.ts';
import type { MessageHandler, ReceivedMessage } from './options.ts';

/** Maximum number of messages kept for a later listener, besides those that the application has to acknowledge. */
const MAX_UNDELIVERED = 1_000;

const NO_READERS: readonly InboxReader[] = [];

/** Distributes the messages of a client to the handlers of filters, to listeners and to iterators. */
export class Inbox {
  /** Handlers by the subscribed filter. `filter` is the same without the prefix of a shared subscription. */
  #handlers: Map<string, { readonly filter: string; readonly handlers: readonly MessageHandler[] }> | undefined =
    undefined;
  #readers: readonly InboxReader[] = NO_READERS;
  readonly #run: (handler: MessageHandler, message: ReceivedMessage) => void;
  readonly #flowChanged: () => void;
  readonly #isManual: boolean;
  #listeners: MessageHandler[] = [];
  #undelivered: ReceivedMessage[] = [];
  #isClosed = false;

  /**
   * @param run calls a handler and reports its errors
   * @param flowChanged called when `isFull` may have changed
   * @param isManual the application acknowledges messages
   */
  constructor(
    run: (handler: MessageHandler, message: ReceivedMessage) => void,
    flowChanged: () => void,
    isManual: boolean
  ) {
    this.#run = run;
    this.#isManual = isManual;
    this.#flowChanged = flowChanged;
  }

  /** True if an iterator has reached its high water mark. */
  get isFull(): boolean {
    for (const reader of this.#readers) if (reader.queue.length >= reader.highWaterMark) return true;
    return false;
  }

  deliver(message: ReceivedMessage): void {
    let isTaken = this.#listeners.length > 0 || this.#readers.length > 0;
    if (this.#handlers !== undefined)
      for (const { filter, handlers } of this.#handlers.values()) {
        if (!matches(filter, message.topic)) continue;
        isTaken = true;
        for (const handler of handlers) this.#run(handler, message);
      }
    for (const listener of this.#listeners) this.#run(listener, message);
    for (const reader of this.#readers) reader.put(message);
    if (!isTaken) this.#keep(message);
    this.#flowChanged();
  }

  #keep(message: ReceivedMessage): void {
    const isFull = this.#undelivered.length >= MAX_UNDELIVERED;
    if (this.#isManual) {
      // the Receive Maximum limits the number of unacknowledged messages
      if (message.qos > 0 || !isFull) this.#undelivered.push(message);
      return;
    }
    if (isFull) this.#undelivered.shift();
    this.#undelivered.push(message);
  }

  handlersOf(filter: string): readonly MessageHandler[] {
    return this.#handlers?.get(filter)?.handlers ?? [];
  }

  /** Add a handler. @returns false if the filter already has this handler */
  addHandler(filter: string, handler: MessageHandler): boolean {
    const handlers = this.handlersOf(filter);
    if (handlers.includes(handler)) return false;
    const shared = parseSharedFilter(filter);
    const plain = typeof shared === 'object' ? shared.filter : filter;
    this.#handlers ??= new Map();
    this.#handlers.set(filter, { filter: plain, handlers: [...handlers, handler] });
    return true;
  }

  /** Remove a handler. @returns the number of handlers that the filter still has */
  removeHandler(filter: string, handler: MessageHandler): number {
    const entry = this.#handlers?.get(filter);
    if (entry === undefined) return 0;
    const handlers = entry.handlers.filter((other) => other !== handler);
    if (handlers.length === 0) this.#handlers?.delete(filter);
    else this.#handlers?.set(filter, { ...entry, handlers });
    return handlers.length;
  }

  addListener(listener: MessageHandler): void {
    this.#listeners = [...this.#listeners, listener];
    const undelivered = this.#undelivered;
    this.#undelivered = [];
    for (const message of undelivered) this.#run(listener, message);
  }

  removeListener(listener: MessageHandler): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners = this.#listeners.toSpliced(at, 1);
  }

  iterate(highWaterMark: number, signal: AbortSignal | undefined): AsyncIterableIterator<ReceivedMessage> {
    const reader = new InboxReader(highWaterMark, this.#flowChanged);
    reader.queue = this.#undelivered;
    this.#undelivered = [];
    this.#readers = [...this.#readers, reader];
    const leave = () => {
      this.#readers = this.#readers.filter((other) => other !== reader);
      release();
      reader.close();
      this.#flowChanged();
    };
    const abort = () => {
      reader.fail(signal?.reason);
      leave();
    };
    const release = onAbort(signal, abort);
    if (signal?.aborted) abort();
    if (this.#isClosed) reader.close();
    return {
      next: () => reader.next(),
      return: async () => {
        leave();
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]() {
        return this;
      }
    };
  }

  /** End the iterators after the messages that they have queued. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers) reader.close();
  }
}

type Result = IteratorResult<ReceivedMessage>;

/** The messages for one iterator: those that it has not taken yet, and the pending calls of `next`. */
class InboxReader {
  queue: ReceivedMessage[] = [];
  readonly highWaterMark: number;
  readonly #onTaken: () => void;
  #pendingReads: { resolve(result: Result): void; reject(error: unknown): void }[] = [];
  #isClosed = false;
  #failure: { readonly reason: unknown } | undefined;

  constructor(highWaterMark: number, taken: () => void) {
    this.highWaterMark = highWaterMark;
    this.#onTaken = taken;
  }

  put(message: ReceivedMessage): void {
    const asking = this.#pendingReads.shift();
    if (asking === undefined) this.queue.push(message);
    else asking.resolve({ done: false, value: message });
  }

  next(): Promise<Result> {
    const failure = this.#failure;
    if (failure !== undefined) {
      this.#failure = undefined;
      return Promise.reject(failure.reason);
    }
    const message = this.queue.shift();
    if (message !== undefined) {
      this.#onTaken();
      return Promise.resolve({ done: false, value: message });
    }
    if (this.#isClosed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this.#pendingReads.push({ resolve, reject }));
  }

  close(): void {
    this.#isClosed = true;
    for (const asking of this.#pendingReads.splice(0)) asking.resolve({ done: true, value: undefined });
  }

  /** Reject the pending reads, or the next one, and discard the queued messages. */
  fail(reason: unknown): void {
    this.queue = [];
    if (this.#pendingReads.length === 0) this.#failure = { reason };
    for (const asking of this.#pendingReads.splice(0)) asking.reject(reason);
  }
}
