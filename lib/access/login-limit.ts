import { createHmac, hash, randomBytes } from 'node:crypto';
import type { LRUCache } from 'lru-cache';
import type { Clock } from '../base/clock.ts';
import { growingLru } from '../base/collections/growing-lru.ts';
import { BrokerError } from '../base/errors.ts';
import { isThenable } from '../events/hooks.ts';

/** With this number of failed logins within a minute, an id is refused at an address until the minute is over. */
const MAX_OF_ID = 10;
/** With this number, all ids are. */
const MAX_OF_SOURCE = 100;
const FAILURES_MS = 60_000;
const MAX_ENTRIES = 10_000;
/** Greatest number of credentials that are remembered as right. */
const MAX_RIGHT = 1_000;
/** Made once: a stack trace for each login of an attack takes longer than the refusal. */
const LIMITED = new BrokerError(
  'LOGINS_LIMITED',
  'there were too many failed logins from this address; try again in a minute'
);

/** A login that is checked. */
export interface LoginAttempt {
  /** The address of the client; see `loginSourceOf`. */
  readonly source: string;
  /** The ids of the credentials, known or not. A failure counts for each of them. The secret belongs to the first one. */
  readonly ids: readonly string[];
  /** Remembered as a keyed digest if it is right. undefined: nothing is remembered. */
  readonly secret?: string | Buffer | undefined;
}

/** The logins of an address, or of an id at an address. */
class Failures {
  readonly #key: string;
  /** It has the entry while a login is being checked, and while failures count. */
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

  /** The number of logins that may begin; 0: those that are being checked may be the last ones. @throws BrokerError LOGINS_LIMITED */
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

  /** Let as many waiting logins go on as there is room for. To wake all of a long queue each time would make its time quadratic. */
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

  /** Refused logins with ever new ids must not displace what counts. */
  #keep(): void {
    if (this.#table.peek(this.#key) !== this) this.#table.set(this.#key, this);
  }
}

/**
 * Limits the failed logins of each id at each address, and those of all ids at each address.
 *
 * Credentials that were right once are checked without a limit at the address where they were, so that wrong logins of others there do not
 * keep them out. They are forgotten when they turn out to be wrong. At other addresses they are limited: otherwise guesses would not be, as long
 * as one of them may be right.
 */
export class LoginLimit {
  readonly #clock: Clock;
  readonly #ids = growingLru<Failures>(MAX_ENTRIES);
  readonly #sources = growingLru<Failures>(MAX_ENTRIES);
  readonly #key = randomBytes(32);
  /** Digests of credentials that were right, each with its address. */
  readonly #right = growingLru<true>(MAX_RIGHT);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Check a login. No more logins are checked at the same time than may fail; others wait. It is synchronous if `ask` is, and none has to wait.
   * @param ask checks the credentials
   * @param isRight reads what `ask` has returned; undefined: it says nothing about the credentials
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
    const hmac = createHmac('sha256', this.#key).update(`${source.length} ${source} ${id.length} ${id}`);
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
