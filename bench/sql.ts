import { Message } from '../lib/packets/message.ts';
import { CatalogueEvent } from '../lib/rules/events/event.ts';
import { RULE_EVENTS } from '../lib/rules/events/rows.ts';
import { type Plan, Planner } from '../lib/rules/plan.ts';
import { median } from './report.ts';
import { cpuUs, takeTurns } from './support/turns.ts';

/** The cost of evaluating a statement: CPU microseconds of all threads. */
export interface Row {
  readonly what: string;
  /** Median and minimum of the rounds. */
  readonly us: number;
  readonly leastUs: number;
  /** The cost above that of JSON.parse for the same payload: the median over rounds, and the difference of the minimums. */
  readonly moreUs?: number;
  readonly leastMoreUs?: number;
  /** The goal for `moreUs` if there is one, otherwise for `us`. */
  readonly goalUs?: number;
}

const ROUNDS = 25;
const WARMING = 3;

/** A payload of 33 bytes. */
const READING = '{"temp":23.5,"hum":40,"id":"d17"}';
const LIST = JSON.stringify({ list: Array.from({ length: 100 }, (_, id) => ({ id, value: id + 0.5 })) });
const SELECT = 'SELECT payload.temp AS t, upper(clientid) AS who FROM "a/#" WHERE payload.temp > 20';
const EXCLUDING = `SELECT * FROM "a/#" WHERE clientid = 'another'`;
const FOREACH = 'FOREACH payload.list AS e DO clientid, e.id AS id FROM "a/#"';
const FOREACH_INCASE = 'FOREACH payload.list AS e DO clientid, e.id AS id, e.value AS v INCASE e.value > 0 FROM "a/#"';
/** A payload of 200 characters. */
const LONG =
  'SELECT payload.temp AS t, payload.data[1].x * 2 + 1 AS v, upper(clientid) AS who, qos FROM "site/+/device/#", "b/c" ' +
  `WHERE payload.temp > 20 AND (clientid = 'a' OR topic =~ 'site/1/#') AND qos IN (0,1)`;
/** Statements of other rules: closures are slower in a process that has evaluated more than one statement. */
const OTHERS = [
  'SELECT * FROM "a/#"',
  'SELECT payload FROM "a/#"',
  `SELECT payload.id AS id, topic FROM "a/#" WHERE topic =~ 'a/+' AND qos = 0`,
  `SELECT clientid, payload.hum AS h FROM "a/#" WHERE payload.hum >= 40 OR clientid = 'x'`,
  'SELECT concat(clientid, topic) AS c, CASE WHEN qos = 0 THEN 1 ELSE qos + 1 END AS q FROM "a/#"'
];

interface Work {
  readonly what: string;
  /** Calls in a round, as a part of `evaluations`. */
  readonly part: number;
  readonly goalUs?: number;
  /** The work whose cost is subtracted. */
  readonly above?: string;
  readonly call: () => unknown;
}

/** Measure with this number of evaluations in each round. */
export async function run(evaluations: number): Promise<Row[]> {
  const works = await makeWorks(evaluations);
  const turns = works.map(
    ({ part, call }) =>
      () =>
        cpuUs(Math.ceil(evaluations * part), call)
  );
  const costs = await takeTurns(turns, ROUNDS, WARMING);
  const least = costs.map((each) => Math.min(...each));
  return works.map(({ what, above, goalUs }, at): Row => {
    const row = { what, us: median(costs[at]), leastUs: least[at], goalUs };
    if (above === undefined) return row;
    const base = works.findIndex((work) => work.what === above);
    const moreUs = median(costs[at].map((cost, round) => cost - costs[base][round]));
    return { ...row, moreUs, leastMoreUs: least[at] - least[base] };
  });
}

async function makeWorks(evaluations: number): Promise<Work[]> {
  const planner = new Planner({ now: Date.now, random: Math.random, nullIsNull: false });
  const plans = await Promise.all(
    [SELECT, EXCLUDING, FOREACH, FOREACH_INCASE, ...OTHERS].map((sql) => planner.plan(sql))
  );
  const [select, excluding, foreach, foreachIncase] = plans;
  const reading = messageOf(READING);
  const list = messageOf(LIST);
  for (let i = 0; i < evaluations / 5; i++) evaluate(plans[i % plans.length], i % 8 === 0 ? list : reading);
  const parse = `JSON.parse of ${READING.length} bytes`;
  const parseList = `JSON.parse of a list of 100 objects, ${LIST.length} bytes`;
  return [
    { what: parse, part: 1, call: () => JSON.parse(reading.payload.toString()) },
    { what: 'SELECT and WHERE on these', part: 1, goalUs: 0.2, above: parse, call: () => evaluate(select, reading) },
    { what: 'WHERE on clientid that fails', part: 1, goalUs: 0.06, call: () => evaluate(excluding, reading) },
    { what: parseList, part: 0.02, call: () => JSON.parse(list.payload.toString()) },
    {
      what: 'FOREACH over these, DO with two fields',
      part: 0.02,
      goalUs: 12,
      above: parseList,
      call: () => evaluate(foreach, list)
    },
    {
      what: 'FOREACH over these, DO with three fields, INCASE',
      part: 0.02,
      goalUs: 12,
      above: parseList,
      call: () => evaluate(foreachIncase, list)
    },
    { what: `parse and compile ${LONG.length} characters`, part: 0.02, goalUs: 50, call: () => planner.plan(LONG) }
  ];
}

function messageOf(payload: string): Message {
  return Message.from({ topic: 'a/b', payload }, { clientId: 'device17', username: undefined }, 0, Date.now());
}

const CONTEXT = { node: 'bench', now: Date.now };

/** Evaluate a statement for the publish of a message, as the first rule that sees it. */
function evaluate(plan: Plan, message: Message): unknown {
  return plan.run(new CatalogueEvent(RULE_EVENTS['message.publish'], { message, client: undefined }, CONTEXT));
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  const show = (us: number | undefined) => us?.toFixed(us < 1 ? 3 : 1) ?? '';
  return [
    'Statements, from a message in memory to the output: the median and, in parentheses, the minimum over rounds. `more us` is the cost above that',
    'of JSON.parse for the same bytes. The goal is for `more us` where there is one.',
    '',
    '| statement | us | more us | goal | |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map(({ what, us, leastUs, moreUs, leastMoreUs, goalUs }) => {
      const more = moreUs === undefined ? '' : `${show(moreUs)} (${show(leastMoreUs)})`;
      const verdict = goalUs === undefined ? '' : (moreUs ?? us) <= goalUs ? 'met' : 'missed';
      return `| ${what} | ${show(us)} (${show(leastUs)}) | ${more} | ${goalUs ?? ''} | ${verdict} |`;
    })
  ].join('\n');
}
