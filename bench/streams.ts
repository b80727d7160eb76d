import { type Broker, type Clock, createBroker, systemClock } from 'embermq';
import { median } from './report.ts';
import { cpuUs, heldBytes, takeTurns } from './support/turns.ts';

/** The cost of rows that pass through rules over a stream: CPU time of all threads. */
export interface Row {
  readonly what: string;
  /** Microseconds per row: median and minimum of the rounds. */
  readonly us: number;
  readonly leastUs: number;
  /** The value with a goal: the median over rounds, and that of the minimums. */
  readonly figure?: number;
  readonly leastFigure?: number;
  readonly unit?: string;
  readonly goal?: number;
}

export interface Sizes {
  /** Rows in each round. */
  readonly rows: number;
  readonly rounds: number;
  readonly groups: number;
  readonly rules: number;
  /** Rows in the longer of the sliding windows. */
  readonly windowRows: number;
}

/** Size in bytes of a rule without rows. */
export interface MemoryRow {
  readonly rules: number;
  readonly bytes: number;
}

export const FULL: Sizes = { rows: 50_000, rounds: 15, groups: 1000, rules: 1000, windowRows: 1_000_000 };
export const SHORT: Sizes = { rows: 2000, rounds: 2, groups: 100, rules: 100, windowRows: 10_000 };

const WARMING = 3;
/** Rows in the shorter of the sliding windows. */
const FEW_WINDOW_ROWS = 1000;
const STREAM = 'CREATE STREAM demo () WITH (TYPE="bench", FORMAT="JSON")';
const IDLE_GOAL_BYTES = 20_000;

interface Work {
  readonly what: string;
  /** Rows in a round, as a part of `rows`. */
  readonly part: number;
  readonly call: () => void;
  /** Called once a round, as a part of it. */
  readonly end?: () => void;
  readonly unit?: string;
  readonly goal?: number;
  /** The value, computed from the microseconds of all works in a round. */
  readonly figure?: (us: readonly number[]) => number;
}

/** Measure running rules. */
export async function run(sizes: Sizes): Promise<Row[]> {
  const { rows, rounds, rules, windowRows } = sizes;
  const { works, stop } = await makeWorks(sizes);
  const turns = works.map(({ part, call, end }) => () => {
    const count = Math.ceil(rows * part);
    const us = cpuUs(count, call);
    return end === undefined ? us : us + cpuUs(1, end) / count;
  });
  const costs = await takeTurns(turns, rounds, WARMING);
  await stop({ rules, windowRows });
  const least = costs.map((each) => Math.min(...each));
  return works.map(({ what, figure, unit, goal }, at): Row => {
    const row = { what, us: median(costs[at]), leastUs: least[at], unit, goal };
    if (figure === undefined) return row;
    const figures = costs[at].map((_, round) => figure(costs.map((each) => each[round])));
    return { ...row, figure: median(figures), leastFigure: figure(least) };
  });
}

async function makeWorks({ groups, rules, windowRows }: Sizes): Promise<{
  works: readonly Work[];
  stop(sizes: Pick<Sizes, 'rules' | 'windowRows'>): Promise<void>;
}> {
  const payloads = Array.from({ length: groups }, (_, i) =>
    Buffer.from(`{"id":"d${String(i).padStart(4, '0')}","temperature":${30.5 + (i % 10)},"humidity":40}`)
  );
  const filter = await makeBed(['SELECT id, temperature FROM demo WHERE temperature > 30'], payloads);
  const tumbling = await makeBed(
    [
      'SELECT id, count(*) AS n, avg(temperature) AS mean FROM demo WHERE temperature > 30 GROUP BY id, TUMBLINGWINDOW(ss, 10)'
    ],
    payloads
  );
  const many = await makeBed(
    Array.from({ length: rules }, (_, i) => `SELECT id, temperature FROM demo WHERE temperature > ${100 + i}`),
    payloads
  );
  const sliding = (rows: number) =>
    `SELECT count(*) AS n, avg(temperature) AS mean FROM demo GROUP BY SLIDINGWINDOW(ms, ${rows - 1})`;
  const few = await makeBed([sliding(FEW_WINDOW_ROWS)], payloads);
  const long = await makeBed([sliding(windowRows)], payloads);
  for (const { bed, count } of [
    { bed: few, count: FEW_WINDOW_ROWS },
    { bed: long, count: windowRows }
  ])
    for (let i = 0; i < count; i++) bed.later();
  let at = 0;
  const parse = () => JSON.parse(payloads[at++ % payloads.length].toString());
  return {
    works: [
      { what: `JSON.parse of ${payloads[0].length} bytes`, part: 1, call: parse },
      {
        ...{ what: 'filter and project of these', part: 1, call: filter.take },
        ...{ unit: 'us over JSON.parse', goal: 0.9, figure: ([parsed, filtered]) => filtered - parsed }
      },
      {
        ...{
          what: `tumbling count and avg by ${groups} groups`,
          part: 1,
          call: tumbling.take,
          end: tumbling.endWindow
        },
        ...{ unit: 'us over the row above', goal: 0.4, figure: ([, filtered, counted]) => counted - filtered }
      },
      {
        ...{ what: `${rules} rules on one stream, none matches`, part: 0.02, call: many.take },
        ...{ unit: 'ns a row and rule', goal: 40, figure: (us) => (us[3] * 1000) / rules }
      },
      { what: `sliding count and avg of ${FEW_WINDOW_ROWS} rows`, part: 1, call: few.later },
      {
        ...{ what: `sliding count and avg of ${windowRows} rows`, part: 1, call: long.later },
        ...{ unit: 'times the row above', goal: 2, figure: (us) => us[5] / us[4] }
      }
    ],
    async stop(sizes) {
      await filter.stop({ rules: 1, emits: true });
      await tumbling.stop({ rules: 1, emits: true });
      await many.stop({ rules: sizes.rules, emits: false });
      await few.stop({ rules: 1, emits: true, rows: FEW_WINDOW_ROWS });
      await long.stop({ rules: 1, emits: true, rows: sizes.windowRows });
    }
  };
}

