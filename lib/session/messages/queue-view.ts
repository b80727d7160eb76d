// A list is not a snapshot. After each slice messages may have arrived, been sent, written to a segment, or removed
// from memory because the client has disconnected. A cursor is therefore a place in the order of arrival, not an
// index, and messages of the store are found by number. What waits during the whole listing is listed once.

import { InvalidInput } from '../../base/errors.ts';
import type { Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import { RecordError } from '../../store/record.ts';
import { type PersistedMessage, readSegment, segmentFirst } from '../../store/segment.ts';
import type { Session } from '../session.ts';
import { awaitedIds, forEachInFlight, NOTHING_IN_FLIGHT, numbersIn } from './in-flight-record.ts';
import { Awaiting, UNSENT } from './inflight.ts';
import type { Queued } from './priority-list.ts';
import type { SessionLog } from './session-log.ts';

/** Number of messages in memory that are examined in one slice. Of the store, one segment is read in a slice; it has up to 128 KB. */
const MESSAGES_AT_ONCE = 1_000;
/** Maximum number of segments that are read to find messages in flight, which are among the oldest of a session. */
const MAX_SEGMENTS = 100;

/** A message that waits for a client. */
export interface QueuedMessage {
  /** The message. */
  readonly message: Message;
  /** QoS with which it is to be sent. */
  readonly qos: QoS;
  /** The RETAIN flag with which it is to be sent. */
  readonly retain: boolean;
  /** Subscription identifiers. */
  readonly ids: readonly number[] | undefined;
}

/** A packet id of a message to a client, and the acknowledgement that it waits for. */
export interface InFlightMessage {
  /** The packet id. */
  readonly packetId: number;
  /** The acknowledgement that is awaited. */
  readonly awaits: 'puback' | 'pubrec' | 'pubcomp';
  /** The QoS of the PUBLISH. */
  readonly qos: 1 | 2;
  /** True if the PUBLISH has been sent. */
  readonly isSent: boolean;
  /** undefined: the message is no longer needed, or is only in the store. */
  readonly message: Message | undefined;
}

/** The messages in flight between a session and its client. */
export interface SessionFlights {
  /** Messages to the client, in the order in which they were first sent. */
  readonly inflight: readonly InFlightMessage[];
  /** Packet ids of messages from the client that wait for PUBREL. */
  readonly awaitingRel: readonly number[];
}

/** A part of a list of waiting messages. */
export interface QueuePage {
  /** The messages, in the order of the list. */
  readonly entries: readonly QueuedMessage[];
  /** Cursor of the next page; undefined: this was the last one. */
  readonly cursor: string | undefined;
}

/** Start of a page: after a message that is only in memory (by its sequence number), or after one of the store (by its number). */
type Place =
  | { readonly kind: 'memory'; readonly after: number }
  | {
      readonly kind: 'store';
      readonly after: number;
      /** No segment before this number is needed. */
      readonly from: number;
    };

/** A waiting message, and its position. */
interface Placed {
  readonly queued: Queued | PersistedMessage;
  /** Number of the message in the store, or its sequence number if it is only in memory. */
  readonly at: number;
  /** No segment before this number is needed for the following messages; undefined: the message is only in memory. */
  readonly from: number | undefined;
}

const AWAITED = { [Awaiting.puback]: 'puback', [Awaiting.pubrec]: 'pubrec', [Awaiting.pubcomp]: 'pubcomp' } as const;

/**
 * A page of the waiting messages of a client, in order of arrival; if the session is persisted, those only in memory come first. Nothing is
 * changed: messages of the store are read and not kept.
 * @throws InvalidInput CURSOR_INVALID; the error of the store
 */
export async function queuePage(
  session: Session,
  {
    limit,
    cursor,
    skip = 0
  }: { readonly limit: number; readonly cursor?: string | undefined; readonly skip?: number | undefined }
): Promise<QueuePage> {
  const place = readPlace(cursor);
  const { slices } = session.ports;
  let had = 0;
  await slices.next(had++);
  const entries: QueuedMessage[] = [];
  let left = skip;
  let last: Placed | undefined;
  for await (const slice of slicesAfter(session, place)) {
    const from = Math.min(left, slice.length);
    left -= from;
    for (const placed of slice.slice(from)) {
      if (entries.length === limit) return { entries, cursor: last && cursorOf(last) };
      const { message, qos, retain, subscriptionIds } = placed.queued;
      entries.push({ message, qos, retain, ids: subscriptionIds });
      last = placed;
    }
    await slices.next(had++);
  }
  return { entries, cursor: undefined };
}

/** The messages in flight of a client. */
export function flightsOf({ log, outlet }: Session): SessionFlights {
  if (log?.offline !== undefined) {
    const { record } = log.offline;
    const inflight: InFlightMessage[] = [];
    forEachInFlight(record, (packetId, state, flags) => inflight.push(flight(packetId, state, flags, undefined)));
    return { inflight, awaitingRel: [...awaitedIds(record).values()] };
  }
  const known = outlet.inflight;
  const inflight = (known?.inOrder() ?? []).map((id) => {
    const flags = (known?.flagsOf(id) ?? 0) | (known?.wasSent(id) ? 0 : UNSENT);
    return flight(id, known?.stateOf(id) ?? 0, flags, known?.messageOf(id));
  });
  return { inflight, awaitingRel: [...(known?.awaitingRel?.values() ?? [])] };
}

/**
 * The packet ids in flight to a client, with the messages that are only in the store because the client is away. Nothing is changed. A message
 * stays undefined if it is no longer needed, or was not found in 100 segments of the store.
 * @throws the error of the store
 */
export async function flightsWithMessages(session: Session): Promise<readonly InFlightMessage[]> {
  const { log, ports } = session;
  const { inflight } = flightsOf(session);
  const idOf = new Map<number, number>();
  forEachInFlight(log?.offline?.record ?? NOTHING_IN_FLIGHT, (packetId, state, _flags, seq) => {
    if (state !== Awaiting.pubcomp) idOf.set(seq, packetId);
  });
  if (log === undefined || idOf.size === 0) return inflight;
  const messages = new Map<number | undefined, Message>();
  const take = (stored: readonly PersistedMessage[]) => {
    for (const { seq, message } of stored) if (idOf.has(seq)) messages.set(idOf.get(seq), message);
  };
  let from = 0;
  for (let read = 0; read < MAX_SEGMENTS && messages.size < idOf.size && !log.isEnded; read++) {
    const [entry] = await log.records(from, log.unwritten, 1);
    if (entry === undefined) break;
    ports.time.read();
    take(messagesIn(entry, ports.time));
    from = segmentFirst(entry.key) + 1;
    await ports.slices.next(read);
  }
  take(log.outsideSegments(0));
  return inflight.map((one) => ({ ...one, message: messages.get(one.packetId) }));
}

/** The messages after a position, in slices. The queue may change between them. */
async function* slicesAfter(session: Session, place: Place): AsyncGenerator<readonly Placed[]> {
  if (place.kind === 'memory') {
    for (const slice of inMemory(session, place.after)) {
      const unstored = slice.filter(({ persisted }) => persisted === undefined);
      yield unstored.map((queued) => ({ queued, at: queued.sequence, from: undefined }));
    }
  }
  const { log } = session;
  if (log === undefined || log.isEnded) return;
  yield* inLog(log, place.kind === 'store' ? place : { kind: 'store', after: 0, from: 0 });
}

/** The messages in memory after a sequence number, in order of arrival, in slices. */
function* inMemory({ outlet }: Session, after: number): Generator<readonly Queued[]> {
  for (let last = after; ; ) {
    const found: Queued[] = [];
    for (const list of outlet.queue?.lists(last) ?? []) {
      let left = MESSAGES_AT_ONCE;
      for (const queued of list) {
        if (left-- === 0) break;
        found.push(queued);
      }
    }
    const slice = found.sort((a, b) => a.sequence - b.sequence).slice(0, MESSAGES_AT_ONCE);
    if (slice.length > 0) yield slice;
    if (slice.length < MESSAGES_AT_ONCE) return;
    last = slice[slice.length - 1].sequence;
  }
}

/** The messages that the store has, or will have, in order: those in memory, those in segments, and those in no segment yet. */
async function* inLog(
  log: SessionLog,
  { after, from: least }: Place & { readonly kind: 'store' }
): AsyncGenerator<readonly Placed[]> {
  const isNext = (persisted: PersistedMessage) =>
    !persisted.isDone && persisted.seq > after && !log.done.has(persisted.seq);
  const placed = (queued: PersistedMessage, from: number): Placed => ({ queued, at: queued.seq, from });
  const { found, pageFrom } = await collected(log);
  for (let at = 0; at < found.length; at += MESSAGES_AT_ONCE) {
    const some = found.slice(at, at + MESSAGES_AT_ONCE);
    yield some.filter((one) => one.seq < pageFrom && isNext(one)).map((one) => placed(one, least));
  }
  const inFlight = numbersIn(log.offline);
  const isWaiting = (persisted: PersistedMessage) => isNext(persisted) && !inFlight.has(persisted.seq);
  const { time } = log.session.ports;
  let from = Math.max(least, pageFrom);
  while (from < log.unwritten && !log.isEnded) {
    const { unwritten } = log;
    const [entry] = await log.records(from, unwritten, 1);
    time.read();
    if (entry === undefined) {
      from = unwritten; // more messages may have got into segments in the meantime
      continue;
    }
    const first = segmentFirst(entry.key);
    const read = messagesIn(entry, time);
    yield read.filter(isWaiting).map((one) => placed(one, first));
    from = first + 1;
  }
  const { unwritten } = log;
  yield log
    .outsideSegments(from)
    .filter(isWaiting)
    .map((one) => placed(one, unwritten));
}

/**
 * The persisted messages that are in memory, in the order of their numbers, and the number below which all messages were in memory or done.
 */
async function collected(log: SessionLog) {
  for (;;) {
    const { pageFrom, session } = log;
    const found: PersistedMessage[] = [];
    for (const slice of inMemory(session, -1)) {
      for (const { persisted } of slice) if (persisted !== undefined) found.push(persisted);
      if (slice.length === MESSAGES_AT_ONCE) await session.ports.slices.next();
    }
    found.sort((a, b) => a.seq - b.seq);
    // if the client has disconnected in the meantime, messages have been removed from memory
    if (log.pageFrom >= pageFrom) return { found, pageFrom };
  }
}

function flight(packetId: number, state: number, flags: number, message: Message | undefined): InFlightMessage {
  const awaits = AWAITED[state as keyof typeof AWAITED];
  const qos = awaits === 'puback' ? 1 : 2;
  return { packetId, awaits, qos, isSent: (flags & UNSENT) === 0, message };
}

/** The messages of a segment; none if it is damaged, which is reported when the client returns. */
function messagesIn(
  entry: Parameters<typeof readSegment>[0],
  now: Parameters<typeof readSegment>[1]
): PersistedMessage[] {
  try {
    return readSegment(entry, now);
  } catch (error) {
    if (error instanceof RecordError || error instanceof RangeError) return [];
    throw error;
  }
}

function cursorOf({ at, from }: Placed): string {
  return from === undefined ? `m${at}` : `s${from}.${at}`;
}

/** @throws InvalidInput CURSOR_INVALID */
function readPlace(cursor: string | undefined): Place {
  if (cursor === undefined) return { kind: 'memory', after: -1 };
  const parts = /^(?:m(\d{1,16})|s(\d{1,15})\.(\d{1,15}))$/.exec(cursor);
  if (parts === null) throw new InvalidInput('CURSOR_INVALID', 'cursor', 'the cursor of a page of this list', cursor);
  const [, memory, from, after] = parts;
  if (memory !== undefined) return { kind: 'memory', after: Number(memory) };
  return { kind: 'store', after: Number(after), from: Number(from) };
}
