import { BrokerError } from '../errors.ts';
import type { Message } from '../packets/message.ts';
import type { FlowRecord } from '../session/flow-record.ts';
import { SessionLog } from '../session/log.ts';
import { Session, type WillState } from '../session/session.ts';
import { type SessionRecord, type SubscriptionEntry, writeSession } from '../session/session-record.ts';
import { Subscription } from '../session/subscription.ts';
import { type Commits, inStore, readAll } from '../store/commits.ts';
import { describeKey, Kind, numberKey } from '../store/keys.ts';
import { type Durable, Ledger, type LedgerHost } from '../store/ledger.ts';
import { writeMessage } from '../store/message-record.ts';
import { type Draft, RecordError } from '../store/record.ts';
import type { Store } from '../store/store.ts';
import type { Alarm } from '../timing-wheel.ts';
import type { Core } from './core.ts';
import type { DelayedMessage } from './delayed.ts';
import { DEFAULT_ZONE } from './options.ts';
import { RECORDS, type RecordKind } from './records.ts';
import { checkStore } from './store-check.ts';
import { type TableEntry, Tables } from './tables.ts';

/** Faults that are named in an error. */
const NAMED_FAULTS = 10;
/** Why a store does not open, where a repair may help. */
const REPAIRABLE: ReadonlySet<string> = new Set(['STORE_CORRUPT', 'STORE_UNUSABLE']);
const SWEPT_AT_ONCE = 1_000;
/**
 * How often the time is written while clients are connected. After a crash their sessions expire as if they had been connected for so
 * long after the last commit: late rather than early.
 */
const PULSE_MS = 30_000;

/**
 * What outlives the process: brings it back when the broker starts, and knows what has to be written. When that is written, the ledger
 * knows.
 */
export class Persistence {
  readonly ledger: Ledger;
  readonly tables: Tables;
  readonly #core: Core;
  readonly #store: Store;
  readonly #retained: RetainedRecords;
  readonly #delayed: DelayedRecords;
  readonly #sweeper: Sweeper;
  #isLoaded = false;
  /** The last session number given away. */
  #number = 0;
  readonly #pulse: Alarm = {
    dueMs: Infinity,
    slot: undefined,
    previous: undefined,
    next: undefined,
    ring: () => {
      if (this.#core.isAnybodyOnline) this.ledger.pulse();
      this.#core.wheel.arm(this.#pulse, PULSE_MS);
    }
  };

  constructor(core: Core, store: Store, host: LedgerHost) {
    this.#core = core;
    this.#store = store;
    this.ledger = new Ledger(store, host, core.settings.maxUnwrittenBytes);
    this.#retained = new RetainedRecords(core);
    this.#delayed = new DelayedRecords(core);
    this.#sweeper = new Sweeper(core, this.ledger);
    this.tables = new Tables(this.ledger);
  }

  /**
   * Open the store; at the first time, bring back what is in it.
   * @throws BrokerError STORE_CORRUPT, STORE_TOO_NEW; what the store throws
   */
  async open(): Promise<void> {
    if (this.#isLoaded) {
      await this.ledger.open();
      return;
    }
    try {
      await this.#openAndLoad();
    } catch (error) {
      const isFaulty = error instanceof BrokerError && REPAIRABLE.has(error.code);
      if (!isFaulty || !this.#core.settings.repairStore) throw error;
      await this.#repair();
      await this.#openAndLoad();
    }
    this.#isLoaded = true;
  }

  async #openAndLoad(): Promise<void> {
    const commits = await this.ledger.open();
    try {
      const content = await this.#read(commits);
      const { wallMs } = this.#core;
      this.#bringBack(content, Math.min(wallMs, commits.lastWallMs === 0 ? wallMs : commits.lastWallMs + PULSE_MS));
    } catch (error) {
      await this.#store.close();
      throw error;
    }
  }

  async #repair(): Promise<void> {
    const { name, findings } = await checkStore(this.#store, { repair: true });
    const texts = findings.slice(0, NAMED_FAULTS).map(({ text }) => text);
    const faults = `${texts.join('; ')}${moreThan(NAMED_FAULTS, findings.length)}`;
    const error = new BrokerError('STORE_CORRUPT', `${name}: going on without what is lost: ${faults}`);
    this.#core.failed(error, 'repairing the store', undefined);
  }

