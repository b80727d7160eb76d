import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { AUTHORIZATION, serveManagement } from '../support/management.ts';

const SECRET = Buffer.from(AUTHORIZATION.slice(6), 'base64').toString().slice(4);

async function start(options: Parameters<typeof createBroker>[0] = {}) {
  const broker = await createBroker({ sysInterval: 0, sysHeartbeat: 0, passwordCost: 10, ...options }).start();
  await broker.applications.create({ id: 'app', secret: SECRET });
  return broker;
}

describe('Requests that the broker refuses', () => {
  it('answers a refusal of the broker with a fitting status and the reason', async () => {
    await using broker = await start({ maxSubscriptions: 1, maxDelayedMessages: 1 });
    await using server = await serveManagement(broker);
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe('a');
    const post = async (path: string, body: unknown) => {
      const { status, body: answer } = await server.call('POST', `/api${path}`, body);
      return [status, answer.code, answer.message ?? answer.data];
    };
    const [status, code, message] = await post('/mqtt/subscribe', { clientid: 'c', topic: 'b' });
    assert.deepEqual([status, code], [400, 108]);
    assert.match(message, /cannot subscribe to "b"/);
    const batch = await post('/mqtt/subscribe_batch', [
      { clientid: 'c', topic: 'b' },
      { clientid: 'c', topic: 'a' }
    ]);
    assert.deepEqual(
      batch[2].map((entry: { code: number }) => entry.code),
      [108, 0]
    );
    const delayed = { topic: '$delayed/100/x', payload: 'x' };
    assert.equal((await post('/mqtt/publish', delayed))[0], 200);
    assert.deepEqual((await post('/mqtt/publish', delayed)).slice(0, 2), [429, 102]);
    await broker.features.stop('delayed');
    const off = await post('/mqtt/publish', delayed);
    assert.deepEqual(off.slice(0, 2), [400, 111]);
    assert.match(off[2], /delayed messages are disabled/);
  });

  it('answers 400 with the reason for a message that does not match a schema', async () => {
    const validate = () => assert.fail('broken');
    const schemas = { a: { type: 'object', required: ['celsius'] }, b: { '~standard': { version: 1, validate } } };
    await using broker = await start({ schemas });
    broker.on('error', () => {});
    await using server = await serveManagement(broker);
    const { status, body } = await server.call('POST', '/api/mqtt/publish', { topic: 'a', payload: '{}' });
    assert.deepEqual([status, body.code], [400, 108]);
    assert.match(body.message, /does not match a schema of topic "a": must have required properties celsius/);
    const failed = await server.call('POST', '/api/mqtt/publish', { topic: 'b', payload: '1' });
    assert.deepEqual([failed.status, failed.body.code], [400, 108]);
    assert.match(failed.body.message, /"b" is refused: filter "b": the schema has failed/);
    const good = { topic: 'a', payload: '{"celsius":1}' };
    assert.equal((await server.call('POST', '/api/mqtt/publish', good)).status, 200);
  });

  it('answers a refusal for each entry of a batch, whatever the entries are', async () => {
    await using broker = await start();
    await using server = await serveManagement(broker);
    const nested = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
    for (const path of ['/mqtt/publish_batch', '/mqtt/subscribe_batch', '/acl', '/auth_username', '/auth_clientid']) {
      const { status, body } = await server.call('POST', `/api${path}`, nested);
      assert.equal(typeof body.code, 'number', path);
      assert.ok(status < 500, path);
    }
    const deep = (depth: number): unknown => (depth === 0 ? { topic: 't' } : new Array(20).fill(deep(depth - 1)));
    await server.call('POST', '/api/mqtt/publish_batch', deep(3));
    const audit = await server.call('GET', '/api/x/audit');
    assert.ok(audit.text.length < 10_000, 'the audit log has only the first entries of the list');
  });

  it('refuses to disconnect all clients without an explicit request', async () => {
    await using broker = await start();
    await using server = await serveManagement(broker);
    await broker.connect({ clientId: 'c' });
    for (const body of [{}, { _like_clientid: '' }, { _like_clientid: '', _like_username: '' }]) {
      const { status, body: answer } = await server.call('POST', '/api/x/clients/kick', body);
      assert.deepEqual([status, answer.code], [400, 107]);
    }
    assert.equal(broker.sessions.count, 1);
  });

  it('refuses a ban with invalid times', async () => {
    await using broker = await start();
    await using server = await serveManagement(broker);
    for (const until of [1e300, -1e300, 9_007_199_254_740_991]) {
      const { status, body } = await server.call('POST', '/api/banned', { who: 'x', as: 'clientid', until });
      assert.deepEqual([status, body.code], [400, 108]);
    }
    assert.equal(broker.access.banned.size, 0);
  });
});
