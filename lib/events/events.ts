import { EventEmitter } from 'eventemitter3';
import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { ClientInfo } from '../records/client.ts';
import { matches } from '../topics/topic.ts';

/** The options with which a subscription was granted. */
export interface SubscriptionOptions {
  readonly qos: QoS;
  /** No Local: the client does not receive messages that it published itself. */
  readonly noLocal: boolean;
  /** Retain As Published: messages keep the retain flag with which they were published. */
  readonly retainAsPublished: boolean;
  /** Retain Handling: retained messages are sent at every subscribe (0), for new subscriptions only (1), or never (2). */
  readonly retainHandling: 0 | 1 | 2;
  /** Subscription Identifier; undefined if the subscription has none. */
  readonly id?: number;
}

/** Names of the options that an application may set for a subscription. */
export const SUBSCRIPTION_NAMES: readonly string[] = ['qos', 'noLocal', 'retainAsPublished', 'retainHandling'];

/**
 * Why a message was dropped, for one receiver or for all.
 *
 * - `not_retained`: the message was delivered but not retained, because it exceeds `maxRetainedMessages`, `maxRetainedBytes` or
 *   `maxRetainedPayloadSize`.
 * - `server_shutting_down`: the broker stopped while the message was delayed, or while a hook decided about it.
 * - `queue_full`: the backlog of the session reached its limit.
 * - `total_queue_full`: the backlogs of all sessions together reached their limit.
 * - `quota`: no receiver got the message, because there was no room to queue it.
 * - `topic_invalid`: the `$delayed/...` topic is not valid.
 */
export type DropReason =
  | 'no_subscribers'
  | 'expired'
  | 'queue_full'
  | 'total_queue_full'
  | 'qos0_msg'
  | 'too_large'
  | 'no_local'
  | 'hook'
  | 'topic_invalid'
  | 'not_authorized'
  | 'slow_consumer'
  | 'session_terminated'
  | 'not_retained'
  | 'quota'
  | 'store_failed'
  | 'server_shutting_down';

/**
 * Why a connection or a session ended.
 *
 * Most values are the documented reasons of the management interface; embermq adds its own where there is no documented one. `quota`: more
 * than `maxHeldBytes` of packets from the client waited for a hook.
 */
export type DisconnectReason =
  | 'normal'
  | 'disconnect_with_will'
  | 'closed'
  | 'keepalive_timeout'
  | 'connect_timeout'
  | 'idle_timeout'
  | 'protocol_error'
  | 'kicked'
  | 'discarded'
  | 'takeovered'
  | 'expired'
  | 'not_authorized'
  | 'packet_too_large'
  | 'quota'
  | 'slow_consumer'
  | 'store_failed'
  | 'server_shutting_down'
  | 'reauthentication_failed'
  | 'internal_error'
  | 'stream_error';

