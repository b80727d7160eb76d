// Which property may be in which packet, and how often, is said only by the table in `property-table.ts`. The scan of
// a PUBLISH repeats its rules without allocating and never chooses an error: whatever it cannot accept is read again
// with `readProperties`, which throws, so that both always agree. A block is parsed to its end before its contents
// are refused, because a block that cannot be parsed is malformed whatever else is wrong with it. Properties of a
// PUBLISH that differ for each receiver are named in `isPerReceiver`; all others are forwarded as bytes.

import { InvalidInput, ProtocolError } from '../base/errors.ts';
import { BodyReader } from './body-reader.ts';
import {
  BY_ID,
  badFlag,
  badResponseTopic,
  duplicateProperty,
  type IndexedProperty,
  misplacedProperty,
  PROPERTIES,
  type PropertySet,
  presentRows,
  SET_BITS,
  unknownProperty
} from './property-table.ts';
import { ReasonCode } from './reason-codes.ts';
import type { Properties, UserProperty } from './types.ts';
import { checkUtf8 } from './utf8.ts';
import { readVarint, VARINT_MAX, varintEnd, varintLength, writeVarint } from './varint.ts';
import { byteLength, writeBinary, writeString } from './write.ts';

type Writable = { -readonly [name in keyof Properties]: Properties[name] };

/**
 * Decode the property block `buf[start, end)` (without the length before it) of a packet.
 *
 * The whole block is parsed before its contents are checked: a block that cannot be parsed is malformed, even if it has other errors.
 * @param set the packet, and its sender where the allowed properties differ
 * @param into the object to fill; default: a new one
 * @throws ProtocolError 0x81 for an unknown property, a value that is cut off, or ill-formed UTF-8; 0x82 for a property that is not allowed
 * in the packet, a duplicate, an invalid value, Authentication Data without Authentication Method, or a Response Topic that is empty or
 * contains a wildcard; 0x94 for Topic Alias 0
 */
export function readProperties(
  buf: Buffer,
  start: number,
  end: number,
  set: PropertySet,
  into: Properties = {}
): Properties {
  const reader = new BodyReader(buf, start, end);
  const place = SET_BITS[set];
  let seen = 0;
  let refusal: ProtocolError | undefined;
  while (reader.at < end) {
    const id = reader.varint();
    const found = BY_ID[id];
    if (found === undefined) throw unknownProperty(id);
    const badValue = readValue(reader, found, into);
    if ((found.allowedIn & place) === 0) refusal ??= misplacedProperty(found.name, set);
    else if ((seen & found.seen) !== 0 && (found.repeatableIn & place) === 0) refusal ??= duplicateProperty(found.name);
    else if (badValue !== undefined) refusal ??= badValue;
    seen |= found.seen;
  }
  if (refusal !== undefined) throw refusal;
  if (into.authenticationData !== undefined && into.authenticationMethod === undefined) {
    throw new ProtocolError(
      ReasonCode.protocolError,
      'authenticationData: not allowed without authenticationMethod; send both'
    );
  }
  return into;
}

/**
 * Read one value.
 * @returns an error if the value is invalid
 * @throws ProtocolError 0x81 if it cannot be parsed
 */
function readValue(reader: BodyReader, row: IndexedProperty, into: Writable): ProtocolError | undefined {
  const { name } = row;
  switch (row.type) {
    case 'flag': {
      const value = reader.u8(name);
      put(into, name, value);
      return value > 1 ? badFlag(name, value) : undefined;
    }
    case 'u16': {
      const value = reader.u16(name);
      put(into, name, value);
      return zeroFault(row, value);
    }
    case 'u32': {
      const value = reader.u32(name);
      put(into, name, value);
      return zeroFault(row, value);
    }
    case 'varint': {
      const value = reader.varint();
      const identifiers = into.subscriptionIdentifier as number[] | undefined;
      if (identifiers === undefined) into.subscriptionIdentifier = [value];
      else identifiers.push(value);
      return zeroFault(row, value);
    }
    case 'string': {
      const value = reader.string(name);
      put(into, name, value);
      const isBad = name === 'responseTopic' && (value === '' || value.includes('#') || value.includes('+'));
      return isBad ? badResponseTopic() : undefined;
    }
    case 'binary':
      put(into, name, reader.binary(name));
      return undefined;
    case 'pair': {
      const pair: UserProperty = [reader.string('user property name'), reader.string('user property value')];
      const pairs = into.userProperties as UserProperty[] | undefined;
      if (pairs === undefined) into.userProperties = [pair];
      else pairs.push(pair);
      return undefined;
    }
  }
}

/** Set a property. The cast is only here, because the table does not relate a name to the type of its value. */
function put(into: Writable, name: keyof Properties, value: number | string | Buffer): void {
  (into as Record<string, unknown>)[name] = value;
}

function zeroFault(row: IndexedProperty, value: number): ProtocolError | undefined {
  if (value !== 0 || row.zeroReasonCode === undefined) return undefined;
  return new ProtocolError(row.zeroReasonCode, `${row.name}: 0 is not allowed; omit the property or send at least 1`);
}

