import { encode } from '../../lib/packets/encode.ts';
import { type PacketProperty, PROPERTIES, type PropertySet } from '../../lib/packets/property-table.ts';
import type { Packet, Properties, ProtocolVersion, QoS } from '../../lib/packets/types.ts';
import { writeVarint } from '../../lib/packets/varint.ts';
import type { Random } from './random.ts';

/** The state of a connection when the input arrives. */
export type State = 'new' | 'authenticating' | 'live' | 'reauthenticating' | 'left';

/** The bytes that are sent on one connection. */
export interface Input {
  readonly name: string;
  readonly version: ProtocolVersion;
  readonly state: State;
  readonly bytes: Buffer;
  /** True if it has at most one error, so that the reason code is certain. */
  readonly isSimple: boolean;
}

/** The method of the enhanced authentication that the broker under test supports. */
export const METHOD = 'rounds';

const VERSIONS = [3, 4, 5] as const;
const QUALITIES: readonly QoS[] = [0, 1, 2];

// ---------------------------------------------------------------------------------------------------------- packets to damage

interface Template {
  readonly name: string;
  readonly version: ProtocolVersion;
  /** The state in which the packet is valid. */
  readonly state: State;
  readonly frame: Buffer;
}

/** A 5.0 packet with a place for a property block. */
interface Slot {
  readonly name: string;
  readonly place: PropertySet;
  readonly state: State;
  readonly with: (block: Buffer) => Buffer;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

/** Builds a packet from a first byte and a body, with the correct remaining length. */
export function framed(first: number, ...body: readonly Buffer[]): Buffer {
  const all = Buffer.concat(body);
  const head = Buffer.alloc(5);
  head[0] = first;
  const end = writeVarint(head, 1, all.length);
  return Buffer.concat([head.subarray(0, end), all]);
}

function block(properties: Buffer): Buffer {
  const head = Buffer.alloc(4);
  return Buffer.concat([head.subarray(0, writeVarint(head, 0, properties.length)), properties]);
}

function bytesOf(...values: number[]): Buffer {
  return Buffer.from(values);
}

const SLOTS: readonly Slot[] = [
  {
    name: 'CONNECT',
    place: 'connect',
    state: 'new',
    with: (it) => framed(0x10, text('MQTT'), bytesOf(5, 2, 0, 60), block(it), text('fuzz'))
  },
  {
    name: 'CONNECT, will',
    place: 'will',
    state: 'new',
    with: (it) =>
      framed(
        0x10,
        text('MQTT'),
        bytesOf(5, 0xc6, 0, 60, 0),
        text('fuzz'),
        block(it),
        text('will/topic'),
        text('gone'),
        text('name'),
        text('secret')
      )
  },
  {
    name: 'PUBLISH QoS 0',
    place: 'publish',
    state: 'live',
    with: (it) => framed(0x30, text('a/b'), block(it), Buffer.from('payload'))
  },
  {
    name: 'PUBLISH QoS 1',
    place: 'publish',
    state: 'live',
    with: (it) => framed(0x33, text('a/b'), bytesOf(0, 7), block(it), Buffer.from('payload'))
  },
  { name: 'PUBACK', place: 'ack', state: 'live', with: (it) => framed(0x40, bytesOf(0, 7, 0), block(it)) },
  { name: 'PUBREC', place: 'ack', state: 'live', with: (it) => framed(0x50, bytesOf(0, 7, 0), block(it)) },
  { name: 'PUBREL', place: 'ack', state: 'live', with: (it) => framed(0x62, bytesOf(0, 7, 0), block(it)) },
  { name: 'PUBCOMP', place: 'ack', state: 'live', with: (it) => framed(0x70, bytesOf(0, 7, 0), block(it)) },
  {
    name: 'SUBSCRIBE',
    place: 'subscribe',
    state: 'live',
    with: (it) => framed(0x82, bytesOf(0, 7), block(it), text('a/+'), bytesOf(1))
  },
  {
    name: 'UNSUBSCRIBE',
    place: 'unsubscribe',
    state: 'live',
    with: (it) => framed(0xa2, bytesOf(0, 7), block(it), text('a/+'))
  },
  { name: 'DISCONNECT', place: 'disconnect', state: 'live', with: (it) => framed(0xe0, bytesOf(4), block(it)) },
  {
    name: 'AUTH',
    place: 'auth',
    state: 'authenticating',
    with: (it) => framed(0xf0, bytesOf(0x18), block(Buffer.concat([bytesOf(0x15), text(METHOD), it])))
  }
];

/** One valid property of each row, as encoded. */
function sample({ id, type, name }: PacketProperty): Buffer {
  switch (type) {
    case 'flag':
      return bytesOf(id, 1);
    case 'u16':
      return bytesOf(id, 0, 9);
    case 'u32':
      return bytesOf(id, 0, 0, 1, 0);
    case 'varint':
      return bytesOf(id, 0x81, 0x01);
    case 'string':
      return Buffer.concat([bytesOf(id), text(name === 'authenticationMethod' ? METHOD : 'text')]);
    case 'binary':
      return Buffer.concat([bytesOf(id), text('bytes')]);
    case 'pair':
      return Buffer.concat([bytesOf(id), text('name'), text('value')]);
  }
}

function clientTemplates(version: ProtocolVersion): Template[] {
  const isFive = version === 5;
  const properties = (given: Properties): Properties | undefined => (isFive ? given : undefined);
  const options = isFive
    ? { noLocal: true, retainAsPublished: true, retainHandling: 1 as const }
    : { noLocal: false, retainAsPublished: false, retainHandling: 0 as const };
  const packets: [State, Packet][] = [
    [
      'new',
      {
        cmd: 'connect',
        protocolVersion: version,
        bridge: false,
        clientId: 'fuzz',
        clean: true,
        keepalive: 30,
        username: 'name',
        password: Buffer.from('secret'),
        will: {
          topic: 'will/topic',
          payload: Buffer.from('gone'),
          qos: 1,
          retain: true,
          properties: properties({ willDelayInterval: 5, contentType: 'text', userProperties: [['a', 'b']] })
        },
        properties: properties({ sessionExpiryInterval: 10, receiveMaximum: 20, topicAliasMaximum: 3 })
      }
    ],
    ['new', { cmd: 'connect', protocolVersion: version, bridge: true, clientId: 'f', clean: false, keepalive: 0 }]
  ];
  for (const qos of QUALITIES) {
    const messageId = qos === 0 ? undefined : 3;
    packets.push([
      'live',
      {
        cmd: 'publish',
        topic: 'a/b',
        payload: Buffer.from('payload'),
        qos,
        dup: false,
        retain: qos === 1,
        messageId,
        properties: properties({ messageExpiryInterval: 9, topicAlias: 2, userProperties: [['a', 'b']] })
      }
    ]);
  }
  for (const cmd of ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const) {
    packets.push(['live', { cmd, messageId: 1, reasonCode: 0 }]);
    if (isFive) packets.push(['live', { cmd, messageId: 1, reasonCode: 0, properties: { reasonString: 'why' } }]);
  }
  packets.push(
    [
      'live',
      {
        cmd: 'subscribe',
        messageId: 5,
        subscriptions: [
          { topic: 'a/+/#', qos: 2, ...options },
          { topic: 'b', qos: 0, ...options }
        ],
        properties: properties({ subscriptionIdentifier: [200] })
      }
    ],
    ['live', { cmd: 'unsubscribe', messageId: 6, unsubscriptions: ['a/+/#', 'b'] }],
    ['live', { cmd: 'pingreq' }],
    ['live', { cmd: 'disconnect', reasonCode: 0, properties: properties({ reasonString: 'bye' }) }]
  );
  if (isFive) {
    packets.push(['live', { cmd: 'disconnect', reasonCode: 4 }]);
    const auth: Properties = { authenticationMethod: METHOD, authenticationData: Buffer.from('more') };
    packets.push(['authenticating', { cmd: 'auth', reasonCode: 0x18, properties: auth }]);
    packets.push(['reauthenticating', { cmd: 'auth', reasonCode: 0x18, properties: auth }]);
  }
  return packets.map(([state, packet]) => ({ name: packet.cmd, version, state, frame: encode(packet, version) }));
}

/** Packets that only a server sends. */
function serverTemplates(version: ProtocolVersion): Template[] {
  const packets: Packet[] = [
    { cmd: 'connack', sessionPresent: false, reasonCode: 0 },
    { cmd: 'suback', messageId: 1, granted: [0, 1] },
    { cmd: 'unsuback', messageId: 1, granted: [0] },
    { cmd: 'pingresp' }
  ];
  if (version === 5) {
    packets.push({ cmd: 'disconnect', reasonCode: 0x8b, properties: { serverReference: 'elsewhere' } });
    packets.push({ cmd: 'auth', reasonCode: 0, properties: { authenticationMethod: METHOD } });
    packets.push({
      cmd: 'publish',
      topic: 'a',
      payload: Buffer.alloc(0),
      qos: 0,
      dup: false,
      retain: false,
      properties: { subscriptionIdentifier: [1, 2] }
    });
  }
  return packets.map((packet) => ({
    name: `server's ${packet.cmd}`,
    version,
    state: 'live' as const,
    frame: encode(packet, version)
  }));
}

const CLIENT = VERSIONS.flatMap(clientTemplates);
const SERVER = VERSIONS.flatMap(serverTemplates);

function statesOf(version: ProtocolVersion): readonly State[] {
  return version === 5 ? ['new', 'authenticating', 'live', 'reauthenticating', 'left'] : ['new', 'live', 'left'];
}

/** Returns the offset of the body of a complete packet. */
function bodyAt(frame: Buffer): number {
  let at = 1;
  while (frame[at++] > 127);
  return at;
}

/**
 * Lists every damage: each packet truncated at every byte (unchanged, and with a corrected remaining length), every byte flipped, every
 * property alone, duplicated, misplaced and truncated, every packet in every state. About 20,000 inputs.
 */
export function* listed(): Generator<Input, void, undefined> {
  for (const { name, version, state, frame } of CLIENT) {
    const body = bodyAt(frame);
    const rest = (what: string, bytes: Buffer): Input => ({
      name: `${name}, ${what}`,
      version,
      state,
      bytes,
      isSimple: true
    });
    for (let end = 1; end < frame.length; end++) yield rest(`cut at ${end}`, frame.subarray(0, end));
    for (let end = body; end < frame.length; end++)
      yield rest(`of ${end - body} bytes`, framed(frame[0], frame.subarray(body, end)));
    for (let at = 0; at < frame.length; at++) {
      for (const mask of [0xff, 1, 2, 4, 8, 16, 32, 64, 128]) {
        const spoilt = Buffer.from(frame);
        spoilt[at] ^= mask;
        yield { ...rest(`byte ${at} ^ 0x${mask.toString(16)}`, spoilt), isSimple: false };
      }
    }
    yield rest('with a byte too many', framed(frame[0], frame.subarray(body), bytesOf(0)));
    const announced = Buffer.concat([bytesOf(frame[0], 0xff, 0xff, 0x7f), frame.subarray(body)]);
    yield rest('announced as 2 MB', announced);
  }
  for (const { name, version, frame } of [...CLIENT, ...SERVER])
    for (const state of statesOf(version))
      yield { name: `${name}, ${state}`, version, state, bytes: frame, isSimple: true };
  for (const version of VERSIONS) {
    for (const state of statesOf(version)) {
      for (let first = 0; first < 256; first++) {
        yield { name: `first byte ${first}`, version, state, bytes: bytesOf(first, 0), isSimple: true };
        yield {
          name: `first byte ${first}, long`,
          version,
          state,
          bytes: bytesOf(first, 255, 255, 255, 127),
          isSimple: true
        };
        yield {
          name: `first byte ${first}, endless`,
          version,
          state,
          bytes: bytesOf(first, 255, 255, 255, 255, 1),
          isSimple: true
        };
        yield { name: `first byte ${first}, padded`, version, state, bytes: bytesOf(first, 0x80, 0), isSimple: true };
      }
    }
  }
  yield* listedProperties();
}

function* listedProperties(): Generator<Input, void, undefined> {
  for (const { name, state, with: make } of SLOTS) {
    const input = (what: string, properties: Buffer): Input => ({
      name: `${name}, ${what}`,
      version: 5,
      state,
      bytes: make(properties),
      isSimple: true
    });
    for (const row of PROPERTIES) {
      const one = sample(row);
      yield input(`${row.name}`, one);
      yield input(`${row.name} twice`, Buffer.concat([one, one]));
      for (const other of PROPERTIES) yield input(`${row.name}, ${other.name}`, Buffer.concat([one, sample(other)]));
      for (let end = 1; end < one.length; end++) yield input(`${row.name} cut at ${end}`, one.subarray(0, end));
      yield input(`${row.name} 0`, Buffer.concat([one.subarray(0, 1), Buffer.alloc(one.length - 1)]));
    }
    for (const id of [0, 4, 0x7f]) yield input(`property ${id}`, bytesOf(id, 1));
    yield input('property of two bytes', bytesOf(0x81, 0x01, 1));
    yield input('property padded', bytesOf(0x81, 0x00, 1));
  }
}

// ------------------------------------------------------------------------------------------------------------ random sequences

const NAMES = [
  'a',
  'b',
  'a/b',
  'a/b/c',
  'x/y',
  '$SYS/a',
  '$delayed/1/a',
  '$share',
  'a//b',
  '/',
  'ü/€/𝄞',
  'later/a',
  'old/a'
];
const FILTERS = [
  ...NAMES,
  '#',
  '+',
  '+/+',
  'a/#',
  'a/+/c',
  '$SYS/#',
  '$share/g/a/#',
  '$queue/a/+',
  '$share/g',
  'a/#/b',
  'a+'
];
const STRANGE = [
  '',
  'a\u0000',
  '#',
  'a/+',
  '/'.repeat(300),
  'n'.repeat(5000),
  '\ufeff',
  '$',
  '$delayed/',
  '$delayed/x/y'
];

function name(random: Random, usual: readonly string[]): string {
  return random.once(12) ? random.pick(STRANGE) : random.pick(usual);
}

function payload(random: Random): Buffer {
  return random.bytes(random.once(20) ? random.below(6000) : random.below(20));
}

function someProperties(random: Random, place: PropertySet): Properties | undefined {
  if (random.once(2)) return undefined;
  const properties: Record<string, unknown> = {};
  for (let count = random.below(4); count > 0; count--) {
    const row = random.pick(PROPERTIES);
    if (row.sets.includes(place)) properties[row.name] = value(random, row);
  }
  return properties as Properties;
}

function value(random: Random, { name: row, type }: PacketProperty): unknown {
  const number = random.pick([0, 1, 2, 9, 100, 65_535]);
  switch (type) {
    case 'flag':
      return random.below(2);
    case 'varint':
      return [1 + random.below(300)];
    case 'u16':
      return number;
    case 'u32':
      return random.pick([number, 0xffff_ffff, 120]);
    case 'string':
      return row === 'authenticationMethod' ? random.pick([METHOD, METHOD, 'other', '']) : name(random, NAMES);
    case 'binary':
      return payload(random);
    case 'pair':
      return [
        ['a', 'b'],
        ['a', 'c']
      ];
  }
}

function packet(random: Random, version: ProtocolVersion): Packet {
  const isFive = version === 5;
  const messageId = random.once(30) ? 0 : 1 + random.below(random.once(8) ? 65_535 : 6);
  const properties = (place: PropertySet) => (isFive ? someProperties(random, place) : undefined);
  switch (random.below(isFive ? 13 : 11)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const qos = random.pick(QUALITIES);
      const topic = name(random, NAMES);
      const dup = qos > 0 && random.once(4);
      const given = properties('publish');
      return {
        cmd: 'publish',
        topic: isFive && random.once(6) ? '' : topic,
        payload: payload(random),
        qos,
        dup,
        retain: random.once(5),
        messageId: qos > 0 ? messageId : undefined,
        properties: given
      };
    }
    case 4:
    case 5: {
      const cmd = random.pick(['puback', 'pubrec', 'pubrel', 'pubcomp'] as const);
      return { cmd, messageId, reasonCode: isFive && random.once(4) ? 0x80 : 0, properties: properties('ack') };
    }
    case 6:
    case 7: {
      const subscriptions = Array.from({ length: 1 + random.below(4) }, () => ({
        topic: name(random, FILTERS),
        qos: random.pick(QUALITIES),
        noLocal: isFive && random.once(5),
        retainAsPublished: isFive && random.once(2),
        retainHandling: isFive ? random.pick([0, 1, 2] as const) : (0 as const)
      }));
      return { cmd: 'subscribe', messageId, subscriptions, properties: properties('subscribe') };
    }
    case 8:
      return {
        cmd: 'unsubscribe',
        messageId,
        unsubscriptions: [name(random, FILTERS), name(random, FILTERS)],
        properties: properties('unsubscribe')
      };
    case 9:
      return { cmd: 'pingreq' };
    case 10:
      if (!random.once(4)) return { cmd: 'pingreq' };
      return { cmd: 'disconnect', reasonCode: isFive ? random.pick([0, 4]) : 0, properties: properties('disconnect') };
    case 11:
      return connect(random, version);
    default: {
      const reasonCode = random.pick([0x18, 0x19]);
      return { cmd: 'auth', reasonCode, properties: { authenticationMethod: METHOD, ...properties('auth') } };
    }
  }
}

