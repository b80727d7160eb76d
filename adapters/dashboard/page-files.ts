// The files of the console. This module reads `.cache/console`, which `npm test`, `npm run check` and `node .ci/console.mjs` write. In the package it
// is replaced with one that contains the files (`.ci/package.mjs`), so that bundled apps need no folder. It is large: import it with the first request.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file of the console. */
interface PageFile {
  /** The media type. */
  readonly type: string;
  /** A digest of the content, for `ETag`. */
  readonly hash: string;
  /** The content, compressed with brotli, as base64. */
  readonly br: string;
}

const folder = join(import.meta.dirname, '../../.cache/console');

/**
 * The files by their paths below the mount. `index.html` is the shell: it is served for every address of a view, with the address of the mount instead
 * of `/` in `<base href="/">`. The content of the others never changes under their name.
 */
export const files: Readonly<Record<string, PageFile>> = read();

function read(): Record<string, PageFile> {
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as {
    readonly files: Readonly<Record<string, Omit<PageFile, 'br'>>>;
  };
  return Object.fromEntries(
    Object.entries(manifest.files).map(([name, file]) => [
      name,
      { ...file, br: readFileSync(join(folder, `${name}.br`), 'base64') }
    ])
  );
}
