import { EventEmitter } from 'eventemitter3';
import { onAbort } from '../base/abort-listeners.ts';
import { asError } from '../base/errors.ts';
import { matches } from '../topics/topic.ts';
import { EVENT_NAMES, type EventName } from './catalogue.ts';
import type { BrokerEvents } from './event-types.ts';

type Listener<E extends EventName> = (event: BrokerEvents[E]) => unknown;

/** A registered listener. */
interface Registration {
  isOnce: boolean;
  readonly guarded: (value: unknown) => void;
  /** Ends the observation of the topic filter; undefined: the listener is called for all topics. */
  readonly endObservation: (() => void) | undefined;
}

/**
 * Typed events, built on eventemitter3.
 *
 * An error of a listener, thrown or rejected, never reaches the broker: it is emitted as an `error` event. If there is
 * no `error` listener, or if that listener fails, the error becomes a process warning, at most one for each event name.
 */
export class Events {
  /** True for each event that has a listener. The packet path reads these fields before it creates the value of an event. */
  readonly heard: { [E in EventName]: boolean } = Object.fromEntries(EVENT_NAMES.map((name) => [name, false])) as {
    [E in EventName]: boolean;
  };
  readonly #emitter = new EventEmitter();
  readonly #registrations = new Map<EventName, Map<unknown, Registration>>();
  readonly #warned = new Set<EventName>();
  readonly #onHeard: () => void;
  readonly #observe: (filter: string) => () => void;
  readonly #heardForAllTopics = new Set<EventName>();

  /**
   * @param onHeard called after `heard` may have changed
   * @param observe called with the topic filter of a listener; the function that it returns is called when the listener is removed
   */
  constructor(onHeard: () => void = () => undefined, observe: (filter: string) => () => void = () => () => undefined) {
    this.#onHeard = onHeard;
    this.#observe = observe;
  }

  /**
   * Add a listener. Adding the same listener to the same event again has no effect.
   * @param filter for events with a message: call the listener only for the topics that match this topic filter
   */
  on<E extends EventName>(event: E, listener: Listener<E>, filter?: string): void {
    this.#add(event, listener, false, filter);
  }

  /**
   * Add a listener for an event with a message, without closing the fast path. It is called for each message that is
   * not on the fast path; the caller observes the topics whose messages it needs.
   */
  onObserved<E extends EventName>(event: E, listener: Listener<E>): void {
    this.#add(event, listener, false, undefined, () => undefined);
  }

  /** Check whether a listener receives an event for all topics. */
  hearsAll(event: EventName): boolean {
    return this.#heardForAllTopics.has(event);
  }

  /** Add a listener that is removed when it is called. */
  once<E extends EventName>(event: E, listener: Listener<E>): void {
    this.#add(event, listener, true);
  }

  /** Remove a listener. */
  off<E extends EventName>(event: E, listener: Listener<E>): void {
    const registration = this.#registrations.get(event)?.get(listener);
    if (registration === undefined) return;
    this.#registrations.get(event)?.delete(listener);
    this.#emitter.off(event, registration.guarded);
    registration.endObservation?.();
    this.#heardChanged(event);
  }

  /**
   * Wait for the next event that `where` accepts.
   * @returns the value of the event; rejects with the reason of the signal when it aborts, and with any error that `where` throws
   */
  next<E extends EventName>(
    event: E,
    options: { signal?: AbortSignal; where?: (event: BrokerEvents[E]) => boolean } = {}
  ): Promise<BrokerEvents[E]> {
    const { signal, where } = options;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const listener = (value: BrokerEvents[E]) => {
        try {
          if (where !== undefined && !where(value)) return;
          resolve(value);
        } catch (error) {
          reject(error);
        }
        release();
      };
      const abort = () => {
        release();
        reject(signal?.reason);
      };
      const release = () => {
        this.off(event, listener);
        releaseSignal();
      };
      const releaseSignal = onAbort(signal, abort);
      this.on(event, listener);
    });
  }

  /** Call the listeners of an event. */
  emit<E extends EventName>(event: E, value: BrokerEvents[E]): void {
    if (this.heard[event]) this.#emitter.emit(event, value);
  }

  #heardChanged(event: EventName): void {
    this.heard[event] = this.#emitter.listenerCount(event) > 0;
    const registrations = [...(this.#registrations.get(event)?.values() ?? [])];
    if (registrations.some(({ endObservation }) => endObservation === undefined)) this.#heardForAllTopics.add(event);
    else this.#heardForAllTopics.delete(event);
    this.#onHeard();
  }

  #add<E extends EventName>(
    event: E,
    listener: Listener<E>,
    isOnce: boolean,
    filter?: string,
    ownEnd?: () => void
  ): void {
    const known = this.#registrations.get(event) ?? new Map<unknown, Registration>();
    this.#registrations.set(event, known);
    const earlier = known.get(listener);
    if (earlier !== undefined) {
      earlier.isOnce &&= isOnce;
      return;
    }
    const guarded = (value: unknown) => {
      if (filter !== undefined && !matches(filter, (value as { message: { topic: string } }).message.topic)) return;
      if (registration.isOnce) this.off(event, listener);
      try {
        const result = listener(value as BrokerEvents[E]);
        if (typeof (result as PromiseLike<unknown> | undefined)?.then === 'function') {
          (result as PromiseLike<unknown>).then(undefined, (error: unknown) => this.#failed(event, error));
        }
      } catch (error) {
        this.#failed(event, error);
      }
    };
    const endObservation = ownEnd ?? (filter === undefined ? undefined : this.#observe(filter));
    const registration: Registration = { isOnce, guarded, endObservation };
    known.set(listener, registration);
    this.#emitter.on(event, guarded);
    this.#heardChanged(event);
  }

  #failed(event: EventName, error: unknown): void {
    // A failing `error` listener does not receive its own failure: that would be an endless loop.
    if (event !== 'error' && this.heard.error) {
      this.emit('error', { error: asError(error), during: `a listener of ${event}`, client: undefined });
    } else if (!this.#warned.has(event)) {
      this.#warned.add(event);
      process.emitWarning(asError(error));
    }
  }
}
