// A benchmark measures any broker, so it uses nothing but a client, and this process may share the CPU with the
// broker: results are for comparisons. After an interrupt the results so far are printed. Every connection is closed
// in the end, also those that are being opened, because each would keep the process alive.

import { setMaxListeners } from 'node:events';
import { nearest } from '../../lib/adapter.ts';
import { type Client, InvalidInput, type QoS } from '../../lib/index.ts';
import { type BenchPlan, benchConnect, benchLatency, benchPublish, benchSubscribe, type Tally } from './bench-runs.ts';
import type { Command, Shell } from './command.ts';
import { DIAL_FLAGS, dialEndpoint, INTERRUPTED, interrupted, leave } from './dial.ts';
import { nameOf, readEndpoint } from './endpoint.ts';
import { describeFlags, type FlagValues, flag, readFlags, timeFlag } from './flags.ts';
import { timeLeft } from './progress-bar.ts';
import { clientOptions, qosFlag } from './session-flags.ts';
import { Spread } from './spread.ts';

const OWN_FLAGS = {
  clients: flag('integer', 10, 'number of concurrent clients; for latency, of pairs of clients', {
    short: 'n',
    value: 'N',
    min: 1
  }),
  count: flag('integer', 1_000, 'for connect: number of connections', { value: 'N', min: 1 }),
  duration: timeFlag(10_000, 'duration of the measurement, except for connect', { short: 'd' }),
  rate: flag(
    'integer',
    undefined as number | undefined,
    'messages per second of all clients together; 0: as fast as possible',
    {
      value: 'N'
    }
  ),
  qos: qosFlag('QoS of messages and subscriptions'),
  size: flag('size', 64, 'size of the payload', { short: 's', value: 'BYTES' }),
  window: flag('integer', 20, 'number of unacknowledged QoS 1 and 2 messages per client', { value: 'N', min: 1 }),
  topic: flag('string', 'embermq-bench', 'first levels of the topics', { short: 't', value: 'TOPIC' }),
  json: flag('boolean', false, 'print the result as JSON, also on a terminal')
};

/** All flags of the command. */
export const BENCH_FLAGS = { ...OWN_FLAGS, ...DIAL_FLAGS };
type BenchFlags = FlagValues<typeof BENCH_FLAGS>;

/** The benchmarks, with their default rate and the unit that they count. */
const BENCHES = {
  connect: { run: benchConnect, rate: 0, unit: 'connections', about: 'connect and disconnect repeatedly' },
  publish: { run: benchPublish, rate: 0, unit: 'messages', about: 'publish from many clients, without subscribers' },
  subscribe: {
    run: benchSubscribe,
    rate: 1_000,
    unit: 'messages',
    about: 'publish from one client to many subscribers'
  },
  latency: {
    run: benchLatency,
    rate: 1_000,
    unit: 'messages',
    about: 'measure the latency between pairs of publisher and subscriber'
  }
} as const;

type BenchName = keyof typeof BENCHES;

/** The result that `--json` prints. Latencies are in milliseconds. */
interface BenchResult {
  readonly bench: BenchName;
  readonly broker: string;
  readonly clients: number;
  readonly qos: number;
  readonly size: number;
  readonly seconds: number;
  readonly count: number;
  readonly perSecond: number;
  readonly latencyMs: ReturnType<Spread['summary']> | null;
  readonly lost?: number;
  readonly outOfOrder?: number;
}