/** The events of a broker, and the value that listeners of each event receive (`broker.on`). */
export interface BrokerEvents {
  /** A well-formed CONNECT has arrived; no hook has been called yet. */
  'client.connect': { readonly client: ClientInfo };
  /** A CONNACK is about to be sent. */
  'client.connack': { readonly client: ClientInfo; readonly reasonCode: number };
  /** A successful CONNACK has been sent, followed by the messages in flight. `sessionPresent`: an existing session was resumed. */
  'client.connected': { readonly client: ClientInfo; readonly sessionPresent: boolean };
  /** The connection of an accepted client has ended. `reasonCode`: that of the DISCONNECT sent or received, 0x80 if there was none. */
  'client.disconnected': {
    readonly client: ClientInfo;
    readonly reason: DisconnectReason;
    readonly reasonCode: number;
  };
  /** A SUBSCRIBE has arrived; one event for each topic filter, before the filter is authorized. */
  'client.subscribe': { readonly client: ClientInfo; readonly filter: string; readonly options: SubscriptionOptions };
  /** An UNSUBSCRIBE has arrived; one event for each topic filter. */
  'client.unsubscribe': { readonly client: ClientInfo; readonly filter: string };
  /** A session has begun; the CONNACK to its client follows. */
  'session.created': { readonly client: ClientInfo };
  /** A new connection has resumed an existing session. */
  'session.resumed': { readonly client: ClientInfo };
  /** Another connection with the same client id has taken over the session. */
  'session.takenover': { readonly client: ClientInfo };
  /** A Clean Start has ended the previous session of the client id. */
  'session.discarded': { readonly client: ClientInfo };
  /** A subscription was made or changed: by SUBSCRIBE, by the application, or automatically at connect. */
  'session.subscribed': { readonly client: ClientInfo; readonly filter: string; readonly options: SubscriptionOptions };
  /** A subscription was removed. Not emitted for subscriptions that end with their session. */
  'session.unsubscribed': { readonly client: ClientInfo; readonly filter: string };
  /** A session has ended, together with its connection or after it. */
  'session.terminated': { readonly client: ClientInfo; readonly reason: DisconnectReason };
  /** A message was accepted and is about to be routed. `client` is undefined for messages from the application and from the broker. */
  'message.publish': { readonly message: Message; readonly client: ClientInfo | undefined };
  /** A message was handed to the connection of a receiver. `qos` and `retain` are those of the packet sent. */
  'message.delivered': {
    readonly message: Message;
    readonly client: ClientInfo;
    readonly qos: QoS;
    readonly retain: boolean;
  };
  /** A receiver has acknowledged a message (PUBACK, or PUBREC for QoS 2). */
  'message.acked': { readonly message: Message; readonly client: ClientInfo; readonly qos: QoS };
  /** A message was dropped. `client` is the receiver that does not get it; undefined if no receiver gets it. */
  'message.dropped': {
    readonly message: Message;
    readonly reason: DropReason;
    readonly client: ClientInfo | undefined;
  };
  /** Writing to the store has failed. Until `store.recovered`, the broker refuses everything that would have to be persisted. */
  'store.failed': { readonly error: Error };
  /** The store can be written again after `store.failed`. */
  'store.recovered': Record<string, never>;
  /**
   * An error that cannot be returned to a caller, for example from a listener, a hook, a session or a stream. `during` names what failed.
   */
  error: { readonly error: Error; readonly during: string; readonly client?: ClientInfo };
}

/** Name of an event, as `broker.on` takes it. */
export type EventName = keyof BrokerEvents;
type Listener<E extends EventName> = (event: BrokerEvents[E]) => unknown;

/** Names of all events, in the order in which they are documented. */
export const EVENT_NAMES: readonly EventName[] = [
  'client.connect',
  'client.connack',
  'client.connected',
  'client.disconnected',
  'client.subscribe',
  'client.unsubscribe',
  'session.created',
  'session.resumed',
  'session.takenover',
  'session.discarded',
  'session.subscribed',
  'session.unsubscribed',
  'session.terminated',
  'message.publish',
  'message.delivered',
  'message.acked',
  'message.dropped',
  'store.failed',
  'store.recovered',
  'error'
];

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
 * An error that a listener throws, or rejects with, never reaches the broker: it is emitted as an `error` event. If there is no `error`
 * listener, or if that listener fails, the error becomes a process warning, at most one for each event name.
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

  /** Whether a listener hears an event for all topics. */
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
        signal?.removeEventListener('abort', abort);
      };
      signal?.addEventListener('abort', abort);
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

  #add<E extends EventName>(event: E, listener: Listener<E>, isOnce: boolean, filter?: string): void {
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
    const endObservation = filter === undefined ? undefined : this.#observe(filter);
    const registration: Registration = { isOnce, guarded, endObservation };
    known.set(listener, registration);
    this.#emitter.on(event, guarded);
    this.#heardChanged(event);
  }

  #failed(event: EventName, error: unknown): void {
    // A failing `error` listener does not receive its own failure: that would be an endless loop.
    if (event !== 'error' && this.heard.error) {
      this.emit('error', { error: asError(error), during: `a listener of ${event}` });
    } else if (!this.#warned.has(event)) {
      this.#warned.add(event);
      process.emitWarning(asError(error));
    }
  }
}

/** Turn any thrown value into an Error; values that are not errors become its `cause`. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  let text: string;
  try {
    text = String(thrown);
  } catch {
    text = `a thrown value of type ${typeof thrown} that cannot be converted to a string`;
  }
  return new Error(text, { cause: thrown });
}
