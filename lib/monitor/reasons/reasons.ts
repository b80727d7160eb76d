import { unknownName } from '../../base/fields.ts';
import type { Page } from '../../routing/directory.ts';
import { type PageQuery, readQuery } from '../../routing/directory-queries.ts';
import { matches } from '../../topics/topic.ts';
import { cut } from '../cut-text.ts';
import type { KeptRecord, ReasonRecord } from './kept-record.ts';
import type { ReasonLog } from './reason-log.ts';
import { isAbout, recordPage } from './record-page.ts';
import { RECORDED, type RecordedCode } from './recorded.ts';

/** A query for records. */
export interface ReasonQuery extends PageQuery {
  /** Client id of the client, of the receiver or the publisher of a message. */
  readonly clientId?: string | undefined;
  /** A topic filter that matches the topic. */
  readonly filter?: string | undefined;
  /** Id of a rule. */
  readonly rule?: string | undefined;
  /** IP address of clients that could not connect. */
  readonly address?: string | undefined;
  /** Only records with this code. Default: all. */
  readonly code?: RecordedCode | undefined;
}

const CONDITIONS = {
  clientId: isAbout,
  filter: ({ topic }: ReasonRecord, wanted: string) => topic !== undefined && matches(wanted, topic),
  rule: ({ rule }: ReasonRecord, wanted: string) => rule === cut(wanted),
  address: ({ address }: ReasonRecord, wanted: string) => address === wanted,
  code: ({ code }: ReasonRecord, wanted: RecordedCode) => code === wanted
};

/**
 * The last events of clients (connections, subscriptions, refusals) and rules, and dropped messages: `broker.monitor.reasons`. They are in
 * memory: 32 for each of the last 10,000 clients, 8 for each of 10,000 topics, 16 for each rule, and together at most as many as the option
 * `reasons` allows.
 */
export class Reasons {
  readonly #node: string;
  readonly #log: ReasonLog;

  /** @internal */
  constructor(node: string, log: ReasonLog) {
    this.#node = node;
    this.#log = log;
  }

  /** Number of records. */
  get size(): number {
    return this.#log.size;
  }

  /** Estimated memory, in bytes. */
  get bytes(): number {
    return this.#log.bytes;
  }

  /**
   * List the records, the latest first.
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, CURSOR_INVALID, TOPIC_FILTER_INVALID
   */
  list(query: ReasonQuery = {}): Page<ReasonRecord> {
    const request = readQuery<KeptRecord, ReasonQuery>(query, CONDITIONS);
    const { code, clientId: client, rule, address } = query;
    if (code !== undefined && !Object.hasOwn(RECORDED, code))
      throw unknownName('OPTION_INVALID', 'code', code, Object.keys(RECORDED));
    const keys = client === undefined ? (rule === undefined ? { address } : { rule }) : { client };
    const list = { node: this.#node, count: this.size };
    return recordPage(this.#log.records(keys), request, list, (record) => record.shown());
  }
}
