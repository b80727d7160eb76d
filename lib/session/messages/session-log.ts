// One session in the store. Its state is written as it is, not as it changed: one flow record holds which messages are
// done (usually: all below a number), which packet ids are in flight and which are awaited; each commit that concerns
// the session replaces it. Replaying changes would need an order between records. QoS 1 to durable receivers costs
// about twice as much as in memory, QoS 2 three times.
//
// A message moves through these lists: `#open` until a commit begins, `#writing` during it, `#unfolded` while it is
// only in a journal, and then a segment, a record of many messages that is deleted as a whole. The lists are in order
// of numbers, and everything in one list is older than everything in the list before it. Numbers ascend and are never
// used twice: segments, journals and the set of numbers that are done rely on it. `write` is followed by exactly one
// `committed` or `commitFailed`. Segments are deleted only by a commit that folds, as a whole, when no message of them
// is needed.
//
// Messages with a number below `pageFrom` are in memory (queued or in flight) or done; later ones are only in the
// store, or wait for a commit. While the client is away all messages are only in the store: memory then holds which
// numbers are done, and the packet ids as bytes (`offline`). Their messages are loaded before the client is connected
// (`load`), the others as they are sent (`Queue.page`).

import { SeqSet } from '../../base/collections/seq-set.ts';
import { BrokerError } from '../../base/errors.ts';
import { detachFromPublisher, type Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import { RequestedFilters } from '../../routing/requested-filters.ts';
import { inStore } from '../../store/commits.ts';
import type { CommitFailure, Durable } from '../../store/durable.ts';
import { Kind, numberKey } from '../../store/keys.ts';
import type { Ledger } from '../../store/ledger.ts';
import { type Draft, RecordError } from '../../store/record.ts';
import {
  leaveSegments,
  PersistedMessage,
  type ReadSegment,
  readUnfinished,
  Segment,
  segmentFirst,
  writeSegments
} from '../../store/segment.ts';
import type { Entry } from '../../store/store.ts';
import type { Session } from '../session.ts';
import { StoredQueue } from '../total-backlog.ts';
import { type FlowRecord, writeFlow } from './flow-record.ts';
import {
  awaitedIds,
  encodeInFlight,
  forEachInFlight,
  inFlightCounts,
  type OfflineFlights,
  offlineFlights
} from './in-flight-record.ts';
import type { HandOverPosition, Queue } from './queue.ts';
import { writeSubscription } from './session-record.ts';
import { writeSession } from './session-writer.ts';

/** Approximate size of a message in the store, without its packet. */
const ENTRY_BYTES = 48;

/** Bits of `#dirty`: the properties of the session, and its flow record. */
const META = 1;
const FLOW = 2;

/** The empty list, shared by all sessions: separate arrays would be a tenth of the memory of an offline session. */
const NONE: never[] = Object.freeze([]) as unknown as never[];

/**
 * One session in the store: its properties, its subscriptions, its messages by number, and which of these are done.
 *
 * The log decides what a commit contains, and writes it again if the commit fails.
 */
export class SessionLog extends StoredQueue implements Durable {
  isDirty = false;
  /** Number of the session in keys. */
  readonly number: number;
  readonly session: Session;
  readonly ledger: Ledger;
  /** Number of messages that are not done. */
  count = 0;
  /** Bytes of these messages. */
  bytes = 0;
  /** Number of QoS 0 messages among them. */
  qos0Count = 0;
  /** Number of the messages that are committed and not done. */
  settledCount = 0;
  /** Bytes of these messages. */
  settledBytes = 0;
  /** Messages with a lower number are committed, or were refused. */
  settledTo = 1;
  /** Number of the next message. */
  next = 1;
  /** First number of the next page. No segment from there on is in memory. */
  pageFrom = 1;
  /** Numbers of messages that are done. */
  done = new SeqSet();
  /** The number after the last message that was handed over by another session (`PersistedMessage.isFirst`); 0 if there was none. */
  firstTo = 0;
  /** True if the session has ended, so that its messages are no longer needed. */
  isEnded = false;
  /** The packet ids of the session while its client is away; undefined: they are in `Inflight`. */
  offline: OfflineFlights | undefined = undefined;
  /** The parts that the next commit writes. */
  #dirty = META | FLOW;
  /** Bits of `#dirty` that the commit in progress has cleared. */
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
  /** True if all messages that are not done are in memory. */
  isCaughtUp = true;
  /** The value of `next` at the last write. */
  #writtenTo = 1;
  /** Messages that are not written yet. */
  #open: PersistedMessage[] = NONE;
  /** Messages in the commit in progress. */
  #writing: PersistedMessage[] = NONE;
  /** Committed messages that are only in a journal; older than the two lists above. */
  #unfolded: PersistedMessage[] = NONE;
  /** True if the commit in progress writes the journaled messages to segments. */
  #isFolding = false;
  /** Number of these messages, which are the first of `#writing`. */
  #foldingCount = 0;
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
  /** The bytes of this session that `TotalBacklog.storedBytes` includes. */
  #countedBytes = 0;
  /** True if the messages are handed over, and no longer dropped for other sessions. */
  #isHandedOver = false;

  /** @param number number of the session in keys */
  constructor(session: Session, number: number, ledger: Ledger) {
    super();
    this.session = session;
    this.number = number;
    this.ledger = ledger;
  }

  get #queue(): Queue {
    return this.session.outlet.ensureQueue();
  }

  // ----------------------------------------------------------------------------------------------------------------- changes

  /** Note that the properties of the session have changed, and that an acknowledgement waits for the commit. */
  changed(): void {
    this.#dirty |= META;
    // when the client returns, unsent messages must be persisted as sent before they are sent
    if ((this.session.outlet.inflight?.count ?? 0) > 0) this.#dirty |= FLOW;
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
    this.#dirty |= FLOW;
    this.ledger.promise(this, this.#flowCost);
  }

  /** Note that the packet ids, or which messages are done, have changed. Nothing waits for the commit. */
  flowTouched(): void {
    this.#dirty |= FLOW;
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

  // ---------------------------------------------------------------------------------------------------------------- messages

  /** True if messages that are to be sent first may be only in the store. */
  get hasUnreadFirst(): boolean {
    return this.firstTo > this.pageFrom && this.firstTo > this.done.low;
  }

  /** Number of the first message that is in no segment of the store. */
  get unwritten(): number {
    return (this.#unfolded[0] ?? this.#writing[0] ?? this.#open[0])?.seq ?? this.next;
  }

  /** Get the messages from this number on that are in no segment of the store, in order. Some of them may be done. */
  outsideSegments(from: number): PersistedMessage[] {
    return [...this.#unfolded, ...this.#writing, ...this.#open].filter(({ seq }) => seq >= from);
  }

  /**
   * Persist a message that is to be delivered.
   * @param isInMemory the session has the message in memory as well; only allowed if `isCaughtUp`
   * @param isFirst see `PersistedMessage`
   */
  append(
    message: Message,
    qos: QoS,
    retain: boolean,
    subscriptionIds: readonly number[] | undefined,
    isInMemory: boolean,
    isFirst: boolean
  ): PersistedMessage {
    detachFromPublisher(message);
    const persisted = new PersistedMessage(message, qos, retain, subscriptionIds, this.next++, isFirst);
    if (isFirst) this.firstTo = this.next;
    this.isCaughtUp = isInMemory;
    if (isInMemory) this.pageFrom = this.next;
    this.#open = appended(this.#open, persisted);
    this.count++;
    this.bytes += message.bytes;
    if (qos === 0) this.qos0Count++;
    // while the store fails, messages that are done must not accumulate
    if (this.#open.length > 2 * this.count + 64) this.forgetDone();
    this.#dirty |= FLOW;
    const bytes = message.bytes + ENTRY_BYTES + this.#flowCost;
    if (qos > 0) this.ledger.promise(this, bytes);
    else this.ledger.touch(this, bytes);
    return persisted;
  }

  /** Note that a message is acknowledged, released or dropped, so that it is not sent again. */
  finish(persisted: PersistedMessage): void {
    const { seq, qos, message, segment } = persisted;
    // the number is checked, too: a message may have been read twice, or its record discarded as damaged
    if (persisted.isDone || this.isEnded || this.done.has(seq)) return;
    this.count--;
    this.bytes -= message.bytes;
    if (qos === 0) this.qos0Count--;
    if (seq < this.settledTo) {
      this.settledCount--;
      this.settledBytes -= message.bytes;
    }
    this.#forgetBytes();
    persisted.finish();
    this.done.add(seq);
    if (segment?.finishOne()) {
      this.#emptySegments = appended(this.#emptySegments, segment.first);
      const at = this.#segments.indexOf(segment); // usually the first one
      if (at >= 0) this.#segments.splice(at, 1);
    }
    this.flowTouched();
  }

  /** Reset the bytes if there are no messages: the bytes of damaged records are unknown and may be left. */
  #forgetBytes(): void {
    if (this.settledCount === 0) this.settledBytes = 0;
    if (this.count === 0) this.bytes = this.qos0Count = 0;
  }

  /** Remove messages that are done from the list of those to be written. */
  forgetDone(): void {
    this.#open = this.#takeOpen();
  }

  #takeOpen(): PersistedMessage[] {
    const open = this.#open;
    this.#open = NONE;
    return open.some(({ isDone }) => isDone) ? open.filter(({ isDone }) => !isDone) : open;
  }

  // -------------------------------------------------------------------------------------------------------------- the commit

  /** See `Durable`. */
  write(draft: Draft, journal: Draft | undefined): void {
    if (this.isEnded) {
      this.#isEndInCommit = !this.#isEndCommitted;
      if (this.#isEndInCommit) this.#writeEnd(draft);
      return;
    }
    this.#inCommit = this.#dirty;
    if ((this.#dirty & META) !== 0) writeSession(draft, Kind.session, this.number, this.session);
    this.#dirty &= ~META;
    if (this.#filters !== undefined) this.#writeSubscriptions(draft, this.#filters);
    const head = this.#writeMessages(draft, journal);
    if (journal !== undefined && (this.#dirty & FLOW) === 0) return;
    this.#dirty &= ~FLOW;
    const { next, count, bytes, qos0Count, done, firstTo } = this;
    const pendingFeeds = this.session.outlet.feeds?.pending ?? NONE;
    const record = { next, head, count, bytes, qos0Count, done, inFlight: this.#inFlight, pendingFeeds, firstTo };
    this.#flowBytes = writeFlow(journal ?? draft, this.number, record);
  }

  #writeSubscriptions(draft: Draft, filters: Set<string>): void {
    const { subscriptions, outlet } = this.session;
    const requested = RequestedFilters.of(subscriptions);
    for (const filter of filters) {
      const subscription = subscriptions.get(filter);
      const pendingBefore = subscription && outlet.feeds?.pendingBefore(subscription);
      writeSubscription(draft, this.number, filter, subscription, pendingBefore, requested?.namesOf(filter));
    }
    this.#writingFilters = filters;
    this.#filters = undefined;
  }

  /** Write the new messages. @returns the head, for the flow record */
  #writeMessages(draft: Draft, journal: Draft | undefined): number {
    this.#writtenTo = this.next;
    this.#isFolding = journal === undefined;
    if (journal === undefined) this.#fold(draft);
    else if (this.#open.length > 0) {
      this.#writing = this.#takeOpen();
      writeSegments(journal, this.number, this.#writing, false);
    }
    // the segments of a journal come after those of the store
    return journal === undefined ? this.#writingHead : this.#committedHead;
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
    const split = this.pageFrom === this.next ? -1 : this.#writing.findIndex(({ seq }) => seq >= this.pageFrom);
    writeSegments(draft, number, split > 0 ? this.#writing.slice(0, split) : this.#writing);
    if (split > 0) writeSegments(draft, number, this.#writing.slice(split));
    this.#writingHead = this.#head;
  }

  /** First number of the oldest segment that is still needed. */
  get #head(): number {
    return Math.min(this.#segments[0]?.first ?? this.unwritten, this.pageFrom);
  }

  #writeEnd(draft: Draft): void {
    const { number } = this;
    draft.key(Kind.session).u48(number).delete();
    draft.key(Kind.flow).u48(number).delete();
    for (const filter of this.#filters ?? []) draft.key(Kind.subscription).u48(number).tail(filter).delete();
    // only the store knows which segments exist, so the sweeper deletes them
    if (this.next > 1) draft.key(Kind.garbage).u48(number).value().put();
  }

  /** See `Durable`. */
  committed(): void {
    const { session } = this;
    this.#inCommit = 0;
    if (this.isEnded) {
      if (!this.#isEndInCommit) return; // the commit started before the session ended
      this.#isEndInCommit = false;
      this.#isEndCommitted = true;
      if (this.next > 1) session.ports.sweeper.add(this.number);
      return;
    }
    this.#writingFilters = undefined;
    if (this.#messagesCommitted()) this.ledger.touch(this);
    if (session.state === 'disconnected' && !this.isDirty) this.#unload();
    this.resized();
    this.#queue.trimCommitted();
    this.#queue.trimStore();
  }

  /** Note that the written messages are committed. @returns whether there are segments to delete */
  #messagesCommitted(): boolean {
    const writing = this.#writing;
    this.#foldingCount = 0;
    for (const { seq, isDone, message } of writing) {
      if (isDone || seq < this.settledTo) continue;
      this.settledCount++;
      this.settledBytes += message.bytes;
    }
    this.settledTo = this.#writtenTo;
    if (this.#isFolding) this.#folded();
    else for (const persisted of writing) this.#unfolded = appended(this.#unfolded, persisted);
    this.#writing = NONE;
    return this.#isFolding && this.#emptySegments.length > 0;
  }

  #folded(): void {
    this.#deletingSegments = NONE;
    this.#committedHead = this.#writingHead;
    let segment: Segment | undefined;
    for (const persisted of this.#writing) {
      if (persisted.segment === segment) continue;
      segment = persisted.segment as Segment;
      segment.commit();
      if (segment.unfinished === 0) this.#emptySegments = appended(this.#emptySegments, segment.first);
      // segments that are not in memory are read with their page
      else if (segment.first < this.pageFrom) this.#segments = appended(this.#segments, segment);
    }
  }

  /** See `Durable`. */
  commitFailed(failure: CommitFailure): void {
    const { session } = this;
    const { outlet } = session;
    const inCommit = this.#inCommit;
    this.#inCommit = 0;
    for (const filter of this.#writingFilters ?? []) (this.#filters ??= new Set()).add(filter);
    if (this.isEnded) return;
    this.#dirty |= inCommit;
    this.#writeAgain(failure);
    const isFull = failure === 'untouched';
    const isHere = session.state === 'connected';
    for (const persisted of failure === 'retried' ? [] : [...this.#open]) {
      if (isRefused(persisted, this.ledger.settled, isFull && !isHere)) this.finish(persisted);
      else if (isFull && persisted.qos === 0 && !persisted.isDone)
        outlet.drop(persisted.message, 'total_queue_full', persisted);
    }
    this.#queue.take(({ persisted }) => persisted?.isDone === true);
    this.forgetDone();
  }

  /** Prepare to write the messages of the failed commit again. */
  #writeAgain(failure: CommitFailure): void {
    const foldingCount = this.#foldingCount;
    this.#foldingCount = 0;
    const written = leaveSegments(this.#writing);
    // these segments may or may not be in the store: they are deleted before their unfinished messages are written again
    const empty = failure === 'unknown' ? [...this.#deletingSegments, ...written] : this.#deletingSegments;
    if (empty.length > 0) this.#emptySegments = [...this.#emptySegments, ...empty];
    this.#deletingSegments = NONE;
    // the journals still contain what was to be folded
    if (foldingCount > 0) this.#unfolded = this.#writing.slice(0, foldingCount);
    this.#open = [...this.#writing.slice(foldingCount), ...this.#open];
    this.#writing = NONE;
  }

  // -------------------------------------------------------------------------------------------------------- read segments

  /** Get the records of segments between two message numbers. @throws the error of the store */
  records(from: number, to: number, limit: number): Promise<Entry[]> {
    const { ledger, number } = this;
    return ledger.read(numberKey(Kind.segment, number, from), numberKey(Kind.segment, number, to), limit);
  }

  /**
   * Read the messages of a record that are not done.
   * @returns an error if the record is damaged: then call `discard`
   * @throws BrokerError STORE_TOO_NEW
   */
  read(entry: Entry): ReadSegment | BrokerError {
    try {
      const read = readUnfinished(entry, this.session.ports.time, this.done);
      const { segment } = read;
      if (segment.unfinished === 0) this.#emptySegments = appended(this.#emptySegments, segment.first);
      return read;
    } catch (error) {
      const isKnown = error instanceof RecordError;
      const bad = isKnown ? error : new RecordError('STORE_CORRUPT', entry.key, (error as Error).message);
      const fault = inStore(this.ledger.store, bad);
      if (fault.code === 'STORE_TOO_NEW') throw fault;
      return fault;
    }
  }

  /**
   * Delete a damaged record, count its messages as lost, and report the error.
   * @param unwritten as `unwritten` before the read
   * @returns the record without messages
   */
  async discard(entry: Entry, unwritten: number, fault: BrokerError): Promise<ReadSegment> {
    const from = segmentFirst(entry.key);
    const nothing = { segment: new Segment(from, true), messages: NONE, end: from + 1 };
    const [next] = await this.records(from + 1, unwritten, 1);
    if (this.isEnded) return nothing;
    const lost = this.#lose(from, next === undefined ? unwritten : segmentFirst(next.key));
    this.resized();
    this.flowTouched();
    if (lost === 0) return nothing; // all of its messages were done, or the loss was reported before
    const { ports, client } = this.session;
    ports.announcer.failed(lossOf(fault, lost, client.clientId), 'reading queued messages from the store', client);
    return nothing;
  }

  /** Note that the messages of a segment are lost. @param to first number of the next segment @returns how many of them were not done */
  #lose(from: number, to: number): number {
    let lost = 0;
    for (const [first, behind] of this.done.gapsBelow(to)) if (behind > from) lost += behind - Math.max(first, from);
    this.done.addRange(from, to);
    this.#emptySegments = appended(this.#emptySegments, from);
    this.count -= lost;
    this.settledCount -= lost;
    this.#forgetBytes();
    return lost;
  }

  /**
   * Note that all messages below this number are in memory or done. @param segment the last segment of these, if they were read from one
   */
  placedTo(to: number, segment?: Segment): void {
    this.pageFrom = to;
    this.isCaughtUp = to === this.next;
    if (segment !== undefined && segment.unfinished > 0) this.#segments = appended(this.#segments, segment);
  }

  /** Note that no page needs the segments below this number. */
  skipTo(from: number): void {
    this.pageFrom = from;
  }

  // ------------------------------------------------------------------------------------------------------ away and back again

  /** Restore a flow record at the start of the broker, or a newer one from a journal. Call `resized` afterwards. */
  restore({ next, head, count, bytes, qos0Count, done, firstTo, inFlight }: FlowRecord): void {
    this.count = this.settledCount = count;
    this.bytes = this.settledBytes = bytes;
    this.qos0Count = qos0Count;
    this.next = this.settledTo = next;
    this.pageFrom = this.#committedHead = head;
    this.done = done;
    this.firstTo = firstTo;
    // segments from the head on may all be done, but not deleted yet
    this.isCaughtUp = Math.min(head, done.low) === next;
    this.offline = offlineFlights(Buffer.from(inFlight), 0);
    this.#dirty = 0;
  }

  /** Keep further messages only in the store, because the client has disconnected. After the next commit no message stays in memory. */
  detached(): void {
    this.#queue.stopPaging();
    this.#dirty = META | FLOW;
    this.ledger.touch(this);
  }

  #unload(): void {
    const { inflight } = this.session.outlet;
    // messages are still to be written, or the decisions on them
    if (this.offline !== undefined || this.#open.length > 0 || inflight?.isDeciding) return;
    this.#keepFlights();
    this.#leaveMemory();
    this.session.outlet.unload();
  }

  /** Keep the packet ids as bytes. */
  #keepFlights(): void {
    this.offline = offlineFlights(this.#inFlight, this.offline?.bytes ?? this.session.outlet.inflight?.bytes ?? 0);
  }

  /** Note that the session no longer has messages in memory. */
  #leaveMemory(): void {
    const unfolded = this.#unfolded.filter(({ isDone }) => !isDone);
    this.#unfolded = unfolded.length > 0 ? unfolded : NONE;
    this.pageFrom = this.#head;
    this.isCaughtUp = this.done.low === this.next;
    this.#segments = NONE;
    this.#queue.stopPaging();
  }

  /** The packet ids for the flow record, see `encodeInFlight`. */
  get #inFlight(): Buffer {
    const { inflight, writer } = this.session.outlet;
    return this.offline?.record ?? encodeInFlight(inflight, writer === undefined);
  }

  /** The number of packet ids while the client is away. */
  get offlineCounts(): { readonly inflight: number; readonly awaitingRel: number } | undefined {
    return this.offline && inFlightCounts(this.offline.record);
  }

  /** Load the messages in flight, because the client returns. @returns undefined if they are in memory already */
  load(): Promise<void> | undefined {
    const { offline } = this;
    if (offline === undefined) return undefined;
    offline.loading ??= this.#load(offline).finally(() => {
      offline.loading = undefined;
    });
    return offline.loading;
  }

  async #load(offline: OfflineFlights): Promise<void> {
    const { outlet } = this.session;
    try {
      await this.#queue.trimToLoad();
      if (this.offline !== offline || this.isEnded) return; // the session ended in the meantime
      if (await this.#queue.load(this.#loadFlights(offline))) this.offline = undefined;
    } catch (error) {
      if (this.offline === offline) {
        this.#leaveMemory();
        outlet.unload();
      }
      throw error;
    }
    this.ledger.touch(this); // if the client does not connect after all, the next commit unloads the session again
  }

  /** Put the packet ids into memory. @returns those whose messages are still to be read, by the numbers of these messages */
  #loadFlights({ record }: OfflineFlights): Map<number, number> {
    const { outlet, client, ports } = this.session;
    const wanted = new Map<number, number>();
    outlet.inflight?.unload(); // a load that failed may have left some
    forEachInFlight(record, (id, state, flags, seq) => {
      outlet.ensureInflight().restore(id, state, flags);
      if (seq > 0) wanted.set(seq, id);
    });
    const awaited = awaitedIds(record);
    const canExpire = client.agreement.zone.awaitRelTimeout > 0;
    if (awaited.size > 0) outlet.ensureInflight().restoreRel(awaited, canExpire ? ports.time.nowMs : undefined);
    return wanted;
  }

  // ------------------------------------------------------------------------------------------------- limits of all sessions

  /**
   * Report the committed bytes to the `TotalBacklog`. It orders the sessions by their waiting bytes, as messages in flight cannot be
   * dropped. Each commit calls this for the logs that it has written, which is as often as the limit is checked.
   */
  resized(): void {
    const { totalBacklog } = this.session.ports.pressure;
    const bytes = this.isEnded ? 0 : this.settledBytes;
    totalBacklog.stored(
      this,
      bytes - this.#countedBytes,
      this.isEnded || this.#isHandedOver ? 0 : this.#queue.limitedBytes
    );
    this.#countedBytes = bytes;
  }

  override shorten(mostBytes: number): Promise<void> {
    return this.#queue.shorten(mostBytes);
  }

  // --------------------------------------------------------------------------------------------------------------------- end

  /**
   * Start handing over the messages of an ended session to other members of its share groups. The session stays in the store until `end`,
   * so that the next process can continue.
   */
  beginHandOver(): HandOverPosition {
    this.#keepFlights(); // started again, which stops a drop of messages in progress
    this.#leaveMemory();
    this.#isHandedOver = true;
    this.resized();
    this.changed();
    return this.#queue.handOverFrom(this.#inFlight);
  }

  /** Delete the session from the store. */
  end(): void {
    this.isEnded = true;
    this.#open = this.#unfolded = NONE;
    this.resized();
    // the set may also have filters of removed subscriptions that are still in the store
    for (const { filter } of this.session.subscriptions.values()) (this.#filters ??= new Set()).add(filter);
    this.#queue.stopPaging();
    this.ledger.promise(this);
  }
}

/**
 * Tell whether a failed commit has refused a message to its publisher, so that it can be discarded. A message that was sent is written
 * later; if that never becomes possible, because the store is full and the client is away, it is lost as in a crash.
 */
function isRefused({ message, isSent, isDone }: PersistedMessage, settled: number, mayBeLost: boolean): boolean {
  return !isDone && message.ticket > settled && (!isSent || mayBeLost);
}

/** The error for a damaged record. @param lost number of lost messages */
function lossOf({ code, message }: BrokerError, lost: number, clientId: string): BrokerError {
  const lostMessages = `${lost} accepted messages for client ${JSON.stringify(clientId)} are lost with it`;
  const remedy = 'Run checkStore (embermq store check) to find further damage, or restore a backup.';
  return new BrokerError(code, `${message}. ${lostMessages}. ${remedy}`);
}

function appended<T>(list: T[], item: T): T[] {
  if (list === NONE) return [item];
  list.push(item);
  return list;
}
