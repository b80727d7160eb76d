import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

describe('Kicking many clients over HTTP', () => {
  for (const revision of ['earlier', 'later', 'hosted'] as const) {
    it(`ends the sessions of a list, with a result for each, in the revision "${revision}"`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      for (const clientId of ['a', 'b', 'c']) await broker.connect({ clientId, sessionExpiry: 60 });
      const { body } = await server.call('POST', '/api/x/clients/kick', { clientids: ['a', 'nobody', 'c'] });
      assert.deepEqual(body, {
        code: 0,
        data: {
          count: 2,
          results: [
            { clientid: 'a', code: 0 },
            { clientid: 'nobody', code: 112 },
            { clientid: 'c', code: 0 }
          ]
        }
      });
      assert.deepEqual(
        [...broker.sessions].map(({ clientId }) => clientId),
        ['b']
      );
    });

    it(`ends the sessions that satisfy conditions, or all, in the revision "${revision}"`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      for (let n = 0; n < 250; n++) await broker.connect({ clientId: `c${n}`, username: n < 230 ? 'u' : 'v' });
      const kick = async (body: object) => (await server.call('POST', '/api/x/clients/kick', body)).body;
      assert.deepEqual(await kick({ username: 'u', _like_clientid: 'c2', conn_state: 'connected' }), {
        code: 0,
        data: { count: 41 }
      });
      assert.equal(broker.sessions.count, 209);
      assert.deepEqual((await kick({ conn_state: 'idle' })).data, { count: 0 });
      assert.deepEqual((await kick({ all: true })).data, { count: 209 });
      assert.equal(broker.sessions.count, 0);
    });

    it(`refuses to kick without a condition, with unknown ones, or with a list in addition, in the revision "${revision}"`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      await broker.connect({ clientId: 'c' });
      for (const [body, code] of [
        [{}, 107],
        [{ usrname: 'u' }, 108],
        [{ all: false }, 108],
        [{ clientids: ['c'], all: true }, 108],
        [{ clientids: 'c' }, 108]
      ] as const) {
        const answer = await server.call('POST', '/api/x/clients/kick', body);
        assert.deepEqual([answer.status, answer.body.code], [400, code], JSON.stringify(body));
      }
      assert.equal(broker.sessions.count, 1);
    });
  }
});
