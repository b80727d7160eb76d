// A recording is a file of lines of JSON. The first line names the format; each further line is an event of one
// connection:
//
//   {"embermq":"recording","version":1,"startedAt":"2026-03-01T08:00:00.000Z"}
//   {"ms":0,"connection":1,"opened":"192.0.2.7"}
//   {"ms":2,"connection":1,"sent":"connect","data":"EBAABE1RVFQE..."}      from the client, base64
//   {"ms":3,"connection":1,"received":"connack","data":"IAIAAA=="}         from the broker
//   {"ms":60004,"connection":1,"ended":"client"}
//   {"ms":61000,"connection":0}                                            the end of the recording
//
// A frame has the time of its last byte. What is not a whole frame, such as the bytes before a connection was cut, is
// an event `unreadable`. Passwords are replaced, and enhanced authentication is left out: its exchanges cannot be
// repeated anyway. Before the CONNECT of a connection no data is recorded, because the client may speak another
// protocol, in which passwords cannot be found.

import { InvalidInput } from '../base/errors.ts';
import { decodeClientPacket } from '../packets/decode.ts';
import { decodeServerPacket } from '../packets/decode-server.ts';
import { encode } from '../packets/encode.ts';
import {
  type ConnackPacket,
  type ConnectPacket,
  type Packet,
  PacketType,
  type ProtocolVersion
} from '../packets/types.ts';

/** A side of a connection. */
export type Side = 'client' | 'broker';

/** An event of one connection of a recording. */
export interface RecordedEvent {
  /** Milliseconds since the start of the recording. */
  readonly ms: number;
  /** Number of the connection, from 1. 0: the recording ends. */
  readonly connection: number;
  /** The address of a client that connects. */
  readonly opened?: string;
  /** The packet type of bytes from the client, or `unreadable`. */
  readonly sent?: string;
  /** The packet type of bytes from the broker, or `unreadable`. */
  readonly received?: string;
  /** The bytes in base64; absent if they may contain a secret. */
  readonly data?: string;
  /** The side that has ended the connection. */
  readonly ended?: Side;
}

/** Replaces passwords. A broker that checks them refuses the client when the recording is replayed. */
const REDACTED = Buffer.from('redacted');
/** Frames that are longer are recorded in parts, as unreadable. */
const MAX_FRAME_BYTES = 67_108_864;
const NAMES = new Map(Object.entries(PacketType).map(([name, type]) => [type as number, name]));

/** Splits the bytes of one direction into frames. */
export class FrameSplitter {
  readonly #onFrame: (bytes: Buffer, isFrame: boolean) => void;
  #rest: Buffer[] = [];
  #restBytes = 0;
  /** Length of the current frame; 0: not known yet; -1: the bytes are not frames. */
  #length = 0;

  /** @param onFrame gets each whole frame, and other bytes with `isFrame` false */
  constructor(onFrame: (bytes: Buffer, isFrame: boolean) => void) {
    this.#onFrame = onFrame;
  }

