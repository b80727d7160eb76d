import type { TSchema } from 'typebox';
import { dateTimeText, type ListenerAddress } from '../../lib/adapter.ts';
import type { ClientRecord, SessionRecord, SubscriptionRecord } from '../../lib/index.ts';
import { componentOf, flag, integer, optional, text } from '../rest/kit/index.ts';

/** The maximum Session Expiry Interval, which means that the session does not expire. */
const NEVER = 0xffff_ffff;

/** A size in the format of the interface: `512.00M`. */
export function sizeText(bytes: number): string {
  for (const [unit, size] of [
    ['G', 2 ** 30],
    ['M', 2 ** 20],
    ['K', 2 ** 10]
  ] as const)
    if (bytes > size) return `${(bytes / size).toFixed(2)}${unit}`;
  return `${bytes}`;
}

/** The prefix of a share group. */
const SHARE_PREFIX = /^(\$share\/[^/]+|\$queue)\//;

/**
 * A topic filter of a subscription in the format of lists: `$share/g/t`, `$share/$queue/t`.
 * @param hasPrefix false: `t`
 */
export function listedFilter(filter: string, hasPrefix: boolean): string {
  if (!hasPrefix) return filter.replace(SHARE_PREFIX, '');
  return filter.startsWith('$queue/') ? `$share/${filter}` : filter;
}

/**
 * The address of a listener in the format of the interface: `127.0.0.1:1883`, or only the port if it is bound to all
 * addresses.
 */
