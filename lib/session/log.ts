import { BySize, Sized } from '../base/by-size.ts';
import { BrokerError } from '../base/errors.ts';
import { SeqSet } from '../base/seq-set.ts';
import type { DropReason } from '../events/events.ts';
import type { Message } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { QoS } from '../packets/types.ts';
import { inStore } from '../store/commits.ts';
import { Kind, numberKey } from '../store/keys.ts';
import type { Durable, Ledger } from '../store/ledger.ts';
import { type Draft, RecordError } from '../store/record.ts';
import type { Entry } from '../store/store.ts';
import { Backlog } from './backlog.ts';
import { type FlowRecord, writeFlow } from './flow-record.ts';
import {
  awaitedIds,
  countUnacknowledged,
  encodeInFlight,
  forEachInFlight,
  inFlightCounts,
  NOTHING_IN_FLIGHT
} from './in-flight-record.ts';
import { Inflight, UNSENT } from './inflight.ts';
import {
  PersistedMessage as Kept,
  type PersistedMessage,
  readSegment,
  Segment,
  segmentFirst,
  writeSegments
} from './segment.ts';
import type { Session } from './session.ts';
import { writeSessionRecord, writeSubscription } from './session-record.ts';

/** The queues of all sessions in the store, by the bytes that wait in each. */
export class StoredBacklog extends BySize<SessionLog> {
  /** Bytes of all their messages: those in flight, and those that are being handed over, too. */
  storedBytes = 0;
}

/** What a message takes in the store besides its packet, roughly. */
const ENTRY_BYTES = 48;
/** A page that is smaller than the first is followed by one of twice as many records, one larger than the second by half as many. */
const SMALL_PAGE_BYTES = 65_536;
const LARGE_PAGE_BYTES = 1_048_576;
const MAX_PAGE_RECORDS = 1_000;

/**
 * What is kept of one session, beside the session: its messages by number, and which of them are done.
 *
 * Numbers below `paged` are in memory (backlog or in flight) or done; those from there on are in the store alone, or on their way into
 * it. While the client is away all is there, and in memory is what the flow record says: which numbers are done, and what is parked.
 */
export class SessionLog extends Sized implements Durable {
  isDirty = false;
  /** Names the session in keys. */
  readonly number: number;
  readonly #session: Session;
  readonly #ledger: Ledger;
  /** Messages that are not done, and their bytes. */
  count = 0;
  bytes = 0;
  /** Those of QoS 0 among them. */
  qos0Count = 0;
  /** Its part of `StoredBacklog.storedBytes`. */
  #countedBytes = 0;
  #next = 1;
  #pagedTo = 1;
  #done = new SeqSet();
  /** Not written yet; in the commit under way. */
  #open: PersistedMessage[] = NONE;
  #writing: PersistedMessage[] = NONE;
  /** Kept, in a journal alone: older than those. */
  #unfolded: PersistedMessage[] = NONE;
  /** The commit under way puts all that is kept into segments. */
  #isFolding = false;
  /** Where the store's own segments begin, as far as it was told. */
  #committedHead = 1;
  #writingHead = 1;
  /** Segments with messages in memory, in order. */
  #segments: Segment[] = NONE;
  /** First numbers of segments that are done with. */
  #emptySegments: number[] = NONE;
  #deletingSegments: number[] = NONE;
  /** Where the next page begins: no segment from there on is in memory. */
  #pageFrom = 1;
  #pageRecords = 32;
  #isPaging = false;
  /** Shortening of the queue, and the return of the client, as far as they are under way: one after the other. */
  #trimming: Promise<void> | undefined;
  #loading: Promise<void> | undefined;
  /** Raised when the connection comes or goes, so that a page for an earlier one is thrown away. */
  #epoch = 0;
  /** In flight and awaited while the client is away: the second half of the flow record. */
  #offlineInFlight: Buffer | undefined;
  /** Messages among them, and their bytes as far as they are known: after a start they are not before a queue is shortened. */
  #offlineInFlightCount = 0;
  #offlineInFlightBytes = 0;
  /** What was parked, while that is brought into memory. */
  #loadingInFlight: Buffer | undefined;
  /** The same messages by number, while they are looked for. */
  #wantedMessages: Map<number, number> | undefined;
  #isMetaDirty = true;
  #isFlowDirty = true;
  /** Bytes of the flow record as it was last written: what another one will take. */
  #flowBytes = 8;
  #filters: Set<string> | undefined;
  #writingFilters: Set<string> | undefined;
  /** The session is over, but its messages are being handed over: packet ids in flight have this QoS, by number. */
  #handedOver: Map<number, number> | undefined;
  /** Where the next messages to hand over begin. */
  #handOverFrom = 1;
  #isEnded = false;
  /** And that is in the commit under way; and it is kept. */
  #isEndInCommit = false;
  #isEndCommitted = false;

