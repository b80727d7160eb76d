import { BrokerError } from '../errors.ts';
import type { Message } from '../packets/message.ts';
import { SessionLog } from '../session/log.ts';
import { Session } from '../session/session.ts';
import {
  readSession,
  readSubscription,
  type SessionRecord,
  type SubscriptionEntry,
  writeSession
} from '../session/session-record.ts';
import { Subscription } from '../session/subscription.ts';
import { describeKey, Kind, numberKey } from '../store/keys.ts';
import { type Durable, Ledger, type LedgerHost, type Opened, readAll, writeCommit } from '../store/ledger.ts';
import { readMessage, writeMessage } from '../store/message-record.ts';
import { type Draft, RecordError, RecordReader } from '../store/record.ts';
import type { Entry, Store } from '../store/store.ts';
import type { Core } from './core.ts';
import type { DelayedMessage } from './delayed.ts';
import { DEFAULT_ZONE } from './options.ts';
import { Tables } from './tables.ts';

/** Records that cannot be read and are named in an error. */
const NAMED_FAULTS = 10;
const SWEPT_AT_ONCE = 1_000;

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
    const opened = await this.ledger.open();
    if (this.#isLoaded) return;
    try {
      await this.#load(opened);
    } catch (error) {
      await this.#store.close();
      throw error;
    }
    this.#isLoaded = true;
  }

  async #load(opened: Opened): Promise<void> {
    const core = this.#core;
    core.readTime();
    const faults = new Faults();
    for (const [from, to] of opened.gaps)
      faults.add(from === to ? `commit ${from} is missing` : `commits ${from} to ${to} are missing`);
    for (const key of opened.bad) faults.addKey(key);
    const sessions: SessionRecord[] = [];
    const subscriptions: SubscriptionEntry[] = [];
    const flows = new Map<number, Entry>();
    const wills: SessionRecord[] = [];
    const retained: Message[] = [];
    const delayed: [number: number, DelayedMessage][] = [];
    const garbage: number[] = [];
    const read = (kind: number, each: (entry: Entry) => void) =>
      readAll(this.#store, kind, (entry) => faults.guard(entry.key, () => each(entry)));
    await read(Kind.session, (entry) => sessions.push(readSession(entry, core)));
    await read(Kind.subscription, (entry) => subscriptions.push(readSubscription(entry)));
    await read(Kind.flow, (entry) => flows.set(entry.key.readUIntBE(1, 6), entry));
    await read(Kind.will, (entry) => wills.push(readSession(entry, core)));
    await read(Kind.garbage, (entry) => garbage.push(entry.key.readUIntBE(1, 6)));
    await read(Kind.retained, (entry) =>
      retained.push(readMessage(new RecordReader(entry.key, entry.value), undefined, core))
    );
    await read(Kind.delayed, (entry) => delayed.push([entry.key.readUIntBE(1, 6), readDelayed(entry, core)]));
    await read(Kind.table, (entry) => this.tables.restore(entry));
    this.#checkFaults(faults, opened.gaps);
    const lastWallMs = opened.lastWallMs === 0 ? core.wallMs : opened.lastWallMs;
    const byNumber = new Map<number, Session>();
    for (const record of sessions) {
      this.#number = Math.max(this.#number, record.number);
      const session = this.#restore(record, lastWallMs);
      const log = new SessionLog(session, record.number, this.ledger);
      session.log = log;
      const flow = flows.get(record.number);
      if (flow !== undefined) faults.guard(flow.key, () => log.restore(flow));
      byNumber.set(record.number, session);
      core.keep(session);
      core.notePersistence(session, session.isPersistent);
    }
    for (const { session: number, filter, qos, nl, rap, rh, ids } of subscriptions) {
      const session = byNumber.get(number);
      if (session !== undefined)
        core.addSubscription(session, new Subscription(session, filter, qos, nl, rap, rh, ids), true);
    }
    retained.sort((a, b) => a.timestamp - b.timestamp);
    for (const message of retained) if (!core.retained.put(message)) this.#retained.changed(message.topic);
    for (const [number, message] of delayed) this.#delayed.restore(number, message);
    for (const number of garbage) {
      this.#number = Math.max(this.#number, number);
      this.#sweeper.add(number);
    }
    for (const record of wills) this.#number = Math.max(this.#number, record.number);
    this.#orphans = wills.map((record) => this.#restore(record, lastWallMs));
    for (const [at, { number }] of wills.entries()) {
      const session = this.#orphans[at];
      session.willRecord = new WillRecord(session, number, this.ledger);
    }
    this.#checkFaults(faults, []);
  }

  /** Sessions that ended with the process, and left a will. */
  #orphans: Session[] = [];

  /** The broker has begun: wills of sessions that are gone are published. */
  begun(): void {
    const orphans = this.#orphans;
    this.#orphans = [];
    for (const session of orphans) session.publishWill();
    this.#sweeper.begin();
  }

  #checkFaults(faults: Faults, gaps: Opened['gaps']): void {
    if (faults.count === 0) return;
    const { name } = this.#store;
    if (!this.#core.settings.repairStore)
      throw new BrokerError(
        'STORE_CORRUPT',
        `${name}: ${faults.text}. Restore a copy, or start with the option repairStore to go on without what is lost.`
      );
    this.#core.failed(
      new BrokerError('STORE_CORRUPT', `${name}: going on without: ${faults.text}`),
      'repairing the store',
      undefined
    );
    const repairs = new Repairs(faults.keys, gaps);
    this.ledger.promise(repairs);
    faults.clear();
  }

  #restore(record: SessionRecord, lastWallMs: number): Session {
    const core = this.#core;
    const { settings } = core;
    const zone = settings.zones.get(record.zone) ?? settings.zones.get(DEFAULT_ZONE);
    if (zone === undefined) throw new Error('unreachable: every broker has the default zone');
    const session = new Session(core, zone, undefined, {
      transport: record.transport,
      ...(record.listener === '' ? {} : { listener: record.listener }),
      ...(record.remoteAddress === '' ? {} : { remoteAddress: record.remoteAddress })
    });
    session.restore(record, lastWallMs);
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

  sweep(session: number): void {
    this.#sweeper.add(session);
    this.#sweeper.begin();
  }

  async close(): Promise<void> {
    this.#sweeper.stop();
    await this.ledger.close();
  }
}

