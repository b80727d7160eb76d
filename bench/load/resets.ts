import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from './client.ts';
import { fitWindows, supply } from './flow.ts';
import { Histogram } from './histogram.ts';
import type { Load } from './load.ts';
import { meter } from './meter.ts';

const ROUNDS = 3;
/** The new client connects after this time, when all others wait for their accept. */
const NEWCOMER_AFTER_MS = 20;
const TOPIC = 'bench/0/data';

/**
 * Measures how long a new client waits for its CONNACK after the connections of all other clients were reset, while
 * each of them reconnects to its stored session and a publisher keeps sending to all of them.
 */
export async function runResets(load: Load): Promise<Record<string, number>> {
  const { warmMs, window, qos } = load.task;
  const subscribers = Array.from({ length: load.task.subscribers }, (_, i) => load.client(i, `reset${i}`));
  let received = 0;
  for (const subscriber of subscribers) {
    const seen = new Set<number>(); // messages may be repeated after a reset
    subscriber.onMessage = (sequence) => {
      if (seen.has(sequence)) return;
      seen.add(sequence);
      received++;
    };
  }
  await load.connect(subscribers, false);
  await Promise.all(subscribers.map((subscriber) => subscriber.subscribe([TOPIC], qos)));
  const publisher = load.client(0, 'publisher');
  supply(load, publisher, Array(window * 8).fill(TOPIC), Array(window * 8).fill(0));
  load.fan = 0; // the publisher waits only for acknowledgements
  await load.connect([publisher]);
  fitWindows(load, [publisher]);
  load.publishers = [publisher];
  load.startPublishing();

  const newcomers: number[] = [];
  const returns = new Histogram();
  let cpuUs = 0;
  for (let round = 0; round < ROUNDS; round++) {
    await sleep(warmMs);
    const read = meter(load.task);
    for (const subscriber of subscribers) subscriber.reset();
    const returned = Promise.all(
      subscribers.map((subscriber) => timed(load, subscriber).then((us) => returns.add(us)))
    );
    await sleep(NEWCOMER_AFTER_MS);
    const newcomer = new Client(load, 0, `newcomer${round}`);
    newcomers.push(await timed(load, newcomer, true));
    newcomer.drop();
    await returned;
    cpuUs += read().brokerCpuUs;
  }
  load.publishing = false;
  load.expected = publisher.sent * subscribers.length;
  await load.settled(() => received >= load.expected && publisher.inFlight === 0, load.task.patienceMs);
  load.received = received;
  const ordered = newcomers.sort((a, b) => a - b);
  return {
    newcomerUs: ordered[ROUNDS >> 1],
    worstNewcomerUs: ordered[ROUNDS - 1],
    returnUs: returns.percentile(0.5),
    cpuUs: cpuUs / ROUNDS / subscribers.length
  };
}

/** Connect a client. @returns the time until its CONNACK, in microseconds */
async function timed(load: Load, client: Client, clean = false): Promise<number> {
  const beganUs = load.nowUs();
  await client.connect(clean);
  return (load.nowUs() - beganUs) >>> 0;
}
