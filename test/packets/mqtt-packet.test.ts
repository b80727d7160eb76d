import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import mqttPacket from 'mqtt-packet';
import { decodePacket } from '../../lib/decoder.ts';
import { encode } from '../../lib/packets/encode.ts';
import type { Packet, Properties, ProtocolVersion } from '../../lib/packets/types.ts';
import { clientPacket, runs, serverPacket } from './arbitraries.ts';
import { decodeFrame, type Side } from './frames.ts';

/**
 * Compares our codec with the `mqtt-packet` package on packets that both accept.
 *
 * `mqtt-packet` groups user properties by name, which loses the order between names, and collapses repeated empty values; therefore each
 * name occurs once here. It takes one Subscription Identifier as a number and returns several as a list.
 */
type Foreign = Record<string, unknown>;

function foreignProperties(properties: Properties): Foreign {
  const { userProperties, subscriptionIdentifier, ...rest } = properties;
  const result: Foreign = { ...rest };
  for (const name of BOOLEANS) if (name in result) result[name] = result[name] === 1;
  if (userProperties !== undefined) result.userProperties = Object.fromEntries(userProperties);
  if (subscriptionIdentifier !== undefined) {
    result.subscriptionIdentifier =
      subscriptionIdentifier.length === 1 ? subscriptionIdentifier[0] : subscriptionIdentifier;
  }
  return result;
}

const BOOLEANS = [
  'payloadFormatIndicator',
  'requestProblemInformation',
  'requestResponseInformation',
  'retainAvailable',
  'wildcardSubscriptionAvailable',
  'subscriptionIdentifiersAvailable',
  'sharedSubscriptionAvailable'
];

const RETURN_CODES: Record<number, number> = { 0: 0, 132: 1, 133: 2, 136: 3, 134: 4, 135: 5 };

function toForeign(packet: Packet, version: ProtocolVersion): Foreign {
  const result: Foreign = { ...packet };
  if ('properties' in packet && packet.properties !== undefined) {
    result.properties = foreignProperties(packet.properties);
  }
  if (packet.cmd === 'connect') {
    result.protocolId = version === 3 ? 'MQIsdp' : 'MQTT';
    result.bridgeMode = packet.bridge;
    if (packet.will !== undefined) {
      result.will = {
        ...packet.will,
        ...(packet.will.properties && { properties: foreignProperties(packet.will.properties) })
      };
    }
  }
  if (packet.cmd === 'connack' && version !== 5) result.returnCode = RETURN_CODES[packet.reasonCode];
  if (packet.cmd === 'subscribe')
    result.subscriptions = packet.subscriptions.map(
      ({ noLocal: nl, retainAsPublished: rap, retainHandling: rh, ...rest }) => ({ ...rest, nl, rap, rh })
    );
  return result;
}

/** Merge equal names; the last value wins, as in an object. */
function withUniqueNames(packet: Packet): Packet {
  const unique = (properties: Properties | undefined): Properties | undefined =>
    properties?.userProperties === undefined
      ? properties
      : { ...properties, userProperties: Object.entries(Object.fromEntries(properties.userProperties)) };
  const result = { ...packet } as Packet & { properties?: Properties };
  if (result.properties !== undefined) result.properties = unique(result.properties);
  if (result.cmd === 'connect' && result.will?.properties !== undefined) {
    result.will = { ...result.will, properties: unique(result.will.properties) };
  }
  return result;
}

/** Values that `mqtt-packet` refuses or treats as absent although the specification allows them. */
function isBeyondIt(packet: Packet): boolean {
  if (packet.cmd !== 'connect') return false;
  const { clientId, username, password } = packet;
  return (
    clientId === '' || username === '' || password?.length === 0 || (password !== undefined && username === undefined)
  );
}

/** The fields that both codecs know, under the same names. */
function comparable(foreign: Foreign, packet: Packet, version: ProtocolVersion): Foreign {
  const want = toForeign(packet, version);
  const result: Foreign = {};
  for (const name of Object.keys(want)) result[name] = name in foreign ? plain(foreign[name]) : undefined;
  return result;
}

function plain(value: unknown): unknown {
  if (Buffer.isBuffer(value) || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, plain(it)]));
}

function parse(frame: Buffer, version: ProtocolVersion): Foreign {
  const parser = mqttPacket.parser({ protocolVersion: version });
  let result: Foreign | undefined;
  parser.on('packet', (it) => {
    result = { ...it } as unknown as Foreign;
  });
  parser.on('error', (error) => {
    throw error;
  });
  parser.parse(frame);
  assert.ok(result !== undefined, 'mqtt-packet found a packet');
  return result;
}

function expected(packet: Packet, version: ProtocolVersion): Foreign {
  const want = toForeign(packet, version);
  // Fields that `mqtt-packet` does not have.
  delete want.bridge;
  delete want.bridgeMode;
  if (packet.cmd === 'connack' && version !== 5) delete want.reasonCode;
  if (version !== 5) {
    delete want.reasonCode;
    if (packet.cmd === 'unsuback') delete want.granted;
    if (packet.cmd === 'subscribe') want.subscriptions = packet.subscriptions.map(({ topic, qos }) => ({ topic, qos }));
  }
  return plain(want) as Foreign;
}

for (const version of [3, 4, 5] as const) {
  for (const [side, packets] of [
    ['client', clientPacket(version)],
    ['server', serverPacket(version)]
  ] as [Side, fc.Arbitrary<Packet>][]) {
    const both = packets.map(withUniqueNames).filter((packet) => !isBeyondIt(packet));

    describe(`mqtt-packet and packets of a ${side}, version ${version}`, () => {
      it('decodes what we encode to the same packet', () => {
        fc.assert(
          fc.property(both, (packet) => {
            const want = expected(packet, version);
            const got = comparable(parse(encode(packet, version), version), packet, version);
            for (const name of Object.keys(want)) assert.deepEqual(got[name], want[name], name);
          }),
          runs(`mqtt-packet reads, ${side}, version ${version}`, 1_000)
        );
      });

      it('decodes it for decodePacket, which returns the packet that was encoded', () => {
        fc.assert(
          fc.property(packets.map(withUniqueNames), (packet) => {
            assert.deepEqual(sorted(decodePacket(encode(packet, version), version)), sorted(packet));
          }),
          runs(`decodePacket, ${side}, version ${version}`, 1_000)
        );
      });

      it('encodes what we decode to the same packet', () => {
        fc.assert(
          fc.property(both, (packet) => {
            const foreign = toForeign(packet, version) as unknown as mqttPacket.Packet;
            const frame = mqttPacket.generate(foreign, { protocolVersion: version });
            const got = decodeFrame(frame, version, side);
            assert.deepEqual(sorted(got), sorted(packet));
          }),
          runs(`mqtt-packet writes, ${side}, version ${version}`, 1_000)
        );
      });
    });
  }
}

/** User properties sorted by name; an object does not preserve their order. */
function sorted(packet: Packet): Packet {
  const sort = (properties: Properties | undefined): Properties | undefined =>
    properties?.userProperties === undefined
      ? properties
      : { ...properties, userProperties: properties.userProperties.toSorted(([a], [b]) => (a < b ? -1 : 1)) };
  const result = { ...packet } as Packet & { properties?: Properties };
  if (result.properties !== undefined) result.properties = sort(result.properties);
  if (result.cmd === 'connect' && result.will?.properties !== undefined) {
    result.will = { ...result.will, properties: sort(result.will.properties) };
  }
  return result;
}
