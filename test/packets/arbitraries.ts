import fc from 'fast-check';
import { PROPERTIES, type PropertySet } from '../../lib/packets/property-table.ts';
import type { Packet, Properties, ProtocolVersion, QoS } from '../../lib/packets/types.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';

/** The settings of random tests. `SEED` in the environment repeats a run, `RUNS` sets the number of runs; `numRuns` is that of the long form. */
export function runs(name: string, numRuns: number): { seed: number; numRuns: number } {
  const seed = readSeed();
  console.log(`# ${name}: ${shownSeed(seed)}`);
  return { seed, numRuns: Number(process.env.RUNS ?? samples(numRuns)) };
}

/** A string that MQTT allows: no U+0000, no lone surrogate. */
export const text = (maxLength = 12) =>
  fc
    .array(
      fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 1, max: 0x7f }) },
        fc.integer({ min: 0x80, max: 0x7ff }),
        fc.integer({ min: 0x800, max: 0xd7ff }),
        fc.constantFrom(0xe000, 0xfeff, 0xffff, 0x10000, 0x10ffff)
      ),
      { maxLength }
    )
    .map((points) => String.fromCodePoint(...points));

export const topicName = text().map((it) => `t${it.replace(/[#+]/g, '/')}`);
const topicFilter = text().map((it) => `f/${it}/#`);
export const bytes = fc.uint8Array({ maxLength: 20 }).map((it) => Buffer.from(it));
const packetId = fc.integer({ min: 1, max: 0xffff });
export const qos = fc.constantFrom<QoS>(0, 1, 2);
const flag = fc.constantFrom<0 | 1>(0, 1);
const u16 = fc.integer({ min: 0, max: 0xffff });
const u32 = fc.oneof(fc.constantFrom(0, 1, 0xffff_ffff, 0x8000_0000), fc.integer({ min: 0, max: 0xffff_ffff }));
const identifier = fc.oneof(
  fc.constantFrom(1, 127, 128, 16383, 16384, 2097151, 2097152, 268435455),
  fc.integer({ min: 1, max: 268435455 })
);

function value(name: keyof Properties, set: PropertySet): fc.Arbitrary<unknown> {
  const row = PROPERTIES.find((it) => it.name === name)!;
  if (name === 'responseTopic') return topicName;
  switch (row.type) {
    case 'flag':
      return flag;
    case 'u16':
      return row.zeroReasonCode === undefined ? u16 : u16.map((it) => it || 1);
    case 'u32':
      return row.zeroReasonCode === undefined ? u32 : u32.map((it) => it || 1);
    case 'varint':
      return fc.array(identifier, { minLength: 1, maxLength: row.repeatable.includes(set) ? 4 : 1 });
    case 'string':
      return text();
    case 'binary':
      return bytes;
    case 'pair':
      return fc.array(fc.tuple(text(4), text(4)), { minLength: 1, maxLength: 5 });
  }
}

/** Properties that are allowed in `set`; undefined instead of an empty object. */
export function properties(set: PropertySet): fc.Arbitrary<Properties | undefined> {
  const model: Record<string, fc.Arbitrary<unknown>> = {};
  for (const { name, sets } of PROPERTIES) if (sets.includes(set)) model[name] = value(name, set);
  return fc.record(model, { requiredKeys: [], noNullPrototype: true }).map((made) => {
    const it = made as Properties;
    if (it.authenticationData !== undefined && it.authenticationMethod === undefined) it.authenticationMethod = 'm';
    return Object.keys(it).length === 0 ? undefined : it;
  });
}

/** A plain object without the fields that are undefined. */
function compact<T extends object>(packet: T): T {
  return Object.fromEntries(Object.entries(packet).filter(([, it]) => it !== undefined)) as T;
}

const none = fc.constant(undefined);

function propertiesFor(set: PropertySet, version: ProtocolVersion) {
  return version === 5 ? properties(set) : none;
}

function publish(version: ProtocolVersion, set: PropertySet): fc.Arbitrary<Packet> {
  return fc
    .record({ topic: topicName, payload: bytes, qos, retain: fc.boolean(), dup: fc.boolean(), id: packetId })
    .chain((it) =>
      propertiesFor(set, version).map((made) =>
        compact({
          cmd: 'publish' as const,
          topic: it.topic,
          payload: it.payload,
          qos: it.qos,
          dup: it.qos > 0 && it.dup,
          retain: it.retain,
          messageId: it.qos > 0 ? it.id : undefined,
          properties: made
        })
      )
    );
}

function acknowledgement(version: ProtocolVersion): fc.Arbitrary<Packet> {
  const codes = { puback: [0, 0x10, 0x80, 0x99], pubrec: [0, 0x87], pubrel: [0, 0x92], pubcomp: [0, 0x92] };
  return fc
    .record({
      cmd: fc.constantFrom('puback', 'pubrec', 'pubrel', 'pubcomp'),
      messageId: packetId,
      pick: fc.nat({ max: 3 }),
      properties: propertiesFor('ack', version)
    })
    .map(({ cmd, messageId, pick, properties: made }) => {
      const reasonCode = version === 5 ? codes[cmd][pick % codes[cmd].length] : 0;
      return compact({ cmd, messageId, reasonCode, properties: made });
    });
}

