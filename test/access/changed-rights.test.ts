import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AccessRule, type AuthorizeRequest, acl, memoryStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, payloads, turns } from '../support/wire.ts';

const TTL = 60_000;
const PERSISTENT = { clientId: 'c', properties: { sessionExpiryInterval: 3600 } };

/** A source that refuses everything to all users except ann, and records the questions. */
function annOnly() {
  const asked: string[] = [];
  const source = {
    name: 'server',
    authorize: async ({ client, action, topic }: AuthorizeRequest) => {
      if (action === 'subscribe') asked.push(`${client.username} ${topic}`);
      return client.username === 'ann';
    }
  };
  return { source, asked };
}

describe('A source that must be asked', () => {
  for (const store of [undefined, memoryStore()])
    it(`asks a source when an ordinary user returns to the session of a superuser${store ? ', with a store' : ''}`, async () => {
      const { source, asked } = annOnly();
      const hooks = {
        authenticate: ({ username }: { username: string | undefined }) =>
          ({ allow: true, isSuperuser: username === 'admin' }) as const
      };
      await using kit = await createTestBroker({ auth: [source], hooks, ...(store && { store }) });
      const first = await rawClient(kit.broker, { ...PERSISTENT, username: 'admin' });
      for (const topic of ['a', 'b']) assert.deepEqual(await granted(first, 1, { topic, qos: 1 }), [1]);
      await kit.clock.advance(TTL * 3);
      assert.deepEqual(asked, [], 'about a superuser it is not asked');
      first.cut();
      await turns();
      await kit.broker.publish('a', 'queued', { qos: 1 });
      const again = await rawClient(kit.broker, { ...PERSISTENT, username: 'bob', clean: false });
      assert.deepEqual(asked.sort(), ['bob a', 'bob b']);
      await kit.broker.publish('a', 'live', { qos: 1 });
      await kit.clock.advance(TTL * 3);
      await kit.broker.publish('a', 'later', { qos: 1 });
      assert.deepEqual(await payloads(again), []);
    });

  it('asks a source when another user returns to a subscription that a rule had allowed to the first one', async () => {
    const { source } = annOnly();
    const rules: AccessRule[] = [{ access: 'allow', username: 'eve', topic: 'a' }];
    await using kit = await createTestBroker({ auth: [acl(rules), source], allowAnonymous: true });
    const first = await rawClient(kit.broker, { ...PERSISTENT, username: 'eve' });
    assert.deepEqual(await granted(first, 1, { topic: 'a', qos: 1 }), [1]);
    first.cut();
    await turns();
    await kit.broker.publish('a', 'queued', { qos: 1 });
    const again = await rawClient(kit.broker, { ...PERSISTENT, username: 'bob', clean: false });
    await kit.broker.publish('a', 'live', { qos: 1 });
    assert.deepEqual(await payloads(again), []);
  });

  for (const username of ['ann', 'bob'])
    it(`asks a source at once about a subscription whose only allowing rule was removed (${username})`, async () => {
      const { source, asked } = annOnly();
      await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL });
      await kit.broker.access.create(acl([{ access: 'allow', topic: 'a' }]));
      const client = await rawClient(kit.broker, { clientId: 'c', username });
      assert.deepEqual(await granted(client, 1, 'a'), [0]);
      assert.deepEqual(asked, []);
      await kit.broker.access.acl.set({ access: 'allow', topic: 'other' });
      await kit.clock.advance(10);
      assert.deepEqual(asked, [], 'the rule still allows it');
      await kit.broker.access.delete('acl');
      await kit.clock.advance(10);
      assert.deepEqual([...new Set(asked)], [`${username} a`]);
      await kit.broker.publish('a', 'x');
      assert.deepEqual(await payloads(client), username === 'ann' ? ['x'] : []);
    });

  it('asks a source again about what a removed rule had denied, but not about what it has decided itself', async () => {
    const { source, asked } = annOnly();
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL });
    const ann = await rawClient(kit.broker, { clientId: 'c', username: 'ann' });
    await granted(ann, 1, 'a');
    asked.length = 0;
    const texts = async () => {
      await kit.clock.advance(10);
      await kit.broker.publish('a', 'x');
      return payloads(ann);
    };
    await kit.broker.access.acl.set({ access: 'deny', topic: 'a' });
    assert.deepEqual(await texts(), []);
    await kit.broker.access.acl.delete('all', 'a');
    assert.deepEqual(await texts(), ['x']);
    assert.deepEqual(asked, []);
  });

  it('does not ask a source about subscriptions that the app has made for the client, and keeps the filter of a hook', async () => {
    const asked: string[] = [];
    const source = {
      name: 'server',
      authorize: async ({ topic }: AuthorizeRequest) => {
        asked.push(topic);
        return undefined;
      }
    };
    await using kit = await createTestBroker({
      auth: [source],
      allowAnonymous: true,
      aclCacheTtl: TTL,
      autoSubscriptions: [{ topic: 'auto' }]
    });
    kit.broker.hook('authorizeSubscribe', ({ filter }) => ({ filter: `x/${filter}` }), { isFirst: true });
    const client = await rawClient(kit.broker, { clientId: 'c' });
    kit.broker.sessions.get('c').subscribe('app');
    await granted(client, 1, 'a');
    await kit.clock.advance(TTL * 3);
    assert.deepEqual([...new Set(asked)], ['x/a']);
    for (const topic of ['auto', 'app', 'x/a']) await kit.broker.publish(topic, topic);
    assert.deepEqual(await payloads(client), ['auto', 'app', 'x/a']);
  });

  for (const aclNomatch of ['deny', 'allow'] as const)
    it(`leaves the filter that a hook has set for one user to the hook: another user does not get it (aclNomatch ${aclNomatch})`, async () => {
      const source = { name: 'server', authorize: async (_: AuthorizeRequest) => undefined };
      await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL, aclNomatch });
      kit.broker.hook('authorizeSubscribe', ({ filter, client }) => ({ filter: `u/${client.username}/${filter}` }), {
        isFirst: true
      });
      const alice = await rawClient(kit.broker, { ...PERSISTENT, username: 'alice' });
      await granted(alice, 1, { topic: 'in', qos: 1 });
      await kit.clock.advance(TTL + 2_000);
      await kit.broker.publish('u/alice/in', '1', { qos: 1 });
      assert.deepEqual(await payloads(alice), ['1'], 'what the hook has allowed stays allowed');
      alice.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
      await turns();
      alice.cut();
      await turns();
      await kit.broker.publish('u/alice/in', '2', { qos: 1 });
      const bob = await rawClient(kit.broker, { ...PERSISTENT, username: 'bob', clean: false });
      await kit.clock.advance(TTL + 2_000);
      await kit.broker.publish('u/alice/in', '3', { qos: 1 });
      assert.deepEqual(await payloads(bob), []);
    });

  it('keeps the filter that a hook has set for a client that returns', async () => {
    const source = { name: 'server', authorize: async (_: AuthorizeRequest) => undefined };
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL });
    kit.broker.hook(
      'authorizeSubscribe',
      async ({ filter, client }) => ({ filter: `u/${client.username}/${filter}` }),
      { isFirst: true }
    );
    const first = await rawClient(kit.broker, { ...PERSISTENT, username: 'alice' });
    await granted(first, 1, { topic: 'in', qos: 1 });
    first.cut();
    await turns();
    await kit.broker.publish('u/alice/in', '1', { qos: 1 });
    const again = await rawClient(kit.broker, { ...PERSISTENT, username: 'alice', clean: false });
    assert.deepEqual(await payloads(again), ['1']);
  });

  it('lifts the refusal of a source that was removed while the client was away', async () => {
    let isDenied = false;
    const source = { name: 'asked', authorize: async (_: AuthorizeRequest) => !isDenied };
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL });
    const first = await rawClient(kit.broker, PERSISTENT);
    await granted(first, 1, { topic: 'a', qos: 1 });
    isDenied = true;
    await kit.clock.advance(TTL + 2_000);
    await kit.broker.publish('a', '0', { qos: 1 });
    assert.deepEqual(await payloads(first), []);
    first.cut();
    await kit.clock.advance(100);
    await kit.broker.access.delete('asked');
    await kit.clock.advance(100);
    const again = await rawClient(kit.broker, { ...PERSISTENT, clean: false });
    await kit.broker.publish('a', 'x', { qos: 1 });
    assert.deepEqual(await payloads(again), ['x']);
  });

  it('asks a source that is added again, also about a client that has returned in the meantime', async () => {
    const { source, asked } = annOnly();
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclNomatch: 'allow' });
    const first = await rawClient(kit.broker, { ...PERSISTENT, username: 'ann' });
    await granted(first, 1, 'a');
    first.cut();
    await kit.clock.advance(TTL * 2);
    await kit.broker.access.delete('server');
    const again = await rawClient(kit.broker, { ...PERSISTENT, username: 'bob', clean: false });
    await kit.clock.advance(TTL * 3);
    await kit.broker.publish('a', '1');
    assert.deepEqual([await payloads(again), asked], [['1'], ['ann a']]);
    await kit.broker.access.create(source);
    await kit.clock.advance(100);
    await kit.broker.publish('a', '2');
    assert.deepEqual([await payloads(again), asked], [[], ['ann a', 'bob a']]);
  });
});

