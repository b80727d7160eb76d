/** The first bytes of acknowledgements: packet type and flags [MQTT-2.1.3-1]. */
export const PUBACK = 0x40;
export const PUBREC = 0x50;
export const PUBREL = 0x62;
export const PUBCOMP = 0x70;

/** Encode an acknowledgement without a reason code as one number of four bytes. @param first its first byte */
export function shortAck(first: number, id: number): number {
  return (first << 24) | (2 << 16) | id;
}
