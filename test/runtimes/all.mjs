// Runs the smoke tests of this folder, each in a separate process: `npm run smoke [-- DIST]`. `.ci/runtimes` runs them on Bun and Deno.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

for (const name of ['smoke.mjs', 'management.mjs', 'console.mjs', 'require.cjs']) {
  const args = [join(import.meta.dirname, name), ...process.argv.slice(2)];
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
