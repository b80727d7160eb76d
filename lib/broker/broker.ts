import { channel } from 'node:diagnostics_channel';
import type { Duplex } from 'node:stream';
// By name from this module they are out of the reach of a test framework's fake timers.
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import { type Actor, type ActorLogic, type ActorRef, createActor, type EventObject, type Snapshot } from 'xstate';
import { type Client, connectClient } from '../client/client.ts';
import { duplexPair } from '../client/duplex.ts';
import type { ClientOptions } from '../client/options.ts';
import type { ClientInfo, ConnectionMeta } from '../client-info.ts';
import { type Clock, systemClock } from '../clock.ts';
import { BrokerError, InvalidInput, NotFound, ProtocolError, StateError } from '../errors.ts';
import { asError, type BrokerEvents, type DropReason, type EventName, Events } from '../events.ts';
import { type HookName, HookRegistry, type Hooks } from '../hooks.ts';
import type { ListenerHandle } from '../listener.ts';
import { Metric, Metrics } from '../metrics.ts';
import { type Message, type MessageInput, unwireAll } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { AuthPacket, ConnectPacket, SubscribePacket, UnsubscribePacket } from '../packets/types.ts';
import { replay } from '../replay.ts';
import type { Connection } from '../session/connection.ts';
import type { SessionDeeds } from '../session/deeds.ts';
import type { PublishDecision, SessionHost } from '../session/host.ts';
import { endTurn } from '../session/output.ts';
import { RetainedFeed } from '../session/retained-feed.ts';
import { sessionMachine } from '../session/session.machine.ts';
import { Session, type WillState } from '../session/session.ts';
import { mayReach, type Route, type Subscription } from '../session/subscription.ts';
import { TimingWheel } from '../timing-wheel.ts';
import { TextMap } from '../topics/text-map.ts';
import { checkTopicFilter } from '../topics/topic.ts';
import { WorkCount } from '../work.ts';
import type { Zone } from '../zone.ts';
import { Admission } from './admission.ts';
import { brokerMachine } from './broker.machine.ts';
import type { BrokerDeeds, BrokerEvent } from './deeds.ts';
import { DelayedMessages } from './delayed.ts';
import { HandlerSubscriber, type MessageHandler, type SubscribeOptions } from './handler-subscriber.ts';
import { Memory } from './memory.ts';
import { MessageStream, type MessageStreamOptions } from './message-stream.ts';
import { type BrokerOptions, DEFAULT_ZONE, readBrokerOptions, type Settings } from './options.ts';
import { Publishing } from './publishing.ts';
import { RetainedMessages } from './retained-messages.ts';
import { compileRewrite, type Rewrite } from './rewrite.ts';
import { Routing } from './routing.ts';
import { SessionHandle, type SubscriptionRecord } from './session-handle.ts';
import { Subscribing } from './subscribing.ts';
import { SysTopics } from './sys.ts';
import { SystemMonitor } from './sysmon.ts';
import { VERSION } from './version.ts';

const PACKET_RECEIVED = channel('embermq:packet:received');
const PACKET_SENT = channel('embermq:packet:sent');

/** Subscriptions of a session that ended which are taken out in one turn. */
const FORGET_AT_ONCE = 1_000;

/** What a subscriber of the diagnostics channels `embermq:packet:received` and `embermq:packet:sent` gets. */
export interface PacketTap {
  readonly broker: Broker;
  readonly client: ClientInfo;
  /** The whole packet. Copy it to keep it. */
  readonly bytes: Buffer;
}

/** One step of an actor, as `inspect` shows it: xstate's inspection event, of which the fields that matter are told here. */
export interface Inspection {
  /** `@xstate.actor`: one was made. `@xstate.event`: it is sent something. `@xstate.snapshot`: that is where it is now. */
  readonly type: `@xstate.${string}`;
  /** Which actor; `id` is `broker`, a client id, or `session` where none was known when the actor was made. */
  readonly actorRef: { readonly id?: string; readonly sessionId: string };
  readonly event?: { readonly type: string };
  /** `snapshot.value` is the state. */
  readonly snapshot?: unknown;
}

