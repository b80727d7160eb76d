import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import { type AccessRule, acl, type Broker, type Client, memoryStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** The topics of the messages that a client has received since it subscribed. */
async function subscribed(client: Client, ...filters: string[]): Promise<{ topics: string[]; codes: number[] }> {
  const topics: string[] = [];
  client.on('message', ({ topic }) => topics.push(topic));
  const codes: number[] = [];
  for (const filter of filters) codes.push(...(await codesOf(client, filter)));
  return { topics, codes };
}

async function codesOf(client: Client, filter: string): Promise<readonly number[]> {
  try {
    return await client.subscribe(filter, { qos: 1 });
  } catch (error) {
    return [(error as { reasonCode: number }).reasonCode];
  }
}

/** Tell whether a client may publish to a topic at QoS 1. */
async function mayPublish(client: Client, topic: string): Promise<boolean> {
  try {
    await client.publish(topic, 'x', { qos: 1 });
    return true;
  } catch (error) {
    assert.equal((error as { reasonCode: number }).reasonCode, 0x87);
    return false;
  }
}

async function publishAll(broker: Broker, ...topics: string[]): Promise<void> {
  for (const topic of topics) await broker.publish(topic, 'x', { qos: 1 });
}

const SECRET: AccessRule[] = [
  { access: 'deny', topic: 'a/secret' },
  { access: 'allow', topic: 'a/#' }
];

describe('access rules', () => {
  it('decides by the rules of acl([...]), and refuses what no rule allows', async () => {
    await using kit = await createTestBroker({
      auth: [acl([{ access: 'allow', topic: 'dev/%c/#' }])],
      allowAnonymous: true
    });
    await using client = await kit.connect({ clientId: 'c1', protocolVersion: 5 });
    assert.equal(await mayPublish(client, 'dev/c1/up'), true);
    assert.equal(await mayPublish(client, 'dev/c2/up'), false);
    const { codes } = await subscribed(client, 'dev/c1/#', 'dev/+/up', '#', '$share/g/dev/c1/x', '$share/g/dev/#');
    assert.deepEqual(codes, [1, 0x87, 0x87, 1, 0x87]);
  });

  it('refuses everything if a source has an empty list of rules, and allows everything when the source is removed', async () => {
    await using kit = await createTestBroker({ auth: [acl([])], allowAnonymous: true });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.equal(await mayPublish(client, 'a'), false);
    assert.deepEqual((await subscribed(client, 'a')).codes, [0x87]);
    await kit.broker.access.delete('acl');
    assert.equal(await mayPublish(client, 'a'), true);
  });

  it('evaluates the rules of a source with hasLastRules after all others, regardless of the order of changes', async () => {
    const last: AuthSource = { ...acl([{ access: 'deny' }]), name: 'last', hasLastRules: true };
    await using kit = await createTestBroker({ auth: [last], allowAnonymous: true });
    const { broker } = kit;
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.equal(await mayPublish(client, 'rule'), false);
    await broker.access.create(acl([{ access: 'allow', topic: 'rule' }]));
    broker.hook('authorizePublish', ({ message }) => (message.topic === 'hook' ? true : undefined));
    const asked: AuthSource = { name: 'asked', authorize: ({ topic }) => (topic === 'asked' ? true : undefined) };
    await broker.access.create(asked);
    for (const _ of ['before', 'after a reload']) {
      for (const topic of ['rule', 'hook', 'asked']) assert.equal(await mayPublish(client, topic), true, topic);
      assert.equal(await mayPublish(client, 'other'), false);
      assert.deepEqual((await subscribed(client, 'rule', 'asked', 'other')).codes, [1, 1, 0x87]);
      await broker.access.reload('asked');
      await broker.access.reload('last');
    }
    await broker.access.delete('last');
    assert.equal(await mayPublish(client, 'rule'), true);
    assert.equal(await mayPublish(client, 'other'), false, 'the other sources decide about authorization as well');
  });

  it('does not apply rules to superusers, and allows everything else with aclNomatch: allow', async () => {
    await using kit = await createTestBroker({
      auth: [acl([{ access: 'deny', topic: 'no' }])],
      aclNomatch: 'allow',
      allowAnonymous: true,
      hooks: { authenticate: ({ client }) => ({ allow: true, isSuperuser: client.clientId === 'root' }) }
    });
    await using root = await kit.connect({ clientId: 'root', protocolVersion: 5 });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.deepEqual([await mayPublish(root, 'no'), await mayPublish(client, 'no')], [true, false]);
    assert.equal(await mayPublish(client, 'yes'), true);
    const { topics } = await subscribed(root, '#');
    await publishAll(kit.broker, 'no');
    await kit.clock.settle();
    assert.deepEqual(topics, ['no']);
  });

  for (const filter of ['a/#', '+/secret', '#', '$share/g/a/#'])
    it(`withholds a denied topic from a subscription to ${filter}, live, retained, queued and delayed`, async () => {
      await using kit = await createTestBroker({
        auth: [acl([...SECRET, { access: 'allow' }])],
        allowAnonymous: true
      });
      const { broker, clock } = kit;
      await broker.publish('a/secret', 'retained', { retain: true });
      await broker.publish('a/x', 'retained', { retain: true });
      const options = { clientId: 'c', clean: false, sessionExpiry: 3600, protocolVersion: 5 } as const;
      const client = await kit.connect(options);
      const { topics, codes } = await subscribed(client, filter);
      assert.deepEqual(codes, [1]);
      await publishAll(broker, 'a/secret', 'a/y', '$delayed/5/a/secret', '$delayed/5/a/z');
      await clock.advance('6s');
      const isWide = filter !== '+/secret';
      const retained = isWide && !filter.startsWith('$share') ? ['a/x'] : [];
      assert.deepEqual(topics, [...retained, ...(isWide ? ['a/y', 'a/z'] : [])]);
      await client.disconnect();
      await publishAll(broker, 'a/secret', 'a/q');
      const again = await kit.connect(options);
      const later: string[] = [];
      again.on('message', ({ topic }) => later.push(topic));
      await clock.settle();
      assert.deepEqual(later, isWide ? ['a/q'] : []);
      await again.disconnect();
    });

  it('delivers to another member of a share group what one may not receive', async () => {
    await using kit = await createTestBroker({
      auth: [acl([{ access: 'deny', topic: 'a/secret', clientId: 'c1' }, { access: 'allow' }])],
      allowAnonymous: true,
      sharedSubscriptionStrategy: 'round_robin'
    });
    await using c1 = await kit.connect({ clientId: 'c1' });
    await using c2 = await kit.connect({ clientId: 'c2' });
    const [one, two] = [await subscribed(c1, '$share/g/a/#'), await subscribed(c2, '$share/g/a/#')];
    for (let n = 0; n < 4; n++) await publishAll(kit.broker, 'a/secret');
    await publishAll(kit.broker, 'a/x', 'a/x');
    await kit.clock.settle();
    assert.equal(two.topics.filter((topic) => topic === 'a/secret').length, 4);
    assert.equal(one.topics.includes('a/secret'), false);
    assert.equal(one.topics.length + two.topics.length, 6);
  });

  it('applies rules that are set at run time from the next packet, to publishing and receiving', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const { acl: records } = broker.access;
    await using client = await kit.connect({ clientId: 'c1', username: 'ann', protocolVersion: 5 });
    const { topics } = await subscribed(client, 'a/#');
    assert.equal(await mayPublish(client, 'a/1'), true);
    await records.set({ access: 'deny', username: 'ann', topic: 'a/1' });
    assert.equal(await mayPublish(client, 'a/1'), false);
    await publishAll(broker, 'a/1', 'a/2');
    await records.set({ access: 'allow', clientId: 'c1', topic: 'a/1', action: 'sub' });
    await publishAll(broker, 'a/1');
    assert.equal(await mayPublish(client, 'a/1'), false, 'the rule of the client id is about subscriptions');
    assert.equal(await records.delete({ username: 'ann' }, 'a/1'), true);
    assert.equal(await records.delete({ username: 'ann' }, 'a/1'), false);
    assert.equal(await mayPublish(client, 'a/1'), true);
    await clock.settle();
    assert.deepEqual(topics, ['a/1', 'a/2', 'a/1', 'a/1']);
    await records.set({ access: 'deny', topic: '#', action: 'pub' });
    assert.equal(await mayPublish(client, 'b'), false);
    assert.deepEqual(records.list('all'), [{ topic: '#', action: 'publish', access: 'deny' }]);
    assert.deepEqual(records.of({ clientId: 'c1' }), [
      { clientId: 'c1', topic: 'a/1', action: 'subscribe', access: 'allow' }
    ]);
  });

  it('applies exact rules that are set at run time, also after a restart, and refuses keys that would be ignored', async () => {
    const store = memoryStore();
    const rule = { access: 'deny', topic: 'a/+', action: 'subscribe', exact: true } as const;
    {
      await using kit = await createTestBroker({ store });
      assert.deepEqual(await kit.broker.access.acl.set(rule), rule);
      for (const more of [{ address: '10.0.0.1' }, { hasUsername: true }])
        await assert.rejects(kit.broker.access.acl.set({ ...rule, ...more } as never), { code: 'OPTION_UNKNOWN' });
      await assert.rejects(kit.broker.access.acl.set({ access: 'deny', topic: 'eq a/+' }), {
        message: /"exact": true/
      });
    }
    await using kit = await createTestBroker({ store });
    assert.deepEqual(kit.broker.access.acl.list('all'), [rule]);
    await using client = await kit.connect({ protocolVersion: 5 });
    assert.deepEqual((await subscribed(client, 'a/+', 'a/b')).codes, [0x87, 1]);
    await kit.broker.access.acl.set({ access: 'deny', topic: 'a/+' });
    assert.equal('exact' in kit.broker.access.acl.list('all')[0], false);
  });

  it('withholds queued messages from a client that has lost the right to receive them', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const options = { clientId: 'c', clean: false, sessionExpiry: 3600, protocolVersion: 5 } as const;
    const client = await kit.connect(options);
    await subscribed(client, 'a/#');
    await client.disconnect();
    await publishAll(broker, 'a/1', 'a/2');
    await broker.access.acl.set({ access: 'deny', clientId: 'c', topic: 'a/1' });
    const dropped: string[] = [];
    broker.on('message.dropped', ({ message, reason }) => dropped.push(`${message.topic} ${reason}`));
    const again = await kit.connect(options);
    const topics: string[] = [];
    again.on('message', ({ topic }) => topics.push(topic));
    await clock.settle();
    assert.deepEqual([topics, dropped], [['a/2'], ['a/1 not_authorized']]);
    await again.disconnect();
  });

  it('delivers nothing through a subscription after the rule that allowed it was deleted, until it is set again', async () => {
    await using kit = await createTestBroker({ aclNomatch: 'deny' });
    const { broker, clock } = kit;
    const rule = { access: 'allow', clientId: 'c', topic: 'a/#' } as const;
    await broker.access.acl.set(rule);
    await broker.access.acl.set({ access: 'allow', clientId: 'c', topic: 'b' });
    const options = { clientId: 'c', clean: false, sessionExpiry: 3600, protocolVersion: 5 } as const;
    const client = await kit.connect(options);
    const { topics, codes } = await subscribed(client, 'a/#', '$share/g/a/#', 'b');
    assert.deepEqual(codes, [1, 1, 1]);
    const removed: string[] = [];
    broker.on('session.unsubscribed', ({ filter }) => removed.push(filter));
    await broker.access.acl.delete({ clientId: 'c' }, 'a/#');
    await clock.settle();
    await publishAll(broker, 'a/1', 'b');
    await broker.access.acl.set(rule);
    await clock.settle();
    await publishAll(broker, 'a/2');
    await clock.settle();
    assert.deepEqual(topics, ['b', 'a/2', 'a/2']);
    assert.deepEqual(removed, []);
    await client.disconnect();
    await publishAll(broker, 'a/3', 'b');
    await broker.access.acl.delete({ clientId: 'c' }, 'a/#');
    await clock.settle();
    await publishAll(broker, 'a/4');
    const again = await kit.connect(options);
    const later: string[] = [];
    again.on('message', ({ topic }) => later.push(topic));
    await clock.settle();
    assert.deepEqual(later, ['b']);
    await again.disconnect();
  });

  it('removes a subscription after the rule that allowed it was deleted, if aclRemoveSubscriptions is set', async () => {
    await using kit = await createTestBroker({ aclNomatch: 'deny', aclRemoveSubscriptions: true });
    const { broker, clock } = kit;
    await broker.access.acl.set({ access: 'allow', topic: 'a' });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    await subscribed(client, 'a');
    const removed: string[] = [];
    broker.on('session.unsubscribed', ({ filter }) => removed.push(filter));
    await broker.access.acl.delete('all', 'a');
    await clock.settle();
    assert.deepEqual(removed, ['a']);
  });

  it('keeps subscriptions that an authorizeSubscribe hook has granted', async () => {
    await using kit = await createTestBroker({ hooks: { authorizeSubscribe: () => true } });
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    const { topics } = await subscribed(client, 'a');
    await broker.access.acl.set({ access: 'deny', topic: 'b' });
    await clock.settle();
    await publishAll(broker, 'a');
    broker.hook('authorizeSubscribe', () => false, { isFirst: true });
    await publishAll(broker, 'a');
    await clock.settle();
    assert.deepEqual(topics, ['a', 'a']);
  });

  it('compares rules with topics without the mount point of the client', async () => {
    await using kit = await createTestBroker({
      auth: [
        acl([
          { access: 'deny', topic: 'a/secret' },
          { access: 'allow', topic: 'a/#' }
        ])
      ],
      allowAnonymous: true,
      mountpoint: 'm/'
    });
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.deepEqual(
      [await mayPublish(client, 'a/x'), await mayPublish(client, 'a/secret'), await mayPublish(client, 'b')],
      [true, false, false]
    );
    assert.deepEqual(
      [await mayPublish(client, '$delayed/1/a/x'), await mayPublish(client, '$delayed/1/b')],
      [true, false]
    );
    const { topics, codes } = await subscribed(client, 'a/#', 'm/a/#');
    assert.deepEqual(codes, [1, 0x87]);
    await publishAll(broker, 'm/a/y', 'm/a/secret');
    await clock.settle();
    assert.deepEqual(topics, ['a/y']);
  });

  it('applies rules that a client got with its authentication', async () => {
    const rules: AccessRule[] = [
      { access: 'deny', topic: 'a/secret' },
      { access: 'allow', topic: ['a/#', '%c'] }
    ];
    await using kit = await createTestBroker({
      hooks: { authenticate: ({ username }) => (username === 'ann' ? { allow: true, rules } : { allow: true }) },
      auth: [acl([{ access: 'deny' }])]
    });
    await using ann = await kit.connect({ clientId: 'c1', username: 'ann', protocolVersion: 5 });
    await using bob = await kit.connect({ clientId: 'c2', username: 'bob', protocolVersion: 5 });
    assert.deepEqual([await mayPublish(ann, 'a/x'), await mayPublish(bob, 'a/x')], [true, false]);
    assert.deepEqual([await mayPublish(ann, 'c1'), await mayPublish(ann, 'c2')], [true, false]);
    const { topics } = await subscribed(ann, 'a/#');
    await publishAll(kit.broker, 'a/secret', 'a/x');
    await kit.clock.settle();
    assert.deepEqual(topics, ['a/x']);
  });

  it('denies what nothing else allows if only the client has rules', async () => {
    const rules: AccessRule[] = [{ access: 'allow', topic: 'x/#' }];
    for (const [aclNomatch, own, isAllowed] of [
      [undefined, rules, false],
      [undefined, [], false],
      ['allow', rules, true],
      [undefined, undefined, true]
    ] as const) {
      await using kit = await createTestBroker({
        aclNomatch,
        hooks: { authenticate: () => ({ allow: true, rules: own }) }
      });
      await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
      assert.equal(await mayPublish(client, 'y'), isAllowed);
      assert.deepEqual((await subscribed(client, '#')).codes, [isAllowed ? 1 : 0x87]);
      if (own !== undefined && own.length > 0) assert.equal(await mayPublish(client, 'x/1'), true);
    }
  });

  it('lets rules about $SYS override the built-in checks, and no other rules', async () => {
    await using kit = await createTestBroker({ aclNomatch: 'allow' });
    const { broker } = kit;
    const remote = { transportInfo: { transport: 'tcp', remoteAddress: '192.0.2.1' } } as const;
    await using client = await broker.connect({ clientId: 'c', username: 'dashboard', protocolVersion: 5, ...remote });
    await broker.access.acl.set({ access: 'allow', topic: '#' });
    assert.deepEqual((await subscribed(client, '$SYS/#')).codes, [0x87]);
    assert.equal(await mayPublish(client, '$SYS/x'), false);
    await broker.access.acl.set({ access: 'allow', username: 'dashboard', topic: '$SYS/#' });
    assert.deepEqual((await subscribed(client, '$SYS/#', '$SYS/brokers')).codes, [1, 1]);
    assert.equal(await mayPublish(client, '$SYS/x'), true);
    await using local = await broker.connect({ clientId: 'l', protocolVersion: 5 });
    await broker.access.acl.set({ access: 'deny', clientId: 'l', topic: '$SYS/#' });
    assert.deepEqual((await subscribed(local, '$SYS/#')).codes, [0x87]);
  });
});

