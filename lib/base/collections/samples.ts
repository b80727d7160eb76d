import type { Clock } from '../clock.ts';

/** Minimum time between two samples of a ring, in milliseconds. */
const INTERVAL_MS = 100;
/** Maximum number of rings that are opened at once, so that many rules together cost no more than some: about 2 ms a second. */
const MAX_OPENED = 50;
/** Number of samples that a ring keeps. */
const KEPT = 5;
/** Maximum size of a sample, in characters of its JSON. */
const MAX_CHARACTERS = 4096;
/** Maximum size of a sample while all rings together have more than `MAX_TOTAL` characters. */
const MAX_WHEN_FULL = 512;
const MAX_TOTAL = 8_388_608;

/** A sample with its value as JSON, which shares no memory with the value. */
export interface Sample {
  /** Wall-clock time in milliseconds since 1970. */
  readonly at: number;
  readonly json: string;
  /** True if a part of the value was left out. */
  readonly isCut: boolean;
}

/**
 * Decides when rings take samples. A ring that has taken one is closed, and opened again by a timer that all rings share: whoever has a value
 * reads only the field `isOpen`, without a look at the clock. Without samples there is no timer.
 */
export class SamplePace {
  readonly #clock: Clock;
  /** Closed rings, in the order in which they have taken samples. */
  #closed: { readonly ring: SampleRing; readonly fromMs: number }[] = [];
  #timer: unknown;
  /** Number of characters in all rings. */
  characters = 0;

  constructor(clock: Clock) {
    this.#clock = clock.internal ?? clock;
  }

  /** Wall-clock time in milliseconds since 1970. */
  now(): number {
    return this.#clock.now();
  }

  /** Maximum size of the next sample, in characters. */
  get most(): number {
    return this.characters > MAX_TOTAL ? MAX_WHEN_FULL : MAX_CHARACTERS;
  }

  /** Close a ring that has taken a sample. */
  taken(ring: SampleRing): void {
    ring.isOpen = false;
    this.#closed.push({ ring, fromMs: this.#clock.monotonic() + INTERVAL_MS });
    this.#timer ??= this.#clock.setTimeout(() => this.#open(), INTERVAL_MS);
  }

  /** Called when the broker or the service has stopped: the timer ends. */
  end(): void {
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { ring } of this.#closed.splice(0)) ring.isOpen = true;
  }

  #open(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.monotonic();
    let count = 0;
    while (count < MAX_OPENED && count < this.#closed.length && this.#closed[count].fromMs <= nowMs)
      this.#closed[count++].ring.isOpen = true;
    this.#closed = this.#closed.slice(count);
    if (this.#closed.length > 0) this.#timer = this.#clock.setTimeout(() => this.#open(), INTERVAL_MS);
  }
}

/** Time of the last sample of some rings, in milliseconds since 1970; 0: there is none. It costs nothing to ask. */
export function lastSampled(rings: Iterable<Pick<SampleRing, 'samples'>>): number {
  let last = 0;
  for (const { samples } of rings) last = Math.max(last, samples.at(-1)?.at ?? 0);
  return last;
}

/** The last samples of one kind. Nothing is allocated for them before the first one. */
export class SampleRing<S extends Sample = Sample> {
  /** True if the next value is to be sampled. Only `SamplePace` changes it. */
  isOpen = true;
  readonly #pace: SamplePace;
  #samples: S[] | undefined = undefined;

  constructor(pace: SamplePace) {
    this.#pace = pace;
  }

  /** The samples, the oldest first. */
  get samples(): readonly S[] {
    return this.#samples ?? [];
  }

  /** Add a sample, and close the ring until the next one is due. */
  add(sample: S): void {
    this.#pace.taken(this as unknown as SampleRing);
    const samples = (this.#samples ??= []);
    samples.push(sample);
    this.#pace.characters += sample.json.length;
    if (samples.length > KEPT) this.#pace.characters -= (samples.shift() as S).json.length;
  }

  /** Discard the samples. */
  clear(): void {
    for (const { json } of this.samples) this.#pace.characters -= json.length;
    this.#samples = undefined;
  }
}
