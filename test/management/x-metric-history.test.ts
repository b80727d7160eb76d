import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker } from '../../lib/testing/index.ts';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;

describe('Counters over REST', () => {
  it('returns counters of the last hour by name and time', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    broker.monitor.metricHistory.start();
    const begin = clock.now();
    await broker.publish('a', 'x');
    await clock.advance(20_000);
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision, credentials: 'none' });
      const read = async (query: string) => (await server.call('GET', `/api/x/figures?${query}`)).body;
      assert.deepEqual(await read('names=messages.publish,%20connections.count'), {
        code: 0,
        data: {
          at: [begin + 10_000, begin + 20_000],
          series: { 'messages.publish': [0.1, 0], 'connections.count': [0, 0] }
        }
      });
      assert.deepEqual((await read(`from=${begin + 15_000}`)).data.at, [begin + 20_000]);
      const { status, body } = await server.call('GET', '/api/x/figures?names=messages.publishd');
      assert.deepEqual([status, body.code], [400, 108]);
      assert.match(body.message, /messages\.publish/);
    }
  });

  it('starts, lists, reads and ends counters of topic filters in each revision', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      assert.deepEqual((await server.call('POST', '/api/x/topic_figures', { topic: 'a/+' })).body, { code: 0 });
      await broker.publish('a/b', 'x', { qos: 1 });
      const { data } = (await server.call('GET', '/api/x/topic_figures/a%2F%2B')).body;
      const { since, ...counters } = data;
      assert.ok(Math.abs(since - Date.now()) < 60_000);
      assert.deepEqual([counters.topic, Object.keys(counters).length], ['a/+', 19]);
      assert.deepEqual(
        [counters['messages.in.count'], counters['messages.qos1.in.count'], counters['messages.dropped.count']],
        [1, 1, 1]
      );
      assert.equal(counters['messages.in.rate'], 0);
      const listed = (await server.call('GET', '/api/x/topic_figures')).body;
      await server.call('POST', '/api/x/topic_figures', { topic: 'A' });
      const first = (await server.call('GET', '/api/x/topic_figures?_limit=1')).body;
      const rest = await server.call('GET', `/api/x/topic_figures?cursor=${first.meta.cursor}`);
      assert.deepEqual([first.data[0].topic, rest.body.data[0].topic, 'cursor' in rest.body.meta], ['A', 'a/+', false]);
      await server.call('DELETE', '/api/x/topic_figures/A');
      assert.deepEqual([listed.data, listed.meta.count], [[data], 1]);
      for (const [topic, status, code] of [
        ['a/+', 400, 113],
        ['a/#/b', 400, 115]
      ] as const) {
        const answer = await server.call('POST', '/api/x/topic_figures', { topic });
        assert.deepEqual([answer.status, answer.body.code], [status, code]);
      }
      assert.deepEqual((await server.call('DELETE', '/api/x/topic_figures/a%2F%2B')).body, { code: 0 });
      for (const method of ['GET', 'DELETE']) {
        const answer = await server.call(method, '/api/x/topic_figures/a%2F%2B');
        assert.deepEqual([answer.status, answer.body.code], [404, 105]);
      }
      await server.call('POST', '/api/x/topic_figures', { topic: 'b' });
      assert.deepEqual((await server.call('DELETE', '/api/x/topic_figures')).body, { code: 0 });
      assert.deepEqual((await server.call('GET', '/api/x/topic_figures')).body.data, []);
    }
  });
});
