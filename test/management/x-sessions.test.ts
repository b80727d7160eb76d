import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker, memoryStore } from 'embermq';
import { managementApi } from 'embermq/management';
import { AUTHORIZATION, serveManagement } from '../support/management.ts';

describe('Sessions with queued messages over HTTP', () => {
  for (const revision of ['earlier', 'later', 'hosted'] as const)
    it(`looks up sessions, and lists and clears their queues, in the revision "${revision}"`, async () => {
      await using broker = await createBroker({ store: memoryStore() }).start();
      await broker.applications.create({ id: 'app', secret: 'a secret' });
      await using server = await serveManagement(broker, { revision });
      const client = await broker.connect({ clientId: 'a/b', username: 'u', sessionExpiry: 3600 });
      await client.subscribe({ topic: 't/#', qos: 1, noLocal: true, retainHandling: 2 });
      const gone = broker.nextEvent('client.disconnected');
      await client.disconnect();
      await gone;
      const publisher = await broker.connect({ clientId: 'p', username: 'v' });
      for (let n = 0; n < 5; n++) await publisher.publish(`t/${n}`, `text ${n}`, { qos: 1 });
      await broker.publish('t/bytes', Buffer.from([0xff]), { qos: 1, properties: { messageExpiryInterval: 60 } });
      const path = `/api/x/sessions/${encodeURIComponent('a/b')}`;
      const { data } = (await server.call('GET', path)).body;
      assert.deepEqual(
        [
          data.client.clientid,
          data.client.username,
          data.client.connected,
          data.queued,
          data.inflight,
          data.awaiting_rel
        ],
        ['a/b', 'u', false, 6, [], []]
      );
      assert.deepEqual(data.subscriptions, [
        { topic: 't/#', qos: 1, no_local: true, retain_as_published: false, retain_handling: 2 }
      ]);
      const first = (await server.call('GET', `${path}/queue?_limit=4`)).body;
      const { at, ...message } = first.data[0];
      assert.deepEqual(message, {
        topic: 't/0',
        qos: 1,
        retain: false,
        from_clientid: 'p',
        from_username: 'v',
        payload_size: 6,
        payload: 'text 0',
        encoding: 'plain',
        properties: {}
      });
      assert.ok(Math.abs(at - Date.now()) < 60_000);
      assert.equal(first.meta.count, 6);
      const next = `${path}/queue?_limit=4&payload=false&cursor=${encodeURIComponent(first.meta.cursor)}`;
      const second = (await server.call('GET', next)).body;
      assert.deepEqual(
        second.data.map(({ topic }: { topic: string }) => topic),
        ['t/4', 't/bytes']
      );
      const [, bytes] = second.data;
      assert.deepEqual(
        ['payload' in bytes, bytes.payload_size, bytes.expires_at - bytes.at, 'cursor' in second.meta],
        [false, 1, 60_000, false]
      );
      const page = (await server.call('GET', `${path}/queue?_limit=5&_page=2`)).body;
      assert.deepEqual([page.data[0].payload, page.data[0].encoding], ['/w==', 'base64']);
      assert.equal((await server.call('GET', `${path}/queue?cursor=x`)).body.code, 108);
      assert.deepEqual((await server.call('DELETE', `${path}/queue`)).body, { code: 0, data: { dropped: 6 } });
      assert.deepEqual((await server.call('GET', `${path}/queue`)).body.data, []);
      for (const [method, unknown] of [
        ['GET', '/api/x/sessions/nobody'],
        ['GET', '/api/x/sessions/nobody/queue'],
        ['DELETE', '/api/x/sessions/nobody/queue']
      ] as const) {
        const answer = await server.call(method, unknown);
        assert.deepEqual([answer.status, answer.body.code], [404, 112]);
      }
    });

  it('writes a session with many subscriptions in parts', async () => {
    await using broker = await createBroker({ maxSubscriptions: 0 }).start();
    await broker.applications.create({ id: 'app', secret: 'a secret' });
    const client = await broker.connect({ clientId: 'many' });
    await client.subscribe(Array.from({ length: 1_000 }, (_, at) => ({ topic: `s/${at}`, qos: 0 as const })));
    const api = managementApi(broker, { prefix: '/api' });
    const response = await api.fetch(
      new Request('http://localhost/api/x/sessions/many', { headers: { authorization: AUTHORIZATION } })
    );
    const parts: string[] = [];
    const decoder = new TextDecoder();
    for await (const part of response?.body ?? []) parts.push(decoder.decode(part));
    const counts = parts.map((part) => part.split('"no_local"').length - 1);
    assert.ok(Math.max(...counts) <= 200, counts.join());
    const { data } = JSON.parse(parts.join(''));
    assert.deepEqual(
      [data.client.clientid, data.subscriptions.length, data.subscriptions[999].topic, data.inflight, data.queued],
      ['many', 1_000, 's/999', [], 0]
    );
    await client.disconnect();
  });
});
