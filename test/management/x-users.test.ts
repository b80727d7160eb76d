import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

function basic(id: string, secret: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
}

describe('Passwords of users over HTTP', () => {
  for (const revision of ['earlier', 'later', 'hosted'] as const)
    it(`lets only administrators set the password of a user without the old one, in the ${revision} revision`, async () => {
      await using broker = await startBroker();
      await broker.users.create('ann', 'secret of ann', 'administrator');
      await broker.users.create('a/b', 'lost', 'viewer');
      await using server = await serveManagement(broker, { revision, credentials: ['applications', 'users'] });
      const set = async (name: string, body: unknown, headers?: Record<string, string>) => {
        const path = `/api/x/users/${encodeURIComponent(name)}/password`;
        const answer = await server.call('PUT', path, body, headers);
        return [answer.status, answer.body.code];
      };
      const viewer = basic('a/b', 'lost');
      assert.deepEqual(await set('a/b', { password: 'mine' }, viewer), [403, 103], 'a viewer');
      assert.equal((await server.call('GET', '/api/nodes', undefined, viewer)).status, 200);
      assert.deepEqual(await set('a/b', { password: 'new' }, basic('ann', 'secret of ann')), [200, 0]);
      assert.equal((await server.call('GET', '/api/nodes', undefined, viewer)).status, 401, 'at once');
      assert.equal((await server.call('GET', '/api/nodes', undefined, basic('a/b', 'new'))).status, 200);
      assert.deepEqual(await set('a/b', { password: 'x', old_pwd: 'lost' }), [400, 108]);
      assert.deepEqual(await set('a/b', { password: '' }), [400, 104]);
      assert.deepEqual(await set('nobody', { password: 'x' }), [404, 105]);
      const entries = broker.monitor.audit.list().entries.filter(({ operation }) => operation === 'set_password');
      assert.equal(entries.length, 4);
      assert.equal(JSON.stringify(entries).includes('a/b'), true, 'the name is recorded');
      assert.equal(/mine|new|lost/.test(JSON.stringify(entries)), false, 'no password is');
    });

  it('lets the callers of a host app set passwords only with the scope administrator', async () => {
    await using broker = await startBroker();
    await broker.users.create('ann', 'lost');
    await using server = await serveManagement(broker, { credentials: () => true });
    const asked = server.call('PUT', '/api/x/users/ann/password', { password: 'new' }, basic('someone', 'known'));
    assert.equal((await asked).status, 401);
    assert.equal((await broker.users.verify('ann', 'lost'))?.name, 'ann');
  });
});
