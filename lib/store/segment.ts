import type { SeqSet } from '../base/collections/seq-set.ts';
import type { Message, Publisher } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import { Kind } from './keys.ts';
import { type Now, readMessage, writeMessage } from './message-record.ts';
import { type Draft, RecordReader } from './record.ts';
import type { Entry } from './store.ts';

/** A segment is closed when its record reaches this size. */
const SEGMENT_BYTES = 131_072;
const RETAIN = 4;
const HAS_IDS = 8;
/** 0.2 ignores it. */
const FIRST = 16;

/** A segment: messages of one session that are stored in one record. */
export class Segment {
  /** Number of the first message; also the key of the record. */
  readonly first: number;
  /** Number of messages that are neither acknowledged nor dropped. */
  unfinished = 0;
  /** True if the store has committed the record. */
  isCommitted: boolean;

  constructor(first: number, isCommitted: boolean) {
    this.first = first;
    this.isCommitted = isCommitted;
  }

  /** Note that one of the messages is done. @returns whether the record can be deleted, because it was the last one */
  finishOne(): boolean {
    return --this.unfinished === 0 && this.isCommitted;
  }

  /** Note that the store has committed the record. */
  commit(): void {
    this.isCommitted = true;
  }
}

/** A message of one session that is persisted, or will be with the next commit. */
export class PersistedMessage {
  /** The message; released by `finish`, so do not use it if `isDone` is set. */
  message: Message;
  readonly qos: QoS;
  readonly retain: boolean;
  readonly subscriptionIds: readonly number[] | undefined;
  /** Number of the message in its session, in the order of arrival. */
  readonly seq: number;
  /** True if the message was handed over by another session, and is sent before those that were queued for this one. */
  readonly isFirst: boolean;
  /** The segment that holds the message; undefined if it is unwritten, or only in a journal. */
  segment: Segment | undefined = undefined;
  /** True if the message is in the store, or in a batch for it. */
  isWritten = false;
  /** True if the message has been acknowledged or dropped: it is not sent again. */
  isDone = false;
  /** True if the PUBLISH has been sent: only the client can end the flow. */
  isSent = false;

  constructor(
    message: Message,
    qos: QoS,
    retain: boolean,
    subscriptionIds: readonly number[] | undefined,
    seq: number,
    isFirst = false
  ) {
    this.message = message;
    this.qos = qos;
    this.retain = retain;
    this.subscriptionIds = subscriptionIds;
    this.seq = seq;
    this.isFirst = isFirst;
  }

  /** Note that the PUBLISH has been sent. */
  sent(): void {
    this.isSent = true;
  }

  /** Mark the message as done: it is neither sent again nor written. */
  finish(): void {
    this.isDone = true;
    this.message = undefined as unknown as Message;
  }
}

/**
 * Write messages to as many records as they need.
 * @param session number of the session in keys
 * @param messages in the order of their numbers, none of them done
 * @param isFold true if the records are segments of the store; false if they go to a journal, and are written again later
 */
export function writeSegments(
  draft: Draft,
  session: number,
  messages: readonly PersistedMessage[],
  isFold = true
): void {
  for (let at = 0; at < messages.length; ) {
    const { seq: first } = messages[at];
    const segment = new Segment(first, false);
    draft.key(Kind.segment).u48(session).u48(first).value();
    let previous: Publisher | undefined;
    let seq = first;
    while (at < messages.length && draft.size < SEGMENT_BYTES) {
      const persisted = messages[at++];
      const { message, subscriptionIds } = persisted;
      const flags =
        (persisted.retain ? RETAIN : 0) |
        (subscriptionIds === undefined ? 0 : HAS_IDS) |
        (persisted.isFirst ? FIRST : 0);
      draft.u8(persisted.qos | flags).varint(persisted.seq - seq);
      seq = persisted.seq;
      if (subscriptionIds !== undefined) {
        draft.varint(subscriptionIds.length);
        for (const id of subscriptionIds) draft.varint(id);
      }
      writeMessage(draft, message, previous);
      if (message.origin !== undefined) previous = message.origin;
      persisted.isWritten = true;
      if (!isFold) continue;
      persisted.segment = segment;
      segment.unfinished++;
    }
    draft.put();
  }
}

/** Read the messages of a record. @throws RecordError if the record is damaged or too new */
export function readSegment({ key, value }: Entry, now: Now): PersistedMessage[] {
  const reader = new RecordReader(key, value);
  let seq = segmentFirst(key);
  const messages: PersistedMessage[] = [];
  let previous: Publisher | undefined;
  while (!reader.isAtEnd) {
    const flags = reader.u8();
    seq += reader.varint();
    let subscriptionIds: number[] | undefined;
    if ((flags & HAS_IDS) !== 0) {
      subscriptionIds = [];
      for (let left = reader.varint(); left > 0; left--) subscriptionIds.push(reader.varint());
    }
    const message = readMessage(reader, previous, now);
    if (message.origin !== undefined) previous = message.origin;
    const isFirst = (flags & FIRST) !== 0;
    const persisted = new PersistedMessage(
      message,
      (flags & 3) as QoS,
      (flags & RETAIN) !== 0,
      subscriptionIds,
      seq,
      isFirst
    );
    persisted.isWritten = true;
    messages.push(persisted);
  }
  return messages;
}

/** The messages of a segment that are not done. */
export interface ReadSegment {
  readonly segment: Segment;
  readonly messages: readonly PersistedMessage[];
  /** The number after its last message. */
  readonly end: number;
}

/** Read the messages of a segment that are not done. @throws RecordError if the record is damaged or too new */
export function readUnfinished(entry: Entry, now: Now, done: SeqSet): ReadSegment {
  const segment = new Segment(segmentFirst(entry.key), true);
  const all = readSegment(entry, now);
  const messages = all.filter(({ seq }) => !done.has(seq));
  for (const persisted of messages) persisted.segment = segment;
  segment.unfinished = messages.length;
  return { segment, messages, end: all[all.length - 1].seq + 1 };
}

/** Note that the segments of messages were not committed. @returns the first numbers of these segments */
export function leaveSegments(messages: readonly PersistedMessage[]): number[] {
  const firsts: number[] = [];
  for (const persisted of messages) {
    const first = persisted.segment?.first;
    if (first !== undefined && firsts.at(-1) !== first) firsts.push(first);
    persisted.segment = undefined;
  }
  return firsts;
}

/** Get the number of the first message of a segment from its key. */
export function segmentFirst(key: Buffer): number {
  return key.readUIntBE(7, 6);
}
