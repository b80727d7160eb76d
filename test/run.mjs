// Runs the tests: all of them, or those whose path contains one of the words on the command line (`npm test -- topics`).
// `node --test` finds no `.ts` files by itself on Node 20 and calls an empty run a success, hence this file.
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

const here = import.meta.dirname;
const words = process.argv.slice(2);
const files = readdirSync(here, { recursive: true })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join(here, name))
  .filter((path) => words.length === 0 || words.some((word) => relative(here, path).includes(word)))
  .sort();

// The files run in child processes that inherit this process' flags: --import tsx --conditions=embermq-source.
let ran = 0;
const results = run({ files, concurrency: Math.max(2, availableParallelism()), timeout: 120_000 });
results.on('test:pass', ({ name, details, skip }) => {
  if (files.includes(name))
    fail(`${relative(here, name)} contains no test`); // Node passes such a file under its path
  else if (details.type !== 'suite' && skip === undefined) ran++;
});
results.on('test:fail', () => {
  process.exitCode = 1;
});
results.on('end', () => {
  if (ran === 0) fail(`no test ran (${files.length} files${words.length === 0 ? '' : ` match ${words.join(', ')}`})`);
});
results.compose(new spec()).pipe(process.stdout);

function fail(reason) {
  process.stderr.write(`${reason}\n`);
  process.exitCode = 1;
}
