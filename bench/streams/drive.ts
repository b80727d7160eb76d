import { setTimeout as sleep } from 'node:timers/promises';
import { meter } from '../load/meter.ts';
import { type Address, Client } from './client.ts';
import { type Check, checkOf, type Rows, type Rule } from './rows.ts';

/** The rows to publish, and the expected output. */
export interface Drive extends Address {
  readonly rule: Rule;
  readonly rows: Rows;
  /** Topic filter of the output of the rules, and the number of its topics. */
  readonly output: string;
  readonly outputs: number;
  /** Number of rows published before the measurement, and during it. */
  readonly warming: number;
  readonly count: number;
  /** Rows per second, and the size of a burst. */
  readonly rate: number;
  readonly burst: number;
  /** The process whose CPU time is measured; undefined: none. */
  readonly pid: number | undefined;
  readonly cores?: readonly number[];
}

/** The results. */
export interface Driven {
  /** CPU microseconds of the process per row, user and system, all threads; NaN without a process. */
  readonly us: number;
  /** Number of rows published per second. */
  readonly perSec: number;
  /** The part of the time for which the process was busy. */
  readonly busy: number;
  /** The share of the cores used by other processes. */
  readonly othersBusy: number;
  /** Number of rows received from all rules, including those before the measurement. */
  readonly received: number;
  readonly problems: readonly string[];
}

/** Time without deliveries after which rows count as lost: windows last a second, and processes may wait for a core. */
const PATIENCE_MS = 5_000;
const MAX_UNSENT = 1 << 20;
/** Longer than the windows, which may contain earlier rows. */
const WINDOW_MS = 1_200;

/**
 * Publish rows, receive the output, and check it.
 * @throws Error if the broker refuses a request or ends a connection
 */
export async function drive(task: Drive): Promise<Driven> {
  const check = checkOf(task.rule, task.rows, task.outputs);
  let hasBegun = false;
  const subscriber = await Client.connect(task, 'bench-output', (topic, payload) => {
    if (hasBegun) check.take(topic, payload);
  });
  const publisher = await Client.connect(task, 'bench-rows', () => undefined);
  try {
    await subscriber.subscribe(task.output);
    await sleep(task.rule === 'window' ? WINDOW_MS : 0);
    hasBegun = true;
    await publish(task, publisher, 0, task.warming);
    await arrived(check, task.warming, [subscriber, publisher]);
    await sleep(200); // for the compiler, and for windows that end
    const read = meter({ pid: task.pid ?? process.pid, cores: task.cores ?? [] });
    const total = task.warming + task.count;
    const seconds = await publish(task, publisher, task.warming, total);
    await arrived(check, total, [subscriber, publisher]);
    const span = read();
    await sleep(300); // for duplicated rows
    const cpuUs = task.pid === undefined ? Number.NaN : span.brokerCpuUs;
    return {
      us: cpuUs / task.count,
      perSec: task.count / seconds,
      busy: cpuUs / span.seconds / 1e6,
      othersBusy: span.othersBusy,
      received: check.received,
      problems: check.problems(total)
    };
  } finally {
    subscriber.close();
    publisher.close();
  }
}

/**
 * Publish the rows that are due, until all are published.
 * @returns the duration in seconds
 */
async function publish({ rows, rate, burst }: Drive, publisher: Client, from: number, to: number): Promise<number> {
  const beganMs = performance.now();
  const elapsed = () => (performance.now() - beganMs) / 1000;
  for (let sent = from; sent < to; ) {
    if (publisher.fault !== undefined) throw publisher.fault;
    const next = Math.min(to, sent + burst);
    if (next <= from + elapsed() * rate && publisher.unsent < MAX_UNSENT) {
      publisher.write(rows.frames(sent, next));
      sent = next;
    } else await sleep(1);
  }
  return elapsed();
}

/** Wait until all output has arrived, or no more arrives. */
async function arrived(check: Check, rows: number, clients: readonly Client[]): Promise<void> {
  const expected = check.expected(rows);
  let last = check.received;
  let sinceMs = performance.now();
  while (check.received < expected && performance.now() - sinceMs < PATIENCE_MS) {
    await sleep(5);
    for (const { fault } of clients) if (fault !== undefined) throw fault;
    if (check.received === last) continue;
    last = check.received;
    sinceMs = performance.now();
  }
}
