import { BrokerError } from '../base/errors.ts';
import type { WorkCount } from '../base/pending-work.ts';
import { SeqSet } from '../base/seq-set.ts';
import type { TimeReading } from '../base/time-reading.ts';
import type { DropReason } from '../events/reasons.ts';
import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { PendingFeed } from '../retained/retained-feed.ts';
import type { Subscription } from '../routing/subscription.ts';
import type { Subscriptions } from '../routing/subscriptions.ts';
import { afterCommit } from '../store/after-commit.ts';
import { inStore } from '../store/commits.ts';
import { Kind, numberKey } from '../store/keys.ts';
import type { CommitFailure, Durable, Ledger } from '../store/ledger.ts';
import { type Draft, RecordError } from '../store/record.ts';
import type { Entry } from '../store/store.ts';
import type { Backlog } from './backlog.ts';
import { Dropper } from './dropper.ts';
import { type FlowRecord, writeFlow } from './flow-record.ts';
import {
  awaitedIds,
  countUnacknowledged,
  encodeInFlight,
  forEachInFlight,
  inFlightCounts,
  NOTHING_IN_FLIGHT
} from './in-flight-record.ts';
import type { InboundFlows } from './inbound-flows.ts';
import { Inflight, UNSENT } from './inflight.ts';
import type { Announcements } from './ports.ts';
import { PersistedMessage, readSegment, Segment, segmentFirst, writeSegments } from './segment.ts';
import type { SessionClient } from './session-client.ts';
import { writeSubscription } from './session-record.ts';
import { type StoredBacklog, StoredQueue } from './stored-backlog.ts';

/** The delivery of the session, as its log uses it. */
export interface LoggedDelivery {
  readonly flows: {
    readonly inflight: Inflight | undefined;
    readonly isOnline: boolean;
    /** Use these packet ids; their messages follow (`Inflight.restoreMessage`). */
    restore(inflight: Inflight | undefined): void;
  };
  readonly backlog: Backlog | undefined;
  readonly feeds:
    | { readonly pending: readonly PendingFeed[]; pendingBefore(subscription: Subscription): number | undefined }
    | undefined;
  /** Add a message that was read from the store to the backlog. */
  queue(persisted: PersistedMessage): void;
  /** Remove all messages from memory. */
  unload(): void;
  /** Send waiting messages. */
  pump(): void;
  /** Count and announce a dropped message. */
  drop(message: Message, reason: DropReason): void;
}

/** The session, as its log uses it. */
export interface LogOwner {
  readonly ports: {
    readonly time: TimeReading;
    readonly work: WorkCount;
    readonly announcer: Announcements;
    readonly pressure: { readonly storedBacklog: StoredBacklog };
    /** Deletes the segments of sessions that have ended. @param session number of the session in keys */
    readonly sweeper: { add(session: number): void };
  };
  readonly client: SessionClient;
  readonly subscriptions: Subscriptions;
  readonly state: 'idle' | 'connected' | 'disconnected' | 'gone';
  readonly inbound: InboundFlows | undefined;
  readonly delivery: LoggedDelivery;
  readonly lifecycle: { close(reason: 'store_failed'): void };
  ensureInbound(): InboundFlows;
  /** Write what is persisted of the session, beside its subscriptions and messages. */
  writeRecord(draft: Draft, number: number): void;
  failInternally(error: unknown, during: string): void;
}

/** Approximate size of a message in the store, without its packet. */
const ENTRY_BYTES = 48;
/** After a page with fewer bytes than this, the next page has twice as many records. */
const SMALL_PAGE_BYTES = 65_536;
/** After a page with more bytes than this, the next page has half as many records. */
const LARGE_PAGE_BYTES = 1_048_576;
/** Most records of a page. */
const MAX_PAGE_RECORDS = 1_000;

/**
 * One session in the store: its properties, its subscriptions, its messages, and which of these are done.
 *
 * The messages of a session are numbered. Messages with a number below `pagedTo` are in memory (in the backlog or in flight) or done;
 * later ones are in the store alone, or wait for a commit. While the client is away all messages are in the store alone. Memory then holds
 * only the content of the flow record: which numbers are done, and which packet ids are in flight.
 */
