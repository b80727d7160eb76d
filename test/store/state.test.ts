import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker, engineOf } from '../../lib/broker/broker.ts';
import { newMessage } from '../../lib/broker/new-message.ts';
import { awaitCommit } from '../../lib/packets/message.ts';
import { describeKey } from '../../lib/store/keys.ts';
import type { Ledger } from '../../lib/store/ledger.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { RAW_PERSISTENT } from './failing-support.ts';
import { Lives, MortalStore, PERSISTENT, turns } from './support.ts';

async function retained(lives: Lives, filter = '#'): Promise<string[]> {
  const found: string[] = [];
  for await (const { topic, payload } of lives.kit.broker.retained.match(filter)) found.push(`${topic} ${payload}`);
  return found;
}

describe('Persisted retained messages', () => {
  it('restores retained messages after a crash: set, replaced and cleared', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'w' });
    for (const [topic, payload] of ['a 1', 'b 1', 'c 1', 'b 2', 'c '].map((text) => text.split(' ')))
      await client.publish(topic, payload, { qos: 1, retain: true });
    await lives.kill();
    assert.deepEqual(await retained(lives), ['a 1', 'b 2']);
  });

  it('writes retained messages of QoS 0 within a moment, or at once if the app requested it', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'w' });
    await client.publish('a', '1', { retain: true });
    await lives.kit.clock.advance(100);
    await lives.kit.broker.publish('b', '1', { retain: true });
    await lives.kill();
    assert.deepEqual(await retained(lives), ['a 1', 'b 1']);
  });

  it('expires retained messages at the same time as without the crash, and removes them from the store', async () => {
    await using lives = await new Lives({ retainedExpiryInterval: 1000 }).begin();
    const { broker } = lives.kit;
    await broker.publish('a', '1', { qos: 1, retain: true, properties: { messageExpiryInterval: 60 } });
    await broker.publish('b', '1', { qos: 1, retain: true });
    await lives.crash(50_000);
    assert.deepEqual(await retained(lives), ['a 1', 'b 1']);
    await lives.kit.clock.advance(10_000);
    assert.deepEqual(await retained(lives), ['b 1']);
    await lives.crash(940_000);
    await lives.kit.clock.advance(1000);
    assert.deepEqual(await retained(lives), []);
    await lives.kit.clock.advance(1000);
    assert.deepEqual(await lives.store.contents(), []);
  });

  it('sends restored messages with their remaining expiry interval, and otherwise as they were published', async () => {
    await using lives = await new Lives().begin();
    await lives.kit.broker.publish('a', '1', {
      qos: 2,
      retain: true,
      properties: { messageExpiryInterval: 60, contentType: 'x' }
    });
    await lives.crash(20_000);
    const { client, got } = await lives.listen({ clientId: 'r' });
    await client.subscribe({ topic: '#', qos: 1 });
    await lives.kit.clock.advance(10);
    assert.deepEqual(
      got.map(({ qos, retain, properties }) => [qos, retain, properties.messageExpiryInterval, properties.contentType]),
      [[1, true, 40, 'x']]
    );
  });

  it('writes nothing to the store when a missing message is cleared', async () => {
    await using lives = await new Lives().begin();
    const { kit, store } = lives;
    await kit.broker.publish('b', '1', { retain: true });
    const client = await lives.connect({ clientId: 'w' });
    const before = store.committed.length;
    await client.publish('a', '', { qos: 1, retain: true });
    await client.publish('c', '', { retain: true });
    await kit.broker.publish('a', '', { retain: true });
    void client.publish('a', 'gone in the same turn', { retain: true });
    await client.publish('a', '', { qos: 1, retain: true });
    await kit.clock.advance(1000);
    assert.deepEqual(
      store.committed
        .slice(before)
        .flatMap(({ keys }) => keys.map(describeKey))
        .filter((text) => text.startsWith('retained')),
      []
    );
    void client.publish('b', 'replaced', { qos: 1, retain: true });
    await client.publish('b', '', { qos: 1, retain: true });
    await lives.kill();
    assert.deepEqual(await retained(lives), []);
  });

  it('removes retained messages permanently when they are deleted during the commit that persists them', async () => {
    await using lives = await new Lives().begin();
    const { kit, store } = lives;
    store.turnsBefore = store.turnsAfter = () => 3;
    const client = await lives.connect({ clientId: 'w' });
    void client.publish('a', '1', { qos: 1, retain: true });
    void client.publish('b', '1', { qos: 1, retain: true });
    await turns(3);
    void client.publish('b', '2', { qos: 1, retain: true });
    void client.publish('b', '', { retain: true });
    await client.publish('a', '', { qos: 1, retain: true });
    await kit.clock.advance(100);
    await lives.kill();
    assert.deepEqual(await retained(lives), []);
    assert.deepEqual(await lives.store.contents(), []);
  });

  it('leaves no retained messages in the store that expired in the turn of their replacement', async () => {
    await using lives = await new Lives().begin();
    const { broker, clock } = lives.kit;
    await broker.publish('a', '1', { qos: 1, retain: true, properties: { messageExpiryInterval: 1 } });
    await clock.advance(100);
    await clock.advance(900);
    await broker.publish('a', '', { qos: 1, retain: true });
    await lives.crash();
    assert.deepEqual(await lives.store.contents(), []);
  });

  it('reports retained messages for which a start has no room, and does not restore them later', async () => {
    const store = new MortalStore();
    const first = await createBroker({ store }).start();
    for (let n = 0; n < 5; n++) await first.publish(`r/${n}`, `${n}`.repeat(n), { qos: 1, retain: true });
    await first.stop();
    const second = createBroker({ store, maxRetainedMessages: 2, maxRetainedPayloadSize: 3 });
    const dropped: string[] = [];
    second.on('message.dropped', ({ message, reason, client }) => dropped.push(`${message.topic} ${reason} ${client}`));
    await second.start();
    assert.deepEqual(dropped, ['r/3 not_retained undefined', 'r/4 not_retained undefined']);
    await second.stop();
    await store.open();
    assert.deepEqual(await store.contents(), ['retained message "r/1"', 'retained message "r/2"']);
  });

  it("excludes the broker's own $SYS messages", async () => {
    await using lives = await new Lives({ sysInterval: 1000 }).begin();
    await lives.kit.clock.advance(10_000);
    assert.deepEqual(
      (await lives.store.contents()).filter((text) => text.includes('$SYS')),
      []
    );
  });
});

