// An offline session keeps numbers, not messages. A queue above its bound is shortened from the store, oldest first,
// so its drops are announced a little later than in memory. Priorities order what has been read back. The limits
// apply to committed messages only, in memory too: a commit that succeeds drops what its messages displace, one that
// fails has displaced nothing. Until then a queue exceeds its limit by what is not committed, which
// `maxUnwrittenBytes` bounds.

import { BrokerError } from '../../base/errors.ts';
import type { DropReason } from '../../events/reasons.ts';
import { type PersistedMessage, segmentFirst } from '../../store/segment.ts';
import { forEachInFlight, NOTHING_IN_FLIGHT } from '../messages/in-flight-record.ts';
import { Dropper } from './dropper.ts';
import type { SessionLog } from './log.ts';
import type { OfflineFlights } from './offline-flights.ts';
import { SegmentReader } from './segment-reader.ts';
import { StoredQueue } from './stored-backlog.ts';

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

/** Keeps the messages of a session in the store within the limits of its zone, and within its share of the limit on all queues. */
export class SessionQueue extends StoredQueue {
  readonly #log: SessionLog;
  /** The bytes of this session that `StoredBacklog.storedBytes` includes. */
  #countedBytes = 0;
  /** The drop of messages beyond the limits that is in progress. There is none while the messages in flight are loaded. */
  #trimming: Promise<void> | undefined = undefined;
  /** True if the messages are handed over, and no longer dropped for others. */
  #isClosed = false;

  constructor(log: SessionLog) {
    super();
    this.#log = log;
  }

  /** Number of messages that are neither done nor in flight. */
  get waiting(): number {
    return this.#log.messages.count - this.#unacknowledged;
  }

