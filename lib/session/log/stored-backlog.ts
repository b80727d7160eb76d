import { BySize, Sized } from '../../base/collections/by-size.ts';

/** The queue of a session in the store, as the limit on all queues sees it. */
export abstract class StoredQueue extends Sized {
  /** Drop the oldest committed messages of the lowest priority until at most `mostBytes` of them wait, as far as this is possible now. */
  abstract shorten(mostBytes: number): Promise<void>;
}

/** The backlogs of all sessions in the store, ordered by the bytes that wait in each. */
export class StoredBacklog extends BySize<StoredQueue> {
  /** Bytes of all persisted messages, including those in flight and those that are being handed over. */
  storedBytes = 0;

  /** Note that the persisted bytes of a session have changed. */
  stored(more: number): void {
    this.storedBytes += more;
  }
}
