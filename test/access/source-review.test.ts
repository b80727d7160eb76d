import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import { type AuthorizeRequest, acl, memoryStore } from '../../lib/index.ts';
import type { PublishPacket } from '../../lib/packets/types.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, rest, turns } from '../support/wire.ts';

/** A source whose answers the test changes. */
class Asked implements AuthSource {
  readonly name = 'asked';
  readonly provides = ['authorization'] as const;
  /** The questions about subscriptions: client id and filter. */
  readonly asked: string[] = [];
  /** Filters that are refused. */
  readonly denied = new Set<string>();
  fails = false;
  isLate = true;
  most = 0;
  #open = 0;

  authorize({ client, action, topic }: AuthorizeRequest): boolean | Promise<boolean> {
    if (action === 'subscribe') this.asked.push(`${client.clientId} ${topic}`);
    const answer = !this.denied.has(topic);
    if (!this.isLate) return answer;
    this.most = Math.max(this.most, ++this.#open);
    return new Promise((resolve, reject) =>
      setImmediate(() => {
        this.#open--;
        if (this.fails) reject(new Error('the source has failed'));
        else resolve(answer);
      })
    );
  }
}

const TTL = 60_000;
const PERSISTENT = { clientId: 'c', properties: { sessionExpiryInterval: 3600 } };

async function texts(client: RawClient): Promise<string[]> {
  return (await rest(client))
    .filter((packet): packet is PublishPacket => packet.cmd === 'publish')
    .map(({ payload }) => String(payload));
}

function dropsOf(broker: { on(event: 'message.dropped', run: (drop: { reason: string }) => void): unknown }): string[] {
  const drops: string[] = [];
  broker.on('message.dropped', ({ reason }) => drops.push(reason));
  return drops;
}

describe('A source that must be asked', () => {
  for (const isLate of [false, true])
    it(`asks a source again about a subscription when its answer expires${isLate ? ', asynchronously' : ''}`, async () => {
      const source = new Asked();
      source.isLate = isLate;
      await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL });
      const client = await rawClient(kit.broker, { clientId: 'c' });
      for (const topic of ['a/#', '$share/g/b', 'c']) await granted(client, 1, topic);
      assert.deepEqual(source.asked.splice(0), ['c a/#', 'c b', 'c c']);
      source.denied.add('a/#').add('b');
      const publishAll = async () => {
        for (const topic of ['a/1', 'b', 'c']) await kit.broker.publish(topic, topic);
        return (await texts(client)).sort();
      };
      await kit.clock.advance(TTL - 2_000);
      assert.deepEqual(source.asked, []);
      assert.deepEqual(await publishAll(), ['a/1', 'b', 'c']);
      await kit.clock.advance(4_000);
      assert.deepEqual(source.asked.splice(0).sort(), ['c a/#', 'c b', 'c c']);
      assert.deepEqual(await publishAll(), ['c']);
      assert.equal(kit.broker.sessions.get('c').counters().subscriptions, 3);
      source.denied.clear();
      await kit.clock.advance(TTL + 2_000);
      assert.deepEqual(await publishAll(), ['a/1', 'b', 'c']);
      await granted(client, 1, 'c');
      client.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['a/#'] });
      await client.next('unsuback');
      source.asked.length = 0;
      await kit.clock.advance(TTL + 2_000);
      assert.equal((source.asked as string[]).includes('c a/#'), false);
      client.cut();
      await turns();
      source.asked.length = 0;
      await kit.clock.advance(TTL * 3);
      assert.deepEqual(source.asked, [], 'no source is asked about clients that are gone');
    });

  it('withholds queued messages, and those of the window, when a source refuses', async () => {
    const source = new Asked();
    await using kit = await createTestBroker({
      auth: [source],
      allowAnonymous: true,
      aclCacheTtl: TTL,
      maxInflight: 1
    });
    const drops = dropsOf(kit.broker);
    const client = await rawClient(kit.broker, { clientId: 'c' });
    await granted(client, 1, { topic: 'a', qos: 1 });
    for (const text of ['1', '2', '3']) await kit.broker.publish('a', text, { qos: 1 });
    assert.deepEqual(await texts(client), ['1']);
    source.denied.add('a');
    await kit.clock.advance(TTL + 2_000);
    client.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
    assert.deepEqual(await texts(client), []);
    assert.deepEqual(drops, ['not_authorized', 'not_authorized']);
  });

  it('removes refused subscriptions with aclRemoveSubscriptions, when nothing is queued for them', async () => {
    const source = new Asked();
    const options = {
      auth: [source],
      allowAnonymous: true,
      aclCacheTtl: TTL,
      aclRemoveSubscriptions: true,
      maxInflight: 1
    };
    await using kit = await createTestBroker(options);
    const drops = dropsOf(kit.broker);
    const removed: string[] = [];
    kit.broker.on('session.unsubscribed', ({ filter }) => removed.push(filter));
    const client = await rawClient(kit.broker, { clientId: 'c' });
    for (const topic of ['a', 'b']) await granted(client, 1, { topic, qos: 1 });
    for (const text of ['1', '2']) await kit.broker.publish('a', text, { qos: 1 });
    assert.deepEqual(await texts(client), ['1']);
    source.denied.add('a').add('b');
    await kit.clock.advance(TTL + 2_000);
    assert.deepEqual(removed, [], 'messages wait: the subscription stays, and nothing is delivered through it');
    client.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
    assert.deepEqual(await texts(client), []);
    assert.deepEqual(drops, ['not_authorized']);
    await kit.clock.advance(TTL + 2_000);
    assert.deepEqual(removed.sort(), ['a', 'b']);
  });

  for (const returns of [true, false])
    it(`does not deliver a queue that a source refuses when ${returns ? 'the client returns' : 'other rules change'} with aclRemoveSubscriptions`, async () => {
      const source = new Asked();
      const options = {
        auth: [source],
        allowAnonymous: true,
        aclCacheTtl: TTL,
        aclRemoveSubscriptions: true,
        maxInflight: 1
      };
      await using kit = await createTestBroker(options);
      const drops = dropsOf(kit.broker);
      const removed: string[] = [];
      kit.broker.on('session.unsubscribed', ({ filter }) => removed.push(filter));
      await kit.broker.access.acl.set({ access: 'allow', topic: 'other' });
      let client = await rawClient(kit.broker, PERSISTENT);
      for (const topic of ['a', 'b']) await granted(client, 1, { topic, qos: 1 });
      await kit.broker.publish('b', '0', { qos: 1 });
      for (const text of ['1', '2']) await kit.broker.publish('a', text, { qos: 1 });
      assert.deepEqual(await texts(client), ['0']);
      source.denied.add('a');
      if (returns) {
        client.cut();
        await turns();
        client = await rawClient(kit.broker, { ...PERSISTENT, clean: false });
        assert.deepEqual(await texts(client), ['0']);
      } else {
        await kit.clock.advance(TTL + 2_000);
        await kit.broker.access.acl.set({ access: 'allow', topic: 'another' });
        await kit.clock.advance(10);
      }
      client.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
      assert.deepEqual(await texts(client), []);
      assert.deepEqual(drops, ['not_authorized', 'not_authorized']);
      await kit.clock.advance(TTL + 2_000);
      assert.deepEqual(removed, ['a'], 'it is removed when nothing is left in the queue');
    });

  for (const returns of [true, false])
    it(`does not deliver, even without a source, a queue that rules no longer allow ${returns ? 'when the client returns' : 'after rules have changed'} with aclRemoveSubscriptions`, async () => {
      const options = {
        allowAnonymous: true,
        aclNomatch: 'deny',
        aclRemoveSubscriptions: true,
        maxInflight: 1
      } as const;
      await using kit = await createTestBroker(options);
      const drops = dropsOf(kit.broker);
      const { acl: records } = kit.broker.access;
      for (const username of ['ann', 'bob']) await records.set({ access: 'allow', username, topic: 'b' });
      await records.set({ access: 'allow', username: 'ann', topic: 'a' });
      let client = await rawClient(kit.broker, { ...PERSISTENT, username: 'ann' });
      for (const topic of ['a', 'b']) assert.deepEqual(await granted(client, 1, { topic, qos: 1 }), [1]);
      await kit.broker.publish('b', '0', { qos: 1 });
      for (const text of ['1', '2']) await kit.broker.publish('a', text, { qos: 1 });
      assert.deepEqual(await texts(client), ['0']);
      if (returns) {
        client.cut();
        await turns();
        client = await rawClient(kit.broker, { ...PERSISTENT, username: 'bob', clean: false });
        assert.deepEqual(await texts(client), ['0']);
      } else {
        await records.delete({ username: 'ann' }, 'a');
        await kit.clock.advance(10);
      }
      client.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
      assert.deepEqual(await texts(client), []);
      assert.deepEqual(drops, ['not_authorized', 'not_authorized']);
    });

  it('takes the right away while a source fails for longer than aclCacheTtl, and removes nothing', async () => {
    const source = new Asked();
    const options = { auth: [source], allowAnonymous: true, aclCacheTtl: TTL, aclRemoveSubscriptions: true };
    await using kit = await createTestBroker(options);
    kit.broker.on('error', () => undefined);
    const client = await rawClient(kit.broker, { clientId: 'c' });
    await granted(client, 1, 'a');
    source.fails = true;
    await kit.clock.advance(TTL * 2 + 10_000);
    await kit.broker.publish('a', '1');
    assert.deepEqual(await texts(client), []);
    source.fails = false;
    await kit.clock.advance(TTL + 2_000);
    await kit.broker.publish('a', '2');
    assert.deepEqual(await texts(client), ['2']);
  });

  it('asks a source about the subscriptions of a client that returns, before anything is delivered', async () => {
    const source = new Asked();
    const store = memoryStore();
    for (const isRestarted of [false, true]) {
      source.denied.clear();
      const options = { store, auth: [source], allowAnonymous: true, aclCacheTtl: TTL };
      let kit = await createTestBroker(options);
      const first = await rawClient(kit.broker, PERSISTENT);
      for (const topic of ['a', 'b']) await granted(first, 1, { topic, qos: 1 });
      kit.broker.sessions.get('c').subscribe('app', { qos: 1 });
      first.cut();
      await kit.clock.advance(100);
      for (const topic of ['a', 'b', 'app']) await kit.broker.publish(topic, topic, { qos: 1 });
      source.denied.add('a').add('app');
      if (isRestarted) {
        await kit[Symbol.asyncDispose]();
        kit = await createTestBroker(options);
      }
      source.asked.length = 0;
      const again = await rawClient(kit.broker, { ...PERSISTENT, clean: false });
      assert.deepEqual(source.asked.splice(0).sort(), ['c a', 'c b'], 'not about what the app has subscribed');
      await kit.clock.advance(100);
      for (const topic of ['a', 'b']) await kit.broker.publish(topic, `live ${topic}`, { qos: 1 });
      assert.deepEqual((await texts(again)).sort(), ['app', 'b', 'live b']);
      await kit.clock.advance(TTL + 2_000);
      assert.deepEqual(source.asked.splice(0).sort(), ['c a', 'c b'], 'and again when the answers expire');
      again.cut();
      await kit.clock.advance(100);
      kit.broker.sessions.get('c').discard();
      await kit[Symbol.asyncDispose]();
    }
  });

  it('asks about the user name with which the client returns, and about nothing if its connection closes', async () => {
    const users: (string | undefined)[] = [];
    let answer: ((isAllowed: boolean) => void) | undefined;
    await using kit = await createTestBroker({
      auth: [
        {
          name: 'asked',
          authorize: ({ client, signal }: AuthorizeRequest) => {
            users.push(client.username);
            if (client.username !== 'slow') return true;
            return new Promise<boolean>((resolve, reject) => {
              answer = resolve;
              signal.addEventListener('abort', () => reject(signal.reason));
            });
          }
        }
      ],
      allowAnonymous: true
    });
    const first = await rawClient(kit.broker, { ...PERSISTENT, username: 'ann' });
    await granted(first, 1, { topic: 'a', qos: 1 });
    first.cut();
    await turns();
    const slow = await rawClient(kit.broker, { ...PERSISTENT, clean: false, username: 'slow', connect: false });
    const { connectPacket } = await import('../support/raw-client.ts');
    slow.send(connectPacket({ ...PERSISTENT, clean: false, username: 'slow' }));
    await turns();
    assert.ok(answer !== undefined);
    assert.equal(slow.received.length, 0, 'CONNACK waits');
    slow.cut();
    await turns();
    const again = await rawClient(kit.broker, { ...PERSISTENT, clean: false, username: 'bob' });
    assert.deepEqual(users, ['ann', 'slow', 'bob']);
    await kit.broker.publish('a', 'x', { qos: 1 });
    assert.deepEqual(await texts(again), ['x'], 'the aborted question has refused nothing');
  });

  it('asks a source at once when the answers are withdrawn, for one client or for all', async () => {
    const source = new Asked();
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL });
    const [c, d] = [await rawClient(kit.broker, { clientId: 'c' }), await rawClient(kit.broker, { clientId: 'd' })];
    for (const client of [c, d]) await granted(client, 1, 'a');
    source.asked.length = 0;
    source.denied.add('a');
    kit.broker.access.invalidate('c');
    await kit.clock.advance(10);
    await kit.broker.publish('a', 'x');
    assert.deepEqual([source.asked.splice(0), await texts(c), await texts(d)], [['c a'], [], ['x']]);
    kit.broker.access.invalidate();
    await kit.clock.advance(10);
    await kit.broker.publish('a', 'x');
    assert.deepEqual([source.asked.splice(0).sort(), await texts(d)], [['c a', 'd a'], []]);
  });

  it('asks the next source at once when the one that has allowed a subscription is removed', async () => {
    const first: AuthSource = { name: 'first', authorize: () => true };
    const asked = new Asked();
    await using kit = await createTestBroker({ auth: [first, asked], allowAnonymous: true });
    const client = await rawClient(kit.broker, { clientId: 'c' });
    for (const topic of ['a', 'b']) await granted(client, 1, topic);
    assert.deepEqual(asked.asked, []);
    asked.denied.add('a');
    await kit.broker.access.remove('first');
    await turns();
    assert.deepEqual(asked.asked.sort(), ['c a', 'c b']);
    for (const topic of ['a', 'b']) await kit.broker.publish(topic, topic);
    assert.deepEqual(await texts(client), ['b']);
  });

  it('keeps the refusals of a source when rules change, and does not ask it about what rules or hooks have allowed', async () => {
    const source = new Asked();
    await using kit = await createTestBroker({
      auth: [acl([{ access: 'allow', topic: 'ruled' }]), source],
      allowAnonymous: true,
      aclCacheTtl: TTL
    });
    kit.broker.hook('authorizeSubscribe', ({ filter }) => (filter === 'hooked' ? true : undefined), { isFirst: true });
    const client = await rawClient(kit.broker, { clientId: 'c' });
    for (const topic of ['a', 'ruled', 'hooked']) await granted(client, 1, topic);
    assert.deepEqual(source.asked.splice(0), ['c a']);
    source.denied.add('a').add('ruled').add('hooked');
    await kit.clock.advance(TTL + 2_000);
    assert.deepEqual(source.asked.splice(0), ['c a']);
    await kit.broker.access.acl.set({ access: 'allow', topic: 'other' });
    await kit.clock.advance(10);
    for (const topic of ['a', 'ruled', 'hooked']) await kit.broker.publish(topic, topic);
    assert.deepEqual(await texts(client), ['ruled', 'hooked']);
  });

  it('asks a source about the filter with which a hook has replaced the requested one', async () => {
    const source = new Asked();
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL });
    kit.broker.hook('authorizeSubscribe', ({ filter }) => ({ filter: `x/${filter}` }), { isFirst: true });
    const client = await rawClient(kit.broker, { clientId: 'c' });
    await granted(client, 1, 'a');
    assert.deepEqual(source.asked.splice(0), ['c x/a']);
    source.denied.add('x/a');
    await kit.clock.advance(TTL + 2_000);
    assert.deepEqual(source.asked.splice(0), ['c x/a']);
    await kit.broker.publish('x/a', '1');
    assert.deepEqual(await texts(client), []);
    source.denied.clear();
    await granted(client, 1, 'a');
    await kit.broker.publish('x/a', '2');
    assert.deepEqual(await texts(client), ['2'], 'a new SUBSCRIBE that is allowed gives the right back');
  });

  it('asks a source about at most 64 subscriptions at a time', async () => {
    const source = new Asked();
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL });
    const client = await rawClient(kit.broker, { clientId: 'c' });
    for (let at = 0; at < 500; at++) await granted(client, 1, `t/${at}`);
    source.asked.length = source.most = 0;
    await kit.clock.advance(TTL + 2_000);
    assert.equal(source.asked.length, 500);
    assert.equal(source.most, 64);
  });
});
