/** Decodes packets for people. This entry point needs the `mqtt-packet` package, an optional peer dependency that the broker does not use. */
import mqttPacket from 'mqtt-packet';
import { InvalidInput } from './base/errors.ts';
import { RETURN_CODES } from './packets/decode-server.ts';
import type { Packet, Properties, ProtocolVersion, UserProperty } from './packets/types.ts';

type Fields = Record<string, unknown>;

/**
 * Decode the bytes of one packet, sent by a client or by a server.
 *
 * Intended for logs, traces and the diagnostics channels `embermq:packet:received` and `embermq:packet:sent`. The bytes are copied.
 * The `mqtt-packet` package decodes them, which is less strict than the broker: it also reads many packets that the broker refuses.
 * Properties with the same name in `userProperties` are next to each other, whatever their order in the packet.
 *
 * ```ts
 * subscribe('embermq:packet:received', (tap) => {
 *   const { client, bytes } = tap as PacketTap;
 *   console.log(client.clientId, decodePacket(bytes, client.protocolVersion));
 * });
 * ```
 *
 * @param bytes one whole packet
 * @param protocolVersion version of the connection, `client.protocolVersion`; a CONNECT states its own
 * @throws InvalidInput PACKET_INVALID if the bytes are not exactly one packet; the message says why
 */
export function decodePacket(bytes: Uint8Array, protocolVersion: ProtocolVersion): Packet {
  const refuse = (why: string) => new InvalidInput('PACKET_INVALID', 'bytes', 'one whole MQTT packet', bytes, why);
  if (!(bytes instanceof Uint8Array)) throw refuse('bytes: expected a Buffer or Uint8Array with one whole MQTT packet');
  const packets: Fields[] = [];
  let fault: unknown;
  const parser = mqttPacket.parser({ protocolVersion });
  parser.on('packet', (packet) => packets.push({ ...packet }));
  parser.on('error', (error) => {
    fault ??= error;
  });
  let rest = 0;
  try {
    rest = parser.parse(Buffer.from(bytes));
  } catch (error) {
    fault ??= error; // it reads beyond the end of some packets that are cut off
  }
  if (fault !== undefined) throw refuse(`bytes: not a valid MQTT packet: ${(fault as Error).message}`);
  if (packets.length !== 1 || rest > 0)
    throw refuse(
      `bytes: expected one whole MQTT packet, got ${packets.length} complete packets and ${rest} more bytes`
    );
  const [packet] = packets;
  const decoded = FORMS[packet.cmd as Packet['cmd']](packet);
  if (isCutOff(decoded)) throw refuse('bytes: not a valid MQTT packet: a field ends behind the end of the packet');
  return decoded;
}

/** The packets in the shapes of `Packet`, from those of `mqtt-packet`. */
const FORMS: Readonly<Record<Packet['cmd'], (packet: Fields) => Packet>> = {
  connect: ({ cmd, protocolVersion, bridgeMode, clientId, clean, keepalive, username, password, will, properties }) =>
    form({
      cmd,
      protocolVersion,
      bridge: bridgeMode === true,
      clientId,
      clean,
      keepalive,
      username,
      password,
      will: will && form({ ...(will as Fields), properties: propertiesOf((will as Fields).properties) }),
      properties: propertiesOf(properties)
    }),
  connack: ({ cmd, sessionPresent, reasonCode, returnCode, properties }) =>
    form({
      cmd,
      sessionPresent: sessionPresent ?? null,
      reasonCode: reasonCode ?? RETURN_CODES[returnCode as number] ?? returnCode ?? null,
      properties: propertiesOf(properties)
    }),
  publish: ({ cmd, topic, payload, qos, dup, retain, messageId, properties }) =>
    form({
      cmd,
      topic,
      payload,
      qos,
      dup,
      retain,
      messageId: messageId ?? undefined,
      properties: propertiesOf(properties)
    }),
  puback: answer,
  pubrec: answer,
  pubrel: answer,
  pubcomp: answer,
  subscribe: ({ cmd, messageId, subscriptions, properties }) =>
    form({
      cmd,
      messageId,
      subscriptions: (subscriptions as Fields[]).map(({ topic, qos, nl, rap, rh }) => ({
        topic,
        qos,
        noLocal: nl ?? false,
        retainAsPublished: rap ?? false,
        retainHandling: rh ?? 0
      })),
      properties: propertiesOf(properties)
    }),
  suback: ({ cmd, messageId, granted, properties }) =>
    form({ cmd, messageId, granted, properties: propertiesOf(properties) }),
  unsubscribe: ({ cmd, messageId, unsubscriptions, properties }) =>
    form({ cmd, messageId, unsubscriptions, properties: propertiesOf(properties) }),
  unsuback: ({ cmd, messageId, granted, properties }) =>
    form({ cmd, messageId, granted: granted ?? [], properties: propertiesOf(properties) }),
  pingreq: ({ cmd }) => form({ cmd }),
  pingresp: ({ cmd }) => form({ cmd }),
  disconnect: ({ cmd, reasonCode, properties }) =>
    form({ cmd, reasonCode: reasonCode ?? 0, properties: propertiesOf(properties) }),
  auth: ({ cmd, reasonCode, properties }) =>
    form({ cmd, reasonCode: reasonCode ?? 0, properties: propertiesOf(properties) })
};

function answer({ cmd, messageId, reasonCode, properties }: Fields): Packet {
  return form({ cmd, messageId, reasonCode: reasonCode ?? 0, properties: propertiesOf(properties) });
}

/** Omit undefined fields. */
function form(fields: Fields): Packet {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as unknown as Packet;
}

/** Flags become 0 or 1, user properties a list of pairs, and one subscription identifier a list of one. */
function propertiesOf(foreign: unknown): Properties | undefined {
  if (foreign === undefined) return undefined;
  const entries = Object.entries(foreign as Fields).map(([name, value]) => {
    if (typeof value === 'boolean') return [name, value ? 1 : 0];
    if (name === 'subscriptionIdentifier') return [name, [value].flat()];
    if (name !== 'userProperties') return [name, value];
    const pairs = Object.entries(value as Record<string, string | string[]>);
    return [name, pairs.flatMap(([key, values]) => [values].flat().map((each): UserProperty => [key, each]))];
  });
  return Object.fromEntries(entries) as Properties;
}

/** `mqtt-packet` reads a number that is cut off as -1, a string as null, and a byte as undefined. */
function isCutOff(value: unknown): boolean {
  if (value === -1 || value === null || value === undefined) return true;
  return typeof value === 'object' && !Buffer.isBuffer(value) && Object.values(value).some(isCutOff);
}
