// Rows are made in the handling of a packet, at most 500 a second, so their cost is that of a tail. Measured (Node 20, rows
// of 33 bytes of JSON, CPU for a row with its way to the reader, in excess of a message on the fast path): 5.3 us with columns by name, the id of
// the message and a Buffer of the payload; 0.4 us with the columns of a message as one object literal, without id, and
// with the payload as a string.

import { isUtf8 } from '../../base/builtins.ts';
import type { EventName } from '../../events/catalogue.ts';
import type { Message } from '../../packets/message.ts';
import { type RuleReference, ruleBehind } from '../../packets/named-publisher.ts';
import { shownUsername } from '../../records/shown-username.ts';
import { MESSAGE, PUBLISHER } from '../../rules/events/message-columns.ts';
import type { Value } from '../../sql/values.ts';
import { weightOf } from '../../sql/weight.ts';
import type { SeenEvent, TailedEvent } from './tail-columns.ts';

/** Memory of a row without its strings, in bytes. */
const ROW_BYTES = 700;
/** Topic and properties of a message beyond this size: the properties are left out. */
const MAX_HEAD_BYTES = 16_384;
/** Rows are not weighed beyond this; they are discarded. */
const MAX_WEIGHT = 4_194_304;
/** Memory of a byte of the properties of a message in their column: each pair occurs twice, with names. */
const PROPERTY_BYTES = 16;

const LEFT_OUT: ReadonlySet<string> = new Set(['event', 'timestamp', 'id', 'payload', 'headers']);
const ASCII = /^[\0-\x7f]*$/;

/** A row of a tail: a message, or another event. */
export class TailRecord {
  /** Number of the row; the first one of the tail has 1. */
  readonly number: number;
  /** Time of the event, in milliseconds since 1970. */
  readonly at: number;
  /** The event. */
  readonly event: EventName;
  /**
   * The columns of the event as rules have them: `topic`, `clientid`, `qos`, `flags` and so on. Columns that other fields of the row have, the
   * `id` and the `headers` are left out; so are properties (`pub_props`) if topic and properties have more than 16 KB. Absent columns
   * may be undefined.
   */
  readonly columns: Readonly<Record<string, unknown>>;
  /** Size of the whole payload in bytes; undefined if the event is not about a message. */
  readonly payloadBytes: number | undefined;
  /** The rule that has published the message; undefined: a client, the app or the broker has. */
  readonly rule: RuleReference | undefined;
  /** Memory of the row in bytes, by estimate. @internal */
  readonly size: number;
  /** The beginning of the payload with one byte per character: a small buffer would keep a pool of 8 KB in memory. */
  readonly #latin1: string | undefined;

  /** @internal */
  constructor(
    number: number,
    at: number,
    event: EventName,
    columns: Readonly<Record<string, unknown>>,
    columnBytes: number,
    message: Message | undefined,
    maxPayloadBytes: number | undefined
  ) {
    this.number = number;
    this.at = at;
    this.event = event;
    this.columns = columns;
    this.payloadBytes = message && message.bytes - message.payloadAt;
    this.rule = message && ruleBehind(message);
    this.#latin1 = message && maxPayloadBytes !== undefined ? beginningOf(message, maxPayloadBytes) : undefined;
    this.size = ROW_BYTES + columnBytes + (this.#latin1?.length ?? 0);
  }

  /** The beginning of the payload, at most `maxPayloadBytes`; undefined if the event is not about a message, or if payloads are hidden. */
  get payload(): Buffer | undefined {
    return this.#latin1 === undefined ? undefined : Buffer.from(this.#latin1, 'latin1');
  }

  /** The same as text, without an incomplete character at the end; undefined if it is not valid UTF-8, or if there is no payload. */
  get payloadText(): string | undefined {
    const latin1 = this.#latin1;
    if (latin1 === undefined || ASCII.test(latin1)) return latin1;
    const bytes = Buffer.from(latin1, 'latin1');
    const isCut = bytes.length < (this.payloadBytes as number);
    for (let end = bytes.length; end >= 0 && end >= bytes.length - (isCut ? 3 : 0); end--)
      if (isUtf8(bytes.subarray(0, end))) return bytes.toString('utf8', 0, end);
    return undefined;
  }
}

/** The row of a published message. */
export function messageRow(
  number: number,
  at: number,
  message: Message,
  node: string,
  maxPayloadBytes: number | undefined
): TailRecord {
  const { topic, qos, payloadAt, propertiesAt, timestamp } = message;
  const of = { message };
  const clientid = PUBLISHER.clientid(of);
  const username = shownUsername(message.username);
  const propertyBytes = payloadAt > MAX_HEAD_BYTES ? 0 : payloadAt - propertiesAt;
  const columns = {
    clientid,
    username,
    peerhost: PUBLISHER.peerhost(of),
    topic,
    qos,
    flags: MESSAGE.flags(of),
    pub_props: propertyBytes === 0 ? undefined : MESSAGE.pub_props(of),
    publish_received_at: timestamp,
    node
  };
  const characters = topic.length + (clientid?.length ?? 0) + (username?.length ?? 0);
  const columnBytes = 2 * characters + PROPERTY_BYTES * propertyBytes;
  return new TailRecord(number, at, 'message.publish', columns, columnBytes, message, maxPayloadBytes);
}

/** The row of another event. */
export function eventRow(
  number: number,
  { source, names }: TailedEvent,
  event: SeenEvent,
  maxPayloadBytes: number | undefined
): TailRecord {
  const { message } = event;
  const columns: Record<string, Value> = {};
  for (const name of names) {
    if (LEFT_OUT.has(name)) continue;
    if (name === 'pub_props' && message !== undefined && message.payloadAt > MAX_HEAD_BYTES) continue;
    columns[name] = event.column(name);
  }
  const columnBytes = 2 * weightOf(columns, MAX_WEIGHT);
  return new TailRecord(number, event.timestamp, source, columns, columnBytes, message, maxPayloadBytes);
}

function beginningOf(message: Message, most: number): string {
  const { buf, start, end } = message.frame();
  const from = start + message.payloadAt;
  return buf.toString('latin1', from, Math.min(end, from + most));
}
