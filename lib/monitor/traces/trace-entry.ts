// The entries that a trace records in the handling of a packet or an event: the time, references, and a copy of the bytes. The
// object and the line are made by `read`, when the trace is read: of a trace whose lines are kept, on request;
// of a stream, in the next turn, because its reader expects text. Measured with messages of QoS 1 between two clients,
// CPU of a message above that without a trace: 123 us when each line was made at once, 17 us for lines that are kept,
// 60 us with a stream (Node 20, two busy cores). CONNECT and AUTH are the exception: their bytes have passwords, so their
// fields are made at once and the bytes are not kept.

import { asError } from '../../base/errors.ts';
import { decodeClientPacket } from '../../packets/decode.ts';
import { decodeServerPacket } from '../../packets/decode-server.ts';
import type { Message } from '../../packets/message.ts';
import { type Packet, PacketType, type ProtocolVersion } from '../../packets/types.ts';
import { readVarint, varintEnd } from '../../packets/varint.ts';
import type { ClientInfo, TransportInfo } from '../../records/client.ts';
import {
  clientFields,
  hasSecrets,
  messageFields,
  type PayloadForm,
  packetFields,
  refusedFields
} from './trace-fields.ts';

/** A line of a trace as an object. The README describes the fields. */
export interface TraceRecord {
  /** Time in UTC, as ISO 8601. */
  readonly time: string;
  readonly [field: string]: unknown;
}

/** A packet or an event that is recorded and not yet read. */
export interface TraceEntry {
  /**
   * Copy what may change after the packet or event has been handled. An output calls it once, unless it reads the entry at once.
   * @returns the size of the entry in bytes, which is about that of its line
   */
  keep(): number;
  /** Make the line, as an object. */
  read(): TraceRecord;
}

/** The direction of a packet, as the broker sees it. */
export type Direction = 'in' | 'out';

/** Size of an entry without topic, bytes, and names of the client. */
const ENTRY_BYTES = 160;

/** The identifying fields of a client at the time of an entry. */
class TracedClient {
  readonly clientId: string;
  readonly username: string | undefined;
  readonly transportInfo: TransportInfo;

  constructor({ clientId, username, transportInfo }: ClientInfo) {
    this.clientId = clientId;
    this.username = username;
    this.transportInfo = transportInfo;
  }

  /** Size of the names, which are as long as the client wants. */
  get bytes(): number {
    return this.clientId.length + (this.username?.length ?? 0);
  }
}

/** A packet on a connection, as `Traces` passes it. */
interface TracedPacket {
  readonly timeMs: number;
  readonly direction: Direction;
  readonly client: ClientInfo;
  readonly protocolVersion: ProtocolVersion;
  readonly bytes: Buffer;
  /** The topic that the topic alias of a PUBLISH without a topic stands for; undefined: another packet. */
  readonly topic: string | undefined;
}

/** A packet of a trace. */
export class PacketEntry implements TraceEntry {
  readonly #timeMs: number;
  readonly #direction: Direction;
  readonly #client: TracedClient;
  readonly #protocolVersion: ProtocolVersion;
  readonly #topic: string | undefined;
  readonly #form: PayloadForm;
  readonly #packetBytes: number;
  /** The packet; after `keep` a string of one byte per character, without the end of the payload. */
  #bytes: Buffer | string;
  /** The fields of a packet whose bytes are not kept. */
  #fields: object | undefined = undefined;

  constructor({ timeMs, direction, client, protocolVersion, bytes, topic }: TracedPacket, form: PayloadForm) {
    this.#timeMs = timeMs;
    this.#direction = direction;
    this.#client = new TracedClient(client);
    this.#protocolVersion = protocolVersion;
    this.#topic = topic;
    this.#form = form;
    this.#packetBytes = bytes.length;
    this.#bytes = bytes;
  }