export class SessionLog extends StoredQueue implements Durable {
  isDirty = false;
  /** Number of the session in keys. */
  readonly number: number;
  readonly #session: LogOwner;
  readonly #ledger: Ledger;
  /** The bytes of this session that `StoredBacklog.storedBytes` includes. */
  #countedBytes = 0;
  /** Number of the next message. */
  #next = 1;
  /** The value of `#next` at the last write. */
  #writtenTo = 1;
  /** Messages with a lower number are in memory or done. */
  #pagedTo = 1;
  /** Numbers of messages that are done. */
  #done = new SeqSet();
  /** Messages that are not written yet. */
  #open: PersistedMessage[] = NONE;
  /** Messages in the commit in progress. */
  #writing: PersistedMessage[] = NONE;
  /** Committed messages that are only in a journal; older than the two lists above. */
  #unfolded: PersistedMessage[] = NONE;
  /** The commit in progress writes the journaled messages to segments. */
  #isFolding = false;
  /** Number of these messages, which are the first of `#writing`. */
  #foldingCount = 0;
  /** Which of `#isMetaDirty` and `#isFlowDirty` the commit in progress has cleared. */
  #inCommit = 0;
  /** The head (see `FlowRecord`) in the last folding commit that succeeded. */
  #committedHead = 1;
  /** The head in the folding commit in progress. */
  #writingHead = 1;
  /** Segments with messages in memory, in order. */
  #segments: Segment[] = NONE;
  /** First numbers of segments without unfinished messages, which the next folding commit deletes. */
  #emptySegments: number[] = NONE;
  /** First numbers of the segments that the commit in progress deletes. */
  #deletingSegments: number[] = NONE;
  /** First number of the next page. No segment from there on is in memory. */
  #pageFrom = 1;
  #pageRecords = 32;
  #isPaging = false;
  /** Pending drop of messages beyond the limits. Not at the same time as `#loading`. */
  #trimming: Promise<void> | undefined;
  /** Pending load of the messages in flight, because the client returns. */
  #loading: Promise<void> | undefined;
  /** Incremented when the client connects or disconnects, so that a page read for an earlier connection is discarded. */
  #epoch = 0;
  /** The packet ids as in the flow record, while the client is away; undefined while they are in the session. */
  #offlineInFlight: Buffer | undefined;
  /** Number of messages in flight while the client is away. */
  #offlineInFlightCount = 0;
  /** Bytes of these messages, as far as known. After a start they are known when the messages have been read in order to drop some. */
  #offlineInFlightBytes = 0;
  /** The former `#offlineInFlight`, while its messages are loaded. */
  #loadingInFlight: Buffer | undefined;
  /** Packet ids in flight whose messages are still to be loaded, by message number. */
  #wantedMessages: Map<number, number> | undefined;
  #isMetaDirty = true;
  #isFlowDirty = true;
  /** Bytes of the last flow record, as an estimate for the next one. */
  #flowBytes = 8;
  /** Topic filters whose subscription has changed, and is to be written. */
  #filters: Set<string> | undefined;
  /** Topic filters in the commit in progress. */
  #writingFilters: Set<string> | undefined;
  /** While the messages of an ended session are handed over: QoS of the messages in flight, by message number. */
  #handedOver: Map<number, number> | undefined;
  /** First number of the next messages to hand over. */
  #handOverFrom = 1;
  #isEnded = false;
  /** The commit in progress deletes the session. */
  #isEndInCommit = false;
  /** The session has been deleted from the store. */
  #isEndCommitted = false;

  constructor(session: LogOwner, number: number, ledger: Ledger) {
    super();
    this.#session = session;
    this.number = number;
    this.#ledger = ledger;
  }

  /** All messages that are not done are in memory. */
  get isCaughtUp(): boolean {
    return this.#pagedTo === this.#next;
  }

  /** Number of messages that are neither done nor in flight. */
  get waiting(): number {
    return this.count - this.#unacknowledged;
  }

  get #unacknowledged(): number {
    return this.#offlineInFlight === undefined
      ? (this.#session.delivery.flows.inflight?.unacknowledged ?? 0)
      : this.#offlineInFlightCount;
  }

  /**
   * Number of messages that the limits apply to: those that are committed, because nothing may be dropped for a message that can still be
   * refused. While the store fails, messages that can be refused are not accepted, and the limits apply to all others.
   */
  get #limited(): number {
    return (this.#ledger.isFailed ? this.count : this.settledCount) - this.#unacknowledged;
  }

