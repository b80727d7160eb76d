// Runs the tests: all of them, or those whose path contains one of the words on the command line (`npm test -- topics`).
// `node --test` finds no `.ts` files by itself on Node 20 and calls an empty run a success, hence this file.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * Folders whose files share processes, because their tests leave nothing behind in the process. Compiling the sources once for several
 * files halves their time. All other files, and those that count the objects in a process, have a process of their own.
 */
const TOGETHER = [
  '',
  'access',
  'aedes',
  'auth',
  'base',
  'bench',
  'bridge',
  'broker',
  'cli',
  'client',
  'conformance',
  'connection',
  'events',
  'fastify',
  'level',
  'management',
  'monitor',
  'net',
  'outbox',
  'packets',
  'robustness',
  'routing',
  'rules',
  'session',
  'sql',
  'store',
  'streams',
  'streams-api',
  'streams-plugins',
  'rest',
  'testing',
  'topics',
  'webhook'
];
const FILES_PER_PROCESS = 14;
/** Files that take so long that they have a process of their own. */
const ALONE = [
  'architecture.test.ts',
  'examples.test.ts',
  'examples-greenhouse.test.ts',
  'management-examples.test.ts',
  'packaging.test.ts',
  'pages.test.ts'
];

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
  const alone = files.filter((file) => !TOGETHER.includes(folderOf(file)) || isAlone(file));
  const shared = TOGETHER.flatMap((name) => {
    const inFolder = files.filter((file) => folderOf(file) === name && !isAlone(file));
    const count = Math.ceil(inFolder.length / FILES_PER_PROCESS);
    return Array.from({ length: count }, (_, i) => {
      const program = join(folder, `${name || 'root'}-${i + 1}.mjs`);
      const imported = inFolder.filter((_, at) => at % count === i);
      writeFileSync(program, imported.map((file) => `import '${pathToFileURL(file)}';\n`).join(''));
      return program;
    });
  });
  return [...shared, ...alone];
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
