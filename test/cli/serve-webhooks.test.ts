import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { Receiver } from '../webhook/receiver.ts';
import { NO_HTTP, readyPorts, testShell } from './shell.ts';

const FLAGS = ['serve', '--memory', '--mqtt-port', '0', '--ws-port', 'off'];

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-webhooks-'));
});
after(() => rmSync(folder, { recursive: true }));

/** A config file. @returns its path */
function configFile(content: object): string {
  const file = join(folder, 'embermq.json');
  writeFileSync(file, JSON.stringify(content));
  return file;
}

/** Runs `serve`, publishes two messages, and stops it. @returns what it has written to standard error */
async function served(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const shell = testShell();
  Object.assign(shell.env, NO_HTTP, env);
  const code = runCommand([...FLAGS, ...args], shell);
  const { mqtt } = await readyPorts(shell, code);
  for (const topic of ['a', 'b'])
    assert.equal(
      await runCommand(['pub', '--url', `mqtt://127.0.0.1:${mqtt}`, '-t', topic, '-m', 'x'], testShell()),
      0
    );
  shell.signal('SIGTERM');
  assert.equal(await code, 0);
  return shell.err();
}

/** Runs `serve` with settings that it refuses. @returns what it has written to standard error */
async function refused(args: readonly string[]): Promise<string> {
  const shell = testShell();
  Object.assign(shell.env, NO_HTTP);
  assert.equal(await runCommand([...FLAGS, ...args], shell), 2);
  return shell.err();
}

function published(receiver: Receiver): unknown[] {
  return receiver.bodies.filter(({ action }) => action === 'message_publish').map(({ topic }) => topic);
}

describe('Webhooks of serve', () => {
  it('sends all events with --webhook-url', async () => {
    await using receiver = await new Receiver().open();
    await served(['--webhook-url', receiver.url]);
    assert.deepEqual(published(receiver), ['a', 'b']);
    assert.equal(receiver.bodies.filter(({ action }) => action === 'client_connected').length, 2);
  });

  it('accepts the documented settings, and several webhooks', async () => {
    await using receiver = await new Receiver().open();
    await using other = await new Receiver().open();
    const config = configFile({
      'web.hook.api.url': receiver.url,
      'web.hook.rule.message.publish.1': '{"action": "on_message_publish", "topic": "b"}',
      webhooks: [
        {
          name: 'other',
          url: other.url,
          rules: [{ event: 'message.publish', topic: 'a' }],
          headers: { authorization: { fromEnv: 'TOKEN' } }
        }
      ]
    });
    await served(['--config', config], { TOKEN: 'Bearer x' });
    assert.deepEqual([published(receiver), published(other)], [['b'], ['a']]);
    assert.equal(receiver.bodies.length, 1);
    assert.equal(other.received[0].headers.authorization, 'Bearer x');
  });

  it('sends nothing with web.hook.api.url and no rule, and logs this', async () => {
    await using receiver = await new Receiver().open();
    const config = configFile({ 'web.hook.api.url': receiver.url });
    assert.match(await served(['--config', config]), /the webhook default sends nothing: .*web\.hook\.rule/);
    assert.deepEqual(receiver.bodies, []);
  });

  it('sends all events to --webhook-url if the config file has the documented settings without a rule', async () => {
    await using receiver = await new Receiver().open();
    const config = configFile({ 'api.url': 'http://127.0.0.1:1/', encode_payload: 'base64' });
    const log = await served(['--config', config, '--webhook-url', receiver.url]);
    assert.doesNotMatch(log, /sends nothing/);
    assert.deepEqual(published(receiver), ['a', 'b']);
    assert.equal(receiver.bodies.find(({ action }) => action === 'message_publish')?.payload, 'eA==');
  });

  it('names the place of the fault in a refused webhook', async () => {
    const url = 'http://127.0.0.1:1/';
    for (const [content, message] of [
      [{ webhooks: [{ url: 'no' }] }, /webhooks\[0\].*url/],
      [{ webhooks: { url } }, /webhooks: expected a list/],
      [{ webhooks: [{ url, retry: 1 }] }, /webhooks\[0\].*retry/],
      [{ 'web.hook.rule.message.publish.1': '{}' }, /web\.hook\.api\.url or --webhook-url/],
      [{ 'web.hook.api.url': url, 'web.hook.rule.message.publsh.1': '{}' }, /web\.hook.*message\.publsh/],
      [
        { 'web.hook.api.url': url, 'web.hook.rule.client.connack.3': '{"action": "on_client_connect"}' },
        /web\.hook\.rule\.client\.connack\.3: the action "on_client_connect" is not the one of client\.connack/
      ]
    ] as const)
      assert.match(await refused(['--config', configFile(content)]), message);
    assert.match(await refused(['--webhook-url', 'no']), /--webhook-url.*URL/);
  });
});
