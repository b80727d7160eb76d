import type { Clock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';

/** Latency and the time of the last item are taken for one item in so many, for the first, and once a second. A power of 2. */
export const SAMPLE = 64;

/** Time by which the sample of a node may be older than its last item. */
const SAMPLE_MS = 1_000;

/** Takes samples of the items of a node. */
interface Sampler {
  /** The next item belongs to the sample. */
  sampleNext(): void;
}

/** Has the nodes of a rule take a sample in each second with items. While there are no items, it has no timer. */
export class Pulse {
  readonly #clock: Clock | undefined;
  readonly #samplers: Sampler[] = [];
  #timer: unknown;
  #isClosed = false;

  /** @param clock undefined: samples are taken by the number of items alone */
  constructor(clock?: Clock) {
    this.#clock = clock;
  }

  add(sampler: Sampler): void {
    this.#samplers.push(sampler);
  }

  /** A sample was taken: the next one is due after a second. */
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

/** What the status shows of a node. Counters are exact; times are those of a sample of the items. */
export class Figures {
  recordsIn = 0;
  recordsOut = 0;
  exceptions = 0;
  /** Microseconds that the last sampled item took. */
  latencyUs = 0;
  /** Wall-clock milliseconds; 0: never. */
  lastAt = 0;
  lastException = '';
  lastExceptionAt = 0;
  /** Counters of the operator, such as `late_total`. undefined: there are none. */
  more: Map<string, number> | undefined;
  readonly #pulse: Pulse;
  /** Value of `recordsIn` at which an item belongs to the sample again. */
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

  /** An item has arrived. @returns whether its time is to be taken */
  arrived(): boolean {
    if (this.recordsIn++ < this.#nextSample) return false;
    this.#nextSample = this.recordsIn + SAMPLE - 1;
    return true;
  }

  sampleNext(): void {
    this.#nextSample = 0;
  }

  /** An item has been passed on. */
  passed(): void {
    this.recordsOut++;
  }

  /** Items have arrived and been passed on that were counted elsewhere. */
  add(recordsIn: number, recordsOut: number): void {
    this.recordsIn += recordsIn;
    this.recordsOut += recordsOut;
  }

  /** The time of an item of the sample. */
  seen(nowMs: number): void {
    this.lastAt = nowMs;
    this.#pulse.sampled();
  }

  /** @param startedAt monotonic milliseconds of an item of the sample */
  took(clock: Clock, startedAt: number): void {
    this.latencyUs = Math.round((clock.monotonic() - startedAt) * 1000);
  }

  /** @param times how often */
  failed(error: unknown, nowMs: number, times = 1): void {
    this.exceptions += times;
    this.lastException = errorText(error);
    this.lastExceptionAt = nowMs;
  }
}
