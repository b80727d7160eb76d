import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { runCommand } from '../../adapters/cli/commands.ts';
import { connectClient, type ReceivedMessage } from '../../lib/index.ts';
import { readyPorts, testShell } from './shell.ts';

const page = readFileSync(join(import.meta.dirname, '../../adapters/management/README.md'), 'utf8');
const block = /<!-- curl: begin -->\n```sh\n(.*?)```/s.exec(page)?.[1] ?? '';
const [first, ...commands] = block.replaceAll('\\\n', '').trimEnd().split('\n');

describe('The curl lines of the page about the management interface', () => {
  it('begins with the credentials and has a line for each interface', () => {
    assert.match(first, /^APP=/);
    assert.ok(commands.length >= 10);
    for (const command of commands) assert.match(command, /^curl .*http:\/\/127\.0\.0\.1:808[01]\//);
  });

  it('succeeds against a broker started by embermq serve', async () => {
    const shell = testShell();
    const ports = ['--mqtt-port', '0', '--ws-port', 'off', '--http-port', '0', '--http-earlier-port', '0'];
    const code = runCommand(['serve', '--memory', ...ports], shell);
    const { mqtt, http, 'http-earlier': earlier } = await readyPorts(shell, code);
    const [, id, secret] = /^application (\S+) was made .*: (\S+)$/m.exec(shell.err()) ?? [];
    const client = await connectClient(connect(mqtt, '127.0.0.1'), { clientId: 'me' });
    try {
      const received = new Promise<ReceivedMessage>((resolve) => client.on('message', resolve));
      await client.subscribe('hello/#');
      const answers: string[] = [];
      for (const command of commands) {
        const line = command.replace(':8081/', `:${http}/`).replace(':8080/', `:${earlier}/`);
        const run = `${line.replace(/^curl/, 'curl -sS --fail-with-body')}`;
        const env = { ...process.env, APP: `${id}:${secret}` };
        const { stdout } = await promisify(execFile)('sh', ['-c', run], { env, timeout: 20_000 });
        if (line.includes('/api/')) assert.equal(JSON.parse(stdout).code, 0, `${command}: ${stdout}`);
        answers.push(stdout);
      }
      assert.equal(JSON.parse(answers[0]).data[0].clientid, 'me');
      assert.equal((await received).payload.toString(), 'hi');
      assert.match(answers.at(-2) ?? '', /^embermq_connections\{/m);
      assert.match(answers.at(-1) ?? '', /^readyz check passed$/m);
    } finally {
      shell.signal('SIGTERM');
      assert.equal(await code, 0);
    }
  });
});