  /** All that is brought into memory at the start. @throws BrokerError STORE_CORRUPT naming what is bad or missing */
  async #read({ gaps, bad }: Commits): Promise<Content> {
    const core = this.#core;
    core.readTime();
    const faults = new Faults(this.#store);
    for (const [from, to] of gaps)
      faults.add(from === to ? `commit ${from} is missing` : `commits ${from} to ${to} are missing`);
    for (const key of bad) faults.addKey(key);
    const read = async <T>({ kind, read }: RecordKind<T>): Promise<T[]> => {
      const records: T[] = [];
      await readAll(this.#store, kind, (entry) => faults.guard(entry.key, () => records.push(read(entry, core))));
      return records;
    };
    await read(RECORDS.journal); // what is left of them can not be read
    const content: Content = {
      sessions: await read(RECORDS.session),
      subscriptions: await read(RECORDS.subscription),
      flows: new Map((await read(RECORDS.flow)).map((flow) => [flow.session, flow])),
      wills: await read(RECORDS.will),
      garbage: await read(RECORDS.garbage),
      retained: await read(RECORDS.retained),
      delayed: await read(RECORDS.delayed),
      tables: await read(RECORDS.table)
    };
    findStrays(content, faults);
    faults.check();
    return content;
  }

  #bringBack(content: Content, aliveWallMs: number): void {
    const core = this.#core;
    const byNumber = new Map<number, Session>();
    for (const record of content.sessions) {
      this.#number = Math.max(this.#number, record.number);
      const session = this.#restore(record, aliveWallMs);
      const log = new SessionLog(session, record.number, this.ledger);
      log.restore(content.flows.get(record.number) as FlowRecord);
      session.log = log;
      byNumber.set(record.number, session);
      core.keep(session);
      core.notePersistence(session, session.isPersistent);
    }
    for (const { session: number, filter, qos, nl, rap, rh, ids } of content.subscriptions) {
      const session = byNumber.get(number) as Session;
      core.addSubscription(session, new Subscription(session, filter, qos, nl, rap, rh, ids), true);
    }
    const { retained } = content;
    retained.sort((a, b) => a.timestamp - b.timestamp);
    for (const message of retained) if (!core.retained.put(message)) this.#retained.changed(message.topic);
    for (const delayed of content.delayed) this.#delayed.restore(delayed.number, delayed);
    for (const entry of content.tables) this.tables.restore(entry);
    for (const number of content.garbage) {
      this.#number = Math.max(this.#number, number);
      this.#sweeper.add(number);
    }
    for (const record of content.wills) {
      this.#number = Math.max(this.#number, record.number);
      const session = this.#restore(record, aliveWallMs);
      session.willRecord = new WillRecord(session, record.number, this.ledger);
      this.#orphans.push(() => session.publishWill());
    }
  }

  /** What publishes the wills of sessions that ended with the process. */
  #orphans: (() => void)[] = [];

  /** The broker has begun: wills of sessions that are gone are published. */
  begun(): void {
    const orphans = this.#orphans;
    this.#orphans = [];
    for (const publish of orphans) publish();
    this.#sweeper.begin();
    this.#core.wheel.arm(this.#pulse, PULSE_MS);
  }

