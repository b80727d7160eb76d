// Runs a program that needs the built package: `node .ci/start.mjs FILE [ARGUMENT]...`. First builds `dist` if it is older than its sources, and
// `dist-bench` if the program is in it. The build is a separate process, so that the compiler does not stay in memory beside a broker. The program
// runs in this process: it gets the signals, and no shell is needed.
import { spawnSync } from 'node:child_process';
import { join, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '..');
const file = resolve(root, process.argv[2]);
const targets = file.startsWith(join(root, 'dist-bench') + sep) ? [[], ['bench']] : [[]];
for (const target of targets) {
  const args = [join(root, '.ci/build.mjs'), '--if-stale', ...target];
  const { status, signal } = spawnSync(process.execPath, args, { stdio: ['ignore', 2, 2] });
  if (status === 0) continue;
  process.stderr.write(`the build ${signal === null ? 'has failed, see above' : `was ended by ${signal}`}\n`);
  process.exit(1);
}
process.argv.splice(1, 2, file);
await import(pathToFileURL(file).href);
