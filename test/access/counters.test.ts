import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acl, type Broker, type CounterName, users } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** The counters whose names begin with a prefix and that are not zero. */
function counted(broker: Broker, prefix: string): Record<string, number> {
  const entries = Object.entries(broker.metrics.counters()) as [CounterName, number][];
  return Object.fromEntries(
    entries.flatMap(([name, value]) =>
      name.startsWith(prefix) && value > 0 ? [[name.slice(prefix.length), value]] : []
    )
  );
}

describe('the counters of authentication', () => {
  it('counts the decisions of sources about a client', async () => {
    await using kit = await createTestBroker({
      auth: [users([{ username: 'u', password: 'p' }])],
      allowAnonymous: true
    });
    await (await kit.connect({ username: 'u', password: 'p' })).disconnect();
    await assert.rejects(kit.connect({ username: 'u', password: 'wrong' }));
    await assert.rejects(kit.connect({ username: 'u', password: 'wrong' }));
    await (await kit.connect({ username: 'unknown', password: 'p' })).disconnect();
    await (await kit.connect()).disconnect();
    assert.deepEqual(counted(kit.broker, 'client.auth.'), { success: 1, failure: 2, ignore: 2, anonymous: 1 });
  });

  it('counts nothing without sources, except for anonymous clients', async () => {
    await using kit = await createTestBroker();
    await (await kit.connect({ username: 'u' })).disconnect();
    await (await kit.connect()).disconnect();
    assert.deepEqual(counted(kit.broker, 'client.auth.'), { anonymous: 1 });
  });

  it('counts an enhanced authentication once, when it has ended', async () => {
    await using kit = await createTestBroker({
      hooks: {
        authenticate: ({ round }) => (round === 0 ? { challenge: Buffer.from('?') } : { allow: true })
      }
    });
    const client = await kit.connect({
      protocolVersion: 5,
      properties: { authenticationMethod: 'm' },
      onAuth: () => Buffer.from('!')
    });
    assert.deepEqual(counted(kit.broker, 'client.auth.'), { success: 1 });
    await client.disconnect();
  });
});

describe('the counters of access rules', () => {
  it('counts decisions about publishes and subscriptions, and cached verdicts that are reused', async () => {
    await using kit = await createTestBroker({
      auth: [
        acl([
          { access: 'allow', topic: 'a/#' },
          { access: 'deny', topic: 'b/#' }
        ])
      ],
      aclNomatch: 'allow',
      allowAnonymous: true
    });
    await using client = await kit.connect({ protocolVersion: 5 });
    for (let n = 0; n < 3; n++) await client.publish('a/1', 'x', { qos: 1 });
    for (let n = 0; n < 2; n++) await assert.rejects(client.publish('b/1', 'x', { qos: 1 }));
    await client.publish('c', 'x', { qos: 1 });
    assert.deepEqual(counted(kit.broker, 'client.acl.'), { allow: 1, deny: 1, ignore: 1, cache_hit: 3 });
    await client.subscribe('a/+');
    assert.deepEqual(await client.subscribe('b/+'), [0x87]);
    await client.subscribe('c');
    assert.deepEqual(counted(kit.broker, 'client.acl.'), { allow: 2, deny: 2, ignore: 2, cache_hit: 3 });
    assert.equal(kit.broker.metrics.counter('client.check_acl'), 6);
  });

  it('counts no access decisions without rules', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect();
    await client.subscribe('a');
    await client.publish('a', 'x', { qos: 1 });
    assert.deepEqual(counted(kit.broker, 'client.acl.'), {});
  });

  it('counts no access decisions after the only source has been removed', async () => {
    const source = { name: 'all', authorize: () => true };
    await using kit = await createTestBroker({ auth: [source], aclNomatch: 'allow', allowAnonymous: true });
    await using client = await kit.connect();
    for (let n = 0; n < 2; n++) await client.publish('a', 'x', { qos: 1 });
    assert.deepEqual(counted(kit.broker, 'client.acl.'), { allow: 1, cache_hit: 1 });
    await kit.broker.access.delete('all');
    for (let n = 0; n < 3; n++) await client.publish('a', 'x', { qos: 1 });
    assert.deepEqual(counted(kit.broker, 'client.acl.'), { allow: 1, cache_hit: 1 });
  });
});
