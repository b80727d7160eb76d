// Compiles the TypeScript sources into `.cache/test` at the beginning of a test run, so that the processes of the run need not do it: with `tsx`,
// which compiles as it imports, the import of the test files of one process took one to four seconds longer. The types are not checked. All 1,600
// sources take about 2 s of CPU time; later runs compile only what has changed.
//
// Each source becomes a module at the same place below `.cache/test`, which has a separate package.json, so that the sources find each other and
// the entry points of `embermq` there. `import.meta.dirname` still names the folder of the source, where its data files are.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { build, transform } from 'esbuild';
import { writeConsole } from '../.ci/console.mjs';
import { writeGenerated, writeWhole } from '../.ci/generated.mjs';

const root = join(import.meta.dirname, '..');
const TREES = ['lib', 'adapters', 'examples', 'bench', 'test'];
/** Packages of many modules that most processes import, with the entry points that the sources use: typebox becomes 3 modules instead of 740. */
const JOINED_PACKAGES = { typebox: ['typebox', 'typebox/compile', 'typebox/schema'] };

/** The folder of the compiled modules. */
export const COMPILED = join(root, '.cache/test');

/** Returns the path of the module that a source is compiled to. */
export function compiledOf(path) {
  return join(COMPILED, path.slice(root.length)).replace(/\.ts$/, '.js');
}

/** Returns the path of the source of a compiled module, and any other path as it is. */
export function sourceOf(path) {
  return path.startsWith(COMPILED + sep) ? join(root, path.slice(COMPILED.length)).replace(/\.js$/, '.ts') : path;
}

/** Compile the sources that have changed since the last run. */
export async function compile() {
  await Promise.all([writeGenerated(), writeConsole()]);
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const before = stateBefore();
  const now = { settings: settings(), stamps: {} };
  const isOther = before.settings !== now.settings;
  for (const name of sources(manifest)) {
    const { mtimeMs, size } = statSync(join(root, name));
    now.stamps[name] = `${mtimeMs} ${size}`;
  }
  const stale = Object.keys(now.stamps).filter((name) => isOther || now.stamps[name] !== before.stamps[name]);
  const removed = Object.keys(before.stamps).filter((name) => !(name in now.stamps));
  if (stale.length + removed.length === 0) return;
  for (const name of removed) rmSync(compiledOf(join(root, name)), { force: true });
  await Promise.all([
    ...stale.map(compileOne),
    ...([...stale, ...removed].some((name) => !/^(test|bench)\b/.test(name)) ? [joinPrograms(manifest)] : []),
    ...(isOther ? Object.entries(JOINED_PACKAGES).map(joinPackage) : [])
  ]);
  writePackage('.', manifest);
  writeWhole(join(COMPILED, 'state.json'), JSON.stringify(now));
}

async function compileOne(name) {
  const path = join(root, name);
  if (name.endsWith('.json')) return writeWhole(compiledOf(path), readFileSync(path));
  const { code } = await transform(readFileSync(path, 'utf8'), {
    loader: 'ts',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcefile: path,
    sourcemap: 'inline',
    sourcesContent: false,
    define: { 'import.meta.dirname': JSON.stringify(dirname(path)) },
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } }
  });
  // esbuild writes imports with double quotes, and one to a line.
  writeWhole(compiledOf(path), code.replace(/((?:^import|\bfrom) |\bimport\()"(\.{1,2}\/[^"\n]+)\.ts"/gm, '$1"$2.js"'));
}

/**
 * Join the entry points and the programs that tests run in other processes into few files. A process that loads a module for each source takes
 * 0.3 s longer to start, and some of the programs are started many times. Programs in this folder find the entry points by their names.
 */
function joinPrograms(manifest) {
  const { dependencies, devDependencies, peerDependencies, exports } = manifest;
  rmSync(join(COMPILED, 'joined'), { recursive: true, force: true });
  const entries = Object.values(exports).flatMap(({ 'embermq-source': path }) => (path?.endsWith('.ts') ? [path] : []));
  writePackage('joined', manifest);
  return build({
    absWorkingDir: root,
    entryPoints: ['adapters/cli/main.ts', 'examples/unit-test-your-device.ts', ...entries],
    outdir: join(COMPILED, 'joined'),
    outbase: root,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    sourcesContent: false,
    conditions: ['embermq-source'],
    external: Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies })
  });
}

/** Join a package into few modules, which are found before those in the `node_modules` of the root. */
async function joinPackage([name, entries]) {
  const folder = join(COMPILED, 'node_modules', name);
  const files = entries.map((entry) => (entry === name ? 'index' : entry.slice(name.length + 1)));
  await build({
    absWorkingDir: root,
    entryPoints: entries.map((entry, at) => ({ in: entry, out: files[at] })),
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20'
  });
  const exports = Object.fromEntries(entries.map((entry, at) => [entry.replace(name, '.'), `./${files[at]}.js`]));
  writeWhole(join(folder, 'package.json'), JSON.stringify({ name, type: 'module', exports }));
}

/** Write a package.json with the entry points of the package into a folder. */
function writePackage(folder, { name, version, type, exports }) {
  const targets = Object.entries(exports).map(([path, target]) => [
    path,
    typeof target === 'string' ? target : target['embermq-source'].replace(/\.ts$/, '.js')
  ]);
  writeWhole(
    join(COMPILED, folder, 'package.json'),
    JSON.stringify({ name, version, type, exports: Object.fromEntries(targets) })
  );
}

/** Returns the paths of the files to compile or to copy, below the root. */
function sources({ exports }) {
  const documents = Object.values(exports).map((target) => target['embermq-source']);
  return [
    ...TREES.flatMap((tree) =>
      readdirSync(join(root, tree), { recursive: true }).map((name) => join(tree, name))
    ).filter((name) => name.endsWith('.ts') && !name.includes('node_modules')),
    ...documents.filter((path) => path?.endsWith('.json')).map((path) => join(path))
  ];
}

/** Returns the settings and the stamps of the sources of the last run; none if there was none. */
function stateBefore() {
  try {
    return JSON.parse(readFileSync(join(COMPILED, 'state.json'), 'utf8'));
  } catch {
    return { settings: undefined, stamps: {} };
  }
}

/** A digest of what the compiled modules depend on besides their sources: this file, the lock file with the packages, and the folder. */
function settings() {
  const hash = createHash('sha256').update(root);
  for (const path of [import.meta.filename, join(root, 'package.json'), join(root, 'package-lock.json')])
    hash.update(readFileSync(path));
  return hash.digest('hex');
}
