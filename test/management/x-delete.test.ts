import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

describe('Deletion by a path in the body', () => {
  for (const revision of ['earlier', 'later', 'hosted'] as const)
    it(`deletes as DELETE does, with the same faults, in the revision "${revision}"`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const remove = async (path: unknown) => {
        const { status, body } = await server.call('POST', '/api/x/delete', { path });
        return [status, body.code];
      };
      const long = 'n'.repeat(60_000);
      await broker.access.banned.create({ kind: 'username', who: long, by: 'ann' });
      assert.deepEqual(await remove(`/banned/${long}?as=username`), [200, 0]);
      assert.equal(broker.access.banned.size, 0);
      assert.deepEqual(await remove(`/banned/${long}?as=username`), [404, 105]);
      assert.deepEqual(await remove(`/banned/${long}?as=nothing`), [400, 108]);
      assert.deepEqual(await remove(`/banned/${long}?sa=username`), [400, 108]);
      assert.deepEqual(await remove(`/banned/${long}`), [400, 107]);
      assert.deepEqual(await remove('/nodes'), [404, 105]);
      assert.deepEqual(await remove('/x/delete'), [404, 105]);
      assert.deepEqual(await remove(5), [400, 108]);
    });

  it('refuses deletions by viewers, and of applications where these are switched off', async () => {
    await using broker = await startBroker();
    await broker.users.create('eve', 'a password', 'viewer');
    await using server = await serveManagement(broker, {
      credentials: ['applications', 'users'],
      appOperations: false
    });
    const eve = { authorization: `Basic ${btoa('eve:a password')}` };
    assert.equal((await server.call('POST', '/api/x/delete', { path: '/apps/app' }, eve)).status, 403);
    assert.equal((await server.call('POST', '/api/x/delete', { path: '/apps/app' })).status, 404);
    assert.equal(broker.applications.size, 1);
  });

  it('requires an application or an administrator, as the operations for applications do, where others need none', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { credentials: 'host' });
    assert.equal((await server.call('POST', '/api/x/delete', { path: '/apps/app' }, {})).status, 401);
    assert.equal(broker.applications.size, 1);
    assert.equal((await server.call('POST', '/api/x/delete', { path: '/apps/app' })).status, 200);
  });

  it('records deletions with their path in the audit log', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    await broker.access.usernames.create('a', 'b');
    await server.call('POST', '/api/x/delete', { path: '/auth_username/a' });
    const { entries } = await broker.monitor.audit.list();
    assert.deepEqual(
      entries.map(({ operation, parameters }) => [operation, parameters]),
      [['delete_by_path', { path: '/auth_username/a' }]]
    );
  });
});
