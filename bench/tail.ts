import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type Broker, createBroker } from 'embermq';
import { managementApi } from 'embermq/management';
import { listen, listenHttp } from 'embermq/net';
import { median } from './report.ts';
import { program } from './support/brokers.ts';
import type { TailBed, TailTask } from './support/tail-load.ts';
import { takeTurns } from './support/turns.ts';

/** The cost of a message in a broker with a tail, compared with the same broker without one. */
export interface Row {
  readonly what: string;
  /** CPU microseconds of all threads of the broker for a message: medians over rounds. */
  readonly us: number;
  readonly plainUs: number;
  /** `us - plainUs`, or `us / plainUs` in percent above 100: the median over rounds, and its interval of 95 %. */
  readonly more: number;
  readonly interval: readonly [low: number, high: number];
  readonly unit: 'us' | '%';
  readonly goal: number;
}

const ROUNDS = 20;

const ROWS: readonly (Pick<Row, 'what' | 'unit' | 'goal'> & {
  readonly query: Readonly<Record<string, string>>;
  readonly hasRows: boolean;
})[] = [
  { what: 'tail on 1 topic in 100', unit: '%', goal: 5, query: { filter: 'site/7/#' }, hasRows: true },
  {
    what: 'tail on # with WHERE payload.temp > 80, which no row satisfies',
    unit: 'us',
    goal: 2,
    query: { where: 'payload.temp > 80' },
    hasRows: false
  },
  {
    what: 'tail on # with WHERE payload.temp > 20, which all satisfy',
    unit: 'us',
    goal: 2,
    query: { where: 'payload.temp > 20' },
    hasRows: true
  },
  {
    what: `tail on # with WHERE topic =~ 'site/7/#', which 1 in 100 satisfies`,
    unit: 'us',
    goal: 2,
    query: { where: `topic =~ 'site/7/#'` },
    hasRows: true
  }
];

/** Measure rounds of this number of messages. */
export async function run(messages: number, rounds = ROUNDS): Promise<Row[]> {
  const servers = await Promise.all([undefined, ...ROWS.map(({ query }) => query)].map(serve));
  const load = fork(program('support/tail-load.js'));
  await ask(load, { beds: servers.map(({ bed }) => bed) });
  const publishing = servers.map((_, bed) => async () => {
    const before = process.cpuUsage();
    const rows = await ask(load, { bed, messages });
    const { user, system } = process.cpuUsage(before);
    if (bed > 0 && rows > 0 !== ROWS[bed - 1].hasRows) throw new Error(`${ROWS[bed - 1].what}: ${rows} rows`);
    return (user + system) / messages;
  });
  const [plainCosts, ...costs] = await takeTurns(publishing, rounds, Math.min(3, rounds));
  load.disconnect();
  for (const { broker } of servers) await broker.stop();
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

/** @returns the number of rows that the tail of the broker has had */
async function ask(load: ChildProcess, task: TailTask): Promise<number> {
  load.send(task);
  const [{ rows }] = await once(load, 'message');
  return rows;
}

/** Start a broker. @param query that of its tail; undefined: it has none */
async function serve(
  query: Readonly<Record<string, string>> | undefined
): Promise<{ readonly broker: Broker; readonly bed: TailBed }> {
  const broker = createBroker({ allowAnonymous: true });
  await broker.start();
  const { address: mqtt } = await listen(broker, { port: 0, host: '127.0.0.1' });
  const api = managementApi(broker, { prefix: '/api', credentials: 'none' });
  const { address: http } = await listenHttp(broker, 0, api.node);
  const url = query && `http://127.0.0.1:${http?.port}/api/x/tail?${new URLSearchParams(query)}`;
  return { broker, bed: { port: mqtt?.port ?? 0, tail: url } };
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  return [
    '50,000 messages a second of QoS 0 with 33 bytes of JSON on 1,000 topics, from 100 clients to one subscriber, over sockets. The tail is read over',
    'HTTP. Brokers with and without one take turns in one process, the clients are in another. A goal is missed if the whole interval of 95 % lies',
    'beyond it.',
    '',
    '| tail | us each | without, us | more | 95 % | goal | |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows.map(({ what, us, plainUs, more, interval: [low, high], unit, goal }) => {
      const verdict = low > goal ? 'missed' : 'met';
      return `| ${what} | ${us.toFixed(2)} | ${plainUs.toFixed(2)} | ${more.toFixed(2)} ${unit} | ${low.toFixed(2)}-${high.toFixed(2)} | ${goal} ${unit} | ${verdict} |`;
    })
  ].join('\n');
}
