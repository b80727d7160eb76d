import { cpus, release, totalmem } from 'node:os';
import type { Outcome } from './load/task.ts';
import type { Figure, Goal, Row } from './rows.ts';
import type { Absent, BrokerKind, BrokerName } from './support/brokers.ts';

/** One measurement. */
export interface Sample {
  readonly row: string;
  readonly broker: BrokerName;
  /** Counted from 0. Measurements with the same number were made consecutively. */
  readonly repetition: number;
  readonly outcome?: Outcome;
  /** The reason why there is no outcome. */
  readonly error?: string;
}

/** The contents of the tables. */
export interface Report {
  readonly rows: readonly Row[];
  readonly samples: readonly Sample[];
  readonly kinds: readonly BrokerKind[];
  readonly absent: readonly Absent[];
  readonly notes: readonly string[];
  /** The Markdown of measurements without a broker process, by heading. */
  readonly extras: ReadonlyMap<string, string>;
}

/** The factor by which a ratio may miss its goal and still count as `nearly` met. */
const SLACK = 1.2;
const OURS = 'embermq';

/** Format a report as one Markdown document. */
export function markdown(report: Report): string {
  const { absent, notes, extras } = report;
  const parts = [
    '# Benchmark results',
    surroundings(report),
    ...absent.map(({ name, remedy }) => `- ${name} was not measured, because it was not found (${remedy}).`),
    notes.map((note) => `- ${note}`).join('\n'),
    '## Cost',
    'CPU microseconds of the broker (user and system, all threads), or bytes of its resident memory, per message, connection and so on: ' +
      'median (lowest to highest). The `x` columns give the cost of a peer divided by that of embermq: the median of the ratios within each ' +
      'repetition. A goal is met if all its ratios are reached, and `nearly` met if all are within 20 %.',
    costTable(report),
    '## Version 5 against 3.1.1, and a store against none',
    'The median, and its percentage of the cost of the same row over 3.1.1, or without a store, in the same repetition. The goals are at most ' +
      '115 % over MQTT 5.0, and at most 108 % with a store that has nothing to persist.',
    sameTable(report),
    '## Rates and latencies',
    'All values are medians. Latencies are measured from the timestamp in the payload until the load generator reads it. Rows with a window ' +
      'keep all queues full, so their latency is the time in the queue. `load` is the load generator, one process on its own core; if it is ' +
      'busier than the broker, it limits the rate. `others` is the share of the two cores that other processes used; if it is large, ' +
      'latencies are not reliable.',
    rateTable(report),
    faults(report),
    ...[...extras].flatMap(([heading, text]) => [`## ${heading}`, text])
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/**
 * Check that all messages arrived exactly once and in order, and that every measurement has all its values.
 * @returns one line per problem
 */
export function troubles({ rows, samples }: Pick<Report, 'rows' | 'samples'>): string[] {
  return samples.flatMap(({ row, broker, repetition, outcome, error }) => {
    const where = `${row}, ${broker}, repetition ${repetition + 1}`;
    if (outcome === undefined) return [`${where}: ${error?.trim().replace(/\s+/g, ' ')}`];
    const bad = Object.entries(outcome.faults).filter(([, count]) => count !== 0);
    const keys = rows.find(({ name }) => name === row)?.figures.map(({ key }) => key) ?? [];
    const missing = keys.filter((key) => !Number.isFinite(outcome.figures[key]));
    return [
      ...bad.map(([fault, count]) => `${where}: ${count} ${fault}`),
      ...missing.map((key) => `${where}: no value for ${key}`)
    ];
  });
}

/** The median; for an even number of values, the mean of the two in the middle. NaN if there are no values. */
export function median(values: readonly number[]): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/**
 * The ratio of two values: the quotient within each repetition, then the median over the repetitions that have both.
 * @returns NaN if no repetition has both values
 */
export function ratio(
  samples: readonly Sample[],
  over: Pick<Side, 'row' | 'broker'>,
  under: Pick<Side, 'row' | 'broker'>,
  key: string
): number {
  const values = (side: Pick<Side, 'row' | 'broker'>) => new Map(valuesOf(samples, { ...side, key }));
  const below = values(under);
  return median([...values(over)].map(([repetition, value]) => value / (below.get(repetition) ?? Number.NaN)));
}

interface Side {
  readonly row: string;
  readonly broker: BrokerName;
  readonly key: string;
}

/** The values of a measure, by repetition. */
export function valuesOf(samples: readonly Sample[], { row, broker, key }: Side): [number, number][] {
  return samples
    .filter((sample) => sample.row === row && sample.broker === broker)
    .flatMap(({ repetition, outcome }) =>
      outcome === undefined ? [] : [[repetition, outcome.figures[key]] as [number, number]]
    )
    .filter(([, value]) => Number.isFinite(value));
}

function surroundings({ kinds }: Report): string {
  const [first] = cpus();
  const machine = `${cpus().length} x ${first?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${release()}`;
  return [
    `- ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, Node ${process.versions.node}, ${machine}`,
    `- ${kinds.map(({ name, version }) => `${name} ${version}`).join(', ')}`
  ].join('\n');
}

function costTable({ rows, samples, kinds }: Report): string {
  const names = kinds.map(({ name }) => name);
  const peers = names.filter((name) => name !== OURS);
  const ours = names.includes(OURS);
  const head = [
    'row',
    'each',
    'unit',
    ...names,
    ...(ours ? peers.map((name) => `x ${name}`) : []),
    ...(ours ? ['goal', ''] : [])
  ];
  const shown = rows.filter(({ sameAs }) => !rows.some(({ name }) => name === sameAs));
  const lines = shown.flatMap((row) =>
    row.figures.map((figure) => {
      const side = (broker: BrokerName) => ({ row: row.name, broker });
      const ratios = new Map(peers.map((peer) => [peer, ratio(samples, side(peer), side(OURS), figure.key)]));
      const costs = names.map((name) =>
        spread(
          valuesOf(samples, { ...side(name), key: figure.key }).map(([, value]) => value),
          figure.unit
        )
      );
      const cells = [row.name, figure.label, figure.unit, ...costs];
      if (!ours) return cells;
      const own = median(valuesOf(samples, { ...side(OURS), key: figure.key }).map(([, value]) => value));
      return [
        ...cells,
        ...peers.map((peer) => times(ratios.get(peer))),
        goalText(figure),
        verdict(figure.goal, ratios, own)
      ];
    })
  );
  return table(head, lines);
}

function sameTable({ rows, samples, kinds }: Report): string {
  const names = kinds
    .map(({ name }) => name)
    .filter((name) => rows.some((row) => row.sameAs !== undefined && row.brokers.includes(name)));
  const lines = rows.flatMap((row) => {
    const { sameAs } = row;
    if (sameAs === undefined || !rows.some(({ name }) => name === sameAs)) return [];
    return row.figures.map(({ key, label, unit }) => {
      const cells = names.map((broker) => {
        const cost = median(valuesOf(samples, { row: row.name, broker, key }).map(([, value]) => value));
        const part = ratio(samples, { row: row.name, broker }, { row: sameAs, broker }, key);
        return Number.isNaN(part) ? '-' : `${cost >= 1000 ? whole(cost) : cost.toFixed(2)} (${share(part)})`;
      });
      return [row.name, label, unit, ...cells];
    });
  });
  return lines.length === 0 ? 'Not measured.' : table(['row', 'each', 'unit', ...names], lines);
}

const RATES: readonly { readonly key: string; readonly label: string; readonly show: (value: number) => string }[] = [
  { key: 'p50Us', label: 'p50 us', show: whole },
  { key: 'p99Us', label: 'p99 us', show: whole },
  { key: 'brokerBusy', label: 'broker busy', show: share },
  { key: 'loadBusy', label: 'load busy', show: share },
  { key: 'othersBusy', label: 'others', show: share },
  { key: 'loadUs', label: 'load us each', show: (value) => value.toFixed(2) },
  { key: 'residentBytes', label: 'broker MiB', show: (value) => (value / 2 ** 20).toFixed(0) }
];

function rateTable({ rows, samples, kinds }: Report): string {
  const lines = rows.flatMap((row) =>
    kinds
      .filter(({ name }) => row.brokers.includes(name))
      .map(({ name }) => {
        const middle = (key: string) =>
          median(valuesOf(samples, { row: row.name, broker: name, key }).map(([, value]) => value));
        const rates = Object.keys(
          samples.find((sample) => sample.row === row.name && sample.outcome)?.outcome?.figures ?? {}
        )
          .filter((key) => key.endsWith('erSec') && key !== 'sentPerSec')
          .filter((key) => !Number.isNaN(middle(key)))
          .map((key) => `${whole(middle(key))}${key === 'perSec' ? '' : ` ${key.replace('PerSec', '')}`}`);
        return [
          row.name,
          name,
          rates.join(', ') || '-',
          ...RATES.map(({ key, show }) => (Number.isNaN(middle(key)) ? '-' : show(middle(key))))
        ];
      })
  );
  return table(['row', 'broker', 'a second', ...RATES.map(({ label }) => label)], lines);
}

function faults(report: Report): string {
  const lines = troubles(report);
  if (lines.length === 0)
    return `No message was lost, duplicated or reordered in ${report.samples.length} measurements.`;
  return `Of ${report.samples.length} measurements, these had problems:\n\n${lines.map((line) => `- ${line}`).join('\n')}`;
}

function goalText({ goal, unit }: Figure): string {
  if (goal === undefined) return '';
  const parts = [
    goal.value === undefined ? '' : `${goal.value} ${unit}`,
    goal.aedes === undefined ? '' : `x aedes ${goal.aedes}`,
    goal.mosquitto === undefined ? '' : `x mosquitto ${Number(goal.mosquitto.toFixed(2))}`,
    goal.timesRaw === undefined ? '' : `${goal.timesRaw} raw`
  ];
  return parts.filter((part) => part !== '').join(', ');
}

/** Compare a goal with its ratios, or with the absolute value if it has no ratios. */
function verdict(goal: Goal | undefined, ratios: ReadonlyMap<BrokerName, number>, own: number): string {
  if (goal === undefined || Number.isNaN(own)) return '';
  const reached: number[] = [];
  const add = (value: number | undefined, wanted: number | undefined): void => {
    if (wanted !== undefined && value !== undefined && !Number.isNaN(value)) reached.push(value / wanted);
  };
  add(ratios.get('aedes'), goal.aedes);
  add(ratios.get('mosquitto'), goal.mosquitto);
  add(ratios.get('raw'), goal.timesRaw === undefined ? undefined : 1 / goal.timesRaw);
  if (reached.length === 0 && goal.value !== undefined) reached.push(goal.value / own);
  if (reached.length === 0) return '';
  const worst = Math.min(...reached);
  return worst >= 1 ? 'met' : worst >= 1 / SLACK ? 'nearly' : `missed (${(worst * 100).toFixed(0)} %)`;
}

function spread(values: readonly number[], unit: Figure['unit']): string {
  if (values.length === 0) return '-';
  const show = (value: number) =>
    unit === 'bytes' || value >= 1000 ? whole(value) : value >= 100 ? value.toFixed(0) : value.toFixed(2);
  const middle = show(median(values));
  return values.length === 1 ? middle : `${middle} (${show(Math.min(...values))}-${show(Math.max(...values))})`;
}

function times(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '-';
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function share(value: number): string {
  return `${(value * 100).toFixed(0)} %`;
}

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...lines.map(line)].join('\n');
}
