import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from './report.ts';
import { type Driven, drive } from './streams/drive.ts';
import { ROW_BYTES, Rows, type Rule, STATEMENTS } from './streams/rows.ts';
import { findBroker } from './support/brokers.ts';
import { type Cores, end, freePort, listening, pinned, start } from './support/child.ts';
import { nameProfile, profileTable } from './support/profile.ts';

/** The kind of measurement in a row of the table. */
interface Kind {
  readonly what: string;
  /** Undefined: the broker alone, whose subscriber receives the rows unchanged. */
  readonly rule: Rule | undefined;
  readonly rules: number;
  /** Number of rows out of ten that pass the filter. */
  readonly passing: number;
  /** Rows per second, and per burst. */
  readonly rate: number;
  readonly burst: number;
  readonly goal?: number;
}

/** The cost of a row in a broker with rules, over MQTT. */
export interface Row extends Kind {
  /** The results of all repetitions. */
  readonly driven: readonly Driven[];
}

/** The length and the number of measurements. */
export interface Sizes {
  readonly warmMs: number;
  readonly measureMs: number;
  readonly repetitions: number;
}

export const FULL: Sizes = { warmMs: 5000, measureMs: 3000, repetitions: 3 };
export const SHORT: Sizes = { warmMs: 50, measureMs: 100, repetitions: 1 };

const FAST = { rate: 50_000, burst: 100 };
const KINDS: readonly Kind[] = [
  { what: 'no rule: all rows delivered', rule: undefined, rules: 0, passing: 10, ...FAST },
  { what: 'filter, all rows pass', rule: 'filter', rules: 1, passing: 10, ...FAST, goal: 5 },
  { what: 'filter, 30 % of the rows pass', rule: 'filter', rules: 1, passing: 3, ...FAST, goal: 5 },
  { what: 'tumbling window of 1 s', rule: 'window', rules: 1, passing: 3, ...FAST, goal: 4 },
  { what: '100 filters, all rows pass', rule: 'filter', rules: 100, passing: 10, rate: 1000, burst: 10 },
  { what: '100 filters, 30 % of the rows pass', rule: 'filter', rules: 100, passing: 3, rate: 2000, burst: 10 },
  { what: '100 tumbling windows of 1 s', rule: 'window', rules: 100, passing: 3, rate: 10_000, burst: 100 }
];

const TOPIC = 'demo';
const OUTPUT = 'out';

/** The location of the rules, and of recordings. */
export interface Place {
  readonly cores: Cores | undefined;
  /** Folder for a CPU profile of each kind; its first repetition is recorded. */
  readonly profiles?: string | undefined;
}

/**
 * Measure brokers with rules, each in a separate process.
 * @throws Error if a row was lost, duplicated, reordered or changed
 */
export async function run(sizes: Sizes, place: Place): Promise<Row[]> {
  const driven = KINDS.map((): Driven[] => []);
  for (let repetition = 0; repetition < sizes.repetitions; repetition++)
    for (const [at, kind] of KINDS.entries()) driven[at].push(await measure(kind, sizes, place));
  return KINDS.map((kind, at) => ({ ...kind, driven: driven[at] }));
}

