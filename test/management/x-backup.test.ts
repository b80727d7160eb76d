import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker, importStore, memoryStore } from 'embermq';
import { AUTHORIZATION, serveManagement, startBroker } from '../support/management.ts';

describe('A backup over HTTP', () => {
  for (const revision of ['earlier', 'later', 'hosted'] as const)
    it(`returns an export that can be imported, in the revision "${revision}"`, async () => {
      await using broker = await createBroker({ store: memoryStore() }).start();
      await broker.applications.create({ id: 'app', secret: 'a secret' });
      await using server = await serveManagement(broker, { revision });
      for (let n = 0; n < 1_000; n++) await broker.publish(`r/${n}`, 'x'.repeat(200), { retain: true });
      const answer = await server.call('POST', '/api/x/backup');
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'application/jsonl']);
      const copy = memoryStore();
      await importStore(copy, answer.text.split('\n'));
      await using restored = await createBroker({ store: copy, sysInterval: 0 }).start();
      assert.equal((await restored.retained.list({ prefix: 'r/', limit: 10_000 })).entries.length, 1_000);
    });

  it('refuses backups to viewers, and without a store', async () => {
    await using broker = await startBroker();
    await broker.users.create('eve', 'a password', 'viewer');
    await using server = await serveManagement(broker, { credentials: ['applications', 'users'] });
    const none = await server.call('POST', '/api/x/backup');
    assert.deepEqual([none.status, none.body.code], [400, 111]);
    const authorization = `Basic ${Buffer.from('eve:a password').toString('base64')}`;
    assert.equal((await server.call('POST', '/api/x/backup', undefined, { authorization })).status, 403);
  });

  it('refuses backups where the operations for applications are switched off, because they contain the hashes of secrets', async () => {
    await using broker = await createBroker({ store: memoryStore() }).start();
    await broker.applications.create({ id: 'app', secret: 'a secret' });
    await using server = await serveManagement(broker, { appOperations: false });
    const { status, body } = await server.call('POST', '/api/x/backup');
    assert.deepEqual([status, body.code], [403, 103]);
  });

  it('allows another backup after a client has aborted one', async () => {
    await using broker = await createBroker({ store: memoryStore() }).start();
    await broker.applications.create({ id: 'app', secret: 'a secret' });
    await using server = await serveManagement(broker);
    for (let n = 0; n < 3_000; n++) await broker.publish(`r/${n}`, 'x'.repeat(2_000), { retain: true });
    const stop = new AbortController();
    const first = await fetch(`http://127.0.0.1:${server.port}/api/x/backup`, {
      method: 'POST',
      headers: { authorization: AUTHORIZATION },
      signal: stop.signal
    });
    assert.equal(first.status, 200);
    assert.equal((await server.call('POST', '/api/x/backup')).body.code, 110);
    stop.abort();
    while ((await server.call('POST', '/api/x/backup')).status !== 200);
  });
});
