import type { Duplex } from 'node:stream';
// By name from this module they are out of the reach of a test framework's fake timers.
import { clearTimeout, setTimeout } from 'node:timers';
import { type Client, connectClient } from '../client/client.ts';
import { duplexPair } from '../client/duplex.ts';
import type { ClientOptions } from '../client/options.ts';
import type { ConnectionMeta } from '../client-info.ts';
import type { Clock } from '../clock.ts';
import { InvalidInput, NotFound, StateError } from '../errors.ts';
import { type BrokerEvents, EVENT_NAMES, type EventName } from '../events.ts';
import type { HookName, Hooks } from '../hooks.ts';
import type { ListenerHandle } from '../listener.ts';
import type { Metrics } from '../metrics.ts';
import { unknownName } from '../options-table.ts';
import type { Message, MessageInput } from '../packets/message.ts';
import { checkMountpoint, checkTopicFilter } from '../topics/topic.ts';
import type { WorkCount } from '../work.ts';
import type { Zone } from '../zone.ts';
import type { Inspection, Running } from './actors.ts';
import { brokerMachine } from './broker.machine.ts';
import { Core } from './core.ts';
import type { BrokerDeeds, BrokerEvent } from './deeds.ts';
import { HandlerSubscriber, type MessageHandler, type SubscribeOptions } from './handler-subscriber.ts';
import { MessageStream, type MessageStreamOptions } from './message-stream.ts';
import { type BrokerOptions, DEFAULT_ZONE, readBrokerOptions, type Settings } from './options.ts';
import { SessionHandle, type SubscriptionRecord } from './session-handle.ts';
import { VERSION } from './version.ts';

/** Node's setTimeout fires at once past this. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** How `stop` ends what is connected. */
export interface StopOptions {
  /** Milliseconds that connections may take to deliver what was sent to them; `Infinity`: as long as they want. Default 2000. */
  readonly timeoutMs?: number;
  /** `publish` (default): as for any close by the server. `keep`: wills are not published. */
  readonly wills?: 'publish' | 'keep';
  readonly signal?: AbortSignal;
}

/** The inside of a broker. No public name: for the project's own tests, which look at what nobody else can see. */
export let coreOf: (broker: Broker) => Core;

/**
 * An MQTT broker in this process. It opens no port: listeners (`embermq/net`), a Duplex of yours (`handle`) or nothing but this
 * object's own methods bring clients to it.
 *
 * Its life is an actor with the states `idle`, `connected`, `disconnected`; so is every session's.
 */
export class Broker {
  /** The options as read. */
  readonly settings: Settings;
  readonly clock: Clock;
  /** Counters and gauges. */
  readonly metrics: Metrics;
  /** What is in flight inside: a test's clock waits for it. */
  readonly work: WorkCount;
  readonly #core: Core;
  readonly #listeners = new Map<string, ListenerHandle>();
  readonly #handlers = new Map<string, Set<HandlerSubscriber>>();
  readonly #actor: Running;
  #startedAt: number | undefined;
  /** The start or stop asked for last, carried out. */
  #turn: Promise<unknown> = Promise.resolve();
  #hurry: ((timeoutMs: number) => void) | undefined;
  /** Iterables that end with the broker. */
  readonly #streams = new Set<MessageStream>();
  #wills: 'publish' | 'keep' = 'publish';

  static {
    coreOf = (broker) => broker.#core;
  }

