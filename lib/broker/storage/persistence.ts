// Kinds of records are read in a fixed order: the tables first, because overrides of options change all limits, then
// sessions, and after them what names a session. Everything is read into a `Content` that no part uses yet; if any
// fault was found, the start fails before anything is written. Only then do the parts receive their records, outboxes
// before everything that may cause an event. Work that the previous process left is continued by `brokerStarted`,
// after the listeners are open. The content is read at the first start only: later ones open the store and expect it
// unchanged.

import { BrokerError } from '../../base/errors.ts';
import { FunctionTimer } from '../../base/timing-wheel.ts';
import { Space, type SpaceHost } from '../../monitor/machine/space.ts';
import type { OutboxRecord } from '../../outbox/outboxes.ts';
import { type PendingFeed, RetainedFeed } from '../../retained/retained-feed.ts';
import { RequestedFilters } from '../../routing/requested-filters.ts';
import { ASKED_SUBSCRIPTIONS, Subscription } from '../../routing/subscription.ts';
import type { FlowRecord } from '../../session/messages/flow-record.ts';
import { SessionLog } from '../../session/messages/session-log.ts';
import type { SessionEntry } from '../../session/messages/session-record.ts';
import type { Session } from '../../session/session.ts';
import { type Commits, readAll } from '../../store/commits.ts';
import type { DelayedMessage } from '../../store/delayed-record.ts';
import type { Fold } from '../../store/journal.ts';
import { DEFINITIONS_VERSION, Kind } from '../../store/keys.ts';
import type { StreamRecord } from '../../store/stream-record.ts';
import type { TableEntry } from '../../store/table-record.ts';
import { checkStore } from '../../tools/check.ts';
import { COMMITS_LOST, Faults, listed } from '../../tools/faults.ts';
import { RECORDS, type RecordKind, type RetainedMessage } from '../../tools/record-kinds.ts';
import type { StreamRecords } from '../computing/stream-records.ts';
import { CONNECTORS_TABLE } from '../configuration/connectors.ts';
import { DEFAULT_ZONE } from '../configuration/options.ts';
import type { Tables } from '../configuration/tables.ts';
import type { DelayedMessages } from '../features/delayed.ts';
import type { Retainer } from '../features/retainer.ts';
import { BRIDGE_PREFIX, missingBridgeAlarm, restoredBridgeZone } from '../rights/bridge-access.ts';
import type { Services } from '../services.ts';
import type { HandOvers } from '../sessions/hand-over.ts';
import type { SessionFactory } from '../sessions/session-factory.ts';
import type { SessionIndex } from '../sessions/session-index.ts';
import type { StoredSessions } from '../sessions/stored-sessions.ts';
import { WillRecord } from '../sessions/will-record.ts';
import type { Wills } from '../sessions/wills.ts';

/** Codes of errors for which a repair of the store may help. */
const REPAIRABLE: ReadonlySet<string> = new Set(['STORE_CORRUPT', 'STORE_DAMAGED']);
/**
 * Interval at which the time is written while clients are connected. After a crash, their sessions expire as if the clients had been
 * connected for one interval after the last commit: late rather than early.
 */
const PULSE_MS = 30_000;

/** The parts of the broker that `Persistence` uses. */
interface PersistenceHost extends SpaceHost {
  readonly sessions: SessionIndex;
  readonly retainer: Retainer;
  readonly delayed: DelayedMessages;
  readonly tables: Tables;
  readonly outboxes: { restore(records: Iterable<OutboxRecord>): void };
  readonly streamRecords: StreamRecords | undefined;
  readonly connectors: { isKnown(kind: string, name: string): boolean };
  readonly wills: Wills;
  readonly handOvers: HandOvers;
  readonly storedSessions: StoredSessions;
  readonly sessionFactory: SessionFactory;
  /** Applies the overrides of options. Created later. */
  readonly configuration: () => { restored(entries: readonly TableEntry[]): void };
}

/**
 * Opens and closes the store, and restores its content at the first start. The parts of the broker track what has to be written; the ledger
 * decides when it is written.
 */
