import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, type ClientOptions, InvalidInput, type QoS } from '../../lib/index.ts';
import type { Spread } from './spread.ts';

/** The parameters of a benchmark. */
export interface BenchPlan {
  readonly clients: number;
  /** The number of connections of the benchmark `connect`. */
  readonly count: number;
  /** Messages per second of all clients together; 0: as fast as possible. */
  readonly rate: number;
  readonly qos: QoS;
  /** The size of a payload in bytes. */
  readonly size: number;
  /** The number of unacknowledged QoS 1 and 2 messages per client. */
  readonly window: number;
  /** The first levels of the topic names. */
  readonly topic: string;
  /** Connect a client. */
  dial(options?: ClientOptions): Promise<Client>;
  /** Aborts when the duration has elapsed. */
  readonly ended: AbortSignal;
  /** Call this when the clients are connected and the measurement begins. */
  begun(): void;
  readonly tally: Tally;
}

/** The counters of a running benchmark. */
export interface Tally {
  /** The number of connections or messages. */
  count: number;
  /** Milliseconds from CONNECT to CONNACK, from PUBLISH to its acknowledgement, or from publisher to subscriber. */
  readonly spread: Spread;
  /** The number of messages that did not arrive; undefined if there are no subscribers. */
  lost?: number;
  /** The number of messages that arrived twice or after a later one. */
  outOfOrder?: number;
}

/** A payload begins with the time of sending (8 bytes) and a sequence number (4 bytes). */
const HEADER_BYTES = 12;
/** The time that messages in flight have to arrive at the end. */
const SETTLE_MS = 2_000;
const TICK_MS = 5;

/** Connect and disconnect `count` times, with `clients` connections at a time. */
export async function benchConnect({ clients, count, dial, ended, begun, tally }: BenchPlan): Promise<void> {
  let left = count;
  begun();
  await runConcurrently(clients, async () => {
    while (left-- > 0 && !ended.aborted) {
      const beganMs = performance.now();
      const client = await dial();
      tally.spread.add(performance.now() - beganMs);
      tally.count++;
      await client.disconnect();
    }
  });
}

/** Publish from many clients to topics without subscribers. */
export async function benchPublish(plan: BenchPlan): Promise<void> {
  const publishers = await dialAll(plan, plan.clients);
  const payload = randomBytes(plan.size);
  plan.begun();
  await publishUntilEnd(plan, publishers, async (client, at) => {
    const beganMs = performance.now();
    await client.publish(`${plan.topic}/${at}`, payload, { qos: plan.qos });
    plan.tally.count++;
    if (plan.qos > 0) plan.tally.spread.add(performance.now() - beganMs);
  });
  await disconnectAll(publishers);
}

/** Publish from one client to many subscribers. */
export function benchSubscribe(plan: BenchPlan): Promise<void> {
  return receive(plan, 1, () => plan.topic);
}

/** Publish between pairs of a publisher and a subscriber. */
export function benchLatency(plan: BenchPlan): Promise<void> {
  return receive(plan, plan.clients, (at) => `${plan.topic}/${at}`);
}

async function receive(plan: BenchPlan, publishing: number, topicOf: (at: number) => string): Promise<void> {
  const { clients, qos, size, tally } = plan;
  if (size < HEADER_BYTES) {
    throw new InvalidInput(
      'OPTION_INVALID',
      '--size',
      `at least ${HEADER_BYTES} bytes, for a timestamp and a sequence number`,
      size
    );
  }
  const subscribers = await dialAll(plan, clients);
  const publishers = await dialAll(plan, publishing);
  tally.outOfOrder = 0;
  await Promise.all(subscribers.map((client, at) => client.subscribe(topicOf(at), { qos }, arrivals(tally))));
  const sent = publishers.map(() => 0);
  plan.begun();
  await publishUntilEnd(plan, publishers, async (client, at) => {
    const payload = Buffer.alloc(size);
    payload.writeUInt32BE(++sent[at], 8);
    payload.writeDoubleBE(performance.now(), 0);
    await client.publish(topicOf(at), payload, { qos });
  });
  const expected = sent.reduce((sum, count) => sum + count, 0) * (clients / publishing);
  await waitUntil(() => tally.count >= expected);
  tally.lost = Math.max(0, expected - tally.count);
  await disconnectAll([...publishers, ...subscribers]);
}

/** Create the handler of a subscriber. It counts messages, measures their latency, and checks that the sequence numbers increase. */
function arrivals(tally: Tally) {
  let last = 0;
  return ({ payload }: { readonly payload: Buffer }) => {
    tally.spread.add(performance.now() - payload.readDoubleBE(0));
    tally.count++;
    const number = payload.readUInt32BE(8);
    if (number <= last) tally.outOfOrder = (tally.outOfOrder ?? 0) + 1;
    last = number;
  };
}

type Send = (client: Client, at: number) => Promise<void>;

async function publishUntilEnd(plan: BenchPlan, publishers: readonly Client[], send: Send): Promise<void> {
  if (plan.rate > 0) return publishAtRate(plan, publishers, send);
  const window = plan.qos === 0 ? 1 : plan.window;
  await Promise.all(
    publishers.map((client, at) =>
      runConcurrently(window, async () => {
        while (!plan.ended.aborted) {
          await send(client, at);
          await yieldToEventLoop();
        }
      })
    )
  );
}

/** Publish at a fixed rate by the clock, independent of the acknowledgements, so that a slow broker does not lower the rate. */
async function publishAtRate({ rate, ended }: BenchPlan, publishers: readonly Client[], send: Send): Promise<void> {
  const inFlight = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const beganMs = performance.now();
  for (let sent = 0; !ended.aborted && failures.length === 0; await delay(TICK_MS)) {
    const due = Math.floor(((performance.now() - beganMs) / 1000) * rate);
    for (; sent < due; sent++) {
      const at = sent % publishers.length;
      const sending: Promise<void> = send(publishers[at], at)
        .catch((error) => void failures.push(error))
        .finally(() => inFlight.delete(sending));
      inFlight.add(sending);
    }
  }
  await Promise.all(inFlight);
  if (failures.length > 0) throw failures[0];
}

let lastYieldMs = 0;

/** Let the event loop read. QoS 0 publishes resolve immediately while the stream has room, so without a pause nothing would be read. */
async function yieldToEventLoop(): Promise<void> {
  if (performance.now() - lastYieldMs < 1) return;
  await new Promise((resolve) => setImmediate(resolve));
  lastYieldMs = performance.now();
}

async function dialAll({ dial }: BenchPlan, number: number): Promise<Client[]> {
  const dialled: Client[] = [];
  // Connect in groups, because thousands of simultaneous connections would overflow the accept queue.
  while (dialled.length < number) {
    const group = Array.from({ length: Math.min(50, number - dialled.length) }, () => dial());
    dialled.push(...(await Promise.all(group)));
  }
  return dialled;
}

async function disconnectAll(clients: readonly Client[]): Promise<void> {
  await Promise.all(clients.map((client) => client.disconnect()));
}

async function waitUntil(isDone: () => boolean): Promise<void> {
  const untilMs = performance.now() + SETTLE_MS;
  while (!isDone() && performance.now() < untilMs) await delay(TICK_MS);
}

async function runConcurrently(number: number, work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: number }, work));
}
