// Compile the project. `node .ci/build.mjs [--if-stale] [bench]` writes `dist`, or with `bench` the code of the benchmarks to `dist-bench`.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { buildSync } from 'esbuild';

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
    if (!forBench) bundle(fresh);
    rmSync(out, { recursive: true, force: true });
    renameSync(fresh, out);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/**
 * Join the modules of the package into few files: to find, read and link some 150 of them takes half of the time of an import. What several
 * entry points share is in files of its own, so that each module exists once. The declarations stay as they are.
 */
function bundle(folder) {
  const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const entries = [...Object.values(exports).map((entry) => entry.default), ...Object.values(bin)]
    .filter((path) => path !== undefined)
    .map((path) => join(folder, path.replace(/^(\.\/)?dist\//, '')));
  const joined = `${folder}-joined`;
  try {
    buildSync({
      entryPoints: entries,
      outdir: joined,
      outbase: folder,
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      packages: 'external',
      target: 'node20',
      sourcemap: true,
      chunkNames: 'chunks/[name]-[hash]',
      logLevel: 'warning'
    });
    for (const name of readdirSync(folder, { recursive: true }))
      if (/\.js(\.map)?$/.test(name)) rmSync(join(folder, name));
    cpSync(joined, folder, { recursive: true });
  } finally {
    rmSync(joined, { recursive: true, force: true });
  }
  for (const path of Object.values(bin)) chmodSync(join(folder, path.replace(/^dist\//, '')), 0o755);
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
