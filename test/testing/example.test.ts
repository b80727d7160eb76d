import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { joinedProgram } from '../support/programs.ts';

const root = join(import.meta.dirname, '../..');
const example = 'examples/unit-test-your-device.ts';

describe('the example of the test kit', () => {
  it('passes, and prints the output that its comment shows', async () => {
    const shown = readFileSync(join(root, example), 'utf8').split('// prints, with the spec reporter:\n')[1];
    const lines = shown
      .trimEnd()
      .split('\n')
      .map((line) => line.replace('// ', ''));
    const flags = ['--test', '--test-reporter=spec', joinedProgram(example)];
    const { NODE_TEST_CONTEXT: _, ...env } = process.env; // the example is a separate test run
    const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: root, env, timeout: 30_000 });
    assert.equal(lines.length, 5);
    for (const line of lines) assert.ok(stdout.includes(line), `${line}\n is not in\n${stdout}`);
  });
});
