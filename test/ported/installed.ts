// Apps of other projects, installed from the registry of npm into `.cache/ported`, beside the packages of this project as npm would publish them.
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { npm } from '../support/tarball.ts';

const root = join(import.meta.dirname, '../..');
const cache = join(root, '.cache/ported');
const tarballs = join(cache, 'tarballs');

/** Packs a package of this project. @param folder of its package.json, below the root @returns a specification for npm */
export function packed(folder = '.'): string {
  if (folder === '.') execFileSync(process.execPath, ['.ci/build.mjs', '--if-stale'], { cwd: root, stdio: 'ignore' });
  const into = join(tarballs, 'new');
  mkdirSync(into, { recursive: true });
  npm(['pack', '--ignore-scripts', '--pack-destination', into], join(root, folder));
  const [name] = readdirSync(into).filter((file) => file.endsWith('.tgz'));
  const hash = createHash('sha256')
    .update(readFileSync(join(into, name)))
    .digest('hex');
  // npm installs a file again only if its name has changed
  const path = join(tarballs, name.replace('.tgz', `-${hash.slice(0, 12)}.tgz`));
  renameSync(join(into, name), path);
  return `file:${path}`;
}

/** The parts of a package.json that an app has. */
interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
  readonly type?: 'module' | 'commonjs';
}

/** Installs an app by npm, unless it is installed already. Returns its folder. */
export function installed(name: string, manifest: Manifest): string {
  const folder = join(cache, name);
  const text = JSON.stringify({ private: true, ...manifest }, undefined, 2);
  const file = join(folder, 'package.json');
  if (existsSync(file) && existsSync(join(folder, 'node_modules')) && readFileSync(file, 'utf8') === text)
    return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, text);
  try {
    npm(['install', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline'], folder);
  } catch (error) {
    rmSync(file);
    throw error;
  }
  return folder;
}

/** Returns the program of a version of Node: that of this process, or one that `.ci/node` installs. */
export function nodeOf(major: number): string {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  return join(execFileSync('bash', ['.ci/node', String(major)], { cwd: root, encoding: 'utf8' }).trim(), 'node');
}

/** Runs a program of an app and returns what it prints. @throws Error with its output if it fails or takes more than a minute */
export async function outputOf(node: string, file: string, cwd: string): Promise<string> {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const { stdout } = await promisify(execFile)(node, [file], { cwd, env, timeout: 60_000 });
  return stdout;
}
