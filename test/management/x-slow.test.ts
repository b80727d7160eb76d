import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { encode } from '../../lib/packets/encode.ts';
import { VirtualClock } from '../../lib/testing/index.ts';
import { serveManagement, startBroker } from '../support/management.ts';
import { connectPacket } from '../support/raw-client.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;

describe('Slow subscribers over REST', () => {
  it('measures slow subscribers on request in each revision', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const path = '/api/x/slow_subscriptions';
      assert.deepEqual((await server.call('GET', path)).body.data, { enabled: false, subscriptions: [] });
      const settings = { threshold_ms: 200, limit: 10, expiry_s: 300 };
      const started = (await server.call('PUT', path, { threshold_ms: 200 })).body;
      assert.deepEqual(started, { code: 0, data: { enabled: true, ...settings, subscriptions: [] } });
      assert.deepEqual((await server.call('PUT', path, { limit: 5 })).body.data.limit, 5);
      for (const body of [{ limit: 0 }, { threshold: 1 }, { expiry_s: 'x' }]) {
        const { status, body: answer } = await server.call('PUT', path, body);
        assert.deepEqual([status, answer.code], [400, 108]);
      }
      assert.deepEqual((await server.call('DELETE', path)).body, { code: 0 });
      assert.equal(broker.monitor.slowSubscriptions.settings, undefined);
    }
  });

  it('lists subscribers whose output is blocked, with their queued messages', async () => {
    await using broker = await startBroker();
    const stream = broker.stream();
    const connected = broker.nextEvent('client.connected');
    stream.write(encode(connectPacket({ clientId: 'slow' }), 5));
    await connected;
    const subscribed = broker.nextEvent('session.subscribed');
    stream.write(
      encode(
        {
          cmd: 'subscribe',
          messageId: 1,
          subscriptions: [{ topic: 'a', qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 }]
        } as never,
        5
      )
    );
    await subscribed;
    await broker.connect({ clientId: 'fast' });
    const queued = broker.nextEvent('message.queued');
    let isQueued = false;
    queued.then(() => {
      isQueued = true;
    });
    while (!isQueued) {
      await broker.publish('a', 'x'.repeat(100_000));
      await nextTurn();
    }
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const { data, meta } = (await server.call('GET', '/api/x/slow_consumers')).body;
      assert.deepEqual([data.length, meta.count, meta.cursor], [1, -1, undefined]);
      const [{ clientid, stalled_since, unsent_bytes, queued_messages, queued_bytes }] = data;
      assert.deepEqual([clientid, queued_messages], ['slow', 1]);
      assert.ok(Math.abs(stalled_since - Date.now()) < 60_000);
      assert.ok(unsent_bytes > 100_000 && queued_bytes > 100_000);
      assert.equal((await server.call('GET', '/api/x/slow_consumers?cursor=x')).body.code, 108);
    }
    stream.destroy();
    await once(stream, 'close');
  });
});

describe('The busiest clients over REST', () => {
  it('lists the clients with the most messages, with their records, under the conditions of client lists', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const [loud, quiet] = [await broker.connect({ clientId: 'loud' }), await broker.connect({ clientId: 'quiet' })];
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const ask = async (query: string) => {
        let isAnswered = false as boolean;
        const answer = server.call('GET', `/api/x/busiest_clients?${query}`).finally(() => {
          isAnswered = true;
        });
        for (let count = 0; !isAnswered; count++) {
          await loud.publish('a', 'x', { qos: 1 });
          if (count % 4 === 0) await quiet.publish('a', 'x', { qos: 1 });
          await nextTurn();
          await clock.advance(100);
        }
        return (await answer).body;
      };
      const { code, data } = await ask('limit=2');
      assert.equal(code, 0);
      assert.deepEqual(
        data.map(({ client }: { client: { clientid: string; connected: boolean } }) => [
          client.clientid,
          client.connected
        ]),
        [
          ['loud', true],
          ['quiet', true]
        ]
      );
      assert.ok(data[0].received_per_s > 2 * data[1].received_per_s && data[1].received_per_s > 0);
      assert.equal(data[0].sent_per_s, 0);
      if (revision !== 'hosted') continue;
      assert.deepEqual(
        (await ask('_like_clientid=qui')).data.map(({ client }: { client: { clientid: string } }) => client.clientid),
        ['quiet']
      );
      assert.deepEqual((await ask('by=sent')).data, []);
    }
  });

  it('refuses other directions and limits', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'hosted' });
    for (const query of ['by=both', 'limit=0', 'limit=1001', 'cursor=1'])
      assert.equal((await server.call('GET', `/api/x/busiest_clients?${query}`)).status, 400, query);
  });
});
