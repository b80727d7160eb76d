import type { SourceNotes } from '../../../lib/adapter.ts';

/**
 * The packet ids of messages of QoS 2 of one session at another server, from the message to its PUBREL. They are in the store with the rows of these
 * messages, so that a message that the server sends again after a kill is not taken twice.
 */
export class ReceivedIds {
  readonly #notes: SourceNotes;
  readonly #prefix: string;
  /** The last change. Commits are made in order, so those before it are complete when it is. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param session the server and the client id, which stand for the session */
  constructor(notes: SourceNotes, session: string) {
    this.#notes = notes;
    this.#prefix = `id ${session} `;
  }

  [Symbol.iterator](): Iterator<number> {
    const ids: number[] = [];
    for (const [key] of this.#notes) {
      if (!key.startsWith(this.#prefix)) continue;
      const rest = key.slice(this.#prefix.length);
      if (/^\d+$/.test(rest)) ids.push(Number(rest)); // not that of a longer client id
    }
    return ids.values();
  }

  /** In the turn of the rows. @returns a promise that resolves when both are in the store */
  add(id: number): Promise<void> {
    return this.#changed(this.#notes.set(this.#prefix + id, ''));
  }

  /** The server has released it. @returns a promise that resolves when the store does not have it: the id may stand for another message then */
  delete(id: number): Promise<void> {
    return this.#changed(this.#notes.delete(this.#prefix + id).then(() => undefined));
  }

  /** The server has no session. @returns a promise that resolves when the store has none of them */
  async clear(): Promise<void> {
    await Promise.all([...this].map((id) => this.delete(id)));
  }

  /** Resolves when no change is on its way to the store. */
  async settled(): Promise<void> {
    await this.#last;
  }

  #changed(change: Promise<void>): Promise<void> {
    this.#last = change.catch(() => undefined);
    return change;
  }
}
