/** Time in which an error with the same place and cause is reported once, in milliseconds. */
const REPORT_MS = 60_000;
/** Maximum number of causes of a place that are reported in this time: messages may contain values of rows. */
const MAX_CAUSES = 10;
/** Number of characters of a message that are compared. */
const MAX_CAUSE = 200;

interface Period {
  readonly beganAtMs: number;
  /** Causes that were reported, by place. */
  readonly causes: Map<string, Set<string>>;
}

/**
 * Decides which errors of rules are reported: the first one of each cause in a minute, at most ten causes of a place. Each place of a rule,
 * such as its second action, has its own causes.
 */
export class ErrorReports {
  readonly #monotonic: () => number;
  /** By rule, the oldest period first. */
  readonly #periods = new Map<string, Period>();

  /** @param monotonic a time in milliseconds */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** @param place within the rule, such as an action or a sink */
  isFirst(rule: string, place: string, error: unknown): boolean {
    const nowMs = this.#monotonic();
    for (const [each, { beganAtMs }] of this.#periods) {
      if (nowMs - beganAtMs < REPORT_MS) break;
      this.#periods.delete(each);
    }
    const { causes } = this.#periodOf(rule, nowMs);
    let ofPlace = causes.get(place);
    if (ofPlace === undefined) causes.set(place, (ofPlace = new Set()));
    const cause = (error instanceof Error ? error.message : String(error)).slice(0, MAX_CAUSE);
    if (ofPlace.size >= MAX_CAUSES || ofPlace.has(cause)) return false;
    ofPlace.add(cause);
    return true;
  }

  /** Discard the causes of a rule that was dropped. */
  forget(rule: string): void {
    this.#periods.delete(rule);
  }

  #periodOf(rule: string, nowMs: number): Period {
    const known = this.#periods.get(rule);
    if (known !== undefined) return known;
    const period = { beganAtMs: nowMs, causes: new Map<string, Set<string>>() };
    this.#periods.set(rule, period);
    return period;
  }
}
