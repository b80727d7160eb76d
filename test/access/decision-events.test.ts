import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import { type Broker, type Client, memoryStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** Collects a line for each decision: `c publish a allow`, followed by ` (cached)` if it was cached. */
function decisions(broker: Broker): string[] {
  const lines: string[] = [];
  broker.on('client.check_acl_complete', ({ client, action, topic, isAllowed, isCached }) => {
    lines.push(`${client.clientId} ${action} ${topic} ${isAllowed ? 'allow' : 'deny'}${isCached ? ' (cached)' : ''}`);
  });
  return lines;
}

/** Publishes with QoS 1 and waits for any answer. */
async function publish(client: Client, ...topics: string[]): Promise<void> {
  for (const topic of topics) await client.publish(topic, 'x', { qos: 1 }).catch(() => undefined);
}

async function subscribe(client: Client, ...filters: string[]): Promise<void> {
  for (const filter of filters) await client.subscribe(filter).catch(() => undefined);
}

const MAY_NOT_SECRET = ({ topic }: { topic: string }) => topic !== 'secret';

describe('The event client.check_acl_complete', () => {
  it('emits client.check_acl_complete for each PUBLISH that a hook decides about', async () => {
    await using kit = await createTestBroker({
      hooks: { authorizePublish: ({ message }) => MAY_NOT_SECRET(message), authorizeSubscribe: () => true }
    });
    const lines = decisions(kit.broker);
    await using client = await kit.connect({ clientId: 'c' });
    await publish(client, 'a', 'secret', 'a');
    assert.deepEqual(lines, ['c publish a allow', 'c publish secret deny', 'c publish a allow']);
  });

  it('reports whether the connection has cached the decision', async () => {
    await using kit = await createTestBroker();
    kit.broker.hook('authorizePublish', ({ message }) => MAY_NOT_SECRET(message), { cache: 'route' });
    kit.broker.hook('authorizeSubscribe', ({ filter }) => filter !== 'secret', { cache: 'route' });
    const lines = decisions(kit.broker);
    await using client = await kit.connect({ clientId: 'c' });
    await publish(client, 'a', 'a', 'secret', 'secret');
    await subscribe(client, 'b', 'b', 'secret', 'secret');
    assert.deepEqual(lines, [
      'c publish a allow',
      'c publish a allow (cached)',
      'c publish secret deny',
      'c publish secret deny (cached)',
      'c subscribe b allow',
      'c subscribe b allow (cached)',
      'c subscribe secret deny',
      'c subscribe secret deny (cached)'
    ]);
  });

  it('emits client.check_acl_complete when hooks decide asynchronously', async () => {
    await using kit = await createTestBroker({
      hooks: {
        authorizePublish: async ({ message }) => MAY_NOT_SECRET(message),
        authorizeSubscribe: async ({ filter }) => filter !== 'secret'
      }
    });
    const lines = decisions(kit.broker);
    await using client = await kit.connect({ clientId: 'c' });
    await publish(client, 'a', 'secret');
    await subscribe(client, '$share/g/a', 'secret');
    assert.deepEqual(lines, [
      'c publish a allow',
      'c publish secret deny',
      'c subscribe $share/g/a allow',
      'c subscribe secret deny'
    ]);
  });

  for (const [aclNomatch, result] of [
    ['allow', 'allow'],
    ['deny', 'deny']
  ] as const)
    it(`emits client.check_acl_complete without any hook, where aclNomatch decides: ${aclNomatch}`, async () => {
      await using kit = await createTestBroker({ aclNomatch });
      const lines = decisions(kit.broker);
      await using client = await kit.connect({ clientId: 'c' });
      await publish(client, 'a');
      await subscribe(client, 'b');
      assert.deepEqual(lines, [`c publish a ${result}`, `c subscribe b ${result}`]);
    });

  it('emits client.check_acl_complete for superusers, who may do everything', async () => {
    await using kit = await createTestBroker({
      hooks: {
        authenticate: () => ({ allow: true, isSuperuser: true }),
        authorizePublish: () => false,
        authorizeSubscribe: () => false
      }
    });
    const lines = decisions(kit.broker);
    await using client = await kit.connect({ clientId: 'root' });
    await publish(client, 'a');
    await subscribe(client, 'b');
    assert.deepEqual(lines, ['root publish a allow', 'root subscribe b allow']);
  });

  it('emits client.check_acl_complete for what the broker refuses below $SYS', async () => {
    await using kit = await createTestBroker();
    const lines = decisions(kit.broker);
    const transportInfo = { transport: 'tcp', remoteAddress: '192.0.2.1' } as const;
    const will = { topic: '$SYS/will', payload: 'x' };
    const client = await kit.connect({ clientId: 'c', transportInfo, will });
    await publish(client, '$SYS/a');
    await subscribe(client, '$SYS/#');
    kit.link('c').cut();
    await kit.clock.settle();
    assert.deepEqual(lines, ['c publish $SYS/a deny', 'c subscribe $SYS/# deny', 'c publish $SYS/will deny']);
  });

  it('reports the topic as the client knows it: without mount point, of a delayed message the inner topic', async () => {
    await using kit = await createTestBroker({ mountpoint: 'm/', hooks: { authorizePublish: () => true } });
    const lines = decisions(kit.broker);
    const client = await kit.connect({ clientId: 'c', will: { topic: 'last', payload: 'x' } });
    await publish(client, 'a', '$delayed/5/later');
    await subscribe(client, 'b', '$share/g/b');
    kit.link('c').cut();
    await kit.clock.advance('10s');
    assert.deepEqual(lines, [
      'c publish a allow',
      'c publish later allow',
      'c subscribe b allow',
      'c subscribe $share/g/b allow',
      'c publish last allow'
    ]);
  });

  it('emits no client.check_acl_complete for a SUBSCRIBE whose client has left', async () => {
    let answer = (_isAllowed: boolean) => {};
    await using kit = await createTestBroker({
      hooks: { authorizeSubscribe: () => new Promise<boolean>((resolve) => (answer = resolve)) }
    });
    const lines = decisions(kit.broker);
    const client = await kit.connect({ clientId: 'c' });
    const gone = client.subscribe('a').catch(() => undefined);
    await kit.clock.settle();
    kit.link('c').cut();
    answer(true);
    await gone;
    await kit.clock.settle();
    assert.deepEqual(lines, []);
  });

  it('emits no client.check_acl_complete for messages of the app', async () => {
    await using kit = await createTestBroker({ hooks: { authorizePublish: () => true } });
    const lines = decisions(kit.broker);
    await kit.broker.publish('a', 'x');
    assert.deepEqual(lines, []);
  });

  it('emits client.check_acl_complete for each message of a run of QoS 0 messages, because a listener closes the fast path', async () => {
    await using kit = await createTestBroker();
    const lines = decisions(kit.broker);
    await using client = await kit.connect({ clientId: 'c' });
    for (let count = 0; count < 20; count++) void client.publish('a', 'x');
    await kit.clock.settle();
    assert.deepEqual(lines, ['c publish a allow', ...new Array(19).fill('c publish a allow (cached)')]);
  });

  it('opens the fast path again when client.check_acl_complete has no listener left', async () => {
    await using kit = await createTestBroker();
    const { hooks } = engineOf(kit.broker).publishing;
    const listener = () => {};
    kit.broker.on('client.check_acl_complete', listener);
    assert.deepEqual([hooks.isFastPathOpen, hooks.hasHooks], [false, true]);
    kit.broker.off('client.check_acl_complete', listener);
    assert.deepEqual([hooks.isFastPathOpen, hooks.hasHooks], [true, false]);
  });

  for (const [name, act] of [
    ['PUBLISH', (client: Client) => client.publish('a', 'x', { qos: 2 })],
    ['SUBSCRIBE', (client: Client) => client.subscribe('a')]
  ] as const)
    it(`allows a listener of client.check_acl_complete to end the session: of a ${name}`, async () => {
      await using kit = await createTestBroker({ store: memoryStore() });
      const { broker } = kit;
      const errors: unknown[] = [];
      broker.on('error', ({ error }) => errors.push(error));
      const client = await kit.connect({ clientId: 'c', sessionExpiry: '1h' });
      broker.on('client.check_acl_complete', ({ client: { clientId } }) => broker.sessions.get(clientId).kick());
      await assert.rejects(act(client));
      await kit.clock.settle();
      assert.equal(broker.sessions.has('c'), false);
      assert.equal(broker.metrics.gauge('subscriptions'), 0);
      assert.deepEqual(errors, []);
    });
});
