// Requests in the body of another one: for names that a URL cannot contain.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startConsole } from '../support/dashboard.ts';

const NAMES = ['.', '..', '   ', 'x'.repeat(65_000), 'é/'.repeat(20_000)];
const pathOf = (name: string) => `/api/x/sessions/${encodeURIComponent(name)}`;

describe('Requests of the console in the body of another one', () => {
  const OPTIONS = { allowAnonymous: true, memoryHighWatermark: 0, maxClientidLen: 65_535 };

  it('answers as the request itself would be answered, for every name of a client', async () => {
    await using server = await startConsole({}, OPTIONS);
    const ann = server.browser();
    await ann.login('ann');
    const send = (method: string, path: string, body?: unknown) =>
      ann.send('POST', '/requests', { method, path, body });
    for (const clientId of NAMES) {
      await server.broker.connect({ clientId });
      const { status, body } = await send('GET', pathOf(clientId));
      assert.deepEqual([status, body.data.client.clientid], [200, clientId]);
      const kicked = await send('POST', '/api/x/clients/kick', { clientids: [clientId] });
      assert.deepEqual([kicked.status, kicked.body.data.count], [200, 1]);
      assert.equal((await send('GET', pathOf(clientId))).status, 404);
    }
    await server.broker.connect({ clientId: '..' });
    assert.equal((await send('DELETE', '/api/clients/..')).status, 200);
    assert.equal(server.broker.sessions.has('..'), false);
    assert.deepEqual((await send('GET', '/streams/streams')).body, []);
    const { entries } = server.broker.monitor.audit.list({ operation: 'kickout_client' });
    assert.deepEqual(
      entries.map(({ caller, status }) => [caller.id, status]),
      [['ann', 200]]
    );
    assert.match(JSON.stringify(entries), /"\.\."/);
  });

  it('passes the query on, and the body', async () => {
    await using server = await startConsole({}, OPTIONS);
    const ann = server.browser();
    await ann.login('ann');
    const topic = 'a/'.repeat(100);
    const published = await ann.send('POST', '/requests', {
      method: 'POST',
      path: '/api/mqtt/publish',
      body: { topic, payload: '1', retain: true }
    });
    assert.equal(published.status, 200);
    const path = `/api/x/retained?topic=${encodeURIComponent(topic)}&_limit=1`;
    const { body } = await ann.send('POST', '/requests', { method: 'GET', path });
    assert.deepEqual(
      body.data.map((row: { topic: string }) => row.topic),
      [topic]
    );
  });

  it('lets a viewer read and change nothing, and hides payloads as usual', async () => {
    await using server = await startConsole({ viewerPayloads: false }, OPTIONS);
    const client = await server.broker.connect({ clientId: '.' });
    await client.publish('..', 'secret', { retain: true });
    const bob = server.browser();
    await bob.login('bob');
    const send = (method: string, path: string) => bob.send('POST', '/requests', { method, path });
    assert.equal((await send('GET', pathOf('.'))).status, 200);
    assert.equal((await send('DELETE', '/api/clients/.')).status, 403);
    assert.equal(server.broker.sessions.has('.'), true);
    const shown = await send('GET', '/api/x/retained/..');
    assert.equal(shown.status, 403);
    assert.doesNotMatch(shown.text, /secret|c2VjcmV0/);
    const ann = server.browser();
    await ann.login('ann');
    const { status, text } = await ann.send('POST', '/requests', { method: 'GET', path: '/api/x/retained/..' });
    assert.equal(status, 200);
    assert.match(text, /secret|c2VjcmV0/);
  });

  it('refuses a body that is larger than maxBodyBytes, as the request itself would be', async () => {
    await using server = await startConsole({ maxBodyBytes: 1_000 }, OPTIONS);
    const ann = server.browser();
    await ann.login('ann');
    for (const [length, status] of [
      [900, 200],
      [1_100, 413]
    ]) {
      const body = { topic: 't', payload: 'x'.repeat(length) };
      const path = '/api/mqtt/publish';
      assert.equal((await ann.send('POST', path, body)).status, status);
      assert.equal((await ann.send('POST', '/requests', { method: 'POST', path, body })).status, status);
    }
  });

  it('refuses requests without a login or from another origin, and those that are not for the interfaces', async () => {
    await using server = await startConsole({}, OPTIONS);
    const body = { method: 'GET', path: '/api/clients' };
    assert.equal((await server.browser().send('POST', '/requests', body)).status, 401);
    const ann = server.browser();
    await ann.login('ann');
    assert.equal((await ann.send('POST', '/requests', body, { origin: 'http://other.example' })).status, 403);
    assert.equal((await ann.send('POST', '/requests', body)).status, 200);
    for (const path of ['/login', '/requests', '/live', '/apis', 'api/clients', '/api/none'])
      assert.equal((await ann.send('POST', '/requests', { method: 'GET', path })).status, 404, path);
    for (const wrong of [
      {},
      { path: '/api/clients' },
      { method: 'PATCH', path: '/api/clients' },
      { method: 'GET', path: 7 }
    ])
      assert.equal((await ann.send('POST', '/requests', wrong)).status, 400);
    assert.equal((await ann.send('POST', '/requests', { ...body, more: 'x'.repeat(1_100_000) })).status, 413);
  });
});