  get #unacknowledged(): number {
    const { offline, session } = this.#log;
    return offline?.unacknowledged ?? session.outlet.inflight?.unacknowledged ?? 0;
  }

  /**
   * Number of messages that the limits apply to: those that are committed, because nothing may be dropped for a message that can still be
   * refused. While the store fails, messages that can be refused are not accepted, and the limits apply to all others.
   */
  get #limited(): number {
    const { ledger, messages } = this.#log;
    return (ledger.isFailed ? messages.count : messages.settledCount) - this.#unacknowledged;
  }

  /** Bytes of the messages that the limits apply to. */
  get limitedBytes(): number {
    const { ledger, messages, offline, session } = this.#log;
    // while the client returns, only some of the messages in flight are in memory
    const inFlight = Math.max(session.outlet.inflight?.bytes ?? 0, offline?.bytes ?? 0);
    const bytes = ledger.isFailed ? messages.bytes : messages.settledBytes;
    return this.#limited > 0 ? Math.max(0, bytes - inFlight) : 0;
  }

  /**
   * Report the committed bytes to the `StoredBacklog`. It orders the sessions by their waiting bytes, as messages in flight cannot be
   * dropped. Each commit calls this for the logs that it has written, which is as often as the limit is checked.
   */
  resized(): void {
    const { messages, session } = this.#log;
    const { storedBacklog } = session.ports.pressure;
    const bytes = messages.isEnded ? 0 : messages.settledBytes;
    storedBacklog.stored(bytes - this.#countedBytes);
    this.#countedBytes = bytes;
    storedBacklog.resize(this, messages.isEnded || this.#isClosed ? 0 : this.limitedBytes);
  }

  /** Stop dropping messages of the session for others, because it has ended. */
  close(): void {
    this.#isClosed = true;
    this.resized();
  }

  // -------------------------------------------------------------------------------------------------------------- the limits

  /**
   * Get the minimum number of messages to drop. With priorities the limits apply to each priority, and are exact only in memory; here they
   * are multiplied.
   * @param hasSlack the limits may be exceeded a little
   */
  #excess(hasSlack: boolean, totalBytes = Infinity): number {
    const { maxMqueueLen, maxMqueueBytes, mqueuePriorities } = this.#log.session.client.agreement.zone;
    const count = this.#limited;
    const most = maxMqueueLen * (1 + (mqueuePriorities?.size ?? 0));
    const withSlack = (limit: number) => limit + (hasSlack ? Math.floor(limit / SLACK_SHARE) : 0);
    if (most > 0 && count > withSlack(most)) return count - most;
    const { limitedBytes } = this;
    if (limitedBytes > totalBytes) return 1;
    const mostBytes = mqueuePriorities === undefined ? maxMqueueBytes : maxMqueueBytes * 2;
    return mostBytes > 0 && limitedBytes > withSlack(mostBytes) ? 1 : 0;
  }

  /** Reason of the next drop: if the session is within its own limits, the limit on all backlogs. */
  get #dropReason(): DropReason {
    return this.#excess(false) > 0 ? 'queue_full' : 'total_queue_full';
  }

  /**
   * Start to drop the oldest messages if more wait than the zone allows, or more bytes than `mostBytes`. Each commit calls this, and not the
   * arrival of a message: a message that is refused displaces nothing.
   */
  trim(mostBytes = Infinity): void {
    const { session, offline } = this.#log;
    if (this.#trimming !== undefined || offline?.isLoading || this.#excess(true, mostBytes) <= 0) return;
    const { ports } = session;
    ports.work.begin();
    // not synchronously: a listener of the drop event may publish, which would call `trim` again
    this.#trimming = Promise.resolve()
      .then(() => this.#trim(true, mostBytes))
      .catch((error: unknown) =>
        ports.announcer.failed(error, 'dropping messages beyond the queue limits', session.client)
      )
      .finally(() => {
        this.#trimming = undefined;
        ports.work.end();
      });
  }

  async shorten(mostBytes: number): Promise<void> {
    while (this.#trimming !== undefined) await this.#trimming;
    this.trim(mostBytes);
    await this.#trimming;
    this.resized(); // the bytes in flight may not have been known before
  }

  /** Drop all messages beyond the limits before the messages in flight are loaded. @throws the error of the store */
  async trimToLoad(): Promise<void> {
    await this.#trimming; // two tasks at once would both read the messages, and drop them twice
    await this.#trim(false);
  }

  /** Drop messages in memory beyond the limits of the session, except for messages that are not committed. */
  trimBacklog(): void {
    const { count, settledCount, bytes, settledBytes } = this.#log.messages;
    this.#log.session.outlet.backlog?.trim(count - settledCount, bytes - settledBytes);
  }

  // ---------------------------------------------------------------------------------------------------------------- dropping

  /**
   * Drop all waiting messages, and none in flight, some of them in each turn. Messages that arrive in the meantime are kept.
   * @returns their number
   * @throws BrokerError STORE_FAILED; the errors of the store
   */
  async clear(): Promise<number> {
    const { work } = this.#log.session.ports;
    // Not while messages are dropped or loaded. Otherwise a message could be read by both tasks, then dropped by one and sent by the other.
    for (let other = this.#otherTask; other !== undefined; other = this.#otherTask) await other;
    work.begin();
    const to = this.#log.messages.next;
    const end = this.#log.session.outlet.backlog?.end ?? 0;
    // not synchronously: a listener of the drop event may call this again, and must then wait for this task
    const clearing = Promise.resolve()
      .then(() => this.#clear(to, end))
      .finally(() => work.end());
    const task = clearing.then(
      () => undefined,
      () => undefined
    );
    this.#trimming = task.finally(() => {
      this.#trimming = undefined;
    });
    return clearing;
  }

  get #otherTask(): Promise<void> | undefined {
    return this.#trimming ?? this.#log.offline?.loading;
  }

  /** @param to drop messages with a lower number @param end exclusive upper bound of the sequence numbers of unpersisted messages */
  async #clear(to: number, end: number): Promise<number> {
    const log = this.#log;
    const { messages, session, ledger } = log;
    let count = 0;
    const drop = (persisted: PersistedMessage) => {
      if (persisted.isDone || persisted.seq >= to) return;
      count++;
      this.drop(persisted, 'queue_cleared');
    };
    while (!messages.isEnded) {
      if (ledger.isFailed) throw ledger.refusal();
      const { offline } = log;
      if (offline === undefined) {
        const { removed = 0, dropped = 0 } = session.outlet.backlog?.dropUntil(end, to, CLEARED_AT_ONCE) ?? {};
        session.outlet.updateFastPath();
        count += dropped;
        if (removed === CLEARED_AT_ONCE) {
          await session.ports.turn.pause();
          continue;
        }
      }
      if (session.state === 'connected') {
        if (messages.pageFrom >= to) break;
        await log.page({ to, drop });
      } else if (await this.#clearStored(offline, drop)) break;
    }
    this.resized();
    return count;
  }

  /** Drop messages of the store, as long as the client is away. @returns false if that has changed */
  async #clearStored(
    offline: OfflineFlights | undefined,
    drop: (persisted: PersistedMessage) => void
  ): Promise<boolean> {
    const log = this.#log;
    const { messages, session } = log;
    const inFlight = new Set<number>();
    if (offline !== undefined) forEachInFlight(offline.record, (_id, _state, _flags, seq) => inFlight.add(seq));
    const dropAll = (read: readonly PersistedMessage[]) => {
      for (const persisted of read) if (!inFlight.has(persisted.seq)) drop(persisted);
    };
    const isOver = () =>
      log.offline !== offline || messages.isEnded || session.state === 'connected' || log.ledger.isFailed;
    const reader = new SegmentReader(log);
    let from = messages.pageFrom; // the messages in memory have lower numbers
    for (let limit = FIRST_DROP_RECORDS; from < messages.unwritten; limit = Math.min(limit * 2, MAX_DROP_RECORDS)) {
      const { unwritten } = messages;
      const entries = await reader.records(from, unwritten, limit);
      if (isOver()) return false;
      for (const entry of entries) {
        const read = reader.read(entry);
        from = segmentFirst(entry.key) + 1;
        if (!(read instanceof BrokerError)) dropAll(read.messages);
        else await reader.discard(entry, unwritten, read);
        await session.ports.turn.pause();
        if (isOver()) return false; // a listener may have changed anything
      }
      if (entries.length < limit) from = unwritten;
    }
    const others = messages.outsideSegments(from);
    for (let at = 0; at < others.length; at += CLEARED_AT_ONCE) {
      if (at > 0) await session.ports.turn.pause();
      if (isOver()) return false;
      dropAll(others.slice(at, at + CLEARED_AT_ONCE));
    }
    messages.forgetDone();
    return true;
  }

  /** Drop messages beyond the limits. @param mostBytes the share of this session of the limit on the backlogs of all sessions */
  async #trim(hasSlack: boolean, mostBytes = Infinity): Promise<void> {
    const { messages, session, ledger, offline } = this.#log;
    const backlog = session.outlet.backlog;
    if (messages.isEnded || this.#excess(hasSlack, mostBytes) <= 0) return;
    if (ledger.isFailed) {
      this.#dropUnwritten(this.#dropper(mostBytes, offline)); // the messages of the store cannot be read
      return;
    }
    while (backlog !== undefined && backlog.length > 0 && this.#excess(false, mostBytes) > 0)
      backlog.dropOldest(this.#dropReason);
    if (offline !== undefined) await this.#dropFromStore(offline, mostBytes);
    else if (session.state === 'connected' && this.#excess(hasSlack, mostBytes) > 0) this.#log.page(); // the backlog drops them
  }

  /** Drop messages of the store, as long as the client is away. */
  async #dropFromStore(offline: OfflineFlights, mostBytes: number): Promise<void> {
    const log = this.#log;
    const { messages, session, ledger } = log;
    const { mqueuePriorities } = session.client.agreement.zone;
    const reader = new SegmentReader(log);
    const dropper = this.#dropper(mostBytes, offline);
    const isEnough = () => mqueuePriorities === undefined && this.#excess(false, mostBytes) <= 0;
    const isOver = () => log.offline !== offline || messages.isEnded;
    let from = messages.pageFrom;
    let isAtHead = true;
    for (let limit = FIRST_DROP_RECORDS; !isEnough(); limit = Math.min(limit * 2, MAX_DROP_RECORDS)) {
      const { unwritten } = messages;
      if (from >= unwritten || ledger.isFailed) {
        this.#dropUnwritten(dropper);
        return;
      }
      const entries = await reader.records(from, unwritten, limit);
      if (isOver()) return;
      for (const entry of entries) {
        if (isEnough()) return;
        const read = reader.read(entry);
        const isBad = read instanceof BrokerError;
        if (isBad) {
          await reader.discard(entry, unwritten, read);
          if (isOver()) return;
        } else dropper.take(read.messages);
        from = segmentFirst(entry.key) + 1;
        isAtHead &&= isBad || read.segment.unfinished === 0;
        if (isAtHead) messages.skipTo(from); // the segment need not be read again
      }
      if (entries.length < limit) from = unwritten;
    }
  }

  #dropper(mostBytes: number, offline: OfflineFlights | undefined): Dropper {
    const queue = {
      isTooLong: () => this.#excess(false, mostBytes) > 0,
      isTooLarge: () => this.limitedBytes > mostBytes,
      drop: (persisted: PersistedMessage, reason = this.#dropReason) => this.drop(persisted, reason),
      foundInFlight: (bytes: number) => offline?.found(bytes)
    };
    return new Dropper(queue, this.#log.session.client.agreement.zone, offline?.record ?? NOTHING_IN_FLIGHT);
  }

  /**
   * Drop messages that are in no segment yet. Those below `pageFrom` are in memory, and are left to the session. Usually they are
   * committed; while the store fails, they are the uncommitted ones.
   */
  #dropUnwritten(dropper: Dropper): void {
    const { messages, ledger } = this.#log;
    const unwritten = messages.outsideSegments(messages.pageFrom);
    dropper.take(unwritten.filter(({ seq }) => seq >= messages.settledTo === ledger.isFailed));
    dropper.end();
    messages.forgetDone(); // discard the dropped messages now: the next commit may be late
  }

  /** Drop a message, unless it is done. */
  drop(persisted: PersistedMessage, reason: DropReason): void {
    if (persisted.isDone) return;
    const { message } = persisted;
    this.#log.finish(persisted);
    this.#log.session.outlet.drop(message, reason);
  }
}
