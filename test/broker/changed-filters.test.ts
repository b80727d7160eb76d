import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acl, type Hooks, memoryStore } from '../../lib/index.ts';
import type { PublishPacket } from '../../lib/packets/types.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, rest, startBroker, subscribe, turns } from '../support/wire.ts';

/** Replaces filters of the client `c` by ones below `c/`. */
const PREFIXED: Hooks = {
  authorizeSubscribe: ({ client, filter }) => {
    if (filter.startsWith('$share/g/')) return { filter: `$share/g/${client.clientId}/${filter.slice(9)}` };
    return { filter: `${client.clientId}/${filter}` };
  }
};

const PERSISTENT = { clientId: 'c', properties: { sessionExpiryInterval: 3600 } };

async function topics(client: RawClient): Promise<string[]> {
  return (await rest(client))
    .filter((packet): packet is PublishPacket => packet.cmd === 'publish')
    .map(({ topic }) => topic);
}

async function unsubscribed(client: RawClient, ...unsubscriptions: string[]): Promise<number[]> {
  client.send({ cmd: 'unsubscribe', messageId: 9, unsubscriptions });
  return [...(await client.next('unsuback')).granted];
}

describe('The record of a subscription whose filter was changed', () => {
  it('names the filter that the client requested', async () => {
    const rewrite = [{ filter: 'old/#', pattern: '^old/(.+)$', target: 'new/$1' }];
    await using broker = await startBroker({ rewrite });
    const client = await rawClient(broker, { clientId: 'c' });
    assert.deepEqual(await granted(client, 1, { topic: 'old/1', qos: 1 }), [1]);
    assert.deepEqual(await granted(client, 2, { topic: 'x', qos: 0 }), [0]);
    const { entries } = broker.monitor.reasons.list({ clientId: 'c', code: 'subscribed' });
    assert.deepEqual(
      entries.map(({ topic, detail }) => [topic, detail]),
      [
        ['x', undefined],
        ['new/1', 'requested as "old/1"']
      ]
    );
    const { causes } = await broker.monitor.why({ topic: 'old/1', clientId: 'c', at: 1 });
    const later = causes.find(({ code }) => code === 'subscribed_later');
    assert.match(later?.text ?? '', /"new\/1".*requested as "old\/1"/);
  });
});

