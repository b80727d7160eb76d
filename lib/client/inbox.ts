import { matches, parseSharedFilter } from '../topics/topic.ts';
import type { MessageHandler, ReceivedMessage } from './options.ts';

/** Messages nobody listened for yet are kept up to this number, the newest. */
const UNHEARD_MAX = 1_000;

/** Where a client's messages go: handlers of single filters, listeners, iterators. */
export class Inbox {
  /** By the filter as it was subscribed; `filter` is what names are matched with. */
  readonly #handlers = new Map<string, { readonly filter: string; readonly handlers: readonly MessageHandler[] }>();
  readonly #readers = new Set<Reader>();
  readonly #run: (handler: MessageHandler, message: ReceivedMessage) => void;
  readonly #flowChanged: () => void;
  #listeners: MessageHandler[] = [];
  #unheard: ReceivedMessage[] = [];
  #isClosed = false;

  /**
   * @param run calls a handler and takes care of what it throws
   * @param flowChanged told when `isFull` may have changed
   */
  constructor(run: (handler: MessageHandler, message: ReceivedMessage) => void, flowChanged: () => void) {
    this.#run = run;
    this.#flowChanged = flowChanged;
  }

  /** An iterator has as much as it wanted to hold. */
  get isFull(): boolean {
    for (const reader of this.#readers) if (reader.waiting.length >= reader.highWaterMark) return true;
    return false;
  }

  put(message: ReceivedMessage): void {
    let isTaken = this.#listeners.length > 0 || this.#readers.size > 0;
    for (const { filter, handlers } of this.#handlers.values()) {
      if (!matches(filter, message.topic)) continue;
      isTaken = true;
      for (const handle of handlers) this.#run(handle, message);
    }
    for (const listener of this.#listeners) this.#run(listener, message);
    for (const reader of this.#readers) reader.put(message);
    if (!isTaken && this.#unheard.push(message) > UNHEARD_MAX) this.#unheard.shift();
    this.#flowChanged();
  }

  handlersOf(filter: string): readonly MessageHandler[] {
    return this.#handlers.get(filter)?.handlers ?? [];
  }

  /** @returns whether the handler has been added: it may hear the filter already */
  handle(filter: string, handle: MessageHandler): boolean {
    const handlers = this.handlersOf(filter);
    if (handlers.includes(handle)) return false;
    const shared = parseSharedFilter(filter);
    const plain = typeof shared === 'object' ? shared.filter : filter;
    this.#handlers.set(filter, { filter: plain, handlers: [...handlers, handle] });
    return true;
  }

  /** @returns how many handlers the filter has left */
  unhandle(filter: string, handle: MessageHandler): number {
    const entry = this.#handlers.get(filter);
    if (entry === undefined) return 0;
    const handlers = entry.handlers.filter((other) => other !== handle);
    if (handlers.length === 0) this.#handlers.delete(filter);
    else this.#handlers.set(filter, { ...entry, handlers });
    return handlers.length;
  }

  listen(listener: MessageHandler): void {
    this.#listeners = [...this.#listeners, listener];
    const unheard = this.#unheard;
    this.#unheard = [];
    for (const message of unheard) this.#run(listener, message);
  }

  unlisten(listener: MessageHandler): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners = this.#listeners.toSpliced(at, 1);
  }

  read(highWaterMark: number, signal: AbortSignal | undefined): AsyncIterableIterator<ReceivedMessage> {
    const reader = new Reader(highWaterMark, this.#flowChanged);
    reader.waiting = this.#unheard;
    this.#unheard = [];
    this.#readers.add(reader);
    const leave = () => {
      this.#readers.delete(reader);
      signal?.removeEventListener('abort', abort);
      reader.close();
      this.#flowChanged();
    };
    const abort = () => {
      reader.fail(signal?.reason);
      leave();
    };
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort);
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

  /** Nothing more will come: iterators end behind what they hold. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers) reader.close();
  }
}

type Result = IteratorResult<ReceivedMessage>;

class Reader {
  waiting: ReceivedMessage[] = [];
  readonly highWaterMark: number;
  readonly #taken: () => void;
  #asking: { resolve(result: Result): void; reject(error: unknown): void }[] = [];
  #isClosed = false;
  #failure: { readonly reason: unknown } | undefined;

  constructor(highWaterMark: number, taken: () => void) {
    this.highWaterMark = highWaterMark;
    this.#taken = taken;
  }

  put(message: ReceivedMessage): void {
    const asking = this.#asking.shift();
    if (asking === undefined) this.waiting.push(message);
    else asking.resolve({ done: false, value: message });
  }

  next(): Promise<Result> {
    const failure = this.#failure;
    if (failure !== undefined) {
      this.#failure = undefined;
      return Promise.reject(failure.reason);
    }
    const message = this.waiting.shift();
    if (message !== undefined) {
      this.#taken();
      return Promise.resolve({ done: false, value: message });
    }
    if (this.#isClosed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this.#asking.push({ resolve, reject }));
  }

  close(): void {
    this.#isClosed = true;
    for (const asking of this.#asking.splice(0)) asking.resolve({ done: true, value: undefined });
  }

  /** Whoever asks, or asks next, is refused; what waits is not handed out any more. */
  fail(reason: unknown): void {
    this.waiting = [];
    if (this.#asking.length === 0) this.#failure = { reason };
    for (const asking of this.#asking.splice(0)) asking.reject(reason);
  }
}
