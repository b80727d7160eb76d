// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of rules
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { NO_HTTP, readyPorts, testShell } from './shell.ts';

const FLAGS = ['serve', '--memory', '--mqtt-port', '0', '--ws-port', 'off'];

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-rules-'));
});
after(() => rmSync(folder, { recursive: true }));

/** Flags with a config file. */
function withFile(content: object): string[] {
  const file = join(folder, 'embermq.json');
  writeFileSync(file, JSON.stringify(content));
  return [...FLAGS, '--config', file];
}

describe('Rules of serve', () => {
  it('sends outputs of rules to a web server, with a token from the environment', async () => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const requested = new Promise<{ request: IncomingMessage; body: string }>((resolve) =>
      server.on('request', async (request, response) => {
        let body = '';
        for await (const chunk of request) body += chunk;
        response.end();
        resolve({ request, body });
      })
    );
    const config = { url: `http://127.0.0.1:${port}/hook`, headers: { authorization: { fromEnv: 'TOKEN' } } };
    const content = {
      rules: {
        resources: [{ id: 'web', type: 'web_hook', config }],
        rules: [
          {
            id: 'hot',
            sql: 'SELECT payload.t as t, topic FROM "sensors/#" WHERE t > 80',
            actions: [{ name: 'data_to_webserver', params: { $resource: 'web', payload_tmpl: '{"hot": ${t}}' } }]
          }
        ]
      }
    };
    const shell = testShell();
    Object.assign(shell.env, NO_HTTP, { TOKEN: 'secret' });
    const code = runCommand(withFile(content), shell);
    const { mqtt } = await readyPorts(shell, code);
    const args = ['pub', '--url', `mqtt://127.0.0.1:${mqtt}`, '-t', 'sensors/1', '-q', '1', '-m', '{"t": 90}'];
    assert.equal(await runCommand(args, testShell()), 0);
    const { request, body } = await requested;
    assert.deepEqual(
      [request.method, request.url, request.headers.authorization, body],
      ['POST', '/hook', 'secret', '{"hot": 90}']
    );
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
    server.closeAllConnections();
    server.close();
  });

  it('reports the fault of a refused rule', async () => {
    for (const [content, message] of [
      [{ rules: [] }, /rules: expected an object/],
      [{ rules: { actions: [] } }, /rules\.actions/],
      [{ rules: { rule: [] } }, /rule/],
      [{ rules: { rules: [{ id: 'a', sql: 'SELECT * FROM t/a', actions: [] }] } }, /put topics in double quotes/],
      [{ 'rule_engine.events.client_conected': 'on' }, /client_conected/]
    ] as const) {
      const shell = testShell();
      Object.assign(shell.env, NO_HTTP);
      assert.notEqual(await runCommand(withFile(content), shell), 0);
      assert.match(shell.err(), message);
    }
  });
});