describe('the ACL cache of a connection', () => {
  it('caches decisions for aclCacheTtl, and at most aclCacheMaxSize of each kind', async () => {
    const asked: string[] = [];
    const remote: AuthSource = {
      name: 'remote',
      authorize: ({ action, topic }) => {
        asked.push(`${action} ${topic}`);
        return topic !== 'no';
      }
    };
    await using kit = await createTestBroker({
      auth: [remote],
      allowAnonymous: true,
      aclCacheTtl: '10s',
      aclCacheMaxSize: 2
    });
    const { access } = kit.broker;
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.deepEqual(access.cache('c'), []);
    assert.deepEqual([await mayPublish(client, 'yes'), await mayPublish(client, 'no')], [true, false]);
    await kit.clock.advance('1s');
    await subscribed(client, 'yes');
    assert.deepEqual(access.cache('c'), [
      { action: 'subscribe', topic: 'yes', access: 'allow', ageMs: 0 },
      { action: 'publish', topic: 'yes', access: 'allow', ageMs: 1000 },
      { action: 'publish', topic: 'no', access: 'deny', ageMs: 1000, by: 'source', detail: 'the source "remote"' }
    ]);
    asked.length = 0;
    for (const topic of ['yes', 'no', 'third', 'yes']) await mayPublish(client, topic);
    assert.deepEqual(asked, ['publish third', 'publish yes'], 'the oldest was forgotten');
    await kit.clock.advance('10s');
    asked.length = 0;
    assert.deepEqual(access.cache('c'), []);
    for (const topic of ['yes', 'yes']) await mayPublish(client, topic);
    access.invalidate('c');
    await mayPublish(client, 'yes');
    access.invalidate();
    await mayPublish(client, 'yes');
    const published = asked.filter((what) => what.startsWith('publish')); // the source is asked again about the subscription as well
    assert.deepEqual(published, ['publish yes', 'publish yes', 'publish yes']);
    assert.deepEqual(access.cache('nobody'), []);
  });

  it('closes the fast path when a cached decision expires or is withdrawn', async () => {
    let isAllowed = true;
    const remote: AuthSource = { name: 'remote', authorize: ({ action }) => action === 'subscribe' || isAllowed };
    await using kit = await createTestBroker({ auth: [remote], allowAnonymous: true, aclCacheTtl: '10s' });
    const { clock, broker } = kit;
    await using reader = await kit.connect({ clientId: 'r' });
    const received: string[] = [];
    reader.on('message', ({ payload }) => received.push(payload.toString()));
    await reader.subscribe('t');
    await using writer = await kit.connect({ clientId: 'w' });
    const send = async (payload: string) => {
      await writer.publish('t', payload);
      await clock.settle();
    };
    for (const payload of ['1', '2', '3']) await send(payload);
    isAllowed = false;
    await send('4');
    await clock.advance('10s');
    await send('5');
    isAllowed = true;
    broker.access.invalidate();
    await send('6');
    isAllowed = false;
    broker.access.invalidate('w');
    await send('7');
    assert.deepEqual(received, ['1', '2', '3', '4', '6']);
  });
});

describe('a source that must be asked for rights', () => {
  it('asks a source about topic names and filters that no rule decides', async () => {
    const asked: string[] = [];
    await using kit = await createTestBroker({
      allowAnonymous: true,
      auth: [
        {
          name: 'remote',
          authorize: async ({ client, action, topic }) => {
            asked.push(`${client.clientId} ${action} ${topic}`);
            return topic.startsWith('ok');
          }
        },
        acl([{ access: 'allow', topic: 'held' }])
      ]
    });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.deepEqual(
      [
        await mayPublish(client, 'ok/1'),
        await mayPublish(client, 'ok/1'),
        await mayPublish(client, 'no'),
        await mayPublish(client, 'held')
      ],
      [true, true, false, true]
    );
    assert.deepEqual((await subscribed(client, 'ok/#', 'no/#', 'held')).codes, [1, 0x87, 1]);
    assert.deepEqual(asked, ['c publish ok/1', 'c publish no', 'c subscribe ok/#', 'c subscribe no/#']);
  });
});
