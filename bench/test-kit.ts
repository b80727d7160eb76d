import { execFileSync } from 'node:child_process';
import { median } from './report.ts';
import { program } from './support/brokers.ts';
import type { KitTimes } from './support/kit-times.ts';

const FIGURES: readonly (readonly [name: keyof KitTimes, what: string, goalMs?: number])[] = [
  ['importMs', 'import', 90],
  ['firstMs', 'first message of the process', 12],
  ['nextMs', 'first message of the next broker', 3],
  ['connectMs', 'connect the clients with `kit.connect`', 120],
  ['dayMs', 'advance the clock by a day', 40],
  ['plainConnectMs', 'connect the clients with `broker.connect`']
];

/**
 * Measure in new processes, one after another.
 * @returns the median of each value
 */
export function run(processes: number, clients: number): KitTimes {
  const times = Array.from({ length: processes }, () => {
    const output = execFileSync(process.execPath, [program('support/kit-times.js'), String(clients)]);
    return JSON.parse(output.toString()) as KitTimes;
  });
  const medians = FIGURES.map(([name]) => [name, median(times.map((one) => one[name]))]);
  return Object.fromEntries(medians) as KitTimes;
}

/** The times as a Markdown table. */
export function table(times: KitTimes): string {
  return [
    'What a test file pays for the test kit: medians over new processes. The clients are 1,000, without keep alive.',
    '',
    '| | ms | goal |',
    '| --- | --- | --- |',
    ...FIGURES.map(([name, what, goalMs]) => `| ${what} | ${times[name].toFixed(1)} | ${goalMs ?? '-'} |`)
  ].join('\n');
}
