import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/index.ts';
import { Fault } from './fault.ts';

/** With this number of failed logins within a minute, an id is refused at an address until the minute is over. */
const MAX_OF_ID = 10;
/** With this number, all ids are. */
const MAX_OF_SOURCE = 100;
const FAILURES_MS = 60_000;
const MAX_ENTRIES = 10_000;

/** A login that is checked. */
interface Attempt {
  /** The address of the client; see `sourceOf`. */
  readonly source: string;
  /** The id of the credentials, known or not. */
  readonly id: string;
}

/** The logins of an address, or of an id at an address. */
class Failures {
  readonly #clock: Clock;
  readonly #max: number;
  #failed = 0;
  /** End of the minute in which the failures count. */
  #untilMs = 0;
  /** Number of logins that are being checked. */
  #running = 0;
  /** Logins that wait, because those that are being checked may be the last ones that are allowed. */
  readonly #waiting: (() => void)[] = [];

  constructor(clock: Clock, max: number) {
    this.#clock = clock;
    this.#max = max;
  }

  /** How many more logins may begin; 0: those that are being checked may be the last ones. @throws Fault tooManyLogins */
  get room(): number {
    if (this.#untilMs <= this.#clock.monotonic()) this.#failed = 0;
    if (this.#failed >= this.#max)
      throw new Fault('tooManyLogins', 'there were too many failed logins from this address; try again in a minute');
    return this.#max - this.#failed - this.#running;
  }

  /** Resolves when a login has ended. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  begin(): void {
    this.#running++;
  }

  end(): void {
    this.#running--;
    for (const go of this.#waiting.splice(0)) go();
  }

  add(): void {
    const nowMs = this.#clock.monotonic();
    if (this.#untilMs <= nowMs) {
      this.#failed = 0;
      this.#untilMs = nowMs + FAILURES_MS;
    }
    this.#failed++;
  }
}

/** Limits the failed logins of each id at each address, and those of all ids at each address. */
export class LoginLimit {
  readonly #clock: Clock;
  readonly #ids = new LRUCache<string, Failures>({ max: MAX_ENTRIES });
  readonly #sources = new LRUCache<string, Failures>({ max: MAX_ENTRIES });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Check a login. No more logins are checked at the same time than may fail.
   * @param run resolves to undefined if the login has failed
   * @throws Fault tooManyLogins; what `run` throws
   */
  async check<T>(attempt: Attempt, run: () => Promise<T | undefined>): Promise<T | undefined> {
    const both = this.#failuresOf(attempt);
    for (;;) {
      const full = both.filter((each) => each.room <= 0);
      if (full.length === 0) break;
      await full[0].turn();
    }
    for (const each of both) each.begin();
    try {
      const login = await run();
      if (login === undefined) for (const each of both) each.add();
      return login;
    } finally {
      for (const each of both) each.end();
    }
  }

  /** Count a failed login that `check` has not seen. */
  add(attempt: Attempt): void {
    for (const each of this.#failuresOf(attempt)) each.add();
  }

  #failuresOf({ source, id }: Attempt): readonly [Failures, Failures] {
    const ofId = this.#entry(this.#ids, `${source} ${hash('sha256', id, 'base64')}`, MAX_OF_ID);
    return [ofId, this.#entry(this.#sources, source, MAX_OF_SOURCE)];
  }

  #entry(table: LRUCache<string, Failures>, key: string, max: number): Failures {
    let entry = table.get(key);
    if (entry === undefined) table.set(key, (entry = new Failures(this.#clock, max)));
    return entry;
  }
}
