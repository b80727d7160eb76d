import { EventEmitter } from 'eventemitter3';
import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { ClientInfo } from '../records/client.ts';

/** Options of a subscription as granted. */
export interface SubscriptionOptions {
  readonly qos: QoS;
  /** No Local */
  readonly noLocal: boolean;
  /** Retain As Published */
  readonly retainAsPublished: boolean;
  /** Retain Handling */
  readonly retainHandling: 0 | 1 | 2;
  /** Subscription Identifier; undefined: none */
  readonly id?: number;
}

/** Options that may be given with a subscription. */
export const SUBSCRIPTION_NAMES: readonly string[] = ['qos', 'noLocal', 'retainAsPublished', 'retainHandling'];

/**
 * Why a message went nowhere, or not to one client. Of `not_retained` only the retained copy is missing: it was past `maxRetainedMessages`,
 * `maxRetainedBytes` or `maxRetainedPayloadSize`; the message goes to its subscribers all the same. `server_shutting_down`: the
 * broker stopped while it was delayed, or while a hook decided on it. `queue_full`: the bounds of one session; `total_queue_full`: those of
 * all sessions together. `quota`: there was no room for it to wait, and nobody got it. `topic_invalid`: its `$delayed/...` topic is none that can be delayed.
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
 * Why a connection or session ended: the documented texts, and ours where they have none. `quota`: more than `maxHeldBytes` waited for a hook.
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

/** What `broker.on` can hear: every event and the value its listeners get. */
export interface BrokerEvents {
  /** A CONNECT has been read and is well-formed; nothing has been decided. */
  'client.connect': { readonly client: ClientInfo };
  /** A CONNACK is about to be sent. */
  'client.connack': { readonly client: ClientInfo; readonly reasonCode: number };
  /** CONNACK success has gone out, what was in flight behind it. `sessionPresent`: a stored session goes on. */
  'client.connected': { readonly client: ClientInfo; readonly sessionPresent: boolean };
  /** The connection of a client that had its CONNACK has ended. `reasonCode` is the DISCONNECT's, sent or received, or 0x80. */
  'client.disconnected': {
    readonly client: ClientInfo;
    readonly reason: DisconnectReason;
    readonly reasonCode: number;
  };
  /** A SUBSCRIBE came; one event for each filter, before it is authorized. */
  'client.subscribe': { readonly client: ClientInfo; readonly filter: string; readonly options: SubscriptionOptions };
  /** An UNSUBSCRIBE came; one event for each filter. */
  'client.unsubscribe': { readonly client: ClientInfo; readonly filter: string };
  /** A session begins; its client gets the CONNACK next. */
  'session.created': { readonly client: ClientInfo };
  /** A stored session goes on with a new connection. */
  'session.resumed': { readonly client: ClientInfo };
  /** Another connection with the same client id took the session over. */
  'session.takenover': { readonly client: ClientInfo };
  /** A clean start ended an older session. */
  'session.discarded': { readonly client: ClientInfo };
  /** A subscription is in force, new or with other options: by SUBSCRIBE, by the app, or at connect. */
  'session.subscribed': { readonly client: ClientInfo; readonly filter: string; readonly options: SubscriptionOptions };
  /** A subscription was taken away; not told of those that end with their session. */
  'session.unsubscribed': { readonly client: ClientInfo; readonly filter: string };
  /** A session has ended, with its connection or later. */
  'session.terminated': { readonly client: ClientInfo; readonly reason: DisconnectReason };
  /** A message has been accepted, before it is routed. `client` is absent for messages of the app and of the broker. */
  'message.publish': { readonly message: Message; readonly client: ClientInfo | undefined };
  /** A message is handed to a client's connection. */
  'message.delivered': {
    readonly message: Message;
    readonly client: ClientInfo;
    readonly qos: QoS;
    readonly retain: boolean;
  };
  /** The client acknowledged it (PUBACK, or PUBREC for QoS 2). */
  'message.acked': { readonly message: Message; readonly client: ClientInfo; readonly qos: QoS };
  /** `client` is the receiver that does not get it; absent when the message reached nobody. */
  'message.dropped': {
    readonly message: Message;
    readonly reason: DropReason;
    readonly client: ClientInfo | undefined;
  };
  /** The store cannot be written. Nothing that would have to be kept is accepted until `store.recovered`. */
  'store.failed': { readonly error: Error };
  'store.recovered': Record<string, never>;
  /** Something failed that no caller could be told of: a listener, a hook, a deed of a session, a stream. */
  error: { readonly error: Error; readonly during: string; readonly client?: ClientInfo };
}

