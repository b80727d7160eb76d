// The messages that wait for the client of a session: in memory until it is connected, reads, or acknowledges earlier
// ones, and in the store. `SessionLog` knows the stored messages by number; this class reads, limits and drops them.
//
// Memory. The queues of all sessions are counted in `TotalBacklog`, which may drop messages of this one whenever one is
// added. Nothing changes the list but the methods that count in both. The limits do not apply to messages whose commit
// is in progress: these are added with `add`, and `trim` is called after the commit: a commit that succeeds drops what
// its messages displace, one that fails has displaced nothing. Until then a queue exceeds its limit by what is not
// committed, which `maxUnwrittenBytes` bounds.
//
// Store. An offline session keeps numbers, not messages. A queue above its bound is shortened from the store, oldest
// first, so its drops are announced a little later than in memory. Priorities order what has been read back. Only one
// task reads messages to drop or to load them (`#task`, `OfflineFlights.loading`): two would both read a message, and
// one would drop what the other sends. Each task compares `log.offline` with the value at its start, because the
// client may return or the session end while it reads. A page that is read for a connection that has closed is
// discarded (`Paging.isStopped`).

import { BrokerError } from '../../base/errors.ts';
import type { DropReason } from '../../events/reasons.ts';
import type { Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import { afterCommit } from '../../store/after-commit.ts';
import { type PersistedMessage, type ReadSegment, segmentFirst } from '../../store/segment.ts';
import type { Entry } from '../../store/store.ts';
import { Shortenable, type TotalBacklog } from '../total-backlog.ts';
import { forEachInFlight, numbersIn, type OfflineFlights } from './in-flight-record.ts';
import { UNSENT } from './inflight.ts';
import type { Outlet } from './outlet.ts';
import {
  append,
  lengthAt,
  listsAfter,
  newPriorityList,
  type PriorityList,
  priorityOf,
  type Queued,
  type QueueLimits,
  shift,
  shiftBeyond,
  shiftOldest,
  shiftQos0,
  shiftUnpersisted,
  takeWhere
} from './priority-list.ts';
import type { SessionLog } from './session-log.ts';

/** After a page with fewer bytes than this, the next page has twice as many records. */
const SMALL_PAGE_BYTES = 65_536;
/** After a page with more bytes than this, the next page has half as many records. */
const LARGE_PAGE_BYTES = 1_048_576;
/** Number of records of the first page, and the maximum number. */
const FIRST_PAGE_RECORDS = 32;
const MAX_PAGE_RECORDS = 1_000;
/** Number of records of the first read when messages are dropped; usually a few suffice. Each further read takes twice as many. */
const FIRST_DROP_RECORDS = 4;
/** Maximum number of records of one read; a record has up to 128 KB. */
const MAX_DROP_RECORDS = 64;
/**
 * Fraction (1/64) by which the messages of a client that is away may exceed the limits before the oldest are dropped, which reads the
 * store: otherwise each commit would read records again to drop few messages.
 */
const SLACK_SHARE = 64;
/** Number of messages in memory that are cleared in one turn. */
export const CLEARED_AT_ONCE = 1_000;

/** The reading of messages into memory for one connection, page by page. */
interface Paging {
  /** Number of records of the next page. */
  records: number;
  /** The page that is being read. */
  reading: Promise<void> | undefined;
  /** Messages that are dropped instead of being queued. */
  dropped: DroppedPages | undefined;
  /** Packet ids of messages that are in flight, by message number. */
  wanted: Map<number, number> | undefined;
  /** True once the client has disconnected. */
  isStopped: boolean;
}

/** Messages that are dropped when they are read. */
interface DroppedPages {
  /** Upper bound: messages with a lower number are dropped. */
  readonly to: number;
  drop(persisted: PersistedMessage): void;
}

/** A drop of messages beyond the limits. */
interface Dropping {
  /** The share of this session of the limit on the queues of all sessions. */
  readonly mostBytes: number;
  readonly offline: OfflineFlights | undefined;
  /** Numbers of messages in flight, which are not dropped. */
  readonly inFlight: ReadonlySet<number>;
  /** Bytes of those that were found so far. */
  inFlightBytes: number;
  /** With priorities: the messages that were read and not dropped, so that the same are dropped as in memory. */
  readonly list: PriorityList | undefined;
}

/** The position of a hand-over in the queue of a session that has ended. */
export interface HandOverPosition {
  /** First number of the last messages that were returned, and of the next ones. To get the last ones again, set `from` to `last`. */
  last: number;
  from: number;
  /** True if only messages that are to be sent first are returned. */
  isFirstPass: boolean;
  /** QoS of the messages in flight that have been sent, by message number. */
  readonly flights: ReadonlyMap<number, number>;
}

/**
 * The bounded queue of a session.
 *
 * Higher priorities are sent first; within a priority the messages that were handed over by other sessions come before the others, and the
 * order of each of these two is first in, first out. When the number of messages exceeds its limit, the oldest message of the same priority
 * is dropped; when the bytes exceed theirs, the oldest message of the lowest priority.
 *
 * Created when a message has to wait; for a persisted session at the latest with its first commit, or when its client disconnects.
 */
export class Queue extends Shortenable {
  readonly #outlet: Outlet;
  /** The messages in memory; undefined if none has waited since the session was loaded. */
  #list: PriorityList | undefined = undefined;
  /** The task that drops messages of the store. There is none while the messages in flight are loaded. */
  #task: Promise<void> | undefined = undefined;
  /** Undefined until messages are read for this connection. */
  #paging: Paging | undefined = undefined;

  constructor(outlet: Outlet) {
    super();
    this.#outlet = outlet;
  }

  get #log(): SessionLog {
    return this.#outlet.log as SessionLog;
  }

  /** True once a message has waited in memory, until the store alone has the messages. */
  get isUsed(): boolean {
    return this.#list !== undefined;
  }

  /** Number of messages in memory. */
  get length(): number {
    return this.#list === undefined ? 0 : this.#list.length;
  }

  /** Number of QoS 0 messages in memory. */
  get qos0Count(): number {
    return this.#list === undefined ? 0 : this.#list.qos0Count;
  }

  /** Bytes of the messages in memory. */
  get bytes(): number {
    return this.#list === undefined ? 0 : this.#list.bytes;
  }

  /** Number of messages that wait, in memory or in the store. */
  get waiting(): number {
    const { log } = this.#outlet;
    return Math.max(this.length, log === undefined ? 0 : log.count - this.#unacknowledged);
  }

  /** Exclusive upper bound of the sequence numbers so far: a message that arrives from now on has at least this number. */
  get end(): number {
    return this.#list?.sequence ?? 0;
  }

  // --------------------------------------------------------------------------------------------------------------- in memory

  /**
   * Add a message, and drop messages beyond the limits, at most as much as the message takes: the rest is left to `trim`.
   * @returns false if the added message was dropped
   */
  push(
    message: Message,
    qos: QoS,
    retain: boolean,
    subscriptionIds: readonly number[] | undefined,
    persisted?: PersistedMessage,
    isFirst = false
  ): boolean {
    const list = this.#ensureList();
    const { maxMqueueLen, maxMqueueBytes } = list.limits;
    if (maxMqueueLen > 0) {
      const priority = priorityOf(list, message.topic);
      if (lengthAt(list, priority) >= maxMqueueLen) this.#drop(shiftOldest(list, priority), 'queue_full');
    }
    const queued = { message, qos, retain, subscriptionIds, persisted, sequence: list.sequence++, isFirst };
    this.#append(list, queued);
    let isKept = true;
    if (maxMqueueBytes > 0) {
      let excess = Math.min(this.bytes - maxMqueueBytes, message.bytes);
      while (excess > 0 && this.#list !== undefined && this.#list.length > 0) {
        const dropped = shiftOldest(this.#list) as Queued;
        this.#drop(dropped, 'queue_full');
        excess -= dropped.message.bytes;
        if (dropped === queued) isKept = false;
      }
    }
    this.#total.shorten();
    return isKept;
  }

  /**
   * Add a persisted message without checking the limits of this queue: `trim` does this when the message is committed.
   * @returns true, because the message is not dropped
   */
  add(persisted: PersistedMessage): true {
    const { message, qos, retain, subscriptionIds, isFirst } = persisted;
    const list = this.#ensureList();
    this.#append(list, { message, qos, retain, subscriptionIds, persisted, sequence: list.sequence++, isFirst });
    this.#total.shorten();
    return true;
  }

  #append(list: PriorityList, queued: Queued): void {
    append(list, queued);
    this.#total.added(this, queued.message, list.unpersistedBytes);
  }

  #ensureList(): PriorityList {
    return (this.#list ??= newPriorityList(this.#outlet.agreement.zone));
  }

  get #total(): TotalBacklog {
    return this.#outlet.ports.pressure.totalBacklog;
  }

  /** Remove the next message to send; see `shift` of the list. */
  shift(windowOpen: boolean, room = Infinity): Queued | undefined {
    const queued = this.#list === undefined ? undefined : shift(this.#list, windowOpen, room);
    if (queued !== undefined) this.#removed(queued);
    return queued;
  }

  #removed({ message }: Queued): void {
    this.#total.removed(this, message, this.#list === undefined ? 0 : this.#list.unpersistedBytes);
  }

  /** Drop a message that was removed from the list. */
  #drop(queued: Queued | undefined, reason: DropReason): boolean {
    if (queued === undefined) return false;
    this.#removed(queued);
    this.#outlet.drop(queued.message, reason, queued.persisted);
    return true;
  }

  /** Drop messages in memory beyond the limits, except as many as are not committed; see `shiftBeyond`. */
  trim(pending: number, pendingBytes: number): void {
    if (this.#list === undefined) return;
    for (const queued of shiftBeyond(this.#list, pending, pendingBytes)) this.#drop(queued, 'queue_full');
  }

  /** Drop messages in memory beyond the limits of the session, except for messages that are not committed. */
  trimCommitted(): void {
    const { log } = this.#outlet;
    if (log === undefined) this.trim(0, 0);
    else this.trim(log.count - log.settledCount, log.bytes - log.settledBytes);
  }

  /** Apply other limits and priorities, because the client has connected in another zone. */
  limit(limits: QueueLimits): void {
    const list = this.#list;
    if (list === undefined) return;
    const all: Queued[] = [];
    for (let queued = this.shift(true); queued !== undefined; queued = this.shift(true)) all.push(queued);
    const changed = newPriorityList(limits, list.sequence - all.length); // messages that arrive from now on still have greater numbers
    this.#list = changed;
    for (const queued of all)
      if (!queued.persisted?.isDone) this.#append(changed, { ...queued, sequence: changed.sequence++ });
    this.trimCommitted(); // at the end, because a listener of the drop may publish
  }

  /** Drop the oldest message of the lowest priority that is not persisted. */
  override dropOldestUnpersisted(reason: DropReason): boolean {
    return this.#list !== undefined && this.#drop(shiftUnpersisted(this.#list), reason);
  }

  /** Drop all QoS 0 messages in memory, because memory is short. */
  shed(reason: DropReason): void {
    while (this.#list !== undefined && this.#drop(shiftQos0(this.#list), reason));
  }

  /** Drop all messages in memory, except those that `giveAway` accepts. */
  dropAll(reason: DropReason, giveAway?: (message: Message) => boolean): void {
    for (let queued = this.shift(true); queued !== undefined; queued = this.shift(true))
      if (!giveAway?.(queued.message)) this.#outlet.drop(queued.message, reason, queued.persisted);
  }

  /** Remove all messages from memory without dropping them, because they are persisted or have been handed over. */
  empty(): void {
    while (this.shift(true) !== undefined);
    this.#list = undefined;
  }

  /**
   * Remove the messages for which `isTaken` returns true, of each priority the oldest first.
   * @param most maximum number of messages to remove
   */
  take(isTaken: (queued: Queued) => boolean, most = Infinity): Queued[] {
    if (this.#list === undefined) return [];
    const taken = takeWhere(this.#list, isTaken, most);
    for (const queued of taken) this.#removed(queued);
    return taken;
  }

  /** The messages in memory after a sequence number, in lists; see `listsAfter`. */
  lists(after: number): Iterable<Iterable<Queued>> {
    return this.#list === undefined ? [] : listsAfter(this.#list, after);
  }

  /**
   * Drop messages in memory because the app clears the queue, of each priority the oldest first.
   * @param end drop only unpersisted messages with a lower sequence number; see `end`
   * @param before drop only persisted messages with a lower number
   * @returns how many messages were removed, at most `CLEARED_AT_ONCE`, and how many of them were dropped, because they were not done
   */
  dropUntil(end: number, before: number): { readonly removed: number; readonly dropped: number } {
    // first all, because a listener of the drop may publish
    const isTaken = ({ sequence, persisted }: Queued) =>
      persisted === undefined ? sequence < end : persisted.seq < before;
    const taken = this.take(isTaken, CLEARED_AT_ONCE);
    let dropped = 0;
    for (const { message, persisted } of taken) {
      if (persisted?.isDone) continue;
      dropped++;
      this.#outlet.drop(message, 'queue_cleared', persisted);
    }
    this.#outlet.updateFastPath();
    return { removed: taken.length, dropped };
  }

  // ------------------------------------------------------------------------------------------------- limits of the store

  get #unacknowledged(): number {
    return this.#log.offline?.unacknowledged ?? this.#outlet.inflight?.unacknowledged ?? 0;
  }

  /**
   * Number of messages that the limits apply to: those that are committed, because nothing may be dropped for a message that can still be
   * refused. While the store fails, messages that can be refused are not accepted, and the limits apply to all others.
   */
  get #limited(): number {
    const { ledger, count, settledCount } = this.#log;
    return (ledger.isFailed ? count : settledCount) - this.#unacknowledged;
  }

  /** Bytes of the messages that the limits apply to. */
  get limitedBytes(): number {
    const { ledger, bytes, settledBytes, offline } = this.#log;
    // while the client returns, only some of the messages in flight are in memory
    const inFlight = Math.max(this.#outlet.inflight?.bytes ?? 0, offline?.bytes ?? 0);
    return this.#limited > 0 ? Math.max(0, (ledger.isFailed ? bytes : settledBytes) - inFlight) : 0;
  }

  /**
   * Get the minimum number of messages to drop. With priorities the limits apply to each priority, and are exact only in memory; here they
   * are multiplied.
   * @param hasSlack the limits may be exceeded a little
   */
  #excess(hasSlack: boolean, totalBytes = Infinity): number {
    const { maxMqueueLen, maxMqueueBytes, mqueuePriorities } = this.#outlet.client.agreement.zone;
    const count = this.#limited;
    const most = maxMqueueLen * (1 + (mqueuePriorities?.size ?? 0));
    const withSlack = (limit: number) => limit + (hasSlack ? Math.floor(limit / SLACK_SHARE) : 0);
    if (most > 0 && count > withSlack(most)) return count - most;
    const { limitedBytes } = this;
    if (limitedBytes > totalBytes) return 1;
    const mostBytes = mqueuePriorities === undefined ? maxMqueueBytes : maxMqueueBytes * 2;
    return mostBytes > 0 && limitedBytes > withSlack(mostBytes) ? 1 : 0;
  }

  /** Reason of the next drop: if the session is within its own limits, the limit on all queues. */
  get #dropReason(): DropReason {
    return this.#excess(false) > 0 ? 'queue_full' : 'total_queue_full';
  }

  /**
   * Start to drop the oldest messages if more wait than the zone allows, or more bytes than `mostBytes`. Each commit calls this, and not the
   * arrival of a message: a message that is refused displaces nothing.
   */
  trimStore(mostBytes = Infinity): void {
    if (this.#task !== undefined || this.#log.offline?.loading !== undefined || this.#excess(true, mostBytes) <= 0)
      return;
    const { ports, client } = this.#outlet;
    ports.work.begin();
    // not synchronously: a listener of the drop event may publish, which would call this again
    this.#task = Promise.resolve()
      .then(() => this.#dropBeyond(true, mostBytes))
      .catch((error: unknown) => ports.announcer.failed(error, 'dropping messages beyond the queue limits', client))
      .finally(() => {
        this.#task = undefined;
        ports.work.end();
      });
  }

  /** See `StoredQueue`. */
  async shorten(mostBytes: number): Promise<void> {
    while (this.#task !== undefined) await this.#task;
    this.trimStore(mostBytes);
    await this.#task;
    this.#log.resized(); // the bytes in flight may not have been known before
  }

  /** Drop all messages beyond the limits before the messages in flight are loaded. @throws the error of the store */
  async trimToLoad(): Promise<void> {
    await this.#task;
    await this.#dropBeyond(false);
  }

  /** Drop messages beyond the limits. @param mostBytes the share of this session of the limit on the queues of all sessions */
  async #dropBeyond(hasSlack: boolean, mostBytes = Infinity): Promise<void> {
    const { ledger, isEnded, offline, session } = this.#log;
    if (isEnded || this.#excess(hasSlack, mostBytes) <= 0) return;
    if (ledger.isFailed) {
      this.#dropUnwritten(this.#newDropping(mostBytes, offline)); // the messages of the store cannot be read
      return;
    }
    while (this.#list !== undefined && this.#list.length > 0 && this.#excess(false, mostBytes) > 0)
      this.#drop(shiftOldest(this.#list), this.#dropReason);
    if (offline !== undefined) await this.#dropFromStore(offline, mostBytes);
    else if (session.state === 'connected' && this.#excess(hasSlack, mostBytes) > 0) this.page(); // `trim` drops them
  }

  /** Drop messages of the store, as long as the client is away. */
  async #dropFromStore(offline: OfflineFlights, mostBytes: number): Promise<void> {
    const log = this.#log;
    const dropping = this.#newDropping(mostBytes, offline);
    const isEnough = () => dropping.list === undefined && this.#excess(false, mostBytes) <= 0;
    const isOver = () => log.offline !== offline || log.isEnded;
    if (isEnough()) return;
    let isAtHead = true;
    for await (const { segment, messages } of this.#segments(isOver)) {
      this.#dropAmong(dropping, messages);
      isAtHead &&= segment.unfinished === 0;
      if (isAtHead) log.skipTo(segment.first + 1); // the segment need not be read again
      if (isEnough()) return;
    }
    if (!isOver()) this.#dropUnwritten(dropping);
  }

  /** Read the segments from `pageFrom` on and discard damaged ones, until `isOver` returns true or the store fails. */
  async *#segments(isOver: () => boolean): AsyncGenerator<ReadSegment> {
    const log = this.#log;
    let from = log.pageFrom; // the messages in memory have lower numbers
    for (let limit = FIRST_DROP_RECORDS; from < log.unwritten; limit = Math.min(limit * 2, MAX_DROP_RECORDS)) {
      if (log.ledger.isFailed) return;
      const { unwritten } = log;
      const entries = await log.records(from, unwritten, limit);
      for (const entry of entries) {
        if (isOver()) return;
        from = segmentFirst(entry.key) + 1;
        const read = log.read(entry);
        const segment = read instanceof BrokerError ? await log.discard(entry, unwritten, read) : read;
        if (isOver()) return;
        yield segment;
      }
      if (isOver()) return;
      if (entries.length < limit) from = unwritten;
    }
  }

  #newDropping(mostBytes: number, offline: OfflineFlights | undefined): Dropping {
    const { zone } = this.#outlet.client.agreement;
    const list = zone.mqueuePriorities === undefined ? undefined : newPriorityList(zone);
    return { mostBytes, offline, inFlight: numbersIn(offline), inFlightBytes: 0, list };
  }

  /** Drop some of these messages if the limits are exceeded. @param messages the oldest first */
  #dropAmong(dropping: Dropping, messages: readonly PersistedMessage[]): void {
    const { mostBytes, offline, inFlight, list } = dropping;
    for (const persisted of messages) {
      if (persisted.isDone) continue;
      const { message, qos, retain, subscriptionIds, isFirst, seq } = persisted;
      if (inFlight.has(seq)) {
        dropping.inFlightBytes += message.bytes;
        if (offline !== undefined) offline.bytes = Math.max(offline.bytes, dropping.inFlightBytes);
      } else if (list !== undefined)
        append(list, { message, qos, retain, subscriptionIds, persisted, sequence: list.sequence++, isFirst });
      else if (this.#excess(false, mostBytes) > 0) this.#dropStored(persisted, this.#dropReason);
    }
    if (list === undefined) return;
    for (const { persisted } of shiftBeyond(list, 0, 0)) this.#dropStored(persisted, 'queue_full');
  }

  /**
   * Drop messages that are in no segment yet, and with priorities those beyond the limit of bytes. Those below `pageFrom` are in memory, and
   * are left to the session. Usually they are committed; while the store fails, they are the uncommitted ones.
   */
  #dropUnwritten(dropping: Dropping): void {
    const log = this.#log;
    const { list, mostBytes } = dropping;
    const unwritten = log.outsideSegments(log.pageFrom);
    this.#dropAmong(
      dropping,
      unwritten.filter(({ seq }) => seq >= log.settledTo === log.ledger.isFailed)
    );
    while (list !== undefined && list.length > 0 && this.limitedBytes > mostBytes)
      this.#dropStored(shiftOldest(list)?.persisted, 'total_queue_full');
    log.forgetDone(); // discard the dropped messages now: the next commit may be late
  }

  /** Drop a persisted message that is not in memory, unless it is done. */
  #dropStored(persisted: PersistedMessage | undefined, reason: DropReason): void {
    if (persisted !== undefined && !persisted.isDone) this.#outlet.drop(persisted.message, reason, persisted);
  }

  // --------------------------------------------------------------------------------------------------- cleared by the app

  /**
   * Drop all waiting messages of a persisted session, and none in flight, some of them in each turn. Messages that arrive in the meantime
   * are kept.
   * @returns their number
   * @throws BrokerError STORE_FAILED; the errors of the store
   */
  async clear(): Promise<number> {
    const { work } = this.#outlet.ports;
    for (let other = this.#otherTask; other !== undefined; other = this.#otherTask) await other;
    work.begin();
    const to = this.#log.next;
    const { end } = this;
    // not synchronously: a listener of the drop event may call this again, and must then wait for this task
    const clearing = Promise.resolve()
      .then(() => this.#clear(to, end))
      .finally(() => work.end());
    const task = clearing.then(
      () => undefined,
      () => undefined
    );
    this.#task = task.finally(() => {
      this.#task = undefined;
    });
    return clearing;
  }

  get #otherTask(): Promise<void> | undefined {
    return this.#task ?? this.#log.offline?.loading?.catch(() => undefined);
  }

  /** @param to drop messages with a lower number @param end exclusive upper bound of the sequence numbers of unpersisted messages */
  async #clear(to: number, end: number): Promise<number> {
    const log = this.#log;
    const { session, ledger } = log;
    let count = 0;
    const drop = (persisted: PersistedMessage) => {
      if (persisted.isDone || persisted.seq >= to) return;
      count++;
      this.#dropStored(persisted, 'queue_cleared');
    };
    while (!log.isEnded) {
      if (ledger.isFailed) throw ledger.refusal();
      const { offline } = log;
      if (offline === undefined) {
        const { removed, dropped } = this.dropUntil(end, to);
        count += dropped;
        if (removed === CLEARED_AT_ONCE) {
          await session.ports.turn.pause();
          continue;
        }
      }
      if (session.state === 'connected') {
        if (log.pageFrom >= to) break;
        await this.page({ to, drop });
      } else if (await this.#clearStored(offline, drop)) break;
    }
    log.resized();
    return count;
  }

  /** Drop messages of the store, as long as the client is away. @returns false if that has changed */
  async #clearStored(
    offline: OfflineFlights | undefined,
    drop: (persisted: PersistedMessage) => void
  ): Promise<boolean> {
    const log = this.#log;
    const { session, ledger } = log;
    const inFlight = numbersIn(offline);
    const dropAll = (read: readonly PersistedMessage[]) => {
      for (const persisted of read) if (!inFlight.has(persisted.seq)) drop(persisted);
    };
    const isOver = () => log.offline !== offline || log.isEnded || session.state === 'connected' || ledger.isFailed;
    let from = log.pageFrom;
    for await (const { segment, messages } of this.#segments(isOver)) {
      dropAll(messages);
      from = segment.first + 1;
      await session.ports.turn.pause();
    }
    if (isOver()) return false; // a listener may have changed anything
    const others = log.outsideSegments(from);
    for (let at = 0; at < others.length; at += CLEARED_AT_ONCE) {
      if (at > 0) await session.ports.turn.pause();
      if (isOver()) return false;
      dropAll(others.slice(at, at + CLEARED_AT_ONCE));
    }
    log.forgetDone();
    return true;
  }

  // ------------------------------------------------------------------------------------------------------- into memory

  /**
   * Load messages in flight, because the client returns. Further messages that are read are queued.
   * @param wanted packet ids by message number
   * @returns false if the client has disconnected in the meantime
   * @throws the error of the store
   */
  async load(wanted: Map<number, number>): Promise<boolean> {
    const log = this.#log;
    const paging = (this.#paging = newPaging(wanted));
    while (wanted.size > 0 && !log.isCaughtUp && !paging.isStopped) await this.#readPage(paging);
    if (paging.isStopped) return false;
    paging.wanted = undefined;
    for (const id of wanted.values()) this.#outlet.inflight?.free(id); // the message is lost; the error was reported
    return true;
  }

  /**
   * Read the next page of messages into memory, unless one is being read; then send the waiting messages.
   * @param dropped read these messages and drop those that would wait; resolves when that is done, or the client has disconnected
   */
  page(dropped?: DroppedPages): Promise<void> | undefined {
    if (this.#log.isCaughtUp) return undefined;
    const paging = (this.#paging ??= newPaging(undefined));
    if (dropped !== undefined) return this.#dropPages(paging, dropped);
    this.#startPage(paging);
    return undefined;
  }

  /** Discard the page that is being read, and read no more for this connection. */
  stopPaging(): void {
    if (this.#paging !== undefined) this.#paging.isStopped = true;
    this.#paging = undefined;
  }

  #startPage(paging: Paging): void {
    if (paging.reading !== undefined) return;
    const { session, ports } = this.#outlet;
    ports.work.begin();
    paging.reading = this.#readPage(paging)
      .then(
        () => this.#endPage(paging),
        (error: unknown) => this.#failPage(paging, error)
      )
      .catch((error: unknown) => session.failInternally(error, 'sending queued messages'))
      .finally(() => ports.work.end());
  }

  /** Read messages, and drop those that would wait. This ends early when the client disconnects. */
  async #dropPages(paging: Paging, dropped: DroppedPages): Promise<void> {
    const log = this.#log;
    paging.dropped = dropped;
    while (log.pageFrom < dropped.to && !paging.isStopped && !log.ledger.isFailed) {
      this.#startPage(paging);
      await paging.reading;
      await this.#outlet.ports.turn.pause();
    }
    if (paging.dropped !== dropped) return;
    paging.dropped = undefined;
    if (!paging.isStopped) this.#outlet.pump();
  }

  #endPage(paging: Paging): void {
    if (paging.isStopped) return;
    paging.reading = undefined;
    if (paging.dropped === undefined) this.#outlet.pump(); // otherwise it could start the next page in this turn
  }

  /** Try again when the store works again, because a page could not be read; if the store has not failed, close the connection. */
  #failPage(paging: Paging, error: unknown): void {
    if (paging.isStopped) return;
    const { session, ports, client, writer } = this.#outlet;
    const { ledger } = this.#log;
    if (ledger.isFailed) {
      afterCommit(ledger, () => this.#endPage(paging));
      return;
    }
    paging.reading = undefined;
    ports.announcer.failed(error, 'reading queued messages from the store', client);
    if (writer !== undefined) session.lifecycle.close('store_failed');
  }

  /** Read one page: records of the store, or at last the messages that are in no segment yet. */
  async #readPage(paging: Paging): Promise<void> {
    const log = this.#log;
    const { pageFrom, unwritten } = log;
    if (pageFrom >= unwritten) {
      const all = log.outsideSegments(pageFrom);
      const some = paging.dropped === undefined ? all : all.slice(0, CLEARED_AT_ONCE);
      for (const persisted of some) this.#place(paging, persisted);
      log.placedTo(some.length < all.length ? some[some.length - 1].seq + 1 : log.next);
      this.trimCommitted();
      return;
    }
    const limit = paging.dropped === undefined ? paging.records : 1; // dropping the messages of a record takes a part of a turn
    const entries = await log.records(pageFrom, unwritten, limit);
    if (paging.isStopped) return;
    this.#outlet.ports.time.read();
    let bytes = 0;
    for (const entry of entries) {
      if (bytes > 0 && paging.dropped !== undefined) return; // the others are read again in the next turn
      bytes += entry.value.length;
      const fault = this.#placeSegment(paging, entry);
      if (fault === undefined) continue;
      await log.discard(entry, unwritten, fault);
      if (paging.isStopped) return;
    }
    if (entries.length < limit) log.placedTo(unwritten);
    const isSmall = paging.dropped === undefined && bytes < SMALL_PAGE_BYTES;
    if (isSmall) paging.records = Math.min(limit * 2, MAX_PAGE_RECORDS);
    else if (bytes > LARGE_PAGE_BYTES) paging.records = Math.max(limit >> 1, 1);
    this.trimCommitted();
  }

  /** Put the messages of a record into memory. @returns the error if the record is damaged */
  #placeSegment(paging: Paging, entry: Entry): BrokerError | undefined {
    const log = this.#log;
    const read = log.read(entry);
    if (read instanceof BrokerError) {
      log.placedTo(segmentFirst(entry.key) + 1);
      return read;
    }
    log.placedTo(read.end, read.segment);
    for (const persisted of read.messages) this.#place(paging, persisted);
    return undefined;
  }

  #place({ wanted, dropped }: Paging, persisted: PersistedMessage): void {
    if (persisted.isDone) return;
    const id = wanted?.get(persisted.seq);
    if (id === undefined && dropped !== undefined && persisted.seq < dropped.to) dropped.drop(persisted);
    else if (id === undefined) this.add(persisted);
    else {
      wanted?.delete(persisted.seq);
      this.#outlet.inflight?.restoreMessage(id, persisted);
    }
  }

  // ------------------------------------------------------------------------------------------------------------- hand over

  /**
   * Start at the oldest message of a session that has ended, in memory or not. Those that other sessions have handed over to this one come
   * first; for them, the records up to the last one are read once more.
   * @param inFlight the packet ids in flight, see `encodeInFlight`
   */
  handOverFrom(inFlight: Buffer): HandOverPosition {
    const { pageFrom, hasUnreadFirst } = this.#log;
    const flights = new Map<number, number>();
    forEachInFlight(inFlight, (_id, _state, flags, seq) => {
      if ((flags & UNSENT) === 0) flights.set(seq, flags & 3);
    });
    return { last: pageFrom, from: pageFrom, isFirstPass: hasUnreadFirst, flights };
  }

  /**
   * Get the next messages to hand over that are not done, in order. The messages of the previous call must be done.
   * @returns undefined if there are no more
   * @throws the error of the store
   */
  async nextToHandOver(position: HandOverPosition): Promise<readonly PersistedMessage[] | undefined> {
    const log = this.#log;
    for (;;) {
      const from = (position.last = position.from);
      if (position.isFirstPass && from >= log.firstTo) {
        position.isFirstPass = false;
        position.from = log.pageFrom;
        continue;
      }
      if (!position.isFirstPass) log.skipTo(from);
      const messages = await this.#handOverPage(position, from);
      if (messages === undefined && !position.isFirstPass) return undefined;
      const some = position.isFirstPass ? messages?.filter(({ isFirst }) => isFirst) : messages;
      if (some !== undefined && some.length > 0) return some;
    }
  }

  /** @returns undefined if there are no more messages; empty: call this again */
  async #handOverPage(position: HandOverPosition, from: number): Promise<readonly PersistedMessage[] | undefined> {
    const log = this.#log;
    const { unwritten } = log;
    if (from >= unwritten) {
      if (from >= log.next) return undefined;
      position.from = log.next;
      return log.outsideSegments(from).filter(({ isDone }) => !isDone);
    }
    const [entry] = await log.records(from, unwritten, 1);
    position.from = entry === undefined ? unwritten : segmentFirst(entry.key) + 1;
    if (entry === undefined) return [];
    const read = log.read(entry);
    return read instanceof BrokerError ? (await log.discard(entry, unwritten, read)).messages : read.messages;
  }
}

function newPaging(wanted: Map<number, number> | undefined): Paging {
  return { records: FIRST_PAGE_RECORDS, reading: undefined, dropped: undefined, wanted, isStopped: false };
}
