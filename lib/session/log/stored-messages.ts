// A message moves through these lists: `#open` until a commit begins, `#writing` during it, `#unfolded` while it is
// only in a journal, and then a segment. The lists are in order of numbers, and everything in one list is older than
// everything in the list before it. Numbers ascend and are never used twice: segments, journals and the set of
// numbers that are done rely on it. `write` is followed by exactly one `committed` or `commitFailed`. Segments are
// deleted only by a commit that folds, as a whole, when no message of them is needed.

import { SeqSet } from '../../base/collections/seq-set.ts';
import type { TimeReading } from '../../base/time-reading.ts';
import type { Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import type { CommitFailure } from '../../store/durable.ts';
import { Kind } from '../../store/keys.ts';
import type { Draft } from '../../store/record.ts';
import {
  leaveSegments,
  PersistedMessage,
  type ReadSegment,
  readUnfinished,
  type Segment,
  writeSegments
} from '../../store/segment.ts';
import type { Entry } from '../../store/store.ts';
import type { FlowRecord } from '../messages/flow-record.ts';
import { MessageCounts } from './message-counts.ts';

/**
 * The messages of a session in the store, by number: which of them are done, written and in memory, and which segments contain them.
 *
 * Messages with a number below `pageFrom` are in memory (in the backlog or in flight) or done; later ones are only in the store, or wait for
 * a commit. While the client is away all messages are only in the store. Memory then holds only which numbers are done.
 */
export class StoredMessages extends MessageCounts {
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
  /** Messages with a lower number are in memory or done. */
  #pagedTo = 1;
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

  /** True if all messages that are not done are in memory. */
  get isCaughtUp(): boolean {
    return this.#pagedTo === this.next;
  }

  /** True if messages that are to be sent first may be only in the store. */
  get hasUnreadFirst(): boolean {
    return this.firstTo > this.pageFrom && this.firstTo > this.done.low;
  }

  /** Messages that are not written yet. Some of them may be done. */
  get open(): readonly PersistedMessage[] {
    return this.#open;
  }

  /** Number of the first message that is in no segment of the store. */
  get unwritten(): number {
    return (this.#unfolded[0] ?? this.#writing[0] ?? this.#open[0])?.seq ?? this.next;
  }

  /** Get the messages from this number on that are in no segment of the store, in order. Some of them may be done. */
  outsideSegments(from: number): PersistedMessage[] {
    return [...this.#unfolded, ...this.#writing, ...this.#open].filter(({ seq }) => seq >= from);
  }

  // ------------------------------------------------------------------------------------------------------------ new and done

  /**
   * Add a message.
   * @param isInMemory the session has the message in memory as well; only allowed if `isCaughtUp`
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
    const persisted = new PersistedMessage(message, qos, retain, ids, this.next++, isFirst);
    if (isFirst) this.firstTo = this.next;
    if (isInMemory) this.#pagedTo = this.pageFrom = this.next;
    this.#open = appended(this.#open, persisted);
    this.added(persisted);
    // while the store fails, messages that are done must not accumulate
    if (this.#open.length > 2 * this.count + 64) this.forgetDone();
    return persisted;
  }

  /** Note that a message is done. @returns false if that was known */
  finish(persisted: PersistedMessage): boolean {
    // the number is checked, too: a message may have been read twice, or its record discarded as damaged
    if (persisted.isDone || this.isEnded || this.done.has(persisted.seq)) return false;
    this.removed(persisted);
    persisted.finish();
    this.done.add(persisted.seq);
    const { segment } = persisted;
    if (segment?.finishOne()) this.#discardSegment(segment);
    return true;
  }

  #discardSegment(segment: Segment): void {
    this.#emptySegments = appended(this.#emptySegments, segment.first);
    const at = this.#segments.indexOf(segment); // usually the first one
    if (at >= 0) this.#segments.splice(at, 1);
  }

  /** Note that the messages of a segment are lost. @param to first number of the next segment @returns how many of them were not done */
  lose(from: number, to: number): number {
    let lost = 0;
    for (const [first, behind] of this.done.gapsBelow(to)) if (behind > from) lost += behind - Math.max(first, from);
    this.done.addRange(from, to);
    this.#emptySegments = appended(this.#emptySegments, from);
    this.lost(lost);
    return lost;
  }

  /** Remove messages that are done from the list of those to be written. */
  forgetDone(): void {
    this.#open = this.#takeOpen();
  }

  /** Note that the session has ended, and is being deleted from the store. */
  end(): void {
    this.isEnded = true;
    this.#open = this.#unfolded = NONE;
  }

  // -------------------------------------------------------------------------------------------------------------- the commit

  /**
   * Write the new messages.
   * @param session number of the session in keys
   * @param journal as for `Durable.write`
   * @returns the head, for the flow record
   */
  write(draft: Draft, journal: Draft | undefined, session: number): number {
    this.#writtenTo = this.next;
    this.#isFolding = journal === undefined;
    if (journal === undefined) this.#fold(draft, session);
    else if (this.#open.length > 0) {
      this.#writing = this.#takeOpen();
      writeSegments(journal, session, this.#writing, false);
    }
    // the segments of a journal come after those of the store
    return journal === undefined ? this.#writingHead : this.#committedHead;
  }

  #takeOpen(): PersistedMessage[] {
    const open = this.#open;
    this.#open = NONE;
    return open.some(({ isDone }) => isDone) ? open.filter(({ isDone }) => !isDone) : open;
  }

  #fold(draft: Draft, session: number): void {
    this.#deletingSegments = this.#emptySegments;
    this.#emptySegments = NONE;
    for (const first of this.#deletingSegments) draft.key(Kind.segment).u48(session).u48(first).delete();
    const unfolded = this.#unfolded.filter(({ isDone }) => !isDone);
    this.#foldingCount = unfolded.length;
    this.#writing = [...unfolded, ...this.#takeOpen()];
    this.#unfolded = NONE;
    // a segment has only messages in memory or only others, because a page begins with a segment
    const split = this.pageFrom === this.next ? -1 : this.#writing.findIndex(({ seq }) => seq >= this.pageFrom);
    writeSegments(draft, session, split > 0 ? this.#writing.slice(0, split) : this.#writing);
    if (split > 0) writeSegments(draft, session, this.#writing.slice(split));
    this.#writingHead = this.#head;
  }

  /** First number of the oldest segment that is still needed. */
  get #head(): number {
    return Math.min(this.#segments[0]?.first ?? this.unwritten, this.pageFrom);
  }

  /** Note that the written messages are committed. @returns whether there are segments to delete */
  committed(): boolean {
    const isFolding = this.#isFolding;
    this.#foldingCount = 0;
    this.settle(this.#writing, this.#writtenTo);
    if (isFolding) this.#folded();
    else for (const persisted of this.#writing) this.#unfolded = appended(this.#unfolded, persisted);
    this.#writing = NONE;
    return isFolding && this.#emptySegments.length > 0;
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

  /** Prepare to write the messages of the failed commit again. */
  commitFailed(failure: CommitFailure): void {
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

  // ---------------------------------------------------------------------------------------------------------- read from store

  /** Restore a flow record. */
  restore(record: FlowRecord): void {
    const { next, head, done, firstTo } = record;
    this.restoreCounts(record);
    this.firstTo = firstTo;
    this.next = next;
    this.pageFrom = this.#committedHead = head;
    this.done = done;
    // segments from the head on may all be done, but not deleted yet
    this.#pagedTo = Math.min(head, done.low);
  }

  /** Note that the session no longer has messages in memory. */
  leaveMemory(): void {
    const unfolded = this.#unfolded.filter(({ isDone }) => !isDone);
    this.#unfolded = unfolded.length > 0 ? unfolded : NONE;
    this.pageFrom = this.#head;
    this.#pagedTo = this.done.low;
    this.#segments = NONE;
  }

  /** Read a segment. @throws RecordError if the record is damaged or too new */
  read(entry: Entry, time: TimeReading): ReadSegment {
    const read = readUnfinished(entry, time, this.done);
    const { segment } = read;
    if (segment.unfinished === 0) this.#emptySegments = appended(this.#emptySegments, segment.first);
    return read;
  }

  /**
   * Note that all messages below this number are in memory or done. @param segment the last segment of these, if they were read from one
   */
  placedTo(to: number, segment?: Segment): void {
    this.#pagedTo = this.pageFrom = to;
    if (segment !== undefined && segment.unfinished > 0) this.#segments = appended(this.#segments, segment);
  }

  /** Note that no page needs the segments below this number. */
  skipTo(from: number): void {
    this.pageFrom = from;
  }
}

/** The empty list, shared by all sessions: separate arrays would be a tenth of the memory of an offline session. */
const NONE: never[] = Object.freeze([]) as unknown as never[];

function appended<T>(list: T[], item: T): T[] {
  if (list === NONE) return [item];
  list.push(item);
  return list;
}
