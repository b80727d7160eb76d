import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Clock } from '../../lib/index.ts';
import { withDeadline } from '../outgoing/index.ts';
import { installError } from './errors.ts';

/** Maximum size of the output that is kept, from its end. */
const MAX_OUTPUT_BYTES = 64 * 1024;
/** Number of characters of the output in an error. */
const SHOWN_CHARACTERS = 500;
/** Time for which the output is read after the script has ended, because a process that it started may keep it open. */
const OUTPUT_GRACE_MS = 500;

/** The parameters of a run of a script. */
interface ScriptRun {
  readonly folder: string;
  readonly args: readonly string[];
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly closing: AbortSignal;
}

/**
 * Run `install.sh` of an unpacked archive, with the rights and the environment of this process.
 * @returns its output, at most the last 64 KB
 * @throws BrokerError PLUGIN_INSTALL_FAILED: it ended with a code other than 0, or took too long. All its processes are
 * then ended
 */
export async function runInstallScript(run: ScriptRun): Promise<string> {
  const { folder, args, timeoutMs, clock, closing } = run;
  const output = new LastBytes();
  // a separate process group, so that started processes can be ended with it
  const child = spawn('/bin/sh', ['install.sh', ...args], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe']
  });
  child.stdout.on('data', (chunk: Buffer) => output.add(chunk));
  child.stderr.on('data', (chunk: Buffer) => output.add(chunk));
  const late = () => installError(`install.sh took longer than ${timeoutMs} ms; ${output.shown()}`);
  const closed = once(child, 'close').catch(() => {}); // an error also ends the process
  let hasEnded = false;
  try {
    const [code, signal] = await withDeadline({ clock, ms: timeoutMs, late, outers: [closing] }, async (ending) => {
      const exit = (await once(child, 'exit', { signal: ending })) as [number | null, string | null];
      await withGrace(clock, closed);
      return exit;
    });
    if (code !== 0) throw installError(`exit status ${code ?? signal}; ${output.shown()}`);
    hasEnded = true;
    return output.text();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall?.startsWith('spawn'))
      throw installError(`/bin/sh cannot be run: ${(error as Error).message}`, { cause: error });
    throw error;
  } finally {
    if (!hasEnded) killGroup(child);
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

async function withGrace(clock: Clock, closed: Promise<unknown>): Promise<void> {
  let timer: unknown;
  const late = new Promise<void>((resolve) => {
    timer = clock.setTimeout(resolve, OUTPUT_GRACE_MS);
  });
  await Promise.race([closed, late]);
  clock.clearTimeout(timer);
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {} // all of them have ended
}

/** The last bytes of an output. */
class LastBytes {
  #chunks: Buffer[] = [];
  #bytes = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < 2 * MAX_OUTPUT_BYTES) return;
    const all = Buffer.concat(this.#chunks).subarray(-MAX_OUTPUT_BYTES);
    this.#chunks = [Buffer.from(all)];
    this.#bytes = all.length;
  }

  text(): string {
    return Buffer.concat(this.#chunks).subarray(-MAX_OUTPUT_BYTES).toString();
  }

  /** The output for errors. */
  shown(): string {
    const text = this.text().trim();
    return text === ''
      ? 'it has written nothing'
      : `its output ends with ${JSON.stringify(text.slice(-SHOWN_CHARACTERS))}`;
  }
}
