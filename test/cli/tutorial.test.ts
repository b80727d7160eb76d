import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { tutorials } from '../support/example-tables.ts';
import { joinedProgram } from '../support/programs.ts';

/** Ports that are free now. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    })
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

describe('the tutorial "Run a broker"', { skip: existsSync('/bin/bash') ? false : 'there is no bash' }, () => {
  it('checks a broker, explains a refusal and makes a backup, as its page shows', async () => {
    const { text, page } = tutorials().find(({ name }) => name === 'run-a-broker') ?? assert.fail();
    const folder = mkdtempSync(join(tmpdir(), 'embermq-tutorial-'));
    try {
      mkdirSync(join(folder, 'bin'));
      const command = `#!/bin/sh\nshift\nexec "${process.execPath}" "${joinedProgram('adapters/cli/main.ts')}" "$@"\n`;
      writeFileSync(join(folder, 'bin/npx'), command, { mode: 0o755 });
      const [mqtts, http] = await freePorts(2);
      const script = text.replaceAll('8883', String(mqtts)).replaceAll('8081', String(http));
      const url = `http://127.0.0.1:${http}/api/v4`;
      writeFileSync(join(folder, 'run.sh'), script.replaceAll(/ctl (why|backup)/g, `ctl $1 --url ${url}`));
      const env = { ...process.env, PATH: `${join(folder, 'bin')}${delimiter}${process.env.PATH}` };
      const { stdout, stderr } = await promisify(execFile)('bash', ['run.sh'], { cwd: folder, env, timeout: 120_000 });
      for (const line of ['sensors/sensor-1/celsius 21.5', 'ok       exposure        clients must authenticate']) {
        assert.ok(stdout.includes(line), stdout);
        assert.ok(page.includes(line), `the page shows "${line}"`);
      }
      assert.match(stdout, /"code":"acl_file_rule".*rule 3 of the source \\"acl-file\\"/);
      assert.match(stderr, /PUBLISH to "sensors\/sensor-2\/celsius" was refused: not authorized/);
      assert.match(stderr, /restored: \d+ records/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
