import type { DropReason } from '../../events/reasons.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import { Backlog, type BacklogLimits } from '../messages/backlog.ts';
import { forEachInFlight } from '../messages/in-flight-record.ts';

/** The queue from which messages are dropped. */
interface DroppingQueue {
  /** Tell whether a limit of the queue is exceeded. */
  isTooLong(): boolean;
  /** Tell whether the queue exceeds its share of the limit on the queues of all sessions. */
  isTooLarge(): boolean;
  /** @param reason default: the limit that is exceeded */
  drop(persisted: PersistedMessage, reason?: DropReason): void;
  /** Called with the bytes of all messages in flight that were found so far. */
  foundInFlight(bytes: number): void;
}

/** Drops messages beyond the limits of a queue in the store. With priorities it drops the same messages as a backlog in memory would. */
export class Dropper {
  readonly #queue: DroppingQueue;
  readonly #inFlight = new Set<number>();
  #inFlightBytes = 0;
  /** With priorities: the messages that were added and not dropped. */
  readonly #bounds: Backlog | undefined;

  /** @param inFlight the packet ids in flight, whose messages are not dropped */
  constructor(queue: DroppingQueue, limits: BacklogLimits, inFlight: Buffer) {
    this.#queue = queue;
    forEachInFlight(inFlight, (_id, _state, _flags, seq) => this.#inFlight.add(seq));
    if (limits.mqueuePriorities !== undefined)
      this.#bounds = new Backlog(limits, (_message, reason, persisted) =>
        queue.drop(persisted as PersistedMessage, reason)
      );
  }

  /** Add messages, the oldest first. */
  take(messages: readonly PersistedMessage[]): void {
    for (const persisted of messages) {
      if (persisted.isDone) continue;
      if (this.#inFlight.has(persisted.seq)) {
        this.#inFlightBytes += persisted.message.bytes;
        this.#queue.foundInFlight(this.#inFlightBytes);
      } else if (this.#bounds !== undefined) this.#bounds.add(persisted);
      else if (this.#queue.isTooLong()) this.#queue.drop(persisted);
    }
    this.#bounds?.trim(0, 0);
  }

  /** Drop messages beyond the limit of bytes now, with priorities, because all messages have been added. */
  end(): void {
    while (this.#bounds !== undefined && this.#bounds.length > 0 && this.#queue.isTooLarge())
      this.#bounds.dropOldest('total_queue_full');
  }
}
