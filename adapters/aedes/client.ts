// An object of this class exists from `handle` on, long before its session; the hooks find it by the description of
// its connection (`ClientLinks`). Methods marked as internal are called by hooks and events in the order
// connectArrived, identified, register, ready, ended; a refused client has `refused` and `refusalSent` instead. An
// error is reported as Aedes does, with `emit('error')`, but without closing the stream: the broker ends it after its
// last packet.

import { EventEmitter } from 'node:events';
import type { Broker, Clock, QoS } from '../../lib/index.ts';
import { noop } from './ask.ts';
import {
  inputOf,
  type PublishInput,
  type SubscribePacket,
  type Subscription,
  type Subscriptions,
  type UnsubscribePacket,
  type WillPacket
} from './packets.ts';
import type { AedesEvents, ClientEvents, Connection, Done, UpgradeRequest } from './types.ts';

/** The part of its broker that a client uses. */
export interface ClientHost {
  readonly broker: Broker;
  readonly connectTimeout: number;
  emit<E extends keyof AedesEvents>(event: E, ...args: AedesEvents[E]): boolean;
  /** Called when the client is accepted: count and announce it. */
  registered(client: Client): void;
  /** Called when an accepted client has disconnected. */
  unregistered(client: Client): void;
  /** Subscribe on behalf of a client. */
  subscribe(client: Client, subscriptions: readonly Subscription[]): Promise<void>;
  /** Report topic filters that a client has unsubscribed from. */
  unsubscribed(client: Client, filters: string[]): void;
}

/** The argument of `client.subscribe`: one or several topic filters with their options, or a SUBSCRIBE. */
export type SubscribeInput = Subscriptions | Subscription | readonly Subscription[] | SubscribePacket;
/** The argument of `client.unsubscribe`: one or several topic filters, or an UNSUBSCRIBE. */
export type UnsubscribeInput =
  | string
  | Subscriptions
  | Subscription
  | readonly (Subscription | string)[]
  | UnsubscribePacket;

/** A connection and its client. */
export class Client extends EventEmitter<ClientEvents> {
  /** The stream of the connection. */
  readonly conn: Connection;
  /** The upgrade request of a WebSocket connection, if it was passed to `handle`. */
  readonly req: UpgradeRequest | undefined;
  readonly #host: ClientHost;
  #id: string | null = null;
  #clean = true;
  #version: number | null = null;
  #will: WillPacket | null = null;
  /** The will of the CONNECT, which applies once the client is accepted. */
  #agreedWill: WillPacket | null = null;
  #connecting = false;
  #connected = false;
  #closed = false;
  #isRegistered = false;
  #hasEnded = false;
  #hasFailed = false;
  /** The reason why the client is refused, or its connection is closed. */
  #refusal: Error | undefined;
  #connectTimer: unknown;
  /** Called when the connection has closed. */
  readonly #closing = new Set<() => void>();
  readonly #filters = new Set<string>();

  /** @internal */
  constructor(host: ClientHost, conn: Connection, req: UpgradeRequest | undefined) {
    super();
    this.#host = host;
    this.conn = conn;
    this.req = req;
    Object.assign(conn, { client: this });
    this.on('error', (error) => this.#failed(error));
    this.#connectTimer = clockOf(host).setTimeout(
      () => this.emit('error', new Error('connect did not arrive in time')),
      host.connectTimeout
    );
    this.#watch(conn);
  }

  /** The client id; null until the CONNECT is accepted by `preConnect`. */
  get id(): string {
    return this.#id as string;
  }

  /** The flag Clean Session of the CONNECT. */
  get clean(): boolean {
    return this.#clean;
  }

  /** The protocol version: 3, 4 or 5; null until the CONNECT is accepted by `preConnect`. */
  get version(): number {
    return this.#version as number;
  }

  /** The will of the connected client; null if there is none. */
  get will(): WillPacket | null {
    return this.#will;
  }

  /** True from the CONNECT until the client is ready or has failed. */
  get connecting(): boolean {
    return this.#connecting;
  }

  /** True from the event `connected` until the connection closes. */
  get connected(): boolean {
    return this.#connected;
  }

  /** True if the connection is closed or closing. */
  get closed(): boolean {
    return this.#closed;
  }

  /** The broker of embermq that serves this client. */
  get broker(): Broker {
    return this.#host.broker;
  }

  /** The subscriptions of the session by topic filter; empty while the client is not connected. */
  get subscriptions(): Readonly<Record<string, Pick<Subscription, 'qos'>>> {
    const known = this.#isRegistered && !this.#hasEnded ? [...this.#session.subscriptions()] : [];
    return Object.fromEntries(known.map(({ filter, qos }) => [filter, { qos }]));
  }

