import { InvalidInput } from '../base/errors.ts';
import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import { Kind, numberKey } from '../store/keys.ts';
import { RecordError } from '../store/record.ts';
import type { Queued } from './backlog.ts';
import { awaitedIds, forEachInFlight } from './in-flight-record.ts';
import { Awaiting, UNSENT } from './inflight.ts';
import type { SessionLog } from './log.ts';
import { type PersistedMessage, readSegment, segmentFirst } from './segment.ts';
import type { Session } from './session.ts';

/** Segments of a read; each has up to 128 KB. */
const SEGMENTS_AT_ONCE = 2;
/** Messages that are passed over at once. */
const SKIPPED_AT_ONCE = 500;

/** A message that waits for a client. */
export interface QueuedMessage {
  readonly message: Message;
  /** QoS with which it is to be sent. */
  readonly qos: QoS;
  /** The RETAIN flag with which it is to be sent. */
  readonly retain: boolean;
  /** Subscription identifiers. */
  readonly ids: readonly number[] | undefined;
}

/** A packet id of a message to a client, and what it waits for. */
export interface InFlightMessage {
  readonly packetId: number;
  /** The acknowledgement that is awaited. */
  readonly awaits: 'puback' | 'pubrec' | 'pubcomp';
  readonly qos: 1 | 2;
  /** Whether the PUBLISH has been sent. */
  readonly isSent: boolean;
  /** undefined: the message is not needed any more, or is in the store alone. */
  readonly message: Message | undefined;
}

/** What is on its way between a session and its client. */
export interface SessionFlights {
  /** Messages to the client, in the order in which they were first sent. */
  readonly inflight: readonly InFlightMessage[];
  /** Packet ids of messages from the client that wait for PUBREL. */
  readonly awaitingRel: readonly number[];
}

/** A part of a list of messages that wait. */
export interface QueuePage {
  readonly entries: readonly QueuedMessage[];
  /** Pass it as `cursor` for the next page; undefined: this was the last one. */
  readonly cursor: string | undefined;
}

/** Where a page begins: after a message that is in memory alone (by its place), or after one of the store (by its number). */
type Place =
  | { readonly kind: 'memory'; readonly after: number }
  | {
      readonly kind: 'store';
      readonly after: number /** No segment before this number is needed. */;
      readonly from: number;
    };

const AWAITED = { [Awaiting.puback]: 'puback', [Awaiting.pubrec]: 'pubrec', [Awaiting.pubcomp]: 'pubcomp' } as const;

/** Lists what waits for a client, and what is in flight, without changing anything: messages of the store are read and not kept. */
export class QueueView {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * A page of the messages that wait, in order of arrival; of a session that is persisted, those in memory alone come first.
   * @throws InvalidInput CURSOR_INVALID; the error of the store
   */
  async page(limit: number, cursor?: string, skip = 0): Promise<QueuePage> {
    let next = cursor;
    for (let left = skip; left > 0; ) {
      const page = await this.#read(readPlace(next), Math.min(left, SKIPPED_AT_ONCE));
      left -= page.entries.length;
      next = page.cursor;
      if (next === undefined) return { entries: [], cursor: undefined };
    }
    return this.#read(readPlace(next), limit);
  }

