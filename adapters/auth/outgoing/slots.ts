import { BrokerError } from '../../../lib/index.ts';

/** Limits the number of concurrent tasks. The rest waits in a bounded queue, in order. */
export class Slots {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #what: string;
  #running = 0;
  /** Queued tasks; each function starts one. A set keeps their order and allows removal. */
  readonly #waiting = new Set<() => void>();

  /** @param what the name of the requests in error messages */
  constructor(maxRunning: number, maxWaiting: number, what: string) {
    this.#maxRunning = maxRunning;
    this.#maxWaiting = maxWaiting;
    this.#what = what;
  }

  /**
   * Run a task when there is room.
   * @throws BrokerError SOURCE_BUSY if the queue is full; the reason of the signal; errors of the task
   */
  async run<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    if (this.#running < this.#maxRunning) this.#running++;
    else await this.#wait(signal);
    try {
      signal.throwIfAborted();
      return await task();
    } finally {
      this.#release();
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= this.#maxWaiting)
      throw new BrokerError('SOURCE_BUSY', `${this.#maxWaiting} ${this.#what} are already queued (option maxQueued)`);
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.delete(begin);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.add(begin);
    });
  }

  /** Pass the place of a finished task to the next one. */
  #release(): void {
    for (const begin of this.#waiting) {
      this.#waiting.delete(begin);
      begin();
      return;
    }
    this.#running--;
  }
}