describe('Persisted delayed messages', () => {
  it('publishes delayed messages at their time even if the process has crashed in the meantime', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 1);
    const writer = await lives.connect({ clientId: 'w' });
    await writer.publish('$delayed/60/t', 'late', { qos: 1 });
    await lives.kill({ downForMs: 30_000 });
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(29_000);
    assert.deepEqual(texts(), []);
    await lives.kit.clock.advance(2000);
    assert.deepEqual(texts(), ['late']);
    await lives.crash(100_000);
    const again = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(1000);
    assert.deepEqual(again.texts(), []);
    assert.equal((await lives.store.contents()).filter((text) => text.startsWith('delayed')).length, 0);
  });

  it('reports a delayed delivery that fails and whose commit took longer than the delay, and disturbs nothing', async (t) => {
    await using lives = await new Lives().begin();
    const { broker } = lives.kit;
    const errors: string[] = [];
    broker.on('error', ({ error, during }) => errors.push(`${during}: ${(error as Error).message}`));
    const { publishing, ledger, services } = engineOf(broker);
    t.mock.method(publishing, 'route', () => {
      throw new Error('broken');
    });
    const message = newMessage({ topic: '$delayed/0/t', payload: 'late', qos: 1 }, undefined, services.time);
    awaitCommit(message, (ledger as Ledger).ticket);
    const released = publishing.own.release(message, 't');
    await broker.table('any').set('commit', 1);
    assert.equal(await released, true);
    assert.deepEqual(errors, ['publishing a delayed message: broken']);
  });

  it('publishes delayed messages no later than their delay after a start, even if the clock was set back in the meantime', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't');
    await lives.kit.broker.publish('$delayed/5/t', 'late', { qos: 1 });
    await lives.crash(-3_600_000);
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(6000);
    assert.deepEqual(texts(), ['late']);
  });

  it('publishes delayed messages that became due while no process was running at the start, including to offline sessions', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 1);
    for (const n of [2, 1, 3]) await lives.kit.broker.publish(`$delayed/${n}/t`, `${n}`);
    await lives.kill({ downForMs: 60_000 });
    await lives.kit.clock.advance(100);
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts().sort(), ['1', '2', '3']);
  });
});

