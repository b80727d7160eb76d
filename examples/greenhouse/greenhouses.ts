import type { Broker, Message } from 'embermq';
import * as topics from './topics.ts';

/** The last value of a kind, with the time at which the broker received it. */
export interface Latest<T> {
  readonly value: T;
  readonly at: string;
}

/** The state of a greenhouse. The keys of `temperatures` and `vents` are the ids of devices. */
export interface Greenhouse {
  readonly name: string;
  readonly temperatures: Record<string, Latest<number>>;
  readonly vents: Record<string, Latest<boolean>>;
  mean?: Latest<{ readonly celsius: number; readonly count: number }>;
  alarm?: Latest<{ readonly device: string; readonly celsius: number }>;
}

/**
 * The state of the app: the latest values of each greenhouse.
 *
 * It follows the messages of the broker. Temperatures, vents and means are retained messages, so a new subscription
 * receives them at once, even after a restart. The app needs no database.
 */
export class Greenhouses {
  readonly #byName = new Map<string, Greenhouse>();

  /** Follow the messages of a started broker. */
  follow(broker: Broker): void {
    this.#on<{ celsius: number }>(broker, topics.temperature(), (greenhouse, { celsius }, at, device) => {
      greenhouse.temperatures[device] = { value: celsius, at };
    });
    this.#on<{ isOpen: boolean }>(broker, topics.vent(), (greenhouse, { isOpen }, at, device) => {
      greenhouse.vents[device] = { value: isOpen, at };
    });
    this.#on<{ celsius: number; count: number }>(broker, topics.mean(), (greenhouse, { celsius, count }, at) => {
      greenhouse.mean = { value: { celsius, count }, at };
    });
    this.#on<{ device: string; celsius: number }>(broker, topics.alarm(), (greenhouse, { device, celsius }, at) => {
      greenhouse.alarm = { value: { device, celsius }, at };
    });
  }

  get(name: string): Greenhouse | undefined {
    return this.#byName.get(name);
  }

  list(): Greenhouse[] {
    return [...this.#byName.values()];
  }

  #on<T>(
    broker: Broker,
    filter: string,
    apply: (greenhouse: Greenhouse, value: T, at: string, device: string) => void
  ): void {
    broker.subscribe(filter, ({ topic, payload, timestamp }: Message) => {
      const value = parsed(payload) as T | undefined;
      if (value === undefined) return; // devices may send anything
      const [, name, device] = topic.split('/');
      apply(this.#greenhouse(name), value, new Date(timestamp).toISOString(), device);
    });
  }

  #greenhouse(name: string): Greenhouse {
    const found = this.#byName.get(name) ?? { name, temperatures: {}, vents: {} };
    this.#byName.set(name, found);
    return found;
  }
}

/** Return the object in a payload; undefined if it is not an object. */
function parsed(payload: Buffer): object | undefined {
  try {
    const value: unknown = JSON.parse(payload.toString());
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
