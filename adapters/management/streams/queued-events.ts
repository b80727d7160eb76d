import type { Clock } from '../../../lib/index.ts';
import { HEARTBEAT, HEARTBEAT_MS, ServerSentEvents, WRITTEN_AT_ONCE } from './server-sent-events.ts';

/** Maximum size of the events that wait for a slow reader, in characters of up to 2 bytes. */
const MAX_CHARACTERS = 1_048_576;
/** Taken events are removed from the list in groups of this number. */
const REMOVED_AT_ONCE = 1_000;

/** The form of a stream. */
interface QueueForm {
  /** The first part, which is sent together with the headers. */
  readonly first: string;
  /** The name of the event with the number of discarded events. */
  readonly discarded: string;
  /** Maximum number of events that wait. Default: only their size is limited. */
  readonly maxEvents?: number;
}

/**
 * Server-sent events that come while the stream is open. The queue is bounded: when a reader is slow, new events displace
 * the oldest ones, and an event reports their number. Events are made into text at once, so that no message is kept for a
 * slow reader. Comments keep an idle connection open.
 */
export abstract class QueuedEvents extends ServerSentEvents {
  readonly #clock: Clock;
  readonly #form: QueueForm;
  #hasBegun = false;
  #waiting: string[] = [];
  /** Index of the oldest event in `#waiting`. */
  #oldest = 0;
  #characters = 0;
  #discarded = 0;
  #isOver = false;
  /** Resumes the reader that waits for an event. */
  #resume: (() => void) | undefined;
  #heartbeat: unknown;

  constructor(clock: Clock, form: QueueForm) {
    super();
    this.#clock = clock;
    this.#form = form;
  }

  /** Begin with the comments, when nothing more can prevent the stream. */
  protected begin(): void {
    this.#heartbeat = this.#clock.setTimeout(() => {
      if (!this.beat()) return;
      this.#resume?.();
      this.begin();
    }, HEARTBEAT_MS);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  protected get hasWaiting(): boolean {
    return this.#waiting.length > this.#oldest;
  }

  async next(): Promise<IteratorResult<string>> {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return { done: false, value: this.#form.first };
    }
    if (!this.hasWaiting && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
      this.#resume = undefined;
      if (!this.hasWaiting && !this.#isOver) return { done: false, value: HEARTBEAT };
    }
    return this.hasWaiting ? { done: false, value: this.#take() } : { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<string>> {
    this.#waiting = [];
    this.#oldest = 0;
    this.#discarded = 0;
    this.end();
    return { done: true, value: undefined };
  }

  /** Add the text of an event. */
  protected add(event: string): void {
    const { maxEvents = Infinity } = this.#form;
    this.#waiting.push(event);
    this.#characters += event.length;
    for (;;) {
      const count = this.#waiting.length - this.#oldest;
      if (count <= maxEvents && (this.#characters <= MAX_CHARACTERS || count === 1)) break;
      this.#shift();
      this.#discarded++;
    }
    this.#resume?.();
  }

  /** End the stream. The reader still gets the events that wait. */
  protected end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#clock.clearTimeout(this.#heartbeat);
    this.ended();
    this.#resume?.();
  }

  /** Called once, when the stream ends. */
  protected abstract ended(): void;

  /** Called in each interval of comments. Returns false if it has ended the stream. */
  protected beat(): boolean {
    return true;
  }

  /** Take the events that wait, at most as many as are written at once. */
  #take(): string {
    let text = '';
    if (this.#discarded > 0) {
      text = `event: ${this.#form.discarded}\ndata: {"count":${this.#discarded}}\n\n`;
      this.#discarded = 0;
    }
    while (this.hasWaiting && text.length < WRITTEN_AT_ONCE) text += this.#shift();
    return text;
  }

  #shift(): string {
    const event = this.#waiting[this.#oldest];
    this.#waiting[this.#oldest++] = '';
    this.#characters -= event.length;
    if (this.#oldest > REMOVED_AT_ONCE || !this.hasWaiting) {
      this.#waiting = this.#waiting.slice(this.#oldest);
      this.#oldest = 0;
    }
    return event;
  }
}
