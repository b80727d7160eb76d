/** Adjacent buckets differ by two percent, which is precise enough for latencies. */
const STEP = Math.log(1.02);

/** The distribution of any number of durations, in bounded memory. Its quantiles are accurate to two percent. */
export class Spread {
  readonly #buckets = new Map<number, number>();
  #count = 0;
  #sumMs = 0;
  #maxMs = 0;

  /** Add a duration. */
  add(durationMs: number): void {
    const bucket = Math.round(Math.log(Math.max(durationMs, 0.001)) / STEP);
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + 1);
    this.#count++;
    this.#sumMs += durationMs;
    this.#maxMs = Math.max(this.#maxMs, durationMs);
  }

  get count(): number {
    return this.#count;
  }

  /** The quantile of a share from 0 to 1, in milliseconds; 0 if there are no durations. */
  quantile(share: number): number {
    let left = Math.ceil(share * this.#count);
    for (const [bucket, count] of [...this.#buckets].sort(([a], [b]) => a - b)) {
      left -= count;
      if (left <= 0) return Math.min(Math.exp(bucket * STEP), this.#maxMs);
    }
    return 0;
  }

  /** The mean, the main quantiles and the maximum, in milliseconds with three significant digits. */
  summary(): { mean: number; p50: number; p90: number; p99: number; max: number } {
    const mean = this.#count === 0 ? 0 : this.#sumMs / this.#count;
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => rounded(this.quantile(share)));
    return { mean: rounded(mean), p50, p90, p99, max: rounded(this.#maxMs) };
  }
}

function rounded(ms: number): number {
  return Number(ms.toPrecision(3));
}
