import type { QoS } from '../../packets/types.ts';
import { Link } from './chain.ts';
import type { RecordedCode, RecordedEntry } from './recorded.ts';

/** Something that happened to a client, message, subscription or rule, or several equal ones. */
export interface ReasonRecord {
  /** Number of the record. It is given again when an equal one is counted: the highest number is the latest record. */
  readonly number: number;
  /** Time of the first one, in milliseconds since 1970; of a connection that was lost, of the last packet of its client. */
  readonly since: number;
  /** Time of the last one, in milliseconds since 1970. */
  readonly at: number;
  /** The code of the record. */
  readonly code: RecordedCode;
  /** Number of times: records that differ only in their time are one. */
  readonly count: number;
  /** The QoS of the message; 0 for records that are not about a message. */
  readonly qos: QoS;
  /** Client id of the receiver of a message, or of the client that connects or subscribes; cut at 256 characters, as all strings. */
  readonly clientId: string | undefined;
  /** Client id of the publisher; '' for messages of the app. */
  readonly publisher: string | undefined;
  /** Topic of the message, or filter of the subscription. */
  readonly topic: string | undefined;
  /** Id of the rule. */
  readonly rule: string | undefined;
  /** IP address of a client whose CONNECT was refused, as far as it is known. */
  readonly address: string | undefined;
  /** Details for people, such as the access rule that decided. */
  readonly detail: string | undefined;
}

/** The subject of a record. */
export interface ReasonSubject {
  readonly clientId?: string | undefined;
  readonly publisher?: string | undefined;
  readonly topic?: string | undefined;
  readonly rule?: string | undefined;
  readonly qos?: QoS | undefined;
  /** The IP address of a refused client. The detail must contain it, because records are not compared by it. */
  readonly address?: string | undefined;
  readonly detail?: string | undefined;
  /** Default 1. */
  readonly count?: number | undefined;
  /** When it may have begun, in milliseconds since 1970; default: now. */
  readonly since?: number | undefined;
}

/** Estimated memory of a record without its strings, in bytes: the object, and its places in the lists of its keys. */
const RECORD_BYTES = 272;
const BYTES_PER_CHARACTER = 2;

/** A record in memory, which is used again for another one when it is no longer held. */
export class KeptRecord extends Link<KeptRecord> {
  // the fields that a repeated drop reads and writes are beside each other
  topic: string | undefined = undefined;
  publisher: string | undefined = undefined;
  clientId: string | undefined = undefined;
  code: RecordedCode = 'connected';
  qos: QoS = 0;
  detail: string | undefined = undefined;
  /** Number of lists that contain the record. */
  holders = 0;
  count = 0;
  at = 0;
  /** True if its place in the order may be wrong. */
  isRepeated = false;
  number = 0;
  since = 0;
  row: RecordedEntry = NOTHING;
  rule: string | undefined = undefined;
  address: string | undefined = undefined;
  /** Of a lost retained message, when the topic had one again, in milliseconds since 1970; `Infinity`: it has none. */
  endedAt = Infinity;

  /** Estimated memory, in bytes. Strings that name a key are counted with the key. */
  get bytes(): number {
    const own = (this.detail?.length ?? 0) + (this.row.isFilter === true ? (this.topic?.length ?? 0) : 0);
    return RECORD_BYTES + BYTES_PER_CHARACTER * own;
  }

  /** Tell whether another one differs from this one only in its time. */
  equals(
    code: RecordedCode,
    topic: string | undefined,
    qos: QoS,
    publisher: string | undefined,
    clientId: string | undefined,
    rule: string | undefined,
    detail: string | undefined
  ): boolean {
    return (
      this.holders > 0 &&
      this.code === code &&
      this.topic === topic &&
      this.clientId === clientId &&
      this.publisher === publisher &&
      this.qos === qos &&
      this.rule === rule &&
      this.detail === detail
    );
  }

  fill(
    code: RecordedCode,
    row: RecordedEntry,
    topic: string | undefined,
    qos: QoS,
    publisher: string | undefined,
    clientId: string | undefined,
    rule: string | undefined,
    detail: string | undefined,
    address: string | undefined
  ): void {
    this.code = code;
    this.row = row;
    this.topic = topic;
    this.qos = qos;
    this.publisher = publisher;
    this.clientId = clientId;
    this.rule = rule;
    this.detail = detail;
    this.address = address;
    this.count = 0;
    this.holders = 0;
    this.endedAt = Infinity;
  }

  /** Begin to count. @param isLate true if later records may be in the log already */
  begin(number: number, count: number, since: number, at: number, isLate: boolean): void {
    this.since = Math.round(since); // the wall-clock time has fractions, which interfaces do not show
    this.count = count;
    this.at = Math.round(at);
    this.number = number;
    this.isRepeated = isLate;
  }

  /** Count some more. */
  repeat(count: number, at: number): void {
    this.count += count;
    this.at = Math.round(at);
    this.endedAt = Infinity;
    this.isRepeated = true;
  }

  /** Note that what it is about has ended. */
  end(at: number): void {
    this.endedAt = Math.round(at);
  }

  renumber(number: number): void {
    this.number = number;
    this.isRepeated = false;
  }

  hold(change: 1 | -1): void {
    this.holders += change;
  }

  /** A copy for a caller. */
  shown(): ReasonRecord {
    const { number, since, at, code, count, qos, clientId, publisher, topic, rule, address, detail } = this;
    return { number, since, at, code, count, qos, clientId, publisher, topic, rule, address, detail };
  }
}

const NOTHING: RecordedEntry = { about: '' };

/**
 * Note that no list contains a record. It equals no other one until it is filled again, and keeps no strings, because sessions and routes may
 * still refer to it.
 */
export function free(record: KeptRecord): void {
  record.fill('connected', NOTHING, undefined, 0, undefined, undefined, undefined, undefined, undefined);
}
