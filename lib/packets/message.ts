import { inspect } from 'node:util';
import { InvalidInput } from '../errors.ts';
import { encodePublish } from './encode.ts';
import { copyPublishProperties, readProperties, strippedPublishLength } from './properties.ts';
import type { Properties, QoS } from './types.ts';
import { varintLength, writeVarint } from './varint.ts';

/** Where a PUBLISH lies, complete with its fixed header: `buf[start, end)`. */
export interface Frame {
  buf: Buffer;
  start: number;
  end: number;
  /** Offset in `buf` of the packet id; 0: QoS 0, there is none. */
  packetIdAt: number;
}

/** PUBLISH packets of 3.x and of 5.0 differ by the property block. */
export type Layout = 4 | 5;

/** What the app, a will or a publish hook gives as a message. */
export interface MessageInput {
  /** Topic name, without wildcards. */
  readonly topic: string;
  /** Default: empty. Text is sent as UTF-8. */
  readonly payload?: Buffer | Uint8Array | string;
  /** Default 0. */
  readonly qos?: QoS;
  /** Default false. */
  readonly retain?: boolean;
  /** Properties of MQTT 5.0 that travel with a message; receivers of 3.x do without them. */
  readonly properties?: Pick<
    Properties,
    | 'payloadFormatIndicator'
    | 'messageExpiryInterval'
    | 'contentType'
    | 'responseTopic'
    | 'correlationData'
    | 'userProperties'
  >;
}

/** What options beside topic and payload may name. */
export const PUBLISH_OPTION_NAMES: readonly string[] = ['qos', 'retain', 'properties'];

/** Who published a message. Sessions are such; the app and the broker have none. */
export interface Publisher {
  readonly clientId: string;
  readonly username: string | undefined;
  /** The names alone, always the same object for one publisher: what a stored message may hold without holding the session. */
  readonly identity?: Publisher;
}

/** What a receiver's copy differs in. */
export interface Variation {
  readonly qos: QoS;
  readonly retain: boolean;
  readonly dup: boolean;
  readonly messageId: number;
  /** Subscription Identifiers, v5 only. */
  readonly subscriptionIds: readonly number[] | undefined;
  /** Seconds left to live, v5 only; -1: none. */
  readonly expirySec: number;
  /** Topic Alias, v5 only; 0: none. */
  readonly alias: number;
  /** Replaces the topic: '' where an alias stands for it, a shortened one under a mount point. */
  readonly topic: string | undefined;
}

/** Kept messages shorter than this live as one-byte strings on the heap: no backing store of their own, and nothing else is pinned. */
const MAX_STRING_BYTES = 2048;
const SLAB_BYTES = 65_536;
const NO_BYTES = Buffer.alloc(0);

let slab = NO_BYTES;
let slabAt = 0;

/** Room for `bytes` in a shared slab, for output that is soon written. @returns the offset; the buffer is `outputSlab()` */
export function reserve(bytes: number): number {
  if (slabAt + bytes > slab.length) {
    slab = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, bytes));
    slabAt = 0;
  }
  const at = slabAt;
  slabAt += bytes;
  return at;
}

/** The buffer of the last `reserve`. */
export function outputSlab(): Buffer {
  return slab;
}

/**
 * An application message on its way through the broker. It holds the PUBLISH as it came (or as we encoded it): a receiver's packet is
 * made of it by changing a few bytes, or re-encoded once for all receivers of another layout.
 */
