import { InvalidInput, ProtocolError } from '../base/errors.ts';
import { PacketReader } from './packet-reader.ts';
import { type Packet, PacketType, type ProtocolVersion } from './types.ts';

const FROM_SERVER: readonly number[] = [
  PacketType.connack,
  PacketType.suback,
  PacketType.unsuback,
  PacketType.pingresp
];

/**
 * Decode the bytes of one packet, sent by a client or by a server.
 *
 * Intended for logs, traces and the diagnostics channels `embermq:packet:received` and `embermq:packet:sent`. The bytes are copied.
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
 * @throws InvalidInput PACKET_INVALID if the bytes are not exactly one valid packet; the message says why
 */
export function decodePacket(bytes: Uint8Array, protocolVersion: ProtocolVersion): Packet {
  const refuse = (why: string) => new InvalidInput('PACKET_INVALID', 'bytes', 'one whole MQTT packet', bytes, why);
  if (!(bytes instanceof Uint8Array)) throw refuse('bytes: expected a Buffer or Uint8Array with one whole MQTT packet');
  const copy = Buffer.from(bytes);
  // Clients and servers may send most packet types, with different contents. Try the more likely sender first.
  const isFromServer = FROM_SERVER.includes(copy[0] >> 4);
  let fault: InvalidInput | undefined;
  for (const side of isFromServer ? (['client', 'server'] as const) : (['server', 'client'] as const)) {
    try {
      const reader = new PacketReader({ side, version: protocolVersion });
      const packets = reader.push(copy);
      if (packets.length === 1 && reader.bufferedBytes === 0) return packets[0];
      const found = `${packets.length} complete packets and ${reader.bufferedBytes} more bytes`;
      fault ??= refuse(`bytes: expected one whole MQTT packet, got ${found}`);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      fault ??= refuse(`bytes: not a valid MQTT packet: ${error.message}`);
    }
  }
  throw fault;
}
