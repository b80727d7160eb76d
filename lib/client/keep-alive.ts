import type { Clock } from '../base/clock.ts';
import { BrokerError } from '../base/errors.ts';
import type { ClientConnection } from './connection.ts';
import type { Pending } from './pending.ts';

/** The PINGREQs of a client, and its keep alive timer. */
export class KeepAlive {
  readonly #connection: ClientConnection;
  readonly #clock: Clock;
  /** PINGREQs without a PINGRESP, the oldest first; undefined for those that keep alive sent. */
  #pings: (Pending<void> | undefined)[] = [];
  #intervalMs = 0;
  #timer: unknown;

  constructor(connection: ClientConnection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** True if the application waits for a PINGRESP. */
  get isAwaited(): boolean {
    return this.#pings.some((asking) => asking !== undefined);
  }

  /** @param intervalMs 0: disabled */
  start(intervalMs: number): void {
    this.#intervalMs = intervalMs;
    if (intervalMs > 0) this.#arm(intervalMs);
  }

  /** Send a PINGREQ, if the application has asked for it. */
  ping(asking: Pending<void>): void {
    this.#pings.push(asking);
    this.#connection.send({ cmd: 'pingreq' });
    this.#connection.updateFlow();
  }

  /** Process a PINGRESP. */
  answered(): void {
    this.#pings.shift()?.resolve();
  }

  /** Stop the timer and reject the pending PINGREQs. */
  close(): void {
    this.#clock.clearTimeout(this.#timer);
    for (const asking of this.#pings.splice(0)) asking?.reject(this.#connection.closedError());
  }

  #arm(delayMs: number): void {
    this.#timer = this.#clock.setTimeout(() => this.#ring(), delayMs);
  }

  #ring(): void {
    const nowMs = this.#clock.monotonic();
    const idleMs = nowMs - this.#connection.lastSentMs;
    if (idleMs < this.#intervalMs) {
      this.#arm(this.#intervalMs - idleMs);
      return;
    }
    // A missing PINGRESP means nothing if the client has not read from the stream.
    const wasRead = nowMs - this.#connection.readSinceMs >= this.#intervalMs;
    if (this.#pings.length > 0 && wasRead) {
      this.#connection.destroy(new BrokerError('KEEPALIVE_TIMEOUT', `no PINGRESP within ${this.#intervalMs} ms`));
      return;
    }
    this.#pings.push(undefined);
    this.#connection.send({ cmd: 'pingreq' }); // [MQTT-3.1.2-20]
    this.#arm(this.#intervalMs);
  }
}
