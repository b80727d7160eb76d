import type { Cause } from '../values/cause.ts';
import type { Metadata } from '../values/tuple.ts';
import { StreamFailure, type StreamValueObject } from '../values/values.ts';

/** Maximum number of waiting payloads and rows. */
const MAX_WAITING = 102_400;
/** Maximum bytes of these payloads: 64 MiB. */
const MAX_BYTES = 67_108_864;
/** Number of taken payloads and rows at which they are removed from the list. */
const MAX_TAKEN = 1_024;

/** A payload or a row that arrived while another one was being processed. */
export interface Waiting {
  readonly payload: Uint8Array | undefined;
  readonly values: StreamValueObject;
  readonly metadata: Metadata;
  readonly arrivedAt: number;
  readonly cause: Cause | undefined;
  /** True if the source counts it here, rather than in another of its feeds. */
  readonly isCounted: boolean;
  /** Number of rows that triggered it. */
  readonly depth: number;
}

/** Messages that arrived at a source while a row or a message was being processed, in order. */
export class WaitingRows {
  #list: Waiting[] = [];
  /** Index of the next one in the list. */
  #head = 0;
  #bytes = 0;

  get length(): number {
    return this.#list.length - this.#head;
  }

  /** @throws StreamFailure if there are too many */
  add(waiting: Waiting): void {
    const { payload } = waiting;
    const bytes = this.#bytes + (payload?.length ?? 0);
    if (this.length >= MAX_WAITING)
      throw new StreamFailure(`more than ${MAX_WAITING} rows are waiting for each other; one is dropped`);
    if (bytes > MAX_BYTES)
      throw new StreamFailure(
        `more than ${MAX_BYTES} bytes are waiting for the rows of a message; a message is dropped`
      );
    this.#bytes = bytes;
    // the bytes of a payload may change when the turn ends
    this.#list.push(payload === undefined ? waiting : { ...waiting, payload: Uint8Array.from(payload) });
  }

  /** @returns undefined if there is none */
  take(): Waiting | undefined {
    if (this.length === 0) return undefined;
    const next = this.#list[this.#head++];
    this.#bytes -= next.payload?.length ?? 0;
    if (this.#head >= MAX_TAKEN || this.length === 0) {
      this.#list.splice(0, this.#head);
      this.#head = 0;
    }
    return next;
  }

  clear(): void {
    this.#list = [];
    this.#head = 0;
    this.#bytes = 0;
  }
}
