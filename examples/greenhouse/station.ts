import type { Client, ClientOptions, Clock } from 'embermq';
import * as topics from './topics.ts';

/** The parts of a station. A test passes other clocks, brokers and hardware. */
export interface StationParts {
  readonly id: string;
  readonly greenhouse: string;
  readonly clock: Clock;
  /** Log in and connect. */
  readonly connect: (options: ClientOptions) => Promise<Client>;
  readonly readCelsius: () => number;
  readonly setVent: (isOpen: boolean) => void;
}

const MEASURE_EVERY_MS = 10_000;
const VENT_OPEN_MS = 5 * 60_000;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;

/**
 * A device in a greenhouse: it measures every ten seconds, and opens its vent on a command or an alarm. The vent closes
 * five minutes after the last of them, even without a connection.
 */
export class Station {
  readonly #parts: StationParts;
  #client: Client | undefined;
  #measuring: unknown;
  #retrying: unknown;
  #closing: unknown;
  #retryMs = FIRST_RETRY_MS;
  #isVentOpen = false;
  #isStopped = false;

  constructor(parts: StationParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#measureLater();
    void this.#connect();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of [this.#measuring, this.#retrying, this.#closing]) this.#parts.clock.clearTimeout(timer);
    await this.#client?.disconnect();
  }

  async #connect(): Promise<void> {
    const { id, greenhouse, connect } = this.#parts;
    try {
      const client = await connect({ clientId: id, keepalive: 30 });
      client.on('close', () => this.#lost());
      this.#client = client;
      this.#retryMs = FIRST_RETRY_MS;
      await client.subscribe(topics.command(greenhouse), { qos: 1 }, ({ payload }) =>
        this.#setVent(JSON.parse(payload.toString()).isOpen === true)
      );
      await client.subscribe(topics.alarm(greenhouse), { qos: 1 }, () => this.#setVent(true));
      this.#send(topics.vent(greenhouse, id), { isOpen: this.#isVentOpen });
    } catch {
      if (this.#client === undefined) this.#lost();
    }
  }

  #lost(): void {
    this.#client = undefined;
    if (this.#isStopped) return;
    this.#retrying = this.#parts.clock.setTimeout(() => void this.#connect(), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
  }

  #measureLater(): void {
    const { id, greenhouse, clock, readCelsius } = this.#parts;
    this.#measuring = clock.setTimeout(() => {
      this.#measureLater();
      this.#send(topics.temperature(greenhouse, id), { celsius: readCelsius() });
    }, MEASURE_EVERY_MS);
  }

  #setVent(isOpen: boolean): void {
    const { id, greenhouse, clock, setVent } = this.#parts;
    clock.clearTimeout(this.#closing);
    if (isOpen) this.#closing = clock.setTimeout(() => this.#setVent(false), VENT_OPEN_MS);
    if (isOpen === this.#isVentOpen) return;
    this.#isVentOpen = isOpen;
    setVent(isOpen);
    this.#send(topics.vent(greenhouse, id), { isOpen });
  }

  /** Publish a value. Without a connection it is dropped, because only the latest value is useful. */
  #send(topic: string, value: object): void {
    this.#client?.publish(topic, JSON.stringify(value), { qos: 1, retain: true }).catch(() => undefined);
  }
}
