import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const COMMAND = join(root, 'dist/adapters/cli/main.js');
const SHIFTED = join(import.meta.dirname, 'shifted-broker.mjs');
/** Real time after which a broker that is not ready is a failure. */
const PATIENCE_MS = 20_000;

/** A broker of the built package in a process of its own, on a folder. */
export class BrokerProcess {
  readonly child: ChildProcess;
  /** What it wrote to standard error besides where its state is. */
  complaints = '';
  #stdout = '';
  readonly #ended: Promise<unknown>;

  /** @param aheadMs how far its wall clock is ahead; undefined: `embermq serve` itself */
  constructor(folder: string, aheadMs: number | undefined) {
    const args =
      aheadMs === undefined
        ? [COMMAND, 'serve', '--data-dir', folder, '--mqtt-port', '0', '--ws-port', 'off']
        : [SHIFTED, folder, String(aheadMs)];
    this.child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#ended = once(this.child, 'close');
    this.child.stdout?.on('data', (chunk) => {
      this.#stdout += chunk;
    });
    this.child.stderr?.on('data', (chunk) => {
      this.complaints += String(chunk).replace(/^state is kept in .*\n/m, '');
    });
  }

  /** @returns its port; undefined when it was killed before. Throws what it said when it ended by itself, or is not ready in time */
  async ready(): Promise<number | undefined> {
    const guard = setTimeout(() => this.child.kill('SIGABRT'), PATIENCE_MS);
    try {
      for (;;) {
        const line = /^ready (\{.*\})$/m.exec(this.#stdout);
        if (line !== null) return (JSON.parse(line[1]) as { mqtt: number }).mqtt;
        if (this.child.stdout === null || this.child.stdout.readableEnded) break;
        await Promise.race([once(this.child.stdout, 'data'), this.#ended]);
        if (this.child.exitCode !== null || this.child.signalCode !== null) break;
      }
      await this.#ended;
      if (this.child.signalCode === 'SIGKILL') return undefined;
      throw new Error(`the broker did not start: ${this.child.signalCode ?? this.child.exitCode}: ${this.complaints}`);
    } finally {
      clearTimeout(guard);
    }
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.#ended;
  }
}