/** What was found unreadable. */
class Faults {
  count = 0;
  keys: Buffer[] = [];
  #texts: string[] = [];

  guard(key: Buffer, run: () => void): void {
    try {
      run();
    } catch (error) {
      if (!(error instanceof RecordError) && !(error instanceof RangeError)) throw error;
      if (error instanceof RecordError && error.code === 'STORE_TOO_NEW') throw error;
      this.addKey(key);
    }
  }

  addKey(key: Buffer): void {
    this.keys.push(key);
    this.add(`${describeKey(key)} cannot be read`);
  }

  add(text: string): void {
    this.count++;
    if (this.#texts.length < NAMED_FAULTS) this.#texts.push(text);
  }

  get text(): string {
    const more = this.count - this.#texts.length;
    return this.#texts.join('; ') + (more > 0 ? `; and ${more} more` : '');
  }

  clear(): void {
    this.count = 0;
    this.keys = [];
    this.#texts = [];
  }
}

/** Takes what cannot be read out of the store. */
class Repairs implements Durable {
  isDirty = false;
  readonly #keys: readonly Buffer[];
  readonly #gaps: Opened['gaps'];

  constructor(keys: readonly Buffer[], gaps: Opened['gaps']) {
    this.#keys = keys;
    this.#gaps = gaps;
  }

  write(draft: Draft): void {
    for (const key of this.#keys) draft.batch.delete(key);
    for (const [from, to] of this.#gaps) for (let number = from; number <= to; number++) writeCommit(draft, number, 0);
  }

  kept(): void {}
  lost(): void {}
}

/** The will of a session that ends with its connection: should the process end first, it is published by the next one. */
export class WillRecord implements Durable {
  isDirty = false;
  readonly #session: Session;
  readonly #number: number;
  readonly #ledger: Ledger;

  constructor(session: Session, number: number, ledger: Ledger) {
    this.#session = session;
    this.#number = number;
    this.#ledger = ledger;
  }

  changed(): void {
    this.#ledger.promise(this, 64);
  }

  write(draft: Draft): void {
    if (this.#session.will !== undefined) writeSession(draft, this.#number, this.#session, Kind.will);
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

function readDelayed({ key, value }: Entry, core: Core): DelayedMessage {
  const reader = new RecordReader(key, value);
  const dueWallMs = reader.f64();
  const topic = reader.text();
  return { dueWallMs, topic, message: readMessage(reader, undefined, core) };
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
        if ((error as BrokerError).code !== 'STORE_FAILED') this.#core.failed(error, 'sweeping the store', undefined);
      })
      .finally(() => {
        this.#isBusy = false;
        this.#core.work.end();
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
    this.#keys = this.#writing;
  }
}
