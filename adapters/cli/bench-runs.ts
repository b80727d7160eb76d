import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, type ClientOptions, InvalidInput, type QoS } from '../../lib/index.ts';
import type { Spread } from './spread.ts';

/** What a bench is told. */
export interface BenchPlan {
  readonly clients: number;
  /** Connections to make, of the connect bench. */
  readonly count: number;
  /** Messages a second of all clients together; 0: as fast as it goes. */
  readonly rate: number;
  readonly qos: QoS;
  /** Bytes of a payload. */
  readonly size: number;
  /** Messages with QoS 1 or 2 that a client has on the way. */
  readonly window: number;
  /** First levels of the topics. */
  readonly topic: string;
  /** Connect a client. */
  dial(options?: ClientOptions): Promise<Client>;
  /** Aborts when the time is over. */
  readonly ended: AbortSignal;
  /** Clients are connected: what is counted from here on counts. */
  begun(): void;
  readonly tally: Tally;
}

/** What a bench counts while it runs. */
export interface Tally {
  /** Connections or messages. */
  count: number;
  /** Milliseconds from CONNECT to CONNACK, from PUBLISH to its acknowledgement, or from publisher to subscriber. */
  readonly spread: Spread;
  /** Messages that did not arrive; undefined where nobody receives. */
  lost?: number;
  /** Messages that came twice or behind a later one. */
  outOfOrder?: number;
}

/** The time of sending and a sequence number stand in front. */
const HEADER_BYTES = 12;
/** Messages on their way at the end may still arrive. */
const SETTLE_MS = 2_000;
const TICK_MS = 5;

/** Connect and disconnect: `count` times, `clients` at a time. */
export async function benchConnect({ clients, count, dial, ended, begun, tally }: BenchPlan): Promise<void> {
  let left = count;
  begun();
  await together(clients, async () => {
    while (left-- > 0 && !ended.aborted) {
      const beganMs = performance.now();
      const client = await dial();
      tally.spread.add(performance.now() - beganMs);
      tally.count++;
      await client.disconnect();
    }
  });
}

/** Publish from many clients to topics nobody subscribes. */
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

/** One publisher, many subscribers to its topic. */
export function benchSubscribe(plan: BenchPlan): Promise<void> {
  return receive(plan, 1, () => plan.topic);
}

/** Pairs of a publisher and a subscriber. */
export function benchLatency(plan: BenchPlan): Promise<void> {
  return receive(plan, plan.clients, (at) => `${plan.topic}/${at}`);
}

async function receive(plan: BenchPlan, publishing: number, topicOf: (at: number) => string): Promise<void> {
  const { clients, qos, size, tally } = plan;
  if (size < HEADER_BYTES) {
    throw new InvalidInput('OPTION_INVALID', '--size', `${HEADER_BYTES} bytes at least, for time and number`, size);
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
  await settled(() => tally.count >= expected);
  tally.lost = Math.max(0, expected - tally.count);
  await disconnectAll([...publishers, ...subscribers]);
}

/** A subscriber's handler: counts, takes the time, sees that numbers rise. */
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
      together(window, async () => {
        while (!plan.ended.aborted) {
          await send(client, at);
          await breath();
        }
      })
    )
  );
}

/** Messages fall due by the clock, not by the answers, so that a slow broker does not lower the rate. */
async function publishAtRate({ rate, ended }: BenchPlan, publishers: readonly Client[], send: Send): Promise<void> {
  const onTheWay = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const beganMs = performance.now();
  for (let sent = 0; !ended.aborted && failures.length === 0; await delay(TICK_MS)) {
    const due = Math.floor(((performance.now() - beganMs) / 1000) * rate);
    for (; sent < due; sent++) {
      const at = sent % publishers.length;
      const sending: Promise<void> = send(publishers[at], at)
        .catch((error) => void failures.push(error))
        .finally(() => onTheWay.delete(sending));
      onTheWay.add(sending);
    }
  }
  await Promise.all(onTheWay);
  if (failures.length > 0) throw failures[0];
}

let lastBreathMs = 0;

/** QoS 0 into a stream with room resolves at once: without a pause nothing would ever be read. */
async function breath(): Promise<void> {
  if (performance.now() - lastBreathMs < 1) return;
  await new Promise((resolve) => setImmediate(resolve));
  lastBreathMs = performance.now();
}

async function dialAll({ dial }: BenchPlan, number: number): Promise<Client[]> {
  const dialled: Client[] = [];
  // In groups: thousands at once would only meet the accept queue.
  while (dialled.length < number) {
    const group = Array.from({ length: Math.min(50, number - dialled.length) }, () => dial());
    dialled.push(...(await Promise.all(group)));
  }
  return dialled;
}

async function disconnectAll(clients: readonly Client[]): Promise<void> {
  await Promise.all(clients.map((client) => client.disconnect()));
}

async function settled(isDone: () => boolean): Promise<void> {
  const untilMs = performance.now() + SETTLE_MS;
  while (!isDone() && performance.now() < untilMs) await delay(TICK_MS);
}

async function together(number: number, work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: number }, work));
}
