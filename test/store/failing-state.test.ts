import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { queryObjects } from 'node:v8';
import type { ReceivedMessage } from '../../lib/client/options.ts';
import { Broker } from '../../lib/index.ts';
import { RetainedChange } from '../../lib/retained/retained-records.ts';
import { Kind } from '../../lib/store/keys.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { rawClient } from '../support/raw-client.ts';
import { sized } from '../support/samples.ts';
import { publish, turns } from '../support/wire.ts';
import { acked, check, copyOf, FAULTS, recover, retained, stage, waiting } from './failing-support.ts';
import { FaultyStore } from './faulty-store.ts';

describe('Retained and delayed messages, and tables, when a commit fails', () => {
  for (const fault of FAULTS)
    it(`retains the previous message, not the refused one, when a commit ${fault}`, async () => {
      const { kit, store } = await stage();
      await using _ = kit;
      const { broker } = kit;
      for (const topic of ['replaced', 'deleted', 'both', 'then'])
        await broker.publish(`state/${topic}`, 'before', { qos: 1, retain: true });
      store.fault = fault;
      const writer = await rawClient(broker);
      const changes = [
        ['replaced', 'refused'],
        ['deleted', ''],
        ['new', 'refused'],
        ['both', ''],
        ['both', 'refused'],
        ['then', 'refused']
      ] as const;
      for (const [n, [topic, payload]] of changes.entries())
        writer.send(publish(`state/${topic}`, payload, { qos: 1, messageId: n + 1, retain: true }));
      writer.send(publish('state/then', 'of QoS 0', { retain: true })); // no publisher is notified that this one was refused
      for (const _change of changes) assert.equal(await acked(writer, 'puback'), 0x97);
      const kept = ['both: before', 'deleted: before', 'replaced: before', 'then: of QoS 0'];
      assert.deepEqual(await retained(broker), kept);
      await recover(kit, store);
      assert.deepEqual(await retained(broker), kept);
      assert.deepEqual((await check(store)).findings, []);
      await using again = await createTestBroker({ store: store.inner, leakCheck: false });
      assert.deepEqual(await retained(again.broker), kept);
    });

  for (const fault of FAULTS)
    it(`stores no more topics of retained messages than the limit, and repairs the store, when commits ${fault}`, async () => {
      const store = new FaultyStore();
      await using kit = await createTestBroker({ store, leakCheck: false, maxRetainedMessages: 100 });
      const { broker } = kit;
      broker.on('error', () => {});
      for (let n = 0; n < 50; n++) await broker.publish(`state/before/${n}`, 'x', { retain: true });
      const writer = await rawClient(broker);
      const sizes: number[] = [];
      const commit = store.commit.bind(store);
      store.commit = (batch) => {
        sizes.push(batch.keys.filter(([kind]) => kind === Kind.retained).length);
        return commit(batch);
      };
      store.fault = fault;
      await assert.rejects(broker.table('t').set('a', 1), { code: 'STORE_FAILED' });
      const rounds = sized(4, 10);
      for (let round = 0; round < rounds; round++) {
        for (let n = 0; n < 50; n++) writer.send(publish(`state/before/${n}`, '', { retain: true }));
        // Messages of the previous round are removed, and more arrive than there is room for.
        for (let n = 0; n < 300; n++) writer.send(publish(`state/${round - 1}/${n}`, '', { retain: true }));
        for (let n = 0; n < 300; n++)
          for (const payload of ['x', '']) writer.send(publish(`state/passing/${n}`, payload, { retain: true }));
        for (let n = 0; n < 300; n++) writer.send(publish(`state/${round}/${n}`, 'x', { retain: true }));
        for (let n = 0; n < 300; n++) writer.send(publish(`state/none/${n}`, '', { retain: true }));
        writer.send({ cmd: 'pingreq' });
        await writer.next('pingresp'); // the broker has processed all of the previous ones, which takes several turns
        if (round === rounds - 1) {
          const noted = queryObjects(RetainedChange, { format: 'count' });
          assert.ok(noted <= 300, `${noted} topics in memory`);
        }
        await kit.clock.advance('10s'); // it tries to write them
      }
      assert.ok(sizes.length >= rounds && Math.max(...sizes) <= 200, `${sizes}`);
      await recover(kit, store);
      const kept = Array.from({ length: 100 }, (_, n) => `${rounds - 1}/${n}: x`).sort();
      assert.deepEqual(await retained(broker), kept);
      await using again = await createTestBroker({ store: await copyOf(store), leakCheck: false });
      assert.deepEqual(await retained(again.broker), kept);
    });

  for (const fault of FAULTS)
    it(`does not accumulate short delayed messages of QoS 0, and leaves none in the store, when commits ${fault}`, async () => {
      const store = new FaultyStore();
      await using kit = await createTestBroker({ store, leakCheck: false, maxDelayedMessages: 100 });
      const { broker } = kit;
      broker.on('error', () => {});
      let published = 0;
      broker.subscribe('live', () => {
        published++;
      });
      for (let n = 0; n < 20; n++) await broker.publish('$delayed/30/live', 'accepted', { qos: 1 });
      const writer = await rawClient(broker, { clientId: 'writer' });
      const sizes: number[] = [];
      const commit = store.commit.bind(store);
      store.commit = (batch) => {
        sizes.push(batch.keys.filter(([kind]) => kind === Kind.delayed).length);
        return commit(batch);
      };
      store.fault = fault;
      await assert.rejects(broker.table('t').set('a', 1), { code: 'STORE_FAILED' });
      for (let second = 0; second < 100; second++) {
        for (let n = 0; n < 20; n++) writer.send(publish('$delayed/2/live', 'x'));
        await turns();
        await kit.clock.advance('1s');
      }
      assert.equal(published, 20 + 99 * 20);
      assert.ok(sizes.length > 8 && Math.max(...sizes) <= 150, `${sizes}`);
      await kit.clock.advance('2s');
      await recover(kit, store);
      const copy = await copyOf(store);
      await copy.open();
      assert.deepEqual(await copy.read(Buffer.of(Kind.delayed), Buffer.of(Kind.delayed + 1), 1_000), []);
    });

  it('acknowledges no deletion of a retained message that remains, and reverts none of QoS 0 that came later', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const { broker } = kit;
    for (const topic of ['a', 'b']) await broker.publish(`state/${topic}`, 'before', { qos: 1, retain: true });
    const writer = await rawClient(broker);
    const fail = store.failLater();
    for (const [n, topic] of ['a', 'b'].entries())
      writer.send(publish(`state/${topic}`, '', { qos: 1, messageId: n + 1, retain: true }));
    await turns();
    writer.send(publish('state/a', '', { qos: 1, messageId: 3, retain: true }));
    for (const payload of ['x', '']) writer.send(publish('state/b', payload, { retain: true }));
    await writer.nothing();
    fail();
    for (const _id of [1, 2, 3]) assert.equal(await acked(writer, 'puback'), 0x97);
    await recover(kit, store);
    assert.deepEqual(await retained(broker), ['a: before']);
    await using again = await createTestBroker({ store: await copyOf(store), leakCheck: false });
    assert.deepEqual(await retained(again.broker), ['a: before']);
  });

  for (const fault of FAULTS)
    it(`restores the previous value in a table, not the refused one, when a commit ${fault}`, async () => {
      const { kit, store } = await stage();
      await using _ = kit;
      const table = kit.broker.table('users');
      for (const key of ['set', 'twice', 'deleted', 'set and deleted', 'deleted and set'])
        await table.set(key, 'before');
      await kit.clock.advance('1s');
      const fail = store.failLater();
      const refused = [table.set('set', 'refused'), table.set('new', 'refused'), table.delete('deleted')];
      refused.push(
        table.set('twice', 'refused'),
        table.set('set and deleted', 'refused'),
        table.delete('deleted and set')
      );
      refused.push(table.set('gone again', 'refused'), table.delete('gone again'));
      await turns();
      // Later changes wait for the next commit, which fails as well.
      refused.push(
        table.set('twice', 'refused, too'),
        table.delete('set and deleted'),
        table.set('deleted and set', 'x')
      );
      refused.push(table.set('later', 'refused'), table.delete('new'), table.delete('deleted'));
      store.fault = fault;
      fail();
      const outcomes = await Promise.allSettled(refused);
      const codes = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : 'resolved'));
      assert.deepEqual(
        codes,
        refused.map(() => 'STORE_FAILED')
      );
      const kept = new Map(
        ['set', 'twice', 'deleted', 'set and deleted', 'deleted and set'].map((key) => [key, 'before'])
      );
      assert.deepEqual(new Map(table), kept);
      await kit.clock.advance('5s'); // and the attempt to write all of it again fails as well
      await assert.rejects(table.set('set', 'refused'), { code: 'STORE_FAILED' });
      assert.deepEqual(new Map(table), kept);
      await recover(kit, store);
      assert.deepEqual(new Map(table), kept);
      await using again = await createTestBroker({ store: await copyOf(store), leakCheck: false });
      assert.deepEqual(new Map(again.broker.table('users')), kept);
      await table.set('set', 'after');
      assert.equal(await table.delete('deleted'), true);
      store.fault = fault;
      await assert.rejects(table.set('set', 'refused'), { code: 'STORE_FAILED' });
      assert.equal(table.get('set'), 'after', 'the value committed since is restored');
      assert.equal(table.has('deleted'), false);
      await recover(kit, store);
    });

  for (const fault of FAULTS)
    for (const delaySec of [0, 5])
      it(`never publishes a message that it refused to delay by ${delaySec} s, when a commit ${fault}`, async () => {
        const { kit, store } = await stage();
        await using _ = kit;
        const { broker } = kit;
        const writer = await rawClient(broker);
        const got: string[] = [];
        broker.subscribe('kept/#', ({ payload }) => got.push(`${payload}`));
        store.fault = fault;
        writer.send(publish(`$delayed/${delaySec}/kept/1`, 'refused', { qos: 1, messageId: 1 }));
        assert.equal(await acked(writer, 'puback'), 0x97);
        await recover(kit, store);
        writer.send(publish(`$delayed/${delaySec}/kept/1`, 'accepted', { qos: 1, messageId: 1 }));
        assert.equal(await acked(writer, 'puback'), 0x10);
        await kit.clock.advance('6s');
        assert.deepEqual([got, await waiting(kit)], [['accepted'], ['accepted']]);
        await kit.clock.advance('1s');
        assert.equal(broker.metrics.gauge('messages.delayed'), 0);
        assert.deepEqual((await check(store)).findings, []);
      });

  it('sends the previous retained message to clients that have not received it when a newer one is refused', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const texts = Array.from({ length: 6 }, (_, n) => `${n}`);
    for (const text of texts) await kit.broker.publish(`state/${text}`, text, { qos: 1, retain: true });
    const reader = await kit.connect({ clientId: 'slow', receiveMaximum: 2, acknowledge: 'manual' });
    const got: ReceivedMessage[] = [];
    reader.on('message', (message) => got.push(message));
    await reader.subscribe({ topic: 'state/#', qos: 1 });
    await kit.clock.advance(100);
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('state/5', 'newer', { qos: 1, retain: true }), {
      code: 'STORE_FAILED'
    });
    await recover(kit, store);
    for (let at = 0; at < got.length; at++) {
      got[at].ack();
      await kit.clock.advance(100);
    }
    const refused = got.findIndex(({ payload }) => `${payload}` === 'newer');
    if (refused >= 0) got.splice(refused, 1); // it was live
    assert.deepEqual(
      got.map(({ payload }) => `${payload}`),
      texts
    );
  });

  it('publishes a delayed message when it is committed, not while its commit is in progress', async () => {
    const store = new FaultyStore();
    const clock = new ManualClock();
    await using broker = new Broker({ store, clock, timerResolution: 1 });
    await broker.start();
    const got: string[] = [];
    broker.subscribe('kept/#', ({ payload }) => got.push(`${payload}`));
    broker.on('error', () => {});
    const writer = await rawClient(broker);
    const fail = store.failLater();
    writer.send(publish('$delayed/1/kept/1', 'refused', { qos: 1, messageId: 1 }));
    await writer.nothing();
    clock.advance(2_000);
    fail();
    assert.equal(await acked(writer, 'puback'), 0x97);
    clock.advance(1_000);
    await turns();
    writer.send(publish('$delayed/1/kept/1', 'accepted', { qos: 1, messageId: 1 }));
    assert.equal(await acked(writer, 'puback'), 0x10);
    clock.advance(2_000);
    assert.deepEqual(got, ['accepted']);
  });
});
