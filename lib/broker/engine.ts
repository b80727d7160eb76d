import { type Clock, systemClock } from '../base/clock.ts';
import { BrokerError } from '../base/errors.ts';
import { WorkCount } from '../base/pending-work.ts';
import { TimeReading } from '../base/time-reading.ts';
import { TimingWheel } from '../base/timing-wheel.ts';
import { Announcer } from '../events/announcer.ts';
import { Events } from '../events/events.ts';
import { type Hook, type HookName, type HookOptions, HookRegistry } from '../events/hooks.ts';
import { Metrics } from '../events/metrics.ts';
import { PacketTaps } from '../monitor/packet-taps.ts';
import { Pressure } from '../monitor/pressure.ts';
import { SysTopics } from '../monitor/sys.ts';
import { SysNotices } from '../monitor/sys-notices.ts';
import { SystemMonitor } from '../monitor/system-monitor.ts';
import type { RetainedMessages } from '../retained/retained-messages.ts';
import { Directory } from '../routing/directory.ts';
import { Routing, type SharedSettings } from '../routing/routing.ts';
import { remapTopics } from '../session/handlers/publish.ts';
import { HANDLERS } from '../session/handlers/tables.ts';
import type { SessionPorts } from '../session/ports.ts';
import type { Session } from '../session/session.ts';
import { Ledger, type LedgerHost } from '../store/ledger.ts';
import { Actors } from './actors.ts';
import { Admission } from './admission.ts';
import { Connections } from './connections.ts';
import { DelayedMessages } from './features/delayed.ts';
import { Retainer } from './features/retainer.ts';
import { TopicRewrite } from './features/rewrite.ts';
import { HandOvers } from './hand-over.ts';
import { Life } from './life.ts';
import type { Settings } from './options.ts';
import { Persistence } from './persistence.ts';
import { Publishing } from './publishing.ts';
import { SessionFactory } from './session-factory.ts';
import { SessionIndex } from './session-index.ts';
import { StoredSessions } from './stored-sessions.ts';
import { Subscribing } from './subscribing.ts';
import { Sweeper } from './sweeper.ts';
import { Tables } from './tables.ts';
import { Turn } from './turn.ts';
import { VERSION } from './version.ts';
import { Wills } from './wills.ts';

const STORE_ALARM = 'store_failed';

/**
 * Creates and connects the parts of a broker. Each part declares an interface with what it needs; this object implements them and contains no
 * logic except starting and stopping the parts together. `Broker` is the public interface.
 */
export class Engine {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly time: TimeReading;
  readonly work = new WorkCount();
  readonly life = new Life();
  readonly wheel: TimingWheel;
  readonly events: Events;
  readonly metrics: Metrics;
  readonly announcer: Announcer;
  readonly hooks: HookRegistry;
  readonly taps: PacketTaps;
  readonly notices: SysNotices;
  readonly turn: Turn;
  readonly routing: Routing;
  readonly pressure: Pressure;
  readonly sessions: SessionIndex;
  readonly connections: Connections;
  readonly retained: RetainedMessages;
  readonly retainer: Retainer;
  readonly delayed: DelayedMessages;
  /** undefined: there is no store. */
  readonly storedSessions: StoredSessions | undefined;
  /** undefined: there is no store. */
  readonly persistence: Persistence | undefined;
  readonly ledger: Ledger | undefined;
  readonly #sweeper: Sweeper | undefined;
  readonly tables: Tables;
  readonly #handOvers: HandOvers;
  readonly rewrites: TopicRewrite;
  readonly wills: Wills;
  readonly directory: Directory;
  readonly publishing: Publishing;
  readonly subscribing: Subscribing;
  readonly admission: Admission;
  readonly actors: Actors;
  readonly sessionFactory: SessionFactory;
  readonly #monitor: SystemMonitor;

