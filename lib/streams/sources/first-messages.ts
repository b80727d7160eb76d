import type { Consumer } from '../graph/consumer.ts';
import type { FirstMessage, OpenSource } from '../types.ts';
import type { StreamRow } from '../values/tuple.ts';
import { type FirstRows, unitsOf } from './first-rows.ts';
import { type Lane, MAX_AT_ONCE, SLICE_ROWS } from './lane.ts';

/** Units of first messages in one turn; see `unitsOf`. */
const SLICE_UNITS = 100;
/** Units of a step in which the source has found no message. */
const STEP_UNITS = 8;

/** Reads the rows of a first message. */
type ReadFirst = ReturnType<Lane['reader']>;

/** Dependencies of first messages on their source. */
interface FirstMessagesHost {
  readonly isClosed: boolean;
  /** Count a message that was taken. */
  taken(): void;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown): void;
  /** Wait for the next turn of the event loop. */
  pause(): Promise<void>;
}

/** Takes a step. @returns null if there are no more messages; undefined if the step has found none */
type NextFirst = () => FirstMessage | undefined | null;

/** Passes the first messages of a source to rules and tables, some in each turn. */
export class FirstMessages {
  readonly #host: FirstMessagesHost;

  constructor(host: FirstMessagesHost) {
    this.#host = host;
  }

  /**
   * Pass the first rows to a rule.
   * @returns a promise that resolves when the rule has received all of them; undefined if there are none
   */
  feed(open: OpenSource, read: ReadFirst, first: FirstRows): Promise<void> | undefined {
    const next = this.#begin(open);
    if (next === undefined) return undefined;
    const waiting: ((taker: Consumer) => void)[] = [];
    let taker = first.takerOf(false);
    const pass = (count: number) => {
      for (const passOne of waiting.splice(0, count)) passOne(taker);
    };
    first.begin(() => {
      if (waiting.length > 0) {
        pass(SLICE_ROWS);
        return SLICE_UNITS;
      }
      const message = next();
      if (message === null) return 0;
      if (message === undefined) return STEP_UNITS;
      const failed = (error: unknown) => waiting.push((to) => to.fail(error, message.cause, message.metadata));
      read(message, (row) => waiting.push((to) => to.push(row)), failed);
      taker = first.takerOf(waiting.length > MAX_AT_ONCE);
      if (waiting.length <= MAX_AT_ONCE) pass(MAX_AT_ONCE);
      return unitsOf(message.payload.length);
    });
    return this.#inSlices(() => first.pass(SLICE_UNITS));
  }

  /**
   * Fill a table with the first rows.
   * @returns a promise that resolves when the table has received all of them; undefined if there are none
   */
  fill(open: OpenSource, lane: Lane, read: ReadFirst): Promise<void> | undefined {
    const next = this.#begin(open);
    if (next === undefined) return undefined;
    const rows: StreamRow[] = [];
    lane.hold();
    return this.#inSlices(() => {
      for (let left = SLICE_UNITS; left > 0; ) {
        const message = next();
        if (message === null) {
          lane.release(rows);
          return false;
        }
        left -= message === undefined ? STEP_UNITS : unitsOf(message.payload.length);
        if (message === undefined) continue;
        read(
          message,
          (row) => rows.push(row),
          (error) => lane.fail(error, message.cause, message.metadata)
        );
        lane.trim(rows);
      }
      return true;
    });
  }

  /** @returns undefined if the source has no first messages */
  #begin(open: OpenSource): NextFirst | undefined {
    const messages = open.first?.();
    if (messages === undefined) return undefined;
    return () => {
      try {
        const { done, value } = messages.next();
        if (done === true) return null;
        if (value !== undefined) this.#host.taken();
        return value;
      } catch (error) {
        this.#host.failed(error);
        return null; // the waiting rows are passed on
      }
    };
  }

  /** @param pass called once in each turn until it returns false */
  async #inSlices(pass: () => boolean): Promise<void> {
    const { pause } = this.#host;
    try {
      do await pause();
      while (pass() && !this.#host.isClosed);
    } catch (error) {
      this.#host.failed(error);
    }
  }
}
