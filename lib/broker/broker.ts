import '../base/async-dispose.ts';
import type { Duplex } from 'node:stream';
// By name from this module they are out of the reach of a test framework's fake timers.
import { clearTimeout, setTimeout } from 'node:timers';
import type { Clock } from '../base/clock.ts';
import { BrokerError, InvalidInput, NotFound, StateError } from '../base/errors.ts';
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
import type { Inspection, Running } from './actors.ts';
import { brokerMachine } from './broker.machine.ts';
import { Engine } from './engine.ts';
import { HandlerSubscriber, type MessageHandler, type SubscribeOptions } from './handler-subscriber.ts';
import { MessageStream, type MessageStreamOptions } from './message-stream.ts';
import { type BrokerOptions, DEFAULT_ZONE, readBrokerOptions, type Settings } from './options.ts';
import { SessionHandle, type SubscriptionRecord } from './session-handle.ts';
import type { Table } from './tables.ts';
import { VERSION } from './version.ts';

/** Node's setTimeout fires at once past this. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;
const DEFAULT_STOP_MS = 2_000;
const STORE_CLOSE_MS = 10_000;
const STOP_NAMES: readonly (keyof StopOptions)[] = ['timeoutMs', 'wills', 'signal'];
const SUBSCRIBE_NAMES: readonly (keyof SubscribeOptions)[] = ['qos', 'retainHandling', 'retainAsPublished', 'signal'];

/** How `stop` ends what is connected. */
export interface StopOptions {
  /**
   * Milliseconds that connections may take to deliver what was sent to them, and listeners to close; `Infinity`: as long as they want. Default
   * 2000. The store is closed after that: one whose commit hangs holds up the stop 10 s more at most.
   */
  readonly timeoutMs?: number;
  /** `publish` (default): as for any close by the server. `keep`: not published; with a store, by the next start as after a crash. */
  readonly wills?: 'publish' | 'keep';
  /** Cuts short what is left of the stop when it aborts, or has aborted. */
  readonly signal?: AbortSignal;
}

/** The inside of a broker. No public name: for the project's own tests, which look at what nobody else can see. */
export let engineOf: (broker: Broker) => Engine;
/** The filters of `broker.subscribe` and `broker.messages` that have not ended, one for each handler. No public name: for the test kit. */
export let handledFiltersOf: (broker: Broker) => string[];

/**
 * An MQTT broker in this process. It opens no port: listeners (`embermq/net`), a Duplex of yours (`handle`) or nothing but this
 * object's own methods bring clients to it.
 *
 * Its life is an actor with the states `idle`, `connected`, `disconnected`; so is every session's.
 */
export class Broker {
  /** The options as read. */
  readonly settings: Settings;
  /** Its time: the option `clock`. */
  readonly clock: Clock;
  /** Counters and gauges. */
  readonly metrics: Metrics;
  /** What is in flight inside: a test's clock waits for it. */
  readonly work: WorkCount;
  readonly #engine: Engine;
  readonly #listeners = new Map<string, ListenerHandle>();
  readonly #handlers = new Map<string, Set<HandlerSubscriber>>();
  readonly #actor: Running;
  #startedAt: number | undefined;
  /** The start or stop asked for last, carried out. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The least that a stop which is not yet over was given, and what tells one under way. */
  #stopTimeoutMs = Infinity;
  #shortenStop: ((timeoutMs: number) => void) | undefined;
  /** Iterables that end with the broker. */
  readonly #streams = new Set<MessageStream>();
  #wills: 'publish' | 'keep' = 'publish';