  /**
   * @param options see the options table of the README; every key may also have its documented spelling (`max_packet_size`)
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, REWRITE_INVALID
   */
  constructor(options: BrokerOptions = {}) {
    this.settings = readBrokerOptions(options);
    this.#core = new Core(this.settings, this);
    this.clock = this.#core.clock;
    this.metrics = this.#core.metrics;
    this.work = this.#core.work;
    const deeds: BrokerDeeds = {
      accept: () => {
        this.#startedAt = this.clock.now();
        this.#core.begin();
      },
      drain: () => this.#core.drain(this.#wills),
      release: () => {
        this.#startedAt = undefined;
        this.#core.end();
      }
    };
    const animate = this.#core.actors.stage<BrokerDeeds>(brokerMachine, 'broker', (_deeds, error, deed) =>
      this.failed(error, `the broker's ${deed}`)
    );
    this.#actor = animate(deeds, 'broker');
  }

  // ---------------------------------------------------------------------------------------------------------------- life

  /** `idle`, `connected` (accepting) or `disconnected` (stopped). */
  get state(): 'idle' | 'connected' | 'disconnected' {
    return topState(this.#actor.getSnapshot().value);
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
   * Open the attached listeners and begin. `start` and `stop` are carried out in the order of their calls.
   * @throws BrokerError LISTENER_BIND_FAILED naming the address, or the signal's reason; then nothing is left open
   */
  start(options: { readonly signal?: AbortSignal } = {}): Promise<this> {
    return this.#inTurn(() => this.#start(options.signal));
  }

  async #start(signal: AbortSignal | undefined): Promise<this> {
    signal?.throwIfAborted();
    if (this.state === 'connected') return this;
    this.#tell('start');
    const opened: ListenerHandle[] = [];
    try {
      for (const listener of this.#listeners.values()) {
        await listener.open();
        opened.push(listener);
        signal?.throwIfAborted();
      }
    } catch (error) {
      await Promise.allSettled(opened.map((listener) => listener.close()));
      this.#tell('failed');
      throw error;
    }
    this.#tell('started');
    return this;
  }

  /**
   * Stop accepting, tell every client (0x8B for MQTT 5.0), let what was sent go out, release everything. Called again meanwhile, a
   * shorter `timeoutMs` takes effect.
   * @throws InvalidInput OPTION_INVALID; the signal's reason when it aborts, which cuts the rest of the stop short
   */
  async stop(options: StopOptions = {}): Promise<void> {
    const { timeoutMs, signal } = options;
    if (timeoutMs !== undefined && (typeof timeoutMs !== 'number' || !(timeoutMs >= 0))) {
      throw new InvalidInput('OPTION_INVALID', 'timeoutMs', 'milliseconds, 0 or more', timeoutMs);
    }
    const cut = () => this.#hurry?.(0);
    if (timeoutMs !== undefined) this.#hurry?.(timeoutMs);
    signal?.addEventListener('abort', cut);
    try {
      await this.#inTurn(() => this.#stop(options));
    } finally {
      signal?.removeEventListener('abort', cut);
    }
    signal?.throwIfAborted();
  }

  async #stop({ timeoutMs = 2_000, wills = 'publish', signal }: StopOptions): Promise<void> {
    if (this.state === 'disconnected') return;
    const closing = [...this.#listeners.values()].map((listener) => listener.close());
    this.#wills = wills;
    this.#tell('stop');
    const failures = (await Promise.allSettled(closing)).filter((result) => result.status === 'rejected');
    if (this.#core.links.size > 0 && !signal?.aborted) await this.#allClosed(timeoutMs);
    this.#core.cutOff();
    this.#tell('stopped'); // a broker that never started is stopped already, and does not mind
    for (const stream of this.#streams) void stream.return();
    if (failures.length > 0)
      throw new AggregateError(
        failures.map(({ reason }) => reason),
        'listeners could not be closed'
      );
  }

  /** One start or stop after the other. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(run);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when the last stream has closed, or the shortest of the times given has passed. */
  #allClosed(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timers: NodeJS.Timeout[] = [];
      const done = () => {
        for (const timer of timers) clearTimeout(timer);
        this.#core.onAllClosed = this.#hurry = undefined;
        resolve();
      };
      // real time: this waits for sockets, not for anything a test would turn
      this.#hurry = (ms) => {
        if (ms <= LONGEST_TIMEOUT_MS) timers.push(setTimeout(done, ms));
      };
      this.#hurry(timeoutMs);
      this.#core.onAllClosed = done;
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #tell(type: BrokerEvent['type']): void {
    this.#actor.send({ type });
  }

  /** Every transition of every actor of this broker, in xstate's inspection events. @returns a function that ends it */
  inspect(observer: (event: Inspection) => void): () => void {
    return this.#core.actors.inspect(observer);
  }

  // ----------------------------------------------------------------------------------------------------------- connections

  /**
   * Serve a client over any Duplex. Nothing is sent before its CONNECT.
   * @throws StateError BROKER_NOT_STARTED, InvalidInput ZONE_UNKNOWN, MOUNTPOINT_INVALID: the stream is then destroyed; InvalidInput
   *   STREAM_INVALID
   */
  handle(stream: Duplex, meta: ConnectionMeta = { transport: 'stream' }): void {
    if (
      typeof stream?.on !== 'function' ||
      typeof stream.write !== 'function' ||
      typeof stream.destroy !== 'function'
    ) {
      throw new InvalidInput('STREAM_INVALID', 'stream', 'a Duplex', stream);
    }
    if (this.state !== 'connected') {
      stream.destroy();
      throw new StateError('BROKER_NOT_STARTED', 'the broker is not started; await broker.start() first');
    }
    const zone = this.settings.zones.get(meta.zone ?? DEFAULT_ZONE);
    if (zone === undefined) {
      stream.destroy();
      this.zone(meta.zone); // throws
      return;
    }
    const fault = meta.mountpoint === undefined ? undefined : checkMountpoint(meta.mountpoint);
    if (fault !== undefined) {
      stream.destroy();
      throw new InvalidInput(
        'MOUNTPOINT_INVALID',
        'mountpoint',
        'the beginning of topic names',
        meta.mountpoint,
        fault
      );
    }
    this.#core.open(stream, meta, zone);
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
  stream(meta: Partial<ConnectionMeta> = {}): Duplex {
    const [ours, theirs] = duplexPair(this.work);
    this.handle(ours, { transport: 'local', ...meta });
    return theirs;
  }

  /**
   * Connect a client inside this process: a full session, without a socket.
   * @throws BrokerError CONNECT_REFUSED with the CONNACK's reason code
   */
  async connect(options: ClientOptions & { readonly connection?: Partial<ConnectionMeta> } = {}): Promise<Client> {
    const { connection, ...rest } = options;
    return connectClient(this.stream(connection), { clock: this.clock, ...rest });
  }

  /** Open this listener with `start`, close it with `stop`. Used by `embermq/net`. @throws InvalidInput LISTENER_NAME_IN_USE */
  attach(listener: ListenerHandle): void {
    if (this.#listeners.has(listener.name)) {
      throw new InvalidInput('LISTENER_NAME_IN_USE', 'name', 'a name no other listener has', listener.name);
    }
    this.#listeners.set(listener.name, listener);
  }

  /** Forget a listener; closing it is the caller's. */
  detach(listener: ListenerHandle): void {
    if (this.#listeners.get(listener.name) === listener) this.#listeners.delete(listener.name);
  }

  listeners(): ListenerHandle[] {
    return [...this.#listeners.values()];
  }

  // -------------------------------------------------------------------------------------------------------------- messages

  /**
   * Publish for the app. The publish hooks are asked, access rules are not.
   * @returns how many subscribers took it, resolved once the broker has taken responsibility
   * @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID; NotAuthorized when a hook refuses; StateError BROKER_NOT_STARTED
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
    this.#mustRun();
    const input = typeof first === 'string' ? { ...options, topic: first, payload } : first;
    return { receivers: await this.#core.publishing.publish(input) };
  }

  /**
   * Hear the messages of a filter in this process, on the path a client's would take. Shared filters (`$share/group/...`) work too.
   * @param handler called for each message; what it throws or rejects becomes an `error` event
   * @returns a function that unsubscribes
   * @throws InvalidInput TOPIC_FILTER_INVALID, HANDLER_INVALID
   */
  subscribe(filter: string, handler: MessageHandler, options: SubscribeOptions = {}): () => void {
    const fault = checkTopicFilter(filter);
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
    if (typeof handler !== 'function') throw new InvalidInput('HANDLER_INVALID', 'handler', 'a function', handler);
    const { signal, retainHandling = 0 } = options;
    if (signal?.aborted) return () => undefined;
    const subscriber = new HandlerSubscriber(filter, handler, options, (error) =>
      this.failed(error, `a handler of "${filter}"`)
    );
    this.#core.routing.add(subscriber.subscription);
    const known = this.#handlers.get(filter) ?? new Set();
    this.#handlers.set(filter, known.add(subscriber));
    const end = () => this.#removeHandler(subscriber);
    subscriber.onEnd = () => signal?.removeEventListener('abort', end);
    signal?.addEventListener('abort', end, { once: true });
    if (retainHandling < 2) this.#handOutTo(subscriber);
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
    this.#core.routing.remove(subscriber.subscription);
  }

  #handOutTo(subscriber: HandlerSubscriber): void {
    if (subscriber.filter.startsWith('$share/') || subscriber.filter.startsWith('$queue/')) return;
    for (const entry of this.#core.retained.match(subscriber.filter)) if (entry.live) subscriber.handOut(entry.message);
  }

  /**
   * The messages of a filter as an async iterable. What comes faster than it is read waits in a bounded buffer; when that is full the
   * oldest goes, counted as `delivery.dropped.queue_full`. It ends when the broker stops.
   */
  messages(filter: string, options: MessageStreamOptions = {}): AsyncIterableIterator<Message> {
    const { highWaterMark, signal, ...rest } = options;
    const stream = new MessageStream(highWaterMark, signal, (message) =>
      this.#core.dropped(message, 'queue_full', undefined)
    );
    const unsubscribe = this.subscribe(filter, (message) => stream.push(message), rest);
    this.#streams.add(stream);
    stream.onEnd(() => {
      this.#streams.delete(stream);
      unsubscribe();
    });
    return stream;
  }

  /** The retained messages that a filter matches, oldest first. A topic name finds one. @throws InvalidInput TOPIC_FILTER_INVALID */
  async *retained(filter: string): AsyncIterableIterator<Message> {
    const fault = checkTopicFilter(filter);
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
    for (const entry of this.#core.retained.match(filter)) if (entry.live) yield entry.message;
  }

  #mustRun(): void {
    if (this.state !== 'connected')
      throw new StateError('BROKER_NOT_STARTED', 'the broker is not started; await broker.start() first');
  }

  // --------------------------------------------------------------------------------------------------------------- sessions

  /** The session of a client id, connected or not. @throws NotFound SESSION_NOT_FOUND */
  session(clientId: string): SessionHandle {
    const session = this.#core.sessions.get(clientId);
    if (session === undefined)
      throw new NotFound('SESSION_NOT_FOUND', `there is no session of client id "${clientId}"`);
    return new SessionHandle(session, this.#core.subscribing);
  }

  hasSession(clientId: string): boolean {
    return this.#core.sessions.has(clientId);
  }

  /** All sessions, connected or not, in order of creation. */
  *sessions(): IterableIterator<SessionHandle> {
    for (const session of this.#core.sessions.values()) yield new SessionHandle(session, this.#core.subscribing);
  }

  /** All subscriptions of all sessions. */
  *subscriptions(): IterableIterator<SubscriptionRecord> {
    for (const session of this.sessions()) yield* session.subscriptions();
  }

  /** The filters in use, without share prefixes, and the node that has them. */
  *routes(): IterableIterator<{ readonly topic: string; readonly node: string }> {
    for (const topic of this.#core.routing.filters()) yield { topic, node: this.settings.node };
  }

  // --------------------------------------------------------------------------------------------------------- events and hooks

  /** Hear an event. What the listener throws or rejects becomes an `error` event. */
  on<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    checkEvent(event, listener);
    this.#core.events.on(event, listener);
    return this;
  }

  once<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    checkEvent(event, listener);
    this.#core.events.once(event, listener);
    return this;
  }

  off<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    this.#core.events.off(event, listener);
    return this;
  }

  /** The next event of a name that satisfies `where`. Rejects when `signal` aborts. */
  nextEvent<E extends EventName>(
    event: E,
    options: { signal?: AbortSignal; where?: (event: BrokerEvents[E]) => boolean } = {}
  ): Promise<BrokerEvents[E]> {
    checkEvent(event, () => undefined);
    return this.#core.events.next(event, options);
  }

  /**
   * Register a hook, behind those registered before, or with `isFirst` in front of them.
   * @returns a function that takes it away again
   * @throws InvalidInput HOOK_UNKNOWN with a suggestion, HOOK_INVALID
   */
  hook<N extends HookName>(name: N, hook: Hooks[N], options: { readonly isFirst?: boolean } = {}): () => void {
    return this.#core.hook(name, hook, options.isFirst);
  }

  /** Tell of something that failed and that no caller can be told of, as an `error` event; for adapters. */
  failed(error: unknown, during: string): void {
    this.#core.failed(error, during, undefined);
  }
}

/** Make a broker; `await broker.start()` begins. */
export function createBroker(options: BrokerOptions = {}): Broker {
  return new Broker(options);
}

/** @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID */
function checkEvent(event: EventName, listener: unknown): void {
  if (!EVENT_NAMES.includes(event)) throw unknownName('EVENT_UNKNOWN', 'event', event, EVENT_NAMES);
  if (typeof listener !== 'function') throw new InvalidInput('HANDLER_INVALID', event, 'a function', listener);
}

function topState(value: string): 'idle' | 'connected' | 'disconnected' {
  const dot = value.indexOf('.');
  return (dot < 0 ? value : value.slice(0, dot)) as 'idle' | 'connected' | 'disconnected';
}
