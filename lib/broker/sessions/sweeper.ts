import { afterCommit } from '../../store/after-commit.ts';
import type { Durable } from '../../store/durable.ts';
import { Kind, numberKey } from '../../store/keys.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { Draft } from '../../store/record.ts';
import type { Entry } from '../../store/store.ts';
import type { Services } from '../services.ts';

/** Number of records that one commit deletes. */
const DELETIONS_PER_COMMIT = 1_000;

/** Deletes the segments of sessions that have ended, in order of their end. It reads the keys of the segments from the store. */
export class Sweeper implements Durable {
  isDirty = false;
  readonly #services: Services;
  readonly #ledger: Ledger;
  readonly #sessions = new Set<number>();
  #keys: readonly Buffer[] = [];
  #writing: readonly Buffer[] = [];
  #isBusy = false;
  #isStopped = false;

  constructor(services: Services, ledger: Ledger) {
    this.#services = services;
    this.#ledger = ledger;
  }

  /** Delete the segments of a session; while the broker is not started, at its start. @param session number of the session in keys */
  add(session: number): void {
    this.#sessions.add(session);
    if (this.#services.life.isRunning) this.begin();
  }

  /** Delete the segments of all sessions that were added. */
  begin(): void {
    this.#isStopped = false;
    if (this.#isBusy || this.#sessions.size === 0) return;
    this.#isBusy = true;
    this.#sweep()
      .catch((error: unknown) => {
        if (this.#ledger.isFailed) afterCommit(this.#ledger, () => this.#resume());
        else this.#services.announcer.failed(error, 'deleting queues of ended sessions from the store', undefined);
      })
      .finally(() => {
        this.#isBusy = false;
      });
  }

  #resume(): void {
    if (!this.#isStopped) this.begin();
  }

  /** Stop deleting. The next start continues. */
  stop(): void {
    this.#isStopped = true;
  }

  async #sweep(): Promise<void> {
    while (this.#sessions.size > 0) {
      const keys: Buffer[] = [];
      const done: number[] = [];
      for (const session of this.#sessions) {
        const limit = DELETIONS_PER_COMMIT - keys.length;
        const entries = await this.#read(session, limit);
        if (this.#isStopped) return;
        for (const { key } of entries) keys.push(key);
        if (entries.length === limit) break; // the session may have more segments
        keys.push(numberKey(Kind.garbage, session));
        done.push(session);
        if (keys.length >= DELETIONS_PER_COMMIT) break;
      }
      this.#keys = keys;
      this.#ledger.promise(this);
      await this.#ledger.committed(this.#ledger.ticket);
      for (const session of done) this.#sessions.delete(session);
      if (this.#isStopped) return;
    }
  }

  async #read(session: number, limit: number): Promise<Entry[]> {
    const { work } = this.#services;
    work.begin();
    try {
      return await this.#ledger.read(numberKey(Kind.segment, session), numberKey(Kind.segment, session + 1), limit);
    } finally {
      work.end();
    }
  }

  write(draft: Draft): void {
    this.#writing = this.#keys;
    this.#keys = [];
    for (const key of this.#writing) draft.batch.delete(key);
  }

  committed(): void {
    this.#writing = [];
  }

  commitFailed(): void {
    this.#keys = [...this.#writing, ...this.#keys];
    this.#writing = [];
  }
}
