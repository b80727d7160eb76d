import { SeqSet } from '../../base/collections/seq-set.ts';
import type { PendingFeed } from '../../retained/retained-feed.ts';
import { Kind } from '../../store/keys.ts';
import { type Draft, RecordReader } from '../../store/record.ts';
import type { Entry } from '../../store/store.ts';

/** The persisted state of the message flow of a session. */
export interface FlowRecord {
  /** Number of the next message. */
  readonly next: number;
  /** First number of the oldest segment that is still needed. */
  readonly head: number;
  /** Number of messages that are not done. */
  readonly count: number;
  /** Bytes of these messages. */
  readonly bytes: number;
  /** Number of QoS 0 messages among them. */
  readonly qos0Count: number;
  /** Numbers of messages that are done. */
  readonly done: SeqSet;
  /** The packet ids in flight, and those that wait for PUBREL; see `encodeInFlight`. */
  readonly inFlight: Buffer;
  /** Subscriptions for which some of their retained messages have been sent, but not all. */
  readonly pendingFeeds: readonly PendingFeed[];
  /** See `SessionLog.firstTo`. */
  readonly firstTo: number;
}

/**
 * Write the flow record of a session. The numbers come first, because the broker needs them at its start; the rest is needed when the
 * client returns.
 * @returns the size of the record in bytes
 */
export function writeFlow(
  draft: Draft,
  session: number,
  { next, head, count, bytes, qos0Count, done, inFlight, pendingFeeds, firstTo }: FlowRecord
): number {
  draft.key(Kind.flow).u48(session).value();
  draft.varint(next).varint(head).varint(count).varint(bytes).varint(qos0Count);
  draft.varint(done.low).varint(done.ranges);
  let last = done.low;
  done.forEach((from, to) => {
    draft.varint(from - last).varint(to - from);
    last = to;
  });
  draft.bytes(inFlight);
  const hasFirst = firstTo > done.low;
  if (pendingFeeds.length > 0 || hasFirst) draft.varint(pendingFeeds.length);
  for (const { filter, from, ahead } of pendingFeeds) {
    draft.text(filter).varint(from).varint(ahead.length);
    for (const seq of ahead) draft.varint(seq);
  }
  if (hasFirst) draft.varint(firstTo); // at the end, which 0.2 ignores
  const { size } = draft;
  draft.put();
  return size;
}

/** Read the flow record of a session. @throws RecordError if the record is damaged or too new */
export function readFlow({ key, value }: Entry): FlowRecord & { readonly session: number } {
  const reader = new RecordReader(key, value);
  const next = reader.varint();
  const head = reader.varint();
  const count = reader.varint();
  const bytes = reader.varint();
  const qos0Count = reader.varint();
  const done = new SeqSet(reader.varint());
  let last = done.low;
  for (let left = reader.varint(); left > 0; left--) {
    const from = last + reader.varint();
    last = from + reader.varint();
    done.addRange(from, last);
  }
  const inFlight = reader.bytes();
  const pendingFeeds: PendingFeed[] = [];
  for (let left = reader.isAtEnd ? 0 : reader.varint(); left > 0; left--) {
    const [filter, from, aheads] = [reader.text(), reader.varint(), reader.varint()];
    pendingFeeds.push({ filter, from, ahead: Array.from({ length: aheads }, () => reader.varint()) });
  }
  const firstTo = reader.isAtEnd ? 0 : reader.varint();
  const session = key.readUIntBE(1, 6);
  return { session, next, head, count, bytes, qos0Count, done, inFlight, pendingFeeds, firstTo };
}
