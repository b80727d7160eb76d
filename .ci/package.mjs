// The files of the package: its modules, joined into few files, and its declarations.
//
// To find, read and link 146 modules took half of the time of an import (`embermq` 100 ms of CPU time, `embermq/testing` 105; joined 47 and 48),
// and the 740 modules of typebox 350 ms of that of `embermq/management`, so these are joined as well. Code that several entry points share is in
// separate chunks, so that each module exists once. Declarations stay one per module.
//
// Most of what is left of an import is the compilation of the text, so blanks and comments are left out; lines stay short for stack traces.
// Identifiers are not shortened: compiling 714 kB took 28.5 ms, with short names 24.3 ms, but 28.4 ms if functions and classes keep their names,
// which stack traces need. Shorter syntax (27.3 ms) is harder to read in a debugger. There are no source maps: with the sources, they would be more
// than half of the package.
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';
import ts from 'typescript';
import { embeddedConsole, writeConsole } from './console.mjs';
import { withTexts } from './declaration-texts.mjs';
import { writeCommonJsDeclarations } from './declarations-cjs.mjs';

const root = join(import.meta.dirname, '..');

/**
 * Packages whose code is joined with that of embermq: each import of them would find, read and link their modules (typebox: 740).
 * They stay dependencies for their types.
 */
const JOINED = ['eventemitter3', 'lru-cache', 'typebox', 'xstate'];

/** The namespace of the modules that belong to the compiler of schemas. */
const COMPILER = 'compiler';

/**
 * Bundles typebox twice: what makes schemas, and the compiler and interpreter of schemas, which are loaded later. esbuild puts whole files into chunks, with all
 * that any entry point needs of them, so with one copy every import of `embermq/management` got 110 kB of the compiler. A copy has no state
 * that the other one would need. Its modules have no side effects, which the package.json of typebox does not say.
 */
const TWO_TYPEBOXES = {
  name: 'two-typeboxes',
  setup({ onLoad, onResolve, resolve: find }) {
    onResolve({ filter: /^(typebox|\.)/ }, async ({ path, importer, kind, resolveDir, namespace, pluginData }) => {
      const isOfTypebox = path.startsWith('typebox') || importer.includes('/node_modules/typebox/');
      if (!isOfTypebox || pluginData === TWO_TYPEBOXES) return undefined;
      const found = await find(path, { importer, kind, resolveDir, pluginData: TWO_TYPEBOXES });
      const isOfCompiler = path === 'typebox/compile' || path === 'typebox/schema' || namespace === COMPILER;
      return { ...found, namespace: isOfCompiler ? COMPILER : 'file', sideEffects: false };
    });
    onLoad({ filter: /./, namespace: COMPILER }, ({ path }) => ({
      contents: readFileSync(path, 'utf8'),
      resolveDir: dirname(path)
    }));
  }
};

/**
 * Files that are only loaded by a broker. esbuild makes a chunk for each set of entry points that use a file, so a file that these and a broker
 * use would be apart from the broker. As the files import the broker, it is not: each file of an import takes 0.3 ms of CPU time.
 * `lib/streams/service.ts` is not one of them, because `embermq/streams/redis` would then load the broker, with which it shares files.
 */
const OF_BROKER = [
  'lib/rules/engine.ts',
  ...['adapt', 'report'].map((name) => `lib/broker/storage/upgrade/${name}.ts`)
].map((path) => join(root, path));

/** The call that makes the import of the broker a used one. It is removed from the output. */
const USE = 'USED_BY_CHUNK';

const WITH_BROKER = {
  name: 'with-broker',
  setup({ onLoad }) {
    onLoad({ filter: /\/(engine|adapt|report)\.ts$/ }, ({ path }) => {
      if (!OF_BROKER.includes(path)) return undefined;
      const broker = JSON.stringify(join(root, 'lib/broker/broker.ts'));
      const use = `import { engineOf as used } from ${broker}; ${USE}(used);`;
      return { contents: `${readFileSync(path, 'utf8')}\n${use}\n`, loader: 'ts' };
    });
  }
};

