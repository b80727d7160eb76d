import { InvalidInput } from '../errors.ts';
import type { Packet, ProtocolVersion } from './types.ts';

/** A packet as the package `mqtt-packet` describes it: the fields depend on `cmd`. */
export interface DecodedPacket {
  readonly cmd: Packet['cmd'];
  readonly [field: string]: unknown;
}

/**
 * Decode the bytes of one packet, for people: logs, traces, the diagnostics channels `embermq:packet:received` and `embermq:packet:sent`. The
 * bytes are copied before it returns. The package `mqtt-packet` does it, loaded at the first call; its fields are those of its
 * documentation (`userProperties` is an object, so the order of equal names is lost).
 *
 * ```ts
 * subscribe('embermq:packet:received', (tap) => {
 *   const { client, bytes } = tap as PacketTap;
 *   void decodePacket(bytes, client.protocolVersion).then((packet) => console.log(client.clientId, packet));
 * });
 * ```
 *
 * @param bytes one whole packet
 * @param protocolVersion of the connection, `client.protocolVersion`; a CONNECT says its own
 * @throws InvalidInput PACKET_INVALID for bytes that are not one whole packet
 */
export async function decodePacket(bytes: Uint8Array, protocolVersion: ProtocolVersion): Promise<DecodedPacket> {
  const refuse = (why: string) => new InvalidInput('PACKET_INVALID', 'bytes', 'one whole MQTT packet', bytes, why);
  if (!(bytes instanceof Uint8Array)) throw refuse('bytes: expected a Buffer or Uint8Array with one whole MQTT packet');
  const copy = Buffer.from(bytes);
  const { parser } = await import('mqtt-packet');
  const packets: DecodedPacket[] = [];
  const reader = parser({ protocolVersion });
  let fault: Error | undefined;
  reader.on('packet', (packet) => packets.push(packet as unknown as DecodedPacket));
  reader.on('error', (error) => {
    fault ??= error;
  });
  const left = reader.parse(copy);
  if (fault !== undefined) throw refuse(`the bytes are not a packet of MQTT: ${fault.message}`);
  if (packets.length !== 1 || left > 0)
    throw refuse(`the bytes are ${packets.length} whole packets and ${left} bytes more, not one packet`);
  return packets[0];
}
