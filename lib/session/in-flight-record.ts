import { IdSet } from '../base/id-set.ts';
import { Awaiting, type Inflight, UNSENT } from './inflight.ts';

/*
 * What is in flight and awaited of a session whose client is away, as bytes, which is how the flow record has it: how many are in flight,
 * of each its packet id, what it waits for, flags and number (0: its message is not needed again); how many are awaited, and their ids, 16 bit
 * each, or as the bits of an `IdSet` where that is shorter (from format 2 on): any client may have 65,535 awaited, and they are written with
 * each commit that its session has a part in.
 *
 * `UNSENT` among the flags (written from 0.2 on) means that the PUBLISH has never been sent. Version 0.1 ignores the bit and keeps it.
 */

const FLIGHT_BYTES = 10;
const ID_BYTES = 2;

export const NOTHING_IN_FLIGHT: Buffer = Buffer.alloc(4);

/**
 * @param awaiting packet ids that wait for PUBREL
 * @param undecided those of them that are not to be kept
 * @param isAway the client is not connected. While it is, all count as sent: they may be on their way before the next record is written
 */
export function encodeInFlight(
  inflight: Inflight | undefined,
  awaiting: IdSet | undefined,
  undecided: ReadonlySet<number> | undefined,
  isAway: boolean
): Buffer {
  // a message that was refused after it had taken an id is not sent again
  const ids = (inflight?.inOrder() ?? []).filter((id) => isNeeded(inflight as Inflight, id));
  const awaited = withoutUndecided(awaiting, undecided);
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

/** How many are in flight, and how many wait for PUBREL. */
export function inFlightCounts(inFlight: Buffer): { readonly inflight: number; readonly awaitingRel: number } {
  const inflight = inFlight.readUInt16BE(0);
  return { inflight, awaitingRel: inFlight.readUInt16BE(2 + inflight * FLIGHT_BYTES) };
}

/** Every one in flight, in order. @param seq 0 where its message is not needed again */
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

/** Messages in flight that are not acknowledged. */
export function countUnacknowledged(inFlight: Buffer): number {
  let count = 0;
  forEachInFlight(inFlight, (_id, state) => {
    if (state !== Awaiting.pubcomp) count++;
  });
  return count;
}

/** Packet ids that wait for PUBREL. */
export function awaitedIds(inFlight: Buffer): IdSet {
  const { inflight, awaitingRel } = inFlightCounts(inFlight);
  const from = 4 + inflight * FLIGHT_BYTES;
  if (inFlight.length - from < awaitingRel * ID_BYTES) return IdSet.of(inFlight.subarray(from), awaitingRel);
  const ids = new IdSet();
  for (let at = from; at < inFlight.length; at += ID_BYTES) ids.add(inFlight.readUInt16BE(at));
  return ids;
}
