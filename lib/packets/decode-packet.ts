import { InvalidInput, ProtocolError } from '../errors.ts';
import { PacketReader } from './packet-reader.ts';
import { type Packet, PacketType, type ProtocolVersion } from './types.ts';

const FROM_SERVER: readonly number[] = [
  PacketType.connack,
  PacketType.suback,
  PacketType.unsuback,
  PacketType.pingresp
];

/**
 * Decode the bytes of one packet, from a client or from a server, for people: logs, traces, the diagnostics channels
 * `embermq:packet:received` and `embermq:packet:sent`. The bytes are copied.
 *
 * ```ts
 * subscribe('embermq:packet:received', (tap) => {
 *   const { client, bytes } = tap as PacketTap;
 *   console.log(client.clientId, decodePacket(bytes, client.protocolVersion));
 * });
 * ```
 *
 * @param bytes one whole packet
 * @param protocolVersion of the connection, `client.protocolVersion`; a CONNECT says its own
 * @throws InvalidInput PACKET_INVALID for bytes that are not one whole packet, with what is wrong with them
 */
export function decodePacket(bytes: Uint8Array, protocolVersion: ProtocolVersion): Packet {
  const refuse = (why: string) => new InvalidInput('PACKET_INVALID', 'bytes', 'one whole MQTT packet', bytes, why);
  if (!(bytes instanceof Uint8Array)) throw refuse('bytes: expected a Buffer or Uint8Array with one whole MQTT packet');
  const copy = Buffer.from(bytes);
  // most types go both ways, and what may stand in them differs: first as the side reads it that it is most likely for
  const isFromServer = FROM_SERVER.includes(copy[0] >> 4);
  let fault: InvalidInput | undefined;
  for (const side of isFromServer ? (['client', 'server'] as const) : (['server', 'client'] as const)) {
    try {
      const reader = new PacketReader({ side, version: protocolVersion });
      const packets = reader.push(copy);
      if (packets.length === 1 && reader.bufferedBytes === 0) return packets[0];
      fault ??= refuse(`the bytes are ${packets.length} whole packets and ${reader.bufferedBytes} bytes more, not one`);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      fault ??= refuse(`the bytes are not a packet of MQTT: ${error.message}`);
    }
  }
  throw fault;
}
