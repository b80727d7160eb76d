// A message is its own wire form. A PUBLISH is kept as the bytes that arrived. A receiver with the same packet layout
// gets a copy with another first byte and packet id; for the other layout the message is encoded once for all
// receivers. Subscription identifiers, the remaining expiry, aliases and mount points are encoded per receiver. Runs
// of QoS 0 frames on one topic pass as one slice while there is no observer of single messages (the fast path).
//
// State that outlives the turn is kept as one-byte strings: retained, queued and in-flight messages below 2 KiB become
// strings, which need no backing store (about 200 bytes) and pin no read chunk. Larger ones get a buffer of exactly
// their size.

import { InvalidInput } from '../base/errors.ts';
import { INSPECT } from '../base/symbols.ts';
import { encodePublish } from './encode.ts';
import { encodeMessage } from './encode-message.ts';
import { shownValue, showValue, valuesOf } from './message-values.ts';
import { readProperties } from './properties.ts';
import type { Properties, QoS } from './types.ts';
import { varintLength, writeVarint } from './varint.ts';

/** A complete PUBLISH, including its fixed header, in `buf[start, end)`. */
export interface Frame {
  buf: Buffer;
  start: number;
  end: number;
  /** Offset of the packet id in `buf`; 0 if there is none (QoS 0). */
  packetIdAt: number;
}

/** The two formats of a PUBLISH: without a property block (4, for MQTT 3.x) and with one (5, for MQTT 5.0). */
export type Layout = 4 | 5;

/** A message as the application, a will or a publish hook provides it. */
export interface MessageInput {
  /** Topic name, without wildcards. */
  readonly topic: string;
  /** Default: empty. Strings are sent as UTF-8. */
  readonly payload?: Buffer | Uint8Array | string;
  /** Default 0. */
  readonly qos?: QoS;
  /** Default false. */
  readonly retain?: boolean;
  /** MQTT 5.0 properties that are forwarded with the message. MQTT 3.x receivers do not get them. */
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

/** A message that the application publishes with `broker.publish`. */
export interface AppMessageInput extends MessageInput {
  /**
   * The client id that events and rules report as the publisher, for example when the app forwards a message that a device has sent by
   * other means. It grants no rights, and such a client need not exist. Default: none.
   */
  readonly clientId?: string | undefined;
}

/** The names of the publish options other than topic and payload. */
export const PUBLISH_OPTION_NAMES: readonly string[] = ['qos', 'retain', 'properties'];

/** The client that published a message, usually a session. Messages of the application and the broker have no publisher. */
export interface Publisher {
  readonly clientId: string;
  readonly username: string | undefined;
  /** Only the names of the publisher, always the same object. Messages that outlive the session reference it instead of the session. */
  readonly identity?: Publisher;
}

/** The fields in which the PUBLISH of one receiver differs from the message. */
export interface Variation {
  readonly qos: QoS;
  readonly retain: boolean;
  readonly dup: boolean;
  readonly messageId: number;
  /** Subscription Identifiers, MQTT 5.0 only. */
  readonly subscriptionIds: readonly number[] | undefined;
  /** Remaining Message Expiry Interval in seconds, MQTT 5.0 only; -1 for none. */
  readonly expirySec: number;
  /** Topic Alias, MQTT 5.0 only; 0 for none. */
  readonly alias: number;
  /** Replaces the topic name: '' if an alias replaces it, the topic name without the mount point if the receiver has one. */
  readonly topic: string | undefined;
}

/** Detached packets shorter than this are strings of one byte per character: they need no backing store and keep no other bytes alive. */
const MAX_STRING_BYTES = 2048;
const SLAB_BYTES = 65_536;
/**
 * Maximum length of topic and payload for which a loop writes ASCII faster than native code, and the length of the packet takes one byte.
 */
const MAX_LOOP_CHARACTERS = 120;
const NO_BYTES = Buffer.alloc(0);

let slab = NO_BYTES;
let slabAt = 0;

/**
 * Reserve `bytes` in a shared buffer, for output that is written soon.
 * @returns the offset in the buffer that `outputSlab()` returns
 */
export function reserve(bytes: number): number {
  if (slabAt + bytes > slab.length) {
    slab = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, bytes));
    slabAt = 0;
  }
  const at = slabAt;
  slabAt += bytes;
  return at;
}

