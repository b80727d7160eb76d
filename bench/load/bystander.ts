import { spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { extname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { residentBytes } from '../support/proc.ts';
import { Client } from './client.ts';
import { supply } from './flow.ts';
import { FlowCheck } from './flow-check.ts';
import { Histogram } from './histogram.ts';
import type { Load } from './load.ts';
import { meter } from './meter.ts';

const SEND_EACH_MS = 5;
const CONNECT_EACH_MS = 50;
const MEMORY_EACH_MS = 100;

/**
 * Measures one client while others, in a separate process, send as fast as they can: the latency of its messages, and the time until a
 * new connection gets its CONNACK. Messages are sent at fixed times, whether or not earlier ones have arrived.
 */
export async function runBystander(load: Load): Promise<Record<string, number>> {
  const { warmMs, measureMs, pid } = load.task;
  const subscriber = load.client(0, 'bystander-sub');
  const publisher = load.client(0, 'bystander-pub');
  load.flows = new FlowCheck(1);
  await load.connect([subscriber, publisher]);
  await subscriber.subscribe(['bystander'], 0);
  supply(load, publisher, Array(512).fill('bystander'), Array(512).fill(0));
  load.publishers = [publisher];
  const idleBytes = residentBytes(pid);
  const flooders = startFlood(load);
  const timers: NodeJS.Timeout[] = [];
  try {
    timers.push(setInterval(() => publisher.sendOne(load.nowUs()), SEND_EACH_MS));
    await sleep(warmMs);
    load.latencies.clear();
    load.measuring = true;
    const connects = new Histogram();
    timers.push(setInterval(() => void measureConnect(load, connects), CONNECT_EACH_MS));
    let mostBytes = residentBytes(pid);
    const look = () => {
      mostBytes = Math.max(mostBytes, residentBytes(pid));
    };
    timers.push(setInterval(look, MEMORY_EACH_MS));
    const [received, read] = [load.received, meter(load.task)];
    await sleep(measureMs);
    const span = read();
    look();
    for (const timer of timers) clearInterval(timer);
    // messages in flight count, however late they arrive
    await load.settled(() => load.received >= load.expected, load.task.patienceMs);
    return {
      messages: load.received - received,
      perSec: (load.received - received) / span.seconds,
      p50Us: load.latencies.percentile(0.5),
      p99Us: load.latencies.percentile(0.99),
      worstUs: load.latencies.percentile(1),
      connectP99Us: connects.percentile(0.99),
      grownBytes: mostBytes - idleBytes,
      brokerBusy: span.brokerCpuUs / span.seconds / 1e6,
      loadBusy: span.loadCpuUs / span.seconds / 1e6,
      othersBusy: span.othersBusy,
      residentBytes: mostBytes
    };
  } finally {
    for (const timer of timers) clearInterval(timer);
    flooders.kill('SIGKILL');
  }
}

/** Start the process of the flooding clients. Its priority is lower, so that waiting for the core does not count as latency. */
function startFlood({ task: { port, flood, count } }: Load) {
  const file = fileURLToPath(new URL(`./flood${extname(import.meta.url)}`, import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, file, JSON.stringify({ port, flood, count })], {
    stdio: ['pipe', 'ignore', 'ignore'] // the child ends when the pipe is closed, however this process ends
  });
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  return child;
}

let newcomers = 0;

async function measureConnect(load: Load, latencies: Histogram): Promise<void> {
  const client = new Client(load, 0, `newcomer${++newcomers}`);
  const beganUs = load.nowUs();
  await client.connect().catch(() => load.disconnected++);
  latencies.add((load.nowUs() - beganUs) >>> 0);
  client.drop();
}
