import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from 'embermq';
import { serveManagement, startBroker } from '../support/management.ts';

const LATER = ['later', 'hosted'] as const;

interface Row {
  readonly topic: string;
}
const topics = (rows: readonly Row[]) => rows.map(({ topic }) => topic);

/** Start a broker with a connected and a disconnected client; both have subscriptions. */
async function startWithSubscriptions(): Promise<Broker> {
  const broker = await startBroker();
  const here = await broker.connect({ clientId: 'a/1' });
  await here.subscribe([
    { topic: 'a/+', qos: 1 },
    { topic: '$share/g//s', qos: 2 },
    { topic: '$queue/q', qos: 0 }
  ]);
  const away = await broker.connect({ clientId: 'b', sessionExpiry: 60 });
  await away.subscribe('a/b', { qos: 1 });
  const gone = broker.nextEvent('client.disconnected');
  await away.disconnect();
  await gone;
  return broker;
}

describe('Subscriptions', () => {
  it('lists subscriptions with their share groups in the later revisions, in the cluster and on a node', async () => {
    await using broker = await startWithSubscriptions();
    const { node } = broker.settings;
    for (const revision of LATER) {
      await using server = await serveManagement(broker, { revision });
      for (const path of ['/api/subscriptions', `/api/nodes/${encodeURIComponent(node)}/subscriptions`]) {
        const { data, meta } = (await server.call('GET', path)).body;
        assert.deepEqual(data, [
          { node, clientid: 'a/1', topic: '$share/$queue/q', qos: 0 },
          { node, clientid: 'a/1', topic: '$share/g//s', qos: 2 },
          { node, clientid: 'a/1', topic: 'a/+', qos: 1 },
          { node, clientid: 'b', topic: 'a/b', qos: 1 }
        ]);
        assert.deepEqual(meta, { page: 1, limit: 10_000, count: 4, hasnext: false });
        const page = (await server.call('GET', `${path}?_page=1&_limit=3`)).body;
        assert.equal(page.data.length, 3);
        assert.deepEqual(page.meta, { page: 1, limit: 3, count: 4, hasnext: true });
        const last = (await server.call('GET', `${path}?_page=2&_limit=3`)).body;
        assert.deepEqual(topics(last.data), ['a/b']);
        assert.deepEqual(last.meta, { page: 2, limit: 3, count: 4, hasnext: false });
      }
    }
  });

  it('lists subscriptions without share prefixes and conditions in the earlier revision', async () => {
    await using broker = await startWithSubscriptions();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    const { node } = broker.settings;
    for (const path of ['/api/subscriptions?_=1', `/api/nodes/${encodeURIComponent(node)}/subscriptions`]) {
      const { data, meta } = (await server.call('GET', path)).body;
      assert.deepEqual(data, [
        { node, client_id: 'a/1', topic: 'q', qos: 0 },
        { node, client_id: 'a/1', topic: '/s', qos: 2 },
        { node, client_id: 'a/1', topic: 'a/+', qos: 1 },
        { node, client_id: 'b', topic: 'a/b', qos: 1 }
      ]);
      assert.deepEqual(meta, { page: 1, limit: 10_000, count: 4 });
    }
    const { body } = await server.call('GET', '/api/subscriptions/a%2F1');
    assert.deepEqual(topics(body.data), ['q', '/s', 'a/+']);
    const refused = await server.call('GET', '/api/subscriptions?qos=1');
    assert.deepEqual([refused.status, refused.body.code], [400, 108]);
  });

  it('lists subscriptions by conditions, all of which must hold', async () => {
    await using broker = await startWithSubscriptions();
    const cases: [query: string, found: string[]][] = [
      ['clientid=b', ['a/b']],
      ['clientid=nobody', []],
      ['qos=1', ['a/+', 'a/b']],
      ['qos=0', ['$share/$queue/q']],
      ['share=g', ['$share/g//s']],
      ['share=$queue', ['$share/$queue/q']],
      ['share=other', []],
      ['_match_topic=a/%23', ['a/+', 'a/b']],
      ['_match_topic=a/%2B', ['a/+', 'a/b']],
      ['_match_topic=a/b', ['a/b']],
      ['_match_topic=/s', ['$share/g//s']],
      ['clientid=a%2F1&qos=1', ['a/+']],
      ['clientid=b&qos=2', []]
    ];
    for (const revision of LATER) {
      await using server = await serveManagement(broker, { revision });
      for (const path of ['/api', `/api/nodes/${encodeURIComponent(broker.settings.node)}`]) {
        for (const [query, found] of cases) {
          const { data, meta } = (await server.call('GET', `${path}/subscriptions?${query}`)).body;
          assert.deepEqual(topics(data), found, query);
          assert.deepEqual(meta, { page: 1, limit: 10_000, count: -1, hasnext: false }, query);
        }
        const unknown = await server.call('GET', `${path}/subscriptions?colour=red`);
        assert.deepEqual([unknown.status, unknown.body.code], [400, 108]);
      }
    }
  });

  it('lists subscriptions to a topic that satisfy the other conditions too, in pages', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    for (const [clientId, qos] of [
      ['a', 0],
      ['b', 1],
      ['c', 1],
      ['d', 1]
    ] as const)
      await (await broker.connect({ clientId })).subscribe('t/1', { qos });
    const page = async (query: string) => {
      const { data, meta } = (await server.call('GET', `/api/subscriptions?topic=t%2F1&${query}`)).body;
      return [data.map(({ clientid }: { clientid: string }) => clientid), meta.hasnext];
    };
    assert.deepEqual(await page('qos=1&_limit=2'), [['b', 'c'], true]);
    assert.deepEqual(await page('qos=1&_limit=2&_page=2'), [['d'], false]);
    assert.deepEqual(await page('clientid=a'), [['a'], false]);
    assert.deepEqual(await page('clientid=a&qos=1'), [[], false]);
    assert.deepEqual(await page('_match_topic=u/%23'), [[], false]);
  });

  it('ignores other conditions and pages and omits meta if the topic is given, as the original products do', async () => {
    await using broker = await startWithSubscriptions();
    for (const revision of LATER) {
      await using server = await serveManagement(broker, { revision, errors: 'original' });
      for (const [query, found] of [
        ['topic=a/%2B', ['a/+']],
        ['topic=a%2Fb&qos=2&_page=7&_limit=1', ['a/b']],
        ['topic=%2Fs', ['$share/g//s']],
        ['topic=q', ['$share/$queue/q']],
        ['topic=none', []]
      ] as const) {
        const { status, body } = await server.call('GET', `/api/subscriptions?${query}`);
        assert.deepEqual([status, body.code, topics(body.data), 'meta' in body], [200, 0, found, false], query);
      }
    }
  });

  it('omits meta if there are many subscriptions with the topic', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { errors: 'original' });
    for (let n = 0; n < 450; n++) await (await broker.connect({ clientId: `c${n}` })).subscribe('t');
    const { body } = await server.call('GET', '/api/subscriptions?topic=t&_limit=10');
    assert.deepEqual([body.code, body.data.length, 'meta' in body], [0, 450, false]);
  });

  it('lists the subscriptions of a client without meta, by conditions and pages', async () => {
    await using broker = await startWithSubscriptions();
    for (const revision of LATER) {
      await using server = await serveManagement(broker, { revision });
      for (const path of ['/api', `/api/nodes/${encodeURIComponent(broker.settings.node)}`]) {
        for (const [query, found] of [
          ['a%2F1', ['$share/$queue/q', '$share/g//s', 'a/+']],
          ['b', ['a/b']],
          ['nobody', []],
          ['a%2F1?qos=2', ['$share/g//s']],
          ['a%2F1?share=$queue', ['$share/$queue/q']],
          ['a%2F1?_match_topic=a/%23', ['a/+']],
          ['a%2F1?_page=2&_limit=2', ['a/+']]
        ] as const) {
          const { status, body } = await server.call('GET', `${path}/subscriptions/${query}`);
          assert.deepEqual([status, body.code, topics(body.data), 'meta' in body], [200, 0, found, false], query);
        }
      }
    }
  });

  it('refuses wrong conditions and an unknown node', async () => {
    await using broker = await startBroker();
    for (const revision of LATER) {
      await using server = await serveManagement(broker, { revision });
      for (const [path, status, code, message] of [
        ['subscriptions?qos=3', 400, 108, /qos/],
        ['subscriptions?qos=high', 400, 108, /qos/],
        ['subscriptions?_match_topic=%23/a', 400, 115, /#\/a/],
        ['subscriptions?topic=%23/a', 400, 115, /#\/a/],
        ['subscriptions/c?_match_topic=%23/a', 400, 115, /#\/a/],
        ['subscriptions?_page=x', 400, 108, /_page/],
        ['nodes/other/subscriptions', 404, 102, /"other"/],
        ['nodes/other/subscriptions/c', 404, 102, /"other"/]
      ] as const) {
        const answer = await server.call('GET', `/api/${path}`);
        assert.deepEqual([answer.status, answer.body.code], [status, code], path);
        assert.match(answer.body.message, message);
      }
    }
  });
});

describe('Routes', () => {
  it('lists routes page by page and looks them up in each revision, without share prefixes', async () => {
    await using broker = await startWithSubscriptions();
    const { node } = broker.settings;
    for (const revision of ['earlier', ...LATER] as const) {
      await using server = await serveManagement(broker, { revision });
      const all = (await server.call('GET', '/api/routes')).body;
      assert.deepEqual(
        all.data,
        ['/s', 'a/+', 'a/b', 'q'].map((topic) => ({ topic, node }))
      );
      assert.deepEqual(all.meta, { page: 1, limit: 10_000, count: 4 });
      const last = (await server.call('GET', '/api/routes?_page=2&_limit=3')).body;
      assert.deepEqual([topics(last.data), last.meta], [['q'], { page: 2, limit: 3, count: 4 }]);
      for (const [topic, found] of [
        ['a%2F%2B', ['a/+']],
        ['%2Fs', ['/s']],
        ['a%2Fc', []]
      ] as const) {
        const { status, body } = await server.call('GET', `/api/routes/${topic}`);
        assert.deepEqual([status, body.code, topics(body.data), 'meta' in body], [200, 0, found, false]);
      }
      assert.equal((await server.call('GET', '/api/routes?_limit=x')).status, 400);
    }
  });

  it('neither repeats nor skips routes when others are added while they are read page by page', async () => {
    await using broker = await startWithSubscriptions();
    await using server = await serveManagement(broker, {});
    const first = topics((await server.call('GET', '/api/routes?_limit=2')).body.data);
    broker.subscribe('/a', () => {});
    const second = topics((await server.call('GET', '/api/routes?_limit=2&_page=2')).body.data);
    assert.deepEqual([...first, ...second], ['/s', 'a/+', 'a/b', 'q']);
    assert.deepEqual(topics((await server.call('GET', '/api/routes?_limit=2')).body.data), ['/a', '/s']);
  });
});
