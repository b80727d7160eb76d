import '../base/async-dispose.ts';
import type { Duplex } from 'node:stream';
// Imported by name, these timers are not replaced by the fake timers of a test framework.
import { clearTimeout, setTimeout } from 'node:timers';
import type { Clock } from '../base/clock.ts';
import { BrokerError, InvalidInput, NotFound, StateError } from '../base/errors.ts';
import type { Inspection } from '../base/inspection.ts';
import { checkNames, checkObject, unknownName } from '../base/options-table.ts';
import type { WorkCount } from '../base/pending-work.ts';
import { type Client, connectClient } from '../client/client.ts';
import { duplexPair } from '../client/duplex.ts';
import type { ClientOptions } from '../client/options.ts';
import { type BrokerEvents, EVENT_NAMES, type EventName } from '../events/events.ts';
import type { Hook, HookName } from '../events/hooks.ts';
import type { Metrics } from '../events/metrics.ts';
import type { Alarm } from '../monitor/sys.ts';
import { type Message, type MessageInput, PUBLISH_OPTION_NAMES } from '../packets/message.ts';
import type { TransportInfo } from '../records/client.ts';
import type { ListenerHandle } from '../records/listener.ts';
import { isAccepted, transportInfoOf } from '../records/transport-info.ts';
import type { Zone } from '../records/zone.ts';
import { checkMountpoint, checkTopicFilter } from '../topics/topic.ts';
import type { BrokerActions, BrokerEvent } from './actions.ts';
import type { Running } from './actors.ts';
import { brokerMachine } from './broker.machine.ts';
import { Engine } from './engine.ts';
import { HandlerSubscriber, type MessageHandler, type SubscribeOptions } from './handler-subscriber.ts';
import { MessageStream, type MessageStreamOptions } from './message-stream.ts';
import { type BrokerOptions, DEFAULT_ZONE, readBrokerOptions, type Settings } from './options.ts';
import { SessionHandle, type SubscriptionRecord } from './session-handle.ts';
import type { Table } from './tables.ts';
import { VERSION } from './version.ts';

/** With a longer delay, setTimeout of Node fires immediately. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;
const DEFAULT_STOP_MS = 2_000;
const STORE_CLOSE_MS = 10_000;
const STOP_NAMES: readonly (keyof StopOptions)[] = ['timeoutMs', 'wills', 'signal'];
const SUBSCRIBE_NAMES: readonly (keyof SubscribeOptions)[] = ['qos', 'retainHandling', 'retainAsPublished', 'signal'];

/** Options of `broker.stop`. */
export interface StopOptions {
  /**
   * Milliseconds that connections have to send their remaining output, and listeners to close. Default 2000; `Infinity`: no limit.
   * The store is closed afterwards. If it does not close, the stop takes at most 10 s more.
   */
  readonly timeoutMs?: number;
  /**
   * `publish` (default): wills are published, as for any close by the server. `keep`: wills are not published now. With a store, the next
   * start publishes them, as after a crash; without one they are discarded.
   */
  readonly wills?: 'publish' | 'keep';
  /** When it aborts, or if it has aborted already, the stop ends without waiting for connections and listeners. */
  readonly signal?: AbortSignal;
}

/** The engine of a broker. Not public: the tests of this project use it to inspect internal state. */
export let engineOf: (broker: Broker) => Engine;
/** The filters of active `broker.subscribe` and `broker.messages` subscriptions, one per handler. Not public: the test kit uses it. */
export let handledFiltersOf: (broker: Broker) => string[];

/**
 * An MQTT broker in this process.
 *
 * The broker itself opens no port. Clients connect through listeners (`embermq/net`), through any Duplex passed to `handle`, or inside
 * this process with `connect`. The app can also publish and subscribe directly.
 *
 * The lifecycle of the broker is an actor with the states `idle`, `connected` and `disconnected`. Each session has such an actor, too.
 */