export class Persistence {
  readonly #services: Services;
  readonly #host: PersistenceHost;
  readonly #space: Space;
  #isLoaded = false;
  /** Sessions that were connected when the process ended. */
  #cutOff: readonly Session[] = [];
  /** Sessions that have ended and whose messages are not all handed over. */
  #handingOver: readonly Session[] = [];
  /** The names of bridges that have a session in the store. */
  readonly #bridges: string[] = [];
  readonly #pulse = new FunctionTimer(() => {
    if (this.#host.sessions.onlineCount > 0) this.#host.ledger.pulse();
    this.#space.reclaim();
    this.#services.wheel.arm(this.#pulse, PULSE_MS);
  });

  constructor(services: Services, host: PersistenceHost) {
    this.#services = services;
    this.#host = host;
    this.#space = new Space(services, host);
  }

  /**
   * Open the store. The first time, restore its content.
   * @throws BrokerError STORE_CORRUPT, STORE_TOO_NEW, IMPORT_UNFINISHED; the errors of the store, such as STORE_DAMAGED
   */
  async open(): Promise<void> {
    if (this.#isLoaded) {
      await this.#host.ledger.open(async () => {});
      return;
    }
    try {
      await this.#openAndLoad();
    } catch (error) {
      const isFaulty = error instanceof BrokerError && REPAIRABLE.has(error.code);
      if (!isFaulty || !this.#services.settings.repairStore) throw error;
      await this.#repair();
      await this.#openAndLoad();
    }
    this.#isLoaded = true;
  }

  async #openAndLoad(): Promise<void> {
    this.#restoreAll(await this.#host.ledger.open((commits, fold) => this.#read(commits, fold)));
  }

  async #repair(): Promise<void> {
    const { name, findings } = await checkStore(this.#host.ledger.store, { repair: true });
    const faults = listed(findings.map(({ text }) => text));
    const error = new BrokerError('STORE_CORRUPT', `${name}: repaired; this is lost: ${faults}`);
    this.#services.announcer.failed(error, 'repairing the store', undefined);
  }

  /**
   * Read the content of the store into memory, one kind of record after the other. Objects are created record by record, so that no list of
   * records is in memory in addition. The broker does not use them yet.
   * @throws BrokerError STORE_CORRUPT, which names the faulty or missing records
   */
  async #read({ gaps, bad, areLost, lastWallMs }: Commits, fold: Fold): Promise<Content> {
    const { ledger } = this.#host;
    const { store } = ledger;
    const { time } = this.#services;
    time.read();
    const { wallMs } = time;
    const aliveWallMs = Math.min(wallMs, lastWallMs === 0 ? wallMs : lastWallMs + PULSE_MS);
    const faults = new Faults(store);
    if (areLost) faults.add(COMMITS_LOST);
    for (const [from, to] of gaps)
      faults.add(from === to ? `commit ${from} is missing` : `commits ${from} to ${to} are missing`);
    for (const key of bad) faults.addKey(key);
    const read = <T>({ kind, read }: RecordKind<T>, take: (record: T) => void) =>
      readAll(store, kind, (entry) => faults.guard(entry.key, () => take(read(entry, time))));
    const content = new Content();
    const { sessions } = content;
    await read(RECORDS.journal, () => {}); // the ledger has read those that can be read
    await read(RECORDS.table, (entry) => content.tables.push(entry));
    this.#host.configuration().restored(content.tables); // first, because it changes the limits of all others
    await read(RECORDS.session, (record) => {
      const wasConnected = record.disconnectedAt === 0;
      const isGone = !wasConnected && record.sessionExpiry === 0; // the process ended while its messages were handed over
      const session = this.#restore(record, aliveWallMs, content, isGone ? 'gone' : 'disconnected');
      sessions.set(record.number, session);
      if (wasConnected) content.cutOff.push(session);
      else if (isGone) content.handingOver.add(session);
    });
    await read(RECORDS.subscription, (entry) => {
      const { filter, qos, noLocal, retainAsPublished, retainHandling, subscriptionIds, pendingBefore } = entry;
      const session = sessions.get(entry.session);
      if (session === undefined) {
        faults.add(`session ${entry.session} is missing, but has a subscription to ${JSON.stringify(filter)}`);
        return;
      }
      const subscription = new Subscription(
        session.outlet,
        filter,
        qos,
        noLocal,
        retainAsPublished,
        retainHandling,
        subscriptionIds
      );
      if (entry.isAsked) ASKED_SUBSCRIPTIONS.add(subscription);
      for (const name of entry.requested ?? []) RequestedFilters.ensure(session.subscriptions).add(name, filter);
      content.subscriptions.push({ session, subscription });
      if (pendingBefore !== undefined) content.pending.push({ session, subscription, before: pendingBefore });
    });
    const takeFlow = (flow: FlowRecord & { readonly session: number }) => {
      const session = sessions.get(flow.session);
      if (session === undefined) faults.add(`session ${flow.session} is missing, but has messages`);
      else {
        if (session.log === undefined) session.outlet.persistIn(new SessionLog(session, flow.session, ledger));
        session.log?.restore(flow);
        content.partlyPending.set(session, flow.pendingFeeds); // a journal's is newer
      }
    };
    await read(RECORDS.flow, takeFlow);
    for (const entry of fold.entries) if (entry.key[0] === Kind.flow) takeFlow(RECORDS.flow.read(entry, time));
    for (const [number, { log, client }] of sessions)
      if (log === undefined)
        faults.add(`the state of messages of session ${number} (client ${JSON.stringify(client.clientId)}) is missing`);
    await read(RECORDS.will, (record) => {
      const session = this.#restore(record, aliveWallMs, content);
      session.lifecycle.will?.restored(new WillRecord(session, record.number, ledger));
      content.wills.set(record.number, session);
    });
    await read(RECORDS.garbage, (number) => content.garbage.push(number));
    await read(RECORDS.retained, (record) => content.retained.push(record));
    await read(RECORDS.delayed, (delayed) => content.delayed.push(delayed));
    await read(RECORDS.outbox, (entry) => content.outboxes.push(entry));
    await read(RECORDS.stream, (record) => content.streams.push(record));
    faults.check();
    return content;
  }

  /** Pass the content of the store to the parts of the broker. */
  #restoreAll(content: Content): void {
    const { sessions, subscriptions, pending, partlyPending, wills, garbage, retained, delayed, tables } = content;
    const host = this.#host;
    this.#cutOff = content.cutOff;
    host.streamRecords?.restore(content.streams);
    host.outboxes.restore(content.outboxes); // first, because the following steps may cause events, which come after these
    for (const [zone, count] of content.zonesGone) {
      const text = `zone "${zone}" is no longer defined, but ${count} stored sessions or wills belong to it; they use zone "${DEFAULT_ZONE}" until their clients connect again. If this is not intended, define the zone (option zones)`;
      this.#services.announcer.failed(new BrokerError('ZONE_UNKNOWN', text), 'starting', undefined);
    }
    for (const session of sessions.values()) {
      if (content.handingOver.has(session)) continue;
      host.sessions.add(session, session.createdAt);
      session.log?.resized();
      host.sessions.notePersistence(session, session.client.isPersistent);
    }
    for (const { session, subscription } of subscriptions) {
      if (content.handingOver.has(session)) session.subscriptions.add(subscription);
      else host.sessions.addSubscription(session, subscription, true);
    }
    this.#handingOver = [...content.handingOver];
    retained.sort((a, b) => (a.seq ?? -1) - (b.seq ?? -1) || a.message.timestamp - b.message.timestamp);
    for (const { message, seq } of retained) host.retainer.restore(message, seq);
    for (const { session, subscription, before } of pending) {
      if (content.handingOver.has(session)) continue;
      const inPart = partlyPending.get(session)?.find(({ filter }) => filter === subscription.filter);
      host.retainer.messages.next = before; // messages retained from now on are not pending
      session.outlet.addFeed(RetainedFeed.restored(subscription, host.retainer.feedSource, before, inPart), false);
    }
    for (const message of delayed) host.delayed.restore(message);
    for (const entry of tables) host.tables.restore(entry);
    for (const number of garbage) host.storedSessions.sweeper.add(number);
    for (const session of wills.values()) host.wills.publishAtStart(session);
    for (const number of [...sessions.keys(), ...wills.keys(), ...garbage]) host.storedSessions.used(number);
  }

  /** Publish the wills of ended sessions and continue interrupted work, because the broker has started. */
  brokerStarted(): void {
    const { wills, handOvers, storedSessions } = this.#host;
    wills.brokerStarted();
    for (const { log } of this.#cutOff) log?.detached(); // writes until when they were connected
    this.#cutOff = [];
    for (const session of this.#handingOver) if (!handOvers.begin(session, 'session_terminated')) session.log?.end();
    this.#handingOver = [];
    for (const name of this.#bridges.splice(0)) this.#reportMissingBridge(name);
    handOvers.brokerStarted();
    storedSessions.sweeper.begin();
    this.#space.begin();
    this.#services.wheel.arm(this.#pulse, PULSE_MS);
  }

  /** Convert the definitions of a store of an earlier release to the form of this one, before they are used. */
  async adaptDefinitions(): Promise<void> {
    const { ledger, tables } = this.#host;
    if (ledger.definitions >= DEFINITIONS_VERSION) return;
    const { adaptDefinitions } = await import('./upgrade/adapt.ts');
    await adaptDefinitions((name) => tables.own(name), ledger.definitions);
  }

  /** Report once which definitions behave differently than in the release that wrote the store. */
  async reportUpgrade(): Promise<void> {
    const { ledger, tables } = this.#host;
    if (ledger.definitions >= DEFINITIONS_VERSION) return;
    const { upgradeReport } = await import('./upgrade/report.ts');
    const report = upgradeReport((name) => tables.own(name), ledger.definitions);
    if (report !== undefined) this.#services.events.emit('store.upgraded', report);
    ledger.definitionsReported();
  }

  /** Note that a commit has succeeded or failed. @param bytes its size */
  written(bytes: number): void {
    this.#space.written(bytes);
  }

  /** Apply a changed option `maxTotalMqueueStoreBytes`. */
  configured(): void {
    if (this.#services.life.isRunning) this.#space.configured();
  }

  /** Check the space after a commit has failed, perhaps for lack of it. */
  checkSpace(): void {
    this.#space.begin();
  }

  #restore(
    record: SessionEntry,
    aliveWallMs: number,
    { zonesGone, tables }: Content,
    state: 'disconnected' | 'gone' = 'disconnected'
  ): Session {
    const { settings } = this.#services;
    const bridge = record.clientId.startsWith(BRIDGE_PREFIX) ? record.clientId.slice(BRIDGE_PREFIX.length) : undefined;
    let zone = settings.zones.get(bridge === undefined ? record.zone : DEFAULT_ZONE);
    if (zone !== undefined && bridge !== undefined) {
      const isExpected = isStored(tables, bridge) || this.#host.connectors.isKnown('bridge', bridge);
      zone = restoredBridgeZone(zone, isExpected);
      this.#bridges.push(bridge);
    }
    if (zone === undefined) {
      zonesGone.set(record.zone, (zonesGone.get(record.zone) ?? 0) + 1);
      zone = settings.zones.get(DEFAULT_ZONE);
    }
    if (zone === undefined) throw new Error('unreachable: every broker has the default zone');
    return this.#host.sessionFactory.restore(state, record, zone, aliveWallMs);
  }

  /** Report a bridge that was not created again: messages for it wait without end. */
  #reportMissingBridge(name: string): void {
    if (this.#host.connectors.isKnown('bridge', name)) return;
    this.#services.alarms.raise({
      id: missingBridgeAlarm(name),
      title: `the bridge ${name} no longer exists`,
      summary: `messages wait in the session ${BRIDGE_PREFIX}${name}; create the bridge again, or end this session`
    });
  }

  /** Close the store. */
  async close(): Promise<void> {
    this.#host.storedSessions.sweeper.stop();
    await this.#host.ledger.close();
  }
}