  static {
    engineOf = (broker) => broker.#engine;
    handledFiltersOf = (broker) => [...broker.#handlers].flatMap(([filter, known]) => [...known].map(() => filter));
  }

  /**
   * @param options see the options table of the README; every key may also have its documented spelling (`max_packet_size`)
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

  // ---------------------------------------------------------------------------------------------------------------- life

  /** `idle`, `connected` (accepting) or `disconnected` (stopped, or about to be). */
  get state(): 'idle' | 'connected' | 'disconnected' {
    const value = this.#actor.getSnapshot().value;
    if (value === 'connected.draining') return 'disconnected';
    return value.split('.')[0] as 'idle' | 'connected' | 'disconnected';
  }

  /** Wall-clock milliseconds of the start; undefined while it is not started. */
  get startedAt(): number | undefined {
    return this.#startedAt;
  }

  /** The version of this package. */
  get version(): string {
    return VERSION;
  }

  /**
   * Open the attached listeners and begin. Clients that come before the last one is open wait for it. `start` and `stop` are carried out in
   * the order of their calls.
   * @throws BrokerError LISTENER_BIND_FAILED naming the address; with a store STORE_LOCKED, STORE_UNUSABLE, STORE_DAMAGED, STORE_CORRUPT, STORE_TOO_NEW,
   *   IMPORT_UNFINISHED, or StateError STORE_IN_USE (also 10 s later if the last stop could not close it and it still does not answer), or STORE_CHANGED where another broker has written to it since the last stop, or another store is in its place; the signal's reason. Then nothing is left open
   */
  async start(options: { readonly signal?: AbortSignal } = {}): Promise<this> {
    checkObject(options, 'options');
    return this.#inTurn(() => this.#start(options.signal));
  }

  async #start(signal: AbortSignal | undefined): Promise<this> {
    signal?.throwIfAborted();
    if (this.state === 'connected') return this;
    if (this.#engine.ledger?.isClosing) await this.#closeStore(); // of the last stop; what it fails with was told, or `open` tells
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
   * Stop accepting, tell every client (0x8B for MQTT 5.0), let what was sent go out, release everything. Called again meanwhile, a
   * shorter `timeoutMs` takes effect.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID; AggregateError of what listeners and the store (STORE_FAILED: the last changes are not
   *   kept) failed to close with; the signal's reason when it aborts. But for the first, the broker has stopped then all the same.
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
      this.#send('stopped'); // a broker that never started is stopped already, and does not mind
      for (const stream of this.#streams) void stream.return();
      if (failures.length > 0)
        throw new AggregateError(failures, 'the broker has stopped, but not everything could be closed');
    } finally {
      this.#stopTimeoutMs = Infinity;
    }
  }

  /** A store that hangs holds up a stop, and the next start, only so long. @returns what it fails with */
  async #closeStore(): Promise<unknown> {
    const { store } = this.settings;
    const { persistence } = this.#engine;
    if (store === undefined || persistence === undefined) return undefined;
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<unknown>((resolve) => {
      const text = `${store.name}: does not close; whether the last changes are kept is not known`;
      // real time: it is a disk that is waited for
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

  /** One start or stop after the other. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(run);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when that is done, or the shortest of the times given has passed. */
  #within(timeoutMs: number, done: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timers: NodeJS.Timeout[] = [];
      const end = () => {
        for (const timer of timers) clearTimeout(timer);
        this.#shortenStop = undefined;
        resolve();
      };
      // real time: this waits for sockets, not for anything a test would turn
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

  /** `stop()` with its defaults. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #send(type: BrokerEvent['type']): void {
    this.#actor.send({ type });
  }

  /**
   * Every transition of every actor of this broker, in xstate's inspection events.
   * @returns a function that ends it
   * @throws InvalidInput HANDLER_INVALID
   */
  inspect(observer: (event: Inspection) => void): () => void {
    if (typeof observer !== 'function') throw new InvalidInput('HANDLER_INVALID', 'observer', 'a function', observer);
    return this.#engine.actors.inspect(observer);
  }

  // ----------------------------------------------------------------------------------------------------------- connections

  /**
   * Serve a client over any Duplex. Nothing is sent before its CONNECT. While the broker starts, the client waits. The method is bound:
   * `net.createServer(broker.handle)` and `tls.createServer(options, broker.handle)` serve MQTT.
   * A stream that finds its peer breaking a rule may be destroyed with a `ProtocolError`: its code is why the client is disconnected. What
   * else a stream fails with is an `error` event, unless its peer has just gone or `meta.listener` is given.
   * @param transportInfo what is known of the connection. By default what the stream tells if it is a socket: address, transport, verified client
   *   certificate. Then the socket of a server that comes while the broker is not started is closed and reported as an `error` event
   *   instead of an exception, which nobody could catch in a `connection` event.
   * @throws StateError BROKER_NOT_STARTED (also while the broker stops), InvalidInput ZONE_UNKNOWN, MOUNTPOINT_INVALID: the stream is then destroyed; InvalidInput
   *   STREAM_INVALID, OPTION_INVALID; StateError STREAM_IN_USE for one that was given before
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
    if (transportInfo !== undefined) checkObject(transportInfo, 'meta');
    if (this.#engine.connections.has(stream))
      throw new StateError(
        'STREAM_IN_USE',
        'this stream has been handed over before; a connection needs one of its own'
      );
    if (this.state !== 'connected' && this.#actor.getSnapshot().value !== 'idle.starting') {
      stream.destroy();
      if (transportInfo !== undefined || !isAccepted(stream)) throw notStarted();
      this.failed(notStarted(), 'handing a connection over');
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
      throw new InvalidInput(
        'MOUNTPOINT_INVALID',
        'mountpoint',
        'the beginning of topic names',
        known.mountpoint,
        fault
      );
    }
    this.#engine.connections.open(stream, known, zone);
  }

  /** Settings of a zone. @throws InvalidInput ZONE_UNKNOWN */
  zone(name: string = DEFAULT_ZONE): Zone {
    const zone = this.settings.zones.get(name);
    if (zone !== undefined) return zone;
    const known = [...this.settings.zones.keys()].join(', ');
    throw new InvalidInput(
      'ZONE_UNKNOWN',
      'zone',
      `one of ${known}`,
      name,
      `there is no zone "${name}"; known are ${known} (option zones)`
    );
  }

  /** A Duplex whose other end this broker serves: for MQTT.js or any other client, without a socket. */
  stream(transportInfo: Partial<TransportInfo> = {}): Duplex {
    checkObject(transportInfo, 'meta');
    const [ours, theirs] = duplexPair(this.work);
    this.handle(ours, { transport: 'local', ...transportInfo });
    return theirs;
  }

  /**
   * Connect a client inside this process: a full session, without a socket.
   * @throws Refused CONNECT_REFUSED with the CONNACK's reason code; StateError BROKER_NOT_STARTED; what `connectClient` throws
   */
  async connect(options: ClientOptions & { readonly transportInfo?: Partial<TransportInfo> } = {}): Promise<Client> {
    checkObject(options, 'options');
    const { transportInfo, ...rest } = options;
    return connectClient(this.stream(transportInfo), { clock: this.clock, ...rest });
  }

  /** Open this listener with `start`, also one under way, and close it with `stop`. Used by `embermq/net`. @throws InvalidInput LISTENER_INVALID, LISTENER_NAME_IN_USE */
  attach(listener: ListenerHandle): void {
    if (typeof listener?.open !== 'function' || typeof listener.close !== 'function')
      throw new InvalidInput('LISTENER_INVALID', 'listener', 'a listener; see listen of embermq/net', listener);
    if (this.#listeners.has(listener.name)) {
      throw new InvalidInput('LISTENER_NAME_IN_USE', 'name', 'a name no other listener has', listener.name);
    }
    this.#listeners.set(listener.name, listener);
  }

  /** Forget a listener; closing it is the caller's. */
  detach(listener: ListenerHandle): void {
    if (this.#listeners.get(listener.name) === listener) this.#listeners.delete(listener.name);
  }

  /** The attached listeners, in the order in which they are opened. */
  listeners(): ListenerHandle[] {
    return [...this.#listeners.values()];
  }

  // -------------------------------------------------------------------------------------------------------------- messages

  /**
   * Publish for the app. The publish hooks are asked, access rules are not.
   * @returns how many subscribers took it, resolved once the broker has taken responsibility: what has to be kept is in the store
   * @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID, OPTION_UNKNOWN; NotAuthorized when a hook refuses; StateError BROKER_NOT_STARTED,
   *   DELAYED_OFF (option delayedPublish); BrokerError QUOTA_EXCEEDED when too many delayed messages wait, STORE_FAILED when it would have
   *   to be kept and can not be. Where the commit failed that was to hold it, who is connected may have got it before
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
      throw new InvalidInput('MESSAGE_INVALID', 'message', 'a topic, or { topic, payload }', input);
    return { receivers: await this.#engine.publishing.publish(input) };
  }

  /**
   * Hear the messages of a filter in this process, on the path a client's would take. Shared filters (`$share/group/...`) work too.
   * @param handler called for each message; what it throws or rejects becomes an `error` event
   * @returns a function that unsubscribes
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

  /** End the subscriptions of the app to a filter: one handler's, or all. @returns how many there were */
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

  /** Once `subscribe` has returned, or ahead of the first message that comes before. */
  #deliverRetainedTo(subscriber: HandlerSubscriber): void {
    if (subscriber.filter.startsWith('$share/') || subscriber.filter.startsWith('$queue/')) return;
    const retained = this.#retained(subscriber.filter);
    if (retained.length === 0) return;
    subscriber.queueRetained(retained);
    this.work.begin();
    // a promise, because test frameworks fake `queueMicrotask`
    void Promise.resolve().then(() => {
      subscriber.deliverRetained();
      this.work.end();
    });
  }

  #retained(filter: string): Message[] {
    return this.#engine.retained.match(filter).flatMap(({ live, message }) => (live ? [message] : []));
  }

  /**
   * The messages of a filter as an async iterable. What comes faster than it is read waits in a bounded buffer; when that is full the
   * oldest goes, counted as `delivery.dropped.queue_full`. It ends when the broker stops.
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
      void stream.return(); // it listens to the signal
      throw error;
    }
    return stream;
  }

  /** The retained messages that a filter matches, oldest first. A topic name finds one. @throws InvalidInput TOPIC_FILTER_INVALID */
  retained(filter: string): AsyncIterableIterator<Message> {
    checkFilter(filter);
    return this.#iterateRetained(filter);
  }

  async *#iterateRetained(filter: string): AsyncIterableIterator<Message> {
    for (const entry of this.#engine.retained.match(filter)) if (entry.live) yield entry.message;
  }

  /**
   * A table of the app's own, kept with the broker's state (option `store`; without one it is gone with the process). All of it is in
   * memory: for configuration, not for data. The same name gives the same table.
   * @param name 1 to 64 letters, digits, `.`, `-` and `_`
   * @throws InvalidInput TABLE_NAME_INVALID
   */
  table<V = unknown>(name: string): Table<V> {
    return this.#engine.tables.table(name) as Table<V>;
  }

  // --------------------------------------------------------------------------------------------------------------- sessions

  /** The session of a client id, connected or not. @throws NotFound SESSION_NOT_FOUND */
  session(clientId: string): SessionHandle {
    const session = this.hasSession(clientId) ? this.#engine.sessions.get(clientId) : undefined;
    if (session === undefined)
      throw new NotFound('SESSION_NOT_FOUND', `there is no session of client id "${String(clientId)}"`);
    return new SessionHandle(session, this.#engine.subscribing);
  }

  /** Whether there is a session of this client id, connected or not. */
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

  /** The filters in use, without share prefixes, and the node that has them. */
  *routes(): IterableIterator<{ readonly topic: string; readonly node: string }> {
    for (const topic of this.#engine.routing.filters()) yield { topic, node: this.settings.node };
  }

  // --------------------------------------------------------------------------------------------------------- events and hooks

  /**
   * Hear an event. What the listener throws or rejects becomes an `error` event.
   * @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID
   */
  on<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    checkEvent(event, listener);
    this.#engine.events.on(event, listener);
    return this;
  }

  /** Hear the next event of a name. @throws InvalidInput as `on` */
  once<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    checkEvent(event, listener);
    this.#engine.events.once(event, listener);
    return this;
  }

  /** Hear no more; nothing happens where the listener is not registered. */
  off<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    this.#engine.events.off(event, listener);
    return this;
  }

  /**
   * The next event of a name that satisfies `where`. Rejects with the signal's reason when it aborts, and with what `where` throws.
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
   * Register a hook, behind those registered before, or with `isFirst` in front of them.
   * @returns a function that takes it away again
   * @throws InvalidInput HOOK_UNKNOWN with a suggestion, HOOK_INVALID
   */
  hook<N extends HookName>(name: N, hook: Hook<N>, options: { readonly isFirst?: boolean } = {}): () => void {
    checkObject(options, 'options');
    return this.#engine.hook(name, hook, options.isFirst);
  }

  /** Announce a condition that an operator should know (`alert`), or that it is over (`clear`), under `$SYS/brokers/<node>/alarms`; for adapters. */
  alarm(change: 'alert' | 'clear', alarm: Alarm): void {
    this.#engine.notices.alarm(change, alarm);
  }

  /** Tell of something that failed and that no caller can be told of, as an `error` event; for adapters. */
  failed(error: unknown, during: string): void {
    this.#engine.announcer.failed(error, during, undefined);
  }
}

/** Make a broker; `await broker.start()` begins. */
export function createBroker(options: BrokerOptions = {}): Broker {
  return new Broker(options);
}

/** @throws InvalidInput TOPIC_FILTER_INVALID */
function checkFilter(filter: string): void {
  const fault = typeof filter === 'string' ? checkTopicFilter(filter) : 'the topic filter must be a text';
  if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
}

/** @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID */
function checkEvent(event: EventName, listener: unknown): void {
  if (!EVENT_NAMES.includes(event)) throw unknownName('EVENT_UNKNOWN', 'event', event, EVENT_NAMES);
  if (typeof listener !== 'function') throw new InvalidInput('HANDLER_INVALID', event, 'a function', listener);
}

function notStarted(): StateError {
  return new StateError('BROKER_NOT_STARTED', 'the broker is not started, or is stopping; await broker.start() first');
}

/** @param failures gets what they fail with */
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