  async #read(place: Place, limit: number): Promise<QueuePage> {
    const entries: QueuedMessage[] = [];
    let last: string | undefined;
    if (place.kind === 'memory') {
      for (const queued of this.#inMemory(
        limit + 1,
        ({ persisted, sequence }) => persisted === undefined && sequence > place.after
      )) {
        if (entries.length === limit) return { entries, cursor: last };
        entries.push(queued);
        last = `m${queued.sequence}`;
      }
    }
    const { log } = this.#session;
    if (log === undefined || log.messages.isEnded) return { entries, cursor: undefined };
    const stored = place.kind === 'store' ? place : { kind: 'store' as const, after: 0, from: 0 };
    for await (const { persisted, from } of this.#persisted(log, stored, limit + 1)) {
      if (entries.length === limit) return { entries, cursor: last };
      const { message, qos, retain, ids } = persisted;
      entries.push({ message, qos, retain, ids });
      last = `s${from}.${persisted.seq}`;
    }
    return { entries, cursor: undefined };
  }

  /** The oldest messages of the backlog for which a condition holds. */
  #inMemory(most: number, isWanted: (queued: Queued) => boolean): Queued[] {
    const found: Queued[] = [];
    for (const list of this.#session.delivery.waiting?.backlog?.lists() ?? []) {
      let left = most;
      for (const queued of list) {
        if (left === 0) break;
        if (!isWanted(queued)) continue;
        found.push(queued);
        left--;
      }
    }
    return found.sort((a, b) => a.sequence - b.sequence).slice(0, most);
  }

  /** The messages that the store has, or will have, in order: those in memory, those in segments, and those in no segment yet. */
  async *#persisted(
    log: SessionLog,
    { after, from: least }: Place & { readonly kind: 'store' },
    most: number
  ): AsyncGenerator<{ readonly persisted: PersistedMessage; readonly from: number }> {
    const { messages } = log;
    const { pageFrom } = messages;
    const isNext = (persisted: PersistedMessage | undefined) =>
      persisted !== undefined && !persisted.isDone && persisted.seq > after;
    const inMemory = this.#inMemory(most, ({ persisted }) => isNext(persisted));
    const inOrder = inMemory.map(({ persisted }) => persisted as PersistedMessage).sort((a, b) => a.seq - b.seq);
    for (const persisted of inOrder)
      if (persisted.seq < pageFrom && isNext(persisted)) yield { persisted, from: least };
    const inFlight = new Set<number>();
    if (log.offline !== undefined) forEachInFlight(log.offline.record, (_id, _state, _flags, seq) => inFlight.add(seq));
    const isWaiting = (persisted: PersistedMessage) =>
      isNext(persisted) && !inFlight.has(persisted.seq) && !messages.done.has(persisted.seq);
    let from = Math.max(least, pageFrom);
    while (from < messages.unwritten) {
      const { unwritten } = messages;
      const { ledger, number, session } = log;
      const read = await ledger.read(
        numberKey(Kind.segment, number, from),
        numberKey(Kind.segment, number, unwritten),
        SEGMENTS_AT_ONCE
      );
      session.ports.time.read();
      for (const entry of read) {
        const first = segmentFirst(entry.key);
        for (const persisted of messagesIn(entry, session.ports.time))
          if (isWaiting(persisted)) yield { persisted, from: first };
        from = first + 1;
      }
      if (read.length < SEGMENTS_AT_ONCE) from = unwritten;
    }
    const { unwritten } = messages;
    for (const persisted of messages.outsideSegments(from))
      if (isWaiting(persisted)) yield { persisted, from: unwritten };
  }

  /** What is in flight. */
  flights(): SessionFlights {
    const { log, delivery, inbound } = this.#session;
    if (log?.offline !== undefined) {
      const { record } = log.offline;
      const inflight: InFlightMessage[] = [];
      forEachInFlight(record, (packetId, state, flags) => inflight.push(flight(packetId, state, flags, undefined)));
      return { inflight, awaitingRel: [...awaitedIds(record).values()] };
    }
    const known = delivery.flows.inflight;
    const inflight = (known?.inOrder() ?? []).map((id) => {
      const flags = (known?.flagsOf(id) ?? 0) | (known?.wasSent(id) ? 0 : UNSENT);
      return flight(id, known?.stateOf(id) ?? 0, flags, known?.messageOf(id));
    });
    return { inflight, awaitingRel: [...(inbound?.awaitingRel?.values() ?? [])] };
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

/** @throws InvalidInput CURSOR_INVALID */
function readPlace(cursor: string | undefined): Place {
  if (cursor === undefined) return { kind: 'memory', after: -1 };
  const parts = /^(?:m(\d{1,16})|s(\d{1,15})\.(\d{1,15}))$/.exec(cursor);
  if (parts === null) throw new InvalidInput('CURSOR_INVALID', 'cursor', 'the cursor of a page of this list', cursor);
  const [, memory, from, after] = parts;
  if (memory !== undefined) return { kind: 'memory', after: Number(memory) };
  return { kind: 'store', after: Number(after), from: Number(from) };
}
