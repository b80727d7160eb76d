import { Kind, numberKey } from '../store/keys.ts';
import type { Durable, Ledger } from '../store/ledger.ts';
import type { Draft } from '../store/record.ts';
import type { Entry } from '../store/store.ts';
import type { Core } from './core.ts';

const SWEPT_AT_ONCE = 1_000;

/** Deletes the segments of sessions that are over: which ones there are only the store knows. */
export class Sweeper implements Durable {
  isDirty = false;
  readonly #core: Core;
  readonly #ledger: Ledger;
  readonly #sessions: number[] = [];
  #keys: readonly Buffer[] = [];
  #writing: readonly Buffer[] = [];
  #isBusy = false;
  #isStopped = false;

  constructor(core: Core, ledger: Ledger) {
    this.#core = core;
    this.#ledger = ledger;
  }

  add(session: number): void {
    this.#sessions.push(session);
  }

  begin(): void {
    this.#isStopped = false;
    if (this.#isBusy || this.#sessions.length === 0) return;
    this.#isBusy = true;
    this.#sweep()
      .catch((error: unknown) => {
        if (this.#ledger.isFailed) this.#goOnLater();
        else this.#core.failed(error, 'sweeping the store', undefined);
      })
      .finally(() => {
        this.#isBusy = false;
      });
  }

  #goOnLater(): void {
    this.#ledger.wait({
      commitKept: () => {
        if (!this.#isStopped) this.begin();
        return false;
      },
      commitFailed: () => true
    });
  }

  /** What is left is gone through at the next start. */
  stop(): void {
    this.#isStopped = true;
  }

  async #sweep(): Promise<void> {
    for (let session = this.#sessions.at(-1); session !== undefined; session = this.#sessions.at(-1)) {
      const from = numberKey(Kind.segment, session);
      const to = numberKey(Kind.segment, session + 1);
      for (let isDone = false; !isDone; ) {
        const entries = await this.#read(from, to);
        if (this.#isStopped) return;
        isDone = entries.length < SWEPT_AT_ONCE;
        this.#keys = entries.map(({ key }) => key);
        if (isDone) this.#keys = [...this.#keys, numberKey(Kind.garbage, session)];
        this.#ledger.promise(this);
        await this.#ledger.kept(this.#ledger.ticket);
        if (this.#isStopped) return;
      }
      this.#sessions.splice(this.#sessions.indexOf(session), 1);
    }
  }

  async #read(from: Buffer, to: Buffer): Promise<Entry[]> {
    const { work } = this.#core;
    work.begin();
    try {
      return await this.#ledger.read(from, to, SWEPT_AT_ONCE);
    } finally {
      work.end();
    }
  }

  write(draft: Draft): void {
    this.#writing = this.#keys;
    this.#keys = [];
    for (const key of this.#writing) draft.batch.delete(key);
  }

  kept(): void {
    this.#writing = [];
  }

  lost(): void {
    this.#keys = [...this.#writing, ...this.#keys];
    this.#writing = [];
  }
}
