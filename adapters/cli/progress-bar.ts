import type { Shell } from './command.ts';

const WIDTH = 24;
const PAUSE_MS = 100;
/** Before this time, and this share, an estimate of the time left would be a guess. */
const ESTIMATED_AFTER_MS = 2_000;
const MIN_SHARE = 0.02;

/**
 * The time left for the rest of a work at the speed so far: `, ~12 s left`; empty while it is not known.
 * @param share the part that is done, from 0 to 1
 */
export function timeLeft(share: number, elapsedMs: number): string {
  if (elapsedMs < ESTIMATED_AFTER_MS || share < MIN_SHARE || share >= 1) return '';
  const seconds = Math.ceil((elapsedMs * (1 - share)) / share / 1_000);
  return `, ~${seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`} left`;
}

/** Shows the progress of an operation in one line of standard error, if that is a terminal. */
export class ProgressBar {
  readonly #shell: Shell;
  readonly #title: string;
  /** The approximate number of bytes to process; 0 if unknown. */
  readonly #expected: number;
  readonly #beganAtMs = performance.now();
  #shownAtMs = 0;
  #records = 0;
  #width = 0;

  constructor(shell: Shell, title: string, expectedBytes: number) {
    this.#shell = shell;
    this.#title = title;
    this.#expected = expectedBytes;
  }

  /** Update the line, at most every 100 ms. */
  readonly show = ({ records, bytes }: { readonly records: number; readonly bytes: number }): void => {
    const nowMs = performance.now();
    this.#records = records;
    if (this.#shell.stderr.isTTY !== true || nowMs - this.#shownAtMs < PAUSE_MS) return;
    this.#shownAtMs = nowMs;
    const line = `${this.#title} ${this.#bar(bytes)}${records.toLocaleString('en')} records${this.#left(bytes, nowMs)}`;
    this.#width = Math.max(this.#width, line.length);
    this.#shell.stderr.write(`\r${line.padEnd(this.#width)}`);
  };

  #bar(bytes: number): string {
    if (this.#expected === 0) return '';
    const share = this.#share(bytes);
    const filled = Math.round(share * WIDTH);
    return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${Math.floor(share * 100)} % `;
  }

  /** The expected size is only an estimate (files are compressed and may contain garbage), so this is never 1. */
  #share(bytes: number): number {
    return Math.min(bytes / this.#expected, 0.99);
  }

  #left(bytes: number, nowMs: number): string {
    return this.#expected === 0 ? '' : timeLeft(this.#share(bytes), nowMs - this.#beganAtMs);
  }

  /** Replace the line by a summary, on a terminal. */
  finish(): void {
    this.end();
    if (this.#shell.stderr.isTTY !== true) return;
    const seconds = ((performance.now() - this.#beganAtMs) / 1_000).toFixed(1);
    this.#shell.stderr.write(`${this.#title} ${this.#records.toLocaleString('en')} records in ${seconds} s\n`);
  }

  /** Remove the line. */
  end(): void {
    if (this.#width > 0) this.#shell.stderr.write(`\r${' '.repeat(this.#width)}\r`);
    this.#width = 0;
  }
}