describe('A re-authentication', () => {
  const METHOD = { authenticationMethod: 'M' };

  for (const before of ['superuser', 'rules'])
    for (const decider of ['rules', 'a source'])
      it(`ends delivery when a re-authentication takes rights away (of a ${before === 'rules' ? 'client with rules' : before}; ${decider} decide)`, async () => {
        let isFirst = true;
        const { source } = annOnly();
        const most = before === 'rules' ? { rules: [{ access: 'allow', topic: '#' }] as const } : { isSuperuser: true };
        const least = decider === 'rules' ? { rules: [{ access: 'allow', topic: 'other' }] as const } : {};
        await using kit = await createTestBroker({
          auth: decider === 'rules' ? [] : [source],
          hooks: {
            authenticate: () => ({ allow: true, ...(isFirst ? most : { isSuperuser: false, rules: [], ...least }) })
          }
        });
        const client = await rawClient(kit.broker, { clientId: 'c', username: 'bob', properties: METHOD });
        assert.deepEqual(await granted(client, 1, 'a'), [0]);
        await kit.broker.publish('a', '1');
        assert.deepEqual(await payloads(client), ['1']);
        isFirst = false;
        client.send({ cmd: 'auth', reasonCode: 0x19, properties: METHOD });
        await client.next('auth');
        await kit.clock.advance(10);
        await kit.broker.publish('a', '2');
        assert.deepEqual(await payloads(client), []);
        isFirst = true;
        client.send({ cmd: 'auth', reasonCode: 0x19, properties: METHOD });
        await client.next('auth');
        await kit.clock.advance(10);
        await kit.broker.publish('a', '3');
        assert.deepEqual(await payloads(client), ['3'], 'and one that gives them back begins it again');
      });

  for (const refuses of ['an asked source', 'a hook'] as const)
    for (const returns of [true, false])
      it(`withholds what ${refuses} refuses, although a later rule allows it, when ${returns ? 'the client returns' : 'other rules change'}`, async () => {
        let isAllowed = true;
        const server = { name: 'server', authorize: async () => (refuses === 'a hook' ? undefined : isAllowed) };
        const last = { ...acl([{ access: 'allow' }]), name: 'last', hasLastRules: true };
        const options = { allowAnonymous: true, aclCacheTtl: TTL, maxInflight: 1 };
        await using kit = await createTestBroker({ auth: [server, last], ...options });
        if (refuses === 'a hook') kit.broker.hook('authorizeSubscribe', () => isAllowed, { isFirst: true });
        const drops: string[] = [];
        kit.broker.on('message.dropped', ({ reason }) => drops.push(reason));
        let client = await rawClient(kit.broker, PERSISTENT);
        for (const topic of ['a', 'b']) assert.deepEqual(await granted(client, 1, { topic, qos: 1 }), [1]);
        if (returns) client.cut();
        await turns();
        for (const text of ['1', '2']) await kit.broker.publish('a', text, { qos: 1 });
        isAllowed = false;
        if (returns) client = await rawClient(kit.broker, { ...PERSISTENT, clean: false });
        else {
          assert.deepEqual(await payloads(client), ['1']);
          await kit.clock.advance(TTL + 2_000);
          await kit.broker.access.acl.set({ access: 'allow', topic: 'another' });
          await kit.clock.advance(10);
          client.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
        }
        await kit.broker.publish('a', '3', { qos: 1 });
        assert.deepEqual(await payloads(client), []);
        assert.deepEqual(drops.includes('not_authorized'), true);
        isAllowed = true;
        await kit.clock.advance(TTL + 2_000);
        await kit.broker.publish('a', '4', { qos: 1 });
        assert.deepEqual(await payloads(client), ['4']);
      });

  it('overrules a refusal as soon as an earlier rule allows the subscription', async () => {
    const { source } = annOnly();
    let isAllowed = true;
    await using kit = await createTestBroker({
      auth: [{ ...source, authorize: async () => isAllowed }],
      allowAnonymous: true,
      aclCacheTtl: TTL
    });
    const client = await rawClient(kit.broker, PERSISTENT);
    await granted(client, 1, 'a');
    isAllowed = false;
    await kit.clock.advance(TTL + 2_000);
    await kit.broker.access.acl.set({ access: 'allow', topic: 'a' });
    await kit.clock.advance(10);
    await kit.broker.publish('a', 'x');
    assert.deepEqual(await payloads(client), ['x']);
  });

  for (const isLate of [false, true])
    it(`does not decide about a filter that a hook sets only for certain requested ones${isLate ? ', asynchronously' : ''}`, async () => {
      const auth = [{ name: 'server', authorize: () => undefined }];
      const options = { allowAnonymous: true, aclCacheTtl: TTL, aclNomatch: 'deny' as const };
      await using kit = await createTestBroker({ auth, ...options });
      kit.broker.hook(
        'authorizeSubscribe',
        ({ filter, client }) => {
          const answer = filter === 'in' ? { filter: `u/${client.username}/in` } : undefined;
          return isLate ? Promise.resolve(answer) : answer;
        },
        { isFirst: true }
      );
      const first = await rawClient(kit.broker, { ...PERSISTENT, username: 'alice' });
      assert.deepEqual(await granted(first, 1, { topic: 'in', qos: 1 }), [1]);
      await kit.clock.advance(TTL + 2_000);
      await kit.broker.publish('u/alice/in', '1', { qos: 1 });
      assert.deepEqual(await payloads(first), ['1']);
      first.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
      await turns();
      first.cut();
      await turns();
      await kit.broker.publish('u/alice/in', '2', { qos: 1 });
      const again = await rawClient(kit.broker, { ...PERSISTENT, username: 'alice', clean: false });
      assert.deepEqual(await payloads(again), ['2']);
      again.send({ cmd: 'puback', messageId: 2, reasonCode: 0 });
      await turns();
      again.cut();
      await turns();
      await kit.broker.publish('u/alice/in', '3', { qos: 1 });
      const other = await rawClient(kit.broker, { ...PERSISTENT, username: 'bob', clean: false });
      assert.deepEqual(await payloads(other), [], 'for another user the hook puts another filter in place');
    });
});