/** Builds a valid CONNECT; its client id is one of few, so that sessions are taken over and resumed. */
function connect(random: Random, version: ProtocolVersion): Packet {
  const isFive = version === 5;
  const hasName = random.once(3);
  return {
    cmd: 'connect',
    protocolVersion: version,
    bridge: !isFive && random.once(9),
    clientId: random.once(20) ? random.pick(['', 'a+b', 'ü', 'n'.repeat(4097)]) : `fuzz${random.below(200)}`,
    clean: random.once(2),
    keepalive: random.pick([0, 1, 60, 65_535]),
    username: hasName ? random.pick(['', 'name', 'a/#']) : undefined,
    password: hasName ? payload(random) : undefined,
    will: random.once(3)
      ? {
          topic: name(random, NAMES),
          payload: payload(random),
          qos: random.pick(QUALITIES),
          retain: random.once(3),
          properties: isFive ? someProperties(random, 'will') : undefined
        }
      : undefined,
    properties: isFive ? someProperties(random, 'connect') : undefined
  };
}

/** Damages bytes in one of several ways. */
function spoil(random: Random, bytes: Buffer): Buffer {
  const at = random.below(bytes.length);
  const end = Math.min(bytes.length, at + 1 + random.below(8));
  const copy = Buffer.from(bytes);
  switch (random.below(8)) {
    case 0:
      copy[at] ^= 1 << random.below(8);
      return copy;
    case 1:
      copy[at] = random.pick([0, 1, 0x7f, 0x80, 0xff, 0x2b, 0x23]);
      return copy;
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)]);
    case 3:
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
    case 4:
      return Buffer.concat([bytes.subarray(0, at), random.bytes(1 + random.below(6)), bytes.subarray(at)]);
    case 5:
      return Buffer.from(bytes.subarray(0, at + 1));
    case 6:
      copy[Math.min(1, bytes.length - 1)] = random.below(256);
      return copy;
    default: {
      // The length of a string, or other bytes in that place.
      if (at + 1 < copy.length) copy.writeUInt16BE(random.below(70_000) & 0xffff, at);
      return copy;
    }
  }
}

