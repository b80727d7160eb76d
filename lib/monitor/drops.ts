import { unknownName } from '../base/fields.ts';
import type { TimeReading } from '../base/time-reading.ts';
import { DROP_REASONS, type DropReason } from '../events/reasons.ts';
import type { QoS } from '../packets/types.ts';
import type { Page } from '../routing/directory.ts';
import { invalidCursor, type PageQuery, readQuery } from '../routing/directory-queries.ts';
import { matches } from '../topics/topic.ts';
import { cut } from './cut-text.ts';

/** Maximum number of drops that are kept. */
const MAX_DROPS = 1_000;

/** A message that was dropped, or several equal ones in a row. */
export interface DropRecord {
  /** Number of the record; the first one has 1. */
  readonly number: number;
  /** Time of the last drop, in milliseconds since 1970. */
  readonly at: number;
  /** The topic; if it is longer than 256 characters, its beginning. */
  readonly topic: string;
  readonly qos: QoS;
  /** Client id of the receiver that does not get the message; undefined: no receiver gets it. It is cut like the topic. */
  readonly clientId: string | undefined;
  /** Client id of the publisher; '' for messages of the app. It is cut like the topic. */
  readonly publisher: string;
  readonly reason: DropReason;
  /** Number of messages: consecutive drops that differ only in their time are one record. */
  readonly count: number;
}

/** A query for dropped messages. */
export interface DropQuery extends PageQuery {
  /** Client id of the receiver or the publisher. */
  readonly clientId?: string;
  /** A topic filter that matches the topic. */
  readonly filter?: string;
  readonly reason?: DropReason;
}

type Slot = { -readonly [N in keyof DropRecord]: DropRecord[N] };

const CONDITIONS = {
  clientId: ({ clientId, publisher }: DropRecord, wanted: string) =>
    clientId === cut(wanted) || publisher === cut(wanted),
  filter: ({ topic }: DropRecord, wanted: string) => matches(wanted, topic),
  reason: ({ reason }: DropRecord, wanted: DropReason) => reason === wanted
};

/**
 * The last 1,000 drops: `broker.monitor.drops`. They are kept only in memory, and take at most 2 MB.
 *
 * The slots of the records are created at the first drop and reused, so a flood of drops allocates nothing.
 */
export class Drops {
  readonly #node: string;
  readonly #time: TimeReading;
  /** The record with the number n is at n % MAX_DROPS. */
  readonly #slots: Slot[] = [];
  #last: Slot | undefined = undefined;
  /** Number of the last record. */
  #number = 0;
  /** Number of the last record that was discarded. */
  #clearedTo = 0;

  /** @internal */
  constructor(node: string, time: TimeReading) {
    this.#node = node;
    this.#time = time;
  }

  /** Number of records that are kept. */
  get size(): number {
    return this.#number - this.#oldest + 1;
  }

  /** Number of the oldest record that is kept. */
  get #oldest(): number {
    return Math.max(this.#clearedTo, this.#number - MAX_DROPS) + 1;
  }

  /**
   * List the drops, the newest first.
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, CURSOR_INVALID, TOPIC_FILTER_INVALID
   */
  list(query: DropQuery = {}): Page<DropRecord> {
    const { cursor, limit, skip, isWanted } = readQuery<DropRecord, DropQuery>(query, CONDITIONS);
    const { reason } = query;
    if (reason !== undefined && !Object.hasOwn(DROP_REASONS, reason))
      throw unknownName('OPTION_INVALID', 'reason', reason, Object.keys(DROP_REASONS));
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw invalidCursor(cursor);
    const page = { node: this.#node, count: this.size };
    const entries: DropRecord[] = [];
    let left = skip;
    const first = cursor === undefined ? this.#number : Math.min(this.#number, Number(cursor) - 1);
    for (let number = first; number >= this.#oldest; number--) {
      const slot = this.#slots[number % MAX_DROPS];
      if (!isWanted(slot) || left-- > 0) continue;
      if (entries.length === limit) return { ...page, entries, cursor: String(entries[limit - 1].number) };
      entries.push({ ...slot });
    }
    return { ...page, entries, cursor: undefined };
  }

  /** Discard all drops. */
  clear(): void {
    this.#clearedTo = this.#number;
    this.#slots.length = 0;
    this.#last = undefined;
  }

  /** Record a drop. @param receiver client id; undefined: no receiver gets the message @internal */
  add(
    topic: string,
    qos: QoS,
    publisher: string,
    reason: DropReason,
    receiver: string | undefined,
    count: number
  ): void {
    topic = cut(topic);
    publisher = cut(publisher);
    if (receiver !== undefined) receiver = cut(receiver);
    const last = this.#last;
    if (
      last !== undefined &&
      last.reason === reason &&
      last.topic === topic &&
      last.clientId === receiver &&
      last.publisher === publisher &&
      last.qos === qos
    ) {
      last.count += count;
      last.at = this.#time.wallMs;
      return;
    }
    const number = ++this.#number;
    const slot = (this.#last = this.#slots[number % MAX_DROPS] ??= emptySlot());
    slot.number = number;
    slot.at = this.#time.wallMs;
    slot.topic = topic;
    slot.qos = qos;
    slot.clientId = receiver;
    slot.publisher = publisher;
    slot.reason = reason;
    slot.count = count;
  }
}

function emptySlot(): Slot {
  return { number: 0, at: 0, topic: '', qos: 0, clientId: undefined, publisher: '', reason: 'expired', count: 0 };
}
