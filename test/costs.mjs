// The costs of the processes of a test run (`npm test -- --cpu`): each process records its own when it ends.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'node:test';

const SUFFIX = '.costs.json';
/** Ticks in a second of the times in /proc. */
const TICKS = 100;

/** CPU seconds of this process and of its children, and seconds since its start. */
const times = () => [cpu(), childrenCpu(), performance.now() / 1000];
const tests = [];

if (process.env.NODE_TEST_CONTEXT !== undefined) {
  // In a process with tests. Only tests that are defined later have these hooks, so this module is imported first.
  let before = times();
  beforeEach(() => {
    before = times();
  });
  afterEach(({ name }) => {
    tests.push([name, ...times().map((time, at) => time - before[at])]);
  });
}

/**
 * Record the costs of this process when it ends. Called when the test files have been loaded, before their tests run.
 * @param files the number of test files
 */
export function recordCosts(path, files) {
  const loaded = cpu();
  process.on('exit', () => {
    const costs = { files, loaded, own: cpu(), children: childrenCpu(), wall: performance.now() / 1000, tests };
    writeFileSync(path.replace(/\.mjs$/, SUFFIX), JSON.stringify(costs));
  });
}

/** Tests that take at least this time are listed, in seconds of CPU time or of waiting. */
const LONG = 1;

/** Print the costs that the processes have recorded in a folder: of each process, and of the tests that take long. The times are in seconds. */
export function printCosts(folder) {
  const costs = readdirSync(folder)
    .filter((name) => name.endsWith(SUFFIX))
    .map((name) => ({ name: name.slice(0, -SUFFIX.length), ...JSON.parse(readFileSync(join(folder, name), 'utf8')) }))
    .sort((a, b) => b.own + b.children - a.own - a.children);
  const sum = (key) => costs.reduce((total, of) => total + of[key], 0);
  const all = sum('own') + sum('children');
  const row = (cells, last) =>
    console.log(
      `${cells.map((cell) => (typeof cell === 'number' ? cell.toFixed(1) : cell).padStart(10)).join('')}  ${last}`
    );
  console.log();
  row(['CPU', 'to load', 'children', 'wall'], 'process (test files)');
  for (const { name, files, own, loaded, children, wall } of costs)
    row([own + children, loaded, children, wall], `${name} (${files})`);
  row([all, sum('loaded'), sum('children'), performance.now() / 1000], `all (${sum('files')})`);
  row([cpu(), '', '', ''], 'the run itself');
  row([childrenCpu() - all, '', '', ''], 'the compilation, and processes that recorded nothing');
  console.log();
  row(['CPU', '', 'children', 'wall'], 'test');
  const long = costs
    .flatMap(({ name, tests }) => tests.map((test) => [name, ...test]))
    .filter(([, , own, children, wall]) => own + children >= LONG || wall - own - children >= LONG)
    .sort((a, b) => b[2] + b[3] - a[2] - a[3]);
  for (const [program, name, own, children, wall] of long)
    row([own + children, '', children, wall], `${program}: ${name}`);
  console.log();
}

/** CPU seconds of this process. */
function cpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** CPU seconds of the processes that this one has started and that have ended, and of theirs. 0 where there is no /proc. */
function childrenCpu() {
  try {
    const fields = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    return (Number(fields[13]) + Number(fields[14])) / TICKS;
  } catch {
    return 0;
  }
}
