import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;
const of = (topic: string) => `/api/x/retained/${encodeURIComponent(topic)}`;

describe('Retained messages over HTTP', () => {
  for (const revision of REVISIONS) {
    it(`lists retained messages by topic filter and prefix, page by page, in the revision "${revision}"`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const client = await broker.connect({ clientId: 'c' });
      for (let n = 1; n <= 5; n++) await client.publish(`a/${n}`, 'four', { qos: 1, retain: true });
      await broker.publish('b', 'x', { retain: true, properties: { messageExpiryInterval: 60 } });
      const listed: string[] = [];
      let cursor: string | undefined;
      do {
        const next: string = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
        const { body } = await server.call('GET', `/api/x/retained?topic=a/%23&_limit=2${next}`);
        listed.push(...body.data.map(({ topic }: { topic: string }) => topic));
        assert.deepEqual([body.code, body.meta.count, body.meta.limit], [0, -1, 2]);
        cursor = body.meta.cursor;
        if (listed.length === 2) await broker.retained.delete('a/2');
      } while (cursor !== undefined);
      assert.deepEqual(listed, ['a/1', 'a/2', 'a/3', 'a/4', 'a/5']);
      const { at, ...first } = (await server.call('GET', '/api/x/retained?prefix=a&_limit=1')).body.data[0];
      assert.deepEqual(first, { topic: 'a/1', qos: 1, payload_size: 4, from_clientid: 'c' });
      assert.ok(Math.abs(at - Date.now()) < 60_000);
      const [b] = (await server.call('GET', '/api/x/retained?topic=b')).body.data;
      assert.deepEqual([b.expires_at - b.at, 'from_clientid' in b], [60_000, false]);
      const second = (await server.call('GET', '/api/x/retained?prefix=a&_limit=2&_page=2')).body;
      assert.deepEqual(
        [second.data.map(({ topic }: { topic: string }) => topic), second.meta.page],
        [['a/4', 'a/5'], 2]
      );
      const both = await server.call('GET', '/api/x/retained?_page=1&cursor=a');
      assert.deepEqual([both.status, both.body.code], [400, 108]);
      assert.equal((await server.call('GET', '/api/x/retained?topic=a/%23/b')).body.code, 115);
    });

    it(`looks up retained messages with their payload as text or Base64, and their properties, in the revision "${revision}"`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const client = await broker.connect({ clientId: 'c', username: 'u' });
      await client.publish('text/é', 'grün', {
        qos: 1,
        retain: true,
        properties: {
          messageExpiryInterval: 60,
          contentType: 'text/plain',
          responseTopic: 'r',
          correlationData: Buffer.from([1, 2]),
          payloadFormatIndicator: 1,
          userProperties: [['k', 'v']]
        }
      });
      const { at, expires_at, ...found } = (await server.call('GET', of('text/é'))).body.data;
      assert.deepEqual(found, {
        topic: 'text/é',
        qos: 1,
        retain: true,
        from_clientid: 'c',
        from_username: 'u',
        payload_size: 5,
        payload: 'grün',
        encoding: 'plain',
        properties: {
          payload_format_indicator: 1,
          message_expiry_interval: 60,
          content_type: 'text/plain',
          response_topic: 'r',
          correlation_data: 'AQI=',
          user_properties: [{ name: 'k', value: 'v' }]
        }
      });
      assert.equal(expires_at - at, 60_000);
      await broker.publish('bytes', Buffer.from([0xff, 0]), { retain: true });
      const bytes = (await server.call('GET', of('bytes'))).body.data;
      assert.deepEqual([bytes.payload, bytes.encoding, bytes.properties], ['/wA=', 'base64', {}]);
      const text = (await server.call('GET', `${of('text/é')}?encoding=base64`)).body.data;
      assert.deepEqual([text.payload, text.encoding], [Buffer.from('grün').toString('base64'), 'base64']);
      const none = await server.call('GET', of('none'));
      assert.deepEqual([none.status, none.body.code], [404, 105]);
      assert.equal((await server.call('GET', of('a/+'))).body.code, 115);
      assert.equal((await server.call('GET', `${of('bytes')}?encoding=hex`)).body.code, 108);
    });

    it(`deletes retained messages one by one, or by a confirmed topic filter, in the revision "${revision}"`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      for (const topic of ['a/1', 'a/2', 'a/3', 'b']) await broker.publish(topic, 'x', { retain: true });
      assert.deepEqual((await server.call('DELETE', of('a/1'))).body, { code: 0 });
      assert.equal((await server.call('DELETE', of('a/1'))).status, 404);
      const unconfirmed = await server.call('DELETE', '/api/x/retained?topic=a/%23');
      assert.deepEqual([unconfirmed.status, unconfirmed.body.code], [400, 107]);
      const wrong = await server.call('DELETE', '/api/x/retained?topic=a/%23&confirm=a/%2B');
      assert.deepEqual([wrong.status, wrong.body.code], [400, 108]);
      const done = await server.call('DELETE', '/api/x/retained?topic=a/%23&confirm=a/%23');
      assert.deepEqual(done.body, { code: 0, data: { deleted: 2 } });
      assert.deepEqual([broker.retained.get('a/2'), broker.retained.get('b') !== undefined], [undefined, true]);
    });
  }
});

