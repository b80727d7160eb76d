import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { programOf, SOURCE_FLAGS } from '../support/programs.ts';

const root = join(import.meta.dirname, '../..');

/** The report of node:test for failing-example.ts. */
function report(): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const flags = [...SOURCE_FLAGS, '--test-reporter=spec', '--test'];
  const env = { ...process.env };
  delete env.NODE_TEST_CONTEXT; // otherwise it reports to this process and prints nothing
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...flags, programOf('test/testing/failing-example.ts')],
      { cwd: root, env },
      (_failed, stdout, stderr) => resolve({ stdout, stderr })
    );
  });
}

describe('the report of node:test for a failing test with leaks', () => {
  it('shows the assertion of the test, and with leaks: "error" also the LeakError', async () => {
    const { stdout, stderr } = await report();
    assert.match(stdout, /fail 3/);
    assert.match(stdout, /1 !== 2/);
    assert.match(stdout, /3 !== 4/);
    assert.match(stdout + stderr, /\[TEST_LEAKS\] TestLeakWarning: .*\n.*client "forgotten"/);
    // From Node 24 on, both errors are in a SuppressedError, and the report shows neither of them.
    if ('SuppressedError' in globalThis) assert.match(stdout, /SuppressedError/);
    else {
      assert.match(stdout, /5 !== 6/);
      assert.match(stdout, /LeakError/);
    }
  });
});
