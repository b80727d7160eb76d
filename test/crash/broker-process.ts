import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { QoS } from '../../lib/packets/types.ts';

const root = join(import.meta.dirname, '../..');
const APP = join(import.meta.dirname, 'app-broker.mjs');
/** Real time after which a broker that is not ready is a failure, if it had processor time in the meantime. */
const PATIENCE_MS = 20_000;
/** Maximum processor time of a start on a busy machine. A broker that has used less gets more real time. */
const MAX_CPU_SEC = 10;
const MAX_PATIENCE = 10;
/** Units of times in /proc. */
const TICKS_PER_SEC = 100;

export interface BrokerSettings {
  readonly durability: 'process' | 'power';
  /** Topics with a priority in backlogs. */
  readonly priorities: Readonly<Record<string, number>>;
  /** Time by which the wall clock of a broker in an app is ahead; undefined for `embermq serve`. */
  readonly aheadMs: number | undefined;
  /** Folder of another build, such as an earlier release. */
  readonly build?: string;
  /** Options of a webhook. */
  readonly webhook?: object;
  /** The option `rules`, for `embermq serve`. */
  readonly rules?: object;
  /** The option `streams`, for `embermq serve`. */
  readonly streams?: object;
}

/** A message that an app publishes with the API of the broker. */
interface AppMessage {
  readonly topic: string;
  readonly payload: string;
  readonly qos: QoS;
  readonly retain: boolean;
}

/** A broker of the built package in a separate process, with a data folder. */
export class BrokerProcess {
  readonly child: ChildProcess;
  /** Standard error output of the broker, except the line that names the data folder. */
  complaints = '';
  /** All of its output, and the events of its process, with times. */
  log = '';
  /** Time from its start until it was ready. */
  readyMs: number | undefined;
  readonly #startedMs = performance.now();
  #stdout = '';
  readonly #ended: Promise<unknown>;
  readonly #published = new Map<number, () => void>();
  #lastId = 0;

  constructor(folder: string, settings: BrokerSettings) {
    const { durability, priorities, aheadMs, build = root, webhook, rules, streams } = settings;
    const hasConfig = webhook !== undefined || rules !== undefined || streams !== undefined;
    const isApp = aheadMs !== undefined;
    const flags = {
      '--data-dir': folder,
      '--durability': durability,
      '--mqueue-priorities': JSON.stringify(priorities)
    };
    const args = isApp
      ? [APP, build, folder, JSON.stringify(settings)]
      : [
          join(build, 'dist/adapters/cli/main.js'),
          'serve',
          ...Object.entries(flags).flat(),
          ...(hasConfig ? ['--config', configFile(folder, { webhooks: webhook && [webhook], rules, streams })] : []),
          '--mqtt-port',
          '0',
          '--ws-port',
          'off',
          // earlier releases do not have these ports
          ...(settings.build === undefined
            ? ['--http-port', 'off', '--http-earlier-port', 'off', '--rules-port', 'off', '--dashboard-port', 'off']
            : [])
        ];
    this.child = spawn(process.execPath, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe', isApp ? 'ipc' : 'ignore']
    });
    // The output is read to the end.
    this.#ended = Promise.all([once(this.child, 'close'), isApp ? once(this.child, 'disconnect') : undefined]);
    this.child.on('message', (id) => {
      this.#published.get(id as number)?.();
      this.#published.delete(id as number);
    });
    this.#note(`started: ${JSON.stringify(settings)}`);
    this.child.on('exit', (code, signal) => this.#note(`ended: ${signal ?? code}`));
    this.child.stdout?.on('data', (chunk) => {
      this.#note(chunk);
      this.#stdout += chunk;
    });
    this.child.stderr?.on('data', (chunk) => {
      this.#note(chunk);
      this.complaints += String(chunk).replace(/^state is (kept|persisted) in .*\n/m, '');
    });
  }

  /**
   * Waits until the broker is ready.
   * @returns its port, or undefined if it was killed before
   * @throws Error with its output if it ended on its own or was not ready in time
   */
  async ready(): Promise<number | undefined> {
    let patience = 0;
    const guard = setInterval(() => {
      const usedSec = cpuSecOf(this.child.pid);
      this.#note(`not ready yet, after ${usedSec} s of processor time\n${threadsOf(this.child.pid)}`);
      const isStarved = usedSec !== undefined && usedSec < MAX_CPU_SEC;
      if (!isStarved || ++patience === MAX_PATIENCE) this.child.kill('SIGABRT');
    }, PATIENCE_MS);
    try {
      for (;;) {
        const line = /^ready (\{.*\})$/m.exec(this.#stdout);
        if (line !== null) {
          this.readyMs = performance.now() - this.#startedMs;
          return (JSON.parse(line[1]) as { mqtt: number }).mqtt;
        }
        if (this.child.stdout === null || this.child.stdout.readableEnded) break;
        await Promise.race([once(this.child.stdout, 'data'), this.#ended]);
        if (this.child.exitCode !== null || this.child.signalCode !== null) break;
      }
      await this.#ended;
      if (this.child.signalCode === 'SIGKILL') return undefined;
      throw new Error(`the broker did not start: ${this.child.signalCode ?? this.child.exitCode}: ${this.complaints}`);
    } finally {
      clearInterval(guard);
    }
  }

  /**
   * Publishes with the API of the broker, if it runs in an app.
   * @param done called when the promise is fulfilled; never called if the broker crashes before
   */
  publish(message: AppMessage, done: () => void): void {
    const id = ++this.#lastId;
    this.#published.set(id, done);
    this.child.send({ id, ...message }, () => {});
  }

  /** Suspend it until it is killed. */
  stop(): void {
    this.child.kill('SIGSTOP');
  }

  #note(text: unknown): void {
    const ms = Math.round(performance.now() - this.#startedMs);
    this.log += `${String(ms).padStart(6)} ms  ${String(text).trimEnd()}\n`;
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.#ended;
  }
}

/** Writes the config file of a broker. */
function configFile(folder: string, content: object): string {
  const file = `${folder}.config.json`;
  writeFileSync(file, JSON.stringify(content));
  return file;
}

/** Processor time of a process; undefined: the system does not report it. */
function cpuSecOf(pid: number | undefined): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SEC;
  } catch {
    return undefined;
  }
}

/** The calls in which the threads of a process wait, as far as the system reports them. */
function threadsOf(pid: number | undefined): string {
  try {
    const threads = readdirSync(`/proc/${pid}/task`).map((thread) => {
      const read = (name: string) => readFileSync(`/proc/${pid}/task/${thread}/${name}`, 'utf8').trim();
      const state = /^State:\s*(.*)$/m.exec(read('status'))?.[1];
      return `  thread ${thread} ${read('comm')}: ${state}, ${read('wchan')}`;
    });
    return threads.join('\n');
  } catch (error) {
    return `  ${(error as Error).message}`;
  }
}
