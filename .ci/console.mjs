// The bundle of the console: `adapters/dashboard/page` becomes `.cache/console`, with a compressed copy of each file and a manifest. Tests and
// sources read it from there; `npm run build` embeds it in one module of the package. `node .ci/console.mjs` writes it, which takes about two
// seconds; if no source has changed, 20 ms.
//
// All packages that the page uses are in the bundle, so none of them is a dependency of embermq. Names of files contain a hash of their content, so
// browsers keep them; `index.html` names those that the page begins with. Only brotli is stored: it is a fifth smaller than gzip, and a server makes
// gzip from it for the few clients that need it.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import { build } from 'esbuild';
import { writeWhole } from './generated.mjs';

const root = join(import.meta.dirname, '..');
const PAGE = 'adapters/dashboard/page';
const NODE = `${PAGE}/app/mqtt/node.ts`;
const FOLDER = '.cache/console';
const OWN_SOURCES = ['.ci/console.mjs', `${PAGE}/index.html`, 'package-lock.json'];
const compress = promisify(brotliCompress);
const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml'
};

/** Write the bundle if it is missing or older than its sources. Returns the manifest. */
export async function writeConsole() {
  const before = manifestBefore();
  if (before !== undefined && isCurrent(before, Object.keys(before.stamps))) return before;
  const started = Date.now();
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [`${PAGE}/main.tsx`, `${PAGE}/icon.svg`],
    outdir: FOLDER,
    entryNames: 'assets/[name]-[hash]',
    chunkNames: 'assets/[name]-[hash]',
    assetNames: 'assets/[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    inject: [`./${NODE}`], // only the WebSocket client uses `Buffer` and `process`
    alias: { 'node:timers': `./${NODE}` },
    loader: { '.svg': 'copy' },
    legalComments: 'none', // the licences are in LICENSES of the package
    logLevel: 'warning',
    metafile: true,
    write: false
  });
  const contents = new Map(
    outputFiles.map(({ path, contents }) => [path.slice(join(root, FOLDER).length + 1), contents])
  );
  contents.set('index.html', Buffer.from(shell([...contents.keys()])));
  const files = {};
  const isKept = before !== undefined && isCurrent(before, ['.ci/console.mjs']);
  const write = async ([name, content]) => {
    const hash = createHash('sha256').update(content).digest('hex').slice(0, 16);
    files[name] = { type: TYPES[extname(name)], hash };
    // to compress takes most of the time; files whose content is the same are kept
    if (isKept && before.files[name]?.hash === hash) return;
    writeWhole(join(root, FOLDER, name), content);
    writeWhole(join(root, FOLDER, `${name}.br`), await compressed(content));
  };
  await Promise.all([...contents].map(write));
  const sources = [...OWN_SOURCES, ...Object.keys(metafile.inputs).filter((path) => !path.startsWith('node_modules/'))];
  // a source that is saved meanwhile may have been read before
  const isUnchanged = sources.every((path) => statSync(join(root, path)).mtimeMs < started);
  const manifest = {
    files,
    packages: packagesOf(Object.keys(metafile.inputs)),
    stamps: isUnchanged ? Object.fromEntries(sources.map((path) => [path, stampOf(path)])) : { '': '' }
  };
  writeWhole(join(root, FOLDER, 'manifest.json'), JSON.stringify(manifest));
  removeOthers(files);
  return manifest;
}

/** The module of the package that contains the files, in place of `adapters/dashboard/page-files.ts`. */
export async function embeddedConsole() {
  const { files } = await writeConsole();
  const rows = Object.entries(files).map(([name, { type, hash }]) => [
    name,
    { type, hash, br: readFileSync(join(root, FOLDER, `${name}.br`), 'base64') }
  ]);
  return `export const files = ${JSON.stringify(Object.fromEntries(rows))};\n`;
}

/** The page that names the files to begin with. */
function shell(names) {
  const named = (pattern) => names.find((name) => pattern.test(name));
  return readFileSync(join(root, PAGE, 'index.html'), 'utf8')
    .replace('main.tsx', named(/\/main-\w+\.js$/))
    .replace('main.css', named(/\/main-\w+\.css$/))
    .replace('icon.svg', named(/\/icon-\w+\.svg$/));
}

function compressed(content) {
  return compress(content, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
  });
}

/** The names of the packages whose code is in the bundle. */
function packagesOf(paths) {
  const names = paths.map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

/** Delete the files of earlier bundles. */
function removeOthers(files) {
  const kept = new Set(Object.keys(files).flatMap((name) => [name, `${name}.br`]));
  mkdirSync(join(root, FOLDER, 'assets'), { recursive: true });
  for (const name of readdirSync(join(root, FOLDER, 'assets')))
    if (!kept.has(`assets/${name}`)) rmSync(join(root, FOLDER, 'assets', name), { force: true });
}

/** Returns the manifest of the last bundle; undefined if there is none. */
function manifestBefore() {
  try {
    return JSON.parse(readFileSync(join(root, FOLDER, 'manifest.json'), 'utf8'));
  } catch {
    return undefined;
  }
}

/** True if some sources are the same as at the time of a manifest. */
function isCurrent({ stamps }, paths) {
  return paths.every((path) => stampOf(path) === stamps[path]);
}

/** Returns the time and the size of a file; undefined if there is none. */
function stampOf(path) {
  const found = statSync(join(root, path), { throwIfNoEntry: false });
  return found && `${found.mtimeMs} ${found.size}`;
}

if (process.argv[1] === import.meta.filename) {
  const { files } = await writeConsole();
  for (const name of Object.keys(files)) {
    const [size, small] = [name, `${name}.br`].map((path) => statSync(join(root, FOLDER, path)).size);
    console.log(`${name.padEnd(40)} ${`${size}`.padStart(8)} ${`${small}`.padStart(8)}`);
  }
}