/** `embermq bench`: measure the performance of any broker. */
export const bench: Command = {
  summary: 'measure a broker: connect, publish, subscribe, latency',
  hasHostFlag: true,
  completed: () => ({ flags: BENCH_FLAGS, words: Object.fromEntries(Object.keys(BENCHES).map((name) => [name, {}])) }),
  help: () => `usage: embermq bench connect|publish|subscribe|latency [flags]

${Object.entries(BENCHES)
  .map(([name, { about }]) => `  ${name.padEnd(10)} ${about}`)
  .join('\n')}

On a terminal, one line shows the progress. If standard output is not a terminal, or with --json, the result is one line of JSON.
This command is a Node process itself and may share the CPU with the broker: use the results for comparisons only.

${describeFlags(OWN_FLAGS)}

connection
${describeFlags(DIAL_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(BENCH_FLAGS, args);
    const name = benchName(words);
    const signal = interrupted(shell);
    const result = await measure(name, flags, shell, signal);
    const isPlain = shell.stdout.isTTY !== true || flags.json;
    shell.stdout.write(isPlain ? `${JSON.stringify(result)}\n` : formatResult(result));
    return signal.aborted ? INTERRUPTED : 0;
  }
};

function benchName(words: readonly string[]): BenchName {
  const [name = '', ...rest] = words;
  if (rest.length > 0)
    throw new InvalidInput(
      'FLAG_INVALID',
      'bench',
      'one bench',
      words,
      `bench accepts one benchmark, not "${words.join(' ')}"`
    );
  if (Object.hasOwn(BENCHES, name)) return name as BenchName;
  const near = nearest(name, Object.keys(BENCHES));
  const hint = near === undefined ? `one of ${Object.keys(BENCHES).join(', ')}` : `did you mean ${near}?`;
  throw new InvalidInput('BENCH_UNKNOWN', 'bench', 'a bench', name, `unknown bench "${name}": ${hint}`);
}

async function measure(name: BenchName, flags: BenchFlags, shell: Shell, signal: AbortSignal): Promise<BenchResult> {
  const endpoint = await readEndpoint(flags, shell);
  const { run, rate, unit } = BENCHES[name];
  const tally: Tally = { count: 0, spread: new Spread() };
  const over = new AbortController();
  setMaxListeners(0, signal); // every connecting client adds a listener
  signal.addEventListener('abort', () => over.abort());
  let beganMs = performance.now();
  let endedMs = beganMs;
  let timer: NodeJS.Timeout | undefined;
  const dials = new Set<Promise<Client>>();
  const share = () =>
    name === 'connect' ? tally.count / flags.count : (performance.now() - beganMs) / Math.max(flags.duration, 1);
  const total = name === 'connect' ? ` of ${flags.count}` : '';
  const progress = showProgress(shell, tally, `${total} ${unit}`, () => timeLeft(share(), performance.now() - beganMs));
  const plan: BenchPlan = {
    ...flags,
    qos: flags.qos as QoS,
    rate: flags.rate ?? rate,
    dial(options) {
      // A client id can only be used by one connection at a time, so the broker assigns them.
      const connecting = { ...clientOptions({ ...flags, id: undefined }, endpoint), ...options };
      const dialling = dialEndpoint(endpoint, connecting, flags.connectTimeout, signal);
      dials.add(dialling);
      const forget = () => void dials.delete(dialling);
      dialling.then((client) => client.on('close', forget), forget);
      return dialling;
    },
    ended: over.signal,
    begun() {
      beganMs = performance.now();
      if (name !== 'connect') timer = setTimeout(() => over.abort(), flags.duration);
    },
    tally
  };
  try {
    await run(plan).catch((error) => {
      if (!signal.aborted) throw error; // after an interrupt, report the results so far
    });
    endedMs = performance.now();
  } finally {
    clearTimeout(timer);
    progress();
    over.abort();
    await leaveAll(dials);
  }
  const seconds = (endedMs - beganMs) / 1000;
  const { count, spread, lost, outOfOrder } = tally;
  const { clients, qos, size } = flags;
  const latencyMs = spread.count === 0 ? null : spread.summary();
  const figures = { seconds: Number(seconds.toFixed(3)), count, perSecond: Math.round(count / seconds), latencyMs };
  return { bench: name, broker: nameOf(endpoint), clients, qos, size, ...figures, lost, outOfOrder };
}

/** Close all connections, including those that are still being opened, because each would keep the process alive. */
async function leaveAll(dials: Iterable<Promise<Client>>): Promise<void> {
  await Promise.all([...dials].map((dialling) => dialling.then(leave, () => {})));
}

/** Show the progress in one line of the terminal, updated every second. @returns a function that removes the line */
function showProgress({ stdout, stderr }: Shell, tally: Tally, unit: string, left: () => string): () => void {
  if (stdout.isTTY !== true) return () => {};
  let before = 0;
  const timer = setInterval(() => {
    const p99 = tally.spread.count === 0 ? '' : `, p99 ${tally.spread.summary().p99} ms`;
    stderr.write(`\r${tally.count}${unit}, ${tally.count - before}/s${p99}${left()}\x1b[K`);
    before = tally.count;
  }, 1000);
  return () => {
    clearInterval(timer);
    stderr.write('\r\x1b[K');
  };
}

function formatResult({
  bench: name,
  broker,
  clients,
  qos,
  size,
  seconds,
  count,
  perSecond,
  latencyMs,
  lost,
  outOfOrder
}: BenchResult): string {
  const lines = [
    `${name}: ${broker}, ${clients} clients${name === 'connect' ? '' : `, QoS ${qos}, ${size} bytes`}`,
    `${count} ${BENCHES[name].unit} in ${seconds} s: ${perSecond}/s`
  ];
  if (latencyMs !== null) {
    const { mean, p50, p90, p99, max } = latencyMs;
    lines.push(`latency in ms: mean ${mean}, p50 ${p50}, p90 ${p90}, p99 ${p99}, max ${max}`);
  }
  if (lost !== undefined) lines.push(`lost ${lost}, out of order ${outOfOrder}`);
  return `${lines.join('\n')}\n`;
}
