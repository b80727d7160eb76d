// The comparison with other brokers in the README: its picture and the numbers of its table, both from the costs in RESULTS.md, so that
// all three are of one run. `UPDATE_PAGES=1 npm test -- bench/comparison` writes them.

import { chart } from './chart.ts';

/** The brokers of the comparison, in the order of the columns of the README. */
export const COMPARED = ['embermq', 'aedes', 'mosquitto'] as const;

/** One of these brokers. */
export type Compared = (typeof COMPARED)[number];

/** The costs that a page of results states. */
export interface Costs {
  /** The versions of the brokers, and the version of Node and the day of the measurement. */
  readonly caption: string;
  readonly versions: Readonly<Record<Compared, string>>;
  /** The median of a value; undefined if it was not measured. */
  of(row: string, each: string, broker: Compared): number | undefined;
}

/**
 * Read the costs of the brokers.
 * @param results the text of RESULTS.md, or of another file that `npm run bench -- --out` has written
 * @throws Error if one of the brokers was not measured
 */
export function costsOf(results: string): Costs {
  const measured = /^- (\S+) \S+ UTC, (Node \S+), .*\n- (.*)$/m.exec(results);
  const table = /^## Cost\n[^|]*((?:\|.*\n)*)/m.exec(results);
  if (measured === null || table === null) throw new Error('results: expected the first lines and the section "Cost"');
  const [, day, node, brokers] = measured;
  const version = (name: Compared) => {
    const found = new RegExp(`(?:^|, )${name} ([^,]+)`).exec(brokers);
    if (found === null) throw new Error(`results: ${name} was not measured`);
    return [name, found[1]] as const;
  };
  const versions = COMPARED.map(version);
  const [head, , ...rows] = table[1].trimEnd().split('\n').map(cells);
  return {
    caption: `${versions.map((pair) => pair.join(' ')).join(', ')}; ${node}, ${day}`,
    versions: Object.fromEntries(versions) as Record<Compared, string>,
    of(row, each, broker) {
      const found = rows.find(([name, label]) => name === row && label === each)?.[head.indexOf(broker)];
      const value = Number.parseFloat(found?.replaceAll(',', '') ?? '');
      return Number.isNaN(value) ? undefined : value;
    }
  };
}

/** Draw the picture. @throws Error if none of its rows was measured */
export function pictureOf(costs: Costs): string {
  const picture = chart((row, broker) => costs.of(row, 'message', broker), costs.caption);
  if (picture === undefined) throw new Error('results: none of the rows in the picture was measured');
  return picture;
}

/** Replace the numbers in the README, which are in rows of its table that begin with these cells. */
export function withNumbers(readme: string, costs: Costs): string {
  const lines = new Map([
    [
      '',
      COMPARED.map((name) => (name === 'embermq' ? name : `${name} ${/^\d+\.\d+/.exec(costs.versions[name])?.[0]}`))
    ],
    ['CPU for a message, QoS 0 / 1 / 2 in bursts', compare((name) => bursts(costs, name))],
    [
      'the same, one message at a time (QoS 0)',
      compare((name) => number(costs, 'pairs500 q0 64B w1', name, microseconds))
    ],
    ['memory of an idle connection', compare((name) => number(costs, 'idle 5000', name, kilobytes))]
  ]);
  const seen = new Set<string>();
  const text = readme.replace(/^\| (.*?) ?\| .*\|$/gm, (line, first: string) => {
    const values = lines.get(first);
    if (values === undefined || (first === '' && !line.includes('aedes'))) return line;
    seen.add(first);
    return `| ${first === '' ? '' : `${first} `}| ${values.join(' | ')} |`;
  });
  const missing = [...lines.keys()].filter((first) => !seen.has(first));
  if (missing.length > 0) throw new Error(`the README has no row "${missing[0]}"`);
  return text;
}

interface Shown {
  readonly values: readonly number[];
  readonly text: string;
}

/** The texts of a row; that of a broker whose values are all the best is bold. */
function compare(of: (name: Compared) => Shown): string[] {
  const shown = COMPARED.map(of);
  const isBest = ({ values }: Shown) => values.every((value, at) => shown.every((other) => other.values[at] >= value));
  return shown.map((one) => (isBest(one) ? `**${one.text}**` : one.text));
}

function bursts(costs: Costs, name: Compared): Shown {
  const values = ([0, 1, 2] as const).map((qos) => needed(costs, `pairs100 q${qos} 64B w20`, 'message', name));
  return { values, text: `${values.map(rounded).join(' / ')} us` };
}

function number(
  costs: Costs,
  row: string,
  name: Compared,
  shown: { each: string; text(value: number): string }
): Shown {
  const value = needed(costs, row, shown.each, name);
  return { values: [value], text: shown.text(value) };
}

const microseconds = { each: 'message', text: (value: number) => `${rounded(value)} us` };
const kilobytes = { each: 'connection', text: (value: number) => `${(value / 1000).toFixed(1)} kB` };

function needed(costs: Costs, row: string, each: string, broker: Compared): number {
  const value = costs.of(row, each, broker);
  if (value === undefined) throw new Error(`results: "${row}" was not measured with ${broker}`);
  return value;
}

function rounded(value: number): string {
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}

function cells(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