/** Name of an event of `broker.on`. */
export type EventName = keyof BrokerEvents;
type Listener<E extends EventName> = (event: BrokerEvents[E]) => unknown;

/** Names of all events, in the order of the documentation. */
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

/** A listener as registered. */
interface Registration {
  isOnce: boolean;
  readonly guarded: (value: unknown) => void;
}

/**
 * Typed events over eventemitter3. What a listener throws or rejects never reaches the broker: it becomes an `error` event. Where
 * nobody listens to that, or an `error` listener fails itself, it becomes a warning of the process, one for each event.
 */
export class Events {
  /** True for each event somebody listens to. The packet path reads these fields before it makes an event's value. */
  readonly heard: { [E in EventName]: boolean } = Object.fromEntries(EVENT_NAMES.map((name) => [name, false])) as {
    [E in EventName]: boolean;
  };
  readonly #emitter = new EventEmitter();
  readonly #registrations = new Map<EventName, Map<unknown, Registration>>();
  readonly #warned = new Set<EventName>();
  readonly #onHeard: () => void;

  /** @param onHeard called when `heard` has changed */
  constructor(onHeard: () => void = () => undefined) {
    this.#onHeard = onHeard;
  }

  /** Listen. A listener that is registered already is not registered twice. */
  on<E extends EventName>(event: E, listener: Listener<E>): void {
    this.#add(event, listener, false);
  }

  once<E extends EventName>(event: E, listener: Listener<E>): void {
    this.#add(event, listener, true);
  }

  off<E extends EventName>(event: E, listener: Listener<E>): void {
    const registration = this.#registrations.get(event)?.get(listener);
    if (registration === undefined) return;
    this.#registrations.get(event)?.delete(listener);
    this.#emitter.off(event, registration.guarded);
    this.heard[event] = this.#emitter.listenerCount(event) > 0;
    this.#onHeard();
  }

  /** The next event of that name that `where` accepts. Rejects with the signal's reason when it aborts, and with what `where` throws. */
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

  emit<E extends EventName>(event: E, value: BrokerEvents[E]): void {
    if (this.heard[event]) this.#emitter.emit(event, value);
  }

  #add<E extends EventName>(event: E, listener: Listener<E>, isOnce: boolean): void {
    const known = this.#registrations.get(event) ?? new Map<unknown, Registration>();
    this.#registrations.set(event, known);
    const earlier = known.get(listener);
    if (earlier !== undefined) {
      earlier.isOnce &&= isOnce;
      return;
    }
    const guarded = (value: unknown) => {
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
    const registration: Registration = { isOnce, guarded };
    known.set(listener, registration);
    this.#emitter.on(event, guarded);
    this.heard[event] = true;
    this.#onHeard();
  }

  #failed(event: EventName, error: unknown): void {
    // An `error` listener that fails is not told of its own failure: that could go on for ever.
    if (event !== 'error' && this.heard.error) {
      this.emit('error', { error: asError(error), during: `a listener of ${event}` });
    } else if (!this.#warned.has(event)) {
      this.#warned.add(event);
      process.emitWarning(asError(error));
    }
  }
}

/** Whatever was thrown, as an Error. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  let text: string;
  try {
    text = String(thrown);
  } catch {
    text = `an ${typeof thrown} without a text`;
  }
  return new Error(text, { cause: thrown });
}
