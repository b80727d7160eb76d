import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { markdown, type Sample, troubles } from './report.ts';
import { ROWS, type Row, shortened } from './rows.ts';
import { runForeign } from './streams-mqtt.ts';
import {
  type Absent,
  type BrokerKind,
  type BrokerName,
  findBroker,
  isMeasured,
  otherBrokers
} from './support/brokers.ts';
import { endAll, findCores, measure, runProgram } from './support/child.ts';
import { nameProfile, profileTable } from './support/profile.ts';

const HELP = `npm run bench -- [options] [REGEX, the same as --only REGEX]

  --only REGEX      measure only rows whose name matches; also: match, store, start, session-life, test-kit,
                    access, rest, webhook, sql, tail, console, streams, streams-mqtt
  --brokers A,B     any of embermq, aedes, mosquitto, min, raw and brokers.json (all; a broker that is not found is skipped with a message)
  --reps N          number of repetitions (3)
  --warm MS         duration of the load before the measurement (1000)
  --dur MS          duration of the measurement (2000)
  --peers DIR       folder whose node_modules contains aedes, and for its durable rows aedes-persistence-level and level
                    (BENCH_PEERS, or this project); its file brokers.json describes other brokers, each with a name, a version (or the
                    command that prints it), the command that starts it, and "v5": false if it has no MQTT 5.0; {port}, {folder} (new)
                    and {peers} in commands are replaced. They are measured where mosquitto is
  --set JSON        options that override those of the measured embermq, such as '{"maxInflight":128}'
  --out FILE        write the Markdown to FILE instead of standard output
  --json FILE       write every measurement to FILE as JSON
  --profile DIR     write a CPU profile of each embermq process to DIR and list the most expensive functions (slower; not for comparisons)
  --smoke           small sizes, only embermq, no tables; fails if a message is lost, duplicated or reordered
  --list            print the names of the rows

A rule of any engine at any broker, which publishes to a topic what it selects:

  --broker URL      mqtt://HOST:PORT; nothing else is measured
  --topic NAME      topic of the rows (demo)
  --output FILTER   topic of the results (out)
  --rule KIND       filter (WHERE temperature > 30) or window (tumbling, 1 s: count AS c, avg AS a, max AS m) (filter)
  --passing N       percent of the rows above 30 degrees, in tens (100)
  --rows N          number of rows (50000)
  --rate N          rows a second (5000)
  --burst N         rows that are published at once (100)
  --pid PID         process whose CPU time is taken

Each measurement starts its own broker and load generator, each on its own core if taskset is available. Repetitions are the outermost
loop and brokers the innermost, so that values to be compared are measured one right after the other.
CPU time and memory are read from /proc, so this needs Linux.
min and raw are relays on Node's sockets, which show the minimum cost: min parses frames and routes them, raw forwards blindly.`;

/** Measurements without a broker process. */
const EXTRAS: Readonly<Record<string, string>> = {
  match: 'Topic filters',
  store: 'Store over LevelDB',
  start: 'Start on persisted state',
  'session-life': 'Life of a session in actors',
  'test-kit': 'Test kit',
  access: 'Access control',
  rest: 'Management interface',
  webhook: 'Webhooks',
  sql: 'Rules',
  tail: 'Live tail',
  console: 'Console',
  streams: 'Stream rules',
  'streams-mqtt': 'Stream rules over MQTT'
};
/** Rows that in small size check nothing that other rows do not check. */
const SMOKE_LEAVES_OUT =
  /^match$|1KiB|w1\b|fanin50 q1|fanout1000 q0|(fanin|fanout|wild|retained|offline|storm|idle|latency).* v5/;