/** The number of bytes that `writeProperties` will write: the block without the length before it. */
export function propertiesLength(properties: Properties | undefined): number {
  if (properties === undefined) return 0;
  let length = 0;
  for (let rest = presentRows(properties); rest !== 0; rest &= rest - 1) {
    const { name, type } = PROPERTIES[lowestBit(rest)];
    const value = properties[name];
    switch (type) {
      case 'flag':
        length += 2;
        break;
      case 'u16':
        length += 3;
        break;
      case 'u32':
        length += 5;
        break;
      case 'varint':
        for (const id of value as readonly number[]) length += 1 + varintLength(id);
        break;
      case 'string':
        length += 3 + byteLength(value as string, name);
        break;
      case 'binary':
        length += 3 + (value as Buffer).length;
        break;
      case 'pair':
        for (const [key, text] of value as readonly UserProperty[]) {
          length += 5 + byteLength(key, name) + byteLength(text, name);
        }
    }
  }
  return length;
}

/**
 * Write `properties` at `at`, without the length before them.
 *
 * They are written in the order of the table; the order of user properties and of subscription identifiers is preserved. Apart from the
 * errors below, values are not checked to be in range.
 * @returns the offset after the last byte
 * @throws InvalidInput `VALUE_TOO_LONG` for a string or binary data above 65,535 bytes, `VALUE_INVALID` for a subscription identifier
 * outside 1..268,435,455
 */
export function writeProperties(buf: Buffer, at: number, properties: Properties | undefined): number {
  if (properties === undefined) return at;
  for (let rest = presentRows(properties); rest !== 0; rest &= rest - 1) {
    const { id, name, type } = PROPERTIES[lowestBit(rest)];
    const value = properties[name];
    switch (type) {
      case 'flag':
        buf[at++] = id;
        buf[at++] = value as number;
        break;
      case 'u16':
        buf[at++] = id;
        at = buf.writeUInt16BE(value as number, at);
        break;
      case 'u32':
        buf[at++] = id;
        at = buf.writeUInt32BE(value as number, at);
        break;
      case 'varint':
        for (const identifier of value as readonly number[]) {
          if (!(identifier >= 1 && identifier <= VARINT_MAX)) {
            throw new InvalidInput('VALUE_INVALID', name, `1 to ${VARINT_MAX}`, identifier);
          }
          buf[at++] = id;
          at = writeVarint(buf, at, identifier);
        }
        break;
      case 'string':
        buf[at++] = id;
        at = writeString(buf, at, value as string);
        break;
      case 'binary':
        buf[at++] = id;
        at = writeBinary(buf, at, value as Buffer, name);
        break;
      case 'pair':
        for (const [key, text] of value as readonly UserProperty[]) {
          buf[at++] = id;
          at = writeString(buf, at, key);
          at = writeString(buf, at, text);
        }
    }
  }
  return at;
}

function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

/**
 * The properties of a PUBLISH that the broker evaluates. The other properties are forwarded as bytes.
 *
 * One object is reused for every PUBLISH of a connection, so that receiving a message allocates nothing.
 */
interface PublishScan {
  /** 0 for none. */
  topicAlias: number;
  /** Seconds; -1 for none. */
  messageExpiryInterval: number;
  /** 0 or 1; -1 for none. */
  payloadFormatIndicator: number;
  /** Position of the Response Topic in the buffer; both 0: none. */
  responseTopicAt: number;
  responseTopicEnd: number;
  /** Bit mask of the properties that the last scan found; 0 after an empty block. */
  seen: number;
}

/** The result of scanning an empty block. */
export function newPublishScan(): PublishScan {
  return {
    topicAlias: 0,
    messageExpiryInterval: -1,
    payloadFormatIndicator: -1,
    responseTopicAt: 0,
    responseTopicEnd: 0,
    seen: 0
  };
}

const PAYLOAD_FORMAT = 1;
const EXPIRY = 2;
const CONTENT_TYPE = 4;
const RESPONSE_TOPIC = 8;
const CORRELATION = 16;
const ALIAS = 32;
const USER = 64;

/**
 * Check the property block of a client's PUBLISH and store in `scan` the properties that the broker evaluates.
 *
 * The rules and errors are those of `readProperties(..., 'publish')`. Nothing is allocated, except for a view of each string of 128 bytes
 * or more. If this throws, the contents of `scan` are undefined.
 */
