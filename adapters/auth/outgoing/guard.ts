import type { BrokerError, SourceContext } from '../../../lib/index.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { withDeadline } from './deadline.ts';
import type { Limits } from './limits.ts';
import type { Slots } from './slots.ts';

/** Failures are reported at most once in this time. */
const REPORT_PAUSE_MS = 1_000;

/** Settings of a `Guard`. */
export interface GuardSettings extends Pick<Limits, 'timeoutMs' | 'breaker'> {
  /** Name of the source. */
  readonly name: string;
}

/** Asks a server: limits the time and the number of requests, stops asking a server that fails, and reports failures. */
export class Guard {
  readonly #what: string;
  readonly #settings: GuardSettings;
  readonly #context: SourceContext;
  readonly #slots: Slots;
  readonly #breaker: CircuitBreaker;
  #reportedMs = -Infinity;
  #isClosed = false;

  /** @param what names the server in errors */
  constructor(what: string, settings: GuardSettings, context: SourceContext, slots: Slots) {
    this.#what = what;
    this.#settings = settings;
    this.#context = context;
    this.#slots = slots;
    this.#breaker = new CircuitBreaker(context.clock, settings.breaker.failures, settings.breaker.pauseMs);
  }

  /**
   * Send a request. A failure is reported, and nothing is thrown.
   * @param task gets a signal that is aborted when the time is over, and rejects with its reason then; an error of it means that the server
   *   does not work
   * @param isCausedByClient tells whether the server works nevertheless: a client may be able to cause an error with an unusual name, and must
   *   not be able to lock the others out
   * @returns undefined if the request has failed
   */
  async run<T extends object>(
    signal: AbortSignal,
    task: (ending: AbortSignal) => Promise<T>,
    isCausedByClient: (error: unknown) => boolean = () => false
  ): Promise<T | undefined> {
    if (!this.#breaker.begin()) return undefined;
    const { timeoutMs } = this.#settings;
    try {
      const answer = await withDeadline(this.#context.clock, timeoutMs, this.#what, signal, (ending) =>
        this.#slots.run(ending, () => task(ending))
      );
      this.#breaker.succeeded();
      return answer;
    } catch (error) {
      const wasOpen = this.#breaker.isOpen;
      const isOwn = signal.aborted || (error as BrokerError).code === 'SOURCE_BUSY'; // not the fault of the server
      if (isOwn) this.#breaker.abandoned();
      else if (isCausedByClient(error)) this.#breaker.succeeded();
      else this.#breaker.failed();
      if (!signal.aborted) this.report(error, this.#breaker.isOpen && !wasOpen);
      return undefined;
    }
  }

  /**
   * Report a failure, but not too often.
   * @param hasOpened the server will not be asked for some time, because of this error
   */
  report(error: unknown, hasOpened = false): void {
    const nowMs = this.#context.clock.monotonic();
    if (this.#isClosed || (nowMs - this.#reportedMs < REPORT_PAUSE_MS && !hasOpened)) return;
    this.#reportedMs = nowMs;
    const { name, breaker } = this.#settings;
    const pause = hasOpened ? ` (it will not be asked for ${breaker.pauseMs} ms)` : '';
    this.#context.failed(error, `asking the server of the source ${name}${pause}`);
  }

  /** Failures are no longer reported. */
  close(): void {
    this.#isClosed = true;
  }
}
