// `npm run types -- [VERSIONS]`: compiles TypeScript apps against the published package, without skipLibCheck, as ES modules and as CommonJS, with
// other versions of TypeScript than that of the project, by default all of COMPILERS. Needs the npm registry.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMONJS_CLASSES, COMMONJS_CONSUMER, CONSUMER } from './support/consumer.ts';

/** The ways in which the compiler finds declarations, with the flags for them and the files of the app. */
const RESOLUTIONS = {
  node10: { flags: ['--module', 'commonjs', '--moduleResolution', 'node10'], files: ['commonjs.ts'] },
  node16: { flags: ['--module', 'node16'], files: ['commonjs.cts', 'classes.cts', 'module.mts', 'charts.mts'] },
  nodenext: { flags: ['--module', 'nodenext'], files: ['commonjs.cts', 'classes.cts', 'module.mts', 'charts.mts'] },
  bundler: { flags: ['--module', 'esnext', '--moduleResolution', 'bundler'], files: ['module.mts', 'charts.mts'] }
};

/** TypeScript 5.4 is the oldest supported version; version 7 has no `node10`. */
const COMPILERS: Record<string, readonly (keyof typeof RESOLUTIONS)[]> = {
  '5.4': ['node10', 'node16', 'nodenext', 'bundler'],
  '5.9': ['node10', 'node16', 'nodenext', 'bundler'],
  '7': ['node16', 'nodenext', 'bundler']
};

const CODES = {
  'module.mts': CONSUMER,
  'commonjs.ts': COMMONJS_CONSUMER,
  'commonjs.cts': COMMONJS_CONSUMER,
  'classes.cts': COMMONJS_CLASSES,
  'charts.mts': "export { brokerMachine, sessionMachine } from 'embermq/machines';\n"
};

const root = join(import.meta.dirname, '..');
const versions = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(COMPILERS);
const folder = mkdtempSync(join(tmpdir(), 'embermq-types-'));
const npm = (args: readonly string[], cwd: string) =>
  execFileSync('npm', args, { cwd, stdio: ['ignore', 'ignore', 2] });

try {
  execFileSync(process.execPath, ['.ci/build.mjs', '--if-stale'], { cwd: root, stdio: ['ignore', 2, 2] });
  npm(['pack', '--ignore-scripts', '--pack-destination', folder], root);
  const packed = readdirSync(folder).find((name) => name.endsWith('.tgz')) as string;
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  const compilers = versions.map((version) => `typescript-${version}@npm:typescript@${version}`);
  npm(
    ['install', '--ignore-scripts', '--no-audit', '--no-fund', `./${packed}`, '@types/node@20', ...compilers],
    folder
  );
  for (const [name, code] of Object.entries(CODES)) writeFileSync(join(folder, name), code);
  for (const version of versions) {
    const tsc = join(folder, 'node_modules', `typescript-${version}`, 'bin', 'tsc');
    const number = execFileSync(process.execPath, [tsc, '--version'], { encoding: 'utf8' }).trim();
    for (const resolution of COMPILERS[version] ?? (['node16', 'nodenext', 'bundler'] as const)) {
      const { flags, files } = RESOLUTIONS[resolution];
      const strict = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2022'];
      const types = ['--types', 'node']; // versions before 5.6 do not compile @types/readable-stream, which mqtt-packet depends on
      const args = [tsc, ...strict, ...types, ...flags, ...files];
      const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: ['ignore', 1, 2] });
      process.stdout.write(`types: ${number}, ${resolution}: ${status === 0 ? 'compiles' : 'FAILED'}\n`);
      if (status !== 0) process.exitCode = 1;
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