/** Tell whether a bridge that was created at run time is in the store. */
function isStored(tables: readonly TableEntry[], bridge: string): boolean {
  return tables.some(({ table, key }) => table === CONNECTORS_TABLE && key === `bridge:${bridge}`);
}

/** The content of a store without queued messages. Sessions and wills are listed by their numbers. */
class Content {
  readonly sessions = new Map<number, Session>();
  readonly subscriptions: { readonly session: Session; readonly subscription: Subscription }[] = [];
  /** Subscriptions for which retained messages are still to be sent: those before a position in the order of retained messages. */
  readonly pending: { readonly session: Session; readonly subscription: Subscription; readonly before: number }[] = [];
  /** Sessions that have some of these messages in flight. */
  readonly partlyPending = new Map<Session, readonly PendingFeed[]>();
  /** Sessions whose messages were being handed over. */
  readonly handingOver = new Set<Session>();
  /** Sessions that were connected. */
  readonly cutOff: Session[] = [];
  readonly wills = new Map<number, Session>();
  readonly garbage: number[] = [];
  readonly retained: RetainedMessage[] = [];
  readonly delayed: (DelayedMessage & { readonly number: number })[] = [];
  readonly outboxes: OutboxRecord[] = [];
  readonly streams: (StreamRecord & { readonly number: number })[] = [];
  readonly tables: TableEntry[] = [];
  /** The number of sessions and wills by the names of zones that no longer exist. */
  readonly zonesGone = new Map<string, number>();
}
