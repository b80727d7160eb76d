import { setTimeout as wait } from 'node:timers/promises';
import { type Broker, createBroker, type TailOptions } from 'embermq';
import { packet, text } from './load/frames.ts';
import { median } from './report.ts';
import { takeTurns } from './support/turns.ts';
import { connect, subscribe } from './support/wire.ts';

/** The cost of a message in a broker with a tail, compared with the same broker without one. */
export interface Row {
  readonly what: string;
  /** CPU microseconds of all threads for a message: medians over rounds. */
  readonly us: number;
  readonly plainUs: number;
  /** `us - plainUs`, or `us / plainUs` in percent above 100: the median over rounds, and its interval of 95 %. */
  readonly more: number;
  readonly interval: readonly [low: number, high: number];
  readonly unit: 'us' | '%';
  readonly goal: number;
}

const ROUNDS = 20;
const TOPICS = 1_000;
/** 50,000 messages a second: chunks of 500, every 10 ms. */
const CHUNK = 500;
const CHUNK_MS = 10;

const ROWS: readonly (Pick<Row, 'what' | 'unit' | 'goal'> & { readonly tail: TailOptions })[] = [
  { what: 'tail on 1 topic in 100', unit: '%', goal: 5, tail: { filter: 'site/7/#' } },
  {
    what: 'tail on # with WHERE payload.temp > 80, no row passes',
    unit: 'us',
    goal: 2,
    tail: { where: 'payload.temp > 80' }
  },
  {
    what: 'tail on # with WHERE payload.temp > 20, 500 rows a second pass',
    unit: 'us',
    goal: 2,
    tail: { where: 'payload.temp > 20' }
  },
  {
    what: `tail on # with WHERE topic =~ 'site/7/#'`,
    unit: 'us',
    goal: 2,
    tail: { where: `topic =~ 'site/7/#'` }
  }
];

/** Measure rounds of this number of messages. */
export async function run(messages: number, rounds = ROUNDS): Promise<Row[]> {
  const plain = await makeBed(undefined);
  const beds = await Promise.all(ROWS.map(({ tail }) => makeBed(tail)));
  const publishing = [plain, ...beds].map(
    ({ publish }) =>
      () =>
        publish(messages)
  );
  const [plainCosts, ...costs] = await takeTurns(publishing, rounds, Math.min(3, rounds));
  for (const { broker } of [plain, ...beds]) await broker.stop();
  return ROWS.map(({ what, unit, goal }, at) => {
    const compared = costs[at]
      .map((cost, round) => (unit === 'us' ? cost - plainCosts[round] : 100 * (cost / plainCosts[round] - 1)))
      .sort((a, b) => a - b);
    const rank = Math.max(0, Math.floor((rounds - 1.96 * Math.sqrt(rounds)) / 2));
    return {
      ...{ what, unit, goal, us: median(costs[at]), plainUs: median(plainCosts), more: median(compared) },
      interval: [compared[rank], compared[rounds - 1 - rank]]
    };
  });
}

interface Bed {
  readonly broker: Broker;
  /**
   * Publish messages at 50,000 a second, each of which one subscriber receives. @returns CPU microseconds per message
   */
  publish(messages: number): Promise<number>;
}

async function makeBed(tail: TailOptions | undefined): Promise<Bed> {
  const broker = createBroker({ allowAnonymous: true });
  await broker.start();
  let received = 0;
  const subscriber = await connect(broker, 'subscriber', (bytes) => {
    for (let at = 0; at < bytes.length; at += 2 + bytes[at + 1]) received++;
  });
  await subscribe(subscriber, ['site/#']);
  const publisher = await connect(broker, 'publisher', () => {});
  if (tail !== undefined) read(broker, tail);
  const chunks = chunksOf();
  const publish = async (messages: number): Promise<number> => {
    const from = received;
    const before = process.cpuUsage();
    const beginMs = performance.now();
    for (let sent = 0; sent < messages; sent += CHUNK) {
      publisher.push(chunks[(sent / CHUNK) % chunks.length]);
      await wait(Math.max(0, beginMs + (sent / CHUNK + 1) * CHUNK_MS - performance.now()));
    }
    const { user, system } = process.cpuUsage(before);
    if (received - from !== messages) throw new Error(`${received - from} of ${messages} messages arrived`);
    return (user + system) / messages;
  };
  return { broker, publish };
}

/** Read a tail until the broker stops, and write its rows as JSON. */
async function read(broker: Broker, options: TailOptions): Promise<void> {
  for await (const { rows } of await broker.monitor.tail(options))
    for (const { columns, payloadText } of rows) JSON.stringify({ ...columns, payload: payloadText });
}

/** PUBLISH frames with 33 bytes of JSON in chunks, of which each topic has one. */
function chunksOf(): Buffer[] {
  const frames = Array.from({ length: TOPICS }, (_, i) => {
    const payload = `{"temp":23.5,"hum":40,"id":"${String(i).padStart(4, '0')}"}`;
    return packet(0x30, [text(`site/${i % 100}/device${i}/temperature`), Buffer.from(payload)]);
  });
  return Array.from({ length: TOPICS / CHUNK }, (_, at) => Buffer.concat(frames.slice(at * CHUNK, (at + 1) * CHUNK)));
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  return [
    '50,000 messages a second of QoS 0 with 33 bytes of JSON on 1,000 topics, from the bytes that come to the bytes that go to one subscriber.',
    'Brokers with and without a tail take turns in one process. A goal is missed if the whole interval of 95 % lies beyond it.',
    '',
    '| tail | us each | without, us | more | 95 % | goal | |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows.map(({ what, us, plainUs, more, interval: [low, high], unit, goal }) => {
      const verdict = low > goal ? 'missed' : 'met';
      return `| ${what} | ${us.toFixed(2)} | ${plainUs.toFixed(2)} | ${more.toFixed(2)} ${unit} | ${low.toFixed(2)}-${high.toFixed(2)} | ${goal} ${unit} | ${verdict} |`;
    })
  ].join('\n');
}
