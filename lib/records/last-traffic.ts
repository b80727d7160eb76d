import type { CountedTraffic } from './session-counters.ts';

/** The counters of a connection, in the order in which they are stored. */
export const TRAFFIC_COUNTERS = {
  recvOct: ({ reader }) => reader.receivedBytes,
  recvCnt: ({ reader }) => reader.receivedChunks,
  recvPkt: ({ reader }) => reader.receivedPackets,
  recvMsg: ({ reader }) => reader.receivedMessages,
  sendOct: ({ writer }) => writer.sentBytes,
  sendCnt: ({ writer }) => writer.sentWrites,
  sendPkt: ({ writer }) => writer.sentPackets,
  sendMsg: ({ writer }) => writer.sentMessages
} as const satisfies Readonly<Record<string, (connection: CountedTraffic) => number>>;

/** The name of a counter of a connection. */
export type TrafficCounter = keyof typeof TRAFFIC_COUNTERS;

const NAMES = Object.keys(TRAFFIC_COUNTERS) as TrafficCounter[];
const READERS = Object.values(TRAFFIC_COUNTERS);
/** Number of values stored for a session: its number and the counters. */
const WIDTH = 1 + NAMES.length;
/** Maximum number of sessions whose counters are kept. */
const PLACES = 65_536;
const PLACES_OF_CHUNK = 1_024;

/**
 * The counters of the last connections of sessions, in at most 4.5 MiB. The number of a session determines its place,
 * so among 65,536 sessions created in sequence, the counters of one never replace those of another.
 */
export class LastTraffic {
  readonly #chunks: (Float64Array | undefined)[] = [];

  /** Keep the counters of a session's last connection. @param number number of the session; 0 if it has no place */
  keep(number: number, connection: CountedTraffic): void {
    if (number === 0) return;
    const place = number % PLACES;
    const chunk = (this.#chunks[Math.floor(place / PLACES_OF_CHUNK)] ??= new Float64Array(WIDTH * PLACES_OF_CHUNK));
    let at = (place % PLACES_OF_CHUNK) * WIDTH;
    chunk[at++] = number;
    for (const read of READERS) chunk[at++] = read(connection);
  }

  /** A counter of the last connection of a session; 0 if it is not kept. */
  count(number: number, name: TrafficCounter): number {
    const place = number % PLACES;
    const chunk = this.#chunks[Math.floor(place / PLACES_OF_CHUNK)];
    const at = (place % PLACES_OF_CHUNK) * WIDTH;
    return chunk === undefined || chunk[at] !== number || number === 0 ? 0 : chunk[at + 1 + NAMES.indexOf(name)];
  }
}