function encoded(random: Random, version: ProtocolVersion): Buffer {
  try {
    return encode(packet(random, version), version);
  } catch {
    return bytesOf(0xc0, 0); // the encoder refused to write the packet
  }
}

/** Builds a sequence of packets, most of them valid, some damaged. */
export function randomInput(random: Random): Input {
  const version = random.pick([3, 4, 4, 5, 5, 5] as const);
  const state = random.pick(['live', 'live', 'live', 'live', ...statesOf(version)] as const);
  const parts: Buffer[] = [];
  if (state === 'new') {
    let first: Buffer;
    try {
      first = encode(connect(random, version), version);
    } catch {
      first = bytesOf(0x10, 0);
    }
    parts.push(random.once(3) ? spoil(random, first) : first);
  }
  const isSpoilt = random.once(2);
  for (let count = 1 + random.below(6); count > 0; count--) {
    const good = encoded(random, version);
    parts.push(isSpoilt && random.once(3) ? spoil(random, good) : good);
  }
  if (random.once(30)) parts.push(random.bytes(random.below(40)));
  return { name: 'random', version, state, bytes: Buffer.concat(parts), isSimple: false };
}

/** Splits bytes into chunks as a network would, mostly in one piece. */
export function split(random: Random, bytes: Buffer): Buffer[] {
  if (!random.once(3)) return [bytes];
  const chunks: Buffer[] = [];
  const most = random.pick([1, 3, 40]);
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + 1 + random.below(most));
    chunks.push(bytes.subarray(at, end));
    at = end;
  }
  return chunks;
}