  /** Bytes of the messages that the limits apply to. */
  get limitedBytes(): number {
    const inMemory = this.#session.delivery.flows.inflight?.bytes ?? 0;
    // while the client returns, some messages in flight are not in memory yet
    const inFlight =
      this.#offlineInFlight !== undefined
        ? this.#offlineInFlightBytes
        : this.#loadingInFlight === undefined
          ? inMemory
          : Math.max(inMemory, this.#offlineInFlightBytes);
    const bytes = this.#ledger.isFailed ? this.bytes : this.settledBytes;
    return this.#limited > 0 ? Math.max(0, bytes - inFlight) : 0;
  }

  /** Number of packet ids in flight, and of those that wait for PUBREL. */
  get flows(): { readonly inflight: number; readonly awaitingRel: number } {
    const { delivery, inbound } = this.#session;
    if (this.#offlineInFlight === undefined)
      return { inflight: delivery.flows.inflight?.count ?? 0, awaitingRel: inbound?.count ?? 0 };
    return inFlightCounts(this.#offlineInFlight);
  }

  /**
   * Report the committed bytes to the `StoredBacklog`. It orders the sessions by their waiting bytes, as messages in flight cannot be
   * dropped. Each commit calls this for the logs that it has written, which is as often as the limit is checked.
   */
  resized(): void {
    const { storedBacklog } = this.#session.ports.pressure;
    const bytes = this.#isEnded ? 0 : this.settledBytes;
    storedBacklog.stored(bytes - this.#countedBytes);
    this.#countedBytes = bytes;
    storedBacklog.resize(this, this.#isEnded || this.#handedOver !== undefined ? 0 : this.limitedBytes);
  }

  // ----------------------------------------------------------------------------------------------------------------- changes

  /** The properties of the session have changed, and an acknowledgement waits for the commit. */
  changed(): void {
    this.#isMetaDirty = true;
    // when the client returns, unsent messages must be persisted as sent before they are sent
    if (this.#session.delivery.flows.inflight !== undefined) this.#isFlowDirty = true;
    this.#ledger.promise(this, 64);
  }

  /** A subscription has been added, changed or removed, and an acknowledgement waits for the commit. */
  subscribed(filter: string): void {
    (this.#filters ??= new Set()).add(filter);
    this.#ledger.promise(this, 32 + filter.length);
  }

  /** Whether a change of a subscription is not committed yet. */
  isUnwritten(filter: string): boolean {
    return this.#filters?.has(filter) === true || this.#writingFilters?.has(filter) === true;
  }

  /** The retained messages that a subscription is still to be sent have changed. Nothing waits for the commit. */
  subscriptionTouched(filter: string): void {
    (this.#filters ??= new Set()).add(filter);
    this.#ledger.touch(this);
  }

  /** The packet ids have changed, and a packet waits for the commit. */
  flowChanged(): void {
    this.#isFlowDirty = true;
    this.#ledger.promise(this, this.#flowCost);
  }

  /** The packet ids have changed. Nothing waits for the commit. */
  flowTouched(): void {
    this.#isFlowDirty = true;
    this.#ledger.touch(this, this.#flowCost);
  }

  /** The commit that contains all changes so far; 0 if they are committed. */
  get ticket(): number {
    return this.#ledger.ticketOf(this);
  }

  /** Bytes that another change adds to the commit: it has one flow record, however often that has changed. */
  get #flowCost(): number {
    return this.isDirty ? 8 : this.#flowBytes;
  }

  /**
   * Persist a message that is to be delivered.
   * @param isInMemory the session has the message in memory as well; only allowed if `isCaughtUp`
   */
  append(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    isInMemory: boolean
  ): PersistedMessage {
    message.detachFromPublisher();
    const persisted = new PersistedMessage(message, qos, retain, ids, this.#next++);
    if (isInMemory) this.#pagedTo = this.#pageFrom = this.#next;
    this.#open = appended(this.#open, persisted);
    this.added(persisted);
    // while the store fails, messages that are done must not accumulate
    if (this.#open.length > 2 * this.count + 64) this.#open = this.#takeOpen();
    this.#isFlowDirty = true;
    const bytes = message.bytes + ENTRY_BYTES + this.#flowCost;
    if (qos > 0) this.#ledger.promise(this, bytes);
    else this.#ledger.touch(this, bytes);
    return persisted;
  }

  /** A message is acknowledged, released or dropped: it is not sent again. */
  finish(persisted: PersistedMessage): void {
    // the number is checked, too: a message may have been read twice, or its record discarded as damaged
    if (persisted.isDone || this.#isEnded || this.#done.has(persisted.seq)) return;
    this.removed(persisted);
    persisted.finish();
    this.#done.add(persisted.seq);
    const { segment } = persisted;
    if (segment !== undefined && --segment.unfinished === 0 && segment.isCommitted) this.#discardSegment(segment);
    this.flowTouched();
  }

  #discardSegment(segment: Segment): void {
    this.#emptySegments = appended(this.#emptySegments, segment.first);
    const at = this.#segments.indexOf(segment); // usually the first one
    if (at >= 0) this.#segments.splice(at, 1);
  }

  /**
   * Begin to hand over the messages of an ended session to other members of its share groups. The session stays in the store until `end`,
   * so that the next process can continue. `nextToHandOver` reads the messages in order, in memory or not.
   */
  beginHandOver(): void {
    const inFlight = this.#offlineInFlight ?? this.#loadingInFlight ?? this.#encodeInFlight();
    this.#offlineInFlight = Buffer.from(inFlight); // a new buffer, which makes a pending drop of messages stop
    this.#offlineInFlightCount = countUnacknowledged(inFlight);
    this.#epoch++;
    this.#wantedMessages = undefined;
    this.#pageFrom = this.#handOverFrom = Math.min(this.#head, this.#open[0]?.seq ?? this.#next);
    this.#pagedTo = this.#done.low;
    this.#segments = NONE;
    const flights = (this.#handedOver = new Map<number, number>());
    forEachInFlight(inFlight, (_id, _state, flags, seq) => {
      if ((flags & UNSENT) === 0) flights.set(seq, flags & 3);
    });
    this.resized();
    this.changed();
  }

  /**
   * Get the next messages that are not done, in order. The messages of the previous call must be done.
   * @returns undefined if there are no more
   * @throws the error of the store
   */
  async nextToHandOver(): Promise<readonly PersistedMessage[] | undefined> {
    for (;;) {
      const from = (this.#pageFrom = this.#handOverFrom);
      const unwritten = this.#unwritten;
      if (from >= unwritten) {
        if (from >= this.#next) return undefined;
        this.#handOverFrom = this.#next;
        const rest = [...this.#unfolded, ...this.#writing, ...this.#open];
        return rest.filter(({ seq, isDone }) => seq >= from && !isDone);
      }
      const [key, to] = [from, unwritten].map((seq) => numberKey(Kind.segment, this.number, seq));
      const [entry] = await this.#ledger.read(key, to, 1);
      if (entry === undefined) {
        this.#handOverFrom = unwritten;
        continue;
      }
      this.#handOverFrom = segmentFirst(entry.key) + 1;
      const read = this.#readSegment(entry);
      if (read instanceof BrokerError) await this.#discardDamaged(entry, unwritten, read);
      else if (read.messages.length > 0) return read.messages;
    }
  }

  /** Make `nextToHandOver` return the messages of its last call again, as far as they are not done. */
  repeatHandOver(): void {
    this.#handOverFrom = this.#pageFrom;
  }

  /** QoS at which a message to hand over is in flight; undefined if it was never sent. */
  flightQos({ seq }: PersistedMessage): number | undefined {
    return this.#handedOver?.get(seq);
  }

  /** Delete the session from the store. @param filters topic filters of its subscriptions */
  end(filters: Iterable<string>): void {
    this.#isEnded = true;
    this.resized();
    // the set may also have filters of removed subscriptions that are still in the store
    for (const filter of filters) (this.#filters ??= new Set()).add(filter);
    this.#open = this.#unfolded = NONE;
    this.#epoch++;
    this.#ledger.promise(this);
  }

  // -------------------------------------------------------------------------------------------------------------- the ledger

  /** See `Durable`. */
  write(draft: Draft, journal: Draft | undefined): void {
    if (this.#isEnded) {
      this.#isEndInCommit = !this.#isEndCommitted;
      if (this.#isEndInCommit) this.#writeEnd(draft);
      return;
    }
    this.#writtenTo = this.#next;
    const { number } = this;
    this.#inCommit = (this.#isMetaDirty ? META : 0) | (this.#isFlowDirty ? FLOW : 0);
    if (this.#isMetaDirty) {
      this.#isMetaDirty = false;
      this.#session.writeRecord(draft, number);
    }
    if (this.#filters !== undefined) {
      const { subscriptions, delivery } = this.#session;
      const { feeds } = delivery;
      for (const filter of this.#filters) {
        const subscription = subscriptions.get(filter);
        writeSubscription(draft, number, filter, subscription, subscription && feeds?.pendingBefore(subscription));
      }
      this.#writingFilters = this.#filters;
      this.#filters = undefined;
    }
    this.#isFolding = journal === undefined;
    if (journal === undefined) this.#fold(draft);
    else if (this.#open.length > 0) {
      this.#writing = this.#takeOpen();
      writeSegments(journal, number, this.#writing, false);
    }
    if (journal !== undefined && !this.#isFlowDirty) return;
    this.#isFlowDirty = false;
    const { count, bytes, qos0Count } = this;
    // the segments of a journal begin after those of the store
    const head = journal === undefined ? this.#writingHead : this.#committedHead;
    const inFlight = this.#offlineInFlight ?? this.#loadingInFlight ?? this.#encodeInFlight();
    const pendingFeeds = this.#session.delivery.feeds?.pending ?? NONE;
    const record = { next: this.#next, head, count, bytes, qos0Count, done: this.#done, inFlight, pendingFeeds };
    this.#flowBytes = writeFlow(journal ?? draft, number, record);
  }

  #takeOpen(): PersistedMessage[] {
    const open = this.#open;
    this.#open = NONE;
    return open.some(({ isDone }) => isDone) ? open.filter(({ isDone }) => !isDone) : open;
  }

  #fold(draft: Draft): void {
    const { number } = this;
    this.#deletingSegments = this.#emptySegments;
    this.#emptySegments = NONE;
    for (const first of this.#deletingSegments) draft.key(Kind.segment).u48(number).u48(first).delete();
    const unfolded = this.#unfolded.filter(({ isDone }) => !isDone);
    this.#foldingCount = unfolded.length;
    this.#writing = [...unfolded, ...this.#takeOpen()];
    this.#unfolded = NONE;
    // a segment has only messages in memory or only others, because a page begins with a segment
    const split = this.#pageFrom === this.#next ? -1 : this.#writing.findIndex(({ seq }) => seq >= this.#pageFrom);
    writeSegments(draft, number, split > 0 ? this.#writing.slice(0, split) : this.#writing);
    if (split > 0) writeSegments(draft, number, this.#writing.slice(split));
    this.#writingHead = this.#head;
  }

  #writeEnd(draft: Draft): void {
    const { number } = this;
    draft.key(Kind.session).u48(number).delete();
    draft.key(Kind.flow).u48(number).delete();
    for (const filter of this.#filters ?? []) draft.key(Kind.subscription).u48(number).tail(filter).delete();
    // only the store knows which segments exist, so the sweeper deletes them
    if (this.#next > 1) draft.key(Kind.garbage).u48(number).value().put();
  }

  /** First number of the oldest segment that is still needed. */
  get #head(): number {
    const first = this.#segments[0]?.first ?? this.#unfolded[0]?.seq ?? this.#writing[0]?.seq ?? this.#pageFrom;
    return Math.min(first, this.#pageFrom);
  }

  /** See `Durable`. */
  committed(): void {
    this.#inCommit = this.#foldingCount = 0;
    if (this.#isEnded) {
      if (!this.#isEndInCommit) return; // the commit began before the session ended
      this.#isEndInCommit = false;
      this.#isEndCommitted = true;
      if (this.#next > 1) this.#session.ports.sweeper.add(this.number);
      return;
    }
    this.#writingFilters = undefined;
    this.settle(this.#writing, this.#writtenTo);
    if (this.#isFolding) this.#folded();
    else for (const persisted of this.#writing) this.#unfolded = appended(this.#unfolded, persisted);
    this.#writing = NONE;
    if (this.#session.state === 'disconnected' && !this.isDirty) this.#unload();
    this.resized();
    this.#trimBacklog();
    this.trim();
  }

  #folded(): void {
    this.#deletingSegments = NONE;
    this.#committedHead = this.#writingHead;
    let segment: Segment | undefined;
    for (const persisted of this.#writing) {
      if (persisted.segment === segment) continue;
      segment = persisted.segment as Segment;
      segment.isCommitted = true;
      if (segment.unfinished === 0) this.#emptySegments = appended(this.#emptySegments, segment.first);
      // segments that are not in memory are read with their page
      else if (segment.first < this.#pageFrom) this.#segments = appended(this.#segments, segment);
    }
    if (this.#emptySegments.length > 0) this.#ledger.touch(this);
  }

  /** See `Durable`. */
  commitFailed(failure: CommitFailure): void {
    const [inCommit, foldingCount] = [this.#inCommit, this.#foldingCount];
    this.#inCommit = this.#foldingCount = 0;
    for (const filter of this.#writingFilters ?? []) (this.#filters ??= new Set()).add(filter);
    if (this.#isEnded) return;
    this.#isMetaDirty ||= (inCommit & META) !== 0;
    this.#isFlowDirty ||= (inCommit & FLOW) !== 0;
    const written = leaveSegments(this.#writing);
    // these segments may or may not be in the store: they are deleted before their unfinished messages are written again
    const empty = failure === 'unknown' ? [...this.#deletingSegments, ...written] : this.#deletingSegments;
    if (empty.length > 0) this.#emptySegments = [...this.#emptySegments, ...empty];
    this.#deletingSegments = NONE;
    // the journals still contain what was to be folded
    if (foldingCount > 0) this.#unfolded = this.#writing.slice(0, foldingCount);
    this.#open = [...this.#writing.slice(foldingCount), ...this.#open];
    this.#writing = NONE;
    const isFull = failure === 'untouched';
    const isHere = this.#session.state === 'connected';
    for (const persisted of failure === 'retried' ? NONE : [...this.#open]) {
      if (isRefused(persisted, this.#ledger.settled, isFull && !isHere)) this.finish(persisted);
      else if (isFull && persisted.qos === 0) this.#dropOne(persisted, 'total_queue_full');
    }
    this.#session.delivery.backlog?.take(({ persisted }) => persisted?.isDone === true);
    this.#open = this.#takeOpen();
  }

  // ------------------------------------------------------------------------------------------------------ away and back again

  /** The client has disconnected: further messages are in the store alone, and after the next commit nothing stays in memory. */
  detached(): void {
    this.#epoch++;
    this.#isPaging = false;
    this.#isMetaDirty = this.#isFlowDirty = true;
    this.#ledger.touch(this);
  }

  #unload(): void {
    const session = this.#session;
    if (this.#offlineInFlight !== undefined || this.#loading !== undefined || this.#open.length > 0) return;
    if (session.inbound?.isDeciding) return; // their decisions are still to be written
    this.#offlineInFlight = this.#encodeInFlight();
    this.#offlineInFlightCount = countUnacknowledged(this.#offlineInFlight);
    this.#offlineInFlightBytes = session.delivery.flows.inflight?.bytes ?? 0;
    const unfolded = this.#unfolded.filter(({ isDone }) => !isDone);
    this.#unfolded = unfolded.length > 0 ? unfolded : NONE;
    this.#leaveMemory();
    this.resized();
  }

  /** Remove all committed messages from memory. */
  #leaveMemory(): void {
    this.#wantedMessages = undefined;
    this.#pageFrom = this.#head;
    this.#pagedTo = this.#done.low;
    this.#segments = NONE;
    this.#session.inbound?.unload();
    this.#session.delivery.unload();
  }

  /** Unload the session again with the next commit, because the client that it was loaded for has not connected. */
  unloadSoon(): void {
    this.#ledger.touch(this); // `committed` unloads a disconnected session
  }

  #encodeInFlight(): Buffer {
    const { delivery, inbound } = this.#session;
    const { inflight, isOnline } = delivery.flows;
    return encodeInFlight(inflight, inbound?.awaitingRel, inbound?.undecided, !isOnline);
  }

  /** Restore a flow record at the start of the broker, or a newer one from a journal. Call `resized` afterwards. */
  restore(record: FlowRecord): void {
    const { next, head, done, inFlight } = record;
    this.restoreCounts(record);
    this.#next = next;
    this.#pageFrom = this.#committedHead = head;
    this.#done = done;
    // segments from the head on may all be done, but not deleted yet
    this.#pagedTo = Math.min(head, done.low);
    this.#offlineInFlight = inFlight.length > NOTHING_IN_FLIGHT.length ? Buffer.from(inFlight) : NOTHING_IN_FLIGHT;
    this.#offlineInFlightCount = countUnacknowledged(this.#offlineInFlight);
    this.#isFlowDirty = false;
    this.#isMetaDirty = false;
  }

  /** Load the messages in flight, because the client returns. @returns undefined if they are in memory already */
  load(): Promise<void> | undefined {
    if (this.#loading === undefined && this.#offlineInFlight !== undefined) {
      const inFlight = this.#offlineInFlight;
      this.#loading = this.#load(inFlight)
        .catch((error: unknown) => {
          this.#offlineInFlight = inFlight;
          this.#leaveMemory();
          throw error;
        })
        .finally(() => {
          this.#loading = this.#loadingInFlight = undefined;
        });
    }
    return this.#loading;
  }

  async #load(inFlight: Buffer): Promise<void> {
    const session = this.#session;
    await this.#trimming; // two tasks at once would both read the messages, and drop them twice
    await this.#drop(0);
    if (this.#isEnded || this.#handedOver !== undefined) return; // the session ended meanwhile
    const epoch = ++this.#epoch;
    const inflight = new Inflight();
    const wanted = new Map<number, number>();
    forEachInFlight(inFlight, (id, state, flags, seq) => {
      inflight.restore(id, state, flags);
      if (seq > 0) wanted.set(seq, id);
    });
    const awaited = awaitedIds(inFlight);
    const { client, delivery, ports } = session;
    delivery.flows.restore(inflight.count > 0 ? inflight : undefined);
    const canExpire = client.zoneSettings.awaitRelTimeout > 0;
    if (awaited.size > 0) session.ensureInbound().restore(awaited, canExpire ? ports.time.nowMs : undefined);
    else session.inbound?.unload();
    this.#offlineInFlight = undefined;
    this.#loadingInFlight = inFlight;
    this.#wantedMessages = wanted;
    while (wanted.size > 0 && !this.isCaughtUp && this.#epoch === epoch) await this.#page(epoch);
    if (this.#epoch !== epoch) return;
    this.#wantedMessages = undefined;
    for (const id of wanted.values()) inflight.free(id); // the message is lost; the error was reported
  }

  /**
   * Start to drop the oldest messages if more wait than the zone allows, or more bytes than `mostBytes`. Each commit calls this, and not the
   * arrival of a message: a message that is refused displaces nothing.
   */
  trim(mostBytes = Infinity): void {
    const slack = this.#session.client.zoneSettings.maxMqueueLen >> 6;
    if (this.#trimming !== undefined || this.#loading !== undefined || this.#excess(slack, mostBytes) <= 0) return;
    const { ports } = this.#session;
    ports.work.begin();
    // not synchronously: a listener of the drop event may publish, which would call `trim` again
    this.#trimming = Promise.resolve()
      .then(() => this.#drop(slack, mostBytes))
      .catch((error: unknown) =>
        ports.announcer.failed(error, 'dropping messages beyond the queue limits', this.#session.client)
      )
      .finally(() => {
        this.#trimming = undefined;
        ports.work.end();
      });
  }

  /** Drop the oldest messages of the lowest priority until `limitedBytes` is at most `mostBytes`, as far as that is possible now. */
  async shorten(mostBytes: number): Promise<void> {
    while (this.#trimming !== undefined) await this.#trimming;
    this.trim(mostBytes);
    await this.#trimming;
    this.resized(); // the bytes in flight may not have been known before
  }

  /**
   * Get the least number of messages to drop. With priorities the limits apply to each priority, and are exact only in memory; here they
   * are multiplied.
   */
  #excess(slack: number, totalBytes = Infinity): number {
    const { maxMqueueLen, maxMqueueBytes, mqueuePriorities } = this.#session.client.zoneSettings;
    const count = this.#limited;
    const most = maxMqueueLen * (1 + (mqueuePriorities?.size ?? 0));
    if (most > 0 && count > most + slack) return count - most;
    const { limitedBytes } = this;
    if (limitedBytes > totalBytes) return 1;
    const mostBytes = mqueuePriorities === undefined ? maxMqueueBytes : maxMqueueBytes * 2;
    return mostBytes > 0 && limitedBytes > mostBytes ? 1 : 0;
  }

  /** Drop messages beyond the limits. @param mostBytes what the limit on the backlogs of all sessions leaves to this one */
  async #drop(slack: number, mostBytes = Infinity): Promise<void> {
    const session = this.#session;
    const { zoneSettings } = session.client;
    const { backlog } = session.delivery;
    if (this.#isEnded || this.#excess(slack, mostBytes) <= 0) return;
    if (this.#ledger.isFailed) {
      this.#dropUnwritten(this.#dropper(mostBytes, this.#offlineInFlight)); // the messages of the store cannot be read
      return;
    }
    while (backlog !== undefined && backlog.length > 0 && this.#excess(0, mostBytes) > 0)
      backlog.dropOldest(this.#dropReason);
    const inFlight = this.#offlineInFlight;
    if (inFlight === undefined) {
      if (session.state !== 'connected' || this.#excess(slack, mostBytes) <= 0) return;
      this.page(); // messages are paged into memory, where the backlog drops them
      return;
    }
    const drop = this.#dropper(mostBytes, inFlight);
    const isEnough = () => zoneSettings.mqueuePriorities === undefined && this.#excess(0, mostBytes) <= 0;
    let isAtHead = true;
    for (
      let from = this.#pageFrom, limit = FIRST_DROP_RECORDS;
      !isEnough();
      limit = Math.min(limit * 2, MAX_DROP_RECORDS)
    ) {
      const unwritten = this.#unwritten;
      if (from >= unwritten || this.#ledger.isFailed) {
        this.#dropUnwritten(drop);
        return;
      }
      const [key, to] = [from, unwritten].map((seq) => numberKey(Kind.segment, this.number, seq));
      const entries = await this.#ledger.read(key, to, limit);
      if (this.#offlineInFlight !== inFlight || this.#isEnded) return;
      for (const entry of entries) {
        if (isEnough()) return;
        const read = this.#readSegment(entry);
        const isBad = read instanceof BrokerError;
        if (isBad) {
          await this.#discardDamaged(entry, unwritten, read);
          if (this.#offlineInFlight !== inFlight || this.#isEnded) return;
        } else drop.take(read.messages);
        from = segmentFirst(entry.key) + 1;
        isAtHead &&= isBad || read.segment.unfinished === 0;
        if (isAtHead) this.#pageFrom = from; // the segment need not be read again
      }
      if (entries.length < limit) from = unwritten;
    }
  }

  /** @param inFlight the packet ids in flight */
  #dropper(mostBytes: number, inFlight: Buffer = NOTHING_IN_FLIGHT): Dropper {
    const queue = {
      isTooLong: () => this.#excess(0, mostBytes) > 0,
      isTooLarge: () => this.limitedBytes > mostBytes,
      drop: (persisted: PersistedMessage, reason = this.#dropReason) => this.#dropOne(persisted, reason),
      foundInFlight: (bytes: number) => {
        this.#offlineInFlightBytes = Math.max(this.#offlineInFlightBytes, bytes);
      }
    };
    return new Dropper(queue, this.#session.client.zoneSettings, inFlight);
  }

  /**
   * Drop messages that are in no segment yet. Those below `pageFrom` are in memory, and are left to the session. Usually they are committed;
   * while the store fails, they are those that are not.
   */
  #dropUnwritten(drop: Dropper): void {
    const { isFailed } = this.#ledger;
    const unwritten = [...this.#unfolded, ...this.#writing, ...this.#open];
    drop.take(unwritten.filter(({ seq }) => seq >= this.#pageFrom && seq >= this.settledTo === isFailed));
    drop.end();
    this.#open = this.#takeOpen(); // forget the dropped messages now: the next commit may be late
  }

  #dropOne(persisted: PersistedMessage, reason: DropReason): void {
    if (persisted.isDone) return;
    const { message } = persisted;
    this.finish(persisted);
    this.#session.delivery.drop(message, reason);
  }

  /** Reason of the next drop: if the session is within its own limits, the limit on all backlogs. */
  get #dropReason(): DropReason {
    return this.#excess(0) > 0 ? 'queue_full' : 'total_queue_full';
  }

  /** Drop messages in memory beyond the limits of the session, except for messages that are not committed. */
  #trimBacklog(): void {
    this.#session.delivery.backlog?.trim(this.count - this.settledCount, this.bytes - this.settledBytes);
  }

  /** Read the next page of messages into memory, unless one is being read. */
  page(): void {
    if (this.#isPaging || this.isCaughtUp) return;
    this.#isPaging = true;
    const epoch = this.#epoch;
    this.#session.ports.work.begin();
    this.#page(epoch)
      .then(
        () => this.#endPage(epoch),
        (error: unknown) => this.#pageFailed(epoch, error)
      )
      .catch((error: unknown) => this.#session.failInternally(error, 'sending queued messages'))
      .finally(() => this.#session.ports.work.end());
  }

  #endPage(epoch: number): void {
    if (this.#epoch !== epoch) return;
    this.#isPaging = false;
    this.#session.delivery.pump();
  }

  /** A page could not be read. Try again when the store works again; if it has not failed, close the connection. */
  #pageFailed(epoch: number, error: unknown): void {
    const session = this.#session;
    if (this.#epoch !== epoch) return;
    if (this.#ledger.isFailed) {
      afterCommit(this.#ledger, () => this.#endPage(epoch));
      return;
    }
    this.#isPaging = false;
    session.ports.announcer.failed(error, 'reading queued messages from the store', session.client);
    if (session.delivery.flows.isOnline) session.lifecycle.close('store_failed');
  }

  /** Read one page: records of the store, or at last the messages that are in no segment yet. */
  async #page(epoch: number): Promise<void> {
    const { ports } = this.#session;
    const unwritten = this.#unwritten;
    if (this.#pageFrom >= unwritten) {
      for (const persisted of [...this.#unfolded, ...this.#writing, ...this.#open])
        if (persisted.seq >= this.#pageFrom) this.#placeInMemory(persisted);
      this.#pagedTo = this.#pageFrom = this.#next;
      this.#trimBacklog();
      return;
    }
    const from = numberKey(Kind.segment, this.number, this.#pageFrom);
    const to = numberKey(Kind.segment, this.number, unwritten);
    const limit = this.#pageRecords;
    const entries = await this.#ledger.read(from, to, limit);
    if (this.#epoch !== epoch) return;
    ports.time.read();
    let bytes = 0;
    for (const entry of entries) {
      bytes += entry.value.length;
      const fault = this.#placeSegment(entry);
      if (fault === undefined) continue;
      await this.#discardDamaged(entry, unwritten, fault);
      if (this.#epoch !== epoch) return;
    }
    if (entries.length < limit) this.#pagedTo = this.#pageFrom = unwritten;
    if (bytes < SMALL_PAGE_BYTES) this.#pageRecords = Math.min(limit * 2, MAX_PAGE_RECORDS);
    else if (bytes > LARGE_PAGE_BYTES) this.#pageRecords = Math.max(limit >> 1, 1);
    this.#trimBacklog();
  }

  /** Number of the first message that is in no segment of the store. */
  get #unwritten(): number {
    return (this.#unfolded[0] ?? this.#writing[0] ?? this.#open[0])?.seq ?? this.#next;
  }

  /** Put the messages of a record into memory. @returns the error if the record is damaged */
  #placeSegment(entry: Entry): BrokerError | undefined {
    const read = this.#readSegment(entry);
    if (read instanceof BrokerError) {
      this.#pagedTo = this.#pageFrom = segmentFirst(entry.key) + 1;
      return read;
    }
    this.#pagedTo = this.#pageFrom = read.end;
    if (read.segment.unfinished > 0) this.#segments = appended(this.#segments, read.segment);
    for (const persisted of read.messages) this.#placeInMemory(persisted);
    return undefined;
  }

  /** Delete a damaged record, count its messages as lost, and report the error. */
  async #discardDamaged(entry: Entry, unwritten: number, fault: BrokerError): Promise<void> {
    const from = segmentFirst(entry.key);
    const [start, end] = [from + 1, unwritten].map((seq) => numberKey(Kind.segment, this.number, seq));
    const [next] = await this.#ledger.read(start, end, 1);
    if (this.#isEnded) return;
    const to = next === undefined ? unwritten : segmentFirst(next.key);
    let lost = 0;
    for (const [first, behind] of this.#done.gapsBelow(to)) if (behind > from) lost += behind - Math.max(first, from);
    this.#done.addRange(from, to);
    this.#emptySegments = appended(this.#emptySegments, from);
    this.lost(lost);
    this.resized();
    this.flowTouched();
    if (lost === 0) return; // all of its messages were done, or the loss was reported before
    const { ports, client } = this.#session;
    ports.announcer.failed(lossOf(fault, lost, client), 'reading queued messages from the store', client);
  }

  /**
   * Read the messages of a record that are not done.
   * @returns an error if the record is damaged
   * @throws BrokerError STORE_TOO_NEW
   */
  #readSegment(entry: Entry): { segment: Segment; messages: PersistedMessage[]; end: number } | BrokerError {
    const segment = new Segment(segmentFirst(entry.key), true);
    let all: PersistedMessage[];
    try {
      all = readSegment(entry, this.#session.ports.time);
    } catch (error) {
      const isKnown = error instanceof RecordError;
      const bad = isKnown ? error : new RecordError('STORE_CORRUPT', entry.key, (error as Error).message);
      const fault = inStore(this.#ledger.store, bad);
      if (fault.code === 'STORE_TOO_NEW') throw fault;
      return fault;
    }
    const messages = all.filter(({ seq }) => !this.#done.has(seq));
    for (const persisted of messages) persisted.segment = segment;
    segment.unfinished = messages.length;
    if (segment.unfinished === 0) this.#emptySegments = appended(this.#emptySegments, segment.first);
    return { segment, messages, end: all[all.length - 1].seq + 1 };
  }

  #placeInMemory(persisted: PersistedMessage): void {
    if (persisted.isDone) return;
    const id = this.#wantedMessages?.get(persisted.seq);
    if (id === undefined) this.#session.delivery.queue(persisted);
    else {
      this.#wantedMessages?.delete(persisted.seq);
      this.#session.delivery.flows.inflight?.restoreMessage(id, persisted);
    }
  }
}

/**
 * Tells whether a failed commit has refused a message to its publisher, so that it can be forgotten. A message that was sent is written later;
 * if that could be never, because the store is full and the client is away, it is lost as in a crash.
 */
function isRefused({ message, isSent, isDone }: PersistedMessage, settled: number, mayBeLost: boolean): boolean {
  return !isDone && message.ticket > settled && (!isSent || mayBeLost);
}

/** Note that the segments of messages were not committed. @returns the first numbers of these segments */
function leaveSegments(messages: readonly PersistedMessage[]): number[] {
  const firsts: number[] = [];
  for (const persisted of messages) {
    const first = persisted.segment?.first;
    if (first !== undefined && firsts.at(-1) !== first) firsts.push(first);
    persisted.segment = undefined;
  }
  return firsts;
}

/** The error for a damaged record. @param lost number of its messages */
function lossOf({ code, message }: BrokerError, lost: number, { clientId }: SessionClient): BrokerError {
  const lostMessages = `${lost} accepted messages for client ${JSON.stringify(clientId)} are lost with it`;
  const remedy = 'Run checkStore (embermq store check) to find further damage, or restore a backup.';
  return new BrokerError(code, `${message}. ${lostMessages}. ${remedy}`);
}

/** The empty list, shared by all sessions: separate arrays would be a tenth of the memory of an offline session. */
const NONE: never[] = Object.freeze([]) as unknown as never[];

function appended<T>(list: T[], item: T): T[] {
  if (list === NONE) return [item];
  list.push(item);
  return list;
}

/** Bits of `SessionLog.#inCommit`. */
const META = 1;
const FLOW = 2;

/** Records of the first read when messages are dropped; usually a few suffice. Each further read has twice as many. */
const FIRST_DROP_RECORDS = 4;
/** Most records of one read; a record has up to 128 KB. */
const MAX_DROP_RECORDS = 64;
