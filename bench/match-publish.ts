import { setImmediate as turn } from 'node:timers/promises';
import { type Broker, createBroker } from 'embermq';
import type { Supply } from './load/frames.ts';
import { type MakeFilter, MIXES } from './match.ts';
import { median } from './report.ts';
import { checkSequence, connect, subscribe, supplyOf, type Wire } from './support/wire.ts';

/**
 * The cost of a QoS 0 message to one subscriber with many other subscriptions that do not match, from the incoming to the outgoing bytes:
 * CPU microseconds of all threads. Brokers with few and with many subscriptions alternate in one process, because other work on the
 * machine has a larger effect than the difference between them.
 */
export interface Row {
  readonly mix: string;
  /** The number of non-matching subscriptions. */
  readonly subscriptions: number;
  /** Heap and buffers per subscription, including the string of its filter. */
  readonly bytesEach: number;
  /** The cost with 1,000 topics in turn; and its ratio to the cost with the fewest subscriptions, compared round by round. */
  readonly hotUs: number;
  readonly hotTimes: number;
  /**
   * The cost with topics that occur only once; and the additional cost over the fewest subscriptions, compared round by
   * round.
   */
  readonly coldUs: number;
  readonly coldMoreUs: number;
}

/** The number of messages per round. */
const MESSAGES = 20_000;
/** The number of rounds, of which the median is reported. */
const ROUNDS = 15;
/** Rounds to warm up the compiler, which are not reported. */
const WARMING = 3;
const HOT_TOPICS = 1000;
/** The number of messages per chunk. Each turn of the event loop processes one chunk. */
const BATCH = 20;
/** The number of sessions that the subscriptions are spread over. */
const SESSIONS = 100;
const FILTERS_PER_PACKET = 10;
const HEARD = 'site/+/+/temperature';

/**
 * Publish with these numbers of non-matching subscriptions, the lowest first; default: 1,000 and 1,000,000. Needs
 * `--expose-gc`.
 */
export async function run(sizes: readonly number[] = [1000, 1_000_000]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [mix, makeFilter] of Object.entries(MIXES)) {
    const beds: Bed[] = [];
    for (const subscriptions of sizes) beds.push(await makeBed(makeFilter, subscriptions));
    const hot = await takeTurns(beds.map((bed) => () => bed.publish(bed.hot)));
    const cold = await takeTurns(beds.map((bed) => () => bed.publish(bed.cold)));
    for (const [at, { subscriptions, bytesEach, broker }] of beds.entries()) {
      rows.push({
        mix,
        subscriptions,
        bytesEach,
        hotUs: median(hot[at]),
        hotTimes: median(hot[at].map((us, round) => us / hot[0][round])),
        coldUs: median(cold[at]),
        coldMoreUs: median(cold[at].map((us, round) => us - cold[0][round]))
      });
      await broker.stop();
    }
  }
  return rows;
}

/** Alternate between the works. @returns the results of each, round by round */
async function takeTurns(works: readonly (() => Promise<number>)[]): Promise<number[][]> {
  const costs: number[][] = works.map(() => []);
  gc?.();
  for (let round = -WARMING; round < ROUNDS; round++) {
    for (const [at, work] of works.entries()) {
      const cost = await work();
      if (round >= 0) costs[at].push(cost);
    }
  }
  return costs;
}

/** A broker with its subscriptions, and the messages to publish. */
interface Bed {
  readonly broker: Broker;
  readonly subscriptions: number;
  readonly bytesEach: number;
  readonly hot: Supply;
  readonly cold: Supply;
  /** Publish one round. @returns CPU microseconds per message */
  publish(supply: Supply): Promise<number>;
}

async function makeBed(makeFilter: MakeFilter, subscriptions: number): Promise<Bed> {
  const broker = createBroker({ allowAnonymous: true });
  await broker.start();
  const bytesEach = await subscribeAll(broker, makeFilter, subscriptions);
  let expected = 0;
  const subscriber = await connect(broker, 'subscriber', (bytes) => {
    expected = checkSequence(bytes, expected);
  });
  await subscribe(subscriber, [HEARD]);
  const publisher = await connect(broker, 'publisher', () => {});
  const publish = async (supply: Supply): Promise<number> => {
    const [from] = supply.sequences;
    expected = from;
    const before = process.cpuUsage();
    for (let sent = 0; sent < MESSAGES; sent += BATCH) {
      publisher.push(supply.take(BATCH, 0));
      await turn();
    }
    const { user, system } = process.cpuUsage(before);
    if (expected - from !== MESSAGES) throw new Error(`${expected - from} of ${MESSAGES} messages arrived`);
    return (user + system) / MESSAGES;
  };
  // topics that share levels with many filters, none of which matches
  const topicOf = (i: number) => `site/${i % 100}/device${(i * 7919) % 1_000_000}x/temperature`;
  const hot = supplyOf(HOT_TOPICS, topicOf);
  const cold = supplyOf((WARMING + ROUNDS) * MESSAGES, (i) => topicOf(HOT_TOPICS + i));
  return { broker, subscriptions, bytesEach, hot, cold, publish };
}

/** Make `count` subscriptions. @returns bytes per subscription */
async function subscribeAll(broker: Broker, makeFilter: MakeFilter, count: number): Promise<number> {
  const wires: Wire[] = [];
  for (let at = 0; at < SESSIONS; at++) wires.push(await connect(broker, `idle${at}`, () => {}));
  const before = await heldBytes();
  for (let at = 0; at < count; at += FILTERS_PER_PACKET) {
    const filters = Array.from({ length: FILTERS_PER_PACKET }, (_, i) => makeFilter(at + i));
    await subscribe(wires[(at / FILTERS_PER_PACKET) % SESSIONS], filters);
  }
  const subscriptions = broker.metrics.gauge('subscriptions');
  if (subscriptions !== count) throw new Error(`${subscriptions} of ${count} subscriptions were accepted`);
  return ((await heldBytes()) - before) / count;
}

async function heldBytes(): Promise<number> {
  // Buffers are only released after the collection that found them unused.
  for (let times = 0; times < 3; times++) {
    gc?.();
    await turn();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  const head = '| subscriptions | mix | bytes each | hot us | x fewest | cold us | more us |';
  const lines = rows.map(({ subscriptions, mix, bytesEach, hotUs, hotTimes, coldUs, coldMoreUs }) => {
    const figures = [hotUs, hotTimes, coldUs, coldMoreUs].map((figure) => figure.toFixed(2));
    return `| ${subscriptions} | ${mix} | ${bytesEach.toFixed(0)} | ${figures.join(' | ')} |`;
  });
  return [head, head.replace(/[^|]+/g, '---'), ...lines].join('\n');
}
