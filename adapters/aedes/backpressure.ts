import type { Client } from './client.ts';

/** A call of `published`: it resolves to the error with which the handler has called back. */
type Call = Promise<Error | undefined>;

/** The calls of `published` that have not called back, by client; null: for packets that no client has published. */
export class Backpressure {
  readonly #pending = new Map<Client | null, Promise<unknown>>();
  #last: Call | undefined;

  /** The next packet of the client waits for this call as well. */
  add(client: Client | null, call: Call): void {
    this.#last = call;
    const all = Promise.all([this.#pending.get(client), call]);
    this.#pending.set(client, all);
    void all.then(() => {
      if (this.#pending.get(client) === all) this.#pending.delete(client);
    });
  }

  /** Resolves when all calls for packets of the client have called back; undefined: none is in progress. */
  of(client: Client): Promise<unknown> | undefined {
    return this.#pending.get(client);
  }

  /**
   * Publish one packet.
   * @returns the call of `published` for it, if the packet is published at once
   */
  async publish(publish: () => Promise<unknown>): Promise<Call | undefined> {
    this.#last = undefined;
    const done = publish();
    const call = this.#last;
    await done;
    return call;
  }
}
