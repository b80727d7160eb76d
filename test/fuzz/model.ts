import { ProtocolError } from '../../lib/base/errors.ts';
import {
  checkConnectHeader,
  checkFlags,
  decodeClientPacket,
  peekConnectVersion,
  UnsupportedVersion
} from '../../lib/packets/decode.ts';
import type { ConnectPacket, Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import { levelCount } from '../../lib/topics/topic.ts';
import { type Input, METHOD, type State } from './inputs.ts';

/** The expected result for a connection. */
export interface Verdict {
  /**
   * `open`: it works, and answers. `waiting`: it waits for the rest of a packet. `left`: it is closed, as the client requested or without
   * an answer. `refused`: it is closed, with `code` if the version has one. `narrow`: the client accepts packets so small that any answer
   * may be too large.
   */
  readonly end: 'open' | 'waiting' | 'left' | 'refused' | 'narrow';
  /** The reason code, if it is certain. */
  readonly code: number | undefined;
  /** The state of the connection at the end. */
  readonly state: State;
  /** The version in which the broker answers; undefined if CONNECT could not be read far enough for an answer. */
  readonly version: ProtocolVersion | undefined;
  /** The packets that were read. */
  readonly packets: readonly ReadPacket[];
  /** The largest packet that the client accepts. */
  readonly maxFrame: number;
  /**
   * True if it may be closed without an answer: whether the version was known at that moment depends on how the bytes were split into
   * chunks.
   */
  readonly mayBeSilent: boolean;
}

/** A packet and the bytes it was read from. */
export interface ReadPacket {
  readonly packet: Packet;
  readonly bytes: Buffer;
  readonly version: ProtocolVersion;
}

/** The limits of the broker under test that the model needs. */
export interface Limits {
  readonly maxPacketSize: number;
  /** Limit for packets until the CONNECT is accepted. */
  readonly maxConnectSize: number;
  readonly maxTopicLevels: number;
  readonly maxTopicAlias: number;
  readonly maxClientidLen: number;
  /** True if the broker supports enhanced authentication with `METHOD`. */
  readonly hasMethod: boolean;
}

/** The properties of a connection that the rules depend on. */
interface Known {
  state: State;
  version: ProtocolVersion | undefined;
  hasMethod: boolean;
  isChallenged: boolean;
  expiry: number;
  maxFrame: number;
  mayBeSilent: boolean;
  readonly aliases: Set<number>;
}

/** The largest answer that does not contain data of the client. */
const NARROW = 300;

/** Thrown at the end of a connection while the model reads. */
class End {
  readonly end: Verdict['end'];
  readonly code: number | undefined;

  constructor(end: Verdict['end'], code?: number) {
    this.end = end;
    this.code = code;
  }
}

/**
 * Reads an input packet by packet with the strict decoder, following the specification: a slow and simple counterpart of the broker, which
 * reads in place. It knows nothing about sessions, so it predicts only results that depend on this one connection.
 */
export function judge(input: Input, limits: Limits): Verdict {
  const known: Known = {
    state: input.state,
    version: input.state === 'new' ? undefined : input.version,
    hasMethod: input.state === 'authenticating' || input.state === 'reauthenticating',
    isChallenged: input.state === 'authenticating' || input.state === 'reauthenticating',
    expiry: 0,
    maxFrame: Infinity,
    mayBeSilent: false,
    aliases: new Set()
  };
  const packets: ReadPacket[] = [];
  const verdict = ({ end, code }: End): Verdict => ({
    end,
    code,
    state: known.state,
    version: known.version,
    packets,
    maxFrame: known.maxFrame,
    mayBeSilent: known.mayBeSilent
  });
  if (input.state === 'left') return verdict(new End('left'));
  try {
    read(input.bytes, known, limits, packets);
    return verdict(new End('open'));
  } catch (error) {
    if (error instanceof End) return verdict(error);
    if (error instanceof ProtocolError) return verdict(new End('refused', error.reasonCode));
    throw error;
  }
}

function read(bytes: Buffer, known: Known, limits: Limits, packets: ReadPacket[]): void {
  for (let at = 0; at < bytes.length; ) {
    const body = bodyOf(bytes, at);
    const type = bytes[at] >> 4;
    if (known.state === 'new' && type !== 1) throw new End('left'); // nothing is sent before CONNECT
    const end = body.at + body.length;
    checkSize(bytes, body.at, end - at, known, limits);
    if (end > bytes.length) throw new End('waiting');
    checkFlags(type, bytes[at] & 15, known.version ?? 5);
    checkPlace(type, known);
    if (known.state === 'authenticating' && type === 14) throw new End('left');
    if (known.state === 'new') {
      checkConnectHeader(bytes[at] & 15, peekConnectVersion(bytes, body.at, end)); // refused without an answer
      known.version = versionOf(bytes, body.at, end);
    }
    const version = known.version ?? 5;
    const packet = decodeClientPacket(type, bytes[at] & 15, bytes, body.at, end, version);
    packets.push({ packet, bytes: bytes.subarray(at, end), version: known.version ?? 5 });
    take(packet, known, limits);
    at = end;
  }
}

/** Refuses a packet that is too large at its fixed header, and a CONNECT in its own version. */
function checkSize(bytes: Buffer, bodyAt: number, size: number, known: Known, limits: Limits): void {
  const isWelcomed = known.state === 'live' || known.state === 'reauthenticating';
  const most = isWelcomed ? limits.maxPacketSize : Math.min(limits.maxConnectSize, limits.maxPacketSize);
  if (size <= most) return;
  if (known.state === 'new') {
    known.version = peekConnectVersion(bytes, bodyAt, bytes.length);
    known.mayBeSilent = true;
  }
  throw new End('refused', 0x95);
}

function bodyOf(bytes: Buffer, at: number): { at: number; length: number } {
  let length = 0;
  for (let place = 0; ; place++) {
    if (at + 1 + place >= bytes.length) throw new End('waiting');
    const byte = bytes[at + 1 + place];
    length += (byte & 127) * 128 ** place;
    if (byte < 128) {
      if (byte === 0 && place > 0) throw new End('refused', 0x81); // [MQTT-1.5.5-1]
      return { at: at + 2 + place, length };
    }
    if (place === 3) throw new End('refused', 0x81);
  }
}

/** Determines the version in which a CONNECT is answered, valid or not. */
function versionOf(bytes: Buffer, start: number, end: number): ProtocolVersion | undefined {
  try {
    decodeClientPacket(1, 0, bytes, start, end, 5);
  } catch (error) {
    if (error instanceof UnsupportedVersion) return error.answerAs;
  }
  return peekConnectVersion(bytes, start, end);
}

function checkPlace(type: number, { state, version }: Known): void {
  if (state === 'new') return;
  const isServers = type === 2 || type === 9 || type === 11 || type === 13;
  if (type === 1 || isServers) throw new End('refused', 0x82);
  if (state === 'authenticating' && type !== 14 && type !== 15) throw new End('refused', 0x82);
  if (type === 15 && version !== 5) throw new End('refused', 0x81);
}

function take(packet: Packet, known: Known, limits: Limits): void {
  switch (packet.cmd) {
    case 'connect':
      takeConnect(packet, known, limits);
      return;
    case 'publish': {
      mustBePlain(packet.topic);
      mustBePlain(packet.properties?.responseTopic ?? '');
      const alias = packet.properties?.topicAlias ?? 0;
      if (alias > limits.maxTopicAlias) throw new End('refused', 0x94);
      if (packet.topic === '' && !known.aliases.has(alias)) throw new End('refused', 0x82);
      if (levelCount(packet.topic) > limits.maxTopicLevels) throw new End('refused', 0x90);
      if (alias > 0) known.aliases.add(alias);
      return;
    }
    case 'subscribe':
      for (const { topic } of packet.subscriptions) mustBePlain(topic);
      // `$queue/` is a shared subscription as well [MQTT-3.8.3-4].
      if (packet.subscriptions.some(({ topic, noLocal }) => noLocal && /^\$(share|queue)\//.test(topic)))
        throw new End('refused', 0x82);
      if (packet.subscriptions.some(({ topic }) => !isFilter(topic, known.version))) throw new End('refused', 0x82);
      return;
    case 'unsubscribe':
      for (const topic of packet.unsubscriptions) mustBePlain(topic);
      if (packet.unsubscriptions.some((topic) => !isFilter(topic, known.version))) throw new End('refused', 0x82);
      return;
    case 'disconnect': {
      const asked = packet.properties?.sessionExpiryInterval ?? 0;
      if (asked > 0 && known.expiry === 0) throw new End('refused', 0x82); // [MQTT-3.14.2-2]
      throw new End('left');
    }
    case 'auth': {
      if (!known.hasMethod || packet.properties?.authenticationMethod !== METHOD) throw new End('refused', 0x82);
      if ((packet.reasonCode === 0x18) !== known.isChallenged) throw new End('refused', 0x82);
      // The broker under test sends one challenge, then accepts the client.
      known.isChallenged = packet.reasonCode === 0x19;
      known.state = known.isChallenged ? 'reauthenticating' : 'live';
      return;
    }
  }
}

/** Refuses control characters and non-characters (section 1.5.4). */
function mustBePlain(text: string): void {
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    const isControl = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (isControl || (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) === 0xfffe) throw new End('refused', 0x81);
  }
}

/** Tell whether a filter is valid, level by level [MQTT-4.7.1-1], [MQTT-4.7.1-2], [MQTT-4.8.2-1], [MQTT-4.8.2-2]. */
function isFilter(filter: string, version: ProtocolVersion | undefined): boolean {
  const levels = filter.split('/');
  if (version === 5 && levels.length > 1 && levels[0] === '$share') {
    const [, group, ...inner] = levels;
    if (group === '' || /[+#]/.test(group) || inner.join('/') === '') return false;
    levels.splice(0, 2);
  }
  return levels.every(
    (level, at) => level === '+' || (level === '#' && at === levels.length - 1) || !/[+#]/.test(level)
  );
}

function takeConnect(packet: ConnectPacket, known: Known, limits: Limits): void {
  const { protocolVersion, clientId, clean, properties = {} } = packet;
  known.version = protocolVersion;
  known.state = 'live';
  known.expiry = properties.sessionExpiryInterval ?? 0;
  known.maxFrame = properties.maximumPacketSize ?? Infinity;
  if (known.maxFrame < NARROW) throw new End('narrow');
  const state = known.state;
  known.state = 'new'; // refused here, so it was never connected
  for (const text of [clientId, packet.username, packet.will?.topic, packet.will?.properties?.responseTopic])
    mustBePlain(text ?? '');
  known.state = state;
  const isNameless = clientId === '' && (protocolVersion === 3 || (protocolVersion === 4 && !clean));
  if (isNameless || Buffer.byteLength(clientId) > limits.maxClientidLen) throw refusedAtConnect(known, 0x85);
  if (levelCount(packet.will?.topic ?? '') > limits.maxTopicLevels) throw refusedAtConnect(known, 0x90);
  const method = properties.authenticationMethod;
  if (method === undefined) return;
  known.hasMethod = true;
  if (method !== METHOD || !limits.hasMethod) throw refusedAtConnect(known, 0x8c);
  known.state = 'authenticating';
  known.isChallenged = true;
}

function refusedAtConnect(known: Known, code: number): End {
  known.state = 'new';
  return new End('refused', code);
}
