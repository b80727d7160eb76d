// A stream is one answer that does not end: everything live of a tab. A reader that takes nothing for a while is
// disconnected, or it would keep one of the few streams.

import type { Clock } from '../../../lib/index.ts';
import { QueuedEvents } from '../../management/parts/index.ts';

/** A reader that takes nothing for this time, although events wait, is disconnected. */
const STALLED_MS = 90_000;

/** The events of a tab, as text of server-sent events. */
export class LiveStream extends QueuedEvents {
  readonly id: string;
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #takenMs: number;
  /** Functions that wait until nothing waits. */
  readonly #onDrained: (() => void)[] = [];

  /** @param onEnd called once, when the stream ends */
  constructor(id: string, clock: Clock, onEnd: () => void) {
    super(clock, { first: textOf('opened', { id }), discarded: 'skipped' });
    this.id = id;
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.#takenMs = clock.monotonic();
    this.begin();
  }

  /** Add an event. */
  push(event: string, data: object): void {
    if (!this.isOver) this.add(textOf(event, data));
  }

  /** End the stream. @param reason for people, as the last event */
  close(reason: string): void {
    this.push('closed', { reason });
    this.end();
  }

  /** Resolves when the reader has taken all events, or the stream has ended. */
  drained(): Promise<void> {
    return this.isOver || !this.hasWaiting
      ? Promise.resolve()
      : new Promise((resolve) => void this.#onDrained.push(resolve));
  }

  override async next(): Promise<IteratorResult<string>> {
    this.#takenMs = this.#clock.monotonic();
    const part = await super.next();
    this.#takenMs = this.#clock.monotonic();
    if (!this.hasWaiting) this.#drain();
    return part;
  }

  protected ended(): void {
    this.#onEnd();
    this.#drain();
  }

  protected override beat(): boolean {
    const isStalled = this.hasWaiting && this.#clock.monotonic() - this.#takenMs >= STALLED_MS;
    if (isStalled) this.close('nothing of the stream was read for 90 seconds');
    return !isStalled;
  }

  #drain(): void {
    for (const resolve of this.#onDrained.splice(0)) resolve();
  }
}

function textOf(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
