import type { OutboxEntry, SendingFollower } from '../../lib/index.ts';

/** The queued events of a webhook whose sending is followed, such as by tracing. After a restart, none is. */
export class Sendings {
  readonly #followers = new Map<string, SendingFollower>();
  /** The entry that has left the outbox last, which may be before `begun`. */
  #lastEnded: string | undefined;

  /** Follow the sending of an entry. @param follower undefined: it is not followed */
  begun(id: string, follower: SendingFollower | undefined): void {
    if (follower === undefined) return;
    this.#followers.set(id, follower);
    if (id === this.#lastEnded) this.ended(id, 'overflow');
  }

  /** The headers of a request. A request with several events has none. */
  headersOf(entries: readonly Pick<OutboxEntry, 'id'>[]): string[] {
    const follower = entries.length === 1 ? this.#followers.get(entries[0].id) : undefined;
    return (follower?.headers ?? []).flat();
  }

  /** Note that an entry has left the outbox. @param reason of a drop */
  ended(id: string, reason: string | undefined): void {
    this.#lastEnded = id;
    const follower = this.#followers.get(id);
    this.#followers.delete(id);
    follower?.ended(reason);
  }

  /** Follow no entry any longer, because the webhook is closed. */
  end(): void {
    for (const id of [...this.#followers.keys()]) this.ended(id, 'closed');
  }
}
