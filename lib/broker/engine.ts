// `Engine` makes the parts of a broker; its constructor shows their order and what each of them needs. First come the
// `Services` (settings, clock, timing wheel, turn, events, hooks, metrics, alarms, traces, reports), which know no
// part and which any part may receive. Each part also receives the parts made before it that it uses; a part that
// calls a later one is handed a function. The `Engine` itself goes only to
// `BrokerLifecycle`, which starts and stops the parts together, and to what reads its fields later: `makeLedger`,
// `makeStreams`, `makeRules`, `effectsOf` and `AppSubscriptions`. A part that changes persisted state has the records of it, and notes its changes at the ledger itself.
// The parts are in `lib/broker` if no folder is given.
//
// - `Pressure` (monitor): the limits of memory and of the store, and what is refused or dropped when they are reached
// - `Routing` (routing), `SessionIndex`: the subscriptions by topic filter; the sessions by client id
// - `Ledger` (store), `Tables`, `StoredSessions`: what is written to the store: commits; the tables of the app; the
//   logs of sessions, the records of wills and the deletion of old segments
// - `Outboxes` (outbox): the queues of what leaves the process on its own initiative: an `Outbox` for each target
//   decides when to send, its `Entries` what may be sent; entries of all persisted outboxes have one
//   `NumberedRecords`
// - `Retainer`, `DelayedMessages`, `TopicRewrite`: the features that keep or change messages
// - `Publishing`, `Subscribing`: the path of a message, with `MessageHooks` and `OwnMessages`; SUBSCRIBE and
//   UNSUBSCRIBE, with `FilterDecisions` and `FilterRequests`
// - `AccessExplainer`: what would decide about a topic, without deciding
// - `RightsReview`, `SourceReview`: authorizing subscriptions again: by the rules that have changed; by asking
//   sources whose answers expire, with a `QuestionPool` for the clients that return
// - `HandOvers`, `Wills`: what happens to the messages and the will of a session that has ended
// - `Admission`: CONNECT and AUTH
// - `Actors`, `Connections`, `SessionFactory`: running charts, and observing them; the open streams; making sessions,
//   with what they use of the broker (`SessionPorts`)
// - `Bans`: what follows from a ban: event, disconnections, deletion after its end; the detection of flapping
// - `Persistence`: opening and closing the store, restoring its content, its space
// - `Directory` (routing), `SystemMonitor` (monitor): the lists; warnings of long garbage collections and turns
// - `Features`: starting and stopping features
// - `Configuration`: the options with their sources; changing them at run time. The settings are plain fields, which
//   it assigns; a changed zone is a new object for the connections that follow
// - `AppSubscriptions`, `BrokerLifecycle`: made by `Broker`: the handlers and iterables of the app; starting and
//   stopping, with the listeners

