import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createBroker } from 'embermq';
import { dashboard } from 'embermq/dashboard';
import { listen, listenHttp } from 'embermq/net';
import { median } from './report.ts';
import { program } from './support/brokers.ts';
import type { TailTask } from './support/tail-load.ts';
import { takeTurns } from './support/turns.ts';

/** The cost of a message in a broker while the overview of its console is open, compared with the same broker without it. */
export interface Row {
  /** CPU microseconds of all threads of the broker for a message: medians over rounds, and the smallest. */
  readonly us: number;
  readonly plainUs: number;
  readonly leastUs: number;
  readonly leastPlainUs: number;
  /** `us / plainUs` in percent above 100: the median over rounds, and its interval of 95 %. */
  readonly more: number;
  readonly interval: readonly [low: number, high: number];
}

const ROUNDS = 60;
const GOAL = 5;

/** Measure rounds of this number of messages, alternately with the overview and without. */
export async function run(messages: number, rounds = ROUNDS): Promise<Row> {
  const broker = createBroker({ allowAnonymous: true });
  await broker.start();
  const { address: mqtt } = await listen(broker, { port: 0, host: '127.0.0.1' });
  const { node } = dashboard(broker, { login: () => ({ id: 'bench', scope: 'administrator' }) });
  const { address: http } = await listenHttp(broker, 0, node);
  const load = fork(program('support/tail-load.js'));
  const ask = async (task: TailTask): Promise<number> => {
    load.send(task);
    return (await once(load, 'message'))[0].rows;
  };
  await ask({ beds: [{ port: mqtt?.port ?? 0, tail: undefined, console: `http://127.0.0.1:${http?.port}` }] });
  const publishing = [false, true].map((hasOverview) => async () => {
    const rowsBefore = await ask({ bed: 0, messages: 0, hasOverview });
    const before = process.cpuUsage();
    const rows = (await ask({ bed: 0, messages })) - rowsBefore;
    const { user, system } = process.cpuUsage(before);
    if (rows > 0 !== hasOverview) throw new Error(`${rows} events of the overview`);
    return (user + system) / messages;
  });
  const [plain, open] = await takeTurns(publishing, rounds, Math.min(2, rounds));
  load.disconnect();
  await broker.stop();
  const compared = open.map((cost, round) => 100 * (cost / plain[round] - 1)).sort((a, b) => a - b);
  const rank = Math.max(0, Math.floor((rounds - 1.96 * Math.sqrt(rounds)) / 2));
  return {
    us: median(open),
    plainUs: median(plain),
    leastUs: Math.min(...open),
    leastPlainUs: Math.min(...plain),
    more: median(compared),
    interval: [compared[rank], compared[rounds - 1 - rank]]
  };
}

/** The row as a Markdown table. */
export function table({ us, plainUs, leastUs, leastPlainUs, more, interval: [low, high] }: Row): string {
  return [
    'The load of "Live tail", while the overview of the console is open: one live stream with its events, read over HTTP, and one request for the',
    'last hour in each round of 2.4 s (the page sends one every 10 s). Rounds with and without it take turns in one broker.',
    '',
    '| console | us each | without, us | least us | without | more | 95 % | goal | |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
    `| overview open | ${us.toFixed(2)} | ${plainUs.toFixed(2)} | ${leastUs.toFixed(2)} | ${leastPlainUs.toFixed(2)} | ${more.toFixed(2)} % | ${low.toFixed(2)}-${high.toFixed(2)} | ${GOAL} % | ${low > GOAL ? 'missed' : 'met'} |`
  ].join('\n');
}
