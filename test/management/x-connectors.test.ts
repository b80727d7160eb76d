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

  it('tests webhooks in each revision: a server that accepts, one that refuses, one that never answers, and none', async (context) => {
    const actions: string[] = [];
    const server = createServer((request, response) => {
      if (request.url === '/never') return;
      request.on('data', (chunk) => actions.push(JSON.parse(String(chunk)).action));
      request.on('end', () => response.writeHead(request.url?.startsWith('/refused') ? 500 : 204).end());
    }).listen(0, '127.0.0.1');
    context.after(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server, 'listening');
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await using broker = await startBroker();
    await broker.users.create('vera', 'a password', 'viewer');
    for (const [name, url] of Object.entries({
      good: `${origin}/`,
      refused: `${origin}/refused?token=hidden`,
      never: `${origin}/never`,
      none: 'http://127.0.0.1:1/'
    }))
      webhook(broker, { name, url, ...(name === 'never' && { timeout: 50 }), rules: [{ event: 'client.connected' }] });
    for (const revision of ['earlier', 'later', 'hosted'] as const) {
      await using api = await serveManagement(broker, { revision, credentials: ['applications', 'users'] });
      const test = async (name: string) => {
        const { status, body } = await api.call('POST', `/api/x/webhooks/${name}/test`);
        assert.deepEqual([status, body.code], [200, 0], name);
        const { time_ms, ...rest } = body.data;
        assert.ok(Number.isInteger(time_ms) && time_ms >= 0, `${name}: ${time_ms}`);
        return rest;
      };
      assert.deepEqual(await test('good'), { delivered: true, status: 204 });
      assert.deepEqual(await test('refused'), {
        delivered: false,
        status: 500,
        error: { code: 'HTTP_STATUS', message: `${origin}/refused has answered with the status 500` }
      });
      assert.deepEqual(await test('never'), {
        delivered: false,
        error: { code: 'HTTP_TIMEOUT', message: `${origin}/never has not answered within 50 ms` }
      });
      const { error, ...none } = await test('none');
      assert.deepEqual([none, error.code], [{ delivered: false }, 'HTTP_FAILED']);
      assert.match(error.message, /ECONNREFUSED/);
      assert.deepEqual(actions.splice(0), ['webhook_test', 'webhook_test']);
      const unknown = await api.call('POST', '/api/x/webhooks/unknown/test');
      assert.deepEqual([unknown.status, unknown.body.code], [404, 105]);
      const authorization = `Basic ${Buffer.from('vera:a password').toString('base64')}`;
      const viewer = await api.call('POST', '/api/x/webhooks/good/test', undefined, { authorization });
      assert.deepEqual([viewer.status, viewer.body.code], [403, 103]);
      assert.deepEqual(actions, [], 'nothing is sent for a viewer');
    }
  });

  it('refuses to test a webhook that calls a function of the app', async () => {
    await using broker = await startBroker();
    await using api = await serveManagement(broker);
    webhook(broker, { name: 'own', onEvent: () => assert.fail('the function is not called') });
    const { status, body } = await api.call('POST', '/api/x/webhooks/own/test');
    assert.deepEqual([status, body.code], [400, 108]);
    assert.match(body.message, /the webhook "own" calls a function of the app/);
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
