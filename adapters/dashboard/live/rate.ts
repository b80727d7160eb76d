/** Number of seconds over which a rate is taken: what happens every few seconds has a steady one. */
const RATE_SECONDS = 5;

/** The rate of a counter that is read once a second. */
export class Rate {
  /** The counts of the last seconds, with their monotonic times in milliseconds. */
  readonly #counts: { readonly atMs: number; readonly count: number }[];

  /** @param count the first reading */
  constructor(nowMs: number, count: number) {
    this.#counts = [{ atMs: nowMs, count }];
  }

  /** Add a reading. @returns the rate per second. A counter that has begun again counts from 0 */
  next(nowMs: number, count: number): number {
    const counts = this.#counts;
    if (count < counts[counts.length - 1].count) counts.splice(0, counts.length, { atMs: nowMs - 1_000, count: 0 });
    const [first] = counts;
    if (counts.push({ atMs: nowMs, count }) > RATE_SECONDS) counts.shift();
    return (1_000 * (count - first.count)) / Math.max(nowMs - first.atMs, 1_000);
  }
}
