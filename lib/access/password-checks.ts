import { os } from '../base/builtins.ts';
import { BrokerError } from '../base/errors.ts';

/** A check that waits for its turn. */
interface Waiting {
  readonly run: () => Promise<boolean>;
  readonly resolve: (answer: boolean) => void;
  readonly reject: (error: unknown) => void;
  readonly signal: AbortSignal;
  readonly leave: () => void;
}

/** Limits of `PasswordChecks`. */
interface Limits {
  /** Maximum number of checks at the same time. Default: one for every two processors, but at most half of the threads of Node. */
  readonly concurrency?: number;
  /** Maximum number of waiting checks. Default 10,000. */
  readonly maxWaiting?: number;
}

/** A check that is likely to wait longer than this is refused, so that its client tries again later instead of using memory now. */
const MAX_WAIT_MS = 10_000;
/** This number of checks may wait even if each check takes long. */
const MIN_WAITING = 100;
/** Weight of the last check in the average time of checks. */
const WEIGHT = 1 / 16;
/** The assumed duration of a check before the first one has ended. */
const GUESSED_MS = 30;
/** Node runs file access, DNS look-ups, LevelDB and hashes on this number of threads. */
const THREADS = Number(process.env.UV_THREADPOOL_SIZE) || 4;
/** Created once, because a stack trace for each login of an attack takes longer than the refusal. */
const QUEUE_FULL = new BrokerError('PASSWORD_QUEUE_FULL', 'too many logins wait for the check of their passwords');

/**
 * Runs password checks on other threads, a few at a time, because files, DNS and LevelDB use the same threads.
 *
 * Addresses take turns, so that one with many wrong logins does not delay the others. When the queue is full, which means that its checks
 * take more than ten seconds, a check of the address with the longest queue is refused.
 */
export class PasswordChecks {
  readonly #concurrency: number;
  readonly #maxWaiting: number;
  /** The waiting checks of each address; the first address is served next. */
  readonly #queues = new Map<string, Waiting[]>();
  #waiting = 0;
  #running = 0;
  readonly #monotonic: () => number;
  /** The average duration of a check. undefined: none has ended yet. */
  #meanMs: number | undefined = undefined;

  /** @param monotonic a clock in milliseconds, which measures the duration of checks */
  constructor(monotonic: () => number, { concurrency, maxWaiting = 10_000 }: Limits = {}) {
    this.#monotonic = monotonic;
    this.#concurrency = concurrency ?? Math.max(1, Math.floor(Math.min(os().availableParallelism(), THREADS) / 2));
    this.#maxWaiting = maxWaiting;
  }

  /** Number of checks that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Run a check when it is its turn.
   * @param address of the client
   * @param signal aborted when the answer is no longer needed: a check that still waits is then not run
   * @throws BrokerError PASSWORD_QUEUE_FULL; the reason of the signal; what `run` throws
   */
  check(run: () => Promise<boolean>, address: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const leave = () => this.#leave(address, check);
      const check: Waiting = { run, resolve, reject, signal, leave };
      signal.addEventListener('abort', leave, { once: true });
      const queue = this.#queues.get(address);
      if (queue === undefined) this.#queues.set(address, [check]);
      else queue.push(check);
      this.#waiting++;
      if (this.#running < this.#concurrency) this.#runNext();
      // two for each new one: a queue that is too long gets shorter when checks turn out to take longer
      else for (let n = 0; n < 2 && this.#waiting > this.#mostWaiting; n++) this.#refuseOne();
    });
  }

  get #mostWaiting(): number {
    const timely = Math.max(MIN_WAITING, (MAX_WAIT_MS * this.#concurrency) / (this.#meanMs ?? GUESSED_MS));
    return Math.min(this.#maxWaiting, timely);
  }

  #runNext(): void {
    for (const [address, queue] of this.#queues) {
      const { run, resolve, reject, signal, leave } = queue.shift() as Waiting;
      this.#queues.delete(address);
      if (queue.length > 0) this.#queues.set(address, queue); // behind the other addresses
      this.#waiting--;
      this.#running++;
      signal.removeEventListener('abort', leave);
      const beganMs = this.#monotonic();
      const done = () => {
        this.#running--;
        const tookMs = this.#monotonic() - beganMs;
        this.#meanMs = this.#meanMs === undefined ? tookMs : this.#meanMs + (tookMs - this.#meanMs) * WEIGHT;
        if (this.#running < this.#concurrency) this.#runNext();
      };
      const answer = async () => run(); // a check of an app may throw, or return no promise
      answer().then(resolve, reject).finally(done);
      return;
    }
  }

  /** Remove a waiting check whose connection has closed. */
  #leave(address: string, check: Waiting): void {
    const queue = this.#queues.get(address);
    const at = queue?.indexOf(check) ?? -1;
    if (queue === undefined || at < 0) return;
    queue.splice(at, 1);
    if (queue.length === 0) this.#queues.delete(address);
    this.#waiting--;
    check.reject(check.signal.reason);
  }

  #refuseOne(): void {
    let longest: Waiting[] = [];
    for (const queue of this.#queues.values()) if (queue.length > longest.length) longest = queue;
    const last = longest[longest.length - 1];
    last.signal.removeEventListener('abort', last.leave);
    for (const [address, queue] of this.#queues) {
      if (queue !== longest) continue;
      queue.pop();
      if (queue.length === 0) this.#queues.delete(address);
      break;
    }
    this.#waiting--;
    last.reject(QUEUE_FULL);
  }
}
