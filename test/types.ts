// `npm run types -- [VERSIONS]`: compiles a TypeScript app against the published package, without skipLibCheck, with other versions of
// TypeScript than that of the project: 5.4 and 7 by default. Needs the npm registry.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONSUMER } from './support/consumer.ts';

const root = join(import.meta.dirname, '..');
const versions = process.argv.length > 2 ? process.argv.slice(2) : ['5.4', '7'];
const folder = mkdtempSync(join(tmpdir(), 'embermq-types-'));
const npm = (args: readonly string[], cwd: string) =>
  execFileSync('npm', args, { cwd, stdio: ['ignore', 'ignore', 2] });

try {
  execFileSync(process.execPath, ['.ci/build.mjs', '--if-stale'], { cwd: root, stdio: ['ignore', 2, 2] });
  npm(['pack', '--ignore-scripts', '--pack-destination', folder], root);
  const packed = readdirSync(folder).find((name) => name.endsWith('.tgz')) as string;
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  const compilers = versions.map((version) => `typescript-${version}@npm:typescript@${version}`);
  npm(
    ['install', '--ignore-scripts', '--no-audit', '--no-fund', `./${packed}`, '@types/node@20', ...compilers],
    folder
  );
  writeFileSync(join(folder, 'app.ts'), CONSUMER);
  writeFileSync(join(folder, 'charts.ts'), "export { brokerMachine, sessionMachine } from 'embermq/machines';\n");
  const flags = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    'false',
    '--types', // versions before 5.6 do not compile @types/readable-stream, which mqtt-packet depends on
    'node',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    'app.ts',
    'charts.ts'
  ];
  for (const version of versions) {
    const tsc = join(folder, 'node_modules', `typescript-${version}`, 'bin', 'tsc');
    const number = execFileSync(process.execPath, [tsc, '--version'], { encoding: 'utf8' }).trim();
    const { status } = spawnSync(process.execPath, [tsc, ...flags], { cwd: folder, stdio: ['ignore', 1, 2] });
    process.stdout.write(`types: ${number}: ${status === 0 ? 'compiles' : 'FAILED'}\n`);
    if (status !== 0) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
