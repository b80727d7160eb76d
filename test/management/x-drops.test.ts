import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;

describe('Drops over REST', () => {
  it('lists drops from the newest, by client, topic and reason, and deletes them', async () => {
    await using broker = await startBroker();
    const device = await broker.connect({ clientId: 'device' });
    await device.subscribe('own', { noLocal: true });
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const list = async (query = '') => {
        const { status, body } = await server.call('GET', `/api/x/drops${query}`);
        assert.deepEqual([status, body.code], [200, 0]);
        return body;
      };
      await device.publish('nobody/1', 'x', { qos: 1 });
      await device.publish('own', 'x', { qos: 1 });
      await broker.publish('nobody/2', 'x');
      const { data, meta } = await list();
      assert.deepEqual(meta, { page: 1, limit: 100, count: 3 });
      for (const { at } of data) assert.ok(Math.abs(at - Date.now()) < 60_000);
      assert.deepEqual(
        data.map(({ at: _, ...rest }: { at: number }) => rest),
        [
          { topic: 'nobody/2', qos: 0, from_clientid: '', reason: 'no_subscribers', count: 1 },
          { topic: 'own', qos: 1, clientid: 'device', from_clientid: 'device', reason: 'no_local', count: 1 },
          { topic: 'nobody/1', qos: 1, from_clientid: 'device', reason: 'no_subscribers', count: 1 }
        ]
      );
      const topics = async (query: string) => (await list(query)).data.map(({ topic }: { topic: string }) => topic);
      assert.deepEqual(await topics('?clientid=device'), ['own', 'nobody/1']);
      assert.deepEqual(await topics('?topic=nobody/%23'), ['nobody/2', 'nobody/1']);
      assert.deepEqual(await topics('?reason=no_local'), ['own']);
      assert.deepEqual(await topics('?_page=2&_limit=2'), ['nobody/1']);
      const first = await list('?_limit=2&reason=no_subscribers');
      assert.deepEqual([first.meta.count, first.data.length, first.meta.cursor], [-1, 2, undefined]);
      const one = await list('?_limit=1');
      assert.deepEqual(await topics(`?cursor=${one.meta.cursor}`), ['own', 'nobody/1']);
      assert.deepEqual((await server.call('DELETE', '/api/x/drops')).body, { code: 0 });
      assert.deepEqual(await topics(''), []);
    }
  });

  it('refuses an unknown reason, an invalid topic filter and an invalid cursor', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      for (const [query, code] of [
        ['reason=full', 108],
        ['topic=a/%23/b', 115],
        ['cursor=last', 108]
      ] as const) {
        const { status, body } = await server.call('GET', `/api/x/drops?${query}`);
        assert.deepEqual([status, body.code], [400, code], query);
      }
    }
  });
});
