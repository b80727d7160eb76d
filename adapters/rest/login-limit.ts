import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/index.ts';
import { Fault } from './fault.ts';

/** A source with this number of failed logins within a minute is refused until the minute is over. */
const MAX_FAILURES = 10;
const FAILURES_MS = 60_000;
const MAX_SOURCES = 10_000;

/** The logins of one source. */
interface Source {
  failed: number;
  /** End of the minute in which the failures count. */
  untilMs: number;
  /** Number of logins that are being checked. */
  running: number;
  /** Logins that wait, because those that are being checked may be the last ones that are allowed. */
  readonly waiting: (() => void)[];
}

/** Limits the failed logins of each source. */
export class LoginLimit {
  readonly #clock: Clock;
  readonly #sources = new LRUCache<string, Source>({ max: MAX_SOURCES });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Check a login. No more logins are checked at the same time than may fail.
   * @param run resolves to undefined if the login has failed
   * @throws Fault tooManyLogins; what `run` throws
   */
  async check<T>(key: string, run: () => Promise<T | undefined>): Promise<T | undefined> {
    const source = this.#sourceOf(key);
    for (;;) {
      if (source.untilMs <= this.#clock.monotonic()) source.failed = 0;
      if (source.failed >= MAX_FAILURES)
        throw new Fault('tooManyLogins', 'there were too many failed logins from this address; try again in a minute');
      if (source.failed + source.running < MAX_FAILURES) break;
      await new Promise<void>((resolve) => source.waiting.push(resolve));
    }
    source.running++;
    try {
      const login = await run();
      if (login === undefined) this.#countFailure(source);
      return login;
    } finally {
      source.running--;
      for (const go of source.waiting.splice(0)) go();
    }
  }

  #sourceOf(key: string): Source {
    let source = this.#sources.get(key);
    if (source === undefined) this.#sources.set(key, (source = { failed: 0, untilMs: 0, running: 0, waiting: [] }));
    return source;
  }

  #countFailure(source: Source): void {
    const nowMs = this.#clock.monotonic();
    if (source.untilMs <= nowMs) {
      source.failed = 0;
      source.untilMs = nowMs + FAILURES_MS;
    }
    source.failed++;
  }
}
