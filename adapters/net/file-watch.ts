import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import type { Clock } from '../../lib/index.ts';

/** Delay before a change is reported, because certificate and key are often changed one after the other. */
const REPORT_DELAY_MS = 100;

/** Notices when files change. */
export class FileWatch {
  readonly #clock: Clock;
  readonly #changed: () => void;
  #watched: { readonly file: string; readonly listener: StatsListener }[] = [];
  #timer: unknown;

  /** @param changed called once for changes that follow each other closely */
  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Watch these files instead of the previous ones. @param interval in milliseconds; 0: watch none */
  watch(files: readonly string[], interval: number): void {
    this.#unwatch();
    if (interval === 0) return;
    for (const file of files) {
      const listener: StatsListener = () => this.#reportSoon();
      watchFile(file, { interval, persistent: false }, listener);
      this.#watched.push({ file, listener });
    }
  }

  /** Watch no files, and report no more changes. */
  close(): void {
    this.#unwatch();
    this.#clock.clearTimeout(this.#timer);
  }

  #unwatch(): void {
    for (const { file, listener } of this.#watched.splice(0)) unwatchFile(file, listener);
  }

  #reportSoon(): void {
    this.#clock.clearTimeout(this.#timer);
    this.#timer = this.#clock.setTimeout(() => this.#changed(), REPORT_DELAY_MS);
  }
}
