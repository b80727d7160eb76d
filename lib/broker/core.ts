import { channel } from 'node:diagnostics_channel';
import type { Duplex } from 'node:stream';
// By name from this module it is out of the reach of a test framework's fake timers.
import { setImmediate } from 'node:timers';
import { type Clock, systemClock } from '../base/clock.ts';
import { BrokerError, InvalidInput, ProtocolError, StateError } from '../base/errors.ts';
import { WorkCount } from '../base/pending-work.ts';
import { TextMap } from '../base/text-map.ts';
import { TimingWheel } from '../base/timing-wheel.ts';
import { type Connection, isAttached, SHARE } from '../connection/connection.ts';
import { endTurn } from '../connection/output.ts';
import { asError, type DropReason, Events } from '../events/events.ts';
import { type Hook, type HookName, HookRegistry, isThenable } from '../events/hooks.ts';
import { Metric, Metrics } from '../events/metrics.ts';
import { Memory } from '../monitor/memory.ts';
import { type Alarm, SysTopics } from '../monitor/sys.ts';
import { SystemMonitor } from '../monitor/system-monitor.ts';
import { type Message, releaseTurnFrames } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { AuthPacket, ConnectPacket, SubscribePacket, UnsubscribePacket } from '../packets/types.ts';
import type { ClientInfo, TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import { type FeedSource, RetainedFeed } from '../retained/retained-feed.ts';
import { RetainedMessages } from '../retained/retained-messages.ts';
import type { RetainedEntry } from '../retained/retained-store.ts';
import { Routing, type SharedSettings } from '../routing/routing.ts';
import { mayReach, type Route, type Subscription } from '../routing/subscription.ts';
import { isShared } from '../routing/subscriptions.ts';
import type { SessionActions } from '../session/actions.ts';
import { StoredBacklog } from '../session/log.ts';
import type { PublishDecision, SessionHost } from '../session/ports.ts';
import { sessionMachine } from '../session/session.machine.ts';
import { Session, type WillState } from '../session/session.ts';
import { TotalBacklog } from '../session/total-backlog.ts';
import type { Ledger, LedgerHost } from '../store/ledger.ts';
import { matches } from '../topics/topic.ts';
import { Actors, type StartActor } from './actors.ts';
import { Admission } from './admission.ts';
import { DelayedMessages } from './features/delayed.ts';
import { compileRewrite, type Rewrite } from './features/rewrite.ts';
import { HandOver, StoredHandOver } from './hand-over.ts';
import type { Settings } from './options.ts';
import { Persistence } from './persistence.ts';
import { Publishing } from './publishing.ts';
import { Subscribing } from './subscribing.ts';
import { Tables } from './tables.ts';
import { VERSION } from './version.ts';

const PACKET_RECEIVED = channel('embermq:packet:received');
const PACKET_SENT = channel('embermq:packet:sent');

const STORE_ALARM = 'store_failed';

/** Subscriptions of a session that ended which are taken out in one turn. */
const FORGET_AT_ONCE = 1_000;

/**
 * Shares that one turn gives to connections that sent more than theirs, together, and that others may draw on besides. Their streams are
 * not read before they are served, so it also bounds how many of them deliver a chunk in the next turn.
 */
const SHARES_AT_ONCE = 8;
/** How long one turn goes on giving them, should they take more time than their units say. */
const SERVE_MS = 0.5;
/** Turns in a row that leave these connections waiting because a new one came: Node accepts one for each listener in a turn. */
const ARRIVALS_FIRST = 32;

/** Errors that nobody listens to may be many: whatever connects can bring some about. */
const WARNINGS_AT_MOST = 10;

/**
 * What a subscriber of the diagnostics channels `embermq:packet:received` and `embermq:packet:sent` gets. What it throws is an uncaught exception:
 * Node has it so for every channel, whoever publishes.
 */
export interface PacketTap {
  /** The `Broker`. */
  readonly broker: object;
  readonly client: ClientInfo;
  /** The whole packet. Copy it to keep it; `decodePacket(bytes, client.protocolVersion)` shows what it says. */
  readonly bytes: Buffer;
}

/**
 * What goes on inside a broker: the rooms of its state, the turn in which output is gathered, and all that sessions ask of their host.
 * `Broker` is its face towards the app.
 */
export class Core implements SessionHost {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly metrics: Metrics;
  readonly events: Events;
  readonly hooks: HookRegistry;
  readonly work: WorkCount = new WorkCount();
  readonly routing: Routing;
  readonly delayed: DelayedMessages;
  readonly retained: RetainedMessages;
  /** undefined: nothing outlives the process. */
  readonly persistence: Persistence | undefined = undefined;
  readonly ledger: Ledger | undefined;
  readonly tables: Tables;
  readonly node: string;
  readonly publishing: Publishing;
  readonly subscribing: Subscribing;
  readonly outputHighWaterMark: number;
  readonly maxHeldBytes: number;
  readonly totalBacklog: TotalBacklog;
  readonly storedBacklog = new StoredBacklog();
  isSpaceLow = false;
  /** Sessions by client id, connected or not. */
  readonly sessions = new TextMap<Session>();
  /** Connections whose stream has not closed. */
  readonly connections = new Set<Connection>();
  readonly actors: Actors;
  /** It has begun, and not everybody has been told to go. */
  isRunning = false;
  /** Changes when the broker stops: what a hook then decides belongs to a life that is over. */
  life = 0;
  nowMs = 0;
  wallMs = 0;
  isFastPathOpen = true;
  isTapped = false;
  hasPublishHooks = false;
  readonly hasRewrites: boolean;
  /** A zone says `aclNomatch: 'deny'`, which refuses without any hook. */
  readonly #hasDenyingZone: boolean;
  readonly #owner: object;
  readonly #admission: Admission;
  readonly #rewrite: Rewrite;
  readonly #memory: Memory;
  readonly #monitor: SystemMonitor;
  readonly #startActor: StartActor<SessionActions>;
  #sys: SysTopics | undefined;
  turn = 0;
  spareUnits = SHARES_AT_ONCE * SHARE;
  #dirty: Connection[] = [];
  /** Connections that sent more than their share of a turn, in the order in which they are served. */
  #unserved: Connection[] = [];
  /** A connection has come since the last turn, and turns in a row of which that was true. */
  #hasArrival = false;
  #arrivals = 0;
  #pumping: Session[] = [];
  #isTurnScheduled = false;
  /** Streams that came while the broker starts. */
  readonly #early = new Map<Duplex, readonly [meta: TransportInfo, zone: Zone]>();
  /** Connections that count for `maxConnections`: those whose close is not under way. */
  #places = 0;
  #onAllClosed: (() => void) | undefined = undefined;
  #online = 0;
  #subscriberCount = 0;
  /** Errors that nobody listened to and the process was warned of. */
  #warnings = 0;
  #persistentCount = 0;

  /** @param owner the broker, for what is told on the diagnostics channels */
  constructor(settings: Settings, owner: object) {
    this.#owner = owner;
    this.settings = settings;
    this.clock = settings.clock;
    this.node = settings.node;
    this.outputHighWaterMark = settings.outputHighWaterMark;
    this.maxHeldBytes = settings.maxHeldBytes;
    this.totalBacklog = new TotalBacklog(settings.maxTotalMqueueBytes);
    this.wheel = new TimingWheel(
      this.clock,
      settings.timerResolution,
      (error) => this.failed(error, 'a timer', undefined),
      (run) => this.later(run) // behind the poll phase, in which the sockets are read
    );
    this.events = new Events(() => this.#watch());
    this.hooks = new HookRegistry(
      this.clock,
      settings.hookTimeout,
      (error, during, client) => this.failed(error, during, client),
      this.work
    );
    this.routing = new Routing(this.#sharedSettings(), settings.routeCacheTargets);
    if (settings.store !== undefined) this.persistence = new Persistence(this, settings.store, this.#ledgerHost());
    this.ledger = this.persistence?.ledger;
    this.tables = this.persistence?.tables ?? new Tables(undefined);
    this.#admission = new Admission(this);
    this.subscribing = new Subscribing(this);
    this.publishing = new Publishing(this);
    this.retained = new RetainedMessages(this, settings);
    this.#rewrite = compileRewrite(settings.rewrite);
    this.hasRewrites = !this.#rewrite.isEmpty;
    this.#hasDenyingZone = [...settings.zones.values()].some(({ aclNomatch }) => aclNomatch === 'deny');
    this.#memory = new Memory(
      settings.memoryHighWatermark,
      this.wheel,
      (isShort, isChange) => {
        if (isShort) this.#closeUnadmitted();
        if (isChange) this.#shed(isShort);
      },
      settings.memoryUsage
    );
    this.#monitor = new SystemMonitor(this.wheel, settings.timerResolution, (kind, subject, text) =>
      this.#sys?.warn(kind, subject, text)
    );
    this.delayed = new DelayedMessages({
      wheel: this.wheel,
      maxMessages: settings.maxDelayedMessages,
      maxBytes: settings.maxDelayedBytes,
      wallMs: () => this.clock.now(),
      onAdded: (waiting) => this.persistence?.delayedAdded(waiting),
      onRemoved: (waiting) => this.persistence?.delayedRemoved(waiting),
      release: (message, topic) => {
        const done = this.publishing.release(message, topic);
        return this.persistence === undefined ? undefined : done;
      }
    });
    this.metrics = new Metrics({
      connections: () => this.#online,
      channels: () => this.sessions.size,
      sessions: () => this.sessions.size,
      'sessions.persistent': () => this.#persistentCount,
      topics: () => this.routing.filterCount,
      suboptions: () => this.routing.count,
      subscribers: () => this.#subscriberCount,
      subscriptions: () => this.routing.count,
      'subscriptions.shared': () => this.routing.sharedCount,
      routes: () => this.routing.filterCount,
      retained: () => this.retained.count,
      'messages.retained': () => this.retained.count,
      'messages.delayed': () => this.delayed.count
    });
    for (const [name, hook] of Object.entries(settings.hooks))
      if (hook !== undefined) this.hook(name as HookName, hook as never);
    this.actors = new Actors((error) => this.failed(error, 'an actor', undefined));
    this.#startActor = this.actors.logic<SessionActions>(
      sessionMachine,
      'session',
      (actions, error, action) => (actions as Session).broke(error, `the session's ${action}`),
      'disconnected'
    );
    this.readTime();
    this.#watch(); // rewrite rules close the untouched path, too
  }

  // ------------------------------------------------------------------------------------------------------------------ life

  /** The broker accepts: timers run. */
  begin(): void {
    const { settings, wheel, clock, metrics } = this;
    this.readTime();
    this.#memory.start();
    this.retained.rearm();
    this.delayed.rearm();
    this.#sys = new SysTopics({
      node: settings.node,
      version: VERSION,
      clock,
      wheel,
      metrics,
      settings,
      publish: (topic, payload, { qos, retain }) => this.publishing.publishSystem(topic, payload, qos, retain),
      hasSubscribers: (topic) => this.routing.reachesAnybody(topic),
      isHeard: () => this.routing.isSystemHeard,
      nodes: () => [settings.node],
      startedAtMs: clock.monotonic()
    });
    this.#sys.start();
    // another clock's time says nothing of the process
    if (clock === systemClock) this.#monitor.start(this.nowMs);
    this.isRunning = true;
    for (const session of this.sessions.values()) session.rearmOffline();
    for (const [stream, arrival] of this.#early) {
      this.#early.delete(stream); // before it is counted as a connection
      this.open(stream, ...arrival);
    }
  }

  /** The start has failed. */
  turnAway(): void {
    const streams = [...this.#early.keys()];
    this.#early.clear();
    for (const stream of streams) stream.destroy();
  }

  /** Everybody is told to go. */
  drain(will: 'publish' | 'drop' | 'keep'): void {
    this.publishing.publishWaiting(); // the app has been told that these are taken
    this.life++;
    this.#sys?.stop();
    this.#monitor.stop();
    for (const { session, isClosed } of [...this.connections]) {
      try {
        if (!isClosed) session.close('server_shutting_down', ReasonCode.serverShuttingDown, { will });
      } catch (error) {
        session.broke(error, 'closing at the stop');
      }
    }
    // not before: what listeners publish of those that go is published as their wills are
    this.publishing.publishWaiting();
    this.isRunning = false;
  }

  /** Resolves when the last stream has closed. */
  allClosed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.connections.size === 0) resolve();
      else this.#onAllClosed = resolve;
    });
  }

  /** Destroy every stream that has not closed by itself. */
  cutOff(): void {
    for (const connection of this.connections) {
      try {
        connection.destroy();
      } catch (error) {
        this.failed(error, 'destroying a stream', connection.session);
      }
      this.connections.delete(connection);
    }
  }

  /** Nothing is left to ring. */
  end(): void {
    this.life++;
    this.#onAllClosed = undefined;
    this.wheel.clear();
    if (this.ledger === undefined)
      this.delayed.clear((message) => this.dropped(message, 'server_shutting_down', undefined));
  }

  /** Whether a stream has been taken before. */
  hasTaken(stream: Duplex): boolean {
    return isAttached(stream) || this.#early.has(stream);
  }

  /** Begin to serve a stream. */
  open(stream: Duplex, transportInfo: TransportInfo, zone: Zone): void {
    const { maxConnections } = this.settings;
    const isFull = maxConnections > 0 && this.#places + this.#early.size >= maxConnections;
    if (isFull || stream.destroyed) {
      this.metrics.counts[Metric.connectionsRefused]++;
      stream.destroy();
      return;
    }
    if (!this.isRunning) {
      stream.on('error', () => undefined); // it is destroyed then, and refused
      this.#early.set(stream, [transportInfo, zone]);
      return;
    }
    this.nowMs = this.clock.monotonic();
    const session = new Session(this, zone, stream, transportInfo);
    const connection = session.connection as Connection;
    this.connections.add(connection);
    this.#places++;
    this.#hasArrival = true;
    session.actor = this.#startActor(session, 'session');
    connection.open();
  }

  placeFreed(): void {
    this.#places--;
  }

  revive(session: Session): void {
    if (session.actor === undefined) session.actor = this.#startActor(session, session.clientId, 'disconnected');
  }

  streamClosed(connection: Connection): void {
    this.connections.delete(connection);
    if (this.connections.size === 0) this.#onAllClosed?.();
  }

  /** Register a hook. @returns a function that takes it away again */
  hook<N extends HookName>(name: N, hook: Hook<N>, isFirst = false): () => void {
    const remove = this.hooks.add(name, hook, isFirst);
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
    this.hasPublishHooks =
      this.hooks.authorizePublish.length > 0 || this.hooks.publish.length > 0 || this.#hasDenyingZone;
    this.isFastPathOpen =
      !this.hasPublishHooks &&
      this.hooks.deliver.length === 0 &&
      !heard['message.publish'] &&
      !heard['message.delivered'] &&
      !heard['message.dropped'] &&
      !this.isTapped &&
      !this.hasRewrites;
  }

  // ------------------------------------------------------------------------------------------------------- what sessions ask

  /** Read the clocks anew, where no chunk has. */
  readTime(): void {
    this.nowMs = this.clock.monotonic();
    this.wallMs = this.clock.now();
  }

  get isShedding(): boolean {
    return this.#memory.isShort;
  }

  /** Memory stays above the mark, though the backlogs keep to their bounds. */
  get isMemoryExhausted(): boolean {
    return this.#memory.isExhausted;
  }

  get isRefusing(): boolean {
    return this.#memory.isExhausted || this.isSpaceLow;
  }

  handOver(session: Session): ((message: Message) => boolean) | undefined {
    // at a stop the other members in memory go as well
    const handOver = session.ending?.reason === 'server_shutting_down' ? undefined : this.#handOverOf(session);
    return handOver && ((message) => handOver.give(message));
  }

  handOverStored(session: Session, reason: DropReason): boolean {
    const { log } = session;
    const handOver = log === undefined || log.count === 0 ? undefined : this.#handOverOf(session);
    if (log === undefined || handOver === undefined) return false;
    this.persistence?.handOver(session, new StoredHandOver(this, session, log, handOver, reason));
    return true;
  }

  #handOverOf({ subscriptions, mountpoint }: Session): HandOver | undefined {
    if (subscriptions.shared === 0) return undefined;
    const groupOf = (subscription: Subscription) => this.routing.groupOf(subscription);
    return new HandOver(subscriptions.values(), mountpoint, groupOf);
  }

  refuses(message: Message, route: Route): boolean {
    return this.publishing.refuses(message, route);
  }

  flushLater(connection: Connection): void {
    this.#dirty.push(connection);
    this.#scheduleTurn();
  }

  /** Run something in the next turn. */
  later(run: () => void): void {
    this.work.begin();
    setImmediate(() => {
      try {
        run();
      } catch (error) {
        this.failed(error, 'going on in the next turn', undefined);
      }
      this.work.end();
    });
  }

  pumpLater(session: Session): void {
    this.#pumping.push(session);
    this.#scheduleTurn();
  }

  serveLater(connection: Connection): void {
    this.#unserved.push(connection);
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
    this.turn++;
    this.spareUnits = SHARES_AT_ONCE * SHARE;
    const dirty = this.#dirty;
    const pumping = this.#pumping;
    if (pumping.length > 0) {
      this.#pumping = [];
      this.readTime();
      for (const session of pumping) {
        try {
          session.pumpOn();
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
    this.ledger?.turnEnded(); // messages lie unpacked while they are written
    releaseTurnFrames();
    if (this.#unserved.length > 0) this.#serve();
    this.work.end();
  };

  /**
   * Serve connections that sent more than their share of a turn, in rotation: each a share, or more where few wait. It comes behind the flush
   * and is short, so that the others wait for it as little as possible.
   */
  #serve(): void {
    this.#arrivals = this.#hasArrival ? this.#arrivals + 1 : 0;
    this.#hasArrival = false;
    if (this.#arrivals % (ARRIVALS_FIRST + 1) !== 0) {
      this.#scheduleTurn();
      return;
    }
    const waiting = this.#unserved; // whoever needs another share puts itself behind the others
    const shares = Math.max(1, Math.floor(SHARES_AT_ONCE / waiting.length));
    const untilMs = this.clock.monotonic() + SERVE_MS;
    let at = 0;
    let left = SHARES_AT_ONCE;
    while (at < waiting.length && left > 0 && (at === 0 || this.clock.monotonic() < untilMs)) {
      const connection = waiting[at++];
      left -= shares;
      try {
        connection.serve(shares * SHARE);
      } catch (error) {
        connection.session.broke(error, 'reading a chunk');
      }
    }
    this.#unserved = waiting.slice(at);
    if (this.#unserved.length > 0) this.#scheduleTurn();
  }

  lookForTaps(): void {
    const isTapped = PACKET_RECEIVED.hasSubscribers || PACKET_SENT.hasSubscribers;
    if (isTapped === this.isTapped) return;
    this.isTapped = isTapped;
    this.#watch();
  }

  tapReceived(connection: Connection, bytes: Buffer): void {
    PACKET_RECEIVED.publish({ broker: this.#owner, client: connection.session, bytes } satisfies PacketTap);
  }

  tapSent(connection: Connection, bytes: Buffer): void {
    PACKET_SENT.publish({ broker: this.#owner, client: connection.session, bytes } satisfies PacketTap);
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

  freshened(route: Route): Route {
    return this.routing.freshened(route);
  }

  route(message: Message, route: Route): number {
    return this.publishing.route(message, route);
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
    this.publishing.routeRun(connection, route, buf, start, end, count, longest);
  }

  decidePublish(message: Message, route: Route, session: Session): PublishDecision | Promise<PublishDecision> {
    return this.publishing.decide(message, route, session);
  }

  delay(message: Message): number {
    return this.publishing.delay(message);
  }

  rewrite(topic: string, kind: 'publish' | 'subscribe'): string {
    return this.hasRewrites ? this.#rewrite.rewrite(topic, kind) : topic;
  }

  mayDeliver(message: Message, session: Session): boolean {
    for (const hook of this.hooks.deliver) {
      const answer = this.hooks.call('deliver', hook, { message, client: session as ClientInfo }, false, session);
      if (answer === false) return false;
      if (typeof answer === 'object' && isThenable(answer)) {
        const text = 'deliver: expected true, false or undefined at once, got a promise';
        const wrong = new InvalidInput('HOOK_INVALID', 'deliver', 'an answer at once', 'a promise', text);
        this.failed(wrong, 'hook deliver', session);
        return false;
      }
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
    this.subscribing.subscribe(session, packet);
  }

  onUnsubscribe(session: Session, packet: UnsubscribePacket): void {
    this.subscribing.unsubscribe(session, packet);
  }

  publishWill(session: Session, will: WillState): void {
    const done = this.publishing.will(session, will);
    if (done !== undefined) this.persistence?.willUnderWay(session, will, done);
  }

  keepWill(session: Session): void {
    this.persistence?.keepWill(session);
  }

  #sharedSettings(): SharedSettings {
    const { sharedSubscriptionStrategy, sharedDispatchAckEnabled } = this.settings;
    const isExhausted = () => this.isMemoryExhausted;
    return {
      sharedSubscriptionStrategy,
      // a message that some member can take at once does not wait for another one
      get sharedDispatchAckEnabled() {
        return sharedDispatchAckEnabled || isExhausted();
      }
    };
  }

  #ledgerHost(): LedgerHost {
    return {
      clock: this.clock,
      wheel: this.wheel,
      work: this.work,
      turnLater: () => this.#scheduleTurn(),
      storeFailed: (error) => this.#storeFailed(error),
      storeRecovered: () => this.#storeRecovered(),
      written: (bytes) => this.persistence?.written(bytes),
      failed: (error, during) => this.failed(error, during, undefined)
    };
  }

  #storeFailed(error: BrokerError): void {
    const summary = `${error.message}. What must be persisted is refused until the store can be written again.`;
    this.alarm('alert', { id: STORE_ALARM, title: 'the store failed', summary });
    this.failed(new BrokerError(error.code, summary, { cause: error.cause }), 'writing to the store', undefined);
    if (this.events.heard['store.failed']) this.events.emit('store.failed', { error });
    this.persistence?.lookAtSpace();
  }

  #storeRecovered(): void {
    this.alarm('clear', { id: STORE_ALARM, title: 'the store failed', summary: 'the store is written again' });
    if (this.events.heard['store.recovered']) this.events.emit('store.recovered', {});
  }

  persistsAny({ targets, groups }: Route): boolean {
    return (
      targets.some(({ subscriber }) => subscriber.isPersisted) || groups.some(({ mayPersist: mayKeep }) => mayKeep)
    );
  }

  sweep(session: number): void {
    this.persistence?.sweep(session);
  }

  retainedExpired(topic: string): void {
    this.persistence?.retainedRemoved(topic);
  }

  retain(message: Message): void {
    const { persistence } = this;
    const before = persistence === undefined ? undefined : this.retained.stored(message.topic);
    const hasPlace = !this.isSpaceLow || message.isSystem || this.retained.stored(message.topic) !== undefined;
    const isTaken = hasPlace && this.retained.put(message);
    if (!isTaken) this.dropped(message, 'not_retained', undefined);
    if (!message.isSystem) persistence?.retained(message, isTaken && message.bytes > message.payloadAt, before);
    this.metrics.note('retained', this.retained.count);
  }

  /** What replaced or deleted a retained message was refused after all. @param before what is retained again; undefined: nothing */
  retainAgain(topic: string, before: RetainedEntry<Message> | undefined): void {
    if (before === undefined) this.retained.delete(topic);
    else this.retained.putBack(before);
    this.metrics.note('retained', this.retained.count);
  }

  readonly feedSource = feedSource(this);

  /** What a new subscription is to get of the retained messages; undefined: nothing. Cheap: they are looked up later. */
  retainedFeed(subscription: Subscription): RetainedFeed | undefined {
    const { filter } = subscription;
    if (filter.startsWith('$share/') || filter.startsWith('$queue/')) return undefined;
    return this.retained.mayMatch(filter) ? new RetainedFeed(subscription, this.feedSource) : undefined;
  }

  dropped(message: Message, reason: DropReason, client: ClientInfo | undefined): void {
    if (message.isSystem) return;
    const { counts } = this.metrics;
    if (client !== undefined) counts[Metric.deliveryDropped]++;
    else if (reason !== 'not_retained') counts[Metric.messagesDropped]++;
    const counter = client === undefined && reason === 'expired' ? Metric.messagesDroppedExpired : DROPPED[reason];
    if (counter !== undefined) counts[counter]++;
    if (reason === 'expired') counts[Metric.messagesExpired]++;
    if (this.events.heard['message.dropped']) this.events.emit('message.dropped', { message, reason, client });
  }

  /** Announce a condition that an operator should know, or that it is over. */
  alarm(change: 'alert' | 'clear', { id, title, summary }: Alarm): void {
    this.#sys?.alarm(change, { id, desc: { severity: 'critical', title, summary, timestamp: this.clock.now() } });
  }

  failed(thrown: unknown, during: string, client: ClientInfo | undefined): void {
    const error = asError(thrown);
    if (error instanceof StateError && error.code === 'STORE_CLOSED') return; // nobody waits any more for what was being read
    if (this.events.heard.error)
      this.events.emit('error', client === undefined ? { error, during } : { error, during, client });
    else if (!(thrown instanceof ProtocolError) && this.#warnings < WARNINGS_AT_MOST) {
      const isLast = ++this.#warnings === WARNINGS_AT_MOST;
      const hint = `listen to the broker's error event${isLast ? '; further errors are not reported' : ''}`;
      process.emitWarning(new BrokerError('UNHEARD', `${during}: ${error.message} (${hint})`, { cause: error }));
    }
  }

  // ---------------------------------------------------------------------------------------------------- the index of sessions

  /** The session kept under a client id. */
  stored(clientId: string): Session | undefined {
    return this.sessions.get(clientId);
  }

  hasRoomForSession(): boolean {
    const { maxSessions } = this.settings;
    return maxSessions === 0 || this.sessions.size < maxSessions;
  }

  hasRoomForSubscription(): boolean {
    const { maxTotalSubscriptions } = this.settings;
    return maxTotalSubscriptions === 0 || this.routing.count < maxTotalSubscriptions;
  }

  keep(session: Session): void {
    this.sessions.set(session.clientId, session);
    this.metrics.note('sessions', this.sessions.size);
    this.metrics.note('channels', this.sessions.size);
  }

  /** Count a session among the persistent ones, or no longer, as its expiry says. */
  notePersistence(session: Session, isPersistent: boolean): void {
    if (session.isCountedPersistent === isPersistent) return;
    session.isCountedPersistent = isPersistent;
    this.#persistentCount += isPersistent ? 1 : -1;
    if (isPersistent) this.metrics.note('sessions.persistent', this.#persistentCount);
  }

  /** Put a session's subscription into the index. */
  addSubscription(session: Session, subscription: Subscription, isRestored = false): void {
    const { routing, metrics } = this;
    session.subscriptions.add(subscription);
    if (!isRestored) session.log?.subscribed(subscription.filter);
    routing.add(subscription);
    if (session.subscriptions.size === 1) metrics.note('subscribers', ++this.#subscriberCount);
    metrics.note('subscriptions', routing.count);
    metrics.note('suboptions', routing.count);
    metrics.note('subscriptions.shared', routing.sharedCount);
    metrics.note('topics', routing.filterCount);
    metrics.note('routes', routing.filterCount);
  }

  /** Take one out again. */
  removeSubscription(session: Session, subscription: Subscription): void {
    session.subscriptions.delete(subscription.filter);
    session.log?.subscribed(subscription.filter);
    this.routing.remove(subscription);
    if (session.subscriptions.size === 0) this.#subscriberCount--;
  }

  get isAnybodyOnline(): boolean {
    return this.#online > 0;
  }

  connected(session: Session, sessionPresent: boolean): void {
    this.#sys?.connected(session);
    if (this.events.heard['client.connected'])
      this.events.emit('client.connected', { client: session, sessionPresent });
  }

  sessionChanged(session: Session): void {
    const isOnline = session.state === 'connected';
    this.notePersistence(session, session.isPersistent);
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
        ? this.subscribing.subscribeFor(session, { ...request, topic })
        : ReasonCode.topicFilterInvalid;
      if (code >= 0x80)
        this.failed(
          new BrokerError('AUTO_SUBSCRIPTION_FAILED', `"${topic}" can not be subscribed (0x${code.toString(16)})`),
          'subscribing at connect',
          session
        );
    }
  }

  /**
   * Take an ended session out. Many subscriptions leave in slices, so that nobody has to wait for it; the shared ones leave at once, or their
   * groups would choose this session again, for what is handed over as well.
   */
  forget(session: Session): void {
    session.abort?.abort(new StateError('CONNECTION_CLOSED', 'the connection has gone'));
    session.abort = undefined;
    if (session.clientId === '' || this.sessions.get(session.clientId) !== session) return;
    this.sessions.delete(session.clientId);
    this.metrics.counts[Metric.sessionTerminated]++;
    this.notePersistence(session, false);
    if (session.subscriptions.size > 0) this.#subscriberCount--;
    if (session.subscriptions.shared > 0)
      for (const each of session.subscriptions.values()) if (isShared(each.filter)) this.routing.remove(each);
    this.#removeSlice(session, session.subscriptions.values());
    if (this.events.heard['session.terminated'])
      this.events.emit('session.terminated', { client: session, reason: session.ending?.reason ?? 'closed' });
  }

  #removeSlice(session: Session, left: Iterator<Subscription>): void {
    for (let count = 0; count < FORGET_AT_ONCE; count++) {
      const next = left.next();
      if (next.done) return;
      if (!isShared(next.value.filter)) this.routing.remove(next.value);
    }
    this.later(() => this.#removeSlice(session, left));
  }

  /** Whether a client connects to a stored session of its own: while memory is short it may, because what is queued for it is then sent. */
  isReturning({ cleanStart, clientId }: Session): boolean {
    return !cleanStart && this.stored(clientId) !== undefined;
  }

  /** Memory is short: connections whose CONNECT has not been accepted are closed first. */
  #closeUnadmitted(): void {
    const text = 'the broker is short of memory (option memoryHighWatermark)';
    for (const connection of this.connections) {
      const { session } = connection;
      if (connection.isClosed || session.state !== 'idle' || this.isReturning(session)) continue;
      session.fail(new ProtocolError(ReasonCode.serverBusy, text));
    }
  }

  /** Sessions that outlive their connections. */
  get persistentCount(): number {
    return this.#persistentCount;
  }

  /** Whether the reserve of the store is in use. */
  spaceIsLow(isLow: boolean): void {
    if (isLow === this.isSpaceLow) return;
    this.isSpaceLow = isLow;
    const summary = `${this.ledger?.store.name}: the space of the store is used up; writes that would make it grow are refused until space is free`;
    this.alarm(isLow ? 'alert' : 'clear', { id: 'store_space_low', title: 'the store is full', summary });
    if (isLow) this.failed(new BrokerError('STORE_SPACE_LOW', summary), 'looking at the space of the store', undefined);
  }

  #shed(isShort: boolean): void {
    const id = 'memory_high_watermark';
    const summary =
      'memory in use is above memoryHighWatermark: connections whose CONNECT has not been accepted, and new ones, are closed, except those of clients that return to a stored session; QoS 0 messages are not queued';
    this.alarm(isShort ? 'alert' : 'clear', { id, title: 'memory is short', summary });
    if (!isShort) return;
    this.metrics.counts[Metric.overloadShed]++;
    for (const session of this.sessions.values()) session.backlog?.shed('qos0_msg');
    this.#sys?.warn('large_heap', 'process', summary);
    this.failed(new BrokerError('MEMORY_SHORT', summary), 'watching memory', undefined);
  }

  /** A client has not read for the zone's slowConsumerTimeout. */
  slowConsumer(session: Session): void {
    this.#sys?.warn('busy_port', session.clientId, 'does not read what is sent to it');
  }
}

const DROPPED: Partial<Record<DropReason, number>> = {
  no_subscribers: Metric.messagesDroppedNoSubscribers,
  expired: Metric.deliveryDroppedExpired,
  queue_full: Metric.deliveryDroppedQueueFull,
  total_queue_full: Metric.deliveryDroppedQueueFull,
  qos0_msg: Metric.deliveryDroppedQos0Msg,
  too_large: Metric.deliveryDroppedTooLarge,
  no_local: Metric.deliveryDroppedNoLocal,
  hook: Metric.deliveryDroppedHook,
  slow_consumer: Metric.deliveryDroppedSlowConsumer,
  not_retained: Metric.messagesNotRetained
};

/** Where feeds have the retained messages from. */
function feedSource(core: Core): FeedSource {
  return {
    get next() {
      return core.retained.next;
    },
    match: ({ filter, subscriber }) => {
      const entries = core.retained.match(filter);
      if (subscriber.mountpoint === '') return entries;
      return entries.filter(({ topic }) => mayReach(subscriber.mountpoint, filter, topic));
    },
    reaches: ({ filter, subscriber }, topic) => matches(filter, topic) && mayReach(subscriber.mountpoint, filter, topic)
  };
}