function connect(version: ProtocolVersion): fc.Arbitrary<Packet> {
  const will = fc
    .record({
      topic: topicName,
      payload: bytes,
      qos,
      retain: fc.boolean(),
      properties: propertiesFor('will', version)
    })
    .map(compact);
  return fc
    .record({
      cmd: fc.constant('connect' as const),
      protocolVersion: fc.constant(version),
      bridge: version === 5 ? fc.constant(false) : fc.boolean(),
      clientId: text(),
      clean: fc.boolean(),
      keepalive: u16,
      username: fc.option(text(), { nil: undefined }),
      password: fc.option(bytes, { nil: undefined }),
      will: fc.option(will, { nil: undefined }),
      properties: propertiesFor('connect', version)
    })
    .map((it) => compact(version !== 5 && it.username === undefined ? { ...it, password: undefined } : it));
}

function subscribe(version: ProtocolVersion): fc.Arbitrary<Packet> {
  const request = fc
    .record({
      topic: topicFilter,
      qos,
      noLocal: version === 5 ? fc.boolean() : fc.constant(false),
      retainAsPublished: version === 5 ? fc.boolean() : fc.constant(false),
      retainHandling: version === 5 ? fc.constantFrom<0 | 1 | 2>(0, 1, 2) : fc.constant<0>(0)
    })
    .map(compact);
  return fc
    .record({
      cmd: fc.constant('subscribe' as const),
      messageId: packetId,
      subscriptions: fc.array(request, { minLength: 1, maxLength: 4 }),
      properties: propertiesFor('subscribe', version)
    })
    .map(compact);
}

function unsubscribe(version: ProtocolVersion): fc.Arbitrary<Packet> {
  return fc
    .record({
      cmd: fc.constant('unsubscribe' as const),
      messageId: packetId,
      unsubscriptions: fc.array(topicFilter, { minLength: 1, maxLength: 4 }),
      properties: propertiesFor('unsubscribe', version)
    })
    .map(compact);
}

function withCode(cmd: 'disconnect' | 'auth', codes: readonly number[], set: PropertySet): fc.Arbitrary<Packet> {
  return fc.record({ reasonCode: fc.constantFrom(...codes), properties: properties(set) }).map((it) => {
    const made =
      cmd === 'auth'
        ? { ...it.properties, authenticationMethod: it.properties?.authenticationMethod ?? 'm' }
        : it.properties;
    return compact({ cmd, reasonCode: it.reasonCode, properties: made });
  });
}

/** Any packet that a client may send. */
export function clientPacket(version: ProtocolVersion): fc.Arbitrary<Packet> {
  const kinds: fc.Arbitrary<Packet>[] = [
    connect(version),
    publish(version, 'publish'),
    acknowledgement(version),
    subscribe(version),
    unsubscribe(version),
    fc.constant<Packet>({ cmd: 'pingreq' }),
    version === 5
      ? withCode('disconnect', [0, 4, 0x80, 0x99], 'disconnect')
      : fc.constant<Packet>({ cmd: 'disconnect', reasonCode: 0 })
  ];
  if (version === 5) kinds.push(withCode('auth', [0x18, 0x19], 'auth'));
  return fc.oneof(...kinds);
}

/** Any packet that a server may send. */
export function serverPacket(version: ProtocolVersion): fc.Arbitrary<Packet> {
  const granted = version === 5 ? [0, 1, 2, 0x80, 0x8f, 0x9e] : version === 4 ? [0, 1, 2, 0x80] : [0, 1, 2];
  const codes = version === 5 ? [0, 0x80, 0x84, 0x9f] : [0, 0x84, 0x85, 0x88, 0x86, 0x87];
  const kinds: fc.Arbitrary<Packet>[] = [
    fc
      .record({
        reasonCode: fc.constantFrom(...codes),
        present: fc.boolean(),
        properties: propertiesFor('connack', version)
      })
      .map(({ reasonCode, present, properties: made }) =>
        compact({
          cmd: 'connack' as const,
          sessionPresent: present && reasonCode === 0 && version !== 3,
          reasonCode,
          properties: made
        })
      ),
    publish(version, 'publishFromServer'),
    acknowledgement(version),
    fc
      .record({
        cmd: fc.constant('suback' as const),
        messageId: packetId,
        granted: fc.array(fc.constantFrom(...granted), { minLength: 1, maxLength: 5 }),
        properties: propertiesFor('suback', version)
      })
      .map(compact),
    fc
      .record({
        cmd: fc.constant('unsuback' as const),
        messageId: packetId,
        granted: fc.array(fc.constantFrom<number>(0, 0x11, 0x8f), version === 5 ? { minLength: 1 } : { maxLength: 0 }),
        properties: propertiesFor('unsuback', version)
      })
      .map(compact),
    fc.constant<Packet>({ cmd: 'pingresp' })
  ];
  if (version === 5) {
    kinds.push(withCode('disconnect', [0x80, 0x8b, 0x8e, 0x9d], 'disconnectFromServer'));
    kinds.push(withCode('auth', [0, 0x18], 'auth'));
  }
  return fc.oneof(...kinds);
}
