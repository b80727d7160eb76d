import { availableParallelism } from 'node:os';
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
  /** Greatest number of checks at the same time. Default: one for every two processors. */
  readonly concurrency?: number;
  /** Greatest number of checks that wait. Default 10,000. */
  readonly maxWaiting?: number;
}

/**
 * Runs password checks on other threads, a few at a time: files, DNS and LevelDB use the same threads.
 *
 * Addresses take turns, so that one with many wrong logins does not delay the others. When the queue is full, a check of the address with
 * the longest queue is refused.
 */
export class PasswordChecks {
  readonly #concurrency: number;
  readonly #maxWaiting: number;
  /** The waiting checks of each address; the first address is the next one to be served. */
  readonly #queues = new Map<string, Waiting[]>();
  #waiting = 0;
  #running = 0;

  constructor({ concurrency, maxWaiting }: Limits = {}) {
    this.#concurrency = concurrency ?? Math.max(1, Math.floor(availableParallelism() / 2));
    this.#maxWaiting = maxWaiting ?? 10_000;
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
      else if (this.#waiting > this.#maxWaiting) this.#refuseOne();
    });
  }

  #runNext(): void {
    for (const [address, queue] of this.#queues) {
      const { run, resolve, reject, signal, leave } = queue.shift() as Waiting;
      this.#queues.delete(address);
      if (queue.length > 0) this.#queues.set(address, queue); // behind the other addresses
      this.#waiting--;
      this.#running++;
      signal.removeEventListener('abort', leave);
      const done = () => {
        this.#running--;
        if (this.#running < this.#concurrency) this.#runNext();
      };
      run().then(resolve, reject).finally(done);
      return;
    }
  }

  /** The connection of a waiting check has gone. */
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
    const text = 'too many logins wait for the check of their passwords';
    last.reject(new BrokerError('PASSWORD_QUEUE_FULL', text));
  }
}
