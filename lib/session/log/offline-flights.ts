import {
  awaitedIds,
  countUnacknowledged,
  forEachInFlight,
  inFlightCounts,
  NOTHING_IN_FLIGHT
} from '../messages/in-flight-record.ts';
import type { Outlet } from '../messages/outlet.ts';

/** The packet ids of a session whose client is away. Their messages are only in the store. */
export class OfflineFlights {
  /** The packet ids as in the flow record, see `encodeInFlight`. */
  readonly record: Buffer;
  /** Number of messages that wait for PUBACK or PUBREC. */
  readonly unacknowledged: number;
  /** Bytes of these messages, as far as known. After a start they are known once the messages have been read in order to drop some. */
  bytes: number;
  /** The load of the messages in progress, because the client returns. */
  #loading: Promise<void> | undefined = undefined;

  /**
   * @param record the packet ids as in the flow record; the object keeps this buffer
   * @param bytes bytes of the messages that wait for PUBACK or PUBREC; 0 if they are not known
   */
  constructor(record: Buffer, bytes: number) {
    this.record = record.length > NOTHING_IN_FLIGHT.length ? record : NOTHING_IN_FLIGHT;
    this.unacknowledged = countUnacknowledged(record);
    this.bytes = bytes;
  }

  /** Number of packet ids in flight. */
  get inflight(): number {
    return inFlightCounts(this.record).inflight;
  }

  /** Number of packet ids that wait for PUBREL. */
  get awaitingRel(): number {
    return inFlightCounts(this.record).awaitingRel;
  }

  get isLoading(): boolean {
    return this.#loading !== undefined;
  }

  /** Resolves when the messages are loaded, or cannot be; undefined: they are not being loaded. */
  get loading(): Promise<void> | undefined {
    return this.#loading?.catch(() => undefined);
  }

  /** Load the messages with this function, unless that is in progress. */
  load(run: () => Promise<void>): Promise<void> {
    this.#loading ??= run().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** Note that messages in flight with at least this many bytes have been read. */
  found(bytes: number): void {
    this.bytes = Math.max(this.bytes, bytes);
  }

  /**
   * Put the packet ids into memory, because the client returns.
   * @param nowMs see `Inflight.restoreRel`
   * @returns packet ids of the messages that are still to be read, by their numbers
   */
  restore(outlet: Outlet, nowMs: number | undefined): Map<number, number> {
    const wanted = new Map<number, number>();
    outlet.inflight?.unload(); // a load that failed may have left some
    forEachInFlight(this.record, (id, state, flags, seq) => {
      outlet.ensureInflight().restore(id, state, flags);
      if (seq > 0) wanted.set(seq, id);
    });
    const awaited = awaitedIds(this.record);
    if (awaited.size > 0) outlet.ensureInflight().restoreRel(awaited, nowMs);
    return wanted;
  }
}
