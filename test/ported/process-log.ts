// Programs of other projects in separate processes, whose log tells what they have done.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Arrivals } from './arrivals.ts';

interface ProcessOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A process and the lines that it has printed. */
export class LoggedProcess implements AsyncDisposable {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #arrivals = new Arrivals();
  readonly #closed: Promise<unknown>;

  /** @param env variables in addition to those of this process */
  constructor(command: string, args: readonly string[], { cwd, env = {} }: ProcessOptions) {
    const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...inherited } = process.env;
    this.#child = spawn(command, args, { cwd, env: { ...inherited, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#closed = once(this.#child, 'close');
    for (const stream of [this.#child.stdout, this.#child.stderr])
      createInterface(stream as NonNullable<typeof stream>).on('line', (line) => {
        this.lines.push(line);
        this.#arrivals.notify();
      });
  }

  /**
   * Resolves with the first line that contains a text.
   * @param from the number of lines to ignore
   * @throws Error with the log if the process ends before, or after a minute
   */
  logged(text: string, from = 0): Promise<string> {
    return this.#arrivals.wait(
      () => this.lines.slice(from).find((line) => line.includes(text)),
      () => `no line contains "${text}":\n${this.lines.join('\n')}`,
      this.#closed
    );
  }

  /** Ends the process and waits until it has ended. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill(signal);
    await this.#closed;
  }

  /** Resolves when the process has ended on its own. */
  async ended(): Promise<void> {
    await this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end('SIGKILL');
  }
}