  /** Send a packet to this client, whether or not it has a subscription. @param callback called when it is sent or queued */
  publish(packet: PublishInput, callback: Done = noop): void {
    this.#whenReady(callback, async () => {
      await this.#session.send(inputOf(packet));
    });
  }

  /**
   * Subscribe on behalf of the client. `authorizeSubscribe` decides, as for a SUBSCRIBE.
   * @param subscriptions one, several, or a SUBSCRIBE without `messageId`: no SUBACK is sent
   */
  subscribe(subscriptions: SubscribeInput, callback: Done = noop): void {
    if ('messageId' in subscriptions && subscriptions.messageId !== undefined) {
      const text = 'client.subscribe cannot send a SUBACK; leave out "messageId", the callback reports the result';
      queueMicrotask(() => callback(new Error(text)));
      return;
    }
    const list = 'subscriptions' in subscriptions ? subscriptions.subscriptions : [subscriptions].flat();
    this.#whenReady(callback, () => this.#host.subscribe(this, list as readonly Subscription[]));
  }

  /** Unsubscribe on behalf of the client. */
  unsubscribe(subscriptions: UnsubscribeInput, callback: Done = noop): void {
    const filters = filtersOf(subscriptions);
    this.#whenReady(callback, async () => {
      for (const filter of filters) this.#session.unsubscribe(filter);
      if (filters.length > 0) this.#host.unsubscribed(this, filters);
    });
  }

  /** Close the connection without a DISCONNECT, so a will is published. @param callback called when it is closed */
  close(callback?: () => void): void {
    if (this.#hasEnded) {
      callback?.();
      return;
    }
    if (callback !== undefined) this.#closing.add(callback);
    this.#closed = true;
    this.#stopConnectTimer();
    this.conn.destroy();
  }

  /** Drop the messages queued for the client. Messages already sent stay in flight. */
  emptyOutgoingQueue(callback: Done = noop): void {
    this.#whenReady(callback, async () => {
      await this.#session.clearQueue();
    });
  }

  // --------------------------------------------------------------------------------------------------- for the broker

  /** Called when the CONNECT has arrived. @internal */
  connectArrived(): void {
    this.#connecting = true;
    this.#stopConnectTimer();
  }

  /** Called when `preConnect` has accepted the CONNECT. @internal */
  identified(id: string, clean: boolean, version: number, will: WillPacket | null): void {
    this.#agreedWill = will;
    this.#id = id;
    this.#clean = clean;
    this.#version = version;
  }

  /**
   * Called when a handler refuses the CONNECT, and when the broker rejects the client or what it has sent. The first reason is reported, after the
   * CONNACK if there is one. @internal
   */
  refused(error: Error): void {
    this.#refusal ??= error;
  }

  /**
   * Called when a CONNACK that refuses the client was sent.
   * @param text the reason, if no handler has given one @internal
   */
  refusalSent(text: string): void {
    this.#connecting = false;
    this.#report(this.#refusal ?? new Error(text));
  }

  /** Called when the client is accepted; its CONNACK follows. @internal */
  register(): void {
    this.#isRegistered = true;
    this.#will = this.#agreedWill;
    this.#host.registered(this);
  }

  /** Called when the CONNACK was sent. @internal */
  ready(): void {
    if (this.#closed) return;
    this.#connecting = false;
    this.#connected = true;
    this.#host.emit('clientReady', this);
    this.emit('connected');
  }

  /** Called when a subscription of the client was added or removed. @internal */
  noteSubscription(filter: string, isSubscribed: boolean): void {
    if (isSubscribed) this.#filters.add(filter);
    else this.#filters.delete(filter);
  }

  /** Called when the broker closes the connection because of an error. @internal */
  closedFor(error: Error): void {
    if (!this.#closed) this.#report(this.#refusal ?? error);
  }

  /** Called when the connection has ended. @internal */
  ended(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#closed = true;
    this.#connecting = false;
    this.#connected = false;
    this.#will = null;
    this.#stopConnectTimer();
    if (this.#isRegistered) {
      this.#host.unregistered(this);
      if (this.#clean && this.#filters.size > 0) this.#host.unsubscribed(this, [...this.#filters]);
    }
    const callbacks = [...this.#closing];
    this.#closing.clear();
    for (const callback of callbacks)
      try {
        callback();
      } catch (error) {
        this.#host.broker.failed(error, 'a callback of a client that has closed'); // the other callbacks are still called
      }
  }

  // -------------------------------------------------------------------------------------------------------- internals

  get #session() {
    return this.#host.broker.sessions.get(this.id);
  }

  #watch(conn: Connection): void {
    let hasPeerEnded = false;
    conn.on('error', (error) => this.closedFor(error));
    conn.on('end', () => (hasPeerEnded = !conn.writableEnded));
    conn.on('close', () => {
      // runs after the listener of the broker, which reports why it has closed the connection
      queueMicrotask(() => {
        const isRefused = !hasPeerEnded && !this.#closed && !this.#isRegistered;
        if (isRefused) this.#report(this.#refusal ?? new Error('the broker has closed the connection'));
        this.ended();
      });
    });
  }

  #stopConnectTimer(): void {
    clockOf(this.#host).clearTimeout(this.#connectTimer);
    this.#connectTimer = undefined;
  }

  /** Report an error as `emit('error')` does, without closing the stream: the broker ends it after its last packet. */
  #report(error: Error): void {
    this.#closed = true;
    this.emit('error', error);
  }

  /** The listener of the event `error`. */
  #failed(error: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const isOpen = !this.#closed;
    this.#host.emit(this.#id === null ? 'connectionError' : 'clientError', this, error);
    if (isOpen) this.close();
  }

  /** Run an operation when the client is ready, and report its result. */
  #whenReady(callback: Done, run: () => Promise<void>): void {
    const start = () => {
      if (this.#closed) callback(new Error('connection closed'));
      else
        run().then(
          () => callback(null),
          (error: Error) => callback(error)
        );
    };
    if (this.#connected || this.#closed) queueMicrotask(start);
    else {
      const begin = () => {
        this.off('connected', begin);
        this.#closing.delete(begin);
        start();
      };
      this.on('connected', begin);
      this.#closing.add(begin);
    }
  }
}

function clockOf({ broker }: ClientHost): Clock {
  return broker.clock;
}

function filtersOf(given: UnsubscribeInput): string[] {
  if (typeof given === 'string') return [given];
  if ('unsubscriptions' in given) return [...given.unsubscriptions];
  const list = 'subscriptions' in given ? given.subscriptions : [given].flat();
  return (list as readonly (Subscription | string)[]).map((entry) => (typeof entry === 'string' ? entry : entry.topic));
}

/** The QoS of a subscription that the app makes for a client. */
export function qosOf({ qos }: Subscription): QoS {
  return qos ?? 0;
}
