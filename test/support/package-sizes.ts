import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { BUNDLES } from '../bundled-apps.ts';
import type { Tarball } from './tarball.ts';

const PAGE = join(import.meta.dirname, '../../lib/PACKAGE.md');

/** Rows of numbers by their first column. The tables of the page contain the maximum allowed values. */
type Sizes = Readonly<Record<string, readonly number[]>>;

/** Returns the sizes of a tarball. */
export function tarballSizes({ size, unpackedSize, files }: Tarball): Sizes {
  return { tarball: [kilobytes(size)], unpacked: [kilobytes(unpackedSize)], files: [files.length] };
}

/** Returns the number of loaded modules, and their kilobytes. */
export function loadedSizes(urls: readonly string[]): readonly number[] {
  const files = [...new Set(urls)].filter((url) => url.startsWith('file:')).map((url) => fileURLToPath(url));
  return [files.length, kilobytes(files.reduce((sum, file) => sum + statSync(file).size, 0))];
}

/**
 * Bundles an app that keeps its state in memory, and returns the kilobytes that it loads at the start, compressed too, and of everything.
 */
export async function bundleSizes(folder: string, minify: boolean): Promise<readonly number[]> {
  const outdir = join(folder, 'bundle');
  const { outputFiles, metafile } = await build({
    stdin: { contents: BUNDLES[0].app.code, resolveDir: folder, sourcefile: 'app.js' },
    outdir,
    minify,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    external: ['croner', 're2js'], // optional packages, which an app has only if it installs them
    absWorkingDir: folder,
    metafile: true,
    write: false,
    logLevel: 'silent'
  });
  const start = new Set<string>();
  const waiting = Object.keys(metafile.outputs).filter(
    (name) => metafile.outputs[name].entryPoint !== undefined && /stdin|app/.test(name)
  );
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (start.has(name)) continue;
    start.add(name);
    for (const { path, kind } of metafile.outputs[name].imports)
      if (kind === 'import-statement' && metafile.outputs[path] !== undefined) waiting.push(path);
  }
  const loaded = outputFiles.filter(({ path }) => [...start].some((name) => join(folder, name) === path));
  const bytes = Buffer.concat(loaded.map(({ contents }) => contents));
  const all = outputFiles.reduce((sum, { contents }) => sum + contents.length, 0);
  return [kilobytes(bytes.length), kilobytes(gzipSync(bytes).length), kilobytes(all)];
}

/** Returns the sizes that exceed those in a table of the page. With UPDATE_PAGES, writes the table with a tenth of room instead. */
export function beyondPage(table: string, head: readonly string[], sizes: Sizes): string[] {
  const begin = `<!-- ${table}: begin -->\n`;
  const end = `<!-- ${table}: end -->`;
  const page = readFileSync(PAGE, 'utf8');
  const from = page.indexOf(begin) + begin.length;
  const to = page.indexOf(end);
  if (process.env.UPDATE_PAGES !== undefined) {
    const rows = Object.entries(sizes).map(([name, values]) => [name, ...values.map(withRoom)]);
    const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
    writeFileSync(PAGE, `${page.slice(0, from)}\n${lines.join('\n')}\n\n${page.slice(to)}`);
    return [];
  }
  const stated = new Map(
    page
      .slice(from, to)
      .split('\n')
      .map((line) => line.split('|').map((cell) => cell.trim()))
      .map(([, name, ...cells]) => [name, cells.map((cell) => Number(cell.replaceAll(',', '')))])
  );
  return Object.entries(sizes).flatMap(([name, values]) =>
    values.flatMap((value, column) => {
      const most = stated.get(name)?.[column] ?? Number.NaN;
      return value <= most
        ? []
        : [
            `${table}, ${name}, ${head[column + 1]}: ${value}, but lib/PACKAGE.md says ${most} (UPDATE_PAGES=1 npm test -- packaging)`
          ];
    })
  );
}

function kilobytes(bytes: number): number {
  return Math.ceil(bytes / 1000);
}

/** Rounds up to two digits, with a tenth of room. */
function withRoom(value: number): string {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value * 1.05)) - 1);
  return (Math.ceil((value * 1.05) / unit) * unit).toLocaleString('en-US');
}
