import { setImmediate as turn } from 'node:timers/promises';
import { type Broker, createBroker } from 'embermq';
import type { RuleInput } from '../lib/rules/types.ts';
import { packet, text } from './load/frames.ts';
import { median } from './report.ts';
import { heldBytes, takeTurns } from './support/turns.ts';
import { connect, subscribe } from './support/wire.ts';

/** The cost of a message in a broker with rules, compared with the same broker without rules. */
export interface Row {
  readonly what: string;
  /** CPU microseconds of all threads: medians over rounds. */
  readonly us: number;
  readonly plainUs: number;
  /** `us - plainUs`, or their quotient, round by round: the median, and its 95 % confidence interval. */
  readonly more: number;
  readonly interval: readonly [low: number, high: number];
  readonly unit: 'us' | 'times';
  readonly goal?: number;
}

/** The leftovers of deleted rules. */
export interface MemoryRow {
  readonly rules: number;
  /** Microseconds to create and delete one. */
  readonly us: number;
  /** Bytes of one rule while it exists. */
  readonly bytes: number;
  /** Bytes in use after the last rule was deleted, above those before the first one. */
  readonly leftBytes: number;
}

const ROUNDS = 20;
const WARMING = 3;
/** Messages per chunk. Each turn of the event loop processes one chunk. */
const BATCH = 20;
const TOPICS = 1000;

/** Measure with this number of messages in each round, and of rules about other topics. */
export async function runMessages(messages: number, otherRules: number): Promise<Row[]> {
  const others = Array.from({ length: otherRules }, (_, i) => ({
    sql: `SELECT payload.temp AS t FROM "${i % 2 === 0 ? `other/${i}` : `site/+/other${i}/#`}"`,
    actions: []
  }));
  const republish = (sql: string, topic: string): RuleInput => ({
    sql,
    actions: [{ name: 'republish', params: { target_topic: topic, target_qos: 0, payload_tmpl: '$' + '{payload}' } }]
  });
  const plain = await makeBed([], 'site/#');
  const beds: (Pick<Row, 'what' | 'unit' | 'goal'> & { readonly bed: Bed })[] = [
    {
      what: `${otherRules} rules about other topics`,
      unit: 'times',
      goal: 1.1,
      bed: await makeBed(others, 'site/#')
    },
    {
      what: 'SELECT payload, clientid; republish',
      unit: 'us',
      goal: 1.6,
      bed: await makeBed([republish('SELECT payload, clientid FROM "site/#"', 'out/$' + '{clientid}')], 'out/#')
    },
    {
      what: 'SELECT *; republish',
      unit: 'us',
      bed: await makeBed([republish('SELECT * FROM "site/#"', 'out/$' + '{clientid}')], 'out/#')
    }
  ];
  const costs = await takeTurns(
    [plain, ...beds.map(({ bed }) => bed)].map(
      ({ publish }) =>
        () =>
          publish(messages)
    ),
    ROUNDS,
    WARMING
  );
  await plain.broker.stop();
  const [plainCosts, ...others_] = costs;
  const rows: Row[] = [];
  for (const [at, { what, unit, goal, bed }] of beds.entries()) {
    await bed.broker.stop();
    const compared = others_[at].map((cost, round) =>
      unit === 'us' ? cost - plainCosts[round] : cost / plainCosts[round]
    );
    rows.push({
      ...{ what, unit, goal, us: median(others_[at]), plainUs: median(plainCosts) },
      more: median(compared),
      interval: medianInterval(compared)
    });
  }
  return rows;
}

/**
 * The 6th and the 15th of 20 sorted values enclose the median with 95.9 %; for other numbers, the normal approximation
 * is used.
 */
function medianInterval(values: readonly number[]): [number, number] {
  const sorted = [...values].sort((a, b) => a - b);
  const { length } = sorted;
  const rank = Math.max(0, Math.floor((length - 1.96 * Math.sqrt(length)) / 2));
  return [sorted[rank], sorted[length - 1 - rank]];
}

interface Bed {
  readonly broker: Broker;
  /**
   * Publish messages, each of which one subscriber receives.
   * @returns CPU microseconds per message
   */
  publish(messages: number): Promise<number>;
}

