import type { Consumer } from '../graph/consumer.ts';
import type { Cause } from '../values/cause.ts';
import type { Metadata } from '../values/tuple.ts';
import { StreamFailure, type StreamValueObject } from '../values/values.ts';
import { type Lane, MAX_AT_ONCE, SLICE_ROWS } from './lane.ts';
import { type Waiting, WaitingRows } from './waiting-rows.ts';

/** Maximum depth of rows that trigger each other, because rules send their results to the same source. */
const MAX_DEPTH = 100;

/** Reports of a feed to its source. */
export interface FeedHost {
  /** Name of the stream. */
  readonly stream: string;
  /** The kind and the name of the stream. */
  readonly what: string;
  /** Called when rows, or payloads that could not be read, have arrived. */
  arrived(count: number): void;
  /** Count an error of the source. */
  count(error: unknown): void;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown, during: string): void;
  /** Wait for the next turn of the event loop. */
  pause(): Promise<void>;
  /** Report that there is no room, or room again. */
  setFull(isFull: boolean): void;
}

/** Passes the messages of a source to those rules that take long messages in the same way. */
export class Feed {
  /** Replaced when a lane is added or removed: the current row goes to the lanes that existed when it arrived. */
  #lanes: readonly Lane[] = [];
  readonly #host: FeedHost;
  /** True if all messages are taken in the turn in which they arrive. */
  readonly #isWhole: boolean;
  readonly #waiting = new WaitingRows();
  #isBusy = false;
  /** True while waiting messages are taken in slices, one in each turn. */
  #isSlicing = false;
  /** Number of rows that triggered the current one. */
  #depth = 0;
  #isClosed = false;

  constructor(host: FeedHost, isWhole: boolean) {
    this.#host = host;
    this.#isWhole = isWhole;
  }

  get lanes(): readonly Lane[] {
    return this.#lanes;
  }

  add(lane: Lane): void {
    this.#lanes = [...this.#lanes, lane];
  }

  /** Number of remaining rows of the current message for a rule, and of messages that wait after it. */
  leftOf(consumer: Consumer): { readonly rows: number; readonly messages: number } {
    let rows = 0;
    for (const lane of this.#lanes) rows += lane.leftOf(consumer);
    return { rows, messages: this.#isSlicing ? this.#waiting.length : 0 };
  }

  delete(consumer: Consumer): void {
    const lane = this.#lanes.find((each) => each.delete(consumer));
    if (lane?.isEmpty) this.#lanes = this.#lanes.filter((each) => each !== lane);
  }

  /** Stop taking waiting messages. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
  }

  /**
   * Messages that arrive while a row or a message is being processed are taken after it, so that all rules receive rows
   * in the same order.
   */
  arrive(
    payload: Uint8Array | undefined,
    values: StreamValueObject,
    metadata: Metadata,
    arrivedAt: number,
    cause: Cause | undefined,
    isCounted: boolean
  ): void {
    if (this.#isBusy || this.#isSlicing) {
      const depth = this.#isBusy ? this.#depth + 1 : 0;
      this.#wait({ payload, values, metadata, arrivedAt, cause, isCounted, depth });
      return;
    }
    this.#isBusy = true;
    let isLeft = false;
    try {
      const count = this.#take(payload, values, metadata, arrivedAt, cause, isCounted);
      if (count === 0) isLeft = this.#takeMore(this.#isWhole ? Infinity : SLICE_ROWS);
      else if (this.#waiting.length > 0) isLeft = this.#takeMore(this.#isWhole ? Infinity : MAX_AT_ONCE);
    } finally {
      this.#isBusy = false;
      if (!isLeft) this.#depth = 0;
    }
    if (isLeft) void this.#takeInSlices();
  }

  #wait(waiting: Waiting): void {
    if (waiting.depth > MAX_DEPTH) {
      const text = 'rules send rows to each other in a cycle';
      this.#host.failed(new StreamFailure(text), `stream ${this.#host.stream}`);
      return;
    }
    try {
      this.#waiting.add(waiting);
    } catch (error) {
      this.#host.count(error);
    }
  }

  /**
   * Take the rest of the current message, and waiting messages.
   * @param most maximum number of rows
   * @returns whether any are left
   */
  #takeMore(most: number): boolean {
    for (let left = most; left > 0; ) {
      const passed = this.#slice(Math.min(left, SLICE_ROWS));
      if (passed > 0) {
        left -= passed;
        continue;
      }
      const next = this.#waiting.take();
      if (next === undefined) return false;
      const { payload, values, metadata, arrivedAt, cause, isCounted, depth } = next;
      this.#depth = depth;
      left -= this.#take(payload, values, metadata, arrivedAt, cause, isCounted);
    }
    return this.#waiting.length > 0 || this.#lanes.some((lane) => lane.isInMessage);
  }

  /** Pass on rows of the current message. @returns their number */
  #slice(most: number): number {
    for (const lane of this.#lanes) {
      const passed = lane.slice(most);
      if (passed > 0) return passed;
    }
    return 0;
  }

  /** Take waiting messages in slices. Sources that can wait do not read in the meantime. */
  async #takeInSlices(): Promise<void> {
    this.#isSlicing = true;
    this.#host.setFull(true);
    for (let isLeft = true; isLeft; ) {
      await this.#host.pause();
      if (this.#isClosed) break;
      this.#isBusy = true;
      try {
        isLeft = this.#takeMore(SLICE_ROWS);
      } catch (error) {
        this.#host.failed(error, `passing the rows of a message of ${this.#host.what}`);
      }
      this.#isBusy = false;
    }
    this.#isSlicing = false;
    this.#depth = 0;
    this.#host.setFull(false);
  }

  /** @returns the number of rows passed on; 0 if there are many, which follow in slices */
  #take(
    payload: Uint8Array | undefined,
    values: StreamValueObject,
    metadata: Metadata,
    arrivedAt: number,
    cause: Cause | undefined,
    isCounted: boolean
  ): number {
    const lanes = this.#lanes;
    let count = 1;
    let isLong = false;
    for (let at = 0; at < lanes.length; at++)
      if (payload === undefined) lanes[at].values(values, metadata, arrivedAt, cause);
      else {
        count = lanes[at].bytes(payload, metadata, arrivedAt, cause);
        if (count > MAX_AT_ONCE && lanes[at].isInMessage) isLong = true;
      }
    if (isCounted) this.#host.arrived(count);
    return isLong ? 0 : Math.max(1, count);
  }
}