  constructor(session: Session, number: number, ledger: Ledger) {
    super();
    this.#session = session;
    this.number = number;
    this.#ledger = ledger;
  }

  /** Everything that is not done is in memory. */
  get isCaughtUp(): boolean {
    return this.#pagedTo === this.#next;
  }

  /** Messages that are neither done nor in flight. */
  get waiting(): number {
    return (
      this.count -
      (this.#offlineInFlight === undefined ? (this.#session.inflight?.unacknowledged ?? 0) : this.#offlineInFlightCount)
    );
  }

  /** Bytes of these. */
  get waitingBytes(): number {
    const inMemory = this.#session.inflight?.bytes ?? 0;
    // while the client returns, what was parked is not all in memory yet
    const inFlight =
      this.#offlineInFlight !== undefined
        ? this.#offlineInFlightBytes
        : this.#loadingInFlight === undefined
          ? inMemory
          : Math.max(inMemory, this.#offlineInFlightBytes);
    return this.waiting > 0 ? Math.max(0, this.bytes - inFlight) : 0;
  }

  /** Packet ids in flight, and those that wait for PUBREL. */
  get flows(): { readonly inflight: number; readonly awaitingRel: number } {
    const { inflight, awaitingRel } = this.#session;
    if (this.#offlineInFlight === undefined)
      return { inflight: inflight?.count ?? 0, awaitingRel: awaitingRel?.size ?? 0 };
    return inFlightCounts(this.#offlineInFlight);
  }

  /**
   * Its bytes have changed. The bound of all queues goes by those that wait: what is in flight cannot be dropped. Each commit calls this for the
   * logs that it writes, which is as often as the bound is looked at.
   */
  resized(): void {
    const { storedBacklog } = this.#session.ports.pressure;
    const bytes = this.#isEnded ? 0 : this.bytes;
    storedBacklog.storedBytes += bytes - this.#countedBytes;
    this.#countedBytes = bytes;
    storedBacklog.resize(this, this.#isEnded || this.#handedOver !== undefined ? 0 : this.waitingBytes);
  }

  // ----------------------------------------------------------------------------------------------------------------- changes

  /** Who the session is has changed: something waits for that. */
  changed(): void {
    this.#isMetaDirty = true;
    // when the client returns, what was never sent counts as sent before it is
    if (this.#session.inflight !== undefined) this.#isFlowDirty = true;
    this.#ledger.promise(this, 64);
  }

  subscribed(filter: string): void {
    (this.#filters ??= new Set()).add(filter);
    this.#ledger.promise(this, 32 + filter.length);
  }

  /** Whether what has become of a subscription is still to be written. */
  isUnwritten(filter: string): boolean {
    return this.#filters?.has(filter) === true || this.#writingFilters?.has(filter) === true;
  }

  /** What a subscription is still to get of the retained messages has changed; nothing waits for that. */
  subscriptionTouched(filter: string): void {
    (this.#filters ??= new Set()).add(filter);
    this.#ledger.touch(this);
  }

  /** What is in flight or awaited has changed, and a packet waits until that is kept. */
  flowChanged(): void {
    this.#isFlowDirty = true;
    this.#ledger.promise(this, this.#flowCost);
  }

  /** The same, and nothing waits. */
  flowTouched(): void {
    this.#isFlowDirty = true;
    this.#ledger.touch(this, this.#flowCost);
  }

  /** A commit has one flow record, however much has changed. */
  get #flowCost(): number {
    return this.isDirty ? 8 : this.#flowBytes;
  }

  /**
   * Keep a message that is to be delivered.
   * @param isInMemory the session keeps it as well: only while caught up
   */
  append(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    isInMemory: boolean
  ): PersistedMessage {
    message.detachFromPublisher();
    const persisted = new Kept(message, qos, retain, ids, this.#next++);
    if (isInMemory) this.#pagedTo = this.#pageFrom = this.#next;
    if (qos === 0) this.qos0Count++;
    this.#open = appended(this.#open, persisted);
    this.count++;
    this.bytes += message.bytes;
    // while nothing can be written, what is done does not gather
    if (this.#open.length > 2 * this.count + 64) this.#open = this.#takeOpen();
    this.#isFlowDirty = true;
    const bytes = message.bytes + ENTRY_BYTES + this.#flowCost;
    if (qos > 0) this.#ledger.promise(this, bytes);
    else this.#ledger.touch(this, bytes);
    return persisted;
  }

  /** A message is acknowledged, released or dropped: it is not sent again. */
  finish(persisted: PersistedMessage): void {
    // by its number, too: one that was read anew, or was in a record that could not be read, counts once
    if (persisted.isDone || this.#isEnded || this.#done.has(persisted.seq)) return;
    this.count--;
    if (persisted.qos === 0) this.qos0Count--;
    this.bytes -= persisted.message.bytes;
    if (this.count === 0) this.bytes = this.qos0Count = 0; // what a record held that could not be read, nobody knows
    persisted.finish();
    this.#done.add(persisted.seq);
    const { segment } = persisted;
    if (segment !== undefined && --segment.unfinished === 0 && segment.isCommitted) this.#discardSegment(segment);
    this.flowTouched();
  }

  #discardSegment(segment: Segment): void {
    this.#emptySegments = appended(this.#emptySegments, segment.first);
    const at = this.#segments.indexOf(segment); // the first, mostly
    if (at >= 0) this.#segments.splice(at, 1);
  }

  /**
   * The session is over, but its messages may go to others: it stays in the store until `end`, and whoever finds it there goes on. The
   * messages are read from the store in turn, wherever they are now.
   */
  beginHandOver(): void {
    const inFlight = this.#offlineInFlight ?? this.#loadingInFlight ?? this.#encodeInFlight();
    this.#offlineInFlight = Buffer.from(inFlight); // who drops messages of the queue sees by this that it has to stop
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
   * Messages that are not done, in order; those of the last call have to be done by now.
   * @returns undefined when there are no more
   * @throws what the store says
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

  /** Handing over the messages of the last call failed: the next call returns those of them again that are not done. */
  repeatHandOver(): void {
    this.#handOverFrom = this.#pageFrom;
  }

  /** QoS at which a message that is handed over is in flight; undefined: it was never sent. */
  flightQos({ seq }: PersistedMessage): number | undefined {
    return this.#handedOver?.get(seq);
  }

  /** The session is over: nothing of it is to be kept. @param filters those of its subscriptions */
  end(filters: Iterable<string>): void {
    this.#isEnded = true;
    this.resized();
    // with those that were unsubscribed, and are still to be deleted
    for (const filter of filters) (this.#filters ??= new Set()).add(filter);
    this.#open = this.#unfolded = NONE;
    this.#epoch++;
    this.#ledger.promise(this);
  }

  // -------------------------------------------------------------------------------------------------------------- the ledger

  write(draft: Draft, journal: Draft | undefined): void {
    if (this.#isEnded) {
      this.#isEndInCommit = !this.#isEndCommitted;
      if (this.#isEndInCommit) this.#writeEnd(draft);
      return;
    }
    this.resized();
    const { number } = this;
    if (this.#isMetaDirty) {
      this.#isMetaDirty = false;
      writeSessionRecord(draft, number, this.#session);
    }
    if (this.#filters !== undefined) {
      const { subscriptions, feeds } = this.#session;
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
    // segments in journals begin anywhere behind those in the store
    const head = journal === undefined ? this.#writingHead : this.#committedHead;
    const inFlight = this.#offlineInFlight ?? this.#loadingInFlight ?? this.#encodeInFlight();
    const pending = this.#session.feeds?.pending ?? NONE;
    const record = {
      next: this.#next,
      head,
      count,
      bytes,
      qos0Count,
      done: this.#done,
      inFlight,
      pendingFeeds: pending
    };
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
    this.#writing = [...this.#unfolded.filter(({ isDone }) => !isDone), ...this.#takeOpen()];
    this.#unfolded = NONE;
    // what is in memory and what is not are never in one segment: a page begins with a segment
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
    // which segments there are is known to the store alone
    if (this.#next > 1) draft.key(Kind.garbage).u48(number).value().put();
  }

  /** First number of the oldest segment that is still needed. */
  get #head(): number {
    const first = this.#segments[0]?.first ?? this.#unfolded[0]?.seq ?? this.#writing[0]?.seq ?? this.#pageFrom;
    return Math.min(first, this.#pageFrom);
  }

  committed(): void {
    if (this.#isEnded) {
      if (!this.#isEndInCommit) return; // what was written was of before
      this.#isEndInCommit = false;
      this.#isEndCommitted = true;
      if (this.#next > 1) this.#session.ports.sweeper.add(this.number);
      return;
    }
    this.#writingFilters = undefined;
    if (this.#isFolding) this.#folded();
    else for (const persisted of this.#writing) this.#unfolded = appended(this.#unfolded, persisted);
    this.#writing = NONE;
    if (this.#session.state === 'disconnected' && !this.isDirty) this.#unload();
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
      // what is in the store alone is found there again
      else if (segment.first < this.#pageFrom) this.#segments = appended(this.#segments, segment);
    }
    if (this.#emptySegments.length > 0) this.#ledger.touch(this);
  }

  commitFailed(): void {
    for (const filter of this.#writingFilters ?? []) (this.#filters ??= new Set()).add(filter);
    if (this.#isEnded) return;
    this.#isMetaDirty = this.#isFlowDirty = true;
    if (this.#deletingSegments.length > 0) this.#emptySegments = [...this.#emptySegments, ...this.#deletingSegments];
    for (const persisted of this.#writing) {
      // whether it is in the store nobody knows, and what is left of it is written anew
      const first = persisted.segment?.first;
      if (first !== undefined && this.#emptySegments.at(-1) !== first)
        this.#emptySegments = appended(this.#emptySegments, first);
      persisted.segment = undefined;
    }
    // their publishers are told that they were not accepted
    for (const persisted of [...this.#writing, ...this.#open])
      if (!persisted.isDone && persisted.message.ticket > this.#ledger.settled && !persisted.isSent)
        this.finish(persisted);
    this.#open = [...this.#writing, ...this.#open].filter((persisted) => !persisted.isDone);
    this.#writing = NONE;
    this.#deletingSegments = NONE;
  }

  // ------------------------------------------------------------------------------------------------------ away and back again

  /** The client is away: what comes now is for the store alone, and once all is written nothing stays in memory. */
  detached(): void {
    this.#epoch++;
    this.#isPaging = false;
    this.#isMetaDirty = this.#isFlowDirty = true;
    this.#ledger.touch(this);
  }

  #unload(): void {
    const session = this.#session;
    if (this.#offlineInFlight !== undefined || this.#loading !== undefined || this.#open.length > 0) return;
    if (session.undecided !== undefined && session.undecided.size > 0) return; // what becomes of these is still to be written
    this.#offlineInFlight = this.#encodeInFlight();
    this.#offlineInFlightCount = countUnacknowledged(this.#offlineInFlight);
    this.#offlineInFlightBytes = session.inflight?.bytes ?? 0;
    const unfolded = this.#unfolded.filter(({ isDone }) => !isDone);
    this.#unfolded = unfolded.length > 0 ? unfolded : NONE;
    this.#leaveMemory();
    this.resized();
  }

  /** Nothing of what it has written is in memory any more. */
  #leaveMemory(): void {
    this.#wantedMessages = undefined;
    this.#pageFrom = this.#head;
    this.#pagedTo = this.#done.low;
    this.#segments = NONE;
    this.#session.awaitingRel = undefined;
    this.#session.unload();
  }

  /** The client that it was loaded for is not coming after all. */
  unloadSoon(): void {
    this.#ledger.touch(this); // the next commit finds nobody here
  }

  #encodeInFlight(): Buffer {
    const { inflight, awaitingRel, undecided, connection } = this.#session;
    return encodeInFlight(inflight, awaitingRel, undecided, connection === undefined);
  }

  /** Take over a flow record when the broker starts, or a newer one of the journal. The bound of all queues counts it from `resized` on. */
  restore({ next, head, count, bytes, qos0Count, done, inFlight }: FlowRecord): void {
    this.#next = next;
    this.#pageFrom = this.#committedHead = head;
    this.count = count;
    this.bytes = bytes;
    this.qos0Count = qos0Count;
    this.#done = done;
    // segments from there on may all be done, and not deleted yet
    this.#pagedTo = Math.min(head, done.low);
    this.#offlineInFlight = inFlight.length > NOTHING_IN_FLIGHT.length ? Buffer.from(inFlight) : NOTHING_IN_FLIGHT;
    this.#offlineInFlightCount = countUnacknowledged(this.#offlineInFlight);
    this.#isFlowDirty = false;
    this.#isMetaDirty = false;
  }

  /** The client comes back: what was in flight is brought into memory first. @returns undefined when it is there already */
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
    await this.#trimming; // two at once would each have messages of their own, and both drop them
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
    session.inflight = inflight.count > 0 ? inflight : undefined;
    session.awaitingRel = awaited.size > 0 ? awaited : undefined;
    for (const id of awaited.values()) session.noteRestored(id);
    this.#offlineInFlight = undefined;
    this.#loadingInFlight = inFlight;
    this.#wantedMessages = wanted;
    while (wanted.size > 0 && !this.isCaughtUp && this.#epoch === epoch) await this.#page(epoch);
    if (this.#epoch !== epoch) return;
    this.#wantedMessages = undefined;
    for (const id of wanted.values()) inflight.free(id); // its message is lost: an error has been told
  }

  /** More waits than the zone allows, or than `mostBytes`: the oldest go, soon. */
  trim(mostBytes = Infinity): void {
    const slack = this.#session.zoneSettings.maxMqueueLen >> 6;
    if (this.#trimming !== undefined || this.#loading !== undefined || this.#excess(slack, mostBytes) <= 0) return;
    const { ports } = this.#session;
    ports.work.begin();
    // not within the call: what hears of a drop may publish, and come here again
    this.#trimming = Promise.resolve()
      .then(() => this.#drop(slack, mostBytes))
      .catch((error: unknown) => ports.announcer.failed(error, 'dropping what is too much of its queue', this.#session))
      .finally(() => {
        this.#trimming = undefined;
        ports.work.end();
      });
  }

  /**
   * Drop the oldest messages of the lowest priority until no more than so many bytes wait; as much of it as can be done now.
   */
  async shorten(mostBytes: number): Promise<void> {
    while (this.#trimming !== undefined) await this.#trimming;
    this.trim(mostBytes);
    await this.#trimming;
    this.resized(); // the bytes in flight may only be known now
  }

  /** How many messages, at least, have to go. Those of priorities are bounded each by itself, exactly when they come into memory. */
  #excess(slack: number, totalBytes = Infinity): number {
    const { maxMqueueLen, maxMqueueBytes, mqueuePriorities } = this.#session.zoneSettings;
    const { waiting } = this;
    const most = maxMqueueLen * (1 + (mqueuePriorities?.size ?? 0));
    if (most > 0 && waiting > most + slack) return waiting - most;
    const { waitingBytes } = this;
    if (waitingBytes > totalBytes) return 1;
    const mostBytes = mqueuePriorities === undefined ? maxMqueueBytes : maxMqueueBytes * 2;
    return mostBytes > 0 && waitingBytes > mostBytes ? 1 : 0;
  }

  /** @param mostBytes what the bound of all queues together leaves to this one */
  async #drop(slack: number, mostBytes = Infinity): Promise<void> {
    const session = this.#session;
    const { backlog } = session;
    if (this.#isEnded || this.#excess(slack, mostBytes) <= 0) return;
    while (backlog !== undefined && backlog.length > 0 && this.#excess(0, mostBytes) > 0)
      backlog.dropOldest(this.#dropReason);
    const inFlight = this.#offlineInFlight;
    if (inFlight === undefined) {
      if (session.state !== 'connected' || this.#excess(slack, mostBytes) <= 0) return;
      // what is not in memory comes there first
      if (this.#ledger.isFailed) this.#dropUnwritten(this.#dropper(mostBytes));
      else this.page();
      return;
    }
    const drop = this.#dropper(mostBytes, inFlight);
    const isEnough = () => session.zoneSettings.mqueuePriorities === undefined && this.#excess(0, mostBytes) <= 0;
    let isAtHead = true;
    for (
      let from = this.#pageFrom, limit = FIRST_DROP_RECORDS;
      !isEnough();
      limit = Math.min(limit * 2, MAX_DROP_RECORDS)
    ) {
      const unwritten = this.#unwritten;
      // what is in the store can not be looked at then
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
        if (isAtHead) this.#pageFrom = from; // nobody looks for it again
      }
      if (entries.length < limit) from = unwritten;
    }
  }

  /**
   * What drops those messages, given oldest first, that are too much: where they have priorities, as it would be in memory.
   * @param inFlight has those in flight, which stay
   */
  #dropper(mostBytes: number, inFlight: Buffer = NOTHING_IN_FLIGHT): Dropper {
    const { zoneSettings } = this.#session;
    const inflight = new Set<number>();
    forEachInFlight(inFlight, (_id, _state, _flags, seq) => inflight.add(seq));
    let inflightBytes = 0;
    const drop = (_message: Message, reason: DropReason, persisted: PersistedMessage | undefined) =>
      this.#dropOne(persisted as PersistedMessage, reason);
    const bounds = zoneSettings.mqueuePriorities === undefined ? undefined : new Backlog(zoneSettings, drop);
    return {
      take: (messages) => {
        for (const persisted of messages) {
          if (persisted.isDone) continue;
          if (inflight.has(persisted.seq)) {
            inflightBytes += persisted.message.bytes;
            this.#offlineInFlightBytes = Math.max(this.#offlineInFlightBytes, inflightBytes);
            continue;
          }
          if (bounds !== undefined)
            bounds.push(persisted.message, persisted.qos, persisted.retain, persisted.ids, persisted);
          else if (this.#excess(0, mostBytes) > 0) this.#dropOne(persisted, this.#dropReason);
        }
      },
      end: () => {
        while (bounds !== undefined && bounds.length > 0 && this.waitingBytes > mostBytes)
          bounds.dropOldest('total_queue_full');
      }
    };
  }

  /** Of what is in no segment yet; the session itself has those below `pageFrom`. */
  #dropUnwritten(drop: Dropper): void {
    drop.take([...this.#unfolded, ...this.#writing, ...this.#open].filter(({ seq }) => seq >= this.#pageFrom));
    drop.end();
    this.#open = this.#takeOpen(); // it may be long until they are written
  }

  #dropOne(persisted: PersistedMessage, reason: DropReason): void {
    if (persisted.isDone) return;
    const { message } = persisted;
    this.finish(persisted);
    this.#session.dropped++;
    this.#session.ports.announcer.dropped(message, reason, this.#session);
  }

  /** Of the next message to be dropped: where the session is within its own bounds, that of all queues together. */
  get #dropReason(): DropReason {
    return this.#excess(0) > 0 ? 'queue_full' : 'total_queue_full';
  }

  /** Bring the next messages into memory, unless that is under way. */
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
      .catch((error: unknown) => this.#session.failInternally(error, 'sending what waits'))
      .finally(() => this.#session.ports.work.end());
  }

  #endPage(epoch: number): void {
    if (this.#epoch !== epoch) return;
    this.#isPaging = false;
    this.#session.pump();
  }

  /** What is in the store stays there: it goes on when the store does, or on the next connection. */
  #pageFailed(epoch: number, error: unknown): void {
    const session = this.#session;
    if (this.#epoch !== epoch) return;
    if (this.#ledger.isFailed) {
      this.#ledger.wait({
        commitSucceeded: () => {
          this.#endPage(epoch);
          return false;
        },
        commitFailed: () => true
      });
      return;
    }
    this.#isPaging = false;
    session.ports.announcer.failed(error, 'reading its queue from the store', session);
    if (session.connection !== undefined) session.close('store_failed', ReasonCode.serverUnavailable);
  }

  async #page(epoch: number): Promise<void> {
    const { ports } = this.#session;
    const unwritten = this.#unwritten;
    if (this.#pageFrom >= unwritten) {
      for (const persisted of [...this.#unfolded, ...this.#writing, ...this.#open])
        if (persisted.seq >= this.#pageFrom) this.#placeInMemory(persisted);
      this.#pagedTo = this.#pageFrom = this.#next;
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
  }

  /** The first number that is in no segment of the store. */
  get #unwritten(): number {
    return (this.#unfolded[0] ?? this.#writing[0] ?? this.#open[0])?.seq ?? this.#next;
  }

  /** @returns why it cannot be read, if so */
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

  /** A record cannot be read: what it held waits no longer, and it is deleted. */
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
    this.count -= lost;
    if (this.count === 0) this.bytes = this.qos0Count = 0;
    this.resized();
    this.flowTouched();
    if (lost === 0) return; // all of it was done, or it was told of before
    const { ports, client } = this.#session;
    const whose = `${lost} messages for client ${JSON.stringify(client.clientId)} that were accepted are lost with it`;
    const remedy = 'Let checkStore (embermq store check) tell what else is damaged, or restore a copy.';
    const error = new BrokerError(fault.code, `${fault.message}. ${whose}. ${remedy}`);
    ports.announcer.failed(error, 'reading its queue from the store', client);
  }

  /**
   * The messages of a record that are not done; an error where it cannot be read.
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
    if (id === undefined) this.#session.queue(persisted);
    else {
      this.#wantedMessages?.delete(persisted.seq);
      this.#session.inflight?.restoreMessage(id, persisted);
    }
  }
}

/** Drops what is too much of the messages that it is given, oldest first. */
interface Dropper {
  take(messages: readonly PersistedMessage[]): void;
  /** All have been given: with priorities it shows now which go first. */
  end(): void;
}

/** What most sessions have none of: an array each would be a tenth of what an offline session takes. */
const NONE: never[] = Object.freeze([]) as unknown as never[];

function appended<T>(list: T[], item: T): T[] {
  if (list === NONE) return [item];
  list.push(item);
  return list;
}

/** Records that are read first to drop messages; then twice as many, and so on: mostly a few messages have to go. */
const FIRST_DROP_RECORDS = 4;
/** At most; a record has up to 128 KB. */
const MAX_DROP_RECORDS = 64;