describe('Tables', () => {
  it('persists what the app sets in a table, and removes what it deletes', async () => {
    await using lives = await new Lives().begin();
    const users = lives.kit.broker.table<{ name: string; tags: string[] }>('users');
    await users.set('a', { name: 'ä', tags: ['x'] });
    await users.set('b\0c', { name: 'b', tags: [] });
    await users.set('', { name: 'nobody', tags: [] });
    await users.set('d', { name: 'd', tags: [] });
    assert.equal(await users.delete('d'), true);
    assert.equal(await users.delete('d'), false);
    await lives.kill();
    const again = lives.kit.broker.table<{ name: string; tags: string[] }>('users');
    assert.deepEqual(
      new Map(again),
      new Map([
        ['a', { name: 'ä', tags: ['x'] }],
        ['b\0c', { name: 'b', tags: [] }],
        ['', { name: 'nobody', tags: [] }]
      ])
    );
    assert.equal(again.size, 3);
    assert.equal(again.has('d'), false);
    assert.equal(lives.kit.broker.table('user').size, 0);
  });

  it('stores a value as it was when it was set', async () => {
    await using kit = await createTestBroker();
    const value = { list: [1] };
    await kit.broker.table('t').set('k', value);
    value.list.push(2);
    assert.deepEqual(kit.broker.table('t').get('k'), { list: [1] });
  });

  it('refuses invalid names, values that JSON cannot represent, and changes while the store is not open', async () => {
    const broker = createBroker({ store: memoryStore() });
    assert.throws(() => broker.table('a/b'), { code: 'TABLE_NAME_INVALID' });
    await assert.rejects(broker.table('t').set('k', 1), { code: 'BROKER_NOT_STARTED' });
    await broker.start();
    const circle: Record<string, unknown> = {};
    circle.circle = circle;
    for (const value of [undefined, circle, 5n, Number.NaN, { at: Infinity }, new Map([[1, 2]]), [new Set()]])
      await assert.rejects(broker.table('t').set('k', value), { code: 'TABLE_VALUE_INVALID' });
    await broker.table('t').set('k', 1);
    await broker.stop();
    await assert.rejects(broker.table('t').delete('k'), { code: 'BROKER_NOT_STARTED' });
    assert.equal(broker.table('t').get('k'), 1);
  });

  it('returns values that cannot be changed, because changes would not be persisted', async () => {
    await using lives = await new Lives().begin();
    const rule = { topics: ['a'], allow: true };
    await lives.kit.broker.table('t').set('k', rule);
    rule.topics.push('b');
    for (const isRestarted of [false, true]) {
      if (isRestarted) await lives.crash();
      const found = lives.kit.broker.table<typeof rule>('t').get('k') as typeof rule;
      assert.deepEqual(found, { topics: ['a'], allow: true });
      assert.throws(() => found.topics.push('c'), TypeError);
      assert.throws(() => {
        found.allow = false;
      }, TypeError);
    }
  });

  it('refuses keys with an unpaired surrogate, which would all be the same key in the store', async () => {
    const broker = createBroker({ store: memoryStore() });
    await broker.start();
    const table = broker.table('t');
    for (const key of ['\ud800', 'a\udfffb', '\udc00\ud800'])
      await assert.rejects(table.set(key, 1), { code: 'TABLE_KEY_INVALID' });
    assert.throws(() => broker.table('t\ud800'), { code: 'TABLE_NAME_INVALID' });
    await table.set('\ud83d\ude00', 1);
    assert.deepEqual([...table], [['\ud83d\ude00', 1]]);
    await broker.stop();
  });

  it('refuses a key that is not a string, which would otherwise be lost', async () => {
    const broker = createBroker({ store: memoryStore() });
    await broker.start();
    const table = broker.table('t') as unknown as { set(key: unknown, value: unknown): Promise<void>; size: number };
    for (const key of [4, undefined, null, {}]) await assert.rejects(table.set(key, 1), { code: 'TABLE_KEY_INVALID' });
    assert.equal(table.size, 0);
    await broker.stop();
  });
});