/** The buffer in which the last `reserve` reserved space. */
export function outputSlab(): Buffer {
  return slab;
}

/**
 * An application message.
 *
 * It holds the bytes of the PUBLISH as received, or as the broker encoded it. The packet for a receiver is a copy with a few bytes changed;
 * for receivers of the other protocol format the message is encoded once.
 */
export class Message<Value = unknown> {
  /** The packet's bytes for the current turn, unless they have to be unpacked first; see `frame`. */
  #turnFrame: Frame | undefined;
  /** Size of the whole packet in bytes. */
  readonly bytes: number;
  /** Offset of the packet id from the first byte of the packet; 0 for none. @internal */
  readonly packetIdAt: number;
  /** Offset of the first property from the first byte of the packet. @internal */
  readonly propertiesAt: number;
  /** Offset of the payload from the first byte of the packet. @internal */
  readonly payloadAt: number;
  /** @internal */
  readonly layout: Layout;
  /** Topic name by which the message is routed, after mount point, topic rewrite and hooks. */
  readonly topic: string;
  /** QoS as published. */
  readonly qos: QoS;
  /** True if the message was published with the RETAIN flag. */
  readonly retain: boolean;
  /** The publishing session, needed for No Local and share groups; undefined for messages of the application and the broker. @internal */
  origin: Publisher | undefined;
  /** Monotonic time in milliseconds at which the broker accepted the message. @internal */
  readonly takenAtMs: number;
  /** Wall-clock time in milliseconds at which the broker accepted the message. */
  readonly timestamp: number;
  /** Message Expiry Interval as published, in seconds; -1 if the message never expires. */
  readonly expiryInterval: number;
  /** True if the broker published the message itself (`$SYS`). Such messages are not counted and not passed to hooks. @internal */
  isSystem = false;
  /** The commit for which the publisher's acknowledgement is deferred; 0: none. If it fails, the publisher gets an error. @internal */
  ticket = 0;
  /** True if delivery is deferred until that commit, so that a resend by the publisher causes no second delivery. @internal */
  isDeferred = false;
  /** The number of backlogs that contain the message. @internal */
  backlogs = 0;
  /** The bytes after `detach`: a string of one byte per character if they are few, otherwise a separate buffer. */
  #detached: string | Buffer | undefined = undefined;
  #forms: (Frame | undefined)[] | undefined = undefined;

  /**
   * @param propertiesAt, payloadAt offsets from `frame.start`; equal if there are no properties
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
    this.#turnFrame = turnFrame;
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
   * Create a message from the input of the application, a will or a hook. The caller has checked the topic name.
   * @throws InvalidInput MESSAGE_INVALID for an invalid payload, QoS or property
   * @internal
   */
  static from(
    input: MessageInput,
    origin: Publisher | undefined,
    takenAtMs: number,
    timestamp: number,
    isSystem = false
  ): Message {
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
    message.isSystem = isSystem;
    return message;
  }

  /**
   * Create a message without properties, in the format of MQTT 3.x, for the current turn. The caller has checked the topic name and the QoS,
   * and that the payload is far shorter than the longest packet.
   * @internal
   */
  static plain(
    topic: string,
    payload: string | Uint8Array,
    qos: QoS,
    retain: boolean,
    origin: Publisher | undefined,
    takenAtMs: number,
    timestamp: number
  ): Message {
    if (typeof payload === 'string' && topic.length + payload.length <= MAX_LOOP_CHARACTERS) {
      const short = shortPlain(topic, payload, qos, retain);
      if (short !== undefined) {
        const payloadAt = short.end - short.start - payload.length;
        return new Message(short, payloadAt, payloadAt, 4, topic, qos, retain, origin, takenAtMs, timestamp, -1);
      }
    }
    const payloadBytes = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
    const topicBytes = Buffer.byteLength(topic);
    const remaining = 2 + topicBytes + (qos > 0 ? 2 : 0) + payloadBytes;
    const start = reserve(1 + varintLength(remaining) + remaining);
    const buf = slab;
    buf[start] = 0x30 | (qos << 1) | (retain ? 1 : 0);
    let at = buf.writeUInt16BE(topicBytes, writeVarint(buf, start + 1, remaining));
    at += buf.write(topic, at);
    const packetIdAt = qos > 0 ? at : 0;
    if (qos > 0) at = buf.writeUInt16BE(1, at);
    if (typeof payload === 'string') buf.write(payload, at);
    else buf.set(payload, at);
    const turnFrame = { buf, start, end: at + payloadBytes, packetIdAt };
    const payloadAt = at - start;
    return new Message(turnFrame, payloadAt, payloadAt, 4, topic, qos, retain, origin, takenAtMs, timestamp, -1);
  }

