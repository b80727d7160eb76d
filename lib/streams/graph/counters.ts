import type { Clock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';

/**
 * Latency and the time of the last item are measured for one item in this many, for the first, and once a second. A
 * power of 2.
 */
export const SAMPLE = 64;

/** Maximum age of the sample of a node relative to its last item. */
const SAMPLE_MS = 1_000;

/** Samples the items of a node. */
interface Sampler {
  /** Sample the next item. */
  sampleNext(): void;
}

/** Makes the nodes of a rule take a sample in each second that has items. Without items, there is no timer. */
export class Pulse {
  readonly #clock: Clock | undefined;
  readonly #samplers: Sampler[] = [];
  #timer: unknown;
  #isClosed = false;

  /** @param clock if undefined, samples are taken by the number of items only */
  constructor(clock?: Clock) {
    this.#clock = clock;
  }

  add(sampler: Sampler): void {
    this.#samplers.push(sampler);
  }

  /** Note that a sample was taken: the next one is due after a second. */
  sampled(): void {
    if (this.#clock === undefined || this.#timer !== undefined || this.#isClosed) return;
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      for (const sampler of this.#samplers) sampler.sampleNext();
    }, SAMPLE_MS);
  }

  close(): void {
    this.#isClosed = true;
    this.#clock?.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** The counters of a node in the status. Counts are exact; times are those of sampled items. */
export class NodeCounters {
  recordsIn = 0;
  recordsOut = 0;
  exceptions = 0;
  /** Microseconds that the last sampled item took. */
  latencyUs = 0;
  /** Wall-clock milliseconds; 0: never. */
  lastAt = 0;
  lastException = '';
  lastExceptionAt = 0;
  /** Counters of the operator, such as `late_total`. Undefined if there are none. */
  more: Map<string, number> | undefined;
  readonly #pulse: Pulse;
  /** Value of `recordsIn` at which the next item is sampled. */
  #nextSample = 0;

  constructor(pulse: Pulse) {
    this.#pulse = pulse;
    pulse.add(this);
  }

  /** Add to a counter of the operator. */
  count(name: string, by: number): void {
    this.more ??= new Map();
    this.more.set(name, (this.more.get(name) ?? 0) + by);
  }

  /** Count an item that has arrived. @returns whether its time should be measured */
  arrived(): boolean {
    if (this.recordsIn++ < this.#nextSample) return false;
    this.#nextSample = this.recordsIn + SAMPLE - 1;
    return true;
  }

  sampleNext(): void {
    this.#nextSample = 0;
  }

  /** Count an item that was passed on. */
  passed(): void {
    this.recordsOut++;
  }

  /** Record the time of a sampled item. */
  seen(nowMs: number): void {
    this.lastAt = nowMs;
    this.#pulse.sampled();
  }

  /** @param startedAt monotonic time of a sampled item, in milliseconds */
  took(clock: Clock, startedAt: number): void {
    this.latencyUs = Math.round((clock.monotonic() - startedAt) * 1000);
  }

  /** @param times number of failures */
  failed(error: unknown, nowMs: number, times = 1): void {
    this.exceptions += times;
    this.lastException = errorText(error);
    this.lastExceptionAt = nowMs;
  }
}