export class Message {
  /** The bytes, while they are not kept apart; see `frame`. @internal */
  turnFrame: Frame | undefined;
  /** Size of the whole packet in bytes. */
  readonly bytes: number;
  /** Offset of the packet id from the packet's first byte; 0: none. @internal */
  readonly packetIdAt: number;
  /** Offset of the first property. @internal */
  readonly propertiesAt: number;
  /** Offset of the payload. @internal */
  readonly payloadAt: number;
  /** @internal */
  readonly layout: Layout;
  /** Topic name as routed. */
  readonly topic: string;
  /** As published. */
  readonly qos: QoS;
  /** Published as retained. */
  readonly retain: boolean;
  /** The publishing session, for No Local and share groups; undefined for messages of the app and the broker. @internal */
  origin: Publisher | undefined;
  /** Monotonic milliseconds at which the broker took it over. @internal */
  readonly takenAtMs: number;
  /** Wall-clock milliseconds at which the broker took it over. */
  readonly timestamp: number;
  /** Message Expiry Interval as published, in seconds; -1: never expires. */
  readonly expiryInterval: number;
  /** The broker's own (`$SYS`): not counted among messages, exempt from hooks. @internal */
  isSystem = false;
  /** The commit that its publisher's acknowledgement waits for: if that fails, the publisher is told. 0: none. @internal */
  ticket = 0;
  /** It is delivered after that commit only: its publisher may send it again, and it must not arrive twice. @internal */
  isHeld = false;
  /** Backlogs that it waits in. @internal */
  backlogs = 0;
  /** The bytes once kept: one-byte text when short, a buffer of their own when long. */
  #detached: string | Buffer | undefined = undefined;
  #forms: (Frame | undefined)[] | undefined = undefined;

  /**
   * @param propertiesAt, payloadAt offsets from `wire.start`; equal where there are no properties
   * @internal
   */
  constructor(
    turnFrame: Frame,
    propertiesAt: number,
    payloadAt: number,
    layout: Layout,
    topic: string,
    qos: QoS,
    retain: boolean,
    origin: Publisher | undefined,
    takenAtMs: number,
    timestamp: number,
    expiryInterval: number
  ) {
    this.turnFrame = turnFrame;
    this.bytes = turnFrame.end - turnFrame.start;
    this.packetIdAt = turnFrame.packetIdAt === 0 ? 0 : turnFrame.packetIdAt - turnFrame.start;
    this.propertiesAt = propertiesAt;
    this.payloadAt = payloadAt;
    this.layout = layout;
    this.topic = topic;
    this.qos = qos;
    this.retain = retain;
    this.origin = origin;
    this.takenAtMs = takenAtMs;
    this.timestamp = timestamp;
    this.expiryInterval = expiryInterval;
  }

  /**
   * Make a message of what an app, a will or a hook gave. The topic has been checked.
   * @throws InvalidInput MESSAGE_INVALID for a payload or QoS of the wrong kind
   * @internal
   */
  static from(input: MessageInput, origin: Publisher | undefined, takenAtMs: number, timestamp: number): Message {
    const { topic, qos = 0, retain = false, properties } = input;
    if (qos !== 0 && qos !== 1 && qos !== 2) throw new InvalidInput('MESSAGE_INVALID', 'qos', '0, 1 or 2', qos);
    const payload = payloadBytes(input.payload);
    const messageId = qos === 0 ? undefined : 1;
    checkPropertyPlacement(input);
    const own = properties === undefined ? undefined : applicationProperties(properties);
    const packet = { cmd: 'publish', topic, payload, qos, dup: false, retain, messageId, properties: own } as const;
    const buf = encodePublish(packet, 5);
    const expiry = own?.messageExpiryInterval ?? -1;
    const message = Message.of(buf, 5, topic, qos, retain, payload.length, origin, takenAtMs, timestamp, expiry);
    if (own !== undefined) checkBlock(buf, message.propertiesAt, message.payloadAt);
    return message;
  }

  /** A message whose packet we encoded ourselves. @internal */
  static of(
    buf: Buffer,
    layout: Layout,
    topic: string,
    qos: QoS,
    retain: boolean,
    payloadBytes: number,
    origin: Publisher | undefined,
    takenAtMs: number,
    timestamp: number,
    expiryInterval: number
  ): Message {
    const packetIdAt = packetIdOffset(buf);
    const payloadAt = buf.length - payloadBytes;
    let propertiesAt = qos === 0 ? packetIdAt : packetIdAt + 2;
    if (layout === 5) while (buf[propertiesAt++] > 127);
    const turnFrame = { buf, start: 0, end: buf.length, packetIdAt: qos === 0 ? 0 : packetIdAt };
    return new Message(
      turnFrame,
      propertiesAt,
      payloadAt,
      layout,
      topic,
      qos,
      retain,
      origin,
      takenAtMs,
      timestamp,
      expiryInterval
    );
  }

