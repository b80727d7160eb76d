import type { TrafficSource } from './session-figures.ts';

/** The counters of a connection, in the order in which they are kept. */
export const TRAFFIC_COUNTERS = {
  recvOct: ({ reader }) => reader.receivedBytes,
  recvCnt: ({ reader }) => reader.receivedChunks,
  recvPkt: ({ reader }) => reader.receivedPackets,
  recvMsg: ({ reader }) => reader.receivedMessages,
  sendOct: ({ writer }) => writer.sentBytes,
  sendCnt: ({ writer }) => writer.sentWrites,
  sendPkt: ({ writer }) => writer.sentPackets,
  sendMsg: ({ writer }) => writer.sentMessages
} as const satisfies Readonly<Record<string, (connection: TrafficSource) => number>>;

/** The name of a counter of a connection. */
export type TrafficCounter = keyof typeof TRAFFIC_COUNTERS;

const NAMES = Object.keys(TRAFFIC_COUNTERS) as TrafficCounter[];
const READERS = Object.values(TRAFFIC_COUNTERS);
/** Numbers of a place: that of its session, and the counters. */
const WIDTH = 1 + NAMES.length;
/** Most sessions whose counters are kept. */
const PLACES = 65_536;
const PLACES_OF_CHUNK = 1_024;

/**
 * The counters of the last connections of sessions, in at most 4.5 MiB. A session has its place by its number, so the counters of one of 65,536
 * sessions that were created in a row never replace those of another.
 */
export class LastTraffic {
  readonly #chunks: (Float64Array | undefined)[] = [];

  /** Keep the counters of a connection that a session has had. @param number of the session; 0: it has no place */
  keep(number: number, connection: TrafficSource): void {
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
