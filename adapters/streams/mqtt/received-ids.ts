import type { SourceNotes } from '../../../lib/adapter.ts';

/**
 * The packet ids of QoS 2 messages of one session at another server, from the message to its PUBREL. They are stored
 * together with the rows of these messages, so that a message that the server sends again after a kill is not processed
 * twice.
 */
export class ReceivedIds {
  readonly #notes: SourceNotes;
  readonly #prefix: string;
  /** The last change. Commits are in order, so all earlier ones are complete when it is. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param session the server and the client id, which identify the session */
  constructor(notes: SourceNotes, session: string) {
    this.#notes = notes;
    this.#prefix = `id ${session} `;
  }

  [Symbol.iterator](): Iterator<number> {
    const ids: number[] = [];
    for (const [key] of this.#notes) {
      if (!key.startsWith(this.#prefix)) continue;
      const rest = key.slice(this.#prefix.length);
      if (/^\d+$/.test(rest)) ids.push(Number(rest)); // the id may belong to a longer client id
    }
    return ids.values();
  }

  /**
   * Add an id in the same turn as the rows.
   * @returns a promise that resolves when both are in the store
   */
  add(id: number): Promise<void> {
    return this.#changed(this.#notes.set(this.#prefix + id, ''));
  }

  /**
   * Remove an id that the server has released.
   * @returns a promise that resolves when it is no longer stored, because the id may then be used for another message
   */
  delete(id: number): Promise<void> {
    return this.#changed(this.#notes.delete(this.#prefix + id).then(() => undefined));
  }

  /**
   * Remove all ids, because the server has no session.
   * @returns a promise that resolves when the store contains none of them
   */
  async clear(): Promise<void> {
    await Promise.all([...this].map((id) => this.delete(id)));
  }

  /** Resolves when no changes are pending. */
  async settled(): Promise<void> {
    await this.#last;
  }

  #changed(change: Promise<void>): Promise<void> {
    this.#last = change.catch(() => undefined);
    return change;
  }
}