/** A broker with rules over one stream, whose payloads come from a source in this process. */
interface Bed {
  readonly broker: Broker;
  /** Deliver the next payload. */
  readonly take: () => void;
  /** Deliver the next payload a millisecond later. */
  readonly later: () => void;
  /** Advance the time until the window has ended and its groups are emitted. */
  readonly endWindow: () => void;
  /**
   * @throws if rows were lost or rules have failed
   * @param rows the number of rows counted in the last emission
   */
  stop(expected: { readonly rules: number; readonly emits: boolean; readonly rows?: number }): Promise<void>;
}

async function makeBed(statements: readonly string[], payloads: readonly Buffer[]): Promise<Bed> {
  let nowMs = 1_800_000_000_000;
  const clock: Clock = { ...systemClock, now: () => nowMs };
  let arrive: (payload: Uint8Array) => void = () => undefined;
  const source = {
    name: 'bench',
    about: 'Payloads of the measurement.',
    open(setup: { connected(): void; bytes(payload: Uint8Array): void }) {
      arrive = setup.bytes;
      setup.connected();
      return { close: () => undefined };
    }
  };
  const broker = createBroker({ clock, streams: { sources: [source] } });
  await broker.start();
  await broker.streams.create(STREAM);
  let emissions = 0;
  let last: Record<string, unknown> = {};
  const emitted = (rows: readonly Record<string, unknown>[]) => {
    emissions++;
    last = rows[0];
  };
  for (const [at, sql] of statements.entries())
    await broker.streams.rules.create({ id: `rule${at}`, sql, actions: [emitted] });
  let taken = 0;
  const take = () => arrive(payloads[taken++ % payloads.length]);
  const later = () => {
    nowMs++;
    take();
  };
  return {
    broker,
    take,
    later,
    endWindow() {
      nowMs += 10_000;
      take(); // a row of the next window
    },
    async stop({ rules, emits, rows }) {
      for (let at = 0; at < rules; at++) {
        const { metrics } = await broker.streams.rules.status(`rule${at}`);
        const count = metrics.source_demo_0_records_in_total;
        if (count !== taken) throw new Error(`rule ${at} got ${count} of ${taken} rows`);
        const fault = Object.keys(metrics).find((name) => name.endsWith('exceptions_total') && metrics[name] !== 0);
        if (fault !== undefined) throw new Error(`rule ${at} has failed: ${JSON.stringify(metrics)}`);
      }
      if (emits !== emissions > 0) throw new Error(`${emissions} emissions`);
      if (rows !== undefined && last.n !== rows) throw new Error(`the window has ${last.n} instead of ${rows} rows`);
      await broker.stop();
    }
  };
}

/** Measure rules without rows. Needs `--expose-gc`. */
export async function runMemory({ rules }: Sizes): Promise<MemoryRow> {
  const { broker } = await makeBed([], []);
  const make = (i: number) =>
    broker.streams.rules.create({
      id: `rule${i}`,
      sql: `SELECT id, temperature FROM demo WHERE temperature > ${i}`,
      actions: [{ mqtt: { topic: `alerts/${i}` } }]
    });
  // the first ones fill caches, and warm up the compiler
  for (let i = 0; i < rules / 5; i++) await make(-1 - i);
  const before = await heldBytes();
  for (let i = 0; i < rules; i++) await make(i);
  const bytes = ((await heldBytes()) - before) / rules;
  await broker.stop();
  return { rules, bytes };
}

/** The rows as Markdown tables. */
export function table(rows: readonly Row[], { rules, bytes }: MemoryRow): string {
  const show = (figure: number) => figure.toFixed(figure < 10 ? 2 : 1);
  return [
    'Rows of JSON from a source in this process to a function of the app, one after the other: the median and, in parentheses, the minimum over rounds.',
    'JSON.parse reads the same bytes. Windows include their emissions: one for each round, and for sliding windows one for each row.',
    '',
    '| rule | us per row | metric | goal | |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map(({ what, us, leastUs, figure, leastFigure, unit, goal }) => {
      const shown =
        figure === undefined || leastFigure === undefined ? '' : `${show(figure)} (${show(leastFigure)}) ${unit}`;
      return `| ${what} | ${show(us)} (${show(leastUs)}) | ${shown} | ${goal ?? ''} | ${verdict(figure, goal)} |`;
    }),
    '',
    '| idle rules | bytes each | goal | |',
    '| --- | --- | --- | --- |',
    `| ${rules} | ${bytes.toFixed(0)} | ${IDLE_GOAL_BYTES} | ${verdict(bytes, IDLE_GOAL_BYTES)} |`
  ].join('\n');
}

function verdict(figure: number | undefined, goal: number | undefined): string {
  return figure === undefined || goal === undefined ? '' : figure <= goal ? 'met' : 'missed';
}
