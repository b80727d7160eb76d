import { unknownName } from '../base/fields.ts';
import { DROP_REASONS, type DropReason } from '../events/reasons.ts';
import type { QoS } from '../packets/types.ts';
import type { Page } from '../routing/directory.ts';
import { type PageQuery, readQuery } from '../routing/directory-queries.ts';
import { matches } from '../topics/topic.ts';
import { type DropOfLog, isDrop, type ReasonLog } from './reasons/reason-log.ts';
import { isAbout, recordPage } from './reasons/record-page.ts';

/** A message that was dropped, or several equal ones. */
export interface DropRecord {
  /** Number of the record; the latest one has the highest. A record gets a new one when an equal drop is counted. */
  readonly number: number;
  /** Time of the last drop, in milliseconds since 1970. */
  readonly at: number;
  /** The topic; if it is longer than 256 characters, its beginning. */
  readonly topic: string;
  /** The QoS of the message. */
  readonly qos: QoS;
  /** Client id of the receiver that does not get the message; undefined: no receiver, or no member of a share group, gets it. It is cut like the topic. */
  readonly clientId: string | undefined;
  /** Client id of the publisher; '' for messages of the app. It is cut like the topic. */
  readonly publisher: string;
  /** The reason, a key of `DROP_REASONS`. */
  readonly reason: DropReason;
  /** Number of messages: drops that differ only in their time are one record. */
  readonly count: number;
}

/** A query for dropped messages. */
export interface DropQuery extends PageQuery {
  /** Client id of the receiver or the publisher. */
  readonly clientId?: string;
  /** A topic filter that matches the topic. */
  readonly filter?: string;
  /** Only drops for this reason. Default: all. */
  readonly reason?: DropReason;
}

const CONDITIONS = {
  clientId: isAbout,
  filter: ({ topic = '' }: DropOfLog, wanted: string) => matches(wanted, topic),
  reason: ({ row }: DropOfLog, wanted: DropReason) => row.drop === wanted
};

/**
 * The last drops: `broker.monitor.drops`, a view of the records of which `broker.monitor.why` answers. There are none with the option
 * `reasons: false`.
 */
export class Drops {
  readonly #node: string;
  readonly #log: ReasonLog;

  /** @internal */
  constructor(node: string, log: ReasonLog) {
    this.#node = node;
    this.#log = log;
  }

  /** Number of records that are kept. */
  get size(): number {
    return this.#log.drops;
  }

  /**
   * List the drops, the newest first.
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, CURSOR_INVALID, TOPIC_FILTER_INVALID
   */
  list(query: DropQuery = {}): Page<DropRecord> {
    const request = readQuery<DropOfLog, DropQuery>(query, CONDITIONS);
    const { reason } = query;
    if (reason !== undefined && !Object.hasOwn(DROP_REASONS, reason))
      throw unknownName('OPTION_INVALID', 'reason', reason, Object.keys(DROP_REASONS));
    return recordPage(this.#records(), request, { node: this.#node, count: this.size }, shownAsDrop);
  }

  /** Discard all drops. */
  clear(): void {
    this.#log.clearDrops();
  }

  *#records(): IterableIterator<DropOfLog> {
    for (const record of this.#log.records()) if (isDrop(record)) yield record;
  }
}

function shownAsDrop({ number, at, topic = '', qos, clientId, publisher = '', row, count }: DropOfLog): DropRecord {
  return { number, at, topic, qos, clientId, publisher, reason: row.drop, count };
}
