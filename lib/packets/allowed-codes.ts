import { REFUSALS_BY_CODE } from './connect-refusals.ts';

/** The packets that carry a reason code. DISCONNECT and AUTH have one row per sender. */
export type CodeSet = keyof typeof CODES;

/** The reason codes that each packet may carry (MQTT 5.0, chapter 3). */
const CODES = {
  // [MQTT-3.2.2-8]
  connack: [0x00, ...REFUSALS_BY_CODE.keys()],
  // [MQTT-3.4.2-1], [MQTT-3.5.2-1]
  puback: [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
  pubrec: [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
  // [MQTT-3.6.2-1], [MQTT-3.7.2-1]
  pubrel: [0x00, 0x92],
  pubcomp: [0x00, 0x92],
  // [MQTT-3.9.3-2]
  suback: [0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2],
  // [MQTT-3.11.3-2]
  unsuback: [0x00, 0x11, 0x80, 0x83, 0x87, 0x8f, 0x91],
  // [MQTT-3.14.2-1]
  disconnect: [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99],
  // The table in 3.14.2.1 omits 0x8c, which the broker therefore does not send. Section 2.4 lists it for DISCONNECT, so a client accepts it.
  disconnectFromServer: [
    0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
    0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2
  ],
  // [MQTT-3.15.2-1]
  auth: [0x18, 0x19],
  authFromServer: [0x00, 0x18]
} as const;

const SETS = Object.keys(CODES) as CodeSet[];

const BITS = Object.fromEntries(SETS.map((set, index) => [set, 1 << index])) as Record<CodeSet, number>;

/** For each code, one bit per packet that may carry it. */
const ALLOWED = new Uint16Array(256);
for (const set of SETS) for (const code of CODES[set]) ALLOWED[code] |= BITS[set];

/**
 * Tell whether the specification allows a reason code in a packet.
 * @param set the packet; `disconnect` and `auth` mean those that a client sends
 * @param code 0..255
 */
export function isAllowedCode(set: CodeSet, code: number): boolean {
  return (ALLOWED[code] & BITS[set]) !== 0;
}
