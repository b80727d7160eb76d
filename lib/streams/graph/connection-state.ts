import type { Clock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { ConnectionCounters } from './metrics.ts';

/** The connection state that a source or a sink has reported, for the status of its rule. */
export class ConnectionState implements ConnectionCounters {
  status: 1 | 0 | -1 = 0;
  connectedAt = 0;
  disconnectedAt = 0;
  disconnectedMessage = '';
  triedAt = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.triedAt = clock.now();
  }

  /** Note that the connection is established. */
  connected(): void {
    this.status = 1;
    this.connectedAt = this.triedAt = this.#clock.now();
  }

  /** Note that the connection is lost, or that an attempt to connect has failed. */
  disconnected(reason: unknown): void {
    this.status = -1;
    this.disconnectedAt = this.triedAt = this.#clock.now();
    this.disconnectedMessage = errorText(reason);
  }
}
