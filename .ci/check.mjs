// The checks that need no broker: types, lint, format, import directions, wording and the OpenAPI documents. `npm run check`
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { writeGenerated } from './generated.mjs';

const root = join(import.meta.dirname, '..');
const { resolve } = createRequire(import.meta.url);
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const tsc = [resolve('typescript/bin/tsc'), '--noEmit', '-p'];
const steps = [
  [...tsc, 'tsconfig.json'],
  [...tsc, 'tsconfig.build.json'],
  [...tsc, 'adapters/dashboard/page'],
  [resolve('@biomejs/biome/bin/biome'), 'check', '.'],
  [...scripts.test.split(' ').slice(1), 'architecture', 'words', 'management/openapi']
];
await writeGenerated();
for (const step of steps) {
  const { status } = spawnSync(process.execPath, step, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