/** How `stop` ends what is connected. */
export interface StopOptions {
  /** Milliseconds that connections may take to deliver what was sent to them. Default 2000. */
  readonly timeoutMs?: number;
  /** `publish` (default): as for any close by the server. `keep`: wills are not published. */
  readonly wills?: 'publish' | 'keep';
  readonly signal?: AbortSignal;
}

type AnyLogic = ActorLogic<Snapshot<unknown>, EventObject, unknown>;

/**
 * An MQTT broker in this process. It opens no port: listeners (`embermq/net`), a Duplex of yours (`handle`) or nothing but this
 * object's own methods bring clients to it.
 *
 * Its life is an actor with the states `idle`, `connected`, `disconnected`; so is every session's.
 */
export class Broker implements SessionHost, BrokerDeeds {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly metrics: Metrics;
  readonly events: Events;
  readonly hooks: HookRegistry;
  readonly work: WorkCount = new WorkCount();
  readonly routing: Routing;
  readonly delayed: DelayedMessages;
  readonly outputHighWaterMark: number;
  readonly maxHeldBytes: number;
  nowMs = 0;
  wallMs = 0;
  isLaneOpen = true;
  isTapped = false;
  hasPublishHooks = false;
  readonly hasRewrites: boolean;
  readonly #admission: Admission;
  readonly #subscribing: Subscribing;
  readonly #publishing: Publishing;
  readonly #retained: RetainedMessages;
  readonly #rewrite: Rewrite;
  readonly #memory: Memory;
  readonly #sessions = new TextMap<Session>();
  readonly #links = new Set<Connection>();
  readonly #listeners = new Map<string, ListenerHandle>();
  readonly #handlers = new Map<string, Set<HandlerSubscriber>>();
  readonly #root: Actor<AnyLogic>;
  readonly #actor: ActorRef<Snapshot<unknown>, BrokerEvent>;
  readonly #sessionLogic: ReturnType<typeof replay<SessionDeeds>>;
  #sys: SysTopics | undefined;
  readonly #monitor: SystemMonitor;
  #dirty: Connection[] = [];
  #pumping: Session[] = [];
  #isTurnScheduled = false;
  #online = 0;
  #subscriberCount = 0;
  #persistentCount = 0;
  #startedAt: number | undefined;
  #starting: Promise<this> | undefined;
  #stopping: Promise<void> | undefined;
  #onAllClosed: (() => void) | undefined;