  /**
   * A message that was kept, by the bytes of its packet; they are not copied.
   * @param frame the whole packet
   * @internal
   */
  static stored(
    frame: Buffer,
    layout: Layout,
    qos: QoS,
    retain: boolean,
    payloadBytes: number,
    origin: Publisher | undefined,
    takenAtMs: number,
    timestamp: number,
    expiryInterval: number
  ): Message {
    const topicAt = bodyAt(frame, 0) + 2;
    const topic = frame.toString('utf8', topicAt, topicAt + frame.readUInt16BE(topicAt - 2));
    const message = Message.of(
      frame,
      layout,
      topic,
      qos,
      retain,
      payloadBytes,
      origin,
      takenAtMs,
      timestamp,
      expiryInterval
    );
    message.#detached = frame;
    message.turnFrame = undefined;
    return message;
  }

  /** The packet's bytes as one-byte text, if they are kept so. @internal */
  get latin1(): string | undefined {
    return typeof this.#detached === 'string' ? this.#detached : undefined;
  }

  /** Client id of the publisher; '' for the app and the broker. */
  get clientId(): string {
    return this.origin?.clientId ?? '';
  }

  /** User name of the publisher, where it has one. */
  get username(): string | undefined {
    return this.origin?.username;
  }

  /** The payload's bytes: a view that must not be written to. It may share memory with other messages; copy it to keep it for long. */
  get payload(): Buffer {
    if (typeof this.#detached === 'string') return Buffer.from(this.#detached.slice(this.payloadAt), 'latin1');
    const { buf, start, end } = this.frame();
    return buf.subarray(start + this.payloadAt, end);
  }

  /** The properties as published, without topic alias. Decoded at each look. */
  get properties(): Properties {
    if (this.layout === 4 || this.propertiesAt === this.payloadAt) return {};
    const { buf, start } = this.frame();
    const properties = readProperties(buf, start + this.propertiesAt, start + this.payloadAt, 'publish');
    delete properties.topicAlias;
    return properties;
  }

  /** What `JSON.stringify` and `console.log` show: its public fields. */
  toJSON(): object {
    const { topic, payload, qos, retain, properties, clientId, username, timestamp, expiryInterval, bytes } = this;
    return { topic, payload, qos, retain, properties, clientId, username, timestamp, expiryInterval, bytes };
  }

  /** @internal */
  [inspect.custom](): object {
    return this.toJSON();
  }

  /** Monotonic milliseconds from which on it must not be delivered; `Infinity`: never. @internal */
  get expiresAtMs(): number {
    return this.expiryInterval < 0 ? Infinity : this.takenAtMs + this.expiryInterval * 1000;
  }

  /** Whether it must not be delivered any more. An interval of 0 (not specified) reaches those who can get it at once. @internal */
  hasExpired(nowMs: number): boolean {
    return this.expiryInterval >= 0 && nowMs >= this.expiresAtMs && nowMs > this.takenAtMs;
  }

  /** Whole seconds it has been in the broker. @internal */
  secondsInBroker(nowMs: number): number {
    return Math.floor((nowMs - this.takenAtMs) / 1000);
  }

  /** Keep it for longer than its publisher may last: of that, only the names stay. @internal */
  detachFromPublisher(): void {
    this.detach();
    const identity = this.origin?.identity;
    if (identity !== undefined) this.origin = identity;
  }

  /** Copy it out of the read chunk, because it outlives the turn. @internal */
  detach(): void {
    if (this.#detached !== undefined || this.turnFrame === undefined) return;
    const { buf, start, end } = this.turnFrame;
    if (this.bytes < MAX_STRING_BYTES) this.#detached = buf.toString('latin1', start, end);
    else {
      this.#detached = Buffer.allocUnsafeSlow(this.bytes);
      buf.copy(this.#detached, 0, start, end);
    }
    holdTurnFrame(this, buf);
  }

  /** The packet's bytes. Of a kept message they are unpacked, and shared by all receivers of the turn. @internal */
  frame(): Frame {
    return this.turnFrame ?? this.#unpack();
  }

  #unpack(): Frame {
    const { bytes } = this;
    const detached = this.#detached as string | Buffer;
    let at = 0;
    let buf = detached as Buffer;
    if (typeof detached === 'string') {
      at = reserve(bytes);
      buf = slab;
      slab.write(detached, at, 'latin1');
    }
    holdTurnFrame(this, buf);
    this.turnFrame = { buf, start: at, end: at + bytes, packetIdAt: this.packetIdAt === 0 ? 0 : at + this.packetIdAt };
    return this.turnFrame;
  }

  /** What is needed in this turn alone goes. @internal */
  releaseTurnFrame(): void {
    this.turnFrame = undefined;
    this.#forms = undefined;
  }

  /** The same message for receivers of a layout, with or without a packet id; made once and shared. @internal */
  form(layout: Layout, withPacketId: boolean): Frame {
    if (layout === this.layout && withPacketId === this.packetIdAt > 0) return this.frame();
    const at = (layout === 5 ? 2 : 0) + (withPacketId ? 1 : 0);
    const known = this.#forms?.[at];
    if (known !== undefined) return known;
    const buf = this.encode(layout, PLAIN[withPacketId ? 1 : 0]);
    const frame = { buf, start: 0, end: buf.length, packetIdAt: withPacketId ? packetIdOffset(buf) : 0 };
    (this.#forms ??= [undefined, undefined, undefined, undefined])[at] = frame;
    return frame;
  }

  /** A packet of its own for one receiver. @internal */
  encode(layout: Layout, variation: Variation): Buffer {
    const { qos, subscriptionIds, expirySec, alias, messageId, topic } = variation;
    const source = this.frame();
    const from = source.buf;
    const topicFrom = bodyAt(from, source.start) + 2;
    const topicBytes = topic === undefined ? from.readUInt16BE(topicFrom - 2) : Buffer.byteLength(topic);
    const propertiesFrom = source.start + this.propertiesAt;
    const payloadFrom = source.start + this.payloadAt;
    let block = 0;
    if (layout === 5) {
      if (this.layout === 5) block = strippedPublishLength(from, propertiesFrom, payloadFrom);
      if (expirySec >= 0) block += 5;
      if (alias > 0) block += 3;
      if (subscriptionIds !== undefined) for (const id of subscriptionIds) block += 1 + varintLength(id);
    }
    const head = 2 + topicBytes + (qos > 0 ? 2 : 0) + (layout === 5 ? varintLength(block) + block : 0);
    const length = head + source.end - payloadFrom;
    const buf = Buffer.allocUnsafe(1 + varintLength(length) + length);
    buf[0] = 0x30 | (variation.dup ? 8 : 0) | (qos << 1) | (variation.retain ? 1 : 0);
    let at = buf.writeUInt16BE(topicBytes, writeVarint(buf, 1, length));
    if (topic === undefined) from.copy(buf, at, topicFrom, topicFrom + topicBytes);
    else buf.write(topic, at);
    at += topicBytes;
    if (qos > 0) at = buf.writeUInt16BE(messageId, at);
    if (layout === 5) {
      at = writeVarint(buf, at, block);
      if (this.layout === 5) at = copyPublishProperties(from, propertiesFrom, payloadFrom, buf, at);
      if (expirySec >= 0) {
        buf[at++] = 0x02;
        at = buf.writeUInt32BE(expirySec, at);
      }
      if (alias > 0) {
        buf[at++] = 0x23;
        at = buf.writeUInt16BE(alias, at);
      }
      if (subscriptionIds !== undefined) {
        for (const id of subscriptionIds) {
          buf[at++] = 0x0b;
          at = writeVarint(buf, at, id);
        }
      }
    }
    from.copy(buf, at, payloadFrom, source.end);
    return buf;
  }
}

/** So many kept messages may hold their bytes unpacked, and so many bytes of what these lie in: a turn may be long in coming. */
const MAX_TURN_FRAMES = 4096;
const MAX_TURN_FRAME_BYTES = 4_194_304;

/** Kept messages whose bytes lie unpacked for this turn, the bytes that they lie in, and the last of these. */
let withTurnFrame: Message[] = [];
let turnFrameBytes = 0;
let lastTurnBuffer: Buffer | undefined;

/** A kept message holds on to `buf`, as long as the turn lasts. */
function holdTurnFrame(message: Message, buf: Buffer): void {
  if (withTurnFrame.length >= MAX_TURN_FRAMES || turnFrameBytes >= MAX_TURN_FRAME_BYTES) releaseTurnFrames();
  withTurnFrame.push(message);
  if (buf === lastTurnBuffer) return;
  lastTurnBuffer = buf;
  turnFrameBytes += buf.length;
}

/** The turn is over: kept messages let go of the read chunk. */
export function releaseTurnFrames(): void {
  if (withTurnFrame.length === 0) return;
  const done = withTurnFrame;
  withTurnFrame = [];
  turnFrameBytes = 0;
  lastTurnBuffer = undefined;
  for (const message of done) message.releaseTurnFrame();
}

const PLAIN: readonly Variation[] = [0, 1].map((qos) => ({
  qos: qos as QoS,
  retain: false,
  dup: false,
  messageId: 0,
  subscriptionIds: undefined,
  expirySec: -1,
  alias: 0,
  topic: undefined
}));

/** Offset of the byte behind the fixed header at `start`. */
function bodyAt(buf: Buffer, start: number): number {
  let at = start + 1;
  while (buf[at++] > 127);
  return at;
}

/** Offset of what follows the topic in a packet that begins the buffer: the packet id, where there is one. */
function packetIdOffset(buf: Buffer): number {
  const at = bodyAt(buf, 0);
  return at + 2 + buf.readUInt16BE(at);
}

/** The properties an application may set, copied and of the right kinds. @throws InvalidInput MESSAGE_INVALID */
function applicationProperties(given: NonNullable<MessageInput['properties']>): Properties {
  const own: Properties = {};
  for (const [name, isGood] of Object.entries(PROPERTY_CHECKS)) {
    const value = (given as Record<string, unknown>)[name];
    if (value === undefined) continue;
    if (!isGood(value)) throw new InvalidInput('MESSAGE_INVALID', `properties.${name}`, EXPECTED[name], value);
    (own as Record<string, unknown>)[name] = value;
  }
  return own;
}

/** A property beside `properties` would be lost. @throws InvalidInput MESSAGE_INVALID */
export function checkPropertyPlacement(input: object): void {
  for (const name of PROPERTY_NAMES)
    if (name in input)
      throw new InvalidInput('MESSAGE_INVALID', name, `properties.${name}`, (input as Record<string, unknown>)[name]);
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isPair = (pair: unknown): boolean => Array.isArray(pair) && pair.length === 2 && pair.every(isText);

const PROPERTY_CHECKS: Readonly<Record<string, (value: unknown) => boolean>> = {
  payloadFormatIndicator: (value) => value === 0 || value === 1,
  messageExpiryInterval: (value) =>
    Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0xffff_ffff,
  contentType: isText,
  responseTopic: isText,
  correlationData: (value) => Buffer.isBuffer(value),
  userProperties: (value) => Array.isArray(value) && value.every(isPair)
};

const PROPERTY_NAMES = Object.keys(PROPERTY_CHECKS);

const EXPECTED: Readonly<Record<string, string>> = {
  payloadFormatIndicator: '0 or 1',
  messageExpiryInterval: 'whole seconds from 0 to 4294967295',
  contentType: 'a text',
  responseTopic: 'a text',
  correlationData: 'a Buffer',
  userProperties: 'a list of pairs of texts'
};

/** What a client may not send, the app may not either: U+0000 in texts, a response topic with wildcards. */
function checkBlock(buf: Buffer, start: number, end: number): void {
  try {
    readProperties(buf, start, end, 'publish');
  } catch (error) {
    throw new InvalidInput('MESSAGE_INVALID', 'properties', 'what MQTT allows', undefined, (error as Error).message);
  }
}

function payloadBytes(payload: MessageInput['payload']): Buffer {
  if (payload === undefined) return NO_BYTES;
  if (typeof payload === 'string') return Buffer.from(payload);
  if (Buffer.isBuffer(payload)) return payload;
  if (payload instanceof Uint8Array) return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  throw new InvalidInput('MESSAGE_INVALID', 'payload', 'a Buffer, Uint8Array or text', payload);
}
