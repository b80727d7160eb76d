import type { Message, Publisher } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import { Kind } from '../store/keys.ts';
import { type Now, readMessage, writeMessage } from '../store/message-record.ts';
import { type Draft, RecordReader } from '../store/record.ts';
import type { Entry } from '../store/store.ts';

/** A record of a segment ends at about this size. */
const SEGMENT_BYTES = 131_072;
const RETAIN = 4;
const HAS_IDS = 8;

/** Messages of a session that are kept in one record, as far as they are in memory. */
export class Segment {
  /** Number of its first message: its key. */
  readonly first: number;
  /** Messages that are not done. */
  unfinished = 0;
  /** The commit that holds it is kept. */
  isCommitted: boolean;

  constructor(first: number, isCommitted: boolean) {
    this.first = first;
    this.isCommitted = isCommitted;
  }
}

/** A message of one session that is kept in the store, or is about to be. */
export class PersistedMessage {
  /** Not to be asked for when it is done: nothing holds on to it then. */
  message: Message;
  readonly qos: QoS;
  readonly retain: boolean;
  readonly ids: readonly number[] | undefined;
  /** Messages of a session are numbered in the order of their arrival. */
  readonly seq: number;
  /** undefined: it is in none, or in one of a journal. */
  segment: Segment | undefined = undefined;
  /** The store has it, or is about to. */
  isWritten = false;
  isDone = false;
  /** It has gone out: only the client can end it. */
  isSent = false;

  constructor(message: Message, qos: QoS, retain: boolean, ids: readonly number[] | undefined, seq: number) {
    this.message = message;
    this.qos = qos;
    this.retain = retain;
    this.ids = ids;
    this.seq = seq;
  }

  /** It is not sent again, and not written. */
  finish(): void {
    this.isDone = true;
    this.message = undefined as unknown as Message;
  }
}

/**
 * Write messages in as many records as they need.
 * @param messages in the order of their numbers, none of them done
 * @param isFold these are the segments they are kept in from now on; otherwise it is a journal that they go to
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
      const { message, ids } = persisted;
      draft
        .u8(persisted.qos | (persisted.retain ? RETAIN : 0) | (ids === undefined ? 0 : HAS_IDS))
        .varint(persisted.seq - seq);
      seq = persisted.seq;
      if (ids !== undefined) {
        draft.varint(ids.length);
        for (const id of ids) draft.varint(id);
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

/** Read the messages of a record. @throws RecordError */
export function readSegment({ key, value }: Entry, now: Now): PersistedMessage[] {
  const reader = new RecordReader(key, value);
  let seq = segmentFirst(key);
  const messages: PersistedMessage[] = [];
  let previous: Publisher | undefined;
  while (!reader.isAtEnd) {
    const flags = reader.u8();
    seq += reader.varint();
    let ids: number[] | undefined;
    if ((flags & HAS_IDS) !== 0) {
      ids = [];
      for (let left = reader.varint(); left > 0; left--) ids.push(reader.varint());
    }
    const message = readMessage(reader, previous, now);
    if (message.origin !== undefined) previous = message.origin;
    const persisted = new PersistedMessage(message, (flags & 3) as QoS, (flags & RETAIN) !== 0, ids, seq);
    persisted.isWritten = true;
    messages.push(persisted);
  }
  return messages;
}

/** Number of the first message of a segment, from its key. */
export function segmentFirst(key: Buffer): number {
  return key.readUIntBE(7, 6);
}
