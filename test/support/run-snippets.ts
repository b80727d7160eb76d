// Runs the programs of pages, and prints a JSON object with the output of each of them, by page. The first argument is a file with a JSON
// object: the paths of the programs of each page. The second one is a folder for their working directories, which the caller removes. The
// programs of one page run one after the other in a separate working directory. The ports that they name are replaced by free ones, the same
// in all programs of a page. A program that fails ends its page, not the others. With `--complete`, a program fails if it prints to standard
// error, emits a warning, or leaves something open that would keep its process running.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { format } from 'node:util';
import { transform } from 'esbuild';
import { withFreePorts } from './free-ports.ts';

/** The output of the programs of a page, in their order, and the reason why the last one has failed. */
export interface PageRun {
  readonly outputs: string[];
  error?: string;
}

const mustBeComplete = process.argv.includes('--complete');

const runs: Record<string, PageRun> = {};
let run: PageRun = { outputs: [] };
let fail: (error: unknown) => void = () => {};

for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, (error) => fail(error));
console.log = (...values) => {
  run.outputs[run.outputs.length - 1] += `${format(...values)}\n`;
};
if (mustBeComplete) {
  void [process.stdin, process.stdout]; // Node opens them when they are first used
  process.on('warning', ({ message }) => fail(new Error(`it emits a warning: ${message}`)));
  process.stderr.write = (text: unknown) => {
    fail(new Error(`it prints to standard error: ${text}`));
    return true;
  };
}
for (const [page, files] of Object.entries<string[]>(JSON.parse(readFileSync(process.argv[2], 'utf8')))) {
  run = { outputs: [] };
  runs[page] = run;
  await new Promise<void>((resolve) => {
    fail = (error) => {
      run.error ??= error instanceof Error ? error.stack : String(error);
      resolve();
    };
    runAll(files).then(resolve, fail);
  });
}
process.stdout.write(JSON.stringify(runs), () => process.exit(0));

async function runAll(files: readonly string[]): Promise<void> {
  const free = new Map<string, string>();
  const { outputs } = run;
  process.chdir(mkdtempSync(join(process.argv[3], 'page-')));
  for (const file of files) {
    const code = await withFreePorts(readFileSync(file, 'utf8'), free);
    const program = await transform(code, { loader: 'ts', target: 'node20' });
    const path = file.replace(/\.ts$/, '.js');
    writeFileSync(path, program.code);
    outputs.push('');
    const before = mustBeComplete ? open() : [];
    await import(pathToFileURL(path).href);
    if (mustBeComplete) await untilOpen(before);
  }
}

/** The resources that keep the process running. */
function open(): string[] {
  return process.getActiveResourcesInfo().filter((name) => name !== 'Immediate');
}

/** Wait until no more is open than before. */
async function untilOpen(before: readonly string[]): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (open().length > before.length) {
    if (Date.now() > deadline) throw new Error(`it does not end: ${open().join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
