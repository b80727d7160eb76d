import { BySize, Sized } from '../base/by-size.ts';

/** The messages of a session in the store, as far as the limit on all of them is concerned. */
export abstract class StoredQueue extends Sized {
  /** Drop the oldest messages of the lowest priority until at most `mostBytes` wait, as far as that is possible now. */
  abstract shorten(mostBytes: number): Promise<void>;
}

/** The backlogs of all sessions in the store, ordered by the bytes that wait in each. */
export class StoredBacklog extends BySize<StoredQueue> {
  /** Bytes of all persisted messages, including those in flight and those that are being handed over. */
  storedBytes = 0;

  /** The persisted bytes of a session have changed. */
  stored(more: number): void {
    this.storedBytes += more;
  }
}
