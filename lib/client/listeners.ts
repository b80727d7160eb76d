import { setImmediate } from 'node:timers';
import { asError } from '../base/errors.ts';
import type { ClientEvents } from './options.ts';

/** A listener for an event of a client. */
export type ClientListener<E extends keyof ClientEvents> = (event: ClientEvents[E]) => void;

const NONE: readonly never[] = [];

/** The listeners of a client. Those of `message` are in its inbox. */
export class Listeners {
  readonly #listeners: { [E in keyof ClientEvents]?: ClientListener<E>[] } = {};

  add<E extends keyof ClientEvents>(event: E, listener: ClientListener<E>): void {
    (this.#listeners[event] as ClientListener<E>[]) = [...this.#of(event), listener];
  }

  remove<E extends keyof ClientEvents>(event: E, listener: ClientListener<E>): void {
    const known = this.#of(event);
    if (known.includes(listener))
      (this.#listeners[event] as ClientListener<E>[]) = known.toSpliced(known.indexOf(listener), 1);
  }

  emit<E extends keyof ClientEvents>(event: E, value: ClientEvents[E]): void {
    for (const listener of this.#of(event)) this.run(listener, value);
  }

  /** Call code of the application. If it throws or rejects, the packet is still processed. */
  run<T>(handler: (value: T) => unknown, value: T): void {
    try {
      const result = handler(value);
      if (result instanceof Promise) result.catch((error) => this.#reportThrown(error, value));
    } catch (error) {
      this.#reportThrown(error, value);
    }
  }

  #of<E extends keyof ClientEvents>(event: E): readonly ClientListener<E>[] {
    return (this.#listeners[event] as readonly ClientListener<E>[] | undefined) ?? NONE;
  }

  #reportThrown(error: unknown, value: unknown): void {
    const isHeard = this.#of('error').length > 0 && !(value instanceof Error); // not for an error listener that throws
    if (isHeard) this.emit('error', asError(error));
    else {
      setImmediate(() => {
        throw error;
      });
    }
  }
}