export function addressText(address: ListenerAddress | undefined): string {
  if (address === undefined) return 'undefined';
  const { path, host = '::', port } = address;
  if (path !== undefined) return path;
  if (host === '::') return `${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

type AnyRecord = ClientRecord | SessionRecord | SubscriptionRecord;

/** The conversion and documentation of a record field. */
interface WireField {
  readonly schema: TSchema;
  /** Default: the value unchanged. Undefined: the field is omitted. */
  readonly write?: (value: never) => unknown;
}

const orUndefined = (value: string | undefined) => value ?? 'undefined';
const moment = (description: string) => text(`${description}: local time, YYYY-MM-DD HH:mm:ss`);

/** The last second that was written: times in a list are often close together. */
let lastSecond = { wallMs: 0, text: '' };

function writeMoment(value: number | undefined): string | undefined {
  if (value === undefined) return undefined;
  const wallMs = value - (value % 1000);
  if (lastSecond.wallMs !== wallMs) lastSecond = { wallMs, text: dateTimeText(wallMs) };
  return lastSecond.text;
}

/** The record fields, by their names in the library. */
const FIELDS: Readonly<Record<string, WireField>> = {
  node: { schema: text('Name of the node') },
  clientId: { schema: text('The client id') },
  username: { schema: text('The user name; "undefined" if there is none'), write: orUndefined },
  cleanStart: { schema: flag('True if the last CONNECT asked for a new session') },
  mailboxLen: { schema: integer('Packets of the client that wait for the store') },
  heapSize: { schema: integer('Bytes of messages and output in memory for the client') },
  reductions: { schema: integer('Packets that this connection has received and sent') },
  protocolName: { schema: text('"MQTT"; in MQTT 3.1 "MQIsdp"') },
  protocolVersion: { schema: integer('The protocol version: 3 (MQTT 3.1), 4 (3.1.1) or 5') },
  ipAddress: {
    schema: text('The IP address of the client; "undefined" if the transport has none'),
    write: orUndefined
  },
  port: {
    schema: integer('The port of the client; 0 if the transport has none'),
    write: (value: number | undefined) => value ?? 0
  },
  // the modules that serve connections in the original products
  transport: {
    schema: text('"emqx_ws_connection" for WebSocket, otherwise "emqx_connection"'),
    write: (value: string) => (value === 'ws' || value === 'wss' ? 'emqx_ws_connection' : 'emqx_connection')
  },
  certificate: {
    schema: text('Subject of the verified certificate of the client; "nossl" if there is none'),
    write: (value: string | undefined) => value ?? 'nossl'
  },
  isBridge: { schema: flag('True if the client is a bridge') },
  isConnected: { schema: flag('True if the client is connected') },
  connectedAt: {
    schema: optional(moment('When the client connected last')),
    write: writeMoment
  },
  disconnectedAt: {
    schema: optional(moment('When the client disconnected; absent while it is connected')),
    write: writeMoment
  },
  zone: { schema: text('The zone, which sets the limits') },
  mountpoint: { schema: text('The mount point: the prefix of the topics of the client, which it does not see') },
  keepalive: { schema: integer('The keep alive in seconds; 0: off') },
  sessionExpiry: {
    schema: integer('Seconds for which the session outlives its connection; 4294967295: it does not expire'),
    write: (value: number) => (value === Infinity ? NEVER : value)
  },
  binding: { schema: text('"local" while the client is connected; otherwise "undefined"'), write: orUndefined },
  recvOct: { schema: integer('Bytes received') },
  recvCnt: { schema: integer('Reads of the connection') },
  recvPkt: { schema: integer('MQTT packets received') },
  recvMsg: { schema: integer('PUBLISH packets received') },
  sendOct: { schema: integer('Bytes sent') },
  sendCnt: { schema: integer('Writes to the connection') },
  sendPkt: { schema: integer('MQTT packets sent') },
  sendMsg: { schema: integer('PUBLISH packets sent') },
  sendPend: { schema: integer('Bytes that are written to the connection and not sent yet') },
  createdAt: { schema: moment('When the session was created'), write: writeMoment },
  subscriptions: { schema: integer('Number of subscriptions') },
  maxSubscriptions: { schema: integer('Maximum number of subscriptions; 0: unlimited') },
  inflight: { schema: integer('Messages sent at QoS 1 or 2 whose acknowledgement is not complete') },
  maxInflight: { schema: integer('Maximum number of these; 0: unlimited') },
  mqueueLen: { schema: integer('Messages in the queue') },
  maxMqueue: { schema: integer('Maximum number of messages in the queue; 0: unlimited') },
  mqueueDropped: { schema: integer('Messages for this session that were dropped, for any reason') },
  awaitingRel: { schema: integer('QoS 2 messages of the client for which the PUBREL has not arrived') },
  maxAwaitingRel: { schema: integer('Maximum number of these; 0: unlimited') },
  deliverMsg: { schema: integer('PUBLISH packets sent on all connections of the session') },
  enqueueMsg: { schema: integer('Messages that were queued') },
  filter: { schema: text('The topic filter') },
  qos: { schema: integer('The QoS', { min: 0, max: 2 }) }
};

/** Number of fields whose text is cached in one piece. */
const GROUP = 8;
/** Sentinel that equals no field value. */
const NOTHING = Symbol();

/** The writer and the schema of the records of a kind. */
interface RecordWriter<R> {
  readonly schema: TSchema;
  /** Write a record as JSON. */
  readonly write: (record: R) => string;
}

/**
 * Make the writer of the records of a kind.
 * @param title of the schema, for documents
 * @param about its description
 * @param names the fields of the library by their names in the interface; the first one has a value in every record
 */
export function writer<R extends AnyRecord>(
  title: string,
  about: string,
  names: ReadonlyMap<string, string>
): RecordWriter<R> {
  const properties = [...names].map(([wire, field]) => [wire, FIELDS[field].schema] as const);
  return {
    schema: componentOf(title, about, Object.fromEntries(properties)),
    write: textWriter(names as ReadonlyMap<string, keyof R>)
  };
}

/**
 * Make a function that writes records. It caches the text of fields, because most fields of a record equal those of the
 * previous one.
 */
function textWriter<R extends AnyRecord>(names: ReadonlyMap<string, keyof R>): (record: R) => string {
  const fields = [...names.values()];
  const prefixes = [...names.keys()].map((name, at) => `${at === 0 ? '' : ','}${JSON.stringify(name)}:`);
  const formats = fields.map((field) => FIELDS[field as string].write ?? ((value: unknown) => value));
  // of the previous record
  const values: unknown[] = fields.map(() => NOTHING);
  const texts = fields.map(() => '');
  const groups = fields.map(() => '').slice(0, Math.ceil(fields.length / GROUP));
  return (record) => {
    let text = '{';
    for (let group = 0, at = 0; group < groups.length; group++) {
      const begin = at;
      const end = Math.min(at + GROUP, fields.length);
      let isChanged = false;
      for (; at < end; at++) {
        const value = record[fields[at]];
        if (value === values[at]) continue;
        const json = JSON.stringify(formats[at](value as never));
        values[at] = value;
        texts[at] = json === undefined ? '' : prefixes[at] + json;
        isChanged = true;
      }
      if (isChanged) groups[group] = texts.slice(begin, end).join('');
      text += groups[group];
    }
    return `${text}}`;
  };
}
