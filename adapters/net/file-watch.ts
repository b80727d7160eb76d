import { type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Clock } from '../../lib/index.ts';

/** Delay before a change is reported, because certificate and key are often changed one after the other. */
const REPORT_DELAY_MS = 100;

/** Detects changes of files by polling. */
export class FileWatch {
  readonly #clock: Clock;
  readonly #changed: () => void;
  #watching: { readonly files: readonly string[]; readonly interval: number; states: string[] } | undefined;
  #nextLook: unknown;
  #report: unknown;

  /** @param changed called once for changes that follow each other closely */
  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  /**
   * Watch these files instead of the previous ones. Call it before reading the files: each change after the call is
   * detected.
   * @param interval in milliseconds; 0: watch none
   */
  watch(files: readonly string[], interval: number): void {
    this.#unwatch();
    if (interval === 0 || files.length === 0) return;
    // checked now instead of in the background, so that the files are not read earlier
    const states = files.map((file) => stateOf(lookAt(file)));
    this.#watching = { files, interval, states };
    this.#lookLater(interval);
  }

  /** Watch no files, and report no more changes. */
  close(): void {
    this.#unwatch();
    this.#clock.clearTimeout(this.#report);
  }

  #unwatch(): void {
    this.#watching = undefined;
    this.#clock.clearTimeout(this.#nextLook);
  }

  #lookLater(interval: number): void {
    this.#nextLook = this.#clock.setTimeout(() => void this.#look(), interval);
  }

  async #look(): Promise<void> {
    const watching = this.#watching;
    if (watching === undefined) return;
    const states = await Promise.all(watching.files.map((file) => stat(file).then(stateOf, () => MISSING)));
    if (this.#watching !== watching) return;
    if (states.some((state, index) => state !== watching.states[index])) this.#reportSoon();
    watching.states = states;
    this.#lookLater(watching.interval);
  }

  #reportSoon(): void {
    this.#clock.clearTimeout(this.#report);
    this.#report = this.#clock.setTimeout(() => this.#changed(), REPORT_DELAY_MS);
  }
}

/** The state of a file that is missing or unreadable. */
const MISSING = '';

function lookAt(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch {
    return undefined;
  }
}

/**
 * A key that differs after each change of a file. The change time also differs if a copy preserves the modification
 * time.
 */
function stateOf(stats: Stats | undefined): string {
  return stats === undefined ? MISSING : `${stats.ino} ${stats.size} ${stats.ctimeMs}`;
}
