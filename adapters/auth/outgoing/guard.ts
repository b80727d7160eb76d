import { setMaxListeners } from 'node:events';
import type { SourceContext } from '../../../lib/adapter.ts';
import { BrokerError } from '../../../lib/index.ts';
import { withDeadline } from '../../outgoing/index.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import type { Limits } from './limits.ts';
import type { Slots } from './slots.ts';
import { sourceTimeout } from './source-timeout.ts';

/** Minimum time between two reports of failures. */
const REPORT_PAUSE_MS = 1_000;

/** Settings of a `Guard`. */
interface GuardSettings extends Pick<Limits, 'timeoutMs' | 'breaker'> {
  /** Name of the source. */
  readonly name: string;
}

/** Sends requests to a server: limits their time and number, pauses while the server fails, and reports failures. */
export class Guard {
  readonly #what: string;
  readonly #settings: GuardSettings;
  readonly #context: SourceContext;
  readonly #slots: Slots;
  readonly #breaker: CircuitBreaker;
  #reportedMs = -Infinity;
  readonly #closing = new AbortController();
  /** Number of counted answers and failures of the server. */
  #outcomes = 0;

  /** @param what the name of the server in errors */
  constructor(what: string, settings: GuardSettings, context: SourceContext, slots: Slots) {
    this.#what = what;
    this.#settings = settings;
    this.#context = context;
    this.#slots = slots;
    this.#breaker = new CircuitBreaker(context.clock, settings.breaker.failures, settings.breaker.pauseMs);
    setMaxListeners(0, this.#closing.signal); // each request has a listener
  }

  /**
   * Send a request. Failures are reported, not thrown.
   * @param task gets a signal that is aborted when the time is over, the client has disconnected, or the source is
   * closed. It is then no longer awaited, but counts as a request in progress until it settles. Its rejection means
   * that the server does not work
   * @param isCausedByClient tells whether the server works nevertheless: a client with an unusual name may cause an
   * error, and must not lock out others
   * @returns undefined if the request has failed
   */
  async run<T extends object>(
    signal: AbortSignal,
    task: (ending: AbortSignal) => Promise<T>,
    isCausedByClient: (error: unknown) => boolean = () => false
  ): Promise<T | undefined> {
    if (this.#closing.signal.aborted || !this.#breaker.begin()) return undefined;
    const before = this.#outcomes;
    let isSent = false;
    const answer = this.#send(signal, (ending) => {
      isSent = true;
      return task(ending);
    });
    const hasWaited = !isSent;
    try {
      const received = await answer;
      this.#succeed();
      return received;
    } catch (error) {
      const wasOpen = this.#breaker.isOpen;
      const { code } = error as BrokerError;
      // a timeout after waiting counts as a failure of the server only if no other request has shown its state
      // meanwhile
      const isWaitOver = code === 'SOURCE_TIMEOUT' && hasWaited && this.#outcomes !== before;
      const isOwn = signal.aborted || this.#closing.signal.aborted || code === 'SOURCE_BUSY' || isWaitOver;
      if (isOwn) this.#breaker.abandoned();
      else if (isCausedByClient(error)) this.#succeed();
      else this.#fail();
      if (!signal.aborted) this.report(error, this.#breaker.isOpen && !wasOpen);
      return undefined;
    }
  }

  /**
   * Report a failure, with limited frequency.
   * @param hasOpened no requests are sent for some time because of this error
   */
  report(error: unknown, hasOpened = false): void {
    const nowMs = this.#context.clock.monotonic();
    if (this.#closing.signal.aborted || (nowMs - this.#reportedMs < REPORT_PAUSE_MS && !hasOpened)) return;
    this.#reportedMs = nowMs;
    const { name, breaker } = this.#settings;
    const pause = hasOpened ? ` (it will not be asked for ${breaker.pauseMs} ms)` : '';
    this.#context.failed(error, `asking the server of the source ${name}${pause}`);
  }

  /** Abort queued requests and those in progress. No more are sent, and no more failures are reported. */
  close(): void {
    this.#closing.abort(new BrokerError('SOURCE_CLOSED', `the source ${this.#settings.name} has been closed`));
  }

  /**
   * Run a task when there is room.
   * @throws BrokerError SOURCE_BUSY, SOURCE_TIMEOUT, SOURCE_CLOSED; errors of the task
   */
  #send<T>(signal: AbortSignal, task: (ending: AbortSignal) => Promise<T>): Promise<T> {
    const { clock } = this.#context;
    const { timeoutMs } = this.#settings;
    const untilMs = clock.monotonic() + timeoutMs;
    const begin = (ending: AbortSignal): Promise<T> => {
      if (clock.monotonic() < untilMs) return task(ending);
      throw new BrokerError('SOURCE_BUSY', `a request to ${this.#what} has waited for ${timeoutMs} ms`);
    };
    const late = () => sourceTimeout(this.#what, timeoutMs);
    return withDeadline({ clock, ms: timeoutMs, late, outers: [signal, this.#closing.signal] }, (ending) =>
      this.#slots.run(ending, () => begin(ending))
    );
  }

  #succeed(): void {
    this.#outcomes++;
    this.#breaker.succeeded();
  }

  #fail(): void {
    this.#outcomes++;
    this.#breaker.failed();
  }
}