const NAMES: readonly BrokerName[] = ['embermq', 'aedes', 'mosquitto', 'min', 'raw'];

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', default: '.' },
    brokers: { type: 'string' },
    reps: { type: 'string' },
    warm: { type: 'string', default: '1000' },
    dur: { type: 'string', default: '2000' },
    peers: { type: 'string', default: process.env.BENCH_PEERS },
    set: { type: 'string' },
    out: { type: 'string' },
    json: { type: 'string' },
    profile: { type: 'string' },
    smoke: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    broker: { type: 'string' },
    topic: { type: 'string', default: 'demo' },
    output: { type: 'string', default: 'out' },
    rule: { type: 'string', default: 'filter' },
    passing: { type: 'string', default: '100' },
    rows: { type: 'string', default: '50000' },
    rate: { type: 'string', default: '5000' },
    burst: { type: 'string', default: '100' },
    pid: { type: 'string' },
    help: { type: 'boolean', default: false }
  }
});

const repetitions = Number(options.reps ?? (options.smoke ? 1 : 3));
const cores = findCores();

if (options.help) console.log(HELP);
else if (options.list) console.log([...ROWS.map(({ name }) => name), ...Object.keys(EXTRAS)].join('\n'));
else if (options.broker !== undefined) await measureForeign(options.broker).catch(refuse);
else await run();

async function run(): Promise<void> {
  process.once('exit', endAll);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const only = new RegExp(positionals[0] ?? options.only);
  const rows = ROWS.filter(({ name }) => isWanted(name, only)).map(sized);
  const { kinds, absent } = brokers();
  if (options.profile !== undefined) mkdirSync(options.profile, { recursive: true });
  // checked before an hour of measurements, whose results are written there
  for (const file of [options.out, options.json]) if (file !== undefined) mkdirSync(dirname(file), { recursive: true });
  const profiles = new Map<string, string>();
  const samples = await measureAll(rows, kinds, profiles);
  const extras = new Map([...(await measureExtras(only)), ...profiles]);
  if (samples.length + extras.size === 0) throw new RangeError(`--only: no row has a name that matches ${only}`);
  if (options.json !== undefined)
    writeFileSync(options.json, samples.map((sample) => `${JSON.stringify(sample)}\n`).join(''));
  if (options.smoke) {
    judge(troubles({ rows, samples }), samples.length);
    return;
  }
  const text = markdown({ rows, samples, kinds, absent, notes: notes(), extras });
  if (options.out === undefined) console.log(text);
  else writeFileSync(options.out, text);
}

/** Measure a rule that was started elsewhere. */
async function measureForeign(broker: string): Promise<void> {
  const { topic, output, rule, pid } = options;
  if (rule !== 'filter' && rule !== 'window') throw new RangeError(`--rule: expected filter or window, got "${rule}"`);
  const passing = wholeNumber('passing', 0, 100);
  if (passing % 10 !== 0) throw new RangeError(`--passing: expected a multiple of 10, got ${passing}`);
  const { text, problems } = await runForeign({
    ...{ broker, topic, output, rule, passing, repetitions },
    rows: wholeNumber('rows', 1, 1e9),
    rate: wholeNumber('rate', 1, 1e6),
    burst: wholeNumber('burst', 1, 1000),
    pid: pid === undefined ? undefined : wholeNumber('pid', 1, 2 ** 31)
  });
  if (options.out === undefined) console.log(text);
  else writeFileSync(options.out, `${text}\n`);
  judge(problems, repetitions);
}

/** Report a broker that cannot be reached, or that refuses a request. */
function refuse(error: Error): void {
  console.error(error instanceof AggregateError ? error.errors.map(String).join(', ') : error.message);
  process.exitCode = 1;
}

/** @throws RangeError */
function wholeNumber(name: 'passing' | 'rows' | 'rate' | 'burst' | 'pid', from: number, to: number): number {
  const value = Number(options[name]);
  if (!Number.isInteger(value) || value < from || value > to)
    throw new RangeError(`--${name}: expected a whole number from ${from} to ${to}, got "${options[name]}"`);
  return value;
}

