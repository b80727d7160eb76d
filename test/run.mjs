// Runs the tests: all of them, or those whose path contains one of the words on the command line (`npm test -- topics`).
// `node --test` finds no `.ts` files on Node 20 and calls an empty run a success, hence this file.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Files that take so long that they each have a separate process. The first ones take longest, so they are started first. */
const ALONE = [
  'packaging.test.ts',
  'pages.test.ts',
  'examples.test.ts',
  'examples-greenhouse.test.ts',
  'architecture.test.ts',
  'management-examples.test.ts'
];

/**
 * Folders whose files share processes, because their tests leave nothing behind in the process: those of one line may share one. Compiling the
 * sources takes a process longer than most files do. All other files, and those that count the objects in a process, each have a separate process.
 */
const TOGETHER = [
  ['level'],
  ['store'],
  ['robustness'],
  ['management'],
  ['streams', 'streams-api', 'streams-plugins'],
  ['cli'],
  ['broker'],
  ['access'],
  ['auth'],
  ['net'],
  ['rules'],
  ['conformance'],
  ['monitor', 'testing'],
  ['aedes', 'bench', 'bridge', 'fastify', 'webhook'],
  ['', 'base', 'client', 'connection', 'events', 'outbox', 'packets', 'rest', 'routing', 'session', 'sql', 'topics']
];
const FILES_PER_PROCESS = 22;

const here = import.meta.dirname;
const words = process.argv.slice(2);
const files = readdirSync(here, { recursive: true })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join(here, name))
  .filter((path) => words.length === 0 || words.some((word) => relative(here, path).includes(word)))
  .sort();

// The child processes inherit the flags of this one: --import tsx --conditions=embermq-source.
const folder = mkdtempSync(join(tmpdir(), 'embermq-test-'));
let ran = 0;
const seen = new Set();
const results = run({ files: programs(), concurrency: availableParallelism() + 1, timeout: 300_000 });
results.on('test:pass', ({ name, file, details, skip }) => {
  if (name === file) return; // a file without a test passes under its path
  seen.add(path(file));
  if (details.type !== 'suite' && skip === undefined) ran++;
});
results.on('test:fail', ({ file }) => {
  seen.add(path(file));
  process.exitCode = 1;
});
results.on('end', () => {
  rmSync(folder, { recursive: true });
  if (ran === 0) fail(`no test ran (${files.length} files${words.length === 0 ? '' : ` match ${words.join(', ')}`})`);
  for (const file of files) if (!seen.has(file)) fail(`${relative(here, file)} contains no test`);
});
results.compose(new spec()).pipe(process.stdout);

/** The programs to run: test files, and modules that import several of them. */
function programs() {
  const isAlone = (file) => countsObjects(file) || ALONE.includes(relative(here, file));
  const alone = files.filter((file) => !TOGETHER.flat().includes(folderOf(file)) || isAlone(file));
  const longest = ALONE.map((name) => join(here, name)).filter((file) => alone.includes(file));
  const shared = TOGETHER.flatMap((folders) => {
    const inFolders = files.filter((file) => folders.includes(folderOf(file)) && !isAlone(file));
    const count = Math.ceil(inFolders.length / FILES_PER_PROCESS);
    return Array.from({ length: count }, (_, i) => {
      const program = join(folder, `${folders.at(-1)}-${i + 1}.mjs`);
      const imported = inFolders.filter((_, at) => at % count === i);
      writeFileSync(program, imported.map((file) => `import '${pathToFileURL(file)}';\n`).join(''));
      return program;
    });
  });
  return [...longest, ...shared, ...alone.filter((file) => !longest.includes(file))];
}

function countsObjects(file) {
  return readFileSync(file, 'utf8').includes('queryObjects');
}

function folderOf(file) {
  return relative(here, dirname(file));
}

function path(file) {
  return file.startsWith('file:') ? fileURLToPath(file) : file;
}

function fail(reason) {
  process.stderr.write(`${reason}\n`);
  process.exitCode = 1;
}
