import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type ts from 'typescript';
import { sourceProgram } from './compiler.ts';

const root = join(import.meta.dirname, '../..');

/** A package as npm would publish it. */
export interface Tarball {
  readonly path: string;
  /** Bytes of the tarball, and of its files. */
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

/** `.ci/package.mjs`, which a compiled test finds only by its path below the root. */
interface Packager {
  writePackage(folder: string, program: ts.Program): Promise<void>;
}

/** Builds the package in a folder, without checking its types, and packs it. */
export async function packInto(stage: string): Promise<Tarball> {
  const { writePackage } = (await import(pathToFileURL(join(root, '.ci/package.mjs')).href)) as Packager;
  await writePackage(join(stage, 'dist'), sourceProgram());
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

/** Installs a package as npm would, in a folder, from where its files were packed. The packages that it depends on are those of this project. */
export function installFiles({ path, files }: Tarball, folder: string, dependencies: readonly string[]): void {
  for (const file of files) {
    const to = join(folder, 'node_modules/embermq', file.path);
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(join(dirname(path), file.path), to);
  }
  for (const name of dependencies)
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'junction');
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