async function measureAll(
  rows: readonly Row[],
  kinds: readonly BrokerKind[],
  profiles: Map<string, string>
): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const row of rows) {
      for (const kind of kinds.filter((kind) => isMeasured(kind, row))) {
        const sample = await measureOne(kind, row, repetition);
        samples.push(sample);
        const [{ key, unit }] = row.figures;
        progress(
          `${repetition + 1} ${row.name} ${kind.name}: ${sample.error ?? `${sample.outcome?.figures[key]?.toFixed(2)} ${unit}`}`
        );
        if (options.profile === undefined || kind.name !== 'embermq') continue;
        const profile = nameProfile(options.profile, row.name);
        if (profile !== undefined) profiles.set(`Where the time goes: ${row.name}`, profileTable(profile));
      }
    }
  }
  return samples;
}

async function measureOne(kind: BrokerKind, row: Row, repetition: number): Promise<Sample> {
  const sample = { row: row.name, broker: kind.name, repetition };
  try {
    return { ...sample, outcome: await measure(kind, row, cores) };
  } catch (error) {
    return { ...sample, error: (error as Error).message };
  }
}

async function measureExtras(only: RegExp): Promise<Map<string, string>> {
  const extras = new Map<string, string>();
  for (const [name, heading] of Object.entries(EXTRAS).filter(([name]) => isWanted(name, only))) {
    progress(name);
    extras.set(heading, (await runProgram('support/micro.js', microArgs(name), cores)).trim());
  }
  return extras;
}

function microArgs(name: string): string[] {
  const length = options.smoke ? 'short' : 'full';
  if (name !== 'streams-mqtt') return [name, length, ...(cores === undefined ? [] : [String(cores.broker)])];
  const [broker, load] = cores === undefined ? ['', ''] : [String(cores.broker), String(cores.load)];
  return [name, length, broker, load, ...(options.profile === undefined ? [] : [options.profile])];
}

function judge(found: readonly string[], measurements: number): void {
  for (const line of found) console.error(line);
  console.log(`${measurements} measurements, ${found.length} problems`);
  if (found.length > 0) process.exitCode = 1;
}

function notes(): string[] {
  const pinning =
    cores === undefined
      ? 'processes not pinned'
      : `broker on core ${cores.broker}, load generator on core ${cores.load}`;
  const lines = [
    `Repetitions: ${repetitions}, each with ${options.warm} ms of warm-up and ${options.dur} ms measured, over 127.0.0.1; ${pinning}.`,
    'Backlogs are large enough that no broker has to drop messages. At most 1000 messages are in flight to a subscriber for embermq (the ' +
      'default is 128, which fan-in at QoS 1 reaches) and mosquitto; aedes and the relays have no limit.',
    'embermq runs with its limits and statistics turned on, and with one idle event listener (`bench/brokers/embermq.ts`).'
  ];
  if (options.set !== undefined) lines.push(`embermq ran with these additional options: \`${options.set}\`.`);
  if (options.profile !== undefined)
    lines.push('embermq was profiled, so its costs are higher than without profiling.');
  return lines;
}

function brokers(): { kinds: BrokerKind[]; absent: Absent[] } {
  const others = options.smoke ? [] : otherBrokers(options.peers);
  const names = [...NAMES, ...others.map(({ name }) => name)];
  const wanted = options.brokers?.split(',') ?? (options.smoke ? ['embermq'] : names);
  const kinds: BrokerKind[] = [];
  const absent: Absent[] = [];
  for (const name of wanted) {
    if (!names.includes(name)) throw new RangeError(`--brokers: expected any of ${names.join(', ')}, got "${name}"`);
    const { peers, profile: profiles, set } = options;
    const found = others.find((other) => other.name === name) ?? findBroker(name, { peers, profiles, options: set });
    if ('command' in found) kinds.push(found);
    else {
      absent.push(found);
      progress(`${found.name} is skipped, because it was not found (${found.remedy})`);
    }
  }
  return { kinds, absent };
}

function isWanted(name: string, only: RegExp): boolean {
  return only.test(name) && !(options.smoke && SMOKE_LEAVES_OUT.test(name));
}

function sized(row: Row): Row {
  if (options.smoke) return shortened(row);
  return { ...row, task: { ...row.task, warmMs: Number(options.warm), measureMs: Number(options.dur) } };
}

/** Print progress to standard error, because standard output is for the tables. */
function progress(line: string): void {
  console.error(line);
}