  /**
   * @param options see the options table of the README; every key may also have its documented spelling (`max_packet_size`)
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, REWRITE_INVALID
   */
  constructor(options: BrokerOptions = {}) {
    const settings = readBrokerOptions(options);
    this.settings = settings;
    this.clock = settings.clock;
    this.outputHighWaterMark = settings.outputHighWaterMark;
    this.maxHeldBytes = settings.maxHeldBytes;
    this.wheel = new TimingWheel(this.clock, settings.timerResolution, (error) =>
      this.failed(error, 'a timer', undefined)
    );
    this.events = new Events(() => this.#watch());
    this.hooks = new HookRegistry(
      this.clock,
      settings.hookTimeout,
      (error, during, client) => this.failed(error, during, client),
      this.work
    );
    this.routing = new Routing(settings, settings.routeCacheTargets);
    this.#admission = new Admission(this);
    this.#subscribing = new Subscribing(this);
    this.#publishing = new Publishing(this);
    this.#retained = new RetainedMessages(this, settings);
    this.#rewrite = compileRewrite(settings.rewrite);
    this.hasRewrites = !this.#rewrite.isEmpty;
    this.#memory = new Memory(settings.memoryHighWatermark, this.wheel, (isShort) => this.#shed(isShort));
    this.#monitor = new SystemMonitor(this.wheel, settings.timerResolution, (kind, subject, text) =>
      this.#sys?.warn(kind, subject, text)
    );
    this.delayed = new DelayedMessages({
      wheel: this.wheel,
      maxMessages: settings.maxDelayedMessages,
      maxBytes: settings.maxDelayedBytes,
      release: (message, topic) => this.#publishing.release(message, topic)
    });
    this.metrics = new Metrics({
      connections: () => this.#online,
      channels: () => this.#sessions.size,
      sessions: () => this.#sessions.size,
      'sessions.persistent': () => this.#persistentCount,
      topics: () => this.routing.filterCount,
      suboptions: () => this.routing.count,
      subscribers: () => this.#subscriberCount,
      subscriptions: () => this.routing.count,
      'subscriptions.shared': () => this.routing.sharedCount,
      routes: () => this.routing.filterCount,
      retained: () => this.#retained.count,
      'messages.retained': () => this.#retained.count,
      'messages.delayed': () => this.delayed.count
    });
    for (const [name, hook] of Object.entries(settings.hooks))
      if (hook !== undefined) this.hook(name as HookName, hook as never);
    this.#root = createActor(ROOT as AnyLogic);
    this.#root.subscribe({ error: (error) => this.failed(error, 'an actor', undefined) });
    this.#root.start();
    const brokerLogic = replay<BrokerDeeds>(brokerMachine, 'broker', (_deeds, error, deed) =>
      this.failed(error, `the broker's ${deed}`, undefined)
    );
    this.#actor = createActor(
      brokerLogic as unknown as AnyLogic,
      { parent: this.#root as never, input: { deeds: this }, id: 'broker' } as never
    ) as never;
    (this.#actor as unknown as Actor<AnyLogic>).start();
    this.#sessionLogic = replay<SessionDeeds>(sessionMachine, 'session', (deeds, error, deed) =>
      (deeds as Session).broke(error, `the session's ${deed}`)
    );
    this.readTime();
    this.#watch(); // rewrite rules close the untouched path, too
  }

  // ---------------------------------------------------------------------------------------------------------------- life