  /** Take the next bytes. They are copied if they are kept. */
  take(chunk: Buffer): void {
    this.#rest.push(Buffer.from(chunk));
    this.#restBytes += chunk.length;
    if (this.#length > 0 && this.#restBytes < this.#length) return; // not joined for each chunk of a long frame
    let bytes = this.#rest.length === 1 ? this.#rest[0] : Buffer.concat(this.#rest);
    while (bytes.length > 0) {
      if (this.#length === 0) this.#length = frameLength(bytes);
      if (this.#length > 0 && this.#length <= bytes.length) {
        this.#onFrame(bytes.subarray(0, this.#length), true);
        bytes = bytes.subarray(this.#length);
        this.#length = 0;
      } else {
        if (this.#length !== -1) break;
        this.#onFrame(bytes, false);
        bytes = bytes.subarray(bytes.length);
      }
    }
    this.#rest = bytes.length === 0 ? [] : [bytes];
    this.#restBytes = bytes.length;
  }

  /** The connection has ended: report the bytes of a frame that is not complete. */
  end(): void {
    if (this.#restBytes > 0) this.#onFrame(Buffer.concat(this.#rest), false);
    this.#rest = [];
    this.#restBytes = 0;
  }
}

/** The length of the frame at the beginning of `bytes`; 0: more bytes are needed; -1: it is not a frame. */
function frameLength(bytes: Buffer): number {
  let remaining = 0;
  for (let at = 1; at <= 4; at++) {
    if (at >= bytes.length) return 0;
    remaining += (bytes[at] & 127) * 128 ** (at - 1);
    if (bytes[at] < 128) return remaining > MAX_FRAME_BYTES ? -1 : at + 1 + remaining;
  }
  return -1;
}

/** Options of a recording. */
interface RecordingOptions {
  /** True: the file has the passwords. Default false. */
  readonly passwords?: boolean;
  /** Milliseconds that never decrease. */
  readonly monotonic: () => number;
  /** Wall-clock time of the start. */
  readonly startedAt: Date;
}

/** Writes the events of connections as lines. */
export class RecordingWriter {
  readonly #write: (line: string) => void;
  readonly #options: RecordingOptions;
  readonly #startMs: number;
  /** The number of connections so far. */
  connections = 0;
  /** The number of frames so far. */
  frames = 0;

  constructor(write: (line: string) => void, options: RecordingOptions) {
    this.#write = write;
    this.#options = options;
    this.#startMs = options.monotonic();
    write(`${JSON.stringify({ embermq: 'recording', version: 1, startedAt: options.startedAt.toISOString() })}\n`);
  }

  /** Milliseconds since the start. */
  get ms(): number {
    return Math.round(this.#options.monotonic() - this.#startMs);
  }

  /** Begin a connection. @param address of the client */
  open(address: string): RecordedConnection {
    const connection = ++this.connections;
    this.#event({ ms: this.ms, connection, opened: address });
    let isMqtt = false;
    const note = (key: 'sent' | 'received') => (bytes: Buffer, isWhole: boolean) => {
      isMqtt ||= key === 'sent' && isWhole && isConnect(bytes);
      const isFrame = isWhole && isMqtt;
      if (isFrame) this.frames++;
      const isKept = this.#options.passwords === true;
      const data = isKept ? bytes : isMqtt ? withoutSecrets(bytes, isFrame, key) : undefined;
      if (data === null) return;
      const name = isFrame ? (NAMES.get(bytes[0] >> 4) ?? 'unreadable') : 'unreadable';
      this.#event({ ms: this.ms, connection, [key]: name, data: data?.toString('base64') });
    };
    const sent = new FrameSplitter(note('sent'));
    const received = new FrameSplitter(note('received'));
    let isOver = false;
    return {
      sent: (chunk) => isOver || sent.take(chunk),
      received: (chunk) => isOver || received.take(chunk),
      ended: (by) => {
        if (isOver) return;
        isOver = true;
        sent.end();
        received.end();
        this.#event({ ms: this.ms, connection, ended: by });
      }
    };
  }

  /** Note the end of the recording. Connections that are open stay open in a replay. */
  end(): void {
    this.#event({ ms: this.ms, connection: 0 });
  }

  #event(event: RecordedEvent): void {
    this.#write(`${JSON.stringify(event)}\n`);
  }
}

/** Takes the bytes of one connection. */
export interface RecordedConnection {
  /** Bytes from the client. */
  sent(chunk: Buffer): unknown;
  /** Bytes from the broker. */
  received(chunk: Buffer): unknown;
  /** The connection has ended; only the first call counts. */
  ended(by: Side): void;
}

function isConnect(frame: Buffer): boolean {
  return frame[0] >> 4 === PacketType.connect && decodeFrame(frame, 5) !== undefined;
}

/**
 * Remove passwords and authentication data.
 * @returns undefined if the bytes cannot be read and may contain a secret, null if the frame is not recorded
 */
function withoutSecrets(bytes: Buffer, isFrame: boolean, key: 'sent' | 'received'): Buffer | undefined | null {
  const type = bytes[0] >> 4;
  if (isFrame && type === PacketType.auth) return null;
  if (key === 'received') return isFrame && type === PacketType.connack ? withoutAuthentication(bytes) : bytes;
  if (!isFrame) return undefined; // it may be a part of a CONNECT
  if (type !== PacketType.connect) return bytes;
  const connect = decodeFrame(bytes, 5) as ConnectPacket | undefined;
  if (connect === undefined) return undefined;
  const { password, properties, ...rest } = connect;
  const { authenticationMethod, authenticationData, ...kept } = properties ?? {};
  if (password === undefined && authenticationMethod === undefined && authenticationData === undefined) return bytes;
  const safe = { ...rest, ...(password === undefined ? {} : { password: REDACTED }), properties: kept };
  return encode(safe, connect.protocolVersion);
}

function withoutAuthentication(bytes: Buffer): Buffer {
  const connack = decodeFrame(bytes, 5, decodeServerPacket) as ConnackPacket | undefined;
  if (connack?.properties?.authenticationData === undefined) return bytes;
  const { authenticationMethod: _method, authenticationData: _data, ...properties } = connack.properties;
  return encode({ ...connack, properties }, 5);
}

/** Decode a frame, by default one of a client. @returns undefined if it is not valid */
export function decodeFrame(
  bytes: Buffer,
  version: ProtocolVersion,
  decodePacket = decodeClientPacket
): Packet | undefined {
  let start = 1;
  while (bytes[start++] > 127);
  try {
    return decodePacket(bytes[0] >> 4, bytes[0] & 15, bytes, start, bytes.length, version);
  } catch {
    return undefined; // devices may send invalid packets
  }
}

/**
 * Read the lines of a recording. A last line that is cut off, because the recorder was killed, is left out.
 * @throws InvalidInput RECORDING_INVALID, which names the line
 */
export function readRecording(text: string, name: string): RecordedEvent[] {
  const lines = text.split('\n');
  const invalid = (at: number, expected: string): InvalidInput => {
    const message = `${name}, line ${at + 1}: expected ${expected}; record traffic with embermq record`;
    return new InvalidInput('RECORDING_INVALID', 'file', expected, lines[at]?.slice(0, 80), message);
  };
  const head = parsed(lines[0]) as { embermq?: unknown; version?: unknown } | undefined;
  if (head?.embermq !== 'recording') throw invalid(0, 'the head of a recording');
  if (head.version !== 1) throw invalid(0, 'version 1 of the format');
  const events: RecordedEvent[] = [];
  for (let at = 1; at < lines.length; at++) {
    if (lines[at] === '') continue;
    const event = parsed(lines[at]);
    if (event === undefined && at === lines.length - 1) break; // no line feed after it
    if (!isEvent(event)) throw invalid(at, 'an event with ms and connection');
    if (event.ms < (events.at(-1)?.ms ?? 0)) throw invalid(at, 'a time that is not before that of the previous line');
    events.push(event);
  }
  return events;
}

function parsed(line: string | undefined): unknown {
  try {
    return JSON.parse(line ?? '');
  } catch {
    return undefined;
  }
}

function isEvent(value: unknown): value is RecordedEvent {
  const { ms, connection, data } = (value ?? {}) as { [K in keyof RecordedEvent]?: unknown };
  const isNumber = Number.isSafeInteger(ms) && Number.isSafeInteger(connection) && (ms as number) >= 0;
  return isNumber && (data === undefined || typeof data === 'string');
}
