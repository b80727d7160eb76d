/** Units of work in a slice: about 1 ms. */
const UNITS = 2_000;

/** Waits for the next slice. @param had number of slices that the work has had; default: several */
export type Pause = (had?: number) => Promise<void>;

/** Counts the work of a walk over a collection, and divides it into slices. A unit is one look at a key. */
export class Pace {
  readonly #pause: Pause;
  #had = 0;
  #left = 0;

  /** The first call of `next` starts the walk. @param pause waits for the next slice */
  constructor(pause: Pause) {
    this.#pause = pause;
  }

  /** The pace of another walk with separate slices. */
  another(): Pace {
    return new Pace(this.#pause);
  }

  /** Count work that was done. @returns whether the slice is used up: then `next` follows */
  spend(units = 1): boolean {
    this.#left -= units;
    return this.#left <= 0;
  }

  /** Wait for the next slice. */
  next(): Promise<void> {
    this.#left = UNITS;
    return this.#pause(this.#had++);
  }
}