import { AccessControl } from '../access/access-control.ts';
import { admitsAnonymous } from '../access/authentication.ts';
import { systemClock } from '../base/clock.ts';
import type { Hook, HookName, HookOptions } from '../events/hooks.ts';
import { type GaugeReaders, Metric } from '../events/metrics.ts';
import { AuditLog } from '../monitor/audit.ts';
import { BlockedClients } from '../monitor/blocked-clients.ts';
import { BusiestClients } from '../monitor/busiest-clients.ts';
import { Drops } from '../monitor/drops.ts';
import { Log } from '../monitor/log.ts';
import { MachineMonitor } from '../monitor/machine/machine-monitor.ts';
import { Pressure } from '../monitor/machine/pressure.ts';
import { SystemMonitor } from '../monitor/machine/system-monitor.ts';
import { MetricHistory } from '../monitor/metric-history.ts';
import type { Monitor } from '../monitor/monitor.ts';
import { Reasons } from '../monitor/reasons/reasons.ts';
import { SlowSubscriptions } from '../monitor/slow-subscriptions.ts';
import { StoreMetrics } from '../monitor/store-metrics.ts';
import { SysTopics } from '../monitor/sys.ts';
import { Tails } from '../monitor/tail/tails.ts';
import { TopicCounters } from '../monitor/topic-counters.ts';
import { KeptTraces } from '../monitor/traces/kept-traces.ts';
import { Outboxes } from '../outbox/outboxes.ts';
import type { Message } from '../packets/message.ts';
import type { ListenerHandle } from '../records/listener.ts';
import { Directory } from '../routing/directory.ts';
import { Routing, type SharedSettings } from '../routing/routing.ts';
import { TopicSchemas } from '../routing/topic-schemas.ts';
import { remapTopics } from '../session/handlers/publish.ts';
import type { Ledger } from '../store/ledger.ts';
import { Actors } from './actors.ts';
import { Admission } from './admission/admission.ts';
import { Bans } from './admission/bans.ts';
import { Connections } from './admission/connections.ts';
import { makeRules } from './computing/make-rules.ts';
import { makeStreams } from './computing/make-streams.ts';
import type { Rules } from './computing/rules.ts';
import type { StreamRecords } from './computing/stream-records.ts';
import type { Streams } from './computing/streams.ts';
import { CONFIGURATION_TABLE, Configuration } from './configuration/configuration.ts';
import { CONNECTORS_TABLE, Connectors } from './configuration/connectors.ts';
import type { Settings } from './configuration/options.ts';
import { effectsOf } from './configuration/setting-effects.ts';
import { Tables } from './configuration/tables.ts';
import { DelayedMessages } from './features/delayed.ts';
import { Features } from './features/features.ts';
import { Retainer } from './features/retainer.ts';
import { TopicRewrite } from './features/rewrite.ts';
import type { RuleFeature } from './features/rule-feature.ts';
import { following } from './messages/following.ts';
import { Publishing } from './messages/publishing.ts';
import { Sparkplug, sparkplugChecks } from './messages/sparkplug.ts';
import { Subscribing } from './messages/subscribing.ts';
import { Arrival } from './reasons/arrival.ts';
import type { BrokerState } from './reasons/derive.ts';
import { AccessExplainer } from './rights/access-explainer.ts';
import { RightsReview } from './rights/rights-review.ts';
import { SourceReview } from './rights/source-review.ts';
import { Services } from './services.ts';
import { HandOvers } from './sessions/hand-over.ts';
import { SessionFactory } from './sessions/session-factory.ts';
import { SessionIndex } from './sessions/session-index.ts';
import { StoredSessions } from './sessions/stored-sessions.ts';
import { Wills } from './sessions/wills.ts';
import { makeLedger } from './storage/make-ledger.ts';
import { Persistence } from './storage/persistence.ts';
import { VERSION } from './version.ts';

/**
 * The parts of a broker, in the order in which they are created: first the services, which every part may use, then the parts, each from
 * the services and the earlier parts that it needs. A part that calls a later one receives a function for that.
 *
 * `Engine` contains no logic except starting and stopping the parts together. `Broker` is the public interface.
 */
export class Engine {
  readonly services: Services;
  readonly pressure: Pressure;
  readonly routing: Routing;
  readonly sessions: SessionIndex;
  /** undefined: there is no store. */
  readonly ledger: Ledger | undefined;
  /** The data that the app and adapters keep in the store. */
  readonly kept: {
    readonly tables: Tables;
    readonly outboxes: Outboxes;
    readonly connectors: Connectors;
    readonly rules: Rules;
    readonly streams: Streams;
    readonly streamRecords: StreamRecords | undefined;
    readonly ruleFeature: RuleFeature;
  };
  readonly access: AccessControl;
  readonly retainer: Retainer;
  readonly publishing: Publishing;
  readonly subscribing: Subscribing;
  readonly explainer: AccessExplainer;
  readonly admission: Admission;
  readonly connections: Connections;
  readonly bans: Bans;
  readonly actors: Actors;
  /** undefined: there is no store. */
  readonly persistence: Persistence | undefined;
  readonly directory: Directory;
  readonly monitor: Monitor;
  /** The data that an operator changes at run time. */
  readonly operated: {
    readonly features: Features;
    readonly rewrites: TopicRewrite;
    readonly configuration: Configuration;
  };
  readonly #delayed: DelayedMessages;
  readonly #review: RightsReview;
  readonly #sourceReview: SourceReview;
  readonly #systemMonitor: SystemMonitor;
  readonly #machine: MachineMonitor;

