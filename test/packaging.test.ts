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
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import ts from 'typescript';
import { EVENT_ABOUT, EVENT_FIELD_ABOUT } from '../lib/events/event-texts.ts';
import { createBroker } from '../lib/index.ts';
import { BUNDLES, CLIENT_APP } from './bundled-apps.ts';
import { createProgram } from './support/compiler.ts';
import { COMMONJS_CLASSES, COMMONJS_CONSUMER, CONSUMER, FASTIFY_CONSUMER } from './support/consumer.ts';
import { memberTexts } from './support/member-texts.ts';
import { beyondPage, bundleSizes, loadedSizes, tarballSizes } from './support/package-sizes.ts';
import { promised } from './support/pages.ts';
import { SOURCES } from './support/programs.ts';
import { missingInDeclarations } from './support/public-names.ts';
import { IS_LONG } from './support/samples.ts';
import { importsOf, packageSources, textOf } from './support/sources.ts';
import { installFiles, npm, packInto, type Tarball } from './support/tarball.ts';

const root = join(import.meta.dirname, '..');
const packageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string;
  main: string;
  types: string;
  exports: Record<
    string,
    | string
    | {
        'embermq-source': string;
        require?: Record<'types@>=5.3' | 'default', string>;
        default: string | Record<'types' | 'default', string>;
      }
  >;
  typesVersions: Record<string, Record<string, [string]>>;
  bin: Record<string, string>;
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional: boolean }>;
  repository: { url: string };
  homepage: string;
  bugs: { url: string };
  sideEffects: boolean;
};
const entries = Object.entries(packageJson.exports).flatMap(([name, target]) =>
  typeof target === 'string' || typeof target.default === 'string'
    ? []
    : [{ name: name.replace('.', 'embermq'), target: target.default }]
);

/** The tests take more time where the servers for tests are present: in `.ci/run`. There the package is installed by npm. */
const isThorough = IS_LONG || process.env.REQUIRE_SERVICES !== undefined;

/** The output of npm if its registry cannot be reached. */
const UNREACHABLE = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT|ENOTCACHED/;

/** Runs in a separate process: imports modules, then reports each import that this caused, and the open resources. */
const PROBE = `
  import { register } from 'node:module';
  import { MessageChannel } from 'node:worker_threads';
  const { port1, port2 } = new MessageChannel();
  const seen = [];
  port1.on('message', (pair) => seen.push(pair));
  port1.unref();
  register('data:text/javascript,' + encodeURIComponent(
    'let port; export function initialize(p) { port = p; }' +
    'export async function resolve(name, context, next) { const found = await next(name, context); port.postMessage([context.parentURL, found.url]); return found; }'
  ), { data: port2, transferList: [port2] });
  const handles = () => process.getActiveResourcesInfo().filter((name) => name !== 'MessagePort').sort();
  // A dependency (debug) asks whether standard error is a terminal, for which Node makes a stream of it.
  void [process.stdin, process.stdout, process.stderr];
  const objects = { globalThis, process, Symbol, Object, Array, Promise, Buffer, Date, Error, 'Array.prototype': Array.prototype,
    'Promise.prototype': Promise.prototype, 'Error.prototype': Error.prototype };
  const globals = () => [Object.entries(objects).map(([name, of]) => [name, Reflect.ownKeys(of).map(String)]),
    process.eventNames().map(String).sort(), Object.keys(process.env).sort()];
  for (const name of ['crypto', 'performance', 'fetch', 'navigator', 'WebSocket']) void globalThis[name]; // Node loads them when they are used
  const state = () => ({ handles: handles(), globals: globals() });
  const before = state();
  for (const module of process.argv.slice(1)) await import(module);
  const after = state();
  // The hook runs in a separate thread. When it has reported this import, it has reported all earlier ones.
  const last = 'data:text/javascript,';
  await import(last);
  while (!seen.some(([, url]) => url === last)) await new Promise((resolve) => setImmediate(resolve));
  process.stdout.write(JSON.stringify({ seen, before, after }) + '\\n');
`;

interface Probed {
  /** URLs of the importing and of the imported module. */
  seen: [from: string, to: string][];
  before: object;
  after: object;
}

async function probe(modules: readonly string[], cwd = root): Promise<Probed> {
  const args = ['--input-type=module', '--eval', PROBE, ...modules];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd, timeout: 60_000 });
  return JSON.parse(stdout) as Probed;
}

