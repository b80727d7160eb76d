/** Counters and gauges over time, by their names. */
export interface History {
  /** In milliseconds since 1970, the oldest first. */
  readonly at: readonly number[];
  readonly series: Readonly<Record<string, readonly number[]>>;
}

/** The values at one time. */
interface Sample {
  readonly at: number;
  /** False: the rates are not measured yet. */
  readonly hasRates?: boolean;
  readonly values: Readonly<Record<string, number>>;
}

/** Samples are a second apart; after a longer gap the stream was opened again. */
const MAX_GAP_MS = 3_000;

/** The samples with rates: a stream begins with one that has none, also when it is opened again. */
export function withRates<S extends Sample>(samples: readonly S[]): readonly S[] {
  return samples.filter(
    ({ at, hasRates }, index) => hasRates !== false && index > 0 && at - samples[index - 1].at <= MAX_GAP_MS
  );
}

/** A history with newer samples. A value that a sample does not have stays as it was. */
export function withSamples({ at, series }: History, samples: readonly Sample[], names: readonly string[]): History {
  const last = at.at(-1) ?? 0;
  const newer = samples.filter((sample) => sample.at > last);
  if (newer.length === 0) return { at, series };
  return {
    at: [...at, ...newer.map((sample) => sample.at)],
    series: Object.fromEntries(
      names.map((name) => {
        const before = series[name] ?? [];
        const latest = before.at(-1) ?? 0;
        return [name, [...before, ...newer.map(({ values }) => values[name] ?? latest)]];
      })
    )
  };
}
