import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;

describe('Reasons over REST', () => {
  it('explains why a message did not arrive', async () => {
    await using broker = await startBroker();
    await broker.publish('nobody', 'x');
    const { knownSince = 0 } = await broker.monitor.why({ topic: 'nobody', clientId: 'panel' });
    const began = new Date(knownSince).toISOString();
    const detail = `it has not connected since the broker started at ${began}, and sessions that are not kept end with the broker`;
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const { status, body } = await server.call('GET', '/api/x/why?topic=nobody&clientid=panel');
      assert.deepEqual([status, body.code, body.data.is_complete], [200, 0, true]);
      const shown = body.data.causes.map(({ at, text, remedy, ...rest }: Record<string, unknown>) => rest);
      assert.deepEqual(
        shown.sort((a: { code: string }, b: { code: string }) => a.code.localeCompare(b.code)),
        [
          { code: 'no_subscriber', kind: 'recorded', count: 1, evidence: { topic: 'nobody', publisher: '', qos: 0 } },
          { code: 'offline_no_session', kind: 'derived', count: 1, evidence: { clientId: 'panel', detail } }
        ]
      );
      const before = await server.call('GET', '/api/x/why?topic=nobody&publisher=&at=1000');
      assert.deepEqual([before.status, before.body.data.is_complete], [200, false]);
    }
  });

  it('lists the history of a client from the latest event, in pages, also after its session has ended', async () => {
    await using broker = await startBroker();
    const transportInfo = { remoteAddress: '192.0.2.1' };
    const device = await broker.connect({ clientId: 'device', transportInfo });
    await device.subscribe('a/+', { qos: 1 });
    await device.unsubscribe('a/+');
    await device.publish('b', 'x', { qos: 1 });
    const gone = broker.nextEvent('client.disconnected');
    await device.disconnect();
    await gone;
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const list = async (query = '') => (await server.call('GET', `/api/x/clients/device/history${query}`)).body;
      const { data } = await list();
      assert.deepEqual(
        data.map(({ at, since, about, ...rest }: Record<string, unknown>) => rest),
        [
          { code: 'disconnected_normal', count: 1, clientid: 'device', qos: 0 },
          { code: 'no_subscribers', count: 1, from_clientid: 'device', topic: 'b', qos: 1 },
          { code: 'unsubscribed', count: 1, clientid: 'device', topic: 'a/+', qos: 0 },
          { code: 'subscribed', count: 1, clientid: 'device', topic: 'a/+', qos: 1 },
          { code: 'connected', count: 1, clientid: 'device', qos: 0, detail: 'from 192.0.2.1' }
        ]
      );
      assert.equal(data[0].about, 'The client sent DISCONNECT.');
      const codes = async (query: string) => (await list(query)).data.map(({ code }: { code: string }) => code);
      const first = await list('?_limit=2');
      assert.deepEqual(await codes(`?_limit=2&cursor=${first.meta.cursor}`), ['unsubscribed', 'subscribed']);
      assert.deepEqual(await codes('?code=subscribed'), ['subscribed']);
      assert.deepEqual((await list('?code=unknown')).code, 108);
    }
  });

  it('refuses a question without a topic, and a topic filter', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'later' });
    for (const [query, code] of [
      ['clientid=a', 107],
      ['topic=a/%23', 115],
      ['topic=a&at=yesterday', 108]
    ] as const) {
      const { status, body } = await server.call('GET', `/api/x/why?${query}`);
      assert.deepEqual([status, body.code], [400, code], query);
    }
  });
});
