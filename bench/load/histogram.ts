const SUB_BUCKETS = 64;

/** A histogram of latencies in whole microseconds, with 64 buckets per power of two, so percentiles are accurate to 1.6 %. */
export class Histogram {
  readonly #counts = new Float64Array(SUB_BUCKETS * 28);
  #total = 0;

  /** Add a latency. @param us whole microseconds, below 2^32 */
  add(us: number): void {
    let bucket = us;
    if (us >= SUB_BUCKETS) {
      const exponent = 31 - Math.clz32(us);
      bucket = ((exponent - 5) << 6) + ((us >>> (exponent - 6)) & 63);
    }
    this.#counts[bucket]++;
    this.#total++;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#total = 0;
  }

  /** The quantile of a share from 0 to 1, in microseconds; 0 if the histogram is empty. */
  percentile(share: number): number {
    const wanted = share * this.#total;
    let sum = 0;
    for (let bucket = 0; bucket < this.#counts.length; bucket++) {
      sum += this.#counts[bucket];
      if (sum >= wanted && sum > 0) return lowerBound(bucket);
    }
    return 0;
  }
}

function lowerBound(bucket: number): number {
  if (bucket < SUB_BUCKETS) return bucket;
  const exponent = (bucket >> 6) + 5;
  return (SUB_BUCKETS + (bucket & 63)) * 2 ** (exponent - 6);
}
