// Compile the project. `node .ci/build.mjs [--if-stale] [bench]` writes `dist`, or with `bench` the code of the benchmarks to `dist-bench`.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const forBench = process.argv.includes('bench');
const config = forBench ? 'tsconfig.bench.json' : 'tsconfig.build.json';
const trees = forBench ? ['lib', 'adapters', 'bench'] : ['lib', 'adapters'];
const out = join(root, forBench ? 'dist-bench' : 'dist');
const stamp = join(out, '.built');

if (!process.argv.includes('--if-stale') || isStale()) build();

/** Build into a new directory, which then replaces the old one, so that concurrent builds do not interfere and no one sees a partial build. */
function build() {
  process.stderr.write(`building ${out} ...\n`);
  const fresh = `${out}-${process.pid}`;
  try {
    mkdirSync(fresh);
    writeFileSync(join(fresh, '.built'), ''); // written before the sources are read, so that later changes make the build stale
    const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
    const { status } = spawnSync(process.execPath, [tsc, '-p', config, '--outDir', fresh], {
      cwd: root,
      stdio: ['ignore', 2, 2]
    });
    if (status !== 0) {
      process.exitCode = status ?? 1;
      return;
    }
    if (!forBench) chmodSync(join(fresh, 'adapters/cli/main.js'), 0o755);
    rmSync(out, { recursive: true, force: true });
    renameSync(fresh, out);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
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
