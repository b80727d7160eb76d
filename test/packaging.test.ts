import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import ts from 'typescript';
import { createBroker } from '../lib/index.ts';
import { BUNDLES } from './bundled-apps.ts';
import { CONSUMER, FASTIFY_CONSUMER } from './support/consumer.ts';

const root = join(import.meta.dirname, '..');
const packageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string;
  exports: Record<string, string | { 'embermq-source': string; types: string; default: string }>;
  bin: Record<string, string>;
  dependencies: Record<string, string>;
  peerDependencies?: Record<string, string>;
};
const entries = Object.entries(packageJson.exports).flatMap(([name, target]) =>
  typeof target === 'string' ? [] : [{ name: name.replace('.', 'embermq'), target }]
);

const FROM_SOURCE = ['--import', 'tsx', '--conditions=embermq-source'];

/** Runs in a separate process: imports modules, then reports what that loaded and left open. */
const PROBE = `
  import { register } from 'node:module';
  import { MessageChannel } from 'node:worker_threads';
  const { port1, port2 } = new MessageChannel();
  const seen = [];
  port1.on('message', (url) => seen.push(url));
  port1.unref();
  register('data:text/javascript,' + encodeURIComponent(
    'let port; export function initialize(p) { port = p; }' +
    'export async function resolve(name, context, next) { const found = await next(name, context); port.postMessage(found.url); return found; }'
  ), { data: port2, transferList: [port2] });
  // tsx compiles in this thread from Node 22 on, and writes to its cache beside the import. Without tsx, a file that is open counts.
  const loader = process.execArgv.includes('tsx') ? ['MessagePort', 'FSReqPromise'] : ['MessagePort'];
  const handles = () => process.getActiveResourcesInfo().filter((name) => !loader.includes(name)).sort();
  // A dependency (debug) asks whether standard error is a terminal, for which Node makes a stream of it.
  void [process.stdin, process.stdout, process.stderr];
  // tsx is still connecting to its own cache.
  while (handles().includes('ConnectWrap')) await new Promise((resolve) => setImmediate(resolve));
  const before = handles();
  for (const module of process.argv.slice(1)) await import(module);
  const after = handles();
  // The hook runs in a thread of its own. When it has told of this import it has told of all before.
  const last = 'data:text/javascript,';
  await import(last);
  while (!seen.includes(last)) await new Promise((resolve) => setImmediate(resolve));
  process.stdout.write(JSON.stringify({ seen, before, after }) + '\\n');
`;

interface Probed {
  seen: string[];
  before: string[];
  after: string[];
}

async function probe(modules: readonly string[], flags: readonly string[]): Promise<Probed> {
  const args = [...flags, '--input-type=module', '--eval', PROBE, ...modules];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, timeout: 60_000 });
  return JSON.parse(stdout) as Probed;
}

/** Returns the names of the packages among some URLs. */
function packagesOf(urls: readonly string[]): string[] {
  const names = urls.map((url) => /\/node_modules\/(?!.*\/node_modules\/)((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))];
}

/** The optional packages that an entry point cannot do without. */
const NEEDED: Readonly<Record<string, readonly string[]>> = { 'embermq/decoder': ['mqtt-packet'] };

function assertQuiet(entry: string, { seen, before, after }: Probed): void {
  assert.ok(seen.length > (entry === 'embermq/management/client' ? 0 : 5), 'the probe saw what was imported');
  const needed = NEEDED[entry] ?? [];
  const optional = Object.keys(packageJson.peerDependencies ?? {}).filter((name) => !needed.includes(name));
  const allowed = [...Object.keys(packageJson.dependencies), ...needed];
  const direct = packagesOf(seen);
  assert.deepEqual(
    direct.filter((name) => optional.includes(name)),
    []
  );
  // CommonJS dependencies load their own dependencies without the hook; imports of this package are recorded.
  assert.deepEqual(
    direct.filter((name) => !allowed.includes(name) && !name.startsWith('.')),
    []
  );
  assert.deepEqual(
    direct.filter((name) => name.includes('level')),
    []
  );
  assert.deepEqual(after, before, 'importing opens nothing and starts no timer');
}