/** Puts the files of the console into the module that reads them from a folder. */
const WITH_CONSOLE = {
  name: 'with-console',
  setup({ onLoad }) {
    onLoad({ filter: /\/dashboard\/page-files\.ts$/ }, async () => ({ contents: await embeddedConsole() }));
  }
};

/** Returns the program of the sources of the package. */
export function packageProgram() {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.build.json'), ts.sys.readFile);
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  return ts.createProgram({ rootNames: fileNames, options });
}

/**
 * Write the files into a folder that exists.
 * @param program of the sources, with the settings of tsconfig.build.json; their types are not checked here
 */
export async function writePackage(folder, program) {
  const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const paths = Object.values(exports).flatMap((entry) => entry['embermq-source'] ?? []);
  const sources = paths.filter((path) => path.endsWith('.ts'));
  const commands = Object.values(bin).map((path) => path.replace('dist/', ''));
  await writeModules(folder, [...sources, ...commands.map((path) => path.replace(/\.js$/, '.ts'))]);
  await writeDeclarations(folder, program, sources);
  writeCommonJsDeclarations(sources.map((path) => join(folder, path.replace(/\.ts$/, '.d.ts'))));
  for (const path of paths.filter((name) => name.endsWith('.json')))
    write(join(folder, path), JSON.stringify(JSON.parse(readFileSync(join(root, path), 'utf8'))));
  for (const path of commands) chmodSync(join(folder, path), 0o755);
}

/** Join the modules of the package, and those of the packages in `JOINED`, into few files. */
async function writeModules(folder, entries) {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const apart = Object.keys({ ...dependencies, ...peerDependencies }).filter((name) => !JOINED.includes(name));
  const { outputFiles } = await build({
    absWorkingDir: root, // the names of modules in comments are relative to it
    entryPoints: entries,
    outdir: folder,
    outbase: root,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    external: apart.flatMap((name) => [name, `${name}/*`]),
    minifyWhitespace: true,
    lineLimit: 120,
    target: 'node20',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
    chunkNames: 'chunks/[name]-[hash]',
    plugins: [TWO_TYPEBOXES, WITH_BROKER, WITH_CONSOLE],
    logLevel: 'warning',
    write: false
  });
  // esbuild keeps the order of modules with empty imports. No module has effects (`sideEffects` in package.json), and
  // bundlers warn about these imports.
  const added = new RegExp(`(?<=^|[;\\n])import"\\.[^"]*";|\\b${USE}\\(\\s*\\w+\\s*\\);`, 'g');
  for (const { path, text } of outputFiles) write(path, text.replace(added, ''));
  const { packages } = await writeConsole();
  write(join(folder, 'LICENSES'), [...JOINED, ...packages].map(licenceOf).join('\n\n'));
}

/** The name, version and licence of a package whose code is joined. */
function licenceOf(name) {
  const folder = join(root, 'node_modules', name);
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} ${version} has no licence file`);
  return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
}

/** Write the declarations that the entry points reach, with the texts of rows. Those of other modules are private to the package. */
export async function writeDeclarations(folder, program, entries) {
  const declarations = new Map();
  const waiting = entries.map((path) => join(root, path));
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const source = relative(root, file).replaceAll('\\', '/');
    if (declarations.has(source)) continue;
    const from = dirname(file);
    const writeFile = (_, text) => {
      declarations.set(source, text);
      for (const { fileName } of ts.preProcessFile(text).importedFiles)
        if (fileName.startsWith('.')) waiting.push(resolve(from, fileName.replace(/\.js$/, '.ts')));
    };
    // The last argument leaves out the check of the types, which the compiler otherwise does for each file.
    program.emit(program.getSourceFile(file), writeFile, undefined, true, undefined, true);
  }
  for (const [source, text] of await withTexts(declarations))
    write(join(folder, source.replace(/\.ts$/, '.d.ts')), text);
}

function write(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