  /** `idle`, `connected` (accepting) or `disconnected` (stopped). */
  get state(): 'idle' | 'connected' | 'disconnected' {
    return topState((this.#actor.getSnapshot() as unknown as { value: string }).value);
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
   * Open the attached listeners and begin.
   * @throws BrokerError LISTENER_BIND_FAILED naming the address, or the signal's reason; then nothing is left open
   */
  start(options: { readonly signal?: AbortSignal } = {}): Promise<this> {
    if (this.state === 'connected') return Promise.resolve(this);
    this.#starting ??= this.#start(options.signal).finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #start(signal: AbortSignal | undefined): Promise<this> {
    await this.#stopping;
    signal?.throwIfAborted();
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
   * Stop accepting, tell every client (0x8B for MQTT 5.0), let what was sent go out, release everything.
   * @throws the signal's reason when it aborts; the rest of the stop is then at once
   */
  stop(options: StopOptions = {}): Promise<void> {
    if (this.state === 'disconnected') return Promise.resolve();
    this.#stopping ??= this.#stop(options).finally(() => {
      this.#stopping = undefined;
    });
    return this.#stopping;
  }

  async #stop({ timeoutMs = 2_000, wills = 'publish', signal }: StopOptions): Promise<void> {
    await this.#starting?.catch(() => undefined);
    const closing = [...this.#listeners.values()].map((listener) => listener.close());
    this.#wills = wills;
    this.#tell('stop');
    const failures = (await Promise.allSettled(closing)).filter((result) => result.status === 'rejected');
    if (this.#links.size > 0) await this.#allClosed(timeoutMs, signal);
    for (const link of this.#links) link.destroy();
    if (this.state !== 'disconnected') this.#tell('stopped');
    signal?.throwIfAborted();
    if (failures.length > 0)
      throw new AggregateError(
        failures.map(({ reason }) => reason),
        'listeners could not be closed'
      );
  }

  #wills: 'publish' | 'keep' = 'publish';

  #allClosed(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        this.#onAllClosed = undefined;
        resolve();
      };
      // real time: this waits for sockets, not for anything a test would turn
      const timer = setTimeout(done, timeoutMs);
      signal?.addEventListener('abort', done);
      this.#onAllClosed = done;
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Deed: listeners accept, timers run. */
  accept(): void {
    const { settings, wheel, clock, metrics } = this;
    this.readTime();
    this.#startedAt = clock.now();
    this.#memory.start();
    for (const session of this.#sessions.values()) session.rearmOffline();
    this.#sys = new SysTopics({
      node: settings.node,
      version: VERSION,
      clock,
      wheel,
      metrics,
      settings,
      publish: (topic, payload, { qos, retain }) => this.#publishing.publishSystem(topic, payload, qos, retain),
      hasSubscribers: (topic) => {
        const { targets, groups } = this.routing.of(topic);
        return targets.length > 0 || groups.length > 0;
      },
      isHeard: () => this.routing.isSystemHeard,
      nodes: () => [settings.node],
      startedAtMs: clock.monotonic()
    });
    this.#sys.start();
    // another clock's time says nothing of the process
    if (clock === systemClock) this.#monitor.start(this.nowMs);
  }

  /** Deed: everybody is told to go. */
  drain(): void {
    this.#sys?.stop();
    this.#monitor.stop();
    const will = this.#wills;
    for (const session of [...this.#sessions.values()]) {
      if (session.state === 'connected') session.close('server_shutting_down', ReasonCode.serverShuttingDown, { will });
    }
    for (const link of this.#links)
      if (!link.isClosed) link.session.close('server_shutting_down', ReasonCode.serverShuttingDown, { will });
  }

  /** Deed: nothing is left. */
  release(): void {
    this.wheel.clear();
    this.delayed.clear();
    this.#startedAt = undefined;
  }

  #tell(type: BrokerEvent['type']): void {
    this.#actor.send({ type });
  }

  /** Every transition of every actor of this broker, in xstate's inspection events. @returns a function that ends it */
  inspect(observer: (event: Inspection) => void): () => void {
    const subscription = this.#root.system.inspect({ next: observer });
    return () => subscription.unsubscribe();
  }

  // ----------------------------------------------------------------------------------------------------------- connections

  /**
   * Serve a client over any Duplex. Nothing is sent before its CONNECT.
   * @throws StateError BROKER_NOT_STARTED, InvalidInput ZONE_UNKNOWN; the stream is then destroyed
   */
  handle(stream: Duplex, meta: ConnectionMeta = { transport: 'stream' }): void {
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
    const { maxConnections } = this.settings;
    if ((maxConnections > 0 && this.#links.size >= maxConnections) || stream.destroyed) {
      this.metrics.counts[Metric.connectionsRefused]++;
      stream.destroy();
      return;
    }
    this.nowMs = this.clock.monotonic();
    const session = new Session(this, zone, stream, meta);
    this.#links.add(session.link as Connection);
    this.#animate(session);
    (session.link as Connection).open();
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

  #animate(session: Session, value?: string): void {
    const options = {
      parent: this.#root,
      input: { deeds: session },
      id: session.clientId === '' ? 'session' : session.clientId
    };
    const snapshot =
      value === undefined
        ? undefined
        : { status: 'active', value, deeds: session, output: undefined, error: undefined };
    const actor = createActor(
      this.#sessionLogic as never,
      (snapshot === undefined ? options : { ...options, snapshot }) as never
    );
    session.actor = actor as never;
    (actor as Actor<AnyLogic>).start();
  }

  revive(session: Session): void {
    if (session.actor === undefined) this.#animate(session, 'disconnected');
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
  connect(options: ClientOptions & { readonly connection?: Partial<ConnectionMeta> } = {}): Promise<Client> {
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

  streamClosed(connection: Connection): void {
    this.#links.delete(connection);
    if (this.#links.size === 0) this.#onAllClosed?.();
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
    return { receivers: await this.#publishing.publish(input) };
  }

  /**
   * Hear the messages of a filter in this process, on the path a client's would take. Shared filters (`$share/group/...`) work too.
   * @param handler called for each message; what it throws or rejects becomes an `error` event
   * @returns a function that unsubscribes
   * @throws InvalidInput TOPIC_FILTER_INVALID
   */
  subscribe(filter: string, handler: MessageHandler, options: SubscribeOptions = {}): () => void {
    const fault = checkTopicFilter(filter);
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
    const subscriber = new HandlerSubscriber(filter, handler, options, (error) =>
      this.failed(error, `a handler of "${filter}"`, undefined)
    );
    this.routing.add(subscriber.subscription);
    const known = this.#handlers.get(filter) ?? new Set();
    this.#handlers.set(filter, known.add(subscriber));
    const end = () => this.#removeHandler(subscriber);
    options.signal?.addEventListener('abort', end, { once: true });
    if (options.signal?.aborted) end();
    else if ((options.retainHandling ?? 0) < 2) this.#handOutTo(subscriber);
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
    this.routing.remove(subscriber.subscription);
  }

  #handOutTo(subscriber: HandlerSubscriber): void {
    if (subscriber.filter.startsWith('$share/') || subscriber.filter.startsWith('$queue/')) return;
    for (const { message } of this.#retained.match(subscriber.filter)) subscriber.handOut(message);
  }

  /**
   * The messages of a filter as an async iterable. What comes faster than it is read waits in a bounded buffer; when that is full the
   * oldest goes, counted as `delivery.dropped.queue_full`.
   */
  messages(filter: string, options: MessageStreamOptions = {}): AsyncIterableIterator<Message> {
    const { highWaterMark, signal, ...rest } = options;
    const stream = new MessageStream(highWaterMark, signal, (message) =>
      this.dropped(message, 'queue_full', undefined)
    );
    stream.onEnd(this.subscribe(filter, (message) => stream.push(message), rest));
    return stream;
  }

  /** The retained messages that a filter matches, oldest first. A topic name finds one. @throws InvalidInput TOPIC_FILTER_INVALID */
  async *retained(filter: string): AsyncIterableIterator<Message> {
    const fault = checkTopicFilter(filter);
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
    for (const entry of this.#retained.match(filter)) if (entry.live) yield entry.message;
  }

  #mustRun(): void {
    if (this.state !== 'connected')
      throw new StateError('BROKER_NOT_STARTED', 'the broker is not started; await broker.start() first');
  }

  // --------------------------------------------------------------------------------------------------------------- sessions

  /** The session of a client id, connected or not. @throws NotFound SESSION_NOT_FOUND */
  session(clientId: string): SessionHandle {
    const session = this.#sessions.get(clientId);
    if (session === undefined)
      throw new NotFound('SESSION_NOT_FOUND', `there is no session of client id "${clientId}"`);
    return new SessionHandle(session, this.#subscribing);
  }

  hasSession(clientId: string): boolean {
    return this.#sessions.has(clientId);
  }

  /** All sessions, connected or not, in order of creation. */
  *sessions(): IterableIterator<SessionHandle> {
    for (const session of this.#sessions.values()) yield new SessionHandle(session, this.#subscribing);
  }

  /** All subscriptions of all sessions. */
  *subscriptions(): IterableIterator<SubscriptionRecord> {
    for (const session of this.sessions()) yield* session.subscriptions();
  }

  /** The filters in use, without share prefixes, and the node that has them. */
  *routes(): IterableIterator<{ readonly topic: string; readonly node: string }> {
    for (const topic of this.routing.filters()) yield { topic, node: this.settings.node };
  }

  // --------------------------------------------------------------------------------------------------------- events and hooks

  /** Hear an event. What the listener throws or rejects becomes an `error` event. */
  on<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    this.events.on(event, listener);
    return this;
  }

  once<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    this.events.once(event, listener);
    return this;
  }

  off<E extends EventName>(event: E, listener: (event: BrokerEvents[E]) => unknown): this {
    this.events.off(event, listener);
    return this;
  }

  /** The next event of a name that satisfies `where`. Rejects when `signal` aborts. */
  nextEvent<E extends EventName>(
    event: E,
    options: { signal?: AbortSignal; where?: (event: BrokerEvents[E]) => boolean } = {}
  ): Promise<BrokerEvents[E]> {
    return this.events.next(event, options);
  }

  /** Register a hook. @returns a function that takes it away again */
  hook<N extends HookName>(name: N, hook: Hooks[N]): () => void {
    const remove = this.hooks.add(name, hook);
    this.#watch();
    return () => {
      remove();
      this.#watch();
    };
  }

  /** Who watches has changed: is the untouched path still open? */
  #watch(): void {
    if (this.hooks === undefined) return;
    const { heard } = this.events;
    this.hasPublishHooks = this.hooks.authorizePublish.length > 0 || this.hooks.publish.length > 0;
    this.isLaneOpen =
      !this.hasPublishHooks &&
      this.hooks.deliver.length === 0 &&
      !heard['message.publish'] &&
      !heard['message.delivered'] &&
      !heard['message.dropped'] &&
      !this.isTapped &&
      !this.hasRewrites;
  }

  // --------------------------------------------------------------------------------------- what sessions ask (SessionHost)

  /** Read the clocks anew, where no chunk has. */
  readTime(): void {
    this.nowMs = this.clock.monotonic();
    this.wallMs = this.clock.now();
  }

  get isShedding(): boolean {
    return this.#memory.isShort;
  }

  flushLater(connection: Connection): void {
    this.#dirty.push(connection);
    this.#scheduleTurn();
  }

  pumpLater(session: Session): void {
    this.#pumping.push(session);
    this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#isTurnScheduled) return;
    this.#isTurnScheduled = true;
    this.work.begin();
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isTurnScheduled = false;
    const dirty = this.#dirty;
    const pumping = this.#pumping;
    if (pumping.length > 0) {
      this.#pumping = [];
      this.readTime();
      for (const session of pumping) {
        try {
          session.pump();
        } catch (error) {
          session.broke(error, 'sending what waits');
        }
      }
    }
    this.#dirty = [];
    for (let at = 0; at < dirty.length; at++) {
      try {
        dirty[at].flush();
      } catch (error) {
        dirty[at].session.broke(error, 'writing');
      }
    }
    endTurn();
    unwireAll();
    this.work.end();
  };

  lookForTaps(): void {
    const isTapped = PACKET_RECEIVED.hasSubscribers || PACKET_SENT.hasSubscribers;
    if (isTapped === this.isTapped) return;
    this.isTapped = isTapped;
    this.#watch();
  }

  tapReceived(connection: Connection, bytes: Buffer): void {
    PACKET_RECEIVED.publish({ broker: this, client: connection.session, bytes } satisfies PacketTap);
  }

  tapSent(connection: Connection, bytes: Buffer): void {
    PACKET_SENT.publish({ broker: this, client: connection.session, bytes } satisfies PacketTap);
  }

  resolve(buf: Buffer, start: number, end: number): Route {
    return this.routing.resolve(buf, start, end);
  }

  routeOf(topic: string): Route {
    return this.routing.of(topic);
  }

  isFresh(route: Route): boolean {
    return this.routing.isFresh(route);
  }

  route(message: Message, route: Route): number {
    return this.#publishing.route(message, route);
  }

  routeRun(
    connection: Connection,
    route: Route,
    buf: Buffer,
    start: number,
    end: number,
    count: number,
    longest: number
  ): void {
    this.#publishing.routeRun(connection, route, buf, start, end, count, longest);
  }

  decidePublish(message: Message, route: Route, session: Session): PublishDecision | Promise<PublishDecision> {
    return this.#publishing.decide(message, route, session);
  }

  delay(message: Message): number {
    return this.#publishing.delay(message);
  }

  rewrite(topic: string, kind: 'publish' | 'subscribe'): string {
    return this.hasRewrites ? this.#rewrite.rewrite(topic, kind) : topic;
  }

  mayDeliver(message: Message, session: Session): boolean {
    for (const hook of this.hooks.deliver) {
      if (this.hooks.call('deliver', hook, { message, client: session as ClientInfo }, false, session) === false)
        return false;
    }
    return true;
  }

  onConnect(session: Session, packet: ConnectPacket): void {
    this.#admission.connect(session, packet);
  }

  onAuth(session: Session, packet: AuthPacket): void {
    this.#admission.reauthenticate(session, packet);
  }

  onSubscribe(session: Session, packet: SubscribePacket): void {
    this.#subscribing.subscribe(session, packet);
  }

  onUnsubscribe(session: Session, packet: UnsubscribePacket): void {
    this.#subscribing.unsubscribe(session, packet);
  }

  publishWill(session: Session, will: WillState): void {
    this.#publishing.will(session, will);
  }

  pendingRetained(feed: RetainedFeed, topic: string): Message | undefined {
    const entry = this.#retained.get(topic);
    return entry === undefined ? undefined : feed.takeAhead(entry);
  }

  retain(message: Message): void {
    this.#retained.put(message);
  }

  /** What a new subscription is to get of the retained messages; undefined: nothing. */
  retainedFeed(subscription: Subscription): RetainedFeed | undefined {
    const { filter, subscriber } = subscription;
    if (filter.startsWith('$share/') || filter.startsWith('$queue/')) return undefined;
    let entries = this.#retained.match(filter);
    if (subscriber.mountpoint !== '') entries = entries.filter(({ topic }) => mayReach(subscriber, filter, topic));
    return entries.length === 0 ? undefined : new RetainedFeed(subscription, entries);
  }

  dropped(message: Message, reason: DropReason, client: ClientInfo | undefined): void {
    if (message.isSystem) return;
    const { counts } = this.metrics;
    if (client === undefined) counts[Metric.messagesDropped]++;
    else counts[Metric.deliveryDropped]++;
    const counter = DROPPED[reason];
    if (counter !== undefined) counts[counter]++;
    if (reason === 'expired') counts[Metric.messagesExpired]++;
    if (this.events.heard['message.dropped']) this.events.emit('message.dropped', { message, reason, client });
  }

  failed(thrown: unknown, during: string, client: ClientInfo | undefined): void {
    const error = asError(thrown);
    if (this.events.heard.error)
      this.events.emit('error', client === undefined ? { error, during } : { error, during, client });
    else if (!(thrown instanceof ProtocolError))
      process.emitWarning(
        new BrokerError('UNHEARD', `${during}: ${error.message} (listen to the broker's error event)`, { cause: error })
      );
  }

  // ---------------------------------------------------------------------------------------------------- the index of sessions

  /** The session kept under a client id. */
  stored(clientId: string): Session | undefined {
    return this.#sessions.get(clientId);
  }

  hasRoomForSession(): boolean {
    const { maxSessions } = this.settings;
    return maxSessions === 0 || this.#sessions.size < maxSessions;
  }

  hasRoomForSubscription(): boolean {
    const { maxTotalSubscriptions } = this.settings;
    return maxTotalSubscriptions === 0 || this.routing.count < maxTotalSubscriptions;
  }

  keep(session: Session): void {
    this.#sessions.set(session.clientId, session);
    this.metrics.note('sessions', this.#sessions.size);
    this.metrics.note('channels', this.#sessions.size);
  }

  connected(session: Session, sessionPresent: boolean): void {
    this.#sys?.connected(session);
    if (this.events.heard['client.connected'])
      this.events.emit('client.connected', { client: session, sessionPresent });
  }

  sessionChanged(session: Session): void {
    const isOnline = session.state === 'connected';
    if (isOnline) this.metrics.note('connections', ++this.#online);
    else {
      this.#online--;
      if (session.ending !== undefined) this.#sys?.disconnected(session, session.ending.reason);
    }
  }

  subscribeAutomatically(session: Session): void {
    for (const request of this.settings.autoSubscriptions) {
      const names = { '%c': session.clientId, '%u': session.username ?? 'undefined' };
      let isSafe = true;
      const topic = request.topic.replace(/%[cu]/g, (placeholder) => {
        const name = names[placeholder as keyof typeof names];
        if (/[+#]/.test(name)) isSafe = false; // it would reach into the topics of others
        return name;
      });
      const code = isSafe
        ? this.#subscribing.subscribeFor(session, { ...request, topic })
        : ReasonCode.topicFilterInvalid;
      if (code >= 0x80)
        this.failed(
          new BrokerError('AUTO_SUBSCRIPTION_FAILED', `"${topic}" can not be subscribed (0x${code.toString(16)})`),
          'subscribing at connect',
          session
        );
    }
  }

  /** Take an ended session out. Many subscriptions leave in slices, so that nobody has to wait for it. */
  forget(session: Session): void {
    this.#admission.decided(session);
    session.abort?.abort(new StateError('CONNECTION_CLOSED', 'the connection has gone'));
    session.abort = undefined;
    if (session.clientId === '' || this.#sessions.get(session.clientId) !== session) return;
    this.#sessions.delete(session.clientId);
    this.metrics.counts[Metric.sessionTerminated]++;
    this.#removeSlice(session, session.subscriptions.values());
    if (this.events.heard['session.terminated'])
      this.events.emit('session.terminated', { client: session, reason: session.ending?.reason ?? 'closed' });
  }

  #removeSlice(session: Session, left: Iterator<Subscription>): void {
    for (let count = 0; count < FORGET_AT_ONCE; count++) {
      const next = left.next();
      if (next.done) return;
      this.routing.remove(next.value);
    }
    this.work.begin();
    setImmediate(() => {
      this.#removeSlice(session, left);
      this.work.end();
    });
  }

  #shed(isShort: boolean): void {
    const id = 'memory_high_watermark';
    const summary = 'memory in use is above memoryHighWatermark: no new connections, QoS 0 messages are not queued';
    const desc = { severity: 'critical', title: 'memory is short', summary, timestamp: this.clock.now() } as const;
    this.#sys?.alarm(isShort ? 'alert' : 'clear', { id, desc });
    if (!isShort) return;
    this.metrics.counts[Metric.overloadShed]++;
    for (const session of this.#sessions.values()) session.backlog?.shed('qos0_msg');
    this.#sys?.warn('large_heap', 'process', summary);
    this.failed(new BrokerError('MEMORY_SHORT', summary), 'watching memory', undefined);
  }

  /** A client has not read for the zone's slowConsumerTimeout. */
  slowConsumer(session: Session): void {
    this.#sys?.warn('busy_port', session.clientId, 'does not read what is sent to it');
  }
}

/** Make a broker; `await broker.start()` begins. */
export function createBroker(options: BrokerOptions = {}): Broker {
  return new Broker(options);
}

const DROPPED: Partial<Record<DropReason, number>> = {
  no_subscribers: Metric.messagesDroppedNoSubscribers,
  expired: Metric.deliveryDroppedExpired,
  queue_full: Metric.deliveryDroppedQueueFull,
  qos0_msg: Metric.deliveryDroppedQos0Msg,
  too_large: Metric.deliveryDroppedTooLarge,
  no_local: Metric.deliveryDroppedNoLocal,
  hook: Metric.deliveryDroppedHook,
  slow_consumer: Metric.deliveryDroppedSlowConsumer
};

/** The root of the actor system: it has no life of its own, its actors are the broker's and the sessions'. */
const ROOT = {
  transition: (snapshot: unknown) => snapshot,
  getInitialSnapshot: () => ({ status: 'active', output: undefined, error: undefined }),
  getPersistedSnapshot: (snapshot: unknown) => snapshot
};

function topState(value: string): 'idle' | 'connected' | 'disconnected' {
  const dot = value.indexOf('.');
  return (dot < 0 ? value : value.slice(0, dot)) as 'idle' | 'connected' | 'disconnected';
}