async function measure(kind: Kind, { warmMs, measureMs }: Sizes, { cores, profiles }: Place): Promise<Driven> {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-bench-'));
  const port = await freePort();
  const { rules, rule, rate, burst, passing } = kind;
  const streams = {
    definitions: [`CREATE STREAM ${TOPIC} () WITH (DATASOURCE="${TOPIC}", FORMAT="JSON")`],
    rules: Array.from({ length: rule === undefined ? 0 : rules }, (_, at) => ({
      id: `rule${at}`,
      sql: STATEMENTS[rule ?? 'filter'],
      actions: [{ mqtt: { topic: `${OUTPUT}/${at}`, sendSingle: true } }]
    }))
  };
  const embermq = findBroker('embermq', { options: JSON.stringify({ streams }), profiles });
  if (!('command' in embermq)) throw new Error(embermq.remedy);
  const broker = start(pinned(embermq.command(port, folder), cores?.broker));
  try {
    await listening(broker, port);
    await sleep(200);
    const driven = await drive({
      ...{ host: '127.0.0.1', port, pid: broker.child.pid, rate, burst },
      ...{ rule: rule ?? 'filter', rows: new Rows(TOPIC, passing) },
      ...{ output: rule === undefined ? TOPIC : `${OUTPUT}/+`, outputs: Math.max(1, rules) },
      ...{ warming: (rate * warmMs) / 1000, count: (rate * measureMs) / 1000 },
      cores: cores === undefined ? [] : [cores.broker, cores.load]
    });
    if (driven.problems.length > 0) throw new Error(`${kind.what}: ${driven.problems.join(', ')}`);
    return driven;
  } finally {
    await end(broker.child);
    rmSync(folder, { recursive: true, force: true });
    if (profiles !== undefined) nameProfile(profiles, kind.what);
  }
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[], profiles?: string): string {
  const lines = rows.map(({ what, rules, goal, rate, burst, driven }) => {
    const us = driven.map((each) => each.us);
    const each = rules < 2 ? '' : `${show(median(us) / rules)} (${show(Math.min(...us) / rules)})`;
    const busy = `${percent(median(driven.map((each) => each.busy)))} % / ${percent(median(driven.map((each) => each.othersBusy)))} %`;
    const verdict = goal === undefined ? '' : median(us) <= goal ? 'met' : 'missed';
    const cost = `${show(median(us))} (${show(Math.min(...us))}-${show(Math.max(...us))})`;
    return `| ${what} | ${rate} / ${burst} | ${cost} | ${each} | ${busy} | ${goal ?? ''} | ${verdict} |`;
  });
  return [
    `Rows of ${ROW_BYTES} bytes of JSON, published over MQTT with QoS 0 in bursts to the source of a rule, whose sink publishes to a topic that a subscriber of`,
    'another process reads: CPU microseconds of the process that has the broker and the rules, user and system, all threads, for each row that is',
    'published. The median and, in parentheses, the lowest to highest of the repetitions. The subscriber checks that each row that passes comes once',
    'and in order, and that the windows together have counted each row once.',
    '',
    `    ${STATEMENTS.filter}`,
    `    ${STATEMENTS.window}`,
    '',
    '| rule | rows/s / burst | us a row | us a row and rule | busy / others | goal | |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...lines,
    ...(profiles === undefined ? [] : rows.flatMap(({ what }) => profileOf(profiles, what)))
  ].join('\n');
}

function profileOf(folder: string, what: string): string[] {
  const path = join(folder, `${what.replaceAll(/[^A-Za-z0-9]+/g, '-')}.cpuprofile`);
  return ['', `### Where the time goes: ${what}`, '', profileTable(path, 25)];
}

/** A broker and a rule that were started elsewhere. */
export interface Foreign {
  /** The URL: `mqtt://HOST:PORT`. */
  readonly broker: string;
  readonly topic: string;
  readonly output: string;
  readonly rule: Rule;
  /** Percentage of rows above 30 degrees, in steps of ten. */
  readonly passing: number;
  readonly rows: number;
  readonly rate: number;
  readonly burst: number;
  readonly repetitions: number;
  readonly pid: number | undefined;
}

/**
 * Measure a rule of any engine at any broker.
 * @returns Markdown, and the problems
 */
export async function runForeign(foreign: Foreign): Promise<{ text: string; problems: string[] }> {
  const { topic, output, rule, passing, rows: count, rate, burst, repetitions, pid } = foreign;
  const driven: Driven[] = [];
  for (let repetition = 0; repetition < repetitions; repetition++)
    driven.push(
      await drive({
        ...{
          ...addressOf(foreign.broker),
          pid,
          rate,
          burst,
          rule,
          rows: new Rows(topic, passing / 10),
          output,
          outputs: 1
        },
        ...{ warming: Math.ceil(count / 5), count }
      })
    );
  const lines = driven.map(
    ({ us, perSec, received, problems }) =>
      `| ${rule} | ${count} | ${perSec.toFixed(0)} | ${received} | ${pid === undefined ? '' : show(us)} | ${problems.join(', ') || 'none'} |`
  );
  const text = [
    `Rows of ${ROW_BYTES} bytes of JSON to ${foreign.broker}, topic \`${topic}\`, results from \`${output}\`, with ${passing} % of the rows above 30 degrees:`,
    `CPU microseconds of ${pid === undefined ? 'no process' : `process ${pid}`} for each row. A fifth of the rows are published before the measurement in addition; received are rows of both.`,
    'The rule is to be',
    '',
    `    ${STATEMENTS[rule]}`,
    '',
    '| rule | rows | rows/s | received | us a row | problems |',
    '| --- | --- | --- | --- | --- | --- |',
    ...lines
  ].join('\n');
  return { text, problems: driven.flatMap(({ problems }) => problems) };
}

/** @throws RangeError */
function addressOf(url: string): { host: string; port: number } {
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== 'mqtt:' && protocol !== 'tcp:')
    throw new RangeError(`--broker: expected a URL such as mqtt://127.0.0.1:1883, got "${url}"`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 1883 : Number(port) };
}

function show(us: number): string {
  return us.toFixed(us < 10 ? 2 : 1);
}

function percent(part: number): string {
  return (part * 100).toFixed(0);
}
