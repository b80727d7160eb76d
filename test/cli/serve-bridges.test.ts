import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { listen } from '../../adapters/net/index.ts';
import { createBroker, users } from '../../lib/index.ts';
import { NO_HTTP, readyPorts, testShell } from './shell.ts';

const FLAGS = ['serve', '--memory', '--mqtt-port', '0', '--ws-port', 'off'];

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-bridges-'));
});
after(() => rmSync(folder, { recursive: true }));

/** Flags with a config file. */
function withFile(content: object): string[] {
  const file = join(folder, 'embermq.json');
  writeFileSync(file, JSON.stringify(content));
  return [...FLAGS, '--config', file];
}

describe('Bridges of serve', () => {
  it('forwards messages to another server, with a password from the environment', async () => {
    const far = createBroker({ auth: [users([{ username: 'b', password: 'secret' }])] });
    const listener = listen(far, 0);
    await far.start();
    const { port } = await listener;
    const joined = far.nextEvent('client.connected', { where: ({ client }) => client.username === 'b' });
    const received = far.messages('out/#')[Symbol.asyncIterator]();
    const password = { fromEnv: 'TOKEN' };
    const bridges = [{ url: `mqtt://127.0.0.1:${port}`, username: 'b', password, out: [{ filter: 'out/#' }] }];
    const shell = testShell();
    Object.assign(shell.env, NO_HTTP, { TOKEN: 'secret' });
    const code = runCommand(withFile({ bridges }), shell);
    const { mqtt } = await readyPorts(shell, code);
    await joined;
    const args = ['pub', '--url', `mqtt://127.0.0.1:${mqtt}`, '-t', 'out/a', '-q', '1', '-m', 'x'];
    assert.equal(await runCommand(args, testShell()), 0);
    assert.equal(String((await received.next()).value?.payload), 'x');
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
    await far.stop();
  });

  it('names the place of the fault in a refused bridge', async () => {
    const url = 'mqtt://127.0.0.1:1';
    for (const [content, message] of [
      [{ bridges: { url } }, /bridges: expected a list/],
      [{ bridges: [{ url: 'http://x', out: [{ filter: 'a' }] }] }, /bridges\[0\].*url/],
      [{ bridges: [{ url }] }, /bridges\[0\].*out/],
      [{ bridges: [{ url, out: [{ filter: 'a/#/b' }] }] }, /bridges\[0\].*out\[0\]/],
      [
        { bridges: Array(2).fill({ url, out: [{ filter: 'a' }] }) },
        /bridges\[1\].name: .* no other bridge has, got "default"/
      ]
    ] as const) {
      const shell = testShell();
      Object.assign(shell.env, NO_HTTP);
      assert.equal(await runCommand(withFile(content), shell), 2);
      assert.match(shell.err(), message);
    }
  });
});