export class Broker {
  /** The options after reading, with defaults. */
  readonly settings: Settings;
  /** The clock of the broker (option `clock`). */
  readonly clock: Clock;
  /** Counters and gauges. */
  readonly metrics: Metrics;
  /** Counts asynchronous work in progress inside the broker. The virtual clock of the test kit waits until it is done. */
  readonly work: WorkCount;
  readonly #engine: Engine;
  readonly #listeners = new Map<string, ListenerHandle>();
  readonly #handlers = new Map<string, Set<HandlerSubscriber>>();
  readonly #actor: Running;
  #startedAt: number | undefined;
  /** Resolves when the last requested start or stop is complete. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The shortest `timeoutMs` of all stops that are requested and not complete; `#shortenStop` applies one to the stop in progress. */
  #stopTimeoutMs = Infinity;
  #shortenStop: ((timeoutMs: number) => void) | undefined;
  /** Iterables that end when the broker stops. */
  readonly #streams = new Set<MessageStream>();
  #wills: 'publish' | 'keep' = 'publish';

  static {
    engineOf = (broker) => broker.#engine;
    handledFiltersOf = (broker) => [...broker.#handlers].flatMap(([filter, known]) => [...known].map(() => filter));
  }

  /**
   * Create a broker. It accepts clients after `start`.
   * @param options see the options tables of the README. The documented spelling of a name (`max_packet_size`) is also accepted
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, REWRITE_INVALID, HOOK_UNKNOWN, HOOK_INVALID
   */
  constructor(options: BrokerOptions = {}) {
    this.handle = this.handle.bind(this);
    this.settings = readBrokerOptions(options);
    this.#engine = new Engine(this.settings, this);
    this.clock = this.#engine.clock;
    this.metrics = this.#engine.metrics;
    this.work = this.#engine.work;
    const actions: BrokerActions = {
      accept: () => {
        this.#startedAt = this.clock.now();
        this.#engine.begin();
      },
      drain: () => this.#engine.drain(this.#willsAtStop),
      release: () => {
        this.#startedAt = undefined;
        this.#engine.end();
      }
    };
    const animate = this.#engine.actors.logic<BrokerActions>(brokerMachine, 'broker', (_actions, error, action) =>
      this.failed(error, `the broker's ${action}`)
    );
    this.#actor = animate(actions, 'broker');
  }

  // ----------------------------------------------------------------------------------------------------------- lifecycle

  /** The state of the broker: `idle` (not started yet, or starting), `connected` (accepting) or `disconnected` (stopping or stopped). */
  get state(): 'idle' | 'connected' | 'disconnected' {
    const value = this.#actor.getSnapshot().value;
    if (value === 'connected.draining') return 'disconnected';
    return value.split('.')[0] as 'idle' | 'connected' | 'disconnected';
  }

  /** Time of the start in wall-clock milliseconds; undefined while the broker is not started. */
  get startedAt(): number | undefined {
    return this.#startedAt;
  }

  /** The version of this package. */
  get version(): string {
    return VERSION;
  }

  /**
   * Open the store and the attached listeners, and accept clients.
   *
   * Clients that connect before the last listener is open wait until it is. Calls of `start` and `stop` are executed one after the other, in
   * the order of the calls. A broker that is started already stays as it is. If the start fails, everything is closed again.
   * @param options.signal aborts the start
   * @returns this broker
   * @throws BrokerError LISTENER_BIND_FAILED, which names the address. With a store: BrokerError STORE_LOCKED, STORE_UNUSABLE, STORE_DAMAGED,
   *   STORE_CORRUPT, STORE_TOO_NEW, IMPORT_UNFINISHED; StateError STORE_IN_USE (after 10 s if the previous stop could not close the store and
   *   it still does not respond); StateError STORE_CHANGED if another broker has written to the store since the last stop, or if the store was
   *   replaced. The reason of the signal if it aborts
   */
  async start(options: { readonly signal?: AbortSignal } = {}): Promise<this> {
    checkObject(options, 'options');
    return this.#inTurn(() => this.#start(options.signal));
  }

