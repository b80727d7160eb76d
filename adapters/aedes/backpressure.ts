import type { Client } from './client.ts';

/** A call of `published`: it resolves to the error with which the handler has called back. */
type Call = Promise<Error | undefined>;

/** The pending calls of `published`, by client; null: for packets without a publishing client. */
export class Backpressure {
  readonly #pending = new Map<Client | null, Promise<unknown>>();
  /** The call of the packet that `publish` is publishing. */
  #own: Call | undefined;

  /** Make the next packet of the client wait for this call as well. */
  add(client: Client | null, call: Call): void {
    this.#own ??= call; // later calls are for packets published by its subscribers
    const all = Promise.all([this.#pending.get(client), call]);
    this.#pending.set(client, all);
    void all.then(() => {
      if (this.#pending.get(client) === all) this.#pending.delete(client);
    });
  }

  /** Resolves when all calls for packets of the client have called back; undefined: none are pending. */
  of(client: Client): Promise<unknown> | undefined {
    return this.#pending.get(client);
  }

  /**
   * Publish one packet of the app.
   * @returns the call of `published` for it; undefined if a subscriber publishes it while it receives another packet
   */
  async publish(client: Client | null, publish: () => Promise<unknown>): Promise<Call | undefined> {
    const outer = this.#own;
    this.#own = undefined;
    const done = publish();
    const own = this.#own as Call | undefined;
    this.#own = outer;
    await done;
    if (own === undefined) await this.#pending.get(client); // published by a subscriber, after the packet that it received
    return own;
  }
}
