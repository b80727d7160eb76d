// A stream is one answer that does not end: everything live of a tab. Events that wait for its reader are bounded in
// characters; the oldest are discarded, and an event `skipped` says how many. A reader that takes nothing for a while is
// disconnected, or it would keep one of the few streams. Comments keep an idle connection open; Bun closes those that are
// idle for ten seconds.

import type { Clock } from '../../../lib/index.ts';

/** Maximum size of the events that wait for a slow reader, in characters of up to 2 bytes. */
const MAX_CHARACTERS = 1_048_576;
/** Characters of events that are written at once. */
const WRITTEN_AT_ONCE = 65_536;
const HEARTBEAT_MS = 5_000;
/** A reader that takes nothing for this time, although events wait, is disconnected. */
const STALLED_MS = 90_000;

/** The events of a tab, as text of server-sent events. */
export class LiveStream implements AsyncIterableIterator<string> {
  readonly id: string;
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #hasBegun = false;
  #waiting: string[] = [];
  /** Index of the oldest event in `#waiting`. */
  #oldest = 0;
  #characters = 0;
  #skipped = 0;
  #takenMs: number;
  #isOver = false;
  /** Functions that wait until nothing waits. */
  readonly #onDrained: (() => void)[] = [];
  /** Resumes the reader that waits for an event. */
  #resume: (() => void) | undefined;
  #heartbeat: unknown;

  /** @param onEnd called once, when the stream ends */
  constructor(id: string, clock: Clock, onEnd: () => void) {
    this.id = id;
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.#takenMs = clock.monotonic();
    this.#armHeartbeat();
  }

  /** Add an event. */
  push(event: string, data: object): void {
    if (this.#isOver) return;
    const text = textOf(event, data);
    this.#waiting.push(text);
    this.#characters += text.length;
    while (this.#characters > MAX_CHARACTERS && this.#waiting.length - this.#oldest > 1) {
      this.#shift();
      this.#skipped++;
    }
    this.#resume?.();
  }

  /**
   * End the stream. The reader still gets the events that wait.
   * @param reason for people, as the last event
   */
  end(reason?: string): void {
    if (this.#isOver) return;
    if (reason !== undefined) this.push('closed', { reason });
    this.#isOver = true;
    this.#clock.clearTimeout(this.#heartbeat);
    this.#onEnd();
    this.#drain();
    this.#resume?.();
  }

  /** Resolves when the reader has taken all events, or the stream has ended. */
  drained(): Promise<void> {
    return this.#isOver || !this.#hasWaiting
      ? Promise.resolve()
      : new Promise((resolve) => void this.#onDrained.push(resolve));
  }

  async next(): Promise<IteratorResult<string>> {
    this.#takenMs = this.#clock.monotonic();
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return { done: false, value: textOf('opened', { id: this.id }) }; // sent together with the headers
    }
    if (!this.#hasWaiting && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
      this.#resume = undefined;
      this.#takenMs = this.#clock.monotonic();
      if (!this.#hasWaiting && !this.#isOver) return { done: false, value: ': heartbeat\n\n' };
    }
    return this.#hasWaiting ? { done: false, value: this.#take() } : { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<string>> {
    this.#waiting = [];
    this.#oldest = 0;
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get #hasWaiting(): boolean {
    return this.#waiting.length > this.#oldest;
  }

  /** Take the events that wait, at most as many as are written at once. */
  #take(): string {
    let text = '';
    if (this.#skipped > 0) {
      text = textOf('skipped', { count: this.#skipped });
      this.#skipped = 0;
    }
    while (this.#hasWaiting && text.length < WRITTEN_AT_ONCE) text += this.#shift();
    if (!this.#hasWaiting) this.#drain();
    return text;
  }

  #shift(): string {
    const event = this.#waiting[this.#oldest];
    this.#waiting[this.#oldest++] = '';
    this.#characters -= event.length;
    if (this.#oldest > 1_000 || !this.#hasWaiting) {
      this.#waiting = this.#waiting.slice(this.#oldest);
      this.#oldest = 0;
    }
    return event;
  }

  #drain(): void {
    for (const resolve of this.#onDrained.splice(0)) resolve();
  }

  #armHeartbeat(): void {
    this.#heartbeat = this.#clock.setTimeout(() => {
      const isStalled = this.#hasWaiting && this.#clock.monotonic() - this.#takenMs >= STALLED_MS;
      if (isStalled) this.end('nothing of the stream was read for 90 seconds');
      else {
        this.#resume?.();
        this.#armHeartbeat();
      }
    }, HEARTBEAT_MS);
  }
}

function textOf(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
