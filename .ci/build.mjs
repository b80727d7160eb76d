// Compiles the project. `node .ci/build.mjs [--if-stale] [bench]`: `dist`, or with `bench` what the benchmarks run, `dist-bench`.
import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const forBench = process.argv.includes('bench');
const config = forBench ? 'tsconfig.bench.json' : 'tsconfig.build.json';
const trees = forBench ? ['lib', 'adapters', 'bench'] : ['lib', 'adapters'];
const out = join(root, forBench ? 'dist-bench' : 'dist');
const stamp = join(out, '.built');

if (!process.argv.includes('--if-stale') || isStale()) build();

function build() {
  process.stderr.write(`building ${out} ...\n`);
  rmSync(out, { recursive: true, force: true });
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const { status } = spawnSync(process.execPath, [tsc, '-p', config], { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
  if (!forBench) chmodSync(join(out, 'adapters/cli/main.js'), 0o755);
  writeFileSync(stamp, ''); // last, so that a build that was cut short counts as stale
}

function isStale() {
  const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs;
  return built === undefined || sources().some((path) => statSync(join(root, path)).mtimeMs > built);
}

function sources() {
  const inTrees = trees.flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: true }).map((name) => join(tree, name))
  );
  return [...inTrees, 'package.json', 'tsconfig.json', config];
}
