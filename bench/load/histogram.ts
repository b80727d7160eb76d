const SUB_BUCKETS = 64;

/** Latencies in whole microseconds: 64 buckets for each power of two, so that a percentile is off by at most 1.6 %. */
export class Histogram {
  readonly #counts = new Float64Array(SUB_BUCKETS * 28);
  #total = 0;

  /** @param us whole microseconds, below 2^32 */
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

  /** The value that the given share (0 to 1) of all values does not exceed, in microseconds; 0 when empty. */
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