  #restore(record: SessionRecord, aliveWallMs: number): Session {
    const core = this.#core;
    const { settings } = core;
    const zone = settings.zones.get(record.zone) ?? settings.zones.get(DEFAULT_ZONE);
    if (zone === undefined) throw new Error('unreachable: every broker has the default zone');
    const session = new Session(core, zone, undefined, {
      transport: record.transport,
      ...(record.listener === '' ? {} : { listener: record.listener }),
      ...(record.remoteAddress === '' ? {} : { remoteAddress: record.remoteAddress })
    });
    session.restore(record, aliveWallMs);
    return session;
  }

  /** A session begins: it, or its will, is kept. */
  began(session: Session): void {
    if (session.isPersistent) {
      session.log = new SessionLog(session, ++this.#number, this.ledger);
      session.log.changed();
    } else if (session.will !== undefined) {
      session.willRecord = new WillRecord(session, ++this.#number, this.ledger);
      session.willRecord.changed();
    }
  }

  retainedChanged(topic: string, isPromised: boolean): void {
    this.#retained.changed(topic);
    if (isPromised) this.ledger.promise(this.#retained, 64);
    else this.ledger.touch(this.#retained, 64);
  }

  delayedHeld(waiting: DelayedMessage): void {
    this.#delayed.held(waiting);
    this.ledger.promise(this.#delayed, waiting.message.bytes + 64);
  }

  delayedGone(waiting: DelayedMessage): void {
    this.#delayed.gone(waiting);
    this.ledger.promise(this.#delayed);
  }

  /** A will whose session is over is for the next start. */
  keepWill(session: Session): void {
    if (session.will === undefined) return;
    if (session.willRecord === undefined) {
      session.willRecord = new WillRecord(session, ++this.#number, this.ledger);
      session.willRecord.changed();
    }
    this.#orphans.push(() => session.publishWill());
  }

  /** Hooks decide on a will: should the process end first, it is published by the next one. */
  willUnderWay(session: Session, will: WillState, done: Promise<boolean>): void {
    const record = new WillRecord(session, ++this.#number, this.ledger, will);
    record.changed();
    const end = () => {
      record.isOver = true;
      record.changed();
    };
    void done.then((isDone) => {
      if (isDone) end();
      else
        this.#orphans.push(() => {
          this.#core.publishWill(session, will);
          end();
        });
    });
  }

  sweep(session: number): void {
    this.#sweeper.add(session);
    if (this.#core.isRunning) this.#sweeper.begin();
  }

  async close(): Promise<void> {
    this.#sweeper.stop();
    await this.ledger.close();
  }
}

/** What a store holds, but for queued messages. */
interface Content {
  readonly sessions: readonly SessionRecord[];
  readonly subscriptions: readonly SubscriptionEntry[];
  readonly flows: ReadonlyMap<number, FlowRecord>;
  readonly wills: readonly SessionRecord[];
  readonly garbage: readonly number[];
  readonly retained: Message[];
  readonly delayed: readonly (DelayedMessage & { readonly number: number })[];
  readonly tables: readonly TableEntry[];
}

/** Records of sessions that are not there, and the other way round. */
function findStrays({ sessions, subscriptions, flows }: Content, faults: Faults): void {
  const numbers = new Set(sessions.map(({ number }) => number));
  for (const { session, filter } of subscriptions)
    if (!numbers.has(session)) faults.add(`session ${session} is missing, which subscribed ${JSON.stringify(filter)}`);
  for (const session of flows.keys())
    if (!numbers.has(session)) faults.add(`session ${session} is missing, which has messages`);
  for (const { number, clientId } of sessions)
    if (!flows.has(number))
      faults.add(`the state of messages of session ${number} (client ${JSON.stringify(clientId)}) is missing`);
}

function moreThan(named: number, count: number): string {
  return count > named ? `; and ${count - named} more` : '';
}

/** What was found unreadable. */
class Faults {
  readonly #store: Store;
  readonly #texts: string[] = [];
  #count = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  guard(key: Buffer, run: () => void): void {
    try {
      run();
    } catch (error) {
      if (error instanceof RecordError && error.code === 'STORE_TOO_NEW') throw inStore(this.#store, error);
      this.addKey(key);
    }
  }

  addKey(key: Buffer): void {
    this.add(`${describeKey(key)} cannot be read`);
  }

  add(text: string): void {
    this.#count++;
    if (this.#texts.length < NAMED_FAULTS) this.#texts.push(text);
  }

  /** @throws BrokerError STORE_CORRUPT if there are any */
  check(): void {
    if (this.#count === 0) return;
    throw new BrokerError(
      'STORE_CORRUPT',
      `${this.#store.name}: ${this.#texts.join('; ')}${moreThan(NAMED_FAULTS, this.#count)}. Restore a copy, or start with the ` +
        'option repairStore to go on without what is lost.'
    );
  }
}

/** The will of a session that ends with its connection: should the process end first, it is published by the next one. */
export class WillRecord implements Durable {
  isDirty = false;
  readonly #session: Session;
  readonly #number: number;
  readonly #ledger: Ledger;
  readonly #will: WillState | undefined;
  /** It has been published, or dropped. */
  isOver = false;

  /** @param will by default the one that the session has */
  constructor(session: Session, number: number, ledger: Ledger, will?: WillState) {
    this.#session = session;
    this.#number = number;
    this.#ledger = ledger;
    this.#will = will;
  }

  changed(): void {
    this.#ledger.promise(this, 64);
  }

  write(draft: Draft): void {
    const will = this.isOver ? undefined : (this.#will ?? this.#session.will);
    if (will !== undefined) writeSession(draft, this.#number, this.#session, Kind.will, will);
    else draft.key(Kind.will).u48(this.#number).delete();
  }

  kept(): void {}
  lost(): void {}
}

/** Which retained messages have changed. */
class RetainedRecords implements Durable {
  isDirty = false;
  readonly #core: Core;
  #topics = new Set<string>();
  #writing = new Set<string>();

  constructor(core: Core) {
    this.#core = core;
  }

  changed(topic: string): void {
    this.#topics.add(topic);
  }

  write(draft: Draft): void {
    this.#writing = this.#topics;
    this.#topics = new Set();
    for (const topic of this.#writing) {
      const message = this.#core.retained.get(topic)?.message;
      draft.key(Kind.retained).tail(topic);
      if (message === undefined) draft.delete();
      else {
        writeMessage(draft.value(), message, undefined);
        draft.put();
      }
    }
  }

  kept(): void {
    this.#writing = new Set();
  }

  lost(): void {
    for (const topic of this.#writing) this.#topics.add(topic);
  }
}

/** Which delayed messages came, and which were published. */
class DelayedRecords implements Durable {
  isDirty = false;
  readonly #core: Core;
  #number = 0;
  #numbers = new Map<DelayedMessage, number>();
  #changed = new Map<number, DelayedMessage | undefined>();
  #writing = new Map<number, DelayedMessage | undefined>();

  constructor(core: Core) {
    this.#core = core;
  }

  held(waiting: DelayedMessage): void {
    this.#numbers.set(waiting, ++this.#number);
    this.#changed.set(this.#number, waiting);
  }

  gone(waiting: DelayedMessage): void {
    const number = this.#numbers.get(waiting);
    if (number === undefined) return;
    this.#numbers.delete(waiting);
    this.#changed.set(number, undefined);
  }

  restore(number: number, given: DelayedMessage): void {
    this.#number = Math.max(this.#number, number);
    this.#numbers.set(this.#core.delayed.restore(given), number);
  }

  write(draft: Draft): void {
    this.#writing = this.#changed;
    this.#changed = new Map();
    for (const [number, waiting] of this.#writing) {
      draft.key(Kind.delayed).u48(number);
      if (waiting === undefined) {
        draft.delete();
        continue;
      }
      draft.value().f64(waiting.dueWallMs).text(waiting.topic);
      writeMessage(draft, waiting.message, undefined);
      draft.put();
    }
  }

  kept(): void {
    this.#writing = new Map();
  }

  lost(): void {
    this.#changed = new Map([...this.#writing, ...this.#changed]);
  }
}

/** Deletes the segments of sessions that are over: which ones there are only the store knows. */
class Sweeper implements Durable {
  isDirty = false;
  readonly #core: Core;
  readonly #ledger: Ledger;
  readonly #sessions: number[] = [];
  #keys: readonly Buffer[] = [];
  #writing: readonly Buffer[] = [];
  #isBusy = false;
  #isStopped = false;

  constructor(core: Core, ledger: Ledger) {
    this.#core = core;
    this.#ledger = ledger;
  }

  add(session: number): void {
    this.#sessions.push(session);
  }

  begin(): void {
    this.#isStopped = false;
    if (this.#isBusy || this.#sessions.length === 0) return;
    this.#isBusy = true;
    this.#core.work.begin();
    this.#sweep()
      .catch((error: unknown) => {
        if (this.#ledger.isFailed) this.#goOnLater();
        else this.#core.failed(error, 'sweeping the store', undefined);
      })
      .finally(() => {
        this.#isBusy = false;
        this.#core.work.end();
      });
  }

  #goOnLater(): void {
    this.#ledger.wait({
      commitKept: () => {
        if (!this.#isStopped) this.begin();
        return false;
      },
      commitFailed: () => true
    });
  }

  /** What is left is gone through at the next start. */
  stop(): void {
    this.#isStopped = true;
  }

  async #sweep(): Promise<void> {
    for (let session = this.#sessions.at(-1); session !== undefined; session = this.#sessions.at(-1)) {
      const from = numberKey(Kind.segment, session);
      const to = numberKey(Kind.segment, session + 1);
      for (let isDone = false; !isDone; ) {
        const entries = await this.#ledger.store.read(from, to, SWEPT_AT_ONCE);
        if (this.#isStopped) return;
        isDone = entries.length < SWEPT_AT_ONCE;
        this.#keys = entries.map(({ key }) => key);
        if (isDone) this.#keys = [...this.#keys, numberKey(Kind.garbage, session)];
        this.#ledger.promise(this);
        await this.#ledger.kept(this.#ledger.ticket);
        if (this.#isStopped) return;
      }
      this.#sessions.splice(this.#sessions.indexOf(session), 1);
    }
  }

  write(draft: Draft): void {
    this.#writing = this.#keys;
    this.#keys = [];
    for (const key of this.#writing) draft.batch.delete(key);
  }

  kept(): void {
    this.#writing = [];
  }

  lost(): void {
    this.#keys = [...this.#writing, ...this.#keys];
    this.#writing = [];
  }
}
