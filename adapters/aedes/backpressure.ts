import type { Client } from './client.ts';

/** The calls of `published` that have not called back, by client; null: for packets that no client has published. */
export class Backpressure {
  readonly #pending = new Map<Client | null, Promise<Error | undefined>>();

  /** Wait for this call as well. */
  add(client: Client | null, call: Promise<Error | undefined>): void {
    const before = this.#pending.get(client);
    const all = Promise.all([before, call]).then((errors) => errors.find((error) => error !== undefined));
    this.#pending.set(client, all);
    void all.then(() => {
      if (this.#pending.get(client) === all) this.#pending.delete(client);
    });
  }

  /** Resolves to the first error when all calls have called back; undefined: there is none. */
  of(client: Client | null): Promise<Error | undefined> | undefined {
    return this.#pending.get(client);
  }
}