export function scanPublishProperties(buf: Buffer, start: number, end: number, scan: PublishScan): void {
  if (scan.seen !== 0) clearScan(scan);
  if (start === end) return;
  scan.seen = -1; // makes the next scan clear the fields if this one throws
  let seen = 0;
  let at = start;
  while (at < end) {
    switch (buf[at++]) {
      case 0x01:
        if ((seen & PAYLOAD_FORMAT) !== 0 || at >= end || buf[at] > 1) throw blockFault(buf, start, end);
        seen |= PAYLOAD_FORMAT;
        scan.payloadFormatIndicator = buf[at++];
        break;
      case 0x02:
        if ((seen & EXPIRY) !== 0 || end - at < 4) throw blockFault(buf, start, end);
        seen |= EXPIRY;
        scan.messageExpiryInterval = ((buf[at] << 24) | (buf[at + 1] << 16) | (buf[at + 2] << 8) | buf[at + 3]) >>> 0;
        at += 4;
        break;
      case 0x03:
        if ((seen & CONTENT_TYPE) !== 0) throw blockFault(buf, start, end);
        seen |= CONTENT_TYPE;
        at = scanString(buf, at, end);
        break;
      case 0x08: {
        if ((seen & RESPONSE_TOPIC) !== 0) throw blockFault(buf, start, end);
        seen |= RESPONSE_TOPIC;
        const topic = at + 2;
        at = scanString(buf, at, end);
        if (at > end || at === topic || hasWildcard(buf, topic, at)) throw blockFault(buf, start, end);
        scan.responseTopicAt = topic;
        scan.responseTopicEnd = at;
        break;
      }
      case 0x09:
        if ((seen & CORRELATION) !== 0 || end - at < 2) throw blockFault(buf, start, end);
        seen |= CORRELATION;
        at += 2 + ((buf[at] << 8) | buf[at + 1]);
        break;
      case 0x23: {
        if ((seen & ALIAS) !== 0 || end - at < 2) throw blockFault(buf, start, end);
        seen |= ALIAS;
        const alias = (buf[at] << 8) | buf[at + 1];
        if (alias === 0) throw blockFault(buf, start, end);
        scan.topicAlias = alias;
        at += 2;
        break;
      }
      case 0x26:
        seen |= USER;
        at = scanString(buf, at, end);
        if (at <= end) at = scanString(buf, at, end);
        break;
      default:
        throw blockFault(buf, start, end);
    }
  }
  if (at !== end) throw blockFault(buf, start, end);
  scan.seen = seen;
}

/** Find the error in an invalid block by reading it again with `readProperties`, which throws a ProtocolError. */
function blockFault(buf: Buffer, start: number, end: number): ProtocolError {
  readProperties(buf, start, end, 'publish');
  return new ProtocolError(ReasonCode.malformedPacket, 'PUBLISH: the properties cannot be parsed');
}

function clearScan(scan: PublishScan): void {
  scan.topicAlias = 0;
  scan.messageExpiryInterval = -1;
  scan.payloadFormatIndicator = -1;
  scan.responseTopicAt = 0;
  scan.responseTopicEnd = 0;
  scan.seen = 0;
}

/** Check a string. @returns the offset after it, or an offset past `end` if it is cut off or ill-formed */
function scanString(buf: Buffer, at: number, end: number): number {
  if (end - at < 2) return CUT_OFF;
  const start = at + 2;
  const stop = start + ((buf[at] << 8) | buf[at + 1]);
  return stop <= end && checkUtf8(buf, start, stop) ? stop : CUT_OFF;
}

const CUT_OFF = 0x7fff_ffff;

/** Tell whether `buf[start, end)` contains a `#` or a `+`. */
function hasWildcard(buf: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const byte = buf[at];
    if (byte === 0x23 || byte === 0x2b) return true;
  }
  return false;
}

/**
 * Copy the property block of a PUBLISH without the properties that differ per receiver: topic alias, message expiry interval and
 * subscription identifiers.
 *
 * The other properties are copied unchanged and in order [MQTT-3.3.2-15] to [MQTT-3.3.2-20]. The block must have been checked.
 * @returns the offset in `target` after the copy
 */
export function copyPublishProperties(source: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let from = start;
  let next = start;
  while (next < end) {
    const id = source[next];
    const after = propertyEnd(source, next, end);
    if (isPerReceiver(id)) {
      at = copyBytes(source, from, next, target, at);
      from = after;
    }
    next = after;
  }
  return copyBytes(source, from, end, target, at);
}

/** The number of bytes that `copyPublishProperties` will write. */
export function strippedPublishLength(source: Buffer, start: number, end: number): number {
  let length = end - start;
  let next = start;
  while (next < end) {
    const after = propertyEnd(source, next, end);
    if (isPerReceiver(source[next])) length -= after - next;
    next = after;
  }
  return length;
}

function isPerReceiver(id: number): boolean {
  return id === 0x02 || id === 0x23 || id === 0x0b;
}

function copyBytes(source: Buffer, start: number, end: number, target: Buffer, at: number): number {
  // Up to this length, a loop is faster than the call into native code.
  if (end - start > 48) {
    source.copy(target, at, start, end);
    return at + end - start;
  }
  while (start < end) target[at++] = source[start++];
  return at;
}

/** The offset after the property whose id is at `at`, in a PUBLISH that has been checked. */
function propertyEnd(buf: Buffer, at: number, end: number): number {
  switch (buf[at]) {
    case 0x01:
      return at + 2;
    case 0x02:
      return at + 5;
    case 0x23:
      return at + 3;
    case 0x0b:
      readVarint(buf, at + 1, end);
      return varintEnd();
    case 0x26: {
      const value = at + 3 + ((buf[at + 1] << 8) | buf[at + 2]);
      return value + 2 + ((buf[value] << 8) | buf[value + 1]);
    }
    default:
      return at + 3 + ((buf[at + 1] << 8) | buf[at + 2]);
  }
}
