import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { examples } from './support/example-tables.ts';
import { promised } from './support/pages.ts';
import { joinedProgram } from './support/programs.ts';

const root = join(import.meta.dirname, '..');
/** The example that is a file of tests; see `test/testing/example.test.ts`. */
const TESTS = 'unit-test-your-device';
/** Maximum number of lines: about a screen. */
const MAX_LINES = 60;

/** The kinds of adapters that an app can write. */
const ADAPTERS = ['custom-listener', 'custom-sink', 'custom-source', 'custom-store'];

describe('examples', () => {
  const programs = examples().filter(({ name }) => name !== TESTS);

  it('examples show how to write each kind of adapter, with names of embermq/adapter', () => {
    const found = programs.filter(({ text }) => text.includes("from 'embermq/adapter'")).map(({ name }) => name);
    assert.deepEqual(found, ADAPTERS);
  });

  for (const { name, text, about } of programs) {
    it(`runs ${name}, which prints the documented output`, async () => {
      assert.notEqual(about, '', 'it begins with a comment that says what it shows');
      assert.ok(text.split('\n').length <= MAX_LINES, 'it fits on a screen');
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [joinedProgram(`examples/${name}.ts`)], {
        cwd: root,
        timeout: 60_000
      });
      assert.equal(stdout, promised(text), stderr);
      assert.equal(stderr, '');
    });
  }
});