/** Returns the URLs of the modules that a module loads, with its own. */
function loadedBy(first: string, { seen }: Probed): readonly string[] {
  const imports = new Map<string, string[]>();
  for (const [from, to] of seen) imports.set(from, [...(imports.get(from) ?? []), to]);
  const loaded = new Set([first]);
  for (const url of loaded) for (const next of imports.get(url) ?? []) loaded.add(next);
  return [...loaded];
}

/** Returns the names of the packages among some URLs. */
function packagesOf(urls: readonly string[]): string[] {
  const names = urls.map((url) => /\/node_modules\/(?!.*\/node_modules\/)((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))];
}

function assertLight(entry: string, loaded: readonly string[]): void {
  const optional = Object.keys(packageJson.peerDependencies);
  const allowed = Object.keys(packageJson.dependencies);
  const direct = packagesOf(loaded);
  assert.equal(direct.includes('mqtt-packet'), entry === 'embermq/decoder', 'only the decoder loads mqtt-packet');
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
}

function assertQuiet({ seen, before, after }: Probed): void {
  assert.ok(seen.length > 0, 'the probe saw what was imported');
  assert.deepEqual(after, before, 'importing opens nothing, starts no timer and changes nothing global');
}

describe('The version', () => {
  it('equals that of package.json in the code', () => {
    assert.equal(createBroker().version, packageJson.version);
  });
});

/** Optional packages that the code does not import: the app passes objects that it has created with them. */
const BY_THE_APP = new Set(['@nestjs/common', '@opentelemetry/api']);

