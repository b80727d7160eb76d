// Compile the project. `node .ci/build.mjs [--if-stale] [bench]` writes `dist`, or with `bench` the code of the benchmarks to `dist-bench`.
// `node .ci/build.mjs --no-check --out DIR` writes the code of the package to DIR without checking types.
//
// The package is joined into few files. To find, read and link 146 modules took half of the time of an import (`embermq` 100 ms of CPU time,
// `embermq/testing` 105; joined 47 and 48), and the 740 modules of typebox 350 ms of that of `embermq/management`, so these are joined as well.
// Code that several entry points share is in separate chunks, so that each module exists once. Declarations stay one per module.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildSync } from 'esbuild';
import ts from 'typescript';

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

/**
 * Packages whose code is joined with that of embermq: each import of them would find, read and link their modules (typebox: 740).
 * They stay dependencies for their types.
 */
const JOINED = ['eventemitter3', 'lru-cache', 'typebox', 'xstate'];

if (!flags['if-stale'] || isStale()) build();

/** Build into a new directory, which then replaces the old one, so that concurrent builds do not interfere and no one sees a partial build. */
function build() {
  process.stderr.write(`building ${out} ...\n`);
  const fresh = `${out}-${process.pid}`;
  try {
    mkdirSync(fresh);
    writeFileSync(join(fresh, '.built'), ''); // written before the sources are read, so that later changes make the build stale
    const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
    const args = [tsc, '-p', config, '--outDir', fresh, ...(flags['no-check'] ? ['--noCheck'] : [])];
    const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2] });
    if (status !== 0) {
      process.exitCode = status ?? 1;
      return;
    }
    if (!forBench) pack(fresh);
    rmSync(out, { recursive: true, force: true });
    renameSync(fresh, out);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** Bring the compiled modules into the form in which they are published. */
function pack(folder) {
  const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const entries = Object.values(exports).filter((entry) => typeof entry === 'object');
  const paths = (condition) => entries.map((entry) => entry[condition]?.replace('./dist/', '')).filter(Boolean);
  const commands = Object.values(bin).map((path) => path.replace('dist/', ''));
  const modules = paths('default').filter((path) => path.endsWith('.js'));
  joinModules(folder, [...modules, ...commands]);
  removeUnusedDeclarations(folder, paths('types'));
  for (const path of paths('default').filter((name) => name.endsWith('.json'))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), JSON.stringify(JSON.parse(readFileSync(join(root, path), 'utf8'))));
  }
  for (const path of commands) chmodSync(join(folder, path), 0o755);
}

/**
 * Join the modules of the package, and those of the packages in `JOINED`, into few files: to find, read and link them takes most of the time of
 * an import. Code that several entry points share is in separate files, so that each module exists once. Most of what is left of an import is the
 * compilation of the text, so blanks and comments are left out. Names and short lines are kept for stack traces; there are no source maps,
 * because maps with the sources would be more than half of the package.
 */
function joinModules(folder, entries) {
  const joined = `${folder}-joined`;
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const apart = Object.keys({ ...dependencies, ...peerDependencies }).filter((name) => !JOINED.includes(name));
  try {
    buildSync({
      absWorkingDir: folder, // the names of modules in comments are relative to it
      entryPoints: entries,
      outdir: joined,
      outbase: folder,
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      external: apart.flatMap((name) => [name, `${name}/*`]),
      minifyWhitespace: true,
      lineLimit: 120,
      target: 'node20',
      chunkNames: 'chunks/[name]-[hash]',
      logLevel: 'warning'
    });
    for (const name of readdirSync(folder, { recursive: true })) if (name.endsWith('.js')) rmSync(join(folder, name));
    cpSync(joined, folder, { recursive: true });
    // esbuild keeps the order of modules with empty imports. No module has effects (`sideEffects` in package.json), and
    // bundlers warn about these imports.
    for (const name of readdirSync(joined, { recursive: true }).filter((path) => path.endsWith('.js'))) {
      const path = join(folder, name);
      writeFileSync(path, readFileSync(path, 'utf8').replace(/(?<=^|[;\n])import"\.[^"]*";/g, ''));
    }
    writeFileSync(join(folder, 'LICENSES'), JOINED.map(licenceOf).join('\n\n'));
  } finally {
    rmSync(joined, { recursive: true, force: true });
  }
}

/** The name, version and licence of a package whose code is joined. */
function licenceOf(name) {
  const folder = join(root, 'node_modules', name);
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} ${version} has no licence file`);
  return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
}

/** Remove the declarations that no entry point reaches: those of modules that are private to the package. */
function removeUnusedDeclarations(folder, entries) {
  const used = new Set();
  const waiting = entries.map((path) => join(folder, path));
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (used.has(file)) continue;
    used.add(file);
    for (const { fileName } of ts.preProcessFile(readFileSync(file, 'utf8')).importedFiles)
      if (fileName.startsWith('.')) waiting.push(resolve(dirname(file), fileName.replace(/\.(js|ts)$/, '.d.ts')));
  }
  for (const name of readdirSync(folder, { recursive: true }))
    if (name.endsWith('.d.ts') && !used.has(join(folder, name))) rmSync(join(folder, name));
  removeEmptyFolders(folder);
}

function removeEmptyFolders(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeEmptyFolders(join(folder, entry.name));
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}

function isStale() {
  const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs;
  return built === undefined || sources().some((path) => statSync(join(root, path)).mtimeMs > built);
}

function sources() {
  const inTrees = trees.flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: true }).map((name) => join(tree, name))
  );
  return [...inTrees, 'package.json', 'tsconfig.json', config, '.ci/build.mjs'];
}