async function makeBed(rules: readonly RuleInput[], filter: string): Promise<Bed> {
  const broker = createBroker({ allowAnonymous: true });
  await broker.start();
  for (const rule of rules) await broker.rules.create(rule);
  let expected = 0;
  const subscriber = await connect(broker, 'subscriber', (bytes) => {
    for (let at = 0; at < bytes.length; ) {
      at += 2 + bytes[at + 1];
      const number = bytes.toString('latin1', at - 6, at - 2);
      if (Number(number) !== expected % TOPICS)
        throw new Error(`expected message ${expected % TOPICS}, received ${number}`);
      expected++;
    }
  });
  await subscribe(subscriber, [filter]);
  const publisher = await connect(broker, 'publisher', () => {});
  const chunks = chunksOf(TOPICS);
  const publish = async (messages: number): Promise<number> => {
    const from = expected;
    const before = process.cpuUsage();
    for (let sent = 0; sent < messages; sent += BATCH) {
      publisher.push(chunks[(sent / BATCH) % chunks.length]);
      await turn();
    }
    const { user, system } = process.cpuUsage(before);
    if (expected - from !== messages) throw new Error(`${expected - from} of ${messages} messages arrived`);
    return (user + system) / messages;
  };
  return { broker, publish };
}

/** PUBLISH frames with 33 bytes of JSON that end with their number, in chunks. */
function chunksOf(count: number): Buffer[] {
  const frames = Array.from({ length: count }, (_, i) => {
    const payload = `{"temp":23.5,"hum":40,"id":"${String(i).padStart(4, '0')}"}`;
    return packet(0x30, [text(`site/${i % 100}/device${i}/temperature`), Buffer.from(payload)]);
  });
  return Array.from({ length: count / BATCH }, (_, at) => Buffer.concat(frames.slice(at * BATCH, (at + 1) * BATCH)));
}

/** Number of rules that exist at the same time while many are created and deleted. */
const ALIVE = 100;
const WARM_RULES = 3000;
/** No more rules are created after this time. */
const MAX_MS = 300_000;

/** Create and delete this number of rules, or as many as the time allows. Needs `--expose-gc`. */
export async function runMemory(rules: number): Promise<MemoryRow> {
  const broker = createBroker();
  await broker.start();
  const make = (i: number) =>
    broker.rules.create({
      id: `rule${i}`,
      sql: `SELECT payload.temp AS t FROM "site/+/device${i}/#" WHERE payload.temp > ${i}`,
      actions: [
        { name: 'republish', params: { target_topic: `out/${i}`, target_qos: 0, payload_tmpl: '$' + '{payload}' } }
      ]
    });
  const makeSome = async (from: number) => {
    for (let i = from; i < from + ALIVE; i++) await make(i);
  };
  const dropSome = async (from: number) => {
    for (let i = from; i < from + ALIVE; i++) await broker.rules.delete(`rule${i}`);
  };
  // the first ones fill caches, and warm up the compiler
  for (let at = 0; at < WARM_RULES; at += ALIVE) await makeSome(at).then(() => dropSome(at));
  const before = await heldBytes();
  await makeSome(0);
  const bytes = ((await heldBytes()) - before) / ALIVE;
  await dropSome(0);
  const beganMs = performance.now();
  let made = 0;
  for (; made < rules && performance.now() - beganMs < MAX_MS; made += ALIVE)
    await makeSome(made).then(() => dropSome(made));
  const us = ((performance.now() - beganMs) * 1000) / made;
  const leftBytes = (await heldBytes()) - before;
  await broker.stop();
  return { rules: made, us, bytes, leftBytes };
}

/** The rows as Markdown tables. */
export function table(rows: readonly Row[], memory: MemoryRow): string {
  const { rules, us, bytes, leftBytes } = memory;
  return [
    'A QoS 0 message with 33 bytes of JSON in bursts, from the bytes that come to the bytes that go to one subscriber, which gets the message itself',
    'or the one that the rule publishes. Brokers with and without rules take turns in one process. A goal is missed if the whole interval of 95 %',
    'lies beyond it.',
    '',
    '| rules | us each | without, us | more | 95 % | goal | |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows.map(({ what, us, plainUs, more, interval: [low, high], unit, goal }) => {
      const verdict = goal === undefined ? '' : low > goal ? 'missed' : 'met';
      const goalText = goal === undefined ? '' : `${goal} ${unit}`;
      return `| ${what} | ${us.toFixed(2)} | ${plainUs.toFixed(2)} | ${more.toFixed(2)} ${unit} | ${low.toFixed(2)}-${high.toFixed(2)} | ${goalText} | ${verdict} |`;
    }),
    '',
    `Rules made and dropped, ${ALIVE} at a time. After the last one, the memory is back to where it was within 1 MB.`,
    '',
    '| rules | us each | bytes of a rule | bytes left | |',
    '| --- | --- | --- | --- | --- |',
    `| ${rules} | ${us.toFixed(0)} | ${bytes.toFixed(0)} | ${leftBytes} | ${leftBytes <= 1_000_000 ? 'met' : 'missed'} |`
  ].join('\n');
}