describe('An authorizeSubscribe hook that returns a filter', () => {
  it('subscribes the client to that filter; the client unsubscribes with the one that it sent', async () => {
    await using broker = await startBroker({ hooks: PREFIXED });
    const events: unknown[] = [];
    broker.on('client.subscribe', ({ filter }) => events.push(['subscribe', filter]));
    broker.on('session.subscribed', ({ filter, requestedFilters }) => events.push(['made', filter, requestedFilters]));
    broker.on('client.suback', ({ results }) =>
      events.push(results.map(({ filter, grantedFilter, reasonCode }) => [filter, grantedFilter, reasonCode]))
    );
    broker.on('client.unsubscribe', ({ filter }) => events.push(['unsubscribe', filter]));
    broker.on('session.unsubscribed', ({ filter, requestedFilters }) =>
      events.push(['removed', filter, requestedFilters])
    );
    const client = await rawClient(broker, { clientId: 'c' });
    assert.deepEqual(await granted(client, 1, { topic: 'a/+', qos: 1 }), [1]);
    assert.deepEqual(
      [...broker.sessions.get('c').subscriptions()].map(({ filter }) => filter),
      ['c/a/+']
    );
    for (const topic of ['a/1', 'c/a/1', 'd/a/1']) await broker.publish(topic, 'x');
    assert.deepEqual(await topics(client), ['c/a/1']);
    assert.deepEqual(await unsubscribed(client, 'c/a/+', 'a/+', 'a/+'), [0x11, 0, 0x11]);
    await broker.publish('c/a/1', 'x');
    assert.deepEqual(await topics(client), []);
    assert.deepEqual(events, [
      ['subscribe', 'a/+'],
      ['made', 'c/a/+', ['a/+']],
      [['a/+', 'c/a/+', 1]],
      ['unsubscribe', 'c/a/+'],
      ['unsubscribe', 'a/+'],
      ['removed', 'c/a/+', ['a/+']],
      ['unsubscribe', 'a/+']
    ]);
    assert.equal(broker.metrics.gauge('subscriptions'), 0);
  });

  it('lowers the QoS with the filter, and works for shared subscriptions and retained messages', async () => {
    await using broker = await startBroker({
      hooks: { authorizeSubscribe: ({ filter }) => ({ filter: filter.replace(/\ba\b/, 'b'), qos: 1 }) }
    });
    await broker.publish('b', 'retained', { retain: true });
    const client = await rawClient(broker, { clientId: 'c' });
    client.send(subscribe(1, { topic: '$share/g/a/x', qos: 0 }), subscribe(2, { topic: 'a', qos: 2 }));
    assert.deepEqual([...(await client.next('suback')).granted], [0]);
    assert.deepEqual([...(await client.next('suback')).granted], [1]);
    assert.deepEqual(await topics(client), ['b']);
    await broker.publish('b/x', 'x');
    assert.deepEqual(await topics(client), ['b/x']);
    assert.deepEqual(await unsubscribed(client, '$share/g/a/x', 'a'), [0, 0]);
  });

  it('checks the filter like one of the client: an invalid one is refused and reported', async () => {
    const wrong = ['a/#/b', '', 'a\u0000', '$share/g', 'x/'.repeat(300)];
    for (const filter of wrong) {
      await using broker = await startBroker({ hooks: { authorizeSubscribe: () => ({ filter }) } });
      const errors: unknown[] = [];
      broker.on('error', ({ error }) => errors.push((error as { code?: string }).code));
      const client = await rawClient(broker);
      const [code] = await granted(client, 1, 'a');
      assert.ok(code >= 0x80, filter);
      assert.deepEqual(errors, ['HOOK_ANSWER_INVALID'], filter);
    }
    for (const answer of [{ filter: 5 }, { filter: 'a', qos: 3 }, { allow: false, filter: 'a' }, { qos: 1 }]) {
      await using broker = await startBroker({ hooks: { authorizeSubscribe: () => answer as never } });
      const errors: unknown[] = [];
      broker.on('error', ({ error }) => errors.push((error as { code?: string }).code));
      assert.deepEqual(await granted(await rawClient(broker), 1, 'a'), [0x80], JSON.stringify(answer));
      assert.deepEqual(errors, ['HOOK_ANSWER_INVALID']);
    }
    await using broker = await startBroker({
      hooks: { authorizeSubscribe: () => ({ filter: '$share/g/a' }) }
    });
    broker.on('error', () => undefined);
    assert.deepEqual(
      await granted(await rawClient(broker), 1, { topic: 'a', noLocal: true }),
      [0x8f],
      '[MQTT-3.8.3-4]'
    );
  });

  it('refuses the new filter if rules, other hooks or the built-in $SYS rules deny it', async () => {
    const denied = [
      { auth: [acl([{ access: 'deny', topic: 'secret/#' }])] },
      { other: ({ filter }: { filter: string }) => (filter.startsWith('secret') ? false : undefined) },
      { other: async ({ filter }: { filter: string }) => (filter.startsWith('secret') ? false : undefined) },
      {
        auth: [
          { name: 'asked', authorize: async ({ topic }: { topic: string }) => !topic.startsWith('secret') && undefined }
        ]
      }
    ];
    for (const { auth = [], other } of denied as { auth?: never[]; other?: never }[]) {
      await using kit = await createTestBroker({ auth, allowAnonymous: true });
      kit.broker.hook('authorizeSubscribe', ({ filter }) => ({ filter: `secret/${filter}` }));
      if (other !== undefined) kit.broker.hook('authorizeSubscribe', other);
      const client = await rawClient(kit.broker);
      assert.deepEqual(await granted(client, 1, 'a'), [0x87]);
      assert.equal(kit.broker.metrics.gauge('subscriptions'), 0);
    }
    await using broker = await startBroker({ hooks: { authorizeSubscribe: () => ({ filter: '$SYS/#' }) } });
    const remote = await rawClient(broker, { meta: { transport: 'tcp', remoteAddress: '192.0.2.1' } });
    assert.deepEqual(await granted(remote, 1, 'a'), [0x87]);
  });

  it('refuses a second change by another hook', async () => {
    await using broker = await startBroker({
      hooks: { authorizeSubscribe: ({ filter }) => ({ filter: `x/${filter}` }) }
    });
    broker.hook('authorizeSubscribe', ({ filter }) => ({ filter: `y/${filter}` }));
    const errors: string[] = [];
    broker.on('error', ({ error }) => errors.push(error.message));
    assert.deepEqual(await granted(await rawClient(broker), 1, 'a'), [0x80]);
    assert.deepEqual(errors, ['two authorizeSubscribe hooks have changed a filter: to "x/a", and then to "y/x/a"']);
  });

  it('accepts a promise, and asks no hook again about a filter that is returned unchanged', async () => {
    let asked = 0;
    await using broker = await startBroker({
      hooks: {
        authorizeSubscribe: async ({ filter }) => {
          asked++;
          return { filter: filter.startsWith('c/') ? filter : `c/${filter}` };
        }
      }
    });
    const client = await rawClient(broker);
    assert.deepEqual(await granted(client, 1, 'c/a'), [0]);
    assert.deepEqual(await granted(client, 2, 'a'), [0]);
    assert.equal(asked, 2);
    assert.deepEqual(await unsubscribed(client, 'a'), [0]);
    await broker.publish('c/a', 'x');
    assert.deepEqual(await topics(client), ['c/a'], 'the client has subscribed to it by its name as well');
    assert.deepEqual(await unsubscribed(client, 'c/a'), [0]);
  });

  it('replaces the subscription that the client had for the filter', async () => {
    let prefix = '';
    await using broker = await startBroker({
      hooks: { authorizeSubscribe: ({ filter }) => ({ filter: `${prefix}${filter}` }) }
    });
    const client = await rawClient(broker, { clientId: 'c' });
    const filters = () => [...broker.sessions.get('c').subscriptions()].map(({ filter }) => filter);
    for (const [next, expected] of [
      ['', 'a'],
      ['x/', 'x/a'],
      ['y/', 'y/a'],
      ['y/', 'y/a'],
      ['', 'a']
    ]) {
      prefix = next;
      await granted(client, 1, 'a');
      assert.deepEqual(filters(), [expected]);
    }
    assert.deepEqual(await unsubscribed(client, 'a'), [0]);
    assert.deepEqual(filters(), []);
  });

  it('serves several filters with one subscription, up to a limit, until the last of them is unsubscribed', async () => {
    await using broker = await startBroker({ hooks: { authorizeSubscribe: () => ({ filter: 'all' }) } });
    const client = await rawClient(broker, { clientId: 'c' });
    for (let at = 0; at < 100; at++) assert.deepEqual(await granted(client, 1, `f${at}`), [0]);
    assert.deepEqual(await granted(client, 1, 'more'), [0x97]);
    assert.equal(broker.sessions.get('c').counters().subscriptions, 1);
    const all = Array.from({ length: 100 }, (_, at) => `f${at}`);
    assert.ok((await unsubscribed(client, ...all.slice(1))).every((code) => code === 0));
    await broker.publish('all', 'x');
    assert.deepEqual(await topics(client), ['all']);
    assert.deepEqual(await unsubscribed(client, 'f0'), [0]);
    assert.equal(broker.sessions.get('c').counters().subscriptions, 0);
  });

  it('adds no subscription to a session that ends when the previous one is removed', async () => {
    let filter = 'b';
    await using broker = await startBroker({ hooks: { authorizeSubscribe: () => ({ filter }) } });
    const client = await rawClient(broker, PERSISTENT);
    await granted(client, 1, 'a');
    broker.on('session.unsubscribed', () => broker.sessions.get('c').kick());
    filter = 'd';
    client.send(subscribe(2, 'a'));
    await client.closed();
    await turns();
    assert.equal(broker.sessions.has('c'), false);
    assert.equal(broker.metrics.gauge('subscriptions'), 0);
  });

  it('limits the QoS of each SUBSCRIBE, also with cache: route', async () => {
    await using broker = await startBroker();
    broker.hook('authorizeSubscribe', ({ filter }) => ({ allow: true, filter, qos: 0 }), { cache: 'route' });
    const client = await rawClient(broker);
    for (const id of [1, 2]) assert.deepEqual(await granted(client, id, { topic: 'a', qos: 2 }), [0]);
  });

  it('changes the filter after topic rewriting, and below the mount point', async () => {
    await using broker = await startBroker({
      rewrite: ['old/# ^old/(.+)$ new/$1'],
      mountpoint: 'm/',
      hooks: PREFIXED
    });
    const client = await rawClient(broker, { clientId: 'c' });
    assert.deepEqual(await granted(client, 1, 'old/1'), [0]);
    await broker.publish('m/c/new/1', 'x');
    assert.deepEqual(await topics(client), ['c/new/1']);
    assert.deepEqual(await unsubscribed(client, 'old/1'), [0]);
  });

  it('lets the app unsubscribe with either filter', async () => {
    await using broker = await startBroker({ hooks: PREFIXED });
    const client = await rawClient(broker, { clientId: 'c' });
    const session = broker.sessions.get('c');
    for (const filter of ['c/a', 'a']) {
      await granted(client, 1, 'a');
      assert.equal(session.unsubscribe(filter), true);
      assert.deepEqual(await unsubscribed(client, 'a'), [0x11]);
    }
  });

  it('keeps the requested filter over connection and process: the next one unsubscribes with it', async () => {
    const store = memoryStore();
    {
      await using broker = await startBroker({ store, hooks: PREFIXED });
      const client = await rawClient(broker, PERSISTENT);
      for (const topic of ['a', '$share/g/b', 'd']) await granted(client, 1, { topic, qos: 1 });
      assert.deepEqual(await unsubscribed(client, 'd'), [0]);
      client.cut();
      await turns(20);
      const again = await rawClient(broker, { ...PERSISTENT, clean: false });
      await granted(again, 1, { topic: 'e', qos: 1 });
      again.cut();
      await turns(20);
    }
    await using broker = await startBroker({ store });
    const client = await rawClient(broker, { ...PERSISTENT, clean: false });
    for (const topic of ['c/a', 'c/b', 'c/d', 'c/e']) await broker.publish(topic, 'x');
    assert.deepEqual(await topics(client), ['c/a', 'c/b', 'c/e']);
    assert.deepEqual(await unsubscribed(client, 'c/a', 'a', '$share/g/b', 'e', 'd'), [0x11, 0, 0, 0, 0x11]);
    await turns(20);
    await broker.stop();
    await broker.start();
    assert.equal(broker.sessions.get('c').counters().subscriptions, 0);
  });
});
