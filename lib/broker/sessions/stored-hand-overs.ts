import { BaseTimer, FunctionTimer } from '../../base/timing-wheel.ts';
import type { Session } from '../../session/session.ts';
import { afterCommit } from '../../store/after-commit.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { Services } from '../services.ts';
import type { StoredHandOver } from './hand-over.ts';

/** Maximum number of hand-overs that run at the same time. Each has a record of its queue in memory, of up to 128 KB. */
const MAX_RUNNING = 16;
/** Delay before a failed hand-over is tried again. It doubles with each failure, up to `MAX_RETRY_MS`. */
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 300_000;
/** Number of free bytes before the reserve of the store below which hand-overs pause; the interval of the checks during a pause. */
const MIN_FREE_BYTES = 4_194_304;
const SPACE_CHECK_MS = 1_000;

/**
 * Runs the hand-overs of sessions in the store, a few at a time. None run while the store is nearly full, because a message takes its space
 * twice until its original record is deleted and compacted.
 */
export class StoredHandOvers extends BaseTimer {
  readonly #services: Services;
  readonly #ledger: Ledger;
  readonly #all = new Map<StoredHandOver, Session>();
  /** Hand-overs that are ready to run, in order. */
  readonly #waiting = new Set<StoredHandOver>();
  readonly #running = new Set<StoredHandOver>();
  /** True if hand-overs are paused, because the store has too little space. */
  #isPaused = false;

  constructor(services: Services, ledger: Ledger) {
    super();
    this.#services = services;
    this.#ledger = ledger;
  }

  add(session: Session, handOver: StoredHandOver): void {
    this.#all.set(handOver, session);
    this.#waiting.add(handOver);
    this.#runWaiting();
  }

  /** Run all hand-overs when the broker has started, including those that were interrupted by a stop or had failed. */
  begin(): void {
    this.#isPaused = false;
    for (const handOver of this.#all.keys()) if (!this.#running.has(handOver)) this.#waiting.add(handOver);
    this.#runWaiting();
  }

  /** End a pause. The next hand-over checks the space again. */
  ring(): void {
    this.#isPaused = false;
    this.#runWaiting();
  }

  get #mayRun(): boolean {
    return this.#services.life.isRunning && !this.#isPaused;
  }

  /** Tell whether the next record may be handed over. @throws the errors of the store */
  async #mayContinue(): Promise<boolean> {
    if (!this.#mayRun) return false;
    const { work, wheel } = this.#services;
    const freeBytes = this.#ledger.store.freeBytes?.();
    const free = freeBytes && (await work.during(freeBytes));
    if (free !== undefined && free < MIN_FREE_BYTES && this.#mayRun) {
      this.#isPaused = true;
      wheel.arm(this, SPACE_CHECK_MS);
    }
    return this.#mayRun;
  }

  #runWaiting(): void {
    for (const handOver of this.#waiting) {
      if (!this.#mayRun || this.#running.size >= MAX_RUNNING) return;
      this.#waiting.delete(handOver);
      this.#running.add(handOver);
      void this.#run(handOver).finally(() => {
        this.#running.delete(handOver);
        this.#runWaiting();
      });
    }
  }

  async #run(handOver: StoredHandOver): Promise<void> {
    const ledger = this.#ledger;
    const session = this.#all.get(handOver);
    try {
      if (await handOver.run(() => this.#mayContinue())) {
        this.#all.delete(handOver);
        session?.log?.end();
      } else this.#waiting.add(handOver);
    } catch (error) {
      if (!ledger.isOpen)
        this.#waiting.add(handOver); // the next start runs it
      else if (ledger.isFailed)
        afterCommit(ledger, () => this.#runAgain(handOver)); // until then each attempt would fail at once, in an endless loop
      else {
        this.#services.announcer.failed(error, 'handing messages over', session?.client);
        if ((error as { code?: unknown }).code !== 'STORE_TOO_NEW') this.#runLater(handOver);
      }
    }
  }

  #runLater(handOver: StoredHandOver): void {
    const delayMs = Math.min(FIRST_RETRY_MS * 2 ** handOver.failed(), MAX_RETRY_MS);
    this.#services.wheel.arm(new FunctionTimer(() => this.#runAgain(handOver)), delayMs);
  }

  #runAgain(handOver: StoredHandOver): void {
    if (!this.#all.has(handOver) || this.#running.has(handOver)) return; // a restart of the broker has run it in the meantime
    this.#waiting.add(handOver);
    this.#runWaiting();
  }
}
