import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Outcome, Task } from '../load/task.ts';
import type { Row } from '../rows.ts';
import { type BrokerKind, findProgram, program } from './brokers.ts';

/** The cores that broker and load generator are pinned to; undefined if they cannot be pinned. */
export interface Cores {
  readonly broker: number;
  readonly load: number;
}

/** Find two cores that this process may use, if `taskset` is available. */
export function findCores(): Cores | undefined {
  if (availableParallelism() < 2 || findProgram('taskset') === undefined) return undefined;
  const allowed = allowedCores();
  return allowed.length < 2 ? undefined : { broker: allowed[0], load: allowed[1] };
}

function allowedCores(): number[] {
  try {
    const list = /^Cpus_allowed_list:\s+(\S+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '';
    return list.split(',').flatMap((range) => {
      const [from, to = from] = range.split('-').map(Number);
      return Array.from({ length: to - from + 1 }, (_, i) => from + i);
    });
  } catch {
    return [];
  }
}

const running = new Set<ChildProcess>();

/** End all processes that were started here and are still running. */
export function endAll(): void {
  for (const child of running) child.kill('SIGKILL');
}

/** The part of a row that one measurement needs. */
type Measured = Pick<Row, 'task' | 'store' | 'observer' | 'isBridged' | 'usesAllCores'>;

/** Make one measurement: start a new broker and a new load generator, run one task, and end both. */
export async function measure(
  kind: BrokerKind,
  { task, store, observer, isBridged, usesAllCores }: Measured,
  cores: Cores | undefined
): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-bench-'));
  const port = await freePort();
  const far = isBridged ? await startFar(kind, cores) : undefined;
  const command = kind.command(port, folder, store, observer, far?.port);
  const broker = start(pinned(command, usesAllCores ? undefined : cores?.broker));
  try {
    await listening(broker, port);
    if (isBridged) await sleep(1500); // until the bridge is connected
    // let the broker finish its work for the connection above, so that it is not measured
    await sleep(200);
    const work: Task = {
      ...task,
      port,
      farPort: far?.port ?? 0,
      pid: broker.child.pid ?? 0,
      cores: cores === undefined ? [] : [cores.broker, cores.load]
    };
    const load = start(pinned([process.execPath, program('load/main.js'), JSON.stringify(work)], cores?.load));
    const code = await ended(load.child, 150_000);
    if (broker.child.exitCode !== null) throw new Error(`${kind.name} exited unexpectedly: ${tail(broker.output())}`);
    if (code !== 0) throw new Error(tail(load.output()));
    return JSON.parse(load.output()) as Outcome;
  } finally {
    await end(broker.child);
    await far?.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Start the broker that a bridge forwards to, on the core of the load generator. */
async function startFar(kind: BrokerKind, cores: Cores | undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-bench-'));
  const port = await freePort();
  const started = start(pinned(kind.command(port, folder), cores?.load));
  await listening(started, port);
  return {
    port,
    async end(): Promise<void> {
      await end(started.child);
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** Run a program of the benchmark on the core of the load generator. @returns its output */
export async function runProgram(path: string, args: readonly string[], cores: Cores | undefined): Promise<string> {
  const { child, output } = start(pinned([process.execPath, '--expose-gc', program(path), ...args], cores?.load));
  const code = await ended(child, 600_000);
  if (code !== 0) throw new Error(tail(output()));
  return output();
}

/** A process and its output. */
export interface Started {
  readonly child: ChildProcess;
  output(): string;
}

/** Start a process, which is ended by `endAll` at the latest. */
export function start(command: readonly string[]): Started {
  const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  child.once('exit', () => running.delete(child));
  let output = '';
  child.once('error', (error) => {
    output += error.message;
  });
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  return { child, output: () => output };
}

/** The command that runs a command on one core; undefined: on any core. */
export function pinned(command: readonly string[], core: number | undefined): readonly string[] {
  return core === undefined ? command : ['taskset', '-c', String(core), ...command];
}

/** Wait until the process accepts connections. */
export async function listening({ child, output }: Started, port: number): Promise<void> {
  const until = performance.now() + 60_000;
  while (performance.now() < until && child.exitCode === null) {
    if (await accepts(port)) return;
    await sleep(50);
  }
  throw new Error(`the broker does not accept connections: ${tail(output())}`);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** Wait for the exit of a process, and kill it after a timeout. @returns the exit code; none if it was killed */
function ended(child: ChildProcess, withinMs: number): Promise<number | null> {
  return new Promise((resolve) => {
    const giveUp = setTimeout(() => child.kill('SIGKILL'), withinMs);
    // `close` is emitted after all output was read; `exit` may be emitted earlier.
    child.once('close', (code) => {
      clearTimeout(giveUp);
      resolve(code);
    });
  });
}

/** Ask a process to end, and kill it after 5 s. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const kill = setTimeout(() => child.kill('SIGKILL'), 5000);
  await gone;
  clearTimeout(kill);
}

/** Find a free port. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

function tail(output: string): string {
  return output.trim().slice(-600) || 'no output';
}