  async #start(signal: AbortSignal | undefined): Promise<this> {
    signal?.throwIfAborted();
    if (this.state === 'connected') return this;
    if (this.#engine.ledger?.isClosing) await this.#closeStore(); // by the previous stop, which reported errors; otherwise `open` reports them
    signal?.throwIfAborted();
    this.#send('start');
    const opened: ListenerHandle[] = [];
    try {
      await this.#engine.persistence?.open();
      signal?.throwIfAborted();
      for (const listener of this.#listeners.values()) {
        await listener.open();
        opened.push(listener);
        signal?.throwIfAborted();
      }
    } catch (error) {
      await this.#within(DEFAULT_STOP_MS, closeAll(opened));
      const closeFailure = this.#engine.ledger?.isClosing ? undefined : await this.#closeStore();
      if (closeFailure !== undefined) this.failed(closeFailure, 'closing the store');
      this.#engine.connections.refuseEarly();
      this.#send('failed');
      throw error;
    }
    this.#send('started');
    this.#engine.persistence?.brokerStarted();
    for (const listener of this.#listeners.values()) listener.accept?.();
    return this;
  }

  /**
   * Stop the broker: accept no more clients, disconnect the connected ones, close the store and release all resources.
   *
   * MQTT 5.0 clients receive reason code 0x8B (server shutting down). Output that is already queued on connections is sent before they
   * close, within `timeoutMs`. If `stop` is called again while a stop is in progress, a shorter `timeoutMs` takes effect.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, without stopping. AggregateError with the errors of all listeners that could not be
   *   closed and of the store (STORE_FAILED: the last changes are not persisted), or the reason of the signal if it aborts; in these cases
   *   the broker has stopped nevertheless
   */
  async stop(options: StopOptions = {}): Promise<void> {
    checkObject(options, 'options');
    checkNames(options, STOP_NAMES, 'stop');
    const { timeoutMs, wills = 'publish', signal } = options;
    if (timeoutMs !== undefined && (typeof timeoutMs !== 'number' || !(timeoutMs >= 0)))
      throw new InvalidInput('OPTION_INVALID', 'timeoutMs', 'milliseconds, 0 or more', timeoutMs);
    if (wills !== 'publish' && wills !== 'keep')
      throw new InvalidInput('OPTION_INVALID', 'wills', '"publish" or "keep"', wills);
    const shorten = (ms: number) => {
      this.#stopTimeoutMs = Math.min(this.#stopTimeoutMs, ms);
      this.#shortenStop?.(ms);
    };
    const cut = () => shorten(0);
    if (timeoutMs !== undefined) shorten(timeoutMs);
    if (signal?.aborted) cut();
    signal?.addEventListener('abort', cut);
    try {
      await this.#inTurn(() => this.#stop(timeoutMs ?? DEFAULT_STOP_MS, wills));
    } finally {
      signal?.removeEventListener('abort', cut);
    }
    signal?.throwIfAborted();
  }

  async #stop(timeoutMs: number, wills: 'publish' | 'keep'): Promise<void> {
    try {
      if (this.state === 'disconnected') return;
      const failures: unknown[] = [];
      const closed = closeAll(this.#listeners.values(), failures);
      this.#wills = wills;
      this.#send('stop');
      await this.#within(
        Math.min(timeoutMs, this.#stopTimeoutMs),
        Promise.all([closed, this.#engine.connections.allClosed()])
      );
      this.#engine.connections.cutOff();
      const failure = await this.#closeStore();
      if (failure !== undefined) failures.push(failure);
      this.#send('stopped'); // no effect on a broker that was never started: it is stopped already
      for (const stream of this.#streams) void stream.return();
      if (failures.length > 0)
        throw new AggregateError(
          failures,
          'the broker has stopped, but a listener or the store could not be closed (see errors)'
        );
    } finally {
      this.#stopTimeoutMs = Infinity;
    }
  }

  /** Close the store, but wait at most STORE_CLOSE_MS for it. @returns the error; undefined: the store is closed */
  async #closeStore(): Promise<unknown> {
    const { store } = this.settings;
    const { persistence } = this.#engine;
    if (store === undefined || persistence === undefined) return undefined;
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<unknown>((resolve) => {
      const text = `${store.name}: the store does not close; it is unknown whether the last changes are persisted`;
      // Real time, because this waits for a disk.
      timer = setTimeout(() => resolve(new BrokerError('STORE_FAILED', text)), STORE_CLOSE_MS);
    });
    const closed = persistence.close().then(
      () => undefined,
      (error: unknown) => error
    );
    const failure = await Promise.race([closed, tooLong]);
    clearTimeout(timer);
    return failure;
  }

  /** Run a start or stop after all earlier ones are complete. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(run);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when `done` has resolved or the time has passed, which `#shortenStop` may shorten. */
  #within(timeoutMs: number, done: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timers: NodeJS.Timeout[] = [];
      const end = () => {
        for (const timer of timers) clearTimeout(timer);
        this.#shortenStop = undefined;
        resolve();
      };
      // Real time, because this waits for sockets, which do not follow a virtual clock.
      this.#shortenStop = (ms) => {
        if (ms <= LONGEST_TIMEOUT_MS) timers.push(setTimeout(end, ms));
      };
      this.#shortenStop(timeoutMs);
      void done.then(end);
    });
  }

  get #willsAtStop(): 'publish' | 'drop' | 'keep' {
    return this.#wills === 'keep' && this.#engine.persistence === undefined ? 'drop' : this.#wills;
  }

  /** Stop the broker with the default options; for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #send(type: BrokerEvent['type']): void {
    this.#actor.send({ type });
  }

  /**
   * Observe every transition of every actor of this broker, as inspection events of xstate.
   * @param observer called for each step; what it throws becomes an `error` event
   * @returns a function that ends the inspection
   * @throws InvalidInput HANDLER_INVALID
   */
  inspect(observer: (event: Inspection) => void): () => void {
    if (typeof observer !== 'function') throw new InvalidInput('HANDLER_INVALID', 'observer', 'a function', observer);
    return this.#engine.actors.inspect(observer);
  }

  // ----------------------------------------------------------------------------------------------------------- connections

  /**
   * Serve a client over a Duplex stream.
   *
   * The broker sends nothing before it has received a CONNECT. While the broker starts, the client waits. The method is bound, so
   * `net.createServer(broker.handle)` and `tls.createServer(options, broker.handle)` are MQTT servers.
   *
   * A stream that detects a protocol violation of its peer may be destroyed with a `ProtocolError`; its reason code is then the reason of
   * the disconnection. Any other error of a stream is reported as an `error` event, unless the peer simply closed the connection or
   * `transportInfo.listener` is set.
   * @param transportInfo describes the connection. By default it is read from the stream if that is a socket: addresses, transport, verified
   *   client certificate. If it is not given and a server passes on a socket while the broker is not started, the socket is closed and an
   *   `error` event is emitted. An exception could not be caught in the `connection` event of the server.
   * @throws StateError BROKER_NOT_STARTED (also while the broker stops), InvalidInput ZONE_UNKNOWN, MOUNTPOINT_INVALID: the stream is
   *   destroyed. InvalidInput STREAM_INVALID, OPTION_INVALID; StateError STREAM_IN_USE if the stream was passed before: it is left alone
   */
  handle(stream: Duplex, transportInfo?: TransportInfo): void {
    if (
      typeof stream?.on !== 'function' ||
      typeof stream.resume !== 'function' ||
      typeof stream.write !== 'function' ||
      typeof stream.destroy !== 'function'
    ) {
      throw new InvalidInput('STREAM_INVALID', 'stream', 'a Duplex', stream);
    }
    if (transportInfo !== undefined) checkObject(transportInfo, 'transportInfo');
    if (this.#engine.connections.has(stream))
      throw new StateError(
        'STREAM_IN_USE',
        'this stream is in use already; pass a separate stream for each connection'
      );
    if (this.state !== 'connected' && this.#actor.getSnapshot().value !== 'idle.starting') {
      stream.destroy();
      if (transportInfo !== undefined || !isAccepted(stream)) throw notStarted();
      this.failed(notStarted(), 'accepting a connection');
      return;
    }
    const known = transportInfo ?? transportInfoOf(stream);
    const zone = this.settings.zones.get(known.zone ?? DEFAULT_ZONE);
    if (zone === undefined) {
      stream.destroy();
      this.zone(known.zone); // throws
      return;
    }
    const fault = known.mountpoint === undefined ? undefined : checkMountpoint(known.mountpoint);
    if (fault !== undefined) {
      stream.destroy();
      throw new InvalidInput('MOUNTPOINT_INVALID', 'mountpoint', 'a prefix of topic names', known.mountpoint, fault);
    }
    this.#engine.connections.open(stream, known, zone);
  }

  /** The settings of a zone. @param name default: `external` @throws InvalidInput ZONE_UNKNOWN */
  zone(name: string = DEFAULT_ZONE): Zone {
    const zone = this.settings.zones.get(name);
    if (zone !== undefined) return zone;
    const known = [...this.settings.zones.keys()].join(', ');
    throw new InvalidInput(
      'ZONE_UNKNOWN',
      'zone',
      `one of ${known}`,
      name,
      `zone "${name}" is not defined; use one of ${known}, or define it (option zones)`
    );
  }

  /**
   * Create a Duplex whose other end is served by this broker. It connects MQTT.js or any other client without a socket.
   * @param transportInfo describes the connection; its `transport` is `local` by default
   * @throws as `handle`
   */
  stream(transportInfo: Partial<TransportInfo> = {}): Duplex {
    checkObject(transportInfo, 'transportInfo');
    const [ours, theirs] = duplexPair(this.work);
    this.handle(ours, { transport: 'local', ...transportInfo });
    return theirs;
  }

  /**
   * Connect a client inside this process. It has a full MQTT session, but no socket.
   * @throws Refused CONNECT_REFUSED with the reason code of the CONNACK; StateError BROKER_NOT_STARTED; the errors of `connectClient`
   */
  async connect(options: ClientOptions & { readonly transportInfo?: Partial<TransportInfo> } = {}): Promise<Client> {
    checkObject(options, 'options');
    const { transportInfo, ...rest } = options;
    return connectClient(this.stream(transportInfo), { clock: this.clock, ...rest });
  }

  /**
   * Attach a listener, which `start` opens and `stop` closes. A start in progress opens it, too. Used by `embermq/net`.
   * @throws InvalidInput LISTENER_INVALID, LISTENER_NAME_IN_USE
   */
  attach(listener: ListenerHandle): void {
    if (typeof listener?.open !== 'function' || typeof listener.close !== 'function')
      throw new InvalidInput('LISTENER_INVALID', 'listener', 'a listener (see listen() of embermq/net)', listener);
    if (this.#listeners.has(listener.name)) {
      throw new InvalidInput('LISTENER_NAME_IN_USE', 'name', 'a name that no other listener has', listener.name);
    }
    this.#listeners.set(listener.name, listener);
  }

  /** Detach a listener. The caller closes it. */
  detach(listener: ListenerHandle): void {
    if (this.#listeners.get(listener.name) === listener) this.#listeners.delete(listener.name);
  }

  /** The attached listeners, in the order in which they are opened. */
  listeners(): ListenerHandle[] {
    return [...this.#listeners.values()];
  }

  // -------------------------------------------------------------------------------------------------------------- messages

  /**
   * Publish a message of the app. The publish hooks run; authorization does not apply.
   * @returns the number of subscribers that accepted the message. The promise resolves when the broker has taken responsibility: if the
   *   message has to be persisted, its commit has succeeded
   * @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID, OPTION_UNKNOWN; NotAuthorized if a hook refuses the message; StateError
   *   BROKER_NOT_STARTED, DELAYED_OFF (option delayedPublish); BrokerError QUOTA_EXCEEDED if there are too many delayed messages, or no room to
   *   queue this one; BrokerError STORE_FAILED if the message has to be persisted and cannot be. If its commit fails, connected subscribers
   *   may have received it already
   */
  async publish(message: MessageInput): Promise<{ readonly receivers: number }>;
  async publish(
    topic: string,
    payload?: MessageInput['payload'],
    options?: Omit<MessageInput, 'topic' | 'payload'>
  ): Promise<{ readonly receivers: number }>;
  async publish(
    first: MessageInput | string,
    payload?: MessageInput['payload'],
    options: Omit<MessageInput, 'topic' | 'payload'> = {}
  ): Promise<{ readonly receivers: number }> {
    if (!this.#engine.life.isRunning) throw notStarted();
    checkObject(options, 'options');
    checkNames(options, PUBLISH_OPTION_NAMES, 'publish');
    const input = typeof first === 'string' ? { ...options, topic: first, payload } : first;
    if (typeof input !== 'object' || input === null)
      throw new InvalidInput('MESSAGE_INVALID', 'message', 'a topic name or { topic, payload }', input);
    return { receivers: await this.#engine.publishing.publish(input) };
  }

  /**
   * Call a handler for each message that matches a topic filter. The handler is a subscriber like any client, without a session.
   * @param filter a topic filter; shared subscriptions (`$share/<group>/<filter>`) are supported
   * @param handler called for each message; what it throws or rejects with becomes an `error` event
   * @returns a function that unsubscribes this handler
   * @throws InvalidInput TOPIC_FILTER_INVALID, HANDLER_INVALID, OPTION_UNKNOWN, OPTION_INVALID
   */
  subscribe(filter: string, handler: MessageHandler, options: SubscribeOptions = {}): () => void {
    checkFilter(filter);
    if (typeof handler !== 'function') throw new InvalidInput('HANDLER_INVALID', 'handler', 'a function', handler);
    checkObject(options, 'options');
    checkNames(options, SUBSCRIBE_NAMES, 'subscribe');
    const { signal, qos = 2, retainHandling = 0 } = options;
    if (![0, 1, 2].includes(qos)) throw new InvalidInput('OPTION_INVALID', 'qos', '0, 1 or 2', qos);
    if (![0, 1, 2].includes(retainHandling))
      throw new InvalidInput('OPTION_INVALID', 'retainHandling', '0, 1 or 2', retainHandling);
    if (signal?.aborted) return () => undefined;
    const subscriber = new HandlerSubscriber(filter, handler, options, (error) =>
      this.failed(error, `a handler of "${filter}"`)
    );
    subscriber.ledger = this.#engine.ledger;
    this.#engine.routing.add(subscriber.subscription);
    const known = this.#handlers.get(filter) ?? new Set();
    this.#handlers.set(filter, known.add(subscriber));
    const end = () => this.#removeHandler(subscriber);
    subscriber.onEnd = () => signal?.removeEventListener('abort', end);
    signal?.addEventListener('abort', end, { once: true });
    if (retainHandling < 2) this.#deliverRetainedTo(subscriber);
    return end;
  }

  /** Remove the subscriptions of the app to a filter. @param handler only those of this handler @returns the number of removed subscriptions */
  unsubscribe(filter: string, handler?: MessageHandler): number {
    const found = [...(this.#handlers.get(filter) ?? [])].filter(
      (subscriber) => handler === undefined || subscriber.handler === handler
    );
    for (const subscriber of found) this.#removeHandler(subscriber);
    return found.length;
  }

  #removeHandler(subscriber: HandlerSubscriber): void {
    const known = this.#handlers.get(subscriber.filter);
    if (!known?.delete(subscriber)) return;
    if (known.size === 0) this.#handlers.delete(subscriber.filter);
    subscriber.isEnded = true;
    subscriber.onEnd();
    this.#engine.routing.remove(subscriber.subscription);
  }

  /** Deliver retained messages after `subscribe` has returned. A message that is published earlier is delivered after them. */
  #deliverRetainedTo(subscriber: HandlerSubscriber): void {
    if (subscriber.filter.startsWith('$share/') || subscriber.filter.startsWith('$queue/')) return;
    const retained = this.#retained(subscriber.filter);
    if (retained.length === 0) return;
    subscriber.queueRetained(retained);
    this.work.begin();
    // A promise, because test frameworks replace `queueMicrotask`.
    void Promise.resolve().then(() => {
      subscriber.deliverRetained();
      this.work.end();
    });
  }

  #retained(filter: string): Message[] {
    return this.#engine.retained.match(filter).flatMap(({ isLive: live, message }) => (live ? [message] : []));
  }

  /**
   * Iterate over the messages that match a topic filter.
   *
   * Messages that are not read yet wait in a buffer of `highWaterMark` messages. When it is full, the oldest message is dropped and counted
   * as `delivery.dropped.queue_full`. The iteration ends when the broker stops.
   * @throws InvalidInput TOPIC_FILTER_INVALID, OPTION_UNKNOWN, OPTION_INVALID
   */
  messages(filter: string, options: MessageStreamOptions = {}): AsyncIterableIterator<Message> {
    checkObject(options, 'options');
    const { highWaterMark, signal, ...rest } = options;
    const stream = new MessageStream(highWaterMark, signal, (message) =>
      this.#engine.announcer.dropped(message, 'queue_full', undefined)
    );
    try {
      const unsubscribe = this.subscribe(filter, (message) => stream.push(message), rest);
      this.#streams.add(stream);
      stream.onEnd(() => {
        this.#streams.delete(stream);
        unsubscribe();
      });
    } catch (error) {
      void stream.return(); // removes its listener from the signal
      throw error;
    }
    return stream;
  }

  /** The retained messages that match a topic filter or topic name, oldest first. @throws InvalidInput TOPIC_FILTER_INVALID */
  retained(filter: string): AsyncIterableIterator<Message> {
    checkFilter(filter);
    return this.#iterateRetained(filter);
  }

  async *#iterateRetained(filter: string): AsyncIterableIterator<Message> {
    for (const entry of this.#engine.retained.match(filter)) if (entry.isLive) yield entry.message;
  }

  /**
   * A key-value table of the app, which is persisted with the state of the broker.
   *
   * Without the option `store`, the table ends with the process. All entries are in memory, so a table suits configuration rather than
   * large amounts of data. Each call with the same name returns the same table.
   * @param name 1 to 64 letters, digits, `.`, `-` and `_`
   * @throws InvalidInput TABLE_NAME_INVALID
   */
  table<V = unknown>(name: string): Table<V> {
    return this.#engine.tables.table(name) as Table<V>;
  }

  // --------------------------------------------------------------------------------------------------------------- sessions

  /** The session of a client id, whether connected or not. @throws NotFound SESSION_NOT_FOUND */
  session(clientId: string): SessionHandle {
    const session = this.hasSession(clientId) ? this.#engine.sessions.get(clientId) : undefined;
    if (session === undefined)
      throw new NotFound('SESSION_NOT_FOUND', `there is no session for client id "${String(clientId)}"`);
    return new SessionHandle(session, this.#engine.subscribing);
  }

  /** Whether a client id has a session, connected or not. */
  hasSession(clientId: string): boolean {
    return typeof clientId === 'string' && this.#engine.sessions.has(clientId);
  }

  /** All sessions, connected or not, in order of creation. */
  *sessions(): IterableIterator<SessionHandle> {
    for (const session of this.#engine.sessions.values()) yield new SessionHandle(session, this.#engine.subscribing);
  }

  /** All subscriptions of all sessions, session by session. */
  *subscriptions(): IterableIterator<SubscriptionRecord> {
    for (const session of this.sessions()) yield* session.subscriptions();
  }

  /** The topic filters that have subscriptions, without share prefixes, and the node of the subscribers. */
  *routes(): IterableIterator<{ readonly topic: string; readonly node: string }> {
    for (const topic of this.#engine.routing.filters()) yield { topic, node: this.settings.node };
  }

  // --------------------------------------------------------------------------------------------------------- events and hooks

  /**
   * Add a listener for an event. What the listener throws or rejects with becomes an `error` event.
   * @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID
   */
  on<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    checkEvent(event, listener);
    this.#engine.events.on(event, listener);
    return this;
  }

  /** Add a listener for the next event of a name only. @throws InvalidInput as `on` */
  once<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    checkEvent(event, listener);
    this.#engine.events.once(event, listener);
    return this;
  }

  /** Remove a listener. A listener that is not registered is ignored. */
  off<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    this.#engine.events.off(event, listener);
    return this;
  }

  /**
   * Wait for the next event of a name that satisfies `where`.
   *
   * The promise is rejected with the reason of the signal if that aborts, and with the error if `where` throws.
   * @param options.where default: every event
   * @throws InvalidInput EVENT_UNKNOWN with a suggestion, OPTION_INVALID
   */
  nextEvent<E extends EventName>(
    event: E,
    options: { signal?: AbortSignal; where?: (event: BrokerEvents[E]) => boolean } = {}
  ): Promise<BrokerEvents[E]> {
    checkEvent(event, () => undefined);
    checkObject(options, 'options');
    return this.#engine.events.next(event, options);
  }

  /**
   * Register a hook. It runs after the hooks of this name that are registered already, or with `isFirst` before them.
   * @returns a function that removes the hook
   * @throws InvalidInput HOOK_UNKNOWN with a suggestion, HOOK_INVALID
   */
  hook<N extends HookName>(name: N, hook: Hook<N>, options: { readonly isFirst?: boolean } = {}): () => void {
    checkObject(options, 'options');
    return this.#engine.hook(name, hook, options.isFirst);
  }

  /**
   * Raise or clear an alarm: a condition that an operator should know. It is published under `$SYS/brokers/<node>/alarms`. For adapters.
   * @param change `alert`: the condition has begun; `clear`: it has ended
   */
  alarm(change: 'alert' | 'clear', alarm: Alarm): void {
    this.#engine.notices.alarm(change, alarm);
  }

  /**
   * Report an error that has no caller to throw to, as an `error` event. For adapters.
   * @param during the operation that failed, such as `closing the store`
   */
  failed(error: unknown, during: string): void {
    this.#engine.announcer.failed(error, during, undefined);
  }
}

/** Create a broker. It accepts clients after `await broker.start()`. @throws as the constructor of `Broker` */
export function createBroker(options: BrokerOptions = {}): Broker {
  return new Broker(options);
}

/** @throws InvalidInput TOPIC_FILTER_INVALID */
function checkFilter(filter: string): void {
  const fault = typeof filter === 'string' ? checkTopicFilter(filter) : 'the topic filter must be a string';
  if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
}

/** @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID */
function checkEvent(event: EventName, listener: unknown): void {
  if (!EVENT_NAMES.includes(event)) throw unknownName('EVENT_UNKNOWN', 'event', event, EVENT_NAMES);
  if (typeof listener !== 'function') throw new InvalidInput('HANDLER_INVALID', event, 'a function', listener);
}

function notStarted(): StateError {
  return new StateError(
    'BROKER_NOT_STARTED',
    'the broker is not started or is stopping; call await broker.start() first'
  );
}

/** Close listeners at the same time. @param failures receives their errors */
async function closeAll(listeners: Iterable<ListenerHandle>, failures: unknown[] = []): Promise<void> {
  const close = async (listener: ListenerHandle) => {
    try {
      await listener.close();
    } catch (error) {
      failures.push(error);
    }
  };
  await Promise.all([...listeners].map(close));
}
