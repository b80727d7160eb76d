import { type ChildProcess, spawn } from 'node:child_process';
import { scrypt } from 'node:crypto';
import { constants, setPriority } from 'node:os';
import { extname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from './client.ts';
import { supply } from './flow.ts';
import { FlowCheck } from './flow-check.ts';
import { type Credentials, HASH_COST } from './frames.ts';
import { Histogram } from './histogram.ts';
import type { Load } from './load.ts';
import { meter } from './meter.ts';

/** A client without a CONNACK after this time gives up, and reconnects after the back-off. */
const GIVE_UP_MS = 10_000;
const BACK_OFF_MS = 1000;
/** More attempts of a client indicate another problem. */
const MAX_TRIES = 100;
/** Number of hashes computed to learn the time of one. */
const SAMPLE_HASHES = 20;
const SEND_EACH_MS = 5;
const CONNECT_EACH_MS = 50;

/** The name and password of a user of the measured broker. */
export function userOf(index: number): Credentials {
  return { username: `user${index}`, password: `password of user ${index}` };
}

/**
 * Measures the time until all clients of a newly started broker are connected, each with a different password. The
 * broker has not seen any of the passwords yet.
 */
export async function runLogins(load: Load): Promise<Record<string, number>> {
  const { count } = load.task;
  const clients = Array.from({ length: count }, (_, i) => load.client(i, `login${i}`));
  for (const [i, client] of clients.entries()) client.credentials = userOf(i);
  load.closing = true; // abandoned connections do not count as faults
  const read = meter(load.task);
  let tries = 0;
  await Promise.all(
    clients.map(async (client) => {
      for (; ; await sleep(BACK_OFF_MS)) {
        tries++;
        if (tries > count * MAX_TRIES) throw new Error(`${tries} attempts were not enough for ${count} clients`);
        const connected = client.connect().then(
          () => true,
          () => false // refused, because too many others are queued
        );
        if (await Promise.race([connected, sleep(GIVE_UP_MS, false)])) return;
        client.destroy();
      }
    })
  );
  const { seconds, brokerCpuUs } = read();
  load.closing = false;
  const hashSeconds = await secondsOfHash();
  return {
    connections: count,
    perSec: count / seconds,
    hashTimes: seconds / (count * hashSeconds),
    hashUs: hashSeconds * 1e6,
    tries,
    cpuUs: brokerCpuUs / count
  };
}

async function secondsOfHash(): Promise<number> {
  const hash = promisify(scrypt) as (...args: unknown[]) => Promise<Buffer>;
  const began = performance.now();
  for (let i = 0; i < SAMPLE_HASHES; i++) await hash('password', `salt ${i}`, 32, { N: 2 ** HASH_COST, r: 8, p: 1 });
  return (performance.now() - began) / 1000 / SAMPLE_HASHES;
}

/**
 * Measures the latency of durable QoS 1 messages, and the time until a user whose password has been checked before gets
 * its CONNACK: first on an idle broker, then during wrong logins at a fixed rate from a separate process.
 */
export async function runWrongLogins(load: Load): Promise<Record<string, number>> {
  const { warmMs, measureMs } = load.task;
  const subscriber = load.client(0, 'subscriber');
  const publisher = load.client(0, 'publisher');
  for (const client of [subscriber, publisher]) client.credentials = userOf(0);
  load.flows = new FlowCheck(1);
  await subscriber.connect(false);
  await publisher.connect();
  await subscriber.subscribe(['durable'], 1);
  supply(load, publisher, Array(2048).fill('durable'), Array(2048).fill(0));
  load.publishers = [publisher];
  const connects = new Histogram();
  const timers = [
    setInterval(() => publisher.sendOne(load.nowUs()), SEND_EACH_MS),
    setInterval(() => void measureConnect(load, connects), CONNECT_EACH_MS)
  ];
  let attackers: ChildProcess | undefined;
  const phase = async () => {
    await sleep(warmMs);
    load.latencies.clear();
    connects.clear();
    load.measuring = true;
    await sleep(measureMs);
    load.measuring = false;
    return {
      p99Us: load.latencies.percentile(0.99),
      connectUs: connects.percentile(0.5),
      connectP99Us: connects.percentile(0.99)
    };
  };
  try {
    const quiet = await phase();
    attackers = startWrongLogins(load);
    const read = meter(load.task);
    const attacked = await phase();
    const span = read();
    for (const timer of timers) clearInterval(timer);
    await load.drain();
    return {
      quietP99Us: quiet.p99Us,
      p99Us: attacked.p99Us,
      p99Times: attacked.p99Us / quiet.p99Us,
      quietConnectUs: quiet.connectUs,
      connectUs: attacked.connectUs,
      connectTimes: attacked.connectUs / quiet.connectUs,
      quietConnectP99Us: quiet.connectP99Us,
      connectP99Us: attacked.connectP99Us,
      brokerBusy: span.brokerCpuUs / span.seconds / 1e6,
      loadBusy: span.loadCpuUs / span.seconds / 1e6,
      othersBusy: span.othersBusy
    };
  } finally {
    for (const timer of timers) clearInterval(timer);
    attackers?.kill('SIGKILL');
  }
}

function startWrongLogins({ task: { port, count } }: Load): ChildProcess {
  const file = fileURLToPath(new URL(`./wrong-logins${extname(import.meta.url)}`, import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, file, JSON.stringify({ port, rate: count })], {
    stdio: ['pipe', 'ignore', 'inherit'] // the child ends when the pipe is closed, however this process ends
  });
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  return child;
}

let newcomers = 0;

async function measureConnect(load: Load, latencies: Histogram): Promise<void> {
  const client = new Client(load, 0, `newcomer${++newcomers}`);
  client.credentials = userOf(0);
  const beganUs = load.nowUs();
  await client.connect().catch(() => load.disconnected++);
  latencies.add((load.nowUs() - beganUs) >>> 0);
  client.drop();
}
