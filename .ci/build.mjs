// Compile the project. `node .ci/build.mjs [--if-stale] [bench]` writes `dist`, or with `bench` the code of the benchmarks to `dist-bench`.
// `node .ci/build.mjs --no-check --out DIR` writes the code of the package to DIR without checking types.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import ts from 'typescript';
import { writeGenerated } from './generated.mjs';
import { packageProgram, writePackage } from './package.mjs';

const root = join(import.meta.dirname, '..');
const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'if-stale': { type: 'boolean' }, 'no-check': { type: 'boolean' }, out: { type: 'string' } }
});
const forBench = positionals.includes('bench');
const config = forBench ? 'tsconfig.bench.json' : 'tsconfig.build.json';
const trees = forBench ? ['lib', 'adapters', 'bench'] : ['lib', 'adapters'];
const out = resolve(root, flags.out ?? (forBench ? 'dist-bench' : 'dist'));
const stamp = join(out, '.built');

await writeGenerated();
if (!flags['if-stale'] || isStale()) await build();

/** Build into a new directory, which then replaces the old one, so that concurrent builds do not interfere and no one sees a partial build. */
async function build() {
  process.stderr.write(`building ${relative(process.cwd(), out)}, which takes half a minute or more:\n`);
  const fresh = `${out}-${process.pid}`;
  try {
    mkdirSync(fresh);
    writeFileSync(join(fresh, '.built'), ''); // written before the sources are read, so that later changes make the build stale
    if (!(forBench ? compileBench(fresh) : await compilePackage(fresh))) {
      process.exitCode = 1;
      return;
    }
    rmSync(out, { recursive: true, force: true });
    renameSync(fresh, out);
    report('done');
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** Returns false if the types have faults, which are then printed. */
async function compilePackage(folder) {
  const bundled = once(spawn(process.execPath, ['.ci/console.mjs'], { cwd: root, stdio: 'ignore' }), 'exit'); // while the types are checked
  const program = packageProgram();
  report('sources read');
  const faults = flags['no-check'] ? [] : ts.getPreEmitDiagnostics(program);
  if (faults.length > 0) {
    process.stderr.write(ts.formatDiagnostics(faults, ts.createCompilerHost(program.getCompilerOptions())));
    return false;
  }
  report('types checked');
  await bundled; // if it has failed, the next line does the same, and reports the error
  await writePackage(folder, program);
  return true;
}

/** Report that a step has ended, with the time since the process began. */
function report(step) {
  process.stderr.write(`  ${step} after ${Math.round(performance.now() / 1000)} s\n`);
}

function compileBench(folder) {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const args = [tsc, '-p', config, '--outDir', folder, ...(flags['no-check'] ? ['--noCheck'] : [])];
  return spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2] }).status === 0;
}

function isStale() {
  const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs;
  return built === undefined || sources().some((path) => statSync(join(root, path)).mtimeMs > built);
}

function sources() {
  const inTrees = trees.flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: true }).map((name) => join(tree, name))
  );
  return [
    ...inTrees,
    'package.json',
    'tsconfig.json',
    config,
    '.ci/build.mjs',
    '.ci/console.mjs',
    '.ci/declaration-texts.mjs',
    '.ci/declarations-cjs.mjs',
    '.ci/package.mjs'
  ];
}
