import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** A package as npm would publish it. */
export interface Tarball {
  readonly path: string;
  /** Bytes of the tarball, and of its files. */
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

/** Builds the package in a folder, without checking its types, and packs it. */
export function packInto(stage: string): Tarball {
  execFileSync(process.execPath, ['.ci/build.mjs', '--no-check', '--out', join(stage, 'dist')], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'pipe']
  });
  const pages = ['lib', 'adapters'].flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(tree, name))
  );
  const documents = readdirSync(root).filter((name) => name.endsWith('.md') || name === 'LICENSE');
  const results = ['bench/RESULTS.md', 'bench/comparison.svg'];
  for (const name of ['package.json', 'examples', ...documents, ...results, ...pages]) {
    mkdirSync(dirname(join(stage, name)), { recursive: true });
    cpSync(join(root, name), join(stage, name), { recursive: true });
  }
  const printed = npm(['pack', '--json', '--ignore-scripts'], stage);
  const [packed] = JSON.parse(printed) as (Omit<Tarball, 'path'> & { filename: string })[];
  const path = join(stage, packed.filename);
  return { ...packed, path, size: statSync(path).size };
}

/** Runs npm in a folder and returns what it prints. */
export function npm(args: readonly string[], cwd: string): string {
  return execFileSync('npm', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
    env: { ...process.env, NODE_OPTIONS: '', npm_config_update_notifier: 'false' }
  });
}
