import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

describe('Export and import of the configuration over HTTP', () => {
  for (const revision of ['earlier', 'later', 'hosted'] as const)
    it(`transfers a document from one broker to another, in the revision "${revision}"`, async () => {
      await using from = await startBroker();
      await using source = await serveManagement(from, { revision });
      for (let n = 0; n < 300; n++)
        await from.access.acl.set({ username: `u${n}`, topic: 'a', action: 'pub', access: 'deny' });
      await from.access.usernames.create('ann', 'a password');
      await from.configuration.set('max_inflight', 64);
      const exported = await source.call('GET', '/api/x/export');
      assert.deepEqual([exported.status, exported.headers.get('content-type')], [200, 'application/json']);
      assert.deepEqual([exported.body.version, exported.body.sections.acl.length], [1, 300]);
      assert.doesNotMatch(exported.text, /a password|a secret/);
      await using to = await startBroker();
      await using target = await serveManagement(to, { revision });
      const { body } = await target.call('POST', '/api/x/import?mode=replace', exported.text);
      assert.deepEqual([body.code, body.data.errors, body.data.sections.acl.added], [0, [], 300]);
      assert.deepEqual([to.access.acl.size, to.access.usernames.get('ann')?.name], [300, 'ann']);
      assert.equal(to.configuration.get('max_inflight').value, 64);
      const merged = (await target.call('POST', '/api/x/import', exported.text)).body.data.sections;
      assert.deepEqual(merged.acl, { added: 0, replaced: 0, removed: 0, skipped: 300 });
      for (const [document, code] of [
        [{ ...exported.body, version: 9 }, 108],
        [{ ...exported.body, sections: { acl: [{ access: 'maybe', topic: 'a' }] } }, 108],
        [{ format: 'embermq-configuration', version: 1 }, 107],
        ['{', 109]
      ] as const) {
        const answer = await target.call('POST', '/api/x/import', document);
        assert.deepEqual([answer.status, answer.body.code], [400, code], answer.text);
      }
      assert.equal((await target.call('POST', '/api/x/import?mode=both', exported.text)).body.code, 108);
    });

  it('leaves out applications where the operations for applications are switched off', async () => {
    await using broker = await startBroker();
    await broker.access.acl.set({ topic: 'a', action: 'pub', access: 'deny' });
    await using whole = await serveManagement(broker);
    await using server = await serveManagement(broker, { appOperations: false });
    const { body: exported } = await server.call('GET', '/api/x/export');
    assert.equal(exported.sections.acl.length, 1);
    assert.equal('applications' in exported.sections, false);
    assert.equal((await whole.call('GET', '/api/x/export')).body.sections.applications.length, 1);
    for (const applications of [[], [{ id: 'app' }]]) {
      const document = { ...exported, sections: { ...exported.sections, applications } };
      const refused = await server.call('POST', '/api/x/import?mode=replace', document);
      assert.deepEqual([refused.status, refused.body.code], [403, 103]);
      assert.match(refused.body.message, /"applications".*appOperations/);
    }
    assert.equal((await server.call('POST', '/api/x/import?mode=replace', exported)).body.code, 0);
    assert.equal(broker.applications.size, 1);
  });

  it('serializes imports, so that two that replace sections do not mix them', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const documentOf = (name: string) => {
      const acl = Array.from({ length: 3_000 }, (_, n) => {
        return { access: 'deny', action: 'publish', topic: `${name}/${n}` };
      });
      return { format: 'embermq-configuration', version: 1, sections: { acl } };
    };
    const replace = (name: string) => server.call('POST', '/api/x/import?mode=replace', documentOf(name));
    const [a, b] = await Promise.all([replace('a'), replace('b')]);
    assert.deepEqual([a.body.code, b.body.code], [0, 0]);
    const { acl } = (await server.call('GET', '/api/x/export')).body.sections;
    assert.equal(new Set(acl.map(({ topic }: { topic: string }) => topic.slice(0, 1))).size, 1);
    assert.equal(broker.access.acl.size, 3_000);
  });

  it('accepts a document that exceeds the body size limit of other operations', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const acl = Array.from({ length: 6_000 }, (_, n) => {
      return { access: 'deny', action: 'publish', topic: `${'level/'.repeat(30)}${n}` };
    });
    const document = JSON.stringify({ format: 'embermq-configuration', version: 1, sections: { acl } });
    assert.ok(document.length > 1_048_576);
    const { body } = await server.call('POST', '/api/x/import', document);
    assert.equal(body.data?.sections.acl.added, 6_000);
    const other = await server.call('POST', '/api/acl', document);
    assert.deepEqual([other.status, other.body.code], [413, 108]);
  });

  it('does not lock out the application or the user whose credentials the request has', async () => {
    await using broker = await startBroker();
    await broker.users.create('ann', 'a password', 'administrator');
    await using server = await serveManagement(broker, { credentials: ['applications', 'users'] });
    const post = async (sections: object, mode: string, user?: string) => {
      const headers = user && { authorization: `Basic ${Buffer.from(user).toString('base64')}` };
      const document = { format: 'embermq-configuration', version: 1, sections };
      const { status, body } = await server.call(
        'POST',
        `/api/x/import?mode=${mode}`,
        document,
        ...(headers ? [headers] : [])
      );
      return [status, body.code];
    };
    assert.deepEqual(await post({ applications: [] }, 'replace'), [400, 110]);
    assert.deepEqual(await post({ applications: [null] }, 'replace'), [400, 110]);
    assert.deepEqual(await post({ users: [] }, 'replace', 'ann:a password'), [400, 110]);
    const [application] = broker.applications.exported();
    const ann = [...broker.users.exported()].find(({ name }) => name === 'ann');
    const other = { hash: (ann as { hash: string }).hash };
    for (const change of [{ isEnabled: false }, { expiresAt: 1 }, other])
      assert.deepEqual(await post({ applications: [{ ...application, ...change }] }, 'replace'), [400, 110]);
    for (const change of [{ tags: 'viewer' }, { hash: application.hash }])
      assert.deepEqual(await post({ users: [{ ...ann, ...change }] }, 'replace', 'ann:a password'), [400, 110]);
    assert.deepEqual(await post({ applications: [application], users: [ann] }, 'replace'), [200, 0]);
    assert.deepEqual([broker.applications.size, broker.users.get('ann')?.name], [1, 'ann']);
    assert.deepEqual(await post({ applications: [] }, 'merge'), [200, 0]);
    assert.deepEqual(await post({ applications: [] }, 'replace', 'ann:a password'), [200, 0]);
    assert.equal(broker.applications.size, 0);
  });

  it('refuses export and import to viewers', async () => {
    await using broker = await startBroker();
    await broker.users.create('eve', 'a password', 'viewer');
    await broker.users.create('ann', 'a password', 'administrator');
    await using server = await serveManagement(broker, { credentials: 'users' });
    const as = (name: string) => ({ authorization: `Basic ${Buffer.from(`${name}:a password`).toString('base64')}` });
    assert.equal((await server.call('GET', '/api/x/retained', undefined, as('eve'))).status, 200);
    assert.equal((await server.call('GET', '/api/x/export', undefined, as('eve'))).status, 403);
    assert.equal((await server.call('HEAD', '/api/x/export', undefined, as('eve'))).status, 403);
    assert.equal((await server.call('POST', '/api/x/import', '{}', as('eve'))).status, 403);
    assert.equal((await server.call('GET', '/api/x/export', undefined, as('ann'))).status, 200);
  });
});
