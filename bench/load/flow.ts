import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from './client.ts';
import { FlowCheck } from './flow-check.ts';
import { Supply } from './frames.ts';
import type { Load } from './load.ts';
import { meter } from './meter.ts';

/** Measure publishers and subscribers: one to one, many to one, or one to many. */
export async function runFlow(load: Load): Promise<Record<string, number>> {
  const { mode, qos, persistent, farPort } = load.task;
  const publisherCount = mode === 'fanout' ? 1 : load.task.publishers;
  const subscriberCount = mode === 'fanin' ? 1 : mode === 'fanout' ? load.task.subscribers : publisherCount;
  const subscribers = Array.from({ length: subscriberCount }, (_, i) =>
    load.client(i, `sub${i}`, farPort === 0 ? undefined : farPort)
  );
  const publishers = Array.from({ length: publisherCount }, (_, i) => load.client(i, `pub${i}`));
  if (mode === 'fanin') load.flowOf = (publisher) => publisher;
  if (mode === 'fanout') load.fan = subscriberCount;
  load.flows = new FlowCheck(Math.max(publisherCount, subscriberCount));

  await load.connect(subscribers, !persistent);
  await Promise.all(
    subscribers.map((client, i) => client.subscribe([mode === 'fanin' ? 'bench/+/data' : topic(mode, i)], qos))
  );
  for (const [i, publisher] of publishers.entries()) {
    supply(load, publisher, Array(slots(load)).fill(topic(mode, i)), Array(slots(load)).fill(0));
  }
  await load.connect(publishers);
  return measureFlow(load, publishers);
}

/** Measure with many wildcard filters, of which each message matches exactly one. */
export async function runWild(load: Load): Promise<Record<string, number>> {
  const { filters, hotTopics, qos } = load.task;
  const subscribers = Array.from({ length: load.task.subscribers }, (_, i) => load.client(i, `wsub${i}`));
  const publishers = Array.from({ length: load.task.publishers }, (_, i) => load.client(i, `wpub${i}`));
  await load.connect(subscribers);
  const read = meter(load.task);
  // Each connection subscribes to every nth filter, 50 at a time, with two SUBSCRIBEs in flight.
  await Promise.all(
    subscribers.map(async (client, i) => {
      const own = Array.from({ length: filters }, (_, k) => k).filter((k) => k % subscribers.length === i);
      let pending = Promise.resolve();
      for (let at = 0; at < own.length; at += 50) {
        const sent = client.subscribe(own.slice(at, at + 50).map(wildFilter), qos);
        await pending;
        pending = sent;
      }
      await pending;
    })
  );
  const subscribed = read();
  const hot = Array.from({ length: Math.min(hotTopics, filters) }, (_, i) =>
    Math.floor((i * filters) / Math.min(hotTopics, filters))
  );
  load.flowOf = (publisher, receiver) => publisher * subscribers.length + receiver;
  load.flows = new FlowCheck(publishers.length * subscribers.length);
  for (const [i, publisher] of publishers.entries()) {
    const order = shuffled(hot, i + 1);
    supply(
      load,
      publisher,
      order.map(wildTopic),
      order.map((k) => k % subscribers.length)
    );
  }
  await load.connect(publishers);
  return {
    subscribeUs: subscribed.brokerCpuUs / filters,
    subscribeBytes: subscribed.grownBytes / filters,
    subscribesPerSec: filters / subscribed.seconds,
    ...(await measureFlow(load, publishers))
  };
}

/** Maximum number of times that a measurement waits for its first message. */
const MAX_TIMES = 50;

/** Warm up, measure, and wait for the messages in flight. */
async function measureFlow(load: Load, publishers: Client[]): Promise<Record<string, number>> {
  const { warmMs, measureMs } = load.task;
  load.publishers = publishers;
  fitWindows(load, publishers);
  load.startPublishing();
  await sleep(warmMs);
  load.latencies.clear();
  load.measuring = true;
  const [received, sent] = [load.received, load.sent];
  const read = meter(load.task);
  // again on a busy machine where no message arrived during a smoke run
  for (let times = 0; times === 0 || (times < MAX_TIMES && load.received === received); times++) await sleep(measureMs);
  const span = read();
  load.measuring = false;
  const messages = load.received - received;
  const sentInSpan = load.sent - sent;
  await load.drain();
  return {
    messages: load.received,
    cpuUs: span.brokerCpuUs / messages,
    perSec: messages / span.seconds,
    sentPerSec: sentInSpan / span.seconds,
    sentUs: (span.seconds * 1e6) / sentInSpan,
    p50Us: load.latencies.percentile(0.5),
    p99Us: load.latencies.percentile(0.99),
    brokerBusy: span.brokerCpuUs / span.seconds / 1e6,
    loadUs: span.loadCpuUs / messages,
    loadBusy: span.loadCpuUs / span.seconds / 1e6,
    othersBusy: span.othersBusy,
    residentBytes: span.residentBytes
  };
}

/** Limit the window to the Receive Maximum of a v5 broker. */
export function fitWindows(load: Load, publishers: readonly Client[]): void {
  if (load.task.qos === 0) return;
  for (const publisher of publishers) publisher.window = Math.min(publisher.window, load.receiveMaximum);
}

/** Create the frames of a publisher. */
export function supply(
  load: Load,
  publisher: Client,
  topics: readonly string[],
  flows: readonly number[],
  retain = false
): void {
  const { v5, qos, payloadBytes } = load.task;
  publisher.supply = new Supply({ publisher: publisher.index, v5, qos, retain, payloadBytes, topics, flows });
}

/** The number of slots of a ring that is large enough not to be patched while the kernel may still read it. */
function slots({ task }: Load): number {
  return task.rate > 0 ? 512 : Math.max(16, task.window * 8);
}

function topic(mode: string, i: number): string {
  return mode === 'fanout' ? 'bench/0/data' : `bench/${i}/data`;
}

/** One third of the filters each: `+` in the middle, `#`, and `+` before the only level that differs. */
function wildFilter(k: number): string {
  return [`w/${k}/+/t`, `w/${k}/#`, `w/+/${k}/t`][k % 3];
}

function wildTopic(k: number): string {
  return [`w/${k}/x/t`, `w/${k}/a/b`, `w/y/${k}/t`][k % 3];
}

/** A shuffled copy, in the same order in every run. */
function shuffled(values: readonly number[], seed: number): number[] {
  const order = [...values];
  let state = seed * 2_654_435_769;
  for (let at = order.length - 1; at > 0; at--) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const other = (state >>> 0) % (at + 1);
    [order[at], order[other]] = [order[other], order[at]];
  }
  return order;
}
