import { setTimeout as sleep } from 'node:timers/promises';
import { openFilesLimit } from '../support/proc.ts';
import { Client } from './client.ts';
import { Histogram } from './histogram.ts';
import type { Load } from './load.ts';
import { meter } from './meter.ts';

/** Repeat CONNECT, CONNACK, DISCONNECT and close. */
export async function runStorm(load: Load): Promise<Record<string, number>> {
  const { concurrency, warmMs, measureMs } = load.task;
  const latencies = new Histogram();
  let connections = 0;
  let running = true;
  let measuring = false;
  const worker = async (_: unknown, index: number): Promise<void> => {
    for (let turn = 0; running; turn++) {
      const client = new Client(load, index, `st${index.toString(36)}-${turn.toString(36)}`);
      const beganUs = load.nowUs();
      await client.connect();
      client.drop();
      if (!measuring) continue;
      connections++;
      latencies.add((load.nowUs() - beganUs) >>> 0);
    }
  };
  const workers = Promise.all(Array.from({ length: concurrency }, worker));
  // A failure ends the run immediately instead of after the measurement.
  const span = await Promise.race([
    workers.then(() => undefined),
    (async () => {
      await sleep(warmMs);
      measuring = true;
      const read = meter(load.task);
      // once more on a busy machine where no connection was established during a smoke run
      do await sleep(measureMs);
      while (connections === 0);
      const span = read();
      measuring = running = false;
      return span;
    })()
  ]);
  if (span === undefined) throw new Error('the storm ended early');
  await workers;
  return {
    connectUs: span.brokerCpuUs / connections,
    connectsPerSec: connections / span.seconds,
    p50Us: latencies.percentile(0.5),
    p99Us: latencies.percentile(0.99),
    brokerBusy: span.brokerCpuUs / span.seconds / 1e6,
    loadUs: span.loadCpuUs / connections,
    loadBusy: span.loadCpuUs / span.seconds / 1e6,
    othersBusy: span.othersBusy,
    residentBytes: span.residentBytes
  };
}

/** Measure the resident memory per idle connection. */
export async function runIdle(load: Load): Promise<Record<string, number>> {
  const { warmMs } = load.task;
  // Each side needs a file descriptor per connection. The limit of the broker is assumed to be the same as that of this process.
  const count = Math.min(load.task.count, openFilesLimit() - 200);
  const clients = Array.from({ length: count }, (_, i) => load.client(i, `idle${i}`));
  const read = meter(load.task);
  await load.connect(clients);
  const opened = read();
  await sleep(warmMs);
  const settled = read();
  return {
    connections: count,
    idleBytes: settled.grownBytes / count,
    openUs: opened.brokerCpuUs / count,
    loadUs: opened.loadCpuUs / count,
    residentBytes: settled.residentBytes
  };
}