describe('The version', () => {
  it('is the same in package.json and in the code', () => {
    assert.equal(createBroker().version, packageJson.version);
  });
});

describe('Importing from source', () => {
  it('loads neither optional packages nor LevelDB, and opens nothing', async () => {
    const names = entries.map(({ name }) => name).filter((name) => NEEDED[name] === undefined);
    assertQuiet('embermq', await probe(names, FROM_SOURCE)); // each by itself: see the compiled package
  });
});

describe('LevelDB', () => {
  it('is loaded with its native code when a level store is opened', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-level-'));
    const program = `
      const { levelStore } = await import('embermq/level');
      process.report.excludeNetwork = true;
      const isLoaded = () => process.report.getReport().sharedObjects.some((path) => path.includes('classic-level'));
      const store = levelStore(process.argv[1]);
      const before = isLoaded();
      await store.open();
      process.stdout.write(before + ' ' + isLoaded());
      await store.close();
    `;
    try {
      const args = [...FROM_SOURCE, '--input-type=module', '--eval', program, folder];
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, timeout: 60_000 });
      assert.equal(stdout, 'false true');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('The compiled package', () => {
  let out: string;

  before(() => {
    out = mkdtempSync(join(root, 'dist-test-')); // inside the package, where its own name and its dependencies resolve
    const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
    const args = [tsc, '-p', 'tsconfig.build.json', '--noCheck', '--outDir', out]; // checked by `npm run check`
    execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  });

  after(() => rmSync(out, { recursive: true, force: true }));

  const compiled = (path: string) => join(out, path.replace('./dist/', '').replace(/^dist\//, ''));

  for (const { name, target } of entries) {
    it(`has code and types for ${name}, and imports without warnings`, async () => {
      assert.ok(statSync(compiled(target.types)).isFile());
      assertQuiet(name, await probe([compiled(target.default)], []));
    });
  }

  it('exposes no type of xstate, mqtt-packet, lru-cache or eventemitter3 outside embermq/machines', () => {
    for (const { name, target } of entries) {
      if (name === 'embermq/machines') continue;
      const packages = packagesInTypes(compiled(target.types));
      assert.deepEqual(
        packages.filter((used) => !used.startsWith('node:')),
        name === 'embermq/fastify' ? ['fastify'] : [], // its types are those of a plugin, and it extends those of an app
        name
      );
    }
  });

  it('exports from embermq every type that its exported declarations use', () => {
    const index = compiled('./dist/lib/index.d.ts');
    const program = ts.createProgram([index], {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      types: []
    });
    const checker = program.getTypeChecker();
    const resolved = (symbol: ts.Symbol) =>
      (symbol.flags & ts.SymbolFlags.Alias) !== 0 ? checker.getAliasedSymbol(symbol) : symbol;
    const source = checker.getSymbolAtLocation(program.getSourceFile(index) as ts.SourceFile) as ts.Symbol;
    const exported = new Set(checker.getExportsOfModule(source).map(resolved));
    const missing = new Set<string>();
    const look = (node: ts.Node): void => {
      if (ts.isConstructorDeclaration(node)) return; // objects that users receive and do not construct
      if (ts.isIdentifier(node) && isTypeName(node)) {
        const symbol = resolved(checker.getSymbolAtLocation(node) as ts.Symbol);
        const isOurs = symbol.declarations?.[0].getSourceFile().fileName.startsWith(out.replaceAll('\\', '/'));
        const isParameter = (symbol.flags & ts.SymbolFlags.TypeParameter) !== 0;
        if (isOurs && !isParameter && !exported.has(symbol)) missing.add(symbol.name);
      }
      ts.forEachChild(node, look);
    };
    for (const { declarations = [] } of exported) declarations.forEach(look);
    assert.ok(exported.size > 80);
    assert.deepEqual([...missing], []);
  });

  it('compiles with the strictest settings of an app, without skipLibCheck, and the app can annotate its values (npm run types: TypeScript 5.4 and 7)', () => {
    const local = entries.reduce(
      (code, { name, target }) => code.replaceAll(`'${name}'`, `'${target.default.replace('./dist/', './')}'`),
      CONSUMER + FASTIFY_CONSUMER
    );
    writeFileSync(join(out, 'consumer.mts'), local);
    const program = ts.createProgram([join(out, 'consumer.mts')], {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noPropertyAccessFromIndexSignature: true,
      noEmit: true,
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      skipLibCheck: false,
      lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
      types: [] // the default of TypeScript 7: the declarations themselves reference those of Node
    });
    const ours = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(out.replaceAll('\\', '/')));
    assert.ok(ours.length > 50);
    const faults = ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
      return `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
    });
    assert.deepEqual(faults, []);
  });

  for (const { format, uses, app, more } of BUNDLES) {
    it(`works in an app that esbuild bundles as ${format}, with ${uses}, where no package is installed`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'embermq-bundle-'));
      try {
        const installed = join(folder, 'app/node_modules/embermq');
        mkdirSync(installed, { recursive: true });
        copyFileSync(join(root, 'package.json'), join(installed, 'package.json'));
        symlinkSync(out, join(installed, 'dist'), 'junction');
        const stdin = { contents: app.code, resolveDir: join(folder, 'app') };
        const outfile = join(folder, 'empty', format === 'esm' ? 'app.mjs' : 'app.cjs');
        const { warnings } = await build({
          stdin,
          outfile,
          format,
          bundle: true,
          platform: 'node',
          logLevel: 'silent',
          ...more
        });
        assert.deepEqual(warnings, []);
        rmSync(join(folder, 'app'), { recursive: true });
        const { stdout } = await promisify(execFile)(process.execPath, [outfile], {
          cwd: dirname(outfile),
          timeout: 60_000
        });
        assert.equal(stdout, app.prints);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  }

  it('uses no generic Buffer in its declarations, which TypeScript before 5.7 does not support', () => {
    const wrong = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.d.ts') && /\bBuffer</.test(readFileSync(join(out, name), 'utf8'))
    );
    assert.deepEqual(wrong, []);
  });

  for (const [script, steps] of [
    ['smoke', 10],
    ['management', 14]
  ] as const)
    it(`passes the test for other runtimes ${script}.mjs`, async () => {
      const args = [join(root, `test/runtimes/${script}.mjs`), basename(out)];
      const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
      assert.match(stdout, new RegExp(`^node ${process.versions.node}: ${steps} of ${steps} steps$`, 'm'));
    });

  it('has a command that Node can run', () => {
    const main = compiled(packageJson.bin.embermq);
    assert.equal(readFileSync(main, 'utf8').split('\n')[0], '#!/usr/bin/env node');
    const text = execFileSync(process.execPath, [main, 'version'], { encoding: 'utf8' });
    assert.match(text, /^embermq \d+\.\d+\.\d+\n$/);
  });
});

/** Whether this is the name in `x: Name`, `extends Name` or `typeof name`. */
function isTypeName({ parent }: ts.Identifier): boolean {
  return (
    ts.isTypeReferenceNode(parent) ||
    ts.isExpressionWithTypeArguments(parent) ||
    ts.isTypeQueryNode(parent) ||
    ts.isQualifiedName(parent)
  );
}

/** Returns the packages that the declarations reachable from one file import. */
function packagesInTypes(start: string): string[] {
  const found = new Set<string>();
  const done = new Set<string>();
  const waiting = [start];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (done.has(file)) continue;
    done.add(file);
    for (const { fileName } of ts.preProcessFile(readFileSync(file, 'utf8')).importedFiles) {
      if (fileName.startsWith('.')) waiting.push(resolve(dirname(file), fileName.replace(/\.(js|ts)$/, '.d.ts')));
      else found.add(fileName);
    }
  }
  return [...found].sort();
}
