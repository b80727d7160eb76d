// A session's state is written as it is, not as it changed. One flow record holds which messages are done (usually:
// all below a number), which packet ids are in flight and which are awaited; each commit that concerns the session
// replaces it. Replaying changes would need an order between records. Messages are stored in segments, which are
// deleted whole. QoS 1 to durable receivers costs about twice as much as in memory, QoS 2 three times.

import { detachFromPublisher, type Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import { RequestedFilters } from '../../routing/requested-filters.ts';
import type { CommitFailure, Durable } from '../../store/durable.ts';
import { Kind } from '../../store/keys.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { Draft } from '../../store/record.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import { type FlowRecord, writeFlow } from '../messages/flow-record.ts';
import { encodeInFlight } from '../messages/in-flight-record.ts';
import { writeSubscription } from '../messages/session-record.ts';
import { writeSession } from '../messages/session-writer.ts';
import type { Session } from '../session.ts';
import { HandOverQueue } from './hand-over-queue.ts';
import { OfflineFlights } from './offline-flights.ts';
import { type DroppedPages, Paging } from './paging.ts';
import { SessionQueue } from './session-queue.ts';
import { StoredMessages } from './stored-messages.ts';

/** Approximate size of a message in the store, without its packet. */
const ENTRY_BYTES = 48;

/**
 * One session in the store: its properties, its subscriptions, its messages, and which of these are done.
 *
 * The log decides what a commit contains, and writes it again if the commit fails. Its parts index the messages by number (`messages`),
 * keep them within their limits (`queue`), read them for a client that has connected (`Paging`), hold the packet ids of one that is away
 * (`offline`), and hand over the messages of a session that has ended (`HandOverQueue`).
 */
export class SessionLog implements Durable {
  isDirty = false;
  readonly number: number;
  readonly session: Session;
  readonly ledger: Ledger;
  readonly messages = new StoredMessages();
  readonly queue: SessionQueue;
  offline: OfflineFlights | undefined = undefined;
  /** Undefined until messages are read for this connection. */
  #paging: Paging | undefined = undefined;
  #isMetaDirty = true;
  #isFlowDirty = true;
  /** Bits of `#isMetaDirty` and `#isFlowDirty` that the commit in progress has cleared. */
  #inCommit = 0;
  /** Bytes of the last flow record, as an estimate for the next one. */
  #flowBytes = 8;
  /** Topic filters whose subscription has changed, and is to be written. */
  #filters: Set<string> | undefined = undefined;
  /** Topic filters in the commit in progress. */
  #writingFilters: Set<string> | undefined = undefined;
  /** True if the commit in progress deletes the session. */
  #isEndInCommit = false;
  /** True if the session has been deleted from the store. */
  #isEndCommitted = false;

  /** @param number number of the session in keys */
  constructor(session: Session, number: number, ledger: Ledger) {
    this.session = session;
    this.number = number;
    this.ledger = ledger;
    this.queue = new SessionQueue(this);
  }

  // ----------------------------------------------------------------------------------------------------------------- changes

  /** Note that the properties of the session have changed, and that an acknowledgement waits for the commit. */
  changed(): void {
    this.#isMetaDirty = true;
    // when the client returns, unsent messages must be persisted as sent before they are sent
    if ((this.session.outlet.inflight?.count ?? 0) > 0) this.#isFlowDirty = true;
    this.ledger.promise(this, 64);
  }

  /** Note that a subscription has been added, changed or removed, and that an acknowledgement waits for the commit. */
  subscribed(filter: string): void {
    (this.#filters ??= new Set()).add(filter);
    this.ledger.promise(this, 32 + filter.length);
  }

  /** Tell whether a change of a subscription is not committed yet. */
  isUnwritten(filter: string): boolean {
    return this.#filters?.has(filter) === true || this.#writingFilters?.has(filter) === true;
  }

  /** Note that the retained messages to be sent for a subscription have changed. Nothing waits for the commit. */
  subscriptionTouched(filter: string): void {
    (this.#filters ??= new Set()).add(filter);
    this.ledger.touch(this);
  }

  /** Note that the packet ids have changed, and that a packet waits for the commit. */
  flowChanged(): void {
    this.#isFlowDirty = true;
    this.ledger.promise(this, this.#flowCost);
  }

  /** Note that the packet ids have changed. Nothing waits for the commit. */
  flowTouched(): void {
    this.#isFlowDirty = true;
    this.ledger.touch(this, this.#flowCost);
  }

  /** The commit that contains all changes so far; 0 if they are committed. */
  get ticket(): number {
    return this.ledger.ticketOf(this);
  }

  /** Bytes that another change adds to the commit, which has one flow record regardless of the number of its changes. */
  get #flowCost(): number {
    return this.isDirty ? 8 : this.#flowBytes;
  }

  /**
   * Persist a message that is to be delivered.
   * @param isInMemory the session has the message in memory as well; only allowed if `messages.isCaughtUp`
   * @param isFirst see `PersistedMessage`
   */
  append(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    isInMemory: boolean,
    isFirst: boolean
  ): PersistedMessage {
    detachFromPublisher(message);
    const persisted = this.messages.append(message, qos, retain, ids, isInMemory, isFirst);
    this.#isFlowDirty = true;
    const bytes = message.bytes + ENTRY_BYTES + this.#flowCost;
    if (qos > 0) this.ledger.promise(this, bytes);
    else this.ledger.touch(this, bytes);
    return persisted;
  }

  /** Note that a message is acknowledged, released or dropped, so that it is not sent again. */
  finish(persisted: PersistedMessage): void {
    if (this.messages.finish(persisted)) this.flowTouched();
  }

  /** Delete the session from the store. */
  end(): void {
    this.messages.end();
    this.queue.resized();
    // the set may also have filters of removed subscriptions that are still in the store
    for (const { filter } of this.session.subscriptions.values()) (this.#filters ??= new Set()).add(filter);
    this.#stopPaging();
    this.ledger.promise(this);
  }

  // -------------------------------------------------------------------------------------------------------------- the ledger

  /** See `Durable`. */
  write(draft: Draft, journal: Draft | undefined): void {
    const { messages, number, session } = this;
    if (messages.isEnded) {
      this.#isEndInCommit = !this.#isEndCommitted;
      if (this.#isEndInCommit) this.#writeEnd(draft);
      return;
    }
    this.#inCommit = (this.#isMetaDirty ? META : 0) | (this.#isFlowDirty ? FLOW : 0);
    if (this.#isMetaDirty) {
      this.#isMetaDirty = false;
      writeSession(draft, Kind.session, number, session);
    }
    if (this.#filters !== undefined) this.#writeSubscriptions(draft, this.#filters);
    const head = messages.write(draft, journal, number);
    if (journal !== undefined && !this.#isFlowDirty) return;
    this.#isFlowDirty = false;
    const { next, count, bytes, qos0Count, done, firstTo } = messages;
    const pendingFeeds = session.outlet.feeds?.pending ?? NO_FEEDS;
    const record = { next, head, count, bytes, qos0Count, done, inFlight: this.#inFlight, pendingFeeds, firstTo };
    this.#flowBytes = writeFlow(journal ?? draft, number, record);
  }

  #writeSubscriptions(draft: Draft, filters: Set<string>): void {
    const { subscriptions, outlet } = this.session;
    const { feeds } = outlet;
    const requested = RequestedFilters.of(subscriptions);
    for (const filter of filters) {
      const subscription = subscriptions.get(filter);
      const pendingBefore = subscription && feeds?.pendingBefore(subscription);
      writeSubscription(draft, this.number, filter, subscription, pendingBefore, requested?.namesOf(filter));
    }
    this.#writingFilters = filters;
    this.#filters = undefined;
  }

  #writeEnd(draft: Draft): void {
    const { number } = this;
    draft.key(Kind.session).u48(number).delete();
    draft.key(Kind.flow).u48(number).delete();
    for (const filter of this.#filters ?? []) draft.key(Kind.subscription).u48(number).tail(filter).delete();
    // only the store knows which segments exist, so the sweeper deletes them
    if (this.messages.next > 1) draft.key(Kind.garbage).u48(number).value().put();
  }

  /** See `Durable`. */
  committed(): void {
    const { messages, session, queue } = this;
    this.#inCommit = 0;
    if (messages.isEnded) {
      if (!this.#isEndInCommit) return; // the commit started before the session ended
      this.#isEndInCommit = false;
      this.#isEndCommitted = true;
      if (messages.next > 1) session.ports.sweeper.add(this.number);
      return;
    }
    this.#writingFilters = undefined;
    if (messages.committed()) this.ledger.touch(this);
    if (session.state === 'disconnected' && !this.isDirty) this.#unload();
    queue.resized();
    queue.trimBacklog();
    queue.trim();
  }

  /** See `Durable`. */
  commitFailed(failure: CommitFailure): void {
    const { messages, session, queue } = this;
    const inCommit = this.#inCommit;
    this.#inCommit = 0;
    for (const filter of this.#writingFilters ?? []) (this.#filters ??= new Set()).add(filter);
    if (messages.isEnded) return;
    this.#isMetaDirty ||= (inCommit & META) !== 0;
    this.#isFlowDirty ||= (inCommit & FLOW) !== 0;
    messages.commitFailed(failure);
    const isFull = failure === 'untouched';
    const isHere = session.state === 'connected';
    for (const persisted of failure === 'retried' ? [] : [...messages.open]) {
      if (isRefused(persisted, this.ledger.settled, isFull && !isHere)) this.finish(persisted);
      else if (isFull && persisted.qos === 0) queue.drop(persisted, 'total_queue_full');
    }
    session.outlet.backlog?.take(({ persisted }) => persisted?.isDone === true);
    messages.forgetDone();
  }

  // ------------------------------------------------------------------------------------------------------ away and back again

  /** Keep further messages only in the store, because the client has disconnected. After the next commit no message stays in memory. */
  detached(): void {
    this.#stopPaging();
    this.#isMetaDirty = this.#isFlowDirty = true;
    this.ledger.touch(this);
  }

  #unload(): void {
    const { session, messages } = this;
    if (this.offline !== undefined || messages.open.length > 0) return;
    if (session.outlet.inflight?.isDeciding) return; // their decisions are still to be written
    this.#keepFlights();
    this.#leaveMemory();
  }

  /** Keep the packet ids outside the session. */
  #keepFlights(): void {
    const { inflight } = this.session.outlet;
    this.offline = new OfflineFlights(this.#inFlight, this.offline?.bytes ?? inflight?.bytes ?? 0);
  }

  /** Remove all committed messages from memory. */
  #leaveMemory(): void {
    this.#paging = undefined;
    this.messages.leaveMemory();
    this.session.outlet.unload();
  }

  /** The packet ids for the flow record, see `encodeInFlight`. */
  get #inFlight(): Buffer {
    if (this.offline !== undefined) return this.offline.record;
    const { inflight, writer } = this.session.outlet;
    return encodeInFlight(inflight, writer === undefined);
  }

  /** Restore a flow record at the start of the broker, or a newer one from a journal. Call `queue.resized` afterwards. */
  restore(record: FlowRecord): void {
    this.messages.restore(record);
    this.offline = new OfflineFlights(Buffer.from(record.inFlight), 0);
    this.#isFlowDirty = false;
    this.#isMetaDirty = false;
  }

  /** Load the messages in flight, because the client returns. @returns undefined if they are in memory already */
  load(): Promise<void> | undefined {
    const { offline } = this;
    return offline?.load(() => this.#load(offline));
  }

  async #load(offline: OfflineFlights): Promise<void> {
    const { session } = this;
    const { client, outlet, ports } = session;
    try {
      await this.queue.trimToLoad();
      if (this.offline !== offline || this.messages.isEnded) return; // the session ended in the meantime
      const canExpire = client.agreement.zone.awaitRelTimeout > 0;
      const wanted = offline.restore(outlet, canExpire ? ports.time.nowMs : undefined);
      const paging = (this.#paging = new Paging(this));
      await paging.load(wanted);
      if (!paging.isStopped) this.offline = undefined;
    } catch (error) {
      if (this.offline === offline) this.#leaveMemory();
      throw error;
    }
    this.ledger.touch(this); // if the client does not connect after all, the next commit unloads the session again
  }

  page(dropped?: DroppedPages): Promise<void> | undefined {
    if (this.messages.isCaughtUp) return undefined;
    const paging = (this.#paging ??= new Paging(this));
    if (dropped !== undefined) return paging.drop(dropped);
    paging.start();
    return undefined;
  }

  #stopPaging(): void {
    this.#paging?.stop();
    this.#paging = undefined;
  }

  /**
   * Start handing over the messages of an ended session to other members of its share groups. The session stays in the store until `end`,
   * so that the next process can continue.
   */
  beginHandOver(): HandOverQueue {
    this.#keepFlights(); // started again, which stops a drop of messages in progress
    this.#stopPaging();
    this.messages.leaveMemory();
    this.queue.close();
    this.changed();
    return new HandOverQueue(this, this.#inFlight);
  }
}

/**
 * Tell whether a failed commit has refused a message to its publisher, so that it can be discarded. A message that was sent is written
 * later; if that never becomes possible, because the store is full and the client is away, it is lost as in a crash.
 */
function isRefused({ message, isSent, isDone }: PersistedMessage, settled: number, mayBeLost: boolean): boolean {
  return !isDone && message.ticket > settled && (!isSent || mayBeLost);
}

/** Bits of `SessionLog.#inCommit`. */
const META = 1;
const FLOW = 2;
const NO_FEEDS: never[] = [];
