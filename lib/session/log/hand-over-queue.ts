import { BrokerError } from '../../base/errors.ts';
import { type PersistedMessage, segmentFirst } from '../../store/segment.ts';
import { forEachInFlight } from '../messages/in-flight-record.ts';
import { UNSENT } from '../messages/inflight.ts';
import type { SessionLog } from './log.ts';
import { SegmentReader } from './segment-reader.ts';

/**
 * The messages of an ended session in order, in memory or not, to hand them over to other members of its share groups. Those that other
 * sessions have handed over to this one come first; for them, the records up to the last one are read once more.
 */
export class HandOverQueue {
  readonly #log: SessionLog;
  readonly #reader: SegmentReader;
  /** QoS of the messages in flight, by message number. */
  readonly #flights = new Map<number, number>();
  /** First number of the last messages that were returned, and of the next ones. */
  #last: number;
  #from: number;
  /** True if only messages that are to be sent first are returned. */
  #isFirstPass: boolean;

  /** @param inFlight the packet ids in flight, see `encodeInFlight` */
  constructor(log: SessionLog, inFlight: Buffer) {
    this.#log = log;
    this.#reader = new SegmentReader(log);
    this.#last = this.#from = log.messages.pageFrom;
    this.#isFirstPass = log.messages.hasUnreadFirst;
    forEachInFlight(inFlight, (_id, _state, flags, seq) => {
      if ((flags & UNSENT) === 0) this.#flights.set(seq, flags & 3);
    });
  }

  /**
   * Get the next messages that are not done, in order. The messages of the previous call must be done.
   * @returns undefined if there are no more
   * @throws the error of the store
   */
  async next(): Promise<readonly PersistedMessage[] | undefined> {
    if (this.#isFirstPass) {
      for (let page = await this.#read(); page !== undefined; page = await this.#read()) {
        const first = page.filter(({ isFirst }) => isFirst);
        if (first.length > 0) return first;
      }
      this.#isFirstPass = false;
      this.#last = this.#from = this.#log.messages.pageFrom;
    }
    return this.#read();
  }

  async #read(): Promise<readonly PersistedMessage[] | undefined> {
    const { messages } = this.#log;
    for (;;) {
      const from = (this.#last = this.#from);
      if (this.#isFirstPass && from >= messages.firstTo) return undefined;
      if (!this.#isFirstPass) messages.skipTo(from);
      const { unwritten } = messages;
      if (from >= unwritten) {
        if (from >= messages.next) return undefined;
        this.#from = messages.next;
        return messages.outsideSegments(from).filter(({ isDone }) => !isDone);
      }
      const [entry] = await this.#reader.records(from, unwritten, 1);
      if (entry === undefined) {
        this.#from = unwritten;
        continue;
      }
      this.#from = segmentFirst(entry.key) + 1;
      const read = this.#reader.read(entry);
      if (read instanceof BrokerError) await this.#reader.discard(entry, unwritten, read);
      else if (read.messages.length > 0) return read.messages;
    }
  }

  /** Make `next` return the messages of its last call again, except those that are done. */
  repeat(): void {
    this.#from = this.#last;
  }

  /** QoS at which a message is in flight; undefined if it was never sent. */
  flightQos({ seq }: PersistedMessage): number | undefined {
    return this.#flights.get(seq);
  }
}
