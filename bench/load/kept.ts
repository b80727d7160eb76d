import { setTimeout as sleep } from 'node:timers/promises';
import { fitWindows, supply } from './flow.ts';
import { FlowCheck } from './flow-check.ts';
import type { Load } from './load.ts';
import { meter } from './meter.ts';

/** Measure storing retained messages, and then delivering all of them to three new subscribers, one after the other. */
export async function runRetained(load: Load): Promise<Record<string, number>> {
  const { count, qos } = load.task;
  const publisher = load.client(0, 'rpub');
  const topics = Array.from({ length: count }, (_, i) => `r/${Math.floor(i / 100)}/${i % 100}`);
  supply(load, publisher, topics, Array(count).fill(0), true);
  publisher.limit = count;
  load.fan = 0;
  await load.connect([publisher]);
  fitWindows(load, [publisher]);
  load.publishers = [publisher];
  const readStore = meter(load.task);
  load.startPublishing();
  await load.until(() => publisher.sent === count && publisher.inFlight === 0, 'storing retained messages');
  // The SUBACK shows that the broker has read everything before, including QoS 0 messages.
  await publisher.subscribe(['barrier/x'], 0);
  const stored = readStore();
  load.publishing = false;

  let deliverUs = 0;
  let loadUs = 0;
  let fastestSec = Number.POSITIVE_INFINITY;
  load.expected = 0;
  const rounds = 3;
  for (let round = 0; round < rounds; round++) {
    const subscriber = load.client(round, `rsub${round}`);
    const seen = new Uint8Array(count);
    subscriber.onMessage = (sequence) => {
      if (seen[sequence] === 1) load.repeated++;
      seen[sequence] = 1;
    };
    await load.connect([subscriber]);
    load.expected += count;
    const before = load.received;
    const read = meter(load.task);
    const subscribed = subscriber.subscribe(['r/#'], qos);
    await load.settled(() => load.received - before >= count, load.task.patienceMs);
    const span = read();
    await subscribed;
    await sleep(50);
    deliverUs += span.brokerCpuUs / count / rounds;
    loadUs += span.loadCpuUs / count / rounds;
    fastestSec = Math.min(fastestSec, span.seconds);
    await load.leave([subscriber]);
  }
  return {
    storeUs: stored.brokerCpuUs / count,
    storePerSec: count / stored.seconds,
    retainedBytes: stored.grownBytes / count,
    deliverUs,
    deliverPerSec: count / fastestSec,
    loadUs,
    residentBytes: stored.residentBytes
  };
}

/** Measure filling the backlogs of offline sessions, and then delivering them when all clients reconnect. */
export async function runOffline(load: Load): Promise<Record<string, number>> {
  const { count, perSession, qos } = load.task;
  const total = count * perSession;
  const sessions = Array.from({ length: count }, (_, i) => load.client(i, `off${i}`));
  await load.connect(sessions, false);
  await Promise.all(sessions.map((session, i) => session.subscribe([`off/${i}/q`], qos)));
  await load.leave(sessions);

  const publisher = load.client(0, 'opub');
  const rounds = 4;
  const topics = Array.from({ length: count * rounds }, (_, i) => `off/${i % count}/q`);
  supply(
    load,
    publisher,
    topics,
    Array.from({ length: count * rounds }, (_, i) => i % count)
  );
  publisher.limit = total;
  load.fan = 0;
  load.flows = new FlowCheck(count);
  await load.connect([publisher]);
  fitWindows(load, [publisher]);
  load.publishers = [publisher];
  const readEnqueue = meter(load.task);
  load.startPublishing();
  await load.until(() => publisher.sent === total && publisher.inFlight === 0, 'filling backlogs');
  const enqueued = readEnqueue();
  load.publishing = false;

  const readDrain = meter(load.task);
  const connected = load.connect(sessions, false);
  await load.settled(() => load.received >= total, load.task.patienceMs);
  const drained = readDrain();
  await connected;
  await load.drain();
  return {
    enqueueUs: enqueued.brokerCpuUs / total,
    enqueuePerSec: total / enqueued.seconds,
    queuedBytes: enqueued.grownBytes / total,
    drainUs: drained.brokerCpuUs / total,
    drainPerSec: total / drained.seconds,
    loadUs: drained.loadCpuUs / total,
    residentBytes: enqueued.residentBytes
  };
}
