import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { joinedProgram } from '../support/programs.ts';
import { NO_HTTP } from './shell.ts';

const root = join(import.meta.dirname, '../..');

/** The command `embermq` in a separate process, made from the sources. */
export class CommandProcess {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  readonly #ended: Promise<[number | null, NodeJS.Signals | null]>;

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.child = spawn(process.execPath, [joinedProgram('adapters/cli/main.ts'), ...args], {
      cwd: root,
      env: { ...process.env, ...NO_HTTP, ...env }
    });
    this.child.stdout?.on('data', (chunk) => {
      this.stdout += chunk;
    });
    this.child.stderr?.on('data', (chunk) => {
      this.stderr += chunk;
    });
    this.#ended = once(this.child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  }

  /** The ports and the process id of the `ready` line. Rejects if the process ends before. */
  async ready(): Promise<Record<string, number>> {
    for (;;) {
      const line = /^ready (\{.*\})$/m.exec(this.stdout);
      if (line !== null) return JSON.parse(line[1]);
      const ended = await Promise.race([
        once(this.child.stdout as NonNullable<ChildProcess['stdout']>, 'data'),
        this.#ended.then(() => 'ended')
      ]);
      if (ended === 'ended') throw new Error(`ended before it was ready:\n${this.stderr}`);
    }
  }

  /** Wait for the end. @returns the exit code, or the signal that ended the process */
  async end(): Promise<number | NodeJS.Signals | null> {
    const [code, signal] = await this.#ended;
    return code ?? signal;
  }
}
