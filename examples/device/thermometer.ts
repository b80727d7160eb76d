// A device as it would run in production. The clock and the connect function are parameters, so that a test can replace them.
import type { Client, ClientOptions, Clock } from 'embermq';

export interface Parts {
  readonly clock: Clock;
  readonly connect: (options: ClientOptions) => Promise<Client>;
  readonly read: () => number;
}

const EVERY_MS = 10_000;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;

/** Measures every ten seconds, stores what it cannot send, and reconnects after 1, 2, 4 and up to 60 seconds. */
export class Thermometer {
  readonly #parts: Parts;
  #client: Client | undefined;
  #measuring: unknown;
  #retrying: unknown;
  #retryMs = FIRST_RETRY_MS;
  #unsent: string[] = [];
  #isStopped = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  start(): void {
    this.#measureLater();
    void this.#open();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#parts.clock.clearTimeout(this.#measuring);
    this.#parts.clock.clearTimeout(this.#retrying);
    await this.#client?.disconnect();
  }

  #measureLater(): void {
    this.#measuring = this.#parts.clock.setTimeout(() => {
      this.#measureLater();
      this.#unsent.push(this.#parts.read().toFixed(1));
      if (this.#unsent.length === 1) void this.#send();
    }, EVERY_MS);
  }

  async #open(): Promise<void> {
    const will = { topic: 'thermometer/state', payload: 'offline', retain: true };
    try {
      const client = await this.#parts.connect({ clientId: 'thermometer', keepalive: 30, will });
      client.on('close', () => this.#lost());
      this.#client = client;
      this.#retryMs = FIRST_RETRY_MS;
      await client.publish('thermometer/state', 'online', { retain: true });
      await this.#send();
    } catch {
      if (this.#client === undefined) this.#lost();
    }
  }

  /** Send the measurements in order. Each is removed when it is acknowledged. */
  async #send(): Promise<void> {
    try {
      while (this.#client !== undefined && this.#unsent.length > 0) {
        await this.#client.publish('thermometer/celsius', this.#unsent[0], { qos: 1 });
        this.#unsent.shift();
      }
    } catch {
      // The connection was lost. The remaining measurements are sent after the reconnect.
    }
  }

  #lost(): void {
    this.#client = undefined;
    if (this.#isStopped) return;
    this.#retrying = this.#parts.clock.setTimeout(() => void this.#open(), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
  }
}