describe('A broker that stops cleanly', () => {
  it('leaves its state to the next broker, whether it was in memory or not', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 2);
    const slow = await lives.connect({ clientId: 'b', ...PERSISTENT, receiveMaximum: 2, acknowledge: 'manual' });
    await slow.subscribe({ topic: 't', qos: 1 });
    for (let n = 0; n < 10; n++) await lives.kit.broker.publish('t', `${n}`, { qos: 2, retain: n === 9 });
    await lives.restart(60_000);
    for (const clientId of ['a', 'b']) {
      const { texts } = await lives.listen({ clientId });
      await lives.kit.clock.advance(100);
      assert.deepEqual(
        texts(),
        Array.from({ length: 10 }, (_, n) => `${n}`),
        clientId
      );
    }
    assert.deepEqual(await retained(lives), ['t 9']);
  });

  it('continues with its state when it is started again', async () => {
    await using lives = await new Lives().begin();
    const { broker, clock } = lives.kit;
    await lives.leave('a', 't', 1);
    await broker.publish('t', 'before', { qos: 1, retain: true });
    await broker.publish('$delayed/5/t', 'late');
    for (let round = 0; round < 3; round++) {
      await clock.settle();
      await broker.stop();
      await broker.start();
    }
    await clock.advance(6000);
    const { texts } = await lives.listen({ clientId: 'a' });
    await clock.advance(100);
    assert.deepEqual(texts(), ['before', 'late']);
    await lives.crash();
    assert.deepEqual(await retained(lives), ['t before']);
    assert.equal(lives.kit.broker.sessions.has('a'), true);
  });

  it('does not continue if another broker has written to its store since', async () => {
    const store = memoryStore();
    const [first, second] = [createBroker({ store }), createBroker({ store })];
    await first.start();
    await first.table('t').set('k', 1);
    await first.stop();
    await second.start();
    await second.table('t').set('k', 2);
    await second.stop();
    await assert.rejects(first.start(), { code: 'STORE_CHANGED' });
    await second.start();
    assert.equal(second.table('t').get('k'), 2);
    await second.stop();
  });

  for (const [what, begin] of [
    ['shortens a queue', async ({ kit }) => void (await kit.broker.publish('t', 'one too many', { qos: 1 }))],
    [
      'resumes a session',
      async ({ kit }) =>
        void (await rawClient(kit.broker, { connect: false })).send(connectPacket({ clientId: 'a', ...RAW_PERSISTENT }))
    ],
    ['sends a queue', async (lives) => void (await lives.connect({ clientId: 'b', ...PERSISTENT }))],
    ['removes the records of a session', async ({ kit }) => kit.broker.sessions.get('b').discard()]
  ] as [string, (lives: Lives) => Promise<void>][])
    it(`reports no error if it is stopped while it ${what}`, async () => {
      await using lives = await new Lives({ maxMqueueLen: 20 }).begin();
      const { kit, store } = lives;
      const errors: unknown[] = [];
      kit.broker.on('error', ({ error, during }) => errors.push(`${during}: ${error}`));
      await lives.leave('b', 't', 1);
      const reader = await lives.connect({ clientId: 'a', ...PERSISTENT, acknowledge: 'manual' });
      await reader.subscribe({ topic: 't', qos: 1 });
      for (let n = 0; n < 20; n++) await kit.broker.publish('t', `${n}`, { qos: 1 });
      reader.destroy();
      await kit.clock.advance(1_000);
      const [read, close] = [store.read.bind(store), store.close.bind(store)];
      let reads = 0;
      let isClosed = () => {};
      const closed = new Promise<void>((resolve) => {
        isClosed = resolve;
      });
      // Like a read that is in progress when the store is closed.
      store.read = async (from, to, limit) => {
        reads++;
        await closed;
        return read(from, to, limit);
      };
      store.close = () => close().finally(isClosed);
      await begin(lives);
      await turns(10);
      assert.ok(reads > 0);
      await kit.broker.stop();
      await turns(20);
      assert.deepEqual(errors, []);
      store.read = read;
      await lives.restart();
      const { texts } = await lives.listen({ clientId: 'a' });
      await lives.kit.clock.advance(1_000);
      for (let n = 0; n < 20; n++) assert.ok(texts().includes(`${n}`));
    });

  it('reports no error if sessions end with the stop', async () => {
    await using lives = await new Lives().begin();
    const errors: unknown[] = [];
    lives.kit.broker.on('error', ({ error }) => errors.push(error));
    await lives.leave('a', 't', 1);
    await lives.kit.broker.publish('t', 'x', { qos: 1 });
    await lives.connect({ clientId: 'a', clean: false, sessionExpiry: 0, acknowledge: 'manual' });
    await lives.kit.clock.settle();
    await lives.kit.broker.stop();
    await turns(10);
    assert.deepEqual(errors, []);
    await lives.restart();
    await lives.kit.clock.advance(100);
    assert.deepEqual(await lives.store.contents(), []);
  });
});
