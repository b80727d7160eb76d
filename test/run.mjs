// Runs the tests: all of them, or those whose path contains one of the words on the command line (`npm test -- topics`). With `--cpu`, it then
// lists what each process has cost. `node --test` starts a process for each file and calls an empty run a success, hence this file.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { compile, compiledOf, sourceOf } from './compile.mjs';
import { printCosts } from './costs.mjs';

/**
 * Files that take long: each line has a process, and those that take longest are started first. The files of the first line share what the compiler
 * has parsed.
 */
const ALONE = [
  [
    'packaging.test.ts',
    'architecture.test.ts',
    'names.test.ts',
    'pages.test.ts',
    'words.test.ts',
    'examples.test.ts',
    'examples-greenhouse.test.ts'
  ],
  ['management-examples.test.ts'],
  ['dashboard/slow-reader.test.ts'] // measures the memory of its process
];

/**
 * Folders whose files share processes, because their tests leave nothing behind in the process: those of one line may share one. A process takes
 * 0.5 to 1 s to start and to load the sources, longer than most files do. The lines whose processes take longest come first, so that at the end
 * no core waits for a long one. All other files, and those that count the objects in a process, each have a separate process.
 */
const TOGETHER = [
  ['cli'],
  ['aedes', 'bench', 'bridge', 'deploy', 'fastify', 'nest', 'node-red', 'webhook'],
  ['auth'],
  ['net'],
  ['robustness'],
  ['management'],
  ['dashboard'],
  ['conformance'],
  ['store'],
  ['level'],
  ['broker'],
  ['streams', 'streams-api', 'streams-plugins'],
  [
    '',
    'base',
    'client',
    'connection',
    'events',
    'outbox',
    'packets',
    'records',
    'rest',
    'retained',
    'routing',
    'session',
    'sql',
    'tools',
    'topics',
    'trace'
  ],
  ['access'],
  ['monitor', 'testing'],
  ['rules']
];
const FILES_PER_PROCESS = 40;

const here = import.meta.dirname;
const measures = process.argv.includes('--cpu');
const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
/** With `--bail`, the first failure ends the run. */
const bail = process.argv.includes('--bail') ? new AbortController() : undefined;
const files = readdirSync(here, { recursive: true })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join(here, name))
  .filter((path) => words.length === 0 || words.some((word) => relative(here, path).includes(word)))
  .sort();

await compile();
// The child processes inherit the flags of this one.
const folder = mkdtempSync(join(tmpdir(), 'embermq-test-'));
let ran = 0;
const seen = new Set();
const results = run({
  files: programs(),
  concurrency: availableParallelism() + 1,
  timeout: 600_000,
  signal: bail?.signal
});
results.on('test:pass', ({ name, file, details, skip }) => {
  if (name === file) return; // a file without a test passes under its path
  seen.add(path(file));
  if (details.type !== 'suite' && skip === undefined) ran++;
});
results.on('test:fail', ({ file }) => {
  seen.add(path(file));
  process.exitCode = 1;
  bail?.abort();
});
results.on('end', () => {
  if (measures) printCosts(folder);
  rmSync(folder, { recursive: true });
  if (ran === 0) fail(`no test ran (${files.length} files${words.length === 0 ? '' : ` match ${words.join(', ')}`})`);
  for (const file of files) if (!seen.has(file)) fail(`${relative(here, file)} contains no test`);
});
results.compose(new spec()).pipe(process.stdout);

/** Writes the programs to run: modules that import one test file, or several of them. */
function programs() {
  const isAlone = (file) => countsObjects(file) || ALONE.flat().includes(relative(here, file));
  const longest = ALONE.map((names) => files.filter((file) => names.includes(relative(here, file))));
  const shared = TOGETHER.flatMap((folders) => {
    const inFolders = files.filter((file) => folders.includes(folderOf(file)) && !isAlone(file));
    const count = Math.ceil(inFolders.length / FILES_PER_PROCESS);
    return Array.from({ length: count }, (_, i) =>
      program(
        `${folders.at(-1)}-${i + 1}`,
        inFolders.filter((_, at) => at % count === i)
      )
    );
  });
  const alone = files.filter((file) => !TOGETHER.flat().includes(folderOf(file)) || countsObjects(file));
  const named = (group) => program(relative(here, group[0]).replaceAll(sep, '-').replace('.test.ts', ''), group);
  return [...longest.filter((group) => group.length > 0).map(named), ...alone.map((file) => named([file])), ...shared];
}

function program(name, imported) {
  const path = join(folder, `${name}.mjs`);
  const lines = imported.map((file) => `import '${pathToFileURL(compiledOf(file))}';\n`);
  if (measures) {
    lines.unshift(`import { recordCosts } from '${pathToFileURL(join(here, 'costs.mjs'))}';\n`);
    lines.push(`recordCosts(${JSON.stringify(path)}, ${imported.length});\n`);
  }
  writeFileSync(path, lines.join(''));
  return path;
}

function countsObjects(file) {
  return readFileSync(file, 'utf8').includes('queryObjects');
}

function folderOf(file) {
  return relative(here, dirname(file)).split(sep)[0];
}

function path(file) {
  return sourceOf(file.startsWith('file:') ? fileURLToPath(file) : file);
}

function fail(reason) {
  process.stderr.write(`${reason}\n`);
  process.exitCode = 1;
}
