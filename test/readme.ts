// `node --import tsx test/readme.ts`: copies each program of the README into an app that has installed the packed package, as the README describes, and runs
// it with `node app.ts`, on Node 20 with `npx tsx app.ts`. Needs the npm registry.
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificates } from './support/certificates.ts';
import { withFreePorts } from './support/free-ports.ts';
import { promised, snippets } from './support/pages.ts';
import { npm } from './support/tarball.ts';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'embermq-readme-'));
const readme = { path: 'README.md', text: readFileSync(join(root, 'README.md'), 'utf8') };
/** False for Node 20, which does not run TypeScript. */
const takesTypes = 'typescript' in process.features;

/** Installs the packages that the README names, and makes the files that its programs read. */
function createApp(): void {
  npm(['init', '-y'], folder);
  npm(['pkg', 'set', 'type=module'], folder);
  npm(['pack', '--ignore-scripts', '--pack-destination', folder], root);
  const packed = readdirSync(folder).find((name) => name.endsWith('.tgz')) as string;
  const named = [...readme.text.matchAll(/npm install ([\w@/-]+)/g)].map(([, name]) => name);
  const packages = named.map((name) => (name === 'embermq' ? `./${packed}` : name));
  npm(['install', '--no-audit', '--no-fund', ...packages, ...(takesTypes ? [] : ['tsx'])], folder);
  const passwd = ['node_modules/embermq/dist/adapters/cli/main.js', 'passwd', 'users', 'ann'];
  execFileSync(process.execPath, passwd, { cwd: folder, input: 'a password\n', stdio: ['pipe', 'ignore', 2] });
  using certificates = makeCertificates();
  copyFileSync(certificates.server.certFile, join(folder, 'server.crt'));
  copyFileSync(certificates.server.keyFile, join(folder, 'server.key'));
}

/** Resolves when a port accepts connections. */
async function listens(port: string, signal: AbortSignal): Promise<void> {
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  while (!signal.aborted && !(await accepts())) await new Promise((resolve) => setTimeout(resolve, 50));
}

/**
 * Runs a program until it has printed what it promises, serves the ports that it names, or has ended.
 * @returns a description of its failure
 */
async function run(code: string, name: string): Promise<string | undefined> {
  const ports = new Map<string, string>();
  writeFileSync(join(folder, name), await withFreePorts(code, ports));
  const command = takesTypes ? [name] : ['node_modules/tsx/dist/cli.mjs', name];
  const child = spawn(process.execPath, command, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  const expected = promised(code);
  const ended = new AbortController();
  const killer = setTimeout(() => child.kill('SIGKILL'), 120_000);
  let printed = '';
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const done = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      printed += chunk;
      if (printed === expected) resolve();
    });
  });
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve)).finally(() => ended.abort());
  const isServing = Promise.all([...ports.values()].map((port) => listens(port, ended.signal)));
  const ready = expected === undefined ? (ports.size > 0 ? isServing : exited) : done;
  await Promise.race([ready, exited]);
  const isRunning = ports.size > 0 && child.exitCode === null && !ended.signal.aborted;
  if (isRunning) child.kill();
  const status = await exited;
  clearTimeout(killer);
  if (!isRunning && status !== 0) return `ends with ${status}\n${errors}`;
  if (expected !== undefined && printed !== expected) return `prints ${JSON.stringify(printed)}`;
  return undefined;
}

try {
  execFileSync(process.execPath, ['.ci/build.mjs', '--if-stale'], { cwd: root, stdio: ['ignore', 2, 2] });
  createApp();
  for (const [at, { line, code }] of snippets(readme).entries()) {
    const failure = await run(code, `app-${at}.ts`);
    process.stdout.write(`node ${process.versions.node}, README.md:${line}: ${failure ?? 'runs'}\n`);
    if (failure !== undefined) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
