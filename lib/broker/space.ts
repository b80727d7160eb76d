import type { Store } from '../store/store.ts';
import type { Core } from './core.ts';

/** So much may be taken besides twice what is kept. */
const SLACK_BYTES = 33_554_432;
/** Of a session and its subscriptions; roughly. */
const SESSION_BYTES = 1_024;

/** Has the store give back the space of what was deleted: LevelDB does so by itself only where much is written. */
export class Space {
  readonly #core: Core;
  readonly #store: Store;
  /** What was taken besides the messages when all was compact. */
  #besides = 0;
  #isBusy = false;

  constructor(core: Core, store: Store) {
    this.#core = core;
    this.#store = store;
  }

  /** Look how much the store takes, and compact it if that is far more than it should. */
  look(): void {
    if (this.#isBusy || this.#store.size === undefined || this.#store.compact === undefined) return;
    this.#isBusy = true;
    this.#reclaim(this.#store as Required<Store>)
      .catch((error: unknown) => {
        if (!this.#isClosed) this.#core.failed(error, 'giving back space of the store', undefined);
      })
      .finally(() => {
        this.#isBusy = false;
      });
  }

  get #isClosed(): boolean {
    const { ledger } = this.#core;
    return ledger === undefined || !ledger.isOpen || ledger.isFailed;
  }

  async #reclaim(store: Required<Store>): Promise<void> {
    if (this.#isClosed || (await store.size()) <= 2 * (this.#kept + this.#besides) + SLACK_BYTES) return;
    await store.compact();
    if (!this.#isClosed) this.#besides = Math.max(0, (await store.size()) - this.#kept);
  }

  /** Bytes of what is kept, roughly. */
  get #kept(): number {
    const { sessions, retained, delayed } = this.#core;
    let bytes = retained.bytes + delayed.bytes;
    for (const { log } of sessions.values()) if (log !== undefined) bytes += log.bytes + SESSION_BYTES;
    return bytes;
  }
}
