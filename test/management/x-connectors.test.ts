import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { createBroker, memoryStore } from 'embermq';
import { webhook, webhooks } from 'embermq/webhook';
import { serveManagement } from '../support/management.ts';

async function startBroker(store = memoryStore()) {
  const broker = await createBroker({ store, passwordCost: 10, connectors: [webhooks()] }).start();
  if (broker.applications.get('app') === undefined) await broker.applications.create({ id: 'app', secret: 'a secret' });
  return broker;
}

describe('Webhooks over REST', () => {
  it('creates webhooks, which send events, survive a restart, and can be changed and deleted', async (context) => {
    const events: string[] = [];
    const server = createServer((request, response) => {
      request.on('data', (chunk) => events.push(`${request.headers.token} ${JSON.parse(String(chunk)).clientid}`));
      request.on('end', () => response.end());
    }).listen(0, '127.0.0.1');
    context.after(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const store = memoryStore();
    const rules = [{ event: 'client.connected' }];
    const settings = { name: 'a', url, rules, headers: '******' };
    const dropped = { dropped_overflow: 0, dropped_refused: 0, dropped_removed: 0, dropped_too_old: 0 };
    const counters = { added: 0, sent: 0, failed: 0, ...dropped };
    {
      await using broker = await startBroker(store);
      await using api = await serveManagement(broker);
      const made = await api.call('POST', '/api/x/webhooks', { name: 'a', url, rules, headers: { token: 't' } });
      assert.deepEqual(made.body.data, {
        name: 'a',
        started: true,
        status: 'working',
        waiting: 0,
        figures: counters,
        settings
      });
      await (await broker.connect({ clientId: 'c1' })).disconnect();
      await broker.outboxes.get('webhook:a')?.idle();
    }
    await using broker = await startBroker(store);
    await using api = await serveManagement(broker);
    await (await broker.connect({ clientId: 'c2' })).disconnect();
    await broker.outboxes.get('webhook:a')?.idle();
    assert.deepEqual(events, ['t c1', 't c2']);
    assert.equal((await api.call('POST', '/api/x/webhooks/a/stop')).status, 200);
    await (await broker.connect({ clientId: 'c3' })).disconnect();
    const body = { url, rules, headers: '******' };
    assert.equal((await api.call('PUT', '/api/x/webhooks/a', body)).body.data.started, false);
    assert.equal((await api.call('POST', '/api/x/webhooks/a/start')).status, 200);
    await (await broker.connect({ clientId: 'c4' })).disconnect();
    await broker.outboxes.get('webhook:a')?.idle();
    assert.deepEqual(events, ['t c1', 't c2', 't c4']);
    const plugins = (await api.call('GET', '/api/nodes/embermq@127.0.0.1/plugins')).body.data;
    assert.equal(plugins.find(({ name }: { name: string }) => name === 'webhook:a').active, true);
    assert.equal((await api.call('DELETE', '/api/x/webhooks/a')).status, 200);
    assert.deepEqual((await api.call('GET', '/api/x/webhooks')).body.data, []);
  });

  it('names the wrong field of a refused webhook', async () => {
    await using broker = await startBroker();
    await using api = await serveManagement(broker);
    webhook(broker, { name: 'own', url: 'http://127.0.0.1:1/' });
    const url = 'http://127.0.0.1:1/';
    const cases: [method: string, path: string, body: unknown, status: number, message: RegExp][] = [
      ['POST', '', {}, 400, /name/],
      ['POST', '', { name: '.', url }, 400, /name/],
      ['POST', '', { name: '..', url }, 400, /name/],
      ['POST', '', { name: 'a' }, 400, /url/],
      ['POST', '', { name: 'a', url: 'ftp://x' }, 400, /url/],
      ['POST', '', { name: 'a', url, rules: [{ event: 'x' }] }, 400, /rules/],
      ['POST', '', { name: 'a', url, unknown: 1 }, 400, /unknown/],
      ['POST', '', { name: 'a', url, rules: [] }, 400, /at least one rule/],
      ['POST', '', { name: 'a', url, secret: '******' }, 400, /there is none/],
      ['POST', '', { name: 'own', url }, 400, /there is a webhook "own" already/],
      ['PUT', '/own', { url }, 400, /belongs to the app/],
      ['DELETE', '/own', undefined, 400, /belongs to the app/],
      ['GET', '/b', undefined, 404, /there is no webhook "b"/],
      ['PUT', '/b', { url }, 404, /there is no webhook "b"/],
      ['POST', '/b/start', undefined, 404, /there is no webhook "b"/]
    ];
    for (const [method, path, body, status, message] of cases) {
      const answer = await api.call(method, `/api/x/webhooks${path}`, body);
      assert.equal(answer.status, status, `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`);
      assert.match(answer.body.message, message);
    }
    assert.equal(broker.connectors.list().length, 1);
  });
});
