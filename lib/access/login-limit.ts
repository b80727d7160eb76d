import type { LRUCache } from 'lru-cache';
import { createHmac, hash, once, randomBytes } from '../base/builtins.ts';
import type { Clock } from '../base/clock.ts';
import { growingLru } from '../base/collections/growing-lru.ts';
import { BrokerError } from '../base/errors.ts';
import { isThenable } from '../events/hooks.ts';

/** Maximum number of failed logins of an id at an address within a minute; after that, the id is refused until the minute is over. */
const MAX_OF_ID = 10;
/** Maximum number of failed logins of all ids at an address within a minute. */
const MAX_OF_SOURCE = 100;
const FAILURES_MS = 60_000;
const MAX_ENTRIES = 10_000;
/** Maximum number of credentials that are remembered as correct. */
const MAX_RIGHT = 1_000;
/** Created once, because a stack trace for each login of an attack takes longer than the refusal. */
const LIMITED = new BrokerError(
  'LOGINS_LIMITED',
  'there were too many failed logins from this address; try again in a minute'
);

/** A login that is being checked. */
export interface LoginAttempt {
  /** The address of the client; see `loginSourceOf`. */
  readonly source: string;
  /** The ids of the credentials, known or unknown. A failure counts for each of them. The secret belongs to the first one. */
  readonly ids: readonly string[];
  /** Remembered as a keyed digest if it is correct. undefined: nothing is remembered. */
  readonly secret?: string | Buffer | undefined;
}

/** The logins of an address, or of an id at an address. */
class Failures {
  readonly #key: string;
  /** The table that contains this entry while a login is being checked, and while failures count. */
  readonly #table: LRUCache<string, Failures>;
  readonly #clock: Clock;
  readonly #max: number;
  #failed = 0;
  /** End of the minute in which the failures count. */
  #untilMs = 0;
  /** Number of logins that are being checked. */
  #running = 0;
  /** Logins that wait, because those that are being checked may be the last ones that are allowed. */
  readonly #waiting: (() => void)[] = [];

  constructor(clock: Clock, max: number, key: string, table: LRUCache<string, Failures>) {
    this.#clock = clock;
    this.#max = max;
    this.#key = key;
    this.#table = table;
  }

  /** The number of logins that may start; 0: those that are being checked may be the last ones. @throws BrokerError LOGINS_LIMITED */
  get room(): number {
    if (this.#currentFailures >= this.#max) throw LIMITED;
    return this.#max - this.#failed - this.#running;
  }

  get #currentFailures(): number {
    if (this.#untilMs <= this.#clock.monotonic()) this.#failed = 0;
    return this.#failed;
  }

  /** Resolves when there may be room. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  begin(): void {
    this.#keep();
    this.#running++;
  }

  end(): void {
    this.#running--;
    this.wake();
    const isUnused = this.#currentFailures === 0 && this.#running === 0 && this.#waiting.length === 0;
    if (isUnused && this.#table.peek(this.#key) === this) this.#table.delete(this.#key);
  }

  /** Wake as many waiting logins as there is room for. Waking all of a long queue each time would take quadratic time. */
  wake(): void {
    const failed = this.#currentFailures;
    const room = failed >= this.#max ? this.#waiting.length : this.#max - failed - this.#running;
    for (const go of this.#waiting.splice(0, Math.max(0, room))) go();
  }

  add(): void {
    this.#keep();
    if (this.#currentFailures === 0) this.#untilMs = this.#clock.monotonic() + FAILURES_MS;
    this.#failed++;
  }

  /** Keep the entry in the table: refused logins with new ids must not displace what counts. */
  #keep(): void {
    if (this.#table.peek(this.#key) !== this) this.#table.set(this.#key, this);
  }
}

/**
 * Limits the failed logins of each id at each address, and those of all ids at each address.
 *
 * Credentials that were correct once are checked without a limit at the same address, so that wrong logins of others there do not keep
 * their owner out. They are discarded when they turn out to be wrong. At other addresses they are limited: otherwise guesses would be
 * unlimited as long as one of them may be correct.
 */
export class LoginLimit {
  readonly #clock: Clock;
  readonly #ids = growingLru<Failures>(MAX_ENTRIES);
  readonly #sources = growingLru<Failures>(MAX_ENTRIES);
  readonly #key = once(() => randomBytes(32));
  /** Digests of correct credentials, each with its address. */
  readonly #right = growingLru<true>(MAX_RIGHT);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Check a login. At most as many logins are checked at the same time as may fail; others wait. The check is synchronous if `ask` is, and
   * no login has to wait.
   * @param ask checks the credentials
   * @param isRight reads what `ask` has returned; undefined: the result says nothing about the credentials
   * @throws BrokerError LOGINS_LIMITED, directly or as a rejection; what `ask` throws
   */
  check<T>(
    attempt: LoginAttempt,
    ask: () => T | Promise<T>,
    isRight: (answer: T) => boolean | undefined
  ): T | Promise<T> {
    const digest = this.#digestOf(attempt);
    const failures = this.#failuresOf(attempt);
    const isKnown = digest !== undefined && this.#right.get(digest) !== undefined;
    if (!isKnown) {
      const full = failures.find(({ room }) => room <= 0);
      if (full !== undefined) return this.#checkLater(full, attempt, ask, isRight);
      for (const each of failures) each.begin();
    }
    const end = (right: boolean | undefined) => {
      if (right === false) for (const each of failures) each.add();
      if (right === false && digest !== undefined) this.#right.delete(digest);
      if (right === true && digest !== undefined) this.#right.set(digest, true);
      if (!isKnown) for (const each of failures) each.end();
    };
    const ended = (answer: T): T => {
      end(isRight(answer));
      return answer;
    };
    const failed = (error: unknown): never => {
      end(undefined);
      throw error;
    };
    let answer: T | Promise<T>;
    try {
      answer = ask();
    } catch (error) {
      return failed(error);
    }
    return isThenable(answer) ? answer.then(ended, failed) : ended(answer);
  }

  async #checkLater<T>(
    full: Failures,
    attempt: LoginAttempt,
    ask: () => T | Promise<T>,
    isRight: (answer: T) => boolean | undefined
  ): Promise<T> {
    await full.turn();
    try {
      return this.check(attempt, ask, isRight); // not awaited: others wait
    } finally {
      full.wake();
    }
  }

  #digestOf({ source, ids: [id], secret }: LoginAttempt): string | undefined {
    if (secret === undefined) return undefined;
    const hmac = createHmac('sha256', this.#key()).update(`${source.length} ${source} ${id.length} ${id}`);
    return hmac.update(secret).digest('base64');
  }

  #failuresOf({ source, ids }: LoginAttempt): readonly Failures[] {
    const ofIds = ids.map((id) => this.#entry(this.#ids, `${source} ${hash('sha256', id, 'base64')}`, MAX_OF_ID));
    return [this.#entry(this.#sources, source, MAX_OF_SOURCE), ...ofIds];
  }

  #entry(table: LRUCache<string, Failures>, key: string, max: number): Failures {
    return table.get(key) ?? new Failures(this.#clock, max, key, table);
  }
}
