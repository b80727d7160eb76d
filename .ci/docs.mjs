// Write the API reference of all entry points to `docs` with TypeDoc. Fails if TypeDoc has warnings. `npm run docs`
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { writeGenerated } from './generated.mjs';

const root = join(import.meta.dirname, '..');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const entries = Object.values(exports)
  .map((entry) => entry['embermq-source'])
  .filter((path) => path?.endsWith('.ts'));
const typedoc = join(dirname(createRequire(import.meta.url).resolve('typedoc/package.json')), 'bin/typedoc');
await writeGenerated();
const args = [typedoc, '--options', 'typedoc.json', '--treatWarningsAsErrors', ...entries];
const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
process.exitCode = status ?? 1;