  /** @param broker the `Broker` named in messages of the diagnostics channels */
  constructor(settings: Settings, broker: object) {
    this.settings = settings;
    this.clock = settings.clock;
    this.time = new TimeReading(this.clock);
    this.wheel = new TimingWheel(
      this.clock,
      settings.timerResolution,
      (error) => this.announcer.failed(error, 'a timer', undefined),
      (run) => this.turn.later(run) // after the poll phase, in which sockets are read
    );
    const watch = () => this.publishing?.hooks.watch();
    this.events = new Events(watch, (filter) => this.routing.observe(filter));
    this.metrics = new Metrics(this.#gauges());
    this.announcer = new Announcer(this.events, this.metrics);
    this.hooks = new HookRegistry(
      this.clock,
      settings.hookTimeout,
      (error, during, client) => this.announcer.failed(error, during, client),
      this.work
    );
    this.taps = new PacketTaps(broker, watch);
    this.notices = new SysNotices(() => this.clock.now());
    this.turn = new Turn(this, () => this.ledger?.turnEnded());
    this.routing = new Routing(this.#sharedSettings(), settings.routeCacheTargets);
    this.pressure = new Pressure({
      ...this.#watched(),
      closeUnadmitted: () => this.admission.closeUnadmitted(this.connections.all),
      shedQos0: () => this.sessions.shedQos0()
    });
    this.sessions = new SessionIndex(this);
    this.connections = new Connections(this);
    this.ledger = settings.store && new Ledger(settings.store, this.#ledgerHost(), settings.maxUnwrittenBytes);
    this.storedSessions = this.ledger && new StoredSessions(this.ledger);
    this.#sweeper = this.ledger && new Sweeper(this, this.ledger);
    this.tables = new Tables(this.ledger);
    this.retainer = new Retainer(this);
    this.retained = this.retainer.messages;
    this.delayed = this.#delayedMessages();
    this.#handOvers = new HandOvers(this);
    this.rewrites = new TopicRewrite(settings.rewrite, () => this.#rewritesChanged());
    this.directory = new Directory({
      node: settings.node,
      sessions: this.sessions,
      routing: this.routing,
      retained: this.retained,
      pause: () => new Promise((resolve) => this.turn.later(resolve))
    });
    this.publishing = new Publishing(this);
    this.wills = new Wills(this);
    this.subscribing = new Subscribing(this);
    this.admission = new Admission(this);
    this.actors = new Actors((error) => this.announcer.failed(error, 'an actor', undefined));
    this.#monitor = new SystemMonitor(this.wheel, settings.timerResolution, (kind, subject, text) =>
      this.notices.warn(kind, subject, text)
    );
    this.sessionFactory = new SessionFactory(this.#portsOfSessions(), this.actors);
    this.persistence = this.#persistence();
    for (const [name, hook] of Object.entries(settings.hooks))
      if (hook !== undefined) this.hook(name as HookName, hook as never);
    this.publishing.hooks.watch();
  }

  // ------------------------------------------------------------------------------------------------------------------ life

  /** Start all parts and accept connections. */
  begin(): void {
    this.time.read();
    this.pressure.start();
    this.retained.rearm();
    this.delayed.rearm();
    this.notices.start(this.#sysTopics());
    // A virtual clock does not measure the process.
    if (this.clock === systemClock) this.#monitor.start(this.time.nowMs);
    this.life.begin();
    for (const session of this.sessions.values()) session.lifecycle.rearmOffline();
    this.connections.openEarly();
  }

  /** Disconnect all clients. */
  drain(will: 'publish' | 'drop' | 'keep'): void {
    this.publishing.own.publishWaiting(); // the broker has accepted these messages
    this.life.next();
    this.notices.stop();
    this.#monitor.stop();
    for (const { session, isClosed } of [...this.connections.all]) {
      try {
        if (!isClosed) session.lifecycle.close('server_shutting_down', { will });
      } catch (error) {
        session.failInternally(error, 'closing at the stop');
      }
    }
    // After the disconnections, so that messages published by listeners of their events are sent, as wills are.
    this.publishing.own.publishWaiting();
    this.life.end();
  }

  /** Remove all timers and pending work. */
  end(): void {
    this.life.next();
    this.connections.forgetWaiting();
    this.wheel.clear();
    if (this.ledger === undefined)
      this.delayed.clear((message) => this.announcer.dropped(message, 'server_shutting_down', undefined));
  }

  /** Register a hook. @returns a function that removes it */
  hook<N extends HookName>(name: N, hook: Hook<N>, options?: HookOptions): () => void {
    const remove = this.hooks.add(name, hook, options);
    const changed = () => {
      this.publishing.hooks.watch();
      for (const connection of this.connections.all) connection.reader.forgetVerdicts();
    };
    changed();
    return () => {
      remove();
      changed();
    };
  }

  // ---------------------------------------------------------------------------------------------------------------- wiring

  #gauges(): ConstructorParameters<typeof Metrics>[0] {
    return {
      connections: () => this.sessions.onlineCount,
      channels: () => this.sessions.count,
      sessions: () => this.sessions.count,
      'sessions.persistent': () => this.sessions.persistentCount,
      topics: () => this.routing.filterCount,
      suboptions: () => this.routing.count,
      subscribers: () => this.sessions.subscriberCount,
      subscriptions: () => this.routing.count,
      'subscriptions.shared': () => this.routing.sharedCount,
      routes: () => this.routing.filterCount,
      retained: () => this.retained.count,
      'messages.retained': () => this.retained.count,
      'messages.delayed': () => this.delayed.count
    };
  }

  #watched() {
    const { wheel, metrics, announcer, notices, settings } = this;
    return { wheel, metrics, announcer, notices, settings };
  }

  #sharedSettings(): SharedSettings {
    const { sharedSubscriptionStrategy, sharedDispatchAckEnabled } = this.settings;
    const isExhausted = () => this.pressure.isMemoryExhausted;
    return {
      sharedSubscriptionStrategy,
      // While memory is exhausted, prefer a member that can receive the message immediately.
      get sharedDispatchAckEnabled() {
        return sharedDispatchAckEnabled || isExhausted();
      }
    };
  }

  /** Rewriting was started or stopped: topics that clients have published to before are mapped again. */
  #rewritesChanged(): void {
    this.publishing.hooks.watch();
    for (const { session } of this.connections.all) remapTopics(session);
  }

  #delayedMessages(): DelayedMessages {
    const { settings } = this;
    return new DelayedMessages({
      wheel: this.wheel,
      life: this.life,
      maxMessages: settings.maxDelayedMessages,
      maxBytes: settings.maxDelayedBytes,
      wallMs: () => this.clock.now(),
      ledger: this.ledger,
      release: (message, topic) => {
        const done = this.publishing.own.release(message, topic);
        return this.ledger === undefined ? undefined : done;
      }
    });
  }

