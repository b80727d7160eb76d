import type { Clock } from '../../../lib/index.ts';

/**
 * Stops sending requests to a server that has failed several times in a row. After a pause one request is let through;
 * if it succeeds, all are again.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #maxFailures: number;
  readonly #pauseMs: number;
  #failures = 0;
  /** End of the pause; undefined: the server works. */
  #openUntilMs: number | undefined = undefined;
  #isTrying = false;

  constructor(clock: Clock, maxFailures: number, pauseMs: number) {
    this.#clock = clock;
    this.#maxFailures = maxFailures;
    this.#pauseMs = pauseMs;
  }

  /** True if the server has failed too often and has not succeeded since. */
  get isOpen(): boolean {
    return this.#openUntilMs !== undefined;
  }

  /** Check whether a request may be sent now. If so, one of the other methods must be called afterwards. */
  begin(): boolean {
    if (this.#openUntilMs === undefined) return true;
    if (this.#isTrying || this.#clock.monotonic() < this.#openUntilMs) return false;
    this.#isTrying = true;
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#openUntilMs = undefined;
    this.#isTrying = false;
  }

  failed(): void {
    this.#isTrying = false;
    this.#failures++;
    if (this.#failures >= this.#maxFailures) this.#openUntilMs = this.#clock.monotonic() + this.#pauseMs;
  }

  /** The request ended without information about the server. */
  abandoned(): void {
    this.#isTrying = false;
  }
}
