/** Maximum number of stops that are kept. */
const MAX_STOPS = 16;

/** A time in which a feature was stopped, in milliseconds since 1970. */
interface Stop {
  readonly from: number;
  /** Undefined: it is still stopped. */
  readonly until: number | undefined;
}

/** When a feature was stopped, for the question why a message did not arrive: the last 16 times since the start of the process. */
export class Stops {
  readonly #now: () => number;
  /** The latest first. */
  #stops: readonly Stop[] = [];

  /** @param now the wall-clock time in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Note that the feature was stopped. */
  begin(): void {
    this.#stops = [{ from: this.#now(), until: undefined }, ...this.#stops.slice(0, MAX_STOPS - 1)];
  }

  /** Note that the feature was started. */
  end(): void {
    const [last, ...others] = this.#stops;
    if (last === undefined || last.until !== undefined) return;
    const until = this.#now();
    this.#stops = until === last.from ? others : [{ from: last.from, until }, ...others];
  }

  /** The latest stop that lasted at a time. @param precision possible difference of the time, in milliseconds */
  at(time: number, precision: number): Stop | undefined {
    return this.#stops.find(({ from, until = Infinity }) => from <= time + precision && until >= time - precision);
  }
}