  /**
   * @param broker the `Broker` named in messages of the diagnostics channels, and passed to kinds of connectors
   * @param listeners the attached listeners
   */
  constructor(settings: Settings, broker: object, listeners: () => Iterable<ListenerHandle>) {
    this.services = new Services(settings, broker, {
      gauges: this.#gauges(),
      heardChanged: () => this.publishing.hooks.refresh(),
      observe: (filter) => this.routing.watch(filter),
      flushed: () => this.#flushed(),
      alarmTable: () => this.kept.tables.own('$alarms') as never
    });
    const { services } = this;

    // Limits, subscriptions, sessions, and the writers of the store.
    this.pressure = new Pressure(services, {
      closeUnadmitted: () => this.admission.closeUnadmitted(this.connections.all),
      shedQos0: () => this.sessions.shedQos0()
    });
    this.ledger = makeLedger(
      services,
      () => this.actors,
      () => this.persistence
    );
    const tables = new Tables(this.ledger);
    const outboxes = this.#makeOutboxes();
    const connectors = this.#makeConnectors(tables, broker);
    const kept = { tables, outboxes, connectors, ...makeStreams(services, this, { tables, outboxes, listeners }) };
    this.kept = { ...kept, ...makeRules(services, this, kept) };
    this.access = this.#accessControl(tables);
    const shared = sharedSettings(settings, this.pressure);
    const checks = [...sparkplugChecks(settings.sparkplug, () => services.clock.now()), ...settings.schemas];
    const schemas = new TopicSchemas(checks);
    this.routing = new Routing(shared, settings.routeCacheTargets, this.access.deliveryRights, services.wheel, schemas);
    this.sessions = new SessionIndex(services, this.routing, (subscription) => this.#sourceReview.forget(subscription));
    const { pressure, access, routing, sessions, ledger } = this;
    const storedSessions = ledger && new StoredSessions(services, ledger);

    // Features that keep or change messages; all features are started at the end.
    this.retainer = new Retainer(services, pressure, ledger);
    this.#delayed = new DelayedMessages(services, ledger, (message, topic) => this.#release(message, topic));
    const { retainer } = this;
    const delayed = this.#delayed;
    const rewrites = new TopicRewrite(services, () => this.#rewritesChanged());

    // The paths of PUBLISH, SUBSCRIBE and CONNECT.
    this.publishing = new Publishing(services, { pressure, routing, ledger, retainer, delayed, rewrites, access });
    if (settings.sparkplug !== undefined) new Sparkplug(services, routing, this.publishing);
    const remove: Subscribing['withdraw'] = (...subscription) => this.subscribing.withdraw(...subscription);
    const sourceReview = new SourceReview(services, { access, sessions, routing, remove });
    const { publishing } = this;
    const subscribed = { access, pressure, routing, sessions, ledger, retainer, rewrites, publishing, sourceReview };
    this.subscribing = new Subscribing(services, subscribed);
    const { subscribing } = this;
    this.explainer = new AccessExplainer(services, { access, sessions, subscribing, rewrites, publishing });
    const review = new RightsReview(services, { access, sessions, routing, subscribing, sourceReview });
    this.#review = review;
    this.#sourceReview = sourceReview;
    const handOvers = new HandOvers(services, routing, ledger);
    const wills = new Wills(services, (session, will) => publishing.own.will(session, will), storedSessions);
    const admitting = { access, review, pressure, sessions, ledger, storedSessions, retainer, subscribing, wills };
    this.admission = new Admission(services, { ...admitting, sourceReview });

    // Connections and sessions, and the sessions that the store has.
    this.actors = new Actors((error) => services.failed(error, 'an actor'));
    this.connections = new Connections(services, (...arrival) => sessionFactory.begin(...arrival));
    const { admission, actors, connections } = this;
    this.bans = new Bans(services, access, ledger, connections);
    const serving = { ...admitting, routing, rewrites, publishing, handOvers, admission, connections };
    const sessionFactory = new SessionFactory(services, actors, serving);
    const configuration = () => this.operated.configuration;
    const restored = { ...this.kept, sessions, retainer, delayed, handOvers, wills, sessionFactory, configuration };
    this.persistence =
      ledger && storedSessions && new Persistence(services, { pressure, ledger, storedSessions, ...restored });

    // Parts that use all of these, and the configuration of the app.
    this.directory = this.#makeDirectory();
    this.monitor = this.#makeMonitor({ ...subscribed, routing, delayed, kept: this.kept });
    this.#systemMonitor = new SystemMonitor(services);
    this.#machine = new MachineMonitor(services);
    this.#addHooks(settings);
    const features = new Features(services, { delayed, retainer, rewrites, ...this.kept });
    this.operated = { features, rewrites, configuration: this.#configuration() };
  }

  // ------------------------------------------------------------------------------------------------------------------ life

  /** Start all parts and accept connections. */
  begin(): void {
    const { clock, time, life, notices } = this.services;
    time.read();
    this.pressure.start();
    this.monitor.store.begin();
    this.retainer.messages.rearm();
    this.#delayed.rearm();
    this.kept.outboxes.begin();
    this.kept.rules.begin();
    notices.start(this.#sysTopics());
    // A virtual clock does not measure the process and the machine.
    if (clock === systemClock) {
      this.#systemMonitor.start(time.nowMs);
      this.#machine.start();
      this.monitor.metricHistory.start();
    }
    life.begin();
    for (const session of this.sessions.values()) session.lifecycle.rearmOffline();
    this.bans.start();
    this.connections.openEarly();
  }

  /** Disconnect all clients. */
  drain(will: 'publish' | 'drop' | 'keep'): void {
    const { life, notices } = this.services;
    const { own } = this.publishing;
    own.publishWaiting(); // the broker has accepted these messages
    life.next();
    notices.stop();
    this.#systemMonitor.stop();
    this.#machine.stop();
    this.monitor.metricHistory.stop();
    this.sessions.stop();
    this.connections.refuseHeld();
    this.kept.connectors.endTests();
    for (const { session, isClosed } of [...this.connections.all]) {
      try {
        if (!isClosed) session.lifecycle.close('server_shutting_down', { will });
      } catch (error) {
        session.failInternally(error, 'closing at the stop');
      }
    }
    // After the disconnections, so that messages published by listeners of their events are sent, as wills are.
    own.publishWaiting();
    this.services.rejections.stop();
    life.end();
  }

  /** Remove all timers and pending work. */
  end(): void {
    const { life, wheel, traces, announcer } = this.services;
    life.next();
    this.connections.forgetWaiting();
    this.kept.rules.end();
    traces.end('broker_stopped');
    wheel.clear();
    this.#sourceReview.stop();
    if (this.ledger === undefined)
      this.#delayed.clear((message) => announcer.dropped(message, 'server_shutting_down', undefined));
  }

  /** Note that the output of a turn is written. */
  #flushed(): void {
    this.services.metrics.deliveryTimes.written(this.services.clock);
    this.ledger?.turnEnded();
  }

  /** Add the logger, the hooks and the sources of the options. */
  #addHooks({ logger, hooks, auth }: Settings): void {
    const { events, clock } = this.services;
    if (logger !== undefined) new Log(logger, events, () => clock.monotonic());
    for (const [name, hook] of Object.entries(hooks))
      if (hook !== undefined) this.services.hooks.add(name as HookName, hook as never);
    for (const source of auth) this.access.load(source);
    this.#hooksChanged();
  }

  /** Register a hook. @returns a function that removes it */
  hook<N extends HookName>(name: N, hook: Hook<N>, options?: HookOptions): () => void {
    const remove = this.services.hooks.add(name, hook, options);
    this.#hooksChanged();
    return () => {
      remove();
      this.#hooksChanged();
    };
  }

  #hooksChanged(): void {
    this.publishing.hooks.refresh();
    this.rightsChanged(undefined);
  }

  /** Ask again, because the answers of the app or a source have changed. @param clientId undefined: about all clients */
  answersChanged(clientId: string | undefined): void {
    this.rightsChanged(clientId);
    this.#sourceReview.askAgain(clientId);
  }

  /** Decide again, because the rights of clients have changed. @param clientId undefined: for all clients */
  rightsChanged(clientId: string | undefined): void {
    this.routing.rightsChanged();
    if (clientId === undefined) this.publishing.hooks.forgetVerdicts();
    else this.sessions.get(clientId)?.connection?.reader.knownTopics?.forgetVerdicts();
  }

  // ---------------------------------------------------------------------------------------------------------------- wiring

  #accessControl(tables: Tables): AccessControl {
    const { settings, hooks, events } = this.services;
    return new AccessControl(this.services, {
      settings,
      hooks,
      ownTable: (name) => tables.own(name),
      rightsChanged: (clientId) => this.answersChanged(clientId),
      rulesChanged: () => {
        this.rightsChanged(undefined);
        this.#review.begin();
      },
      hooksChanged: () => this.#hooksChanged(),
      banned: (ban) => this.bans.made(ban),
      enforced: (ban) => this.bans.disconnect(ban),
      recordAdded: (record) => {
        const zones = [...settings.zones.values()];
        const isOpen = zones.some((zone) => zone.allowAnonymous === undefined && admitsAnonymous(zone, hooks));
        if (isOpen) events.emit('access.unguarded', { record });
      },
      reloaded: (source, error) => events.emit('source.reloaded', { source, error })
    });
  }

