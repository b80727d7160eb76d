/** Neighbouring buckets differ by two percent, which is more than a latency is worth. */
const STEP = Math.log(1.02);

/** How durations are spread: any number of them in bounded room, quantiles to within two percent. */
export class Spread {
  readonly #buckets = new Map<number, number>();
  #count = 0;
  #sumMs = 0;
  #maxMs = 0;

  /** @param durationMs milliseconds */
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

  /** Milliseconds that a share of all durations, 0 to 1, does not exceed; 0 where there is none. */
  quantile(share: number): number {
    let left = Math.ceil(share * this.#count);
    for (const [bucket, count] of [...this.#buckets].sort(([a], [b]) => a - b)) {
      left -= count;
      if (left <= 0) return Math.min(Math.exp(bucket * STEP), this.#maxMs);
    }
    return 0;
  }

  /** What is worth telling, in milliseconds to three digits. */
  summary(): { mean: number; p50: number; p90: number; p99: number; max: number } {
    const mean = this.#count === 0 ? 0 : this.#sumMs / this.#count;
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => rounded(this.quantile(share)));
    return { mean: rounded(mean), p50, p90, p99, max: rounded(this.#maxMs) };
  }
}

function rounded(ms: number): number {
  return Number(ms.toPrecision(3));
}
