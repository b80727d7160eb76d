import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import { acl, type Broker, type Client } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** Publish at QoS 1. @returns the reason code of the refusal; 0: the message is accepted */
async function publish(client: Client, topic: string): Promise<number> {
  try {
    await client.publish(topic, 'x', { qos: 1 });
    return 0;
  } catch (error) {
    return (error as { reasonCode: number }).reasonCode;
  }
}

async function subscribe(client: Client, filter: string): Promise<number> {
  try {
    return (await client.subscribe(filter, { qos: 1 }))[0];
  } catch (error) {
    return (error as { reasonCode: number }).reasonCode;
  }
}

/** The cached decision about a topic: access, decider and its text. */
function cached({ access }: Broker, action: 'publish' | 'subscribe', topic: string) {
  const found = access.cache('c').find((verdict) => verdict.action === action && verdict.topic === topic);
  return found && [found.access, found.by, found.detail];
}

describe('the decider of a cached decision', () => {
  it('names the rule of the list, with its number and the name of its source', async () => {
    const rules = acl([
      { access: 'allow', topic: 'a/#' },
      { access: 'deny', action: 'publish', topic: ['b/#', 'plant/#'], clientId: 'c' },
      { access: 'deny', topic: 'secret', exact: true, address: '10.0.0.0/8' },
      { access: 'deny', action: 'subscribe' }
    ]);
    await using kit = await createTestBroker({ auth: [rules], allowAnonymous: true });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.deepEqual([await publish(client, 'plant/1'), await publish(client, 'a/1')], [0x87, 0]);
    assert.equal(await subscribe(client, 'other/#'), 0x87);
    const { broker } = kit;
    const denied = 'rule 2 of the source "acl": deny publish to "plant/#" for client "c"';
    assert.deepEqual(cached(broker, 'publish', 'plant/1'), ['deny', 'rules', denied]);
    assert.deepEqual(cached(broker, 'publish', 'a/1'), ['allow', undefined, undefined]);
    const other = 'rule 4 of the source "acl": deny subscribe to all topics';
    assert.deepEqual(cached(broker, 'subscribe', 'other/#'), ['deny', 'rules', other]);
  });

  it('names the rule of a source whose rules come last', async () => {
    const last: AuthSource = { ...acl([{ access: 'deny', topic: 'x' }]), name: 'last', hasLastRules: true };
    await using kit = await createTestBroker({ auth: [last], allowAnonymous: true });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    await publish(client, 'x');
    const text = 'rule 1 of the source "last": deny publish and subscribe to "x"';
    assert.deepEqual(cached(kit.broker, 'publish', 'x'), ['deny', 'rules', text]);
  });

  it('names the rule that was set at run time, until it is deleted', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    await broker.access.acl.set({ access: 'deny', action: 'publish', topic: 'x', username: 'other' });
    await broker.access.acl.set({ access: 'deny', action: 'publish', topic: 'x', exact: true, clientId: 'c' });
    assert.equal(await publish(client, 'x'), 0x87);
    const text = 'an access rule that is set at run time: deny publish to exactly "x" for client "c"';
    assert.deepEqual(cached(broker, 'publish', 'x'), ['deny', 'records', text]);
    await broker.access.acl.delete({ clientId: 'c' }, 'x');
    assert.equal(await publish(client, 'x'), 0);
    assert.deepEqual(cached(broker, 'publish', 'x'), ['allow', undefined, undefined]);
  });

  it('names the rule that the client got with its authentication', async () => {
    const source: AuthSource = {
      name: 'token',
      authenticate: () => ({
        allow: true,
        rules: [
          { access: 'allow', topic: 'y' },
          { access: 'deny', topic: 'x' }
        ]
      })
    };
    await using kit = await createTestBroker({ auth: [source] });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.deepEqual([await publish(client, 'x'), await publish(client, 'z')], [0x87, 0x87]);
    const rule = 'rule 2 of those that the client got with its authentication: deny publish and subscribe to "x"';
    assert.deepEqual(cached(kit.broker, 'publish', 'x'), ['deny', 'client', rule]);
    const unmatched = 'no rule, source or hook allows it (option aclNomatch)';
    assert.deepEqual(cached(kit.broker, 'publish', 'z'), ['deny', 'default', unmatched]);
  });

  it('names aclNomatch for what no rule allows', async () => {
    await using kit = await createTestBroker({ aclNomatch: 'deny' });
    const { broker } = kit;
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.deepEqual([await publish(client, 'x'), await subscribe(client, 'x')], [0x87, 0x87]);
    assert.deepEqual(cached(broker, 'publish', 'x')?.slice(0, 2), ['deny', 'default']);
  });

  it('names the source that refuses, with the reason it gives', async () => {
    const answers: Record<string, false | { allow: false; why: string }> = {
      no: false,
      why: { allow: false, why: 'the contract has ended' }
    };
    const source: AuthSource = { name: 'http', authorize: ({ topic }) => answers[topic] ?? true };
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true });
    const { broker } = kit;
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    for (const topic of ['no', 'why']) {
      assert.equal(await publish(client, topic), 0x87);
      assert.equal(await subscribe(client, topic), 0x87);
    }
    for (const action of ['publish', 'subscribe'] as const) {
      assert.deepEqual(cached(broker, action, 'no'), ['deny', 'source', 'the source "http"']);
      const text = 'the source "http": the contract has ended';
      assert.deepEqual(cached(broker, action, 'why'), ['deny', 'source', text]);
    }
  });

  it('names the hook of the app that refuses, also if a source was asked before', async () => {
    const source: AuthSource = { name: 'silent', authorize: () => undefined };
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true });
    const { broker } = kit;
    const refuse = async () => ({ allow: false, reasonCode: 0x83, why: 'not today' }) as const;
    broker.hook('authorizePublish', refuse, { cache: 'route' });
    broker.hook('authorizeSubscribe', () => 0x80, { cache: 'route' });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    assert.deepEqual([await publish(client, 'x'), await subscribe(client, 'x')], [0x83, 0x80]);
    assert.deepEqual(cached(broker, 'publish', 'x'), ['deny', 'hook', 'a hook of the app: not today']);
    assert.deepEqual(cached(broker, 'subscribe', 'x'), ['deny', 'hook', 'a hook of the app']);
  });
});