  #makeOutboxes(): Outboxes {
    const { wheel, life, turn, work, clock, metrics, alarms } = this.services;
    const counters = { sent: Metric.outboxSent, failed: Metric.outboxFailed, dropped: Metric.outboxDropped };
    return new Outboxes({
      wheel,
      life,
      ledger: this.ledger,
      now: () => clock.now(),
      later: (run) => turn.later(run),
      during: (delivery) => work.forAWhile(delivery),
      counted: (what, count) => {
        metrics.counts[counters[what]] += count;
      },
      raise: (id, title, summary) => alarms.raise({ id, title, summary }),
      clear: (id) => alarms.clear(id),
      failed: (error, during) => this.services.failed(error, during)
    });
  }

  #makeConnectors(tables: Tables, broker: object): Connectors {
    const { settings, life } = this.services;
    return new Connectors({
      kinds: settings.connectors,
      table: tables.own(CONNECTORS_TABLE) as never,
      broker,
      isStarted: () => life.isRunning,
      failed: (error, during) => this.services.failed(error, during),
      discard: (name) => this.kept.outboxes.delete(name)
    });
  }

  #makeDirectory(): Directory {
    const { services, sessions, routing } = this;
    const pause = (had?: number) => services.pause(had);
    const { node } = services.settings;
    const rules = { ofEvents: () => this.kept.rules.byId, ofStreams: () => this.kept.streams.rulesById };
    return new Directory({ node, sessions, routing, retained: this.retainer.messages, rules, pause });
  }

  #makeMonitor(state: BrokerState): Monitor {
    const { services } = this;
    const arrival = new Arrival(services, state);
    const { settings, clock, time, life, events, metrics, reasons, traces } = services;
    const metricHistory = new MetricHistory(services, metrics, (pace) => this.sessions.countQueued(pace));
    const topicCounters = new TopicCounters(services, events, (filter) => this.routing.watch(filter));
    const tails = new Tails(services, {
      ...{ node: settings.node, events, nullIsNull: settings.rules.nullIsNull ?? false },
      watch: (filter, watcher) => this.routing.watch(filter, watcher)
    });
    return {
      drops: new Drops(settings.node, reasons),
      reasons: new Reasons(settings.node, reasons),
      why: (question) => arrival.explain(question),
      audit: new AuditLog(services, settings.node, this.kept.tables.own('$audit') as never, () => life.isRunning),
      traces: new KeptTraces(traces),
      metricHistory,
      topicCounters,
      slowSubscriptions: new SlowSubscriptions(clock, time, events),
      blockedClients: new BlockedClients(services, settings.node, this.sessions),
      busiestClients: new BusiestClients(services, settings.node, this.sessions),
      store: new StoreMetrics(services, this.ledger),
      tail: (options) => tails.open(options),
      ...following(this),
      topicFigures: topicCounters,
      figures: metricHistory
    };
  }

  #configuration(): Configuration {
    const { services, kept, publishing, bans } = this;
    const { settings, clock, events } = services;
    // A virtual clock does not measure the machine.
    const measureMachine = () => clock === systemClock && this.#machine.start();
    const effects = effectsOf(this, measureMachine);
    return new Configuration({
      settings,
      table: () => kept.tables.own(CONFIGURATION_TABLE),
      now: () => clock.now(),
      apply: (name) => effects[name as keyof typeof effects]?.(),
      zonesChanged: () => {
        bans.configured();
        publishing.hooks.zonesChanged();
        this.#hooksChanged();
      },
      changed: (key) => events.emit('configuration.changed', { key }),
      failed: (error, during) => this.services.failed(error, during)
    });
  }

  #gauges(): GaugeReaders {
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
      retained: () => this.retainer.messages.count,
      'messages.retained': () => this.retainer.messages.count,
      'messages.delayed': () => this.#delayed.count,
      'outbox.waiting': () => this.kept.outboxes.size,
      rules: () => this.kept.rules.counts.rules,
      actions: () => this.kept.rules.counts.actions,
      resources: () => this.kept.rules.counts.resources
    };
  }

  /** Publish a delayed message. @returns a promise if its record has to be kept until the publication is complete */
  #release(message: Message, topic: string): undefined | Promise<boolean> {
    const done = this.publishing.own.release(message, topic);
    return this.ledger === undefined ? undefined : done;
  }

  /** Map topics that clients have published to before again, because rewriting was started or stopped. */
  #rewritesChanged(): void {
    this.publishing.hooks.refresh();
    for (const { session } of this.connections.all) remapTopics(session);
  }

  #sysTopics(): SysTopics {
    const { settings, clock, wheel, metrics } = this.services;
    return new SysTopics({
      node: settings.node,
      version: VERSION,
      clock,
      wheel,
      metrics,
      settings,
      publish: (topic, payload, { qos, retain }) => this.publishing.own.publishSystem(topic, payload, qos, retain),
      hasSubscribers: (topic) => this.routing.hasReceivers(topic),
      isHeard: () => this.routing.isSystemHeard,
      nodes: () => [settings.node],
      startedAtMs: clock.monotonic()
    });
  }
}

function sharedSettings(settings: Settings, pressure: Pressure): SharedSettings {
  return {
    get sharedSubscriptionStrategy() {
      return settings.sharedSubscriptionStrategy;
    },
    // While memory is exhausted, prefer a member that can receive the message immediately.
    get sharedDispatchAckEnabled() {
      return settings.sharedDispatchAckEnabled || pressure.isMemoryExhausted;
    }
  };
}
