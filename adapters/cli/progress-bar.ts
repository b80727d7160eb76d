import type { Shell } from './command.ts';

const WIDTH = 24;
const PAUSE_MS = 100;

/** Shows the progress of an operation in one line of standard error, if that is a terminal. */
export class ProgressBar {
  readonly #shell: Shell;
  readonly #title: string;
  /** The approximate number of bytes to process; 0 if unknown. */
  readonly #expected: number;
  #shownAtMs = 0;
  #width = 0;

  constructor(shell: Shell, title: string, expectedBytes: number) {
    this.#shell = shell;
    this.#title = title;
    this.#expected = expectedBytes;
  }

  /** Update the line, at most every 100 ms. */
  readonly show = ({ records, bytes }: { readonly records: number; readonly bytes: number }): void => {
    const nowMs = performance.now();
    if (this.#shell.stderr.isTTY !== true || nowMs - this.#shownAtMs < PAUSE_MS) return;
    this.#shownAtMs = nowMs;
    const line = `${this.#title} ${this.#bar(bytes)}${records.toLocaleString('en')} records`;
    this.#width = Math.max(this.#width, line.length);
    this.#shell.stderr.write(`\r${line.padEnd(this.#width)}`);
  };

  #bar(bytes: number): string {
    if (this.#expected === 0) return '';
    // The expected size is only an estimate (files are compressed and may contain garbage), so never show 100 %.
    const share = Math.min(bytes / this.#expected, 0.99);
    const filled = Math.round(share * WIDTH);
    return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${Math.floor(share * 100)} % `;
  }

  /** Remove the line. */
  end(): void {
    if (this.#width > 0) this.#shell.stderr.write(`\r${' '.repeat(this.#width)}\r`);
    this.#width = 0;
  }
}