  keep(): number {
    const bytes = this.#bytes as Buffer;
    const entryBytes = ENTRY_BYTES + this.#client.bytes + (this.#topic?.length ?? 0);
    if (hasSecrets(bytes[0] >>> 4)) {
      this.#fields = this.#content(bytes);
      this.#bytes = '';
      return entryBytes + bytes.length;
    }
    const kept = keptBytes(bytes, this.#protocolVersion, this.#form);
    this.#bytes = bytes.toString('latin1', 0, kept);
    return entryBytes + kept;
  }

  read(): TraceRecord {
    const bytes = this.#bytes;
    const content = this.#fields ?? this.#content(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    return {
      time: new Date(this.#timeMs).toISOString(),
      ...clientFields(this.#client),
      direction: this.#direction,
      ...content
    };
  }

  #content(bytes: Buffer): object {
    const version = this.#protocolVersion;
    const packet = decode(this.#direction, bytes, version);
    const packetBytes = this.#packetBytes;
    if (packet instanceof Error) return refusedFields(bytes, packetBytes, version, packet, this.#form);
    const fields = packetFields(packet, this.#form, packetBytes - bytes.length);
    return this.#topic === undefined ? fields : { ...fields, topic: this.#topic };
  }
}

/** An event of a trace, about a client or a message. */
export class EventEntry implements TraceEntry {
  readonly #timeMs: number;
  readonly #client: TracedClient | undefined;
  readonly #event: string;
  readonly #fields: object;
  readonly #form: PayloadForm;
  #message: Pick<Message, 'topic' | 'qos' | 'retain' | 'clientId'> | undefined;
  /** The beginning of the payload as a string of one byte per character, after `keep`. */
  #payload = '';
  #payloadBytes = 0;

  /**
   * @param client undefined: the event is about a message of the app for no client
   * @param message undefined: the event is about a client
   * @param fields the other fields of the event
   */
  constructor(
    timeMs: number,
    event: string,
    client: ClientInfo | undefined,
    message: Message | undefined,
    fields: object,
    form: PayloadForm
  ) {
    this.#timeMs = timeMs;
    this.#event = event;
    this.#client = client && new TracedClient(client);
    this.#message = message;
    this.#fields = fields;
    this.#form = form;
  }

  keep(): number {
    const message = this.#message as Message | undefined;
    let entryBytes = ENTRY_BYTES + (this.#client?.bytes ?? 0);
    for (const value of Object.values(this.#fields)) entryBytes += textBytes(value);
    if (message === undefined) return entryBytes;
    const { topic, qos, retain, clientId, payload } = message;
    const { payload: form, maxPayloadBytes } = this.#form;
    this.#message = { topic, qos, retain, clientId };
    this.#payloadBytes = payload.length;
    this.#payload = form === 'none' ? '' : payload.toString('latin1', 0, Math.min(payload.length, maxPayloadBytes));
    return entryBytes + topic.length + clientId.length + this.#payload.length;
  }

  read(): TraceRecord {
    const client = this.#client;
    return {
      time: new Date(this.#timeMs).toISOString(),
      ...(client && clientFields(client)),
      event: this.#event,
      ...this.#content(),
      ...this.#fields
    };
  }

  #content(): object | undefined {
    const message = this.#message;
    if (message === undefined) return undefined;
    if ('payload' in message) return messageFields(message, message.payload as Buffer, this.#form);
    return messageFields(message, Buffer.from(this.#payload, 'latin1'), this.#form, this.#payloadBytes);
  }
}

/** Size of a field of an event that is a string, or a list of strings, such as topic filters. */
function textBytes(value: unknown): number {
  if (typeof value === 'string') return value.length;
  return Array.isArray(value) ? value.reduce((sum, text: string) => sum + text.length, 0) : 0;
}

/** Decode a packet. @returns the error with which it is refused */
export function decode(direction: Direction, bytes: Buffer, version: ProtocolVersion): Packet | Error {
  const decodeIt = direction === 'in' ? decodeClientPacket : decodeServerPacket;
  readVarint(bytes, 1, bytes.length);
  try {
    return decodeIt(bytes[0] >>> 4, bytes[0] & 15, bytes, varintEnd(), bytes.length, version);
  } catch (error) {
    return asError(error);
  }
}

/** The number of bytes at the beginning of a packet that its line needs: of a PUBLISH, all but the end of the payload. */
function keptBytes(bytes: Buffer, version: ProtocolVersion, { payload, maxPayloadBytes }: PayloadForm): number {
  const { length } = bytes;
  if (bytes[0] >>> 4 !== PacketType.publish) return length;
  try {
    readVarint(bytes, 1, length);
    let at = varintEnd();
    at += 2 + ((bytes[at] << 8) | bytes[at + 1]);
    if ((bytes[0] & 6) !== 0) at += 2;
    if (version === 5) {
      const propertyBytes = readVarint(bytes, at, length);
      at = varintEnd() + propertyBytes;
    }
    return Math.min(length, at + (payload === 'none' ? 0 : maxPayloadBytes));
  } catch {
    return length; // it is refused, and its line may have all bytes
  }
}
