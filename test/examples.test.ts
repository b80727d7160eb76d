import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '..');
const files = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));

/** The lines behind `// prints:` at the end of an example. */
function promised(text: string): string | undefined {
  const lines = /^\/\/ prints:\n((?:\/\/.*\n)+)$/m.exec(text)?.[1];
  return lines?.replace(/^\/\/ ?/gm, '');
}

describe('examples', () => {
  it('are all there', () => {
    for (const name of [
      'embed',
      'tcp',
      'ws-in-http-app',
      'hooks-auth',
      'local-client',
      'express-host',
      'stream-window'
    ]) {
      assert.ok(files.includes(`${name}.ts`), name);
    }
  });

  for (const name of files) {
    const text = readFileSync(join(root, 'examples', name), 'utf8');
    const expected = promised(text);
    if (expected === undefined) continue; // a part of another example

    it(`${name} prints what it says`, async () => {
      const flags = ['--import', 'tsx', '--conditions=embermq-source', `examples/${name}`];
      const { stdout, stderr } = await promisify(execFile)(process.execPath, flags, { cwd: root, timeout: 30_000 });
      assert.equal(stdout, expected, stderr);
    });
  }
});