describe('The topic tree over HTTP', () => {
  for (const revision of REVISIONS)
    it(`lists the topic tree level by level in the revision "${revision}"`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const client = await broker.connect({ clientId: 'c' });
      for (const topic of ['a/b', 'a/b/c', 'a/d/e', '/x']) await broker.publish(topic, 'x', { retain: true });
      await client.subscribe('a/d/#');
      const top = (await server.call('GET', '/api/x/topics')).body;
      const names = top.data.map(({ level }: { level: string }) => level).filter((level: string) => level !== '$SYS');
      assert.deepEqual(names, ['', 'a']);
      const first = (await server.call('GET', '/api/x/topics?prefix=a&_limit=1')).body;
      assert.deepEqual(first.data, [
        {
          level: 'b',
          topic: 'a/b',
          prefix: 'a/b/',
          retained: true,
          subscribed: false,
          retained_below: 1,
          subscribed_below: 0
        }
      ]);
      assert.equal(first.meta.count, 2);
      const next = `/api/x/topics?prefix=a/&_limit=1&cursor=${encodeURIComponent(first.meta.cursor)}`;
      const second = (await server.call('GET', next)).body;
      assert.deepEqual(
        [second.data[0].topic, second.data[0].retained_below, second.data[0].subscribed_below],
        ['a/d', 1, 1]
      );
      assert.equal('cursor' in second.meta, false);
      const empty = top.data.find(({ level }: { level: string }) => level === '');
      const below = (await server.call('GET', `/api/x/topics?prefix=${encodeURIComponent(empty.prefix)}`)).body;
      assert.deepEqual(
        below.data.map(({ topic }: { topic: string }) => topic),
        ['/x']
      );
    });

  it('refuses the prefix of shared subscriptions, unless topics have it', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe('$share/group/a/#');
    const read = (prefix: string) => server.call('GET', `/api/x/topics?prefix=${encodeURIComponent(prefix)}`);
    for (const [prefix, instead] of [
      ['$share/group/a', '"a/"'],
      ['$queue/a/', '"a/"'],
      ['$share', 'the topic of a level'],
      ['$share/group/', 'the topic of a level']
    ]) {
      const { status, body } = await read(prefix);
      assert.equal(status, 400, prefix);
      assert.match(body.message, new RegExp(`names a share group, .* use ${instead}$`), prefix);
    }
    await broker.publish('$share/group/a', 'x', { retain: true }); // to which no client can subscribe
    const { body } = await read('$share/group');
    assert.deepEqual(
      body.data.map(({ topic }: { topic: string }) => topic),
      ['$share/group/a']
    );
    assert.equal((await read('$shared')).status, 200);
  });
});