  #sysTopics(): SysTopics {
    const { settings, clock, wheel, metrics } = this;
    return new SysTopics({
      node: settings.node,
      version: VERSION,
      clock,
      wheel,
      metrics,
      settings,
      publish: (topic, payload, { qos, retain }) => this.publishing.own.publishSystem(topic, payload, qos, retain),
      hasSubscribers: (topic) => this.routing.reachesAnybody(topic),
      isHeard: () => this.routing.isSystemHeard,
      nodes: () => [settings.node],
      startedAtMs: clock.monotonic()
    });
  }

  #persistence(): Persistence | undefined {
    const { ledger, storedSessions } = this;
    const sweeper = this.#sweeper;
    if (ledger === undefined || storedSessions === undefined || sweeper === undefined) return undefined;
    return new Persistence(this, {
      ledger,
      storedSessions,
      sweeper,
      pressure: this.pressure,
      sessions: this.sessions,
      retainer: this.retainer,
      delayed: this.delayed,
      tables: this.tables,
      wills: this.wills,
      handOvers: this.#handOvers,
      sessionFactory: this.sessionFactory
    });
  }

  #ledgerHost(): LedgerHost {
    return {
      clock: this.clock,
      wheel: this.wheel,
      work: this.work,
      turnLater: () => this.turn.schedule(),
      storeFailed: (error) => this.#storeFailed(error),
      storeRecovered: () => this.#storeRecovered(),
      written: (bytes) => this.persistence?.written(bytes),
      failed: (error, during) => this.announcer.failed(error, during, undefined)
    };
  }

  #storeFailed(error: BrokerError): void {
    const summary = `${error.message}. Operations that must be persisted are refused until the store can be written again.`;
    this.notices.alarm('alert', { id: STORE_ALARM, title: 'the store failed', summary });
    const announced = new BrokerError(error.code, summary, { cause: error.cause });
    this.announcer.failed(announced, 'writing to the store', undefined);
    if (this.events.heard['store.failed']) this.events.emit('store.failed', { error });
    this.persistence?.checkSpace();
  }

  #storeRecovered(): void {
    const summary = 'the store can be written again';
    this.notices.alarm('clear', { id: STORE_ALARM, title: 'the store failed', summary });
    if (this.events.heard['store.recovered']) this.events.emit('store.recovered', {});
  }

  #portsOfSessions(): SessionPorts<Session> {
    const { sessions } = this;
    return {
      node: this.settings.node,
      clock: this.clock,
      time: this.time,
      wheel: this.wheel,
      work: this.work,
      metrics: this.metrics,
      events: this.events,
      hooks: this.hooks,
      announcer: this.announcer,
      limits: this.settings,
      turn: this.turn,
      taps: this.taps,
      routing: this.routing,
      publishing: this.publishing,
      rewrites: this.rewrites,
      retained: this.retained,
      connections: this.connections,
      admission: this.admission,
      subscribing: this.subscribing,
      sessions: {
        revive: (session) => this.sessionFactory.revive(session),
        forget: (session) => sessions.forget(session),
        changed: (session) => sessions.changed(session),
        slowConsumer: (session) => sessions.slowConsumer(session)
      },
      wills: this.wills,
      handOvers: this.#handOvers,
      sweeper: { add: (session) => this.#sweeper?.add(session) },
      pressure: this.pressure,
      ledger: this.ledger,
      handlers: HANDLERS
    };
  }
}
