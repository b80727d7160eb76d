import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acl, type BrokerOptions, memoryStore } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish } from '../support/wire.ts';

type Options = Omit<BrokerOptions, 'clock'>;

const DENY = { access: 'deny', action: 'publish' } as const;

/** Publish retained messages as the client `meter` of the user ann. */
async function retain({ broker }: TestBroker, ...topics: string[]): Promise<void> {
  const meter = await rawClient(broker, { clientId: 'meter', username: 'ann' });
  for (const topic of topics) meter.send(publish(topic, topic, { retain: true }));
  await meter.rest();
  meter.stream.destroy();
}

/** The payloads of the retained messages that a new subscriber receives. */
async function received({ broker }: TestBroker): Promise<string[]> {
  const client = await rawClient(broker);
  await granted(client, 1, '#');
  const got = await payloads(client);
  client.stream.destroy();
  return got.map(String).sort();
}

const kitWith = (options: Options) => createTestBroker({ leakCheck: false, allowAnonymous: true, ...options });

describe('Retained messages', () => {
  it('delivers retained messages by default when their publisher has lost the right to publish them', async () => {
    await using kit = await kitWith({});
    await retain(kit, 'a', 'b');
    await kit.broker.access.acl.set({ clientId: 'meter', topic: 'a', ...DENY });
    assert.deepEqual(await received(kit), ['a', 'b']);
  });

  it('withholds retained messages with recheck when a rule denies their publisher the topic, also after a restart', async () => {
    const store = memoryStore();
    const options: Options = { store, retainedRights: 'recheck' };
    {
      await using kit = await kitWith(options);
      await retain(kit, 'a', 'b', 'c');
      await kit.broker.publish('app', 'app', { retain: true });
      assert.deepEqual(await received(kit), ['a', 'app', 'b', 'c']);
      await kit.broker.access.acl.set({ clientId: 'meter', topic: 'a', ...DENY });
      await kit.broker.access.acl.set({ username: 'ann', topic: 'b', ...DENY });
      await kit.broker.access.acl.set({ clientId: 'other', topic: 'c', ...DENY });
      await kit.broker.access.acl.set({ topic: 'app', ...DENY });
      assert.deepEqual(await received(kit), ['app', 'c']);
    }
    await using again = await kitWith(options);
    assert.deepEqual(await received(again), ['app', 'c']);
    await again.broker.access.acl.delete({ clientId: 'meter' }, 'a');
    assert.deepEqual(await received(again), ['a', 'app', 'c'], 'the message was only withheld');
  });

  it('evaluates with recheck the rules of sources that the broker holds, and asks no remote source', async () => {
    const asked: string[] = [];
    const remote = { name: 'remote', authorize: ({ action }: { action: string }) => asked.push(action) > 0 };
    await using kit = await kitWith({ auth: [remote], retainedRights: 'recheck' });
    await retain(kit, 'a', 'b');
    await kit.broker.access.create(acl([{ username: 'ann', topic: 'a', ...DENY }]));
    asked.length = 0;
    assert.deepEqual(await received(kit), ['b']);
    assert.deepEqual(asked, ['subscribe']);
  });

  it('delivers retained messages of superusers among the records with recheck', async () => {
    await using kit = await kitWith({ retainedRights: 'recheck' });
    await retain(kit, 'a');
    await kit.broker.access.acl.set({ topic: 'a', ...DENY });
    assert.deepEqual(await received(kit), []);
    await kit.broker.access.usernames.create('ann', 'secret', { isSuperuser: true });
    assert.deepEqual(await received(kit), ['a']);
  });
});
