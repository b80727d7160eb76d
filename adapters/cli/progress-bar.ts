import type { Shell } from './command.ts';

const WIDTH = 24;
const PAUSE_MS = 100;

/** How far something is, on a terminal: a line of standard error that is written again and again. Elsewhere nothing. */
export class ProgressBar {
  readonly #shell: Shell;
  readonly #title: string;
  /** Bytes that are expected, roughly; 0: nobody knows. */
  readonly #expected: number;
  #shownAtMs = 0;
  #width = 0;

  constructor(shell: Shell, title: string, expectedBytes: number) {
    this.#shell = shell;
    this.#title = title;
    this.#expected = expectedBytes;
  }

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
    // what lies on a disk is compressed, or not cleared up yet: an estimate never says that all is done
    const share = Math.min(bytes / this.#expected, 0.99);
    const filled = Math.round(share * WIDTH);
    return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${Math.floor(share * 100)} % `;
  }

  /** Take the line away. */
  end(): void {
    if (this.#width > 0) this.#shell.stderr.write(`\r${' '.repeat(this.#width)}\r`);
    this.#width = 0;
  }
}
