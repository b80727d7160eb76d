import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { type Broker, createBroker } from 'embermq';
import { connectFrame, Supply, subscribeFrame } from './load/frames.ts';
import { type MakeFilter, MIXES } from './match.ts';
import { median } from './report.ts';

/**
 * What a QoS 0 message to one subscriber costs, from the bytes that come to the bytes that go, beside subscriptions that do not match:
 * CPU microseconds of all threads. Brokers with few and many stand side by side in one process and take turns, since what else the
 * machine does would tell more than they differ.
 */
export interface Row {
  readonly mix: string;
  /** Those that do not match. */
  readonly subscriptions: number;
  /** Heap and buffers for each of them, the text of its filter included. */
  readonly bytesEach: number;
  /** 1,000 topics in turn; and how many times that of the fewest subscriptions, round by round. */
  readonly hotUs: number;
  readonly hotTimes: number;
  /** Topics that come once; and how much more than with the fewest subscriptions, round by round. */
  readonly coldUs: number;
  readonly coldMoreUs: number;
}

/** Of a round. */
const MESSAGES = 20_000;
/** The median counts. */
const ROUNDS = 15;
/** For the compiler, unreported. */
const WARMING = 3;
const HOT_TOPICS = 1000;
/** Messages in one chunk, which is a turn. */
const BATCH = 20;
const PAYLOAD_BYTES = 64;
/** Sessions that share the subscriptions. */
const SESSIONS = 100;
const FILTERS_PER_PACKET = 10;
const HEARD = 'site/+/+/temperature';
const PUBLISH = 3;

/** A connection without a socket: bytes go in by `push`, what comes out is looked at and dropped. */
class Wire extends Duplex {
  readonly #look: (bytes: Buffer) => void;

  constructor(look: (bytes: Buffer) => void) {
    super();
    this.#look = look;
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.#look(bytes);
    done();
  }
}

/** Publish beside so many subscriptions that do not match, the fewest first; 1,000 and 1,000,000 by default. Needs `--expose-gc`. */
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

/** @returns what each of them said, round by round */
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

/** A broker with its subscriptions, and what is published to it. */
interface Bed {
  readonly broker: Broker;
  readonly subscriptions: number;
  readonly bytesEach: number;
  readonly hot: Supply;
  readonly cold: Supply;
  /** Publish a round. @returns CPU microseconds for each message */
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
    if (expected - from !== MESSAGES) throw new Error(`${expected - from} of ${MESSAGES} messages came`);
    return (user + system) / MESSAGES;
  };
  // on the way of many filters, and matched by none of them
  const topicOf = (i: number) => `site/${i % 100}/device${(i * 7919) % 1_000_000}x/temperature`;
  const hot = supplyOf(HOT_TOPICS, topicOf);
  const cold = supplyOf((WARMING + ROUNDS) * MESSAGES, (i) => topicOf(HOT_TOPICS + i));
  return { broker, subscriptions, bytesEach, hot, cold, publish };
}

/** @returns bytes for each subscription */
async function subscribeAll(broker: Broker, makeFilter: MakeFilter, count: number): Promise<number> {
  const wires: Wire[] = [];
  for (let at = 0; at < SESSIONS; at++) wires.push(await connect(broker, `idle${at}`, () => {}));
  const before = await heldBytes();
  for (let at = 0; at < count; at += FILTERS_PER_PACKET) {
    const filters = Array.from({ length: FILTERS_PER_PACKET }, (_, i) => makeFilter(at + i));
    await subscribe(wires[(at / FILTERS_PER_PACKET) % SESSIONS], filters);
  }
  const subscriptions = broker.metrics.gauge('subscriptions');
  if (subscriptions !== count) throw new Error(`${subscriptions} of ${count} subscriptions were taken`);
  return ((await heldBytes()) - before) / count;
}

async function connect(broker: Broker, clientId: string, look: (bytes: Buffer) => void): Promise<Wire> {
  const wire = new Wire((bytes) => {
    if (bytes[0] >> 4 === PUBLISH) look(bytes);
  });
  broker.handle(wire);
  wire.push(connectFrame(clientId, { v5: false, clean: true }));
  await turn();
  return wire;
}

async function subscribe(wire: Wire, filters: readonly string[]): Promise<void> {
  wire.push(subscribeFrame(filters, { v5: false, qos: 0, id: 1 }));
  await turn();
}

function supplyOf(count: number, topicOf: (i: number) => string): Supply {
  return new Supply({
    publisher: 0,
    v5: false,
    qos: 0,
    retain: false,
    payloadBytes: PAYLOAD_BYTES,
    topics: Array.from({ length: count }, (_, i) => topicOf(i)),
    flows: new Array(count).fill(0)
  });
}

/**
 * Walk whole frames, each shorter than 128 + 2 bytes.
 * @returns the sequence number that comes next
 */
function checkSequence(bytes: Buffer, expected: number): number {
  let next = expected;
  for (let at = 0; at < bytes.length; ) {
    at += 2 + bytes[at + 1];
    const sequence = bytes.readUInt32LE(at - PAYLOAD_BYTES + 8);
    if (sequence !== next) throw new Error(`message ${sequence} came where ${next} was due`);
    next++;
  }
  return next;
}

async function heldBytes(): Promise<number> {
  // buffers are freed behind the collection that found them
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
