import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

describe('The rights of a client over HTTP', () => {
  for (const revision of ['earlier', 'later', 'hosted'] as const)
    it(`explains rights by the rule that decides, in the revision "${revision}"`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      await broker.connect({ clientId: 'c', username: 'u' });
      await broker.access.acl.set({ username: 'u', topic: 'a/#', action: 'pubsub', access: 'deny' });
      const ask = (query: string) => server.call('GET', `/api/x/rights?${query}`);
      const step = {
        by: 'records',
        answer: 'deny',
        rule: { access: 'deny', action: 'pubsub', topic: 'a/#', username: 'u' }
      };
      assert.deepEqual((await ask('clientid=c&action=publish&topic=a/b')).body, {
        code: 0,
        data: {
          access: 'deny',
          topic: 'a/b',
          has_session: true,
          clientid: 'c',
          username: 'u',
          is_superuser: false,
          decided_by: step,
          steps: [step]
        }
      });
      const other = (await ask('username=v&ip_address=192.0.2.1&action=subscribe&topic=a/%23')).body.data;
      assert.deepEqual(
        [other.access, other.decided_by, other.has_session, other.clientid, other.ip_address],
        ['allow', { by: 'default', answer: 'allow' }, false, '', '192.0.2.1']
      );
      const remove = broker.hook('authorizePublish', () => false);
      assert.equal((await ask('clientid=c&action=publish&topic=z')).body.data.access, 'unknown');
      assert.equal((await ask('clientid=c&action=publish&topic=z&ask=true')).body.data.access, 'deny');
      remove();
      for (const [query, code] of [
        ['action=publish&topic=a', 107],
        ['clientid=c&topic=a', 107],
        ['clientid=c&action=read&topic=a', 108],
        ['clientid=c&action=publish&topic=a/%2B', 115],
        ['username=u&zone=nowhere&action=publish&topic=a', 108]
      ] as const) {
        const answer = await ask(query);
        assert.deepEqual([answer.status, answer.body.code], [400, code], query);
      }
    });
});