describe('The package file', () => {
  it('names every package that the code imports as a dependency or an optional peer dependency, and no other', () => {
    const imported = new Set(
      packageSources
        .flatMap(importsOf)
        .map(({ name }) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] as string)
        .filter((name) => !/^(\.|node:|embermq$)/.test(name))
    );
    const peers = Object.keys(packageJson.peerDependencies);
    const named = [...Object.keys(packageJson.dependencies), ...peers];
    assert.deepEqual(
      [...imported].filter((name) => !named.includes(name)),
      []
    );
    assert.deepEqual(
      named.filter((name) => !imported.has(name) && !BY_THE_APP.has(name)),
      []
    );
    const optional = Object.entries(packageJson.peerDependenciesMeta).filter(([, meta]) => meta.optional);
    assert.deepEqual(optional.map(([name]) => name).sort(), peers.sort());
  });

  it('names no script with syntax of a shell, which Windows does not have', () => {
    const { scripts } = packageJson;
    assert.ok(Object.keys(scripts).length > 10);
    assert.deepEqual(
      Object.entries(scripts).filter(
        ([, script]) => /[&|;<>$`'"\\*?~(){}]/.test(script) || /^(\.|exec |[A-Z_]+=)/.test(script)
      ),
      []
    );
  });

  it('names the location of the project, and that no module has side effects', () => {
    const [, project] = /^git\+(https:.+)\.git$/.exec(packageJson.repository.url) ?? assert.fail('no address');
    assert.equal(packageJson.homepage, `${project}#readme`);
    assert.equal(packageJson.bugs.url, `${project}/issues`);
    assert.ok(
      readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').includes(`git clone ${packageJson.repository.url.slice(4)}`)
    );
    assert.equal(packageJson.sideEffects, false);
  });
});

describe('The exports of the package file', () => {
  const { exports: targets, typesVersions, main, types } = packageJson;

  it('names declarations of an ES module for import, of a CommonJS module for require, and the same code for both', () => {
    for (const { name, target } of entries) {
      const row = targets[name.replace('embermq', '.')] as { 'embermq-source': string };
      const base = row['embermq-source'].replace('./', './dist/').replace(/\.ts$/, '');
      const expected = { types: `${base}.d.ts`, default: `${base}.js` };
      assert.deepEqual(row, {
        'embermq-source': row['embermq-source'],
        require: { 'types@>=5.3': `${base}.d.cts`, default: target.default },
        default: expected
      });
    }
  });

  it('names its entry points also for compilers that do not read exports', () => {
    const paths = Object.entries(targets).flatMap(([name, target]) => {
      if (typeof target === 'string') return [];
      return [[name, typeof target.default === 'string' ? target.default : target.default.types]];
    });
    const { '.': first, ...more } = Object.fromEntries(paths) as Record<string, string>;
    assert.deepEqual({ types, main }, { types: first, main: first.replace(/\.d\.ts$/, '.js') });
    const expected = Object.entries(more).map(([name, path]) => [name.replace('./', ''), [path]]);
    assert.deepEqual(typesVersions, { '*': Object.fromEntries(expected) });
  });
});

// The test of the compiled package checks each entry point in every form.
if (IS_LONG)
  describe('Importing from source', () => {
    it('loads neither optional packages nor LevelDB, and opens nothing', async () => {
      const names = entries.map(({ name }) => name).filter((name) => name !== 'embermq/decoder');
      const probed = await probe(names, SOURCES);
      assertQuiet(probed);
      assertLight(
        'embermq',
        probed.seen.map(([, url]) => url)
      ); // each one alone: see the compiled package
    });
  });

describe('The compiled package', () => {
  let stage: string;
  let out: string;
  let tarball: Tarball;
  /** The URLs that each entry point loads. */
  const loaded: Record<string, readonly string[]> = {};

  before(async () => {
    stage = mkdtempSync(join(root, 'dist-test-')); // inside the package, where its dependencies resolve
    out = join(stage, 'dist');
    tarball = await packInto(stage);
  });

  after(() => rmSync(stage, { recursive: true, force: true }));

  const compiled = (path: string) => join(out, path.replace('./dist/', '').replace(/^dist\//, ''));

  it('opens nothing and changes nothing global when its entry points are imported, so that sideEffects is false', async () => {
    const probed = await probe(entries.map(({ target }) => compiled(target.default)));
    assertQuiet(probed);
    for (const { name, target } of entries)
      loaded[name] = loadedBy(pathToFileURL(compiled(target.default)).href, probed);
  });

  for (const { name, target } of entries) {
    it(`exports code and types for ${name}, and loads neither optional packages nor LevelDB`, () => {
      assert.ok(statSync(compiled(target.types)).isFile());
      assert.ok(loaded[name].length > 0);
      assertLight(name, loaded[name]);
    });
  }

  let app: ts.Program | undefined;
  /** An app that uses all of the package, with the strictest settings. */
  function programOfApp(): ts.Program {
    if (app !== undefined) return app;
    const codes = {
      'consumer.mts': CONSUMER + FASTIFY_CONSUMER,
      'consumer.cts': COMMONJS_CONSUMER,
      'classes.cts': COMMONJS_CLASSES
    };
    const apps = Object.entries(codes).map(([name, code]) => {
      writeFileSync(join(stage, name), code);
      return join(stage, name);
    });
    const declarations = entries.flatMap(({ target: { types } }) => [types, types.replace(/ts$/, 'cts')]);
    app = createProgram([...apps, ...declarations.map(compiled)], {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noPropertyAccessFromIndexSignature: true,
      noEmit: true,
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2023, // that of the sources, which shares what is parsed
      skipLibCheck: false,
      lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
      types: [] // the default of TypeScript 7: the declarations themselves reference those of Node
    });
    return app;
  }

  it('exposes no type of xstate, mqtt-packet, lru-cache or eventemitter3 outside embermq/machines', () => {
    for (const { name, target } of entries) {
      if (name === 'embermq/machines') continue;
      const packages = packagesInTypes(compiled(target.types));
      assert.deepEqual(
        packages.filter((used) => !isBuiltin(used)),
        name === 'embermq/fastify' ? ['fastify'] : [], // its types are those of a plugin, and it extends those of an app
        name
      );
    }
  });

  it('compiles with the strictest settings of an app, without skipLibCheck, and the app can annotate its values (npm run types: other versions of TypeScript)', () => {
    const program = programOfApp();
    const ours = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(stage.replaceAll('\\', '/')));
    assert.ok(ours.length > 50);
    const faults = [
      ...program.getOptionsDiagnostics(),
      ...program.getGlobalDiagnostics(),
      // in the short form without the declarations of Node and of other packages; those of xstate have faults with exactOptionalPropertyTypes
      ...(isThorough
        ? program.getSourceFiles().filter(({ fileName }) => !fileName.includes('/xstate/'))
        : ours
      ).flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)])
    ];
    const texts = faults.map(({ file, messageText }) => {
      return `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
    });
    assert.deepEqual(texts, []);
  });

  it('exports every type that its declarations name, also where the sources infer it', () => {
    const files = entries.map(({ name, target }) => [name, compiled(target.types)] as const);
    assert.deepEqual(missingInDeclarations(programOfApp(), files), []);
  });

  it('declares the same names for require as for import', () => {
    const checker = programOfApp().getTypeChecker();
    const exported = (path: string) => {
      const file = programOfApp().getSourceFile(compiled(path)) ?? assert.fail(path);
      const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(file) as ts.Symbol);
      return symbols.map(({ name }) => name).sort();
    };
    for (const { name, target } of entries)
      assert.deepEqual(exported(target.types.replace(/ts$/, 'cts')), exported(target.types), name);
  });

  it('shows a text in an editor for every member of every exported type', () => {
    const declarations = entries.map(({ target }) => compiled(target.types));
    const { count, missing } = memberTexts(programOfApp(), declarations, out);
    assert.ok(count > 4_000, `${count} members`);
    assert.deepEqual(missing, []);
  });

  it('writes the texts of rows into the declarations, with defaults and ranges', () => {
    const checker = programOfApp().getTypeChecker();
    const index = programOfApp().getSourceFile(compiled('dist/lib/index.d.ts')) as ts.SourceFile;
    const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(index) as ts.Symbol);
    const textOf = (type: string, ...path: readonly string[]): string => {
      const symbol = exported.find(({ name }) => name === type) as ts.Symbol;
      const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
      let found = checker.getDeclaredTypeOfSymbol(isAlias ? checker.getAliasedSymbol(symbol) : symbol);
      let text = '';
      for (const name of path) {
        const member = found.getProperty(name) ?? assert.fail(`${type} has no ${name}`);
        text = ts.displayPartsToString(member.getDocumentationComment(checker));
        found = checker.getTypeOfSymbol(member);
      }
      return text;
    };
    assert.match(
      textOf('BrokerOptions', 'maxPacketSize'),
      /^Maximum size of a packet .*\. Default 1,048,576 bytes, from 16 to 268,435,460 bytes\.$/
    );
    assert.equal(textOf('BrokerEvents', 'client.ping'), EVENT_ABOUT['client.ping']);
    assert.equal(textOf('BrokerEvents', 'message.dropped', 'client'), EVENT_FIELD_ABOUT['message.dropped client']);
    assert.equal(textOf('BrokerEvents', 'message.publish', 'message'), EVENT_FIELD_ABOUT.message);
  });

  for (const { format, uses, app, more, isLong } of BUNDLES) {
    if (isLong && !IS_LONG) continue;
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
      const args = [join(root, `test/runtimes/${script}.mjs`), `${basename(stage)}/dist`];
      const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
      assert.match(stdout, new RegExp(`^node ${process.versions.node}: ${steps} of ${steps} steps$`, 'm'));
    });

  it('contains its code, declarations, pages and examples, and nothing else', () => {
    const paths = tarball.files.map(({ path }) => path);
    const known =
      /^(dist\/.*(\.js|\.d\.c?ts|\/openapi\/\w+\.json|LICENSES)|(lib|adapters|examples)\/(.*\/)?\w[\w-]*\.md|examples\/.*|bench\/(RESULTS\.md|comparison\.svg)|package\.json|[A-Z]+\.md|LICENSE)$/;
    assert.deepEqual(
      paths.filter((path) => !known.test(path) || /^(?!examples\/).*\.test\.|\.map$|node_modules/.test(path)),
      []
    );
    const named = JSON.stringify(packageJson.exports).match(/(?<=")\.\/dist\/[^"]+/g) ?? [];
    assert.ok(named.length > 4 * entries.length);
    for (const path of named) assert.ok(paths.includes(path.replace('./', '')), path);
    for (const path of paths.filter((name) => name.endsWith('.js')))
      assert.doesNotMatch(readFileSync(join(stage, path), 'utf8'), /sourceMappingURL/, path);
  });

  it('contains the licence of each package whose code is joined with its own', () => {
    assert.ok(tarball.files.some(({ path }) => path === 'dist/LICENSES'));
    const licences = readFileSync(join(out, 'LICENSES'), 'utf8');
    for (const name of ['eventemitter3', 'lru-cache', 'typebox', 'xstate'])
      assert.match(licences, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+$`, 'm'));
  });

  it('keeps the size that its page states', () => {
    assert.deepEqual(beyondPage('package size', ['', 'at most'], tarballSizes(tarball)), []);
  });

  it('loads at most the modules and bytes for each entry point that its page states', () => {
    const rows = Object.entries(loaded).map(([name, seen]) => [`\`${name}\``, loadedSizes(seen)]);
    assert.equal(rows.length, entries.length);
    assert.deepEqual(beyondPage('import size', ['import', 'modules', 'kB'], Object.fromEntries(rows)), []);
  });

  it('imports no module for its effects alone, which a bundler would leave out', () => {
    const bare = packageSources.filter((path) => /^import ['"]/m.test(textOf(path)));
    assert.ok(packageSources.length > 500);
    assert.deepEqual(bare, []);
  });

  it('keeps the size of a bundle of an app with memory that its page states', async () => {
    const sizes = { 'as esbuild writes it': await bundleSizes(stage, false), minified: await bundleSizes(stage, true) };
    const head = ['bundle', 'loaded at the start, kB', 'the same with gzip, kB', 'with what is loaded on demand, kB'];
    assert.deepEqual(beyondPage('bundle size', head, sizes), []);
  });

  it('keeps an app that imports the client alone below 60 kB, minified and compressed', async () => {
    const { outputFiles } = await build({
      stdin: { contents: CLIENT_APP, resolveDir: stage },
      bundle: true,
      minify: true,
      format: 'esm',
      platform: 'node',
      write: false,
      logLevel: 'silent'
    });
    const [{ contents }] = outputFiles;
    assert.match(Buffer.from(contents).toString(), /CONNECT/);
    assert.ok(gzipSync(contents).length <= 60_000, `${gzipSync(contents).length} bytes`);
  });

  it('runs the ten lines of the README, an example, the command, a store and require in an empty project, with its dependencies alone', async (t) => {
    const app = mkdtempSync(join(tmpdir(), 'embermq-install-'));
    try {
      writeFileSync(join(app, 'package.json'), '{ "name": "app", "private": true, "type": "module" }');
      if (isThorough)
        try {
          npm(['install', '--prefer-offline', '--no-audit', '--no-fund', tarball.path], app);
        } catch (error) {
          const isOffline = UNREACHABLE.test(String((error as { stderr?: unknown }).stderr));
          if (!isOffline || process.env.REQUIRE_SERVICES !== undefined) throw error;
          return t.skip('the registry of npm cannot be reached');
        }
      else installFiles(tarball, app, Object.keys(packageJson.dependencies));
      const readme = readFileSync(join(app, 'node_modules/embermq/README.md'), 'utf8');
      const [, tenLines] = /```js\n(.*?)```/s.exec(readme) ?? assert.fail('README.md has no program');
      writeFileSync(join(app, 'ten-lines.js'), `${tenLines.replace('1883', '0')}\nawait broker.stop();`);
      const run = (...args: readonly string[]) =>
        execFileSync(process.execPath, args, { cwd: app, encoding: 'utf8', timeout: 60_000 });
      assert.equal(run('ten-lines.js'), promised(tenLines));
      const program = readFileSync(join(app, 'node_modules/embermq/examples/embed.ts'), 'utf8');
      const settings = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
      writeFileSync(join(app, 'app.js'), ts.transpile(program, settings));
      assert.equal(run('app.js'), promised(program));
      const command = isThorough
        ? npm(['exec', '--offline', '--', 'embermq', 'version'], app)
        : run(`node_modules/embermq/${packageJson.bin.embermq}`, 'version');
      assert.equal(command, `embermq ${packageJson.version}\n`);
      const level = `
        import { createBroker } from 'embermq';
        import { levelStore } from 'embermq/level';
        process.report.excludeNetwork = true;
        const isLoaded = () => process.report.getReport().sharedObjects.some((path) => path.includes('classic-level'));
        const broker = createBroker({ store: levelStore('./data') });
        const before = isLoaded();
        await broker.start();
        console.log('LevelDB is loaded', before, isLoaded());
        await broker.stop();
      `;
      writeFileSync(join(app, 'level.js'), level);
      assert.equal(
        run('level.js'),
        'LevelDB is loaded false true\n',
        'its native code is loaded when a store is opened'
      );
      copyFileSync(join(root, 'test/runtimes/require.cjs'), join(app, 'require.cjs'));
      const all = `${entries.length} of ${entries.length} entry points`;
      assert.equal(run('require.cjs'), `node ${process.versions.node}: require loads ${all}\n`);
    } finally {
      rmSync(app, { recursive: true, force: true });
    }
  });

  it('contains a command that a shell starts with Node', () => {
    const main = compiled(packageJson.bin.embermq);
    assert.equal(readFileSync(main, 'utf8').split('\n')[0], '#!/usr/bin/env node');
    assert.equal(statSync(main).mode & 0o111, 0o111);
  });
});

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
