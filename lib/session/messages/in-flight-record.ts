import { IdSet } from '../../base/collections/id-set.ts';
import { Awaiting, type Inflight, UNSENT } from './inflight.ts';

/*
 * The packet ids of a session as bytes, as they are stored in its flow record:
 *
 * - the number of packet ids in flight (2 bytes), and for each its packet id, its `Awaiting` state, its flags, and the number of its
 *   message (6 bytes; 0 if the message is not needed again);
 * - the number of incoming packet ids that wait for PUBREL (2 bytes), and these ids, with 2 bytes each, or as the bits of an `IdSet` if
 *   that is shorter (from format 2 on). A client may have 65,535 of them, and each commit of the session writes them.
 *
 * The flag `UNSENT` (written from 0.2 on) means that the PUBLISH has never been sent. Version 0.1 ignores and preserves it.
 */

const FLIGHT_BYTES = 10;
const ID_BYTES = 2;

/** The packet ids of a session whose client is away. Their messages are only in the store. */
export interface OfflineFlights {
  /** The packet ids as in the flow record, see `encodeInFlight`. */
  readonly record: Buffer;
  /** Number of messages that wait for PUBACK or PUBREC. */
  readonly unacknowledged: number;
  /** Bytes of these messages, as far as known. After a start they are known once the messages have been read in order to drop some. */
  bytes: number;
  /** The load of the messages in progress, because the client returns. */
  loading: Promise<void> | undefined;
}

/** The encoding of a session without any of these packet ids. */
export const NOTHING_IN_FLIGHT: Buffer = Buffer.alloc(4);

/**
 * Encode the packet ids of a session. Incoming ids are not persisted while a hook still decides on their message.
 * @param isAway the client is not connected. While it is connected, all messages count as sent: they may be sent before the next record is
 *   written
 */
export function encodeInFlight(inflight: Inflight | undefined, isAway: boolean): Buffer {
  // a message that was refused after its packet id was assigned is not sent again
  const ids = (inflight?.inOrder() ?? []).filter((id) => isNeeded(inflight as Inflight, id));
  const awaited = withoutUndecided(inflight?.awaitingRel, inflight?.undecided);
  const size = awaited?.size ?? 0;
  if (ids.length + size === 0) return NOTHING_IN_FLIGHT;
  const bits = awaited !== undefined && awaited.bits.length < size * ID_BYTES ? awaited.bits : undefined;
  const bytes = Buffer.allocUnsafe(4 + ids.length * FLIGHT_BYTES + (bits?.length ?? size * ID_BYTES));
  let at = bytes.writeUInt16BE(ids.length, 0);
  for (const id of ids) {
    const seq = (inflight as Inflight).persistedOf(id)?.seq ?? 0;
    at = bytes.writeUInt16BE(id, at);
    bytes[at++] = (inflight as Inflight).stateOf(id);
    const unsent = isAway && !(inflight as Inflight).wasSent(id) ? UNSENT : 0;
    bytes[at++] = (inflight as Inflight).flagsOf(id) | unsent;
    at = bytes.writeUIntBE(seq, at, 6);
  }
  at = bytes.writeUInt16BE(size, at);
  if (bits !== undefined) bytes.set(bits, at);
  else for (const id of awaited?.values() ?? []) at = bytes.writeUInt16BE(id, at);
  return bytes;
}

function withoutUndecided(awaiting: IdSet | undefined, undecided: ReadonlySet<number> | undefined): IdSet | undefined {
  if (awaiting === undefined || undecided === undefined || undecided.size === 0) return awaiting;
  const ids = new IdSet(awaiting);
  for (const id of undecided) ids.delete(id);
  return ids;
}

function isNeeded(inflight: Inflight, id: number): boolean {
  return inflight.stateOf(id) === Awaiting.pubcomp || inflight.persistedOf(id)?.isDone !== true;
}

/** Get the number of packet ids in flight, and of those that wait for PUBREL. */
export function inFlightCounts(inFlight: Buffer): { readonly inflight: number; readonly awaitingRel: number } {
  const inflight = inFlight.readUInt16BE(0);
  return { inflight, awaitingRel: inFlight.readUInt16BE(2 + inflight * FLIGHT_BYTES) };
}

/** Call a function for each packet id in flight, in order. Its `seq` is 0 if the message is not needed again. */
export function forEachInFlight(
  inFlight: Buffer,
  run: (id: number, state: number, flags: number, seq: number) => void
): void {
  for (let at = 2, left = inFlight.readUInt16BE(0); left > 0; left--, at += FLIGHT_BYTES) {
    const state = inFlight[at + 2];
    const seq = state === Awaiting.pubcomp ? 0 : inFlight.readUIntBE(at + 4, 6);
    run(inFlight.readUInt16BE(at), state, inFlight[at + 3], seq);
  }
}

/**
 * The packet ids of a client that is away.
 * @param inFlight as in the flow record; the object keeps this buffer
 * @param bytes bytes of the messages that wait for PUBACK or PUBREC; 0 if they are not known
 */
export function offlineFlights(inFlight: Buffer, bytes: number): OfflineFlights {
  const record = inFlight.length > NOTHING_IN_FLIGHT.length ? inFlight : NOTHING_IN_FLIGHT;
  return { record, unacknowledged: countUnacknowledged(record), bytes, loading: undefined };
}

/** Count the packet ids in flight that wait for PUBACK or PUBREC. */
function countUnacknowledged(inFlight: Buffer): number {
  let count = 0;
  forEachInFlight(inFlight, (_id, state) => {
    if (state !== Awaiting.pubcomp) count++;
  });
  return count;
}

/** Get the packet ids that wait for PUBREL. */
export function awaitedIds(inFlight: Buffer): IdSet {
  const { inflight, awaitingRel } = inFlightCounts(inFlight);
  const from = 4 + inflight * FLIGHT_BYTES;
  if (inFlight.length - from < awaitingRel * ID_BYTES) return IdSet.of(inFlight.subarray(from), awaitingRel);
  const ids = new IdSet();
  for (let at = from; at < inFlight.length; at += ID_BYTES) ids.add(inFlight.readUInt16BE(at));
  return ids;
}

/** The numbers of the messages in flight of a client that is away. */
export function numbersIn(offline: OfflineFlights | undefined): ReadonlySet<number> {
  const numbers = new Set<number>();
  forEachInFlight(offline?.record ?? NOTHING_IN_FLIGHT, (_id, _state, _flags, seq) => numbers.add(seq));
  return numbers;
}