  /** Create a message from a packet that this broker encoded. @internal */
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
   * Create a message from a packet that was read from the store.
   * @param frame the whole packet; it is not copied
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
    expiryInterval: number,
    isSystem: boolean
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
    message.isSystem = isSystem;
    message.#turnFrame = undefined;
    return message;
  }

  /** The packet as a string of one byte per character; undefined if the message does not hold one. @internal */
  static latin1Of(message: Message): string | undefined {
    return typeof message.#detached === 'string' ? message.#detached : undefined;
  }

  /** Client id of the publisher; '' for messages of the application and the broker. */
  get clientId(): string {
    return this.origin?.clientId ?? '';
  }

  /** User name of the publisher, if it has one. */
  get username(): string | undefined {
    return this.origin?.username;
  }

  /**
   * The payload. Do not write to this buffer.
   *
   * It may share memory with other messages, which stays allocated as long as the buffer is referenced; copy it if you keep it for a long
   * time.
   */
  get payload(): Buffer {
    if (typeof this.#detached === 'string') return Buffer.from(this.#detached.slice(this.payloadAt), 'latin1');
    const { buf, start, end } = this.frame();
    return buf.subarray(start + this.payloadAt, end);
  }

  /** The properties as published, without the topic alias. Each access decodes them. */
  get properties(): Properties {
    if (this.layout === 4 || this.propertiesAt === this.payloadAt) return {};
    const { buf, start } = this.frame();
    const properties = readProperties(buf, start + this.propertiesAt, start + this.payloadAt, 'publish');
    delete properties.topicAlias;
    return properties;
  }

  /**
   * The result of the schema of the topic (option `schemas`), for handlers, iterables and the event `message.publish`; undefined if there is
   * none, and elsewhere. A handler of a filter that has a schema gets the result of this one, otherwise the first one, and none for a message
   * that was retained before it subscribed.
   */
  get value(): Value {
    return shownValue(this) as Value;
  }

  /** A view of a message for the app, which keeps its value. @param filter that of a handler, if it has a schema @internal */
  static withValue(message: Message, filter?: string): Message {
    const values = valuesOf(message);
    if (values === undefined) return message;
    const view = Message.viewOf(message);
    showValue(view, values, filter);
    return view;
  }

  /** Another object for the same message. @internal */
  static viewOf(message: Message): Message {
    const { propertiesAt, payloadAt, layout, topic, qos, retain } = message;
    const { origin, takenAtMs, timestamp, expiryInterval } = message;
    const frame = message.frame();
    return new Message(
      ...([frame, propertiesAt, payloadAt, layout, topic, qos, retain] as const),
      ...([origin, takenAtMs, timestamp, expiryInterval] as const)
    );
  }

  /** The public fields, as shown by `JSON.stringify` and `console.log`. */
  toJSON(): object {
    const { topic, payload, qos, retain, properties, clientId, username, timestamp, expiryInterval, bytes } = this;
    return { topic, payload, qos, retain, properties, clientId, username, timestamp, expiryInterval, bytes };
  }

  /** @internal */
  [INSPECT](): object {
    return this.toJSON();
  }

  /** Copy the packet out of the read chunk, for a message that outlives the turn. @internal */
  detach(): void {
    if (this.#detached !== undefined || this.#turnFrame === undefined) return;
    const { buf, start, end } = this.#turnFrame;
    if (this.bytes < MAX_STRING_BYTES) this.#detached = buf.toString('latin1', start, end);
    else {
      this.#detached = Buffer.allocUnsafeSlow(this.bytes);
      buf.copy(this.#detached, 0, start, end);
    }
    holdTurnFrame(this, buf);
  }

  /** The packet's bytes. A detached message is unpacked once in each turn, for all receivers. @internal */
  frame(): Frame {
    return this.#turnFrame ?? this.#unpack();
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
    this.#turnFrame = { buf, start: at, end: at + bytes, packetIdAt: this.packetIdAt === 0 ? 0 : at + this.packetIdAt };
    return this.#turnFrame;
  }

  /** Release the buffers that a message needs only in the current turn. @internal */
  static releaseTurnFrame(message: Message): void {
    message.#turnFrame = undefined;
    message.#forms = undefined;
  }

  /** The message in a given format, with or without a packet id. It is encoded once and shared by all receivers. @internal */
  form(layout: Layout, withPacketId: boolean): Frame {
    if (layout === this.layout && withPacketId === this.packetIdAt > 0) return this.frame();
    const at = (layout === 5 ? 2 : 0) + (withPacketId ? 1 : 0);
    const known = this.#forms?.[at];
    if (known !== undefined) return known;
    const buf = encodeMessage(this, layout, PLAIN[withPacketId ? 1 : 0]);
    const frame = { buf, start: 0, end: buf.length, packetIdAt: withPacketId ? packetIdOffset(buf) : 0 };
    (this.#forms ??= [undefined, undefined, undefined, undefined])[at] = frame;
    return frame;
  }
}

/** The original of each message that a deliver hook has changed. */
const originals = new WeakMap<Message, Message>();

/** A message as it was before deliver hooks changed it. */
export function originalOf(message: Message): Message {
  return originals.get(message) ?? message;
}

/**
 * A message as a deliver hook has changed it for one receiver. It has the age of the original, and depends on the same commit.
 * @param input complete; the caller has checked the topic name
 * @throws InvalidInput as `Message.from`
 */
export function changedMessage(original: Message, input: MessageInput): Message {
  const message = Message.from(input, original.origin, original.takenAtMs, original.timestamp);
  message.ticket = original.ticket;
  message.isDeferred = original.isDeferred;
  originals.set(message, originalOf(original));
  return message;
}

/**
 * Record on a message which commit decides whether its publisher is refused.
 * @param ticket number of this commit; 0: none, because the publisher has been answered
 * @param isDeferred the message is delivered only after this commit
 */
export function awaitCommit(message: Message, ticket: number, isDeferred = false): void {
  message.ticket = ticket;
  message.isDeferred = isDeferred;
}

/** Note that a backlog contains the message. @returns whether it is the first one */
export function addedToBacklog(message: Message): boolean {
  return message.backlogs++ === 0;
}

/** Note that a backlog no longer contains the message. @returns whether it was the last one */
export function removedFromBacklog(message: Message): boolean {
  return --message.backlogs === 0;
}

/** Detach a message from the read chunk, and from its publisher's session, which it may outlive. */
export function detachFromPublisher(message: Message): void {
  message.detach();
  const identity = message.origin?.identity;
  if (identity !== undefined) message.origin = identity;
}

/** Make the app the publisher of a message that was decided as one of a client. */
export function publishedByApp(message: Message): void {
  message.origin = undefined;
}

/**
 * Maximum number of detached messages that may hold a frame, and maximum size of the buffers that these reference. A turn may last long.
 */
const MAX_TURN_FRAMES = 4096;
const MAX_TURN_FRAME_BYTES = 4_194_304;

/** The detached messages that hold a frame for this turn, the size of the buffers it refers to, and the last of these buffers. */
let withTurnFrame: Message[] = [];
let turnFrameBytes = 0;
let lastTurnBuffer: Buffer | undefined;

/** Note that a detached message references `buf` until the turn ends. */
function holdTurnFrame(message: Message, buf: Buffer): void {
  if (withTurnFrame.length >= MAX_TURN_FRAMES || turnFrameBytes >= MAX_TURN_FRAME_BYTES) releaseTurnFrames();
  withTurnFrame.push(message);
  if (buf === lastTurnBuffer) return;
  lastTurnBuffer = buf;
  turnFrameBytes += buf.length;
}

/** Release the buffers that detached messages reference. Called at the end of each turn. */
export function releaseTurnFrames(): void {
  if (withTurnFrame.length === 0) return;
  const done = withTurnFrame;
  withTurnFrame = [];
  turnFrameBytes = 0;
  lastTurnBuffer = undefined;
  for (const message of done) Message.releaseTurnFrame(message);
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

/** Encode a PUBLISH of MQTT 3.x with at most 127 bytes after its length. @returns undefined: topic or payload are not ASCII */
function shortPlain(topic: string, payload: string, qos: QoS, retain: boolean): Frame | undefined {
  const remaining = 2 + topic.length + (qos > 0 ? 2 : 0) + payload.length;
  const start = reserve(2 + remaining);
  const buf = slab;
  buf[start] = 0x30 | (qos << 1) | (retain ? 1 : 0);
  buf[start + 1] = remaining;
  buf[start + 2] = 0;
  buf[start + 3] = topic.length;
  let at = start + 4;
  let all = 0;
  for (let i = 0; i < topic.length; i++) {
    const code = topic.charCodeAt(i);
    buf[at++] = code;
    all |= code;
  }
  const packetIdAt = qos > 0 ? at : 0;
  if (qos > 0) {
    buf[at++] = 0;
    buf[at++] = 1;
  }
  for (let i = 0; i < payload.length; i++) {
    const code = payload.charCodeAt(i);
    buf[at++] = code;
    all |= code;
  }
  if (all < 128) return { buf, start, end: at, packetIdAt };
  slabAt = start; // no other code has seen it
  return undefined;
}

/** Offset of the first byte after the fixed header at `start`. */
export function bodyAt(buf: Buffer, start: number): number {
  let at = start + 1;
  while (buf[at++] > 127);
  return at;
}

/** Offset of the field after the topic name (the packet id, if there is one), in a packet that begins at 0. */
function packetIdOffset(buf: Buffer): number {
  const at = bodyAt(buf, 0);
  return at + 2 + buf.readUInt16BE(at);
}

/** Copy the properties that an application may set, and check their types. @throws InvalidInput MESSAGE_INVALID */
function applicationProperties(given: NonNullable<MessageInput['properties']>): Properties {
  checkProperties(given);
  const own: Properties = {};
  for (const name of PROPERTY_NAMES) {
    const value = (given as Record<string, unknown>)[name];
    if (value !== undefined) (own as Record<string, unknown>)[name] = value;
  }
  if (own.correlationData !== undefined) own.correlationData = payloadBytes(own.correlationData);
  return own;
}

/** Check the types of the properties that an application may set. @throws InvalidInput MESSAGE_INVALID */
export function checkProperties(given: unknown): void {
  if (typeof given !== 'object' || given === null)
    throw new InvalidInput('MESSAGE_INVALID', 'properties', 'an object with properties', given);
  for (const [name, isGood] of Object.entries(PROPERTY_CHECKS)) {
    const value = (given as Record<string, unknown>)[name];
    if (value !== undefined && !isGood(value))
      throw new InvalidInput('MESSAGE_INVALID', `properties.${name}`, EXPECTED[name], value);
  }
}

/** Refuse properties that are given outside `properties`, where they would be ignored. @throws InvalidInput MESSAGE_INVALID */
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
  correlationData: (value) => value instanceof Uint8Array,
  userProperties: (value) => Array.isArray(value) && value.every(isPair)
};

const PROPERTY_NAMES = Object.keys(PROPERTY_CHECKS);

const EXPECTED: Readonly<Record<string, string>> = {
  payloadFormatIndicator: '0 or 1',
  messageExpiryInterval: 'whole seconds from 0 to 4294967295',
  contentType: 'a string',
  responseTopic: 'a string',
  correlationData: 'a Buffer or Uint8Array',
  userProperties: 'an array of pairs of strings'
};

/** Apply the checks for properties that clients send: no U+0000 in strings, no wildcards in the response topic. */
function checkBlock(buf: Buffer, start: number, end: number): void {
  try {
    readProperties(buf, start, end, 'publish');
  } catch (error) {
    throw new InvalidInput('MESSAGE_INVALID', 'properties', 'valid properties', undefined, (error as Error).message);
  }
}

function payloadBytes(payload: MessageInput['payload']): Buffer {
  if (payload === undefined) return NO_BYTES;
  if (typeof payload === 'string') return Buffer.from(payload);
  if (Buffer.isBuffer(payload)) return payload;
  if (payload instanceof Uint8Array) return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  throw new InvalidInput('MESSAGE_INVALID', 'payload', 'a Buffer, Uint8Array or string', payload);
}
