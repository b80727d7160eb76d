import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import { describe, it } from 'node:test';
import timers from 'node:timers';
import { queryObjects } from 'node:v8';
import { RetainedChange } from '../../lib/broker/retained-records.ts';
import { Batch, Broker, type Client, checkStore, memoryStore } from '../../lib/index.ts';
import type { AckPacket } from '../../lib/packets/types.ts';
import { KeptMessage } from '../../lib/session/segment.ts';
import { Kind } from '../../lib/store/keys.ts';
import type { Store } from '../../lib/store/store.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, held, payloads, publish, refusedConnect, turns, unsubscribe } from '../support/wire.ts';
import { type Fault, FaultyStore } from './faulty-store.ts';
import { change } from './filled-store.ts';

const PERSISTENT = { clean: false, sessionExpiry: '1h' } as const;
const RAW_PERSISTENT = { clean: false, properties: { sessionExpiryInterval: 3_600 } } as const;
const FAULTS: readonly Fault[] = ['throws', 'rejects', 'applies'];

/** A broker on a store that works for now, a session that is away and subscribes `kept/#`, and what is told. */
async function stage(): Promise<{ kit: TestBroker; store: FaultyStore; told: string[] }> {
  const store = new FaultyStore();
  const kit = await createTestBroker({ store, leakCheck: false, delayedPublish: true });
  const told: string[] = [];
  kit.broker.on('error', ({ error }) => told.push(`error: ${(error as Error & { code: string }).code}`));
  kit.broker.on('store.failed', ({ error }) => told.push(`failed: ${(error as Error & { code: string }).code}`));
  kit.broker.on('store.recovered', () => told.push('recovered'));
  kit.broker.subscribe('$SYS/brokers/+/alarms/#', ({ topic }) => told.push(`alarm: ${topic.split('/').at(-1)}`));
  const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
  await reader.subscribe({ topic: 'kept/#', qos: 2 });
  await reader.disconnect();
  return { kit, store, told };
}

/** What waits for the reader: it comes, takes all and goes. */
async function waiting(kit: TestBroker): Promise<string[]> {
  const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
  const got: string[] = [];
  reader.on('message', ({ payload }) => got.push(`${payload}`));
  await kit.clock.advance('1s');
  await reader.disconnect();
  return got.sort();
}

/** What is retained under `state/`. */
async function retained(broker: Broker): Promise<string[]> {
  const found: string[] = [];
  for await (const { topic, payload } of broker.retained('state/#'))
    found.push(`${topic.slice('state/'.length)}: ${payload}`);
  return found.sort();
}

async function acked(client: RawClient, cmd: AckPacket['cmd']): Promise<number> {
  return ((await client.next(cmd)) as AckPacket).reasonCode;
}

/** The store works again, and the broker has found out. */
async function mended(kit: TestBroker, store: FaultyStore): Promise<void> {
  store.fault = undefined;
  store.isShut = false;
  await kit.clock.advance('20s');
}

describe('A broker whose store fails', () => {
  for (const fault of FAULTS) {
    it(`acknowledges nothing that is not kept, and goes on by itself, when a commit ${fault}`, async () => {
      const { kit, store, told } = await stage();
      await using _ = kit;
      const writer = await rawClient(kit.broker, { clientId: 'writer' });
      writer.send(publish('kept/1', 'before', { qos: 1, messageId: 1 }));
      assert.equal(await acked(writer, 'puback'), 0);
      store.fault = fault;
      // those that the failing commit holds, and those that come while nothing can be written
      for (const id of [2, 4]) {
        writer.send(publish('kept/1', `lost ${id}`, { qos: 1, messageId: id }));
        assert.equal(await acked(writer, 'puback'), 0x97);
        writer.send(publish('kept/1', `lost ${id + 1}`, { qos: 2, messageId: id + 1 }));
        assert.equal(await acked(writer, 'pubrec'), 0x97);
      }
      assert.deepEqual(told, ['alarm: alert', 'error: STORE_FAILED', 'failed: STORE_FAILED']);
      await mended(kit, store);
      assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
      writer.send(publish('kept/1', 'after', { qos: 2, messageId: 5 }));
      assert.equal(await acked(writer, 'pubrec'), 0);
      assert.deepEqual(await waiting(kit), ['after', 'before']);
      await kit.clock.advance('1s');
      assert.deepEqual((await check(store)).findings, []);
    });

    it(`closes connections of 3.1.1 whose messages are not kept, when a commit ${fault}`, async () => {
      const { kit, store } = await stage();
      await using _ = kit;
      const writer = await rawClient(kit.broker, { clientId: 'writer', version: 4 });
      const second = await rawClient(kit.broker, { clientId: 'second', version: 4 });
      store.fault = fault;
      writer.send(publish('kept/1', 'one', { qos: 1, messageId: 1 }));
      assert.deepEqual(
        (await writer.closed()).map(({ cmd }) => cmd),
        ['connack']
      );
      second.send(publish('kept/1', 'two', { qos: 2, messageId: 1 }));
      await second.closed();
      await mended(kit, store);
      const again = await rawClient(kit.broker, { clientId: 'writer', version: 4 });
      again.send(publish('kept/1', 'one', { qos: 1, messageId: 1, dup: true }));
      assert.equal(await acked(again, 'puback'), 0);
      assert.deepEqual(await waiting(kit), ['one']);
    });
  }

  it('lets everything go on that need not be kept', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    await kit.broker.publish('state', 'retained', { qos: 1, retain: true });
    const writer = await rawClient(kit.broker);
    store.fault = 'rejects';
    writer.send(publish('kept/1', 'x', { qos: 1, messageId: 1 }));
    assert.equal(await acked(writer, 'puback'), 0x97);
    const other = await rawClient(kit.broker);
    assert.deepEqual(
      await granted(other, 1, [
        { topic: 'live', qos: 2 },
        { topic: 'state', qos: 0 }
      ]),
      [2, 0]
    );
    assert.equal(`${(await other.next('publish')).payload}`, 'retained');
    writer.send(publish('live', '0'), publish('live', '1', { qos: 1, messageId: 2 }));
    assert.equal(await acked(writer, 'puback'), 0);
    assert.equal(`${(await other.next('publish')).payload}`, '0');
    assert.equal(`${(await other.next('publish')).payload}`, '1');
    assert.deepEqual(await kit.broker.publish('live', '2', { qos: 1 }), { receivers: 1 });
    await mended(kit, store);
  });

  it('refuses what would have to be kept with a code', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const present = await rawClient(kit.broker, { clientId: 'present', ...RAW_PERSISTENT });
    const present4 = await rawClient(kit.broker, { clientId: 'present4', version: 4, clean: false });
    assert.deepEqual(await granted(present, 2, { topic: '$share/workers/jobs', qos: 1 }), [1]);
    const writer = await rawClient(kit.broker);
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    for (const version of [4, 5] as const) {
      const code = 0x88;
      assert.equal(
        (
          await refusedConnect(kit.broker, {
            version,
            clientId: 'new',
            clean: false,
            properties: RAW_PERSISTENT.properties
          })
        ).reasonCode,
        code
      );
      assert.equal((await refusedConnect(kit.broker, { version, clientId: 'reader', clean: false })).reasonCode, code);
      assert.equal(
        (await refusedConnect(kit.broker, { version, clientId: 'reader' })).reasonCode,
        code,
        'nor can its session be ended'
      );
      assert.equal(
        (
          await refusedConnect(kit.broker, {
            version,
            will: { topic: 'w', payload: Buffer.of(), qos: 0, retain: false }
          })
        ).reasonCode,
        code
      );
    }
    assert.deepEqual(await granted(present, 1, { topic: 'a', qos: 1 }), [0x97]);
    assert.deepEqual(await granted(present4, 1, { topic: 'a', qos: 1 }), [0x80]);
    writer.send(publish('state', 'x', { qos: 1, messageId: 1, retain: true }));
    assert.equal(await acked(writer, 'puback'), 0x97);
    writer.send(publish('$delayed/5/live', 'x', { qos: 1, messageId: 1 }));
    assert.equal(await acked(writer, 'puback'), 0x97);
    const refused = { code: 'STORE_FAILED' };
    const publishes = [
      { topic: 'kept/1', qos: 1 },
      { topic: 'state', qos: 1, retain: true },
      { topic: '$delayed/5/live', qos: 1 }
    ] as const;
    for (const message of publishes) await assert.rejects(async () => kit.broker.publish(message), refused);
    await assert.rejects(kit.broker.table('t').set('a', 1), refused);
    assert.equal(kit.broker.table('t').has('a'), false, 'it has not taken effect either');
    for await (const _message of kit.broker.retained('state')) assert.fail('it is not retained either');
    writer.send(publish('jobs', 'x', { qos: 1, messageId: 1 }));
    assert.equal(await acked(writer, 'puback'), 0x97, 'a member of the group would have to keep it');
    await mended(kit, store);
    assert.deepEqual(await kit.broker.publish('kept/1', 'y', { qos: 1 }), { receivers: 1 });
    await kit.broker.table('t').set('a', 1);
    assert.deepEqual(await waiting(kit), ['y']);
  });

  it('leaves subscriptions as they are that it can not end for good: 5.0 is told, 3.1.1 is disconnected', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const present = await rawClient(kit.broker, { clientId: 'present', ...RAW_PERSISTENT });
    const present4 = await rawClient(kit.broker, { clientId: 'present4', version: 4, clean: false });
    const other = await rawClient(kit.broker);
    for (const client of [present, present4, other]) await granted(client, 1, 'live');
    const writer = await rawClient(kit.broker);
    store.fault = 'rejects';
    writer.send(publish('kept/1', 'x', { qos: 1, messageId: 1 }));
    assert.equal(await acked(writer, 'puback'), 0x97);
    for (const client of [present, other]) client.send(unsubscribe(2, 'live', 'none'));
    assert.deepEqual((await present.next('unsuback')).granted, [0x83, 0x11]);
    assert.deepEqual((await other.next('unsuback')).granted, [0, 0x11], 'nothing of its session is kept');
    present4.send(unsubscribe(2, 'none'));
    await present4.next('unsuback');
    present4.send(unsubscribe(3, 'live'));
    assert.deepEqual(
      (await present4.closed()).map(({ cmd }) => cmd),
      ['connack', 'suback', 'unsuback']
    );
    writer.send(publish('live', 'y'));
    assert.equal(`${(await present.next('publish')).payload}`, 'y');
    assert.equal([...kit.broker.session('present4').subscriptions()].length, 1);
    await mended(kit, store);
    present.send(unsubscribe(3, 'live'));
    assert.deepEqual((await present.next('unsuback')).granted, [0]);
  });

  it('refuses the app what would change a session that is kept, and disconnects its client when that is kicked', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const will = { topic: 'gone', payload: 'x', properties: { willDelayInterval: 600 } };
    for (const clientId of ['away', 'here']) {
      const client = await kit.connect({ clientId, ...PERSISTENT, will });
      await client.subscribe({ topic: 'live', qos: 1 });
      if (clientId === 'away') await client.disconnect({ reasonCode: 4 });
    }
    await kit.connect({ clientId: 'passing' });
    const [away, here, passing] = ['away', 'here', 'passing'].map((clientId) => kit.broker.session(clientId));
    await kit.clock.advance('1s');
    const before = [...kit.broker.subscriptions()];
    store.fault = 'rejects';
    await assert.rejects(kit.broker.table('t').set('a', 1), { code: 'STORE_FAILED' });
    const refused = { code: 'STORE_FAILED' };
    for (const session of [away, here]) {
      assert.throws(() => session.subscribe('b'), refused);
      assert.throws(() => session.subscribe('live', { qos: 2 }), refused);
      assert.throws(() => session.unsubscribe('live'), refused);
      assert.equal(session.unsubscribe('none'), false);
    }
    assert.throws(() => away.discard(), refused);
    assert.throws(() => away.kick(), refused);
    assert.throws(() => away.kick({ session: 'keep', will: 'drop' }), refused);
    away.kick({ session: 'keep' }); // nothing comes of that
    assert.deepEqual([...kit.broker.subscriptions()], before);
    assert.throws(() => here.kick(), refused);
    assert.equal(here.state, 'disconnected', 'its client may do no more');
    assert.equal(passing.subscribe('b'), 0, 'nothing of it is kept');
    assert.equal(passing.unsubscribe('b'), true);
    passing.kick();
    assert.equal(passing.state, 'gone');
    await mended(kit, store);
    assert.deepEqual([...kit.broker.subscriptions()], before);
    assert.equal(away.subscribe('b', { qos: 1 }), 1);
    assert.equal(here.unsubscribe('live'), true);
    here.discard();
    away.kick();
    assert.deepEqual([away.state, here.state], ['gone', 'gone']);
    store.fault = 'rejects';
    await assert.rejects(kit.broker.table('t').set('a', 1), refused);
    for (const session of [away, here]) {
      session.kick(); // of what has ended nothing is to be changed
      session.discard();
      assert.equal(session.unsubscribe('live'), false);
      assert.throws(() => session.subscribe('b'), { code: 'SUBSCRIBE_REFUSED' });
    }
    await mended(kit, store);
  });

  for (const fault of FAULTS)
    it(`acknowledges no UNSUBSCRIBE whose commit ${fault}`, async () => {
      const { kit, store } = await stage();
      await using _ = kit;
      for (const version of [4, 5] as const) {
        const options = { clientId: `c${version}`, version, ...RAW_PERSISTENT };
        const client = await rawClient(kit.broker, options);
        await granted(client, 1, 'live');
        store.fault = fault;
        client.send(unsubscribe(2, 'live'));
        await client.closed();
        assert.deepEqual(
          client.received.filter(({ cmd }) => cmd === 'unsuback'),
          []
        );
        await mended(kit, store);
        const again = await rawClient(kit.broker, options);
        again.send(unsubscribe(2, 'live'));
        await again.next('unsuback');
        assert.deepEqual([...kit.broker.session(`c${version}`).subscriptions()], []);
      }
    });

  it('has no session for a client whose first CONNECT was not kept', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    for (const fault of FAULTS) {
      store.fault = fault;
      const options = { clientId: `c-${fault}`, clean: false, properties: RAW_PERSISTENT.properties };
      assert.equal((await refusedConnect(kit.broker, options)).reasonCode, 0x88);
      await mended(kit, store);
      const client = await rawClient(kit.broker, options);
      assert.equal(client.connack?.sessionPresent, false);
    }
  });

  it('leaves those connected whose queue it was reading, and goes on with it', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    for (let n = 0; n < 3_000; n++) void kit.broker.publish('kept/1', `${n}`, { qos: 1 });
    await kit.clock.settle();
    const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
    const got: string[] = [];
    reader.on('message', ({ payload }) => got.push(`${payload}`));
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await kit.clock.settle();
    await mended(kit, store);
    assert.deepEqual(
      got,
      Array.from({ length: 3_000 }, (_, n) => `${n}`)
    );
  });

  it('hands out once what was written twice, because the commit that failed was kept', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const writer = await rawClient(kit.broker);
    store.fault = 'applies';
    writer.send(
      publish('kept/1', 'refused', { qos: 1, messageId: 1 }),
      publish('kept/1', 'zero'),
      publish('kept/1', 'more')
    );
    assert.equal(await acked(writer, 'puback'), 0x97);
    await mended(kit, store);
    assert.deepEqual(await waiting(kit), ['more', 'zero']);
  });

  for (const fault of FAULTS)
    it(`retains what was retained before, not what it refused, when a commit ${fault}`, async () => {
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
      writer.send(publish('state/then', 'of QoS 0', { retain: true })); // nobody is told that this one was refused
      for (const _change of changes) assert.equal(await acked(writer, 'puback'), 0x97);
      const kept = ['both: before', 'deleted: before', 'replaced: before', 'then: of QoS 0'];
      assert.deepEqual(await retained(broker), kept);
      await mended(kit, store);
      assert.deepEqual(await retained(broker), kept);
      assert.deepEqual((await check(store)).findings, []);
      await using again = await createTestBroker({ store: store.inner, leakCheck: false });
      assert.deepEqual(await retained(again.broker), kept);
    });

  for (const fault of FAULTS)
    it(`remembers no more topics of retained messages than it may retain, and the store comes right, when commits ${fault}`, async () => {
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
      for (let round = 0; round < 10; round++) {
        for (let n = 0; n < 50; n++) writer.send(publish(`state/before/${n}`, '', { retain: true }));
        // those of the round before go, and more come than there is room for
        for (let n = 0; n < 300; n++) writer.send(publish(`state/${round - 1}/${n}`, '', { retain: true }));
        for (let n = 0; n < 300; n++)
          for (const payload of ['x', '']) writer.send(publish(`state/passing/${n}`, payload, { retain: true }));
        for (let n = 0; n < 300; n++) writer.send(publish(`state/${round}/${n}`, 'x', { retain: true }));
        for (let n = 0; n < 300; n++) writer.send(publish(`state/none/${n}`, '', { retain: true }));
        await turns();
        if (round === 9) {
          const noted = queryObjects(RetainedChange, { format: 'count' });
          assert.ok(noted <= 300, `${noted} topics noted`);
        }
        await kit.clock.advance('10s'); // it tries to write them
      }
      assert.ok(sizes.length > 8 && Math.max(...sizes) <= 200, `${sizes}`);
      await mended(kit, store);
      const kept = Array.from({ length: 100 }, (_, n) => `9/${n}: x`).sort();
      assert.deepEqual(await retained(broker), kept);
      await using again = await createTestBroker({ store: await copyOf(store), leakCheck: false });
      assert.deepEqual(await retained(again.broker), kept);
    });

  for (const fault of FAULTS)
    it(`does not gather delayed messages of QoS 0 that come and go, and leaves none in the store, when commits ${fault}`, async () => {
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
      await mended(kit, store);
      const copy = await copyOf(store);
      await copy.open();
      assert.deepEqual(await copy.read(Buffer.of(Kind.delayed), Buffer.of(Kind.delayed + 1), 1_000), []);
    });

  it('acknowledges no deletion of a retained message that stays, and undoes none of QoS 0 that came later', async () => {
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
    await mended(kit, store);
    assert.deepEqual(await retained(broker), ['a: before']);
    await using again = await createTestBroker({ store: await copyOf(store), leakCheck: false });
    assert.deepEqual(await retained(again.broker), ['a: before']);
  });

  for (const fault of FAULTS)
    it(`has in a table what was there before, not what it refused, when a commit ${fault}`, async () => {
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
      // these wait for the commit after that one, which is not to be had either
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
      await kit.clock.advance('5s'); // and what tries to write all that again fails as well
      await assert.rejects(table.set('set', 'refused'), { code: 'STORE_FAILED' });
      assert.deepEqual(new Map(table), kept);
      await mended(kit, store);
      assert.deepEqual(new Map(table), kept);
      await using again = await createTestBroker({ store: await copyOf(store), leakCheck: false });
      assert.deepEqual(new Map(again.broker.table('users')), kept);
      await table.set('set', 'after');
      assert.equal(await table.delete('deleted'), true);
      store.fault = fault;
      await assert.rejects(table.set('set', 'refused'), { code: 'STORE_FAILED' });
      assert.equal(table.get('set'), 'after', 'what was kept since is what is put back');
      assert.equal(table.has('deleted'), false);
      await mended(kit, store);
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
        await mended(kit, store);
        writer.send(publish(`$delayed/${delaySec}/kept/1`, 'accepted', { qos: 1, messageId: 1 }));
        assert.equal(await acked(writer, 'puback'), 0x10);
        await kit.clock.advance('6s');
        assert.deepEqual([got, await waiting(kit)], [['accepted'], ['accepted']]);
        await kit.clock.advance('1s');
        assert.equal(broker.metrics.gauge('messages.delayed'), 0);
        assert.deepEqual((await check(store)).findings, []);
      });

  it('publishes a delayed message when it is kept, not while its commit is under way', async () => {
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

  it('delivers what was accepted long before and comes due in a commit that fails', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    await kit.broker.publish({ topic: '$delayed/5/kept/1', payload: 'due', qos: 1 });
    store.fault = 'rejects';
    await kit.clock.advance('6s');
    await mended(kit, store);
    assert.deepEqual(await waiting(kit), ['due']);
  });

  it('delivers what waits at QoS 1 behind a message of QoS 2 that can not go out now', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    for (const [n, qos] of ([2, 1] as const).entries()) await kit.broker.publish('kept/1', `${n}`, { qos });
    await kit.clock.advance('1s');
    const read = store.read.bind(store);
    let fail = () => {};
    store.read = (from, to, limit) => {
      if (from[0] === Kind.segment) fail = store.failLater();
      return read(from, to, limit);
    };
    const reader = await rawClient(kit.broker, { clientId: 'reader', ...RAW_PERSISTENT });
    await turns();
    await reader.nothing();
    fail();
    assert.equal(`${(await reader.next('publish')).payload}`, '1');
    await mended(kit, store);
    assert.equal(`${(await reader.next('publish')).payload}`, '0');
  });

  it('hands out a retained message, accepted long before, whose turn came in a commit that failed', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    for (const n of [1, 2]) await kit.broker.publish(`state/${n}`, `${n}`, { qos: 2, retain: true });
    const properties = { sessionExpiryInterval: 3_600, receiveMaximum: 1 };
    const reader = await rawClient(kit.broker, { clientId: 'slow', clean: false, properties });
    assert.deepEqual(await granted(reader, 1, { topic: 'state/#', qos: 2 }), [2]);
    const { messageId = 0, payload } = await reader.next('publish');
    reader.send({ cmd: 'pubrec', messageId, reasonCode: 0 });
    assert.equal(await acked(reader, 'pubrel'), 0);
    store.fault = 'rejects';
    reader.send({ cmd: 'pubcomp', messageId, reasonCode: 0 });
    await reader.nothing();
    await mended(kit, store);
    assert.deepEqual([`${payload}`, `${(await reader.next('publish')).payload}`], ['1', '2']);
  });

  it('finishes flows that had begun when the store is back', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const reader = await rawClient(kit.broker, { clientId: 'reader', ...RAW_PERSISTENT });
    const writer = await rawClient(kit.broker, { clientId: 'writer', ...RAW_PERSISTENT });
    writer.send(publish('kept/1', 'one', { qos: 2, messageId: 1 }));
    assert.equal(await acked(writer, 'pubrec'), 0);
    const { messageId } = await reader.next('publish');
    store.fault = 'applies';
    writer.send({ cmd: 'pubrel', messageId: 1, reasonCode: 0 });
    reader.send({ cmd: 'pubrec', messageId: messageId as number, reasonCode: 0 });
    await turns();
    await writer.nothing();
    await reader.nothing();
    await mended(kit, store);
    assert.equal(await acked(writer, 'pubcomp'), 0);
    assert.equal(await acked(reader, 'pubrel'), 0);
    reader.send({ cmd: 'pubcomp', messageId: messageId as number, reasonCode: 0 });
    await reader.nothing();
    await writer.nothing();
  });

  for (const { name, leaves } of [
    { name: 'was closed for the first of them', leaves: false },
    { name: 'had gone before the commit failed', leaves: true }
  ])
    it(`takes QoS 2 messages that it could not keep as new ones from a client whose connection ${name}`, async () => {
      const { kit, store } = await stage();
      await using _ = kit;
      const options = { clientId: 'writer', version: 4, clean: false } as const;
      const writer = await rawClient(kit.broker, options);
      await kit.clock.advance('1s');
      const fail = store.failLater();
      for (const id of [1, 2, 3]) writer.send(publish('kept/1', `${id}`, { qos: 2, messageId: id }));
      await writer.nothing();
      if (leaves) writer.stream.destroy();
      await turns();
      fail();
      await writer.closed();
      await mended(kit, store);
      const again = await rawClient(kit.broker, options);
      for (const id of [1, 2, 3]) {
        again.send(publish('kept/1', `${id}`, { qos: 2, messageId: id, dup: true }));
        assert.equal(await acked(again, 'pubrec'), 0);
      }
      assert.deepEqual(await waiting(kit), ['1', '2', '3']);
    });

  it('does not take a QoS 2 message as new that was kept, and came again in a commit that fails', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const options = { clientId: 'writer', version: 4, clean: false } as const;
    const writer = await rawClient(kit.broker, options);
    writer.send(publish('kept/1', 'once', { qos: 2, messageId: 1 }));
    assert.equal(await acked(writer, 'pubrec'), 0);
    await kit.clock.advance('1s');
    const fail = store.failLater();
    writer.send(publish('kept/1', 'twice', { qos: 2, messageId: 2 }));
    writer.send(publish('kept/1', 'once', { qos: 2, messageId: 1, dup: true }));
    await writer.nothing();
    fail();
    await writer.closed();
    await mended(kit, store);
    const again = await rawClient(kit.broker, options);
    for (const [n, text] of ['once', 'twice'].entries()) {
      again.send(publish('kept/1', text, { qos: 2, messageId: n + 1, dup: true }));
      assert.equal(await acked(again, 'pubrec'), 0);
    }
    assert.deepEqual(await waiting(kit), ['once', 'twice']);
  });

  it('takes a QoS 2 message as new that it could not keep, on which a hook had decided when its client was gone', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    let decide = () => {};
    const unhook = kit.broker.hook(
      'publish',
      () => new Promise<undefined>((resolve) => (decide = () => resolve(undefined)))
    );
    const options = { clientId: 'writer', version: 4, clean: false } as const;
    const writer = await rawClient(kit.broker, options);
    writer.send(publish('kept/1', 'x', { qos: 2, messageId: 1 }));
    await turns();
    writer.stream.destroy();
    await kit.clock.advance('1s');
    store.fault = 'rejects';
    decide();
    await turns();
    await mended(kit, store);
    unhook();
    const again = await rawClient(kit.broker, options);
    again.send(publish('kept/1', 'x', { qos: 2, messageId: 1, dup: true }));
    assert.equal(await acked(again, 'pubrec'), 0);
    assert.deepEqual(await waiting(kit), ['x']);
  });

  it('delivers nothing that it refused, though another commit failed than the one that was to hold it', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const writer = await rawClient(kit.broker, { clientId: 'writer' });
    await kit.clock.advance('1s');
    const fail = store.failLater();
    const changed = assert.rejects(kit.broker.table('t').set('a', 1), { code: 'STORE_FAILED' });
    await turns();
    writer.send(publish('kept/1', 'refused', { qos: 2, messageId: 1 }));
    await turns();
    fail();
    await changed;
    assert.equal(await acked(writer, 'pubrec'), 0x97);
    await mended(kit, store);
    assert.deepEqual(await waiting(kit), []);
  });

  for (const fault of FAULTS)
    for (const version of [4, 5] as const)
      it(`hands the app once what came by QoS 2 of version ${version}, where the first commit ${fault}`, async () => {
        const { kit, store } = await stage();
        await using _ = kit;
        const got: string[] = [];
        kit.broker.subscribe('live', ({ payload }) => got.push(`${payload}`));
        const options = { clientId: 'writer', version, ...RAW_PERSISTENT };
        const writer = await rawClient(kit.broker, options);
        await kit.clock.advance('1s');
        store.fault = fault;
        writer.send(publish('live', 'x', { qos: 2, messageId: 1 }));
        if (version === 5) assert.equal(await acked(writer, 'pubrec'), 0x97);
        else await writer.closed();
        await mended(kit, store);
        assert.deepEqual(got, []);
        const again = version === 5 ? writer : await rawClient(kit.broker, options);
        again.send(publish('live', 'x', { qos: 2, messageId: 1, dup: version === 4 }));
        assert.equal(await acked(again, 'pubrec'), 0);
        again.send(publish('live', 'x', { qos: 2, messageId: 1, dup: true }));
        assert.equal(await acked(again, 'pubrec'), 0);
        again.send({ cmd: 'pubrel', messageId: 1, reasonCode: 0 });
        assert.equal(await acked(again, 'pubcomp'), 0);
        assert.deepEqual(got, ['x']);
      });

  it('does not gather what has been dropped from queues while nothing can be written', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    await kit.clock.advance('1s');
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    for (let n = 0; n < 30_000; n++) {
      void kit.broker.publish('kept/1', `${n}`);
      if (n % 100 === 0) await turns(1);
    }
    const left = queryObjects(KeptMessage, { format: 'count' });
    assert.ok(left < 11_000, `${left} in memory`);
    await mended(kit, store);
  });

  for (const qos of [0, 1] as const)
    it(`reads no more from those who publish with QoS ${qos} than maxUnwrittenBytes while a commit takes long`, async () => {
      const store = new FaultyStore();
      await using kit = await createTestBroker({
        store,
        leakCheck: false,
        maxUnwrittenBytes: 100_000,
        maxMqueueLen: 0
      });
      const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
      await reader.subscribe({ topic: 'kept/#', qos });
      await reader.disconnect();
      await kit.clock.advance('1s');
      const writer = await rawClient(kit.broker);
      const fail = store.failLater();
      const changed = assert.rejects(kit.broker.table('t').set('a', 1), { code: 'STORE_FAILED' });
      for (let n = 1; n <= 1_000; n++)
        writer.send(publish('kept/1', 'x'.repeat(1_000), qos === 0 ? {} : { qos, messageId: n }));
      await turns(100);
      const { mqueueLen } = kit.broker.session('reader').figures();
      assert.ok(mqueueLen > 90 && mqueueLen < 250, `${mqueueLen} taken`);
      fail();
      await changed;
      await mended(kit, store);
    });

  it('writes nothing to a store that another broker has written to meanwhile, and tells', async () => {
    const { kit, store, told } = await stage();
    const { broker, clock } = kit;
    store.fault = 'rejects';
    await assert.rejects(async () => broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await turns();
    await using other = await createTestBroker({ store: store.inner, leakCheck: false });
    for (const n of ['1', '2']) await other.broker.publish('state/1', n, { qos: 1, retain: true });
    await other.broker.stop();
    await mended(kit, store);
    await clock.advance('5m');
    assert.deepEqual(told.slice(3), ['error: STORE_CHANGED']);
    await assert.rejects(async () => broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await assert.rejects(broker.stop());
    await assert.rejects(broker.start(), { code: 'STORE_CHANGED' });
    await using again = await createTestBroker({ store: store.inner, leakCheck: false });
    assert.deepEqual(await retained(again.broker), ['1: 2']);
    await kit[Symbol.asyncDispose]();
  });

  it('goes on trying while the store does not open, more and more rarely, and tells once', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    store.isShut = true;
    const before = store.opens;
    await kit.clock.advance('10m');
    const tries = store.opens - before;
    assert.ok(tries >= 60 && tries < 75, `${tries} tries in ten minutes`);
    store.isShut = false; // it opens, but there is no room
    await kit.clock.advance('1m');
    assert.deepEqual(told, ['alarm: alert', 'error: STORE_FAILED', 'failed: STORE_FAILED']);
    await mended(kit, store);
    assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
  });

  it('lets time go on where a commit fails while the segments of an ended session are swept', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    await kit.broker.publish('kept/1', 'x', { qos: 1 });
    await kit.clock.advance('1s');
    const read = store.read.bind(store);
    const { promise: mayRead, resolve: readOn } = held<void>();
    const { promise: isReading, resolve: noteReading } = held<void>();
    store.read = async (from, to, limit) => {
      const entries = await read(from, to, limit);
      if (from[0] !== Kind.segment) return entries;
      noteReading();
      await mayRead;
      return entries;
    };
    kit.broker.session('reader').discard();
    await isReading;
    store.fault = 'rejects';
    await assert.rejects(kit.broker.table('t').set('a', 1), { code: 'STORE_FAILED' });
    readOn();
    await turns();
    await mended(kit, store);
    await kit.clock.advance('1s');
    assert.deepEqual(await read(Buffer.of(Kind.segment), Buffer.of(Kind.segment + 1), 10), []);
  });

  it('tells of a commit that takes long, acknowledges nothing, and lets QoS 0 go on', async (t) => {
    const store = new FaultyStore();
    const clock = new ManualClock();
    const broker = new Broker({ store, clock, timerResolution: 1, memoryHighWatermark: 0 });
    const told: unknown[] = [];
    broker.on('error', ({ error }) => told.push((error as Error & { code: string }).code));
    await broker.start();
    const reader = await rawClient(broker, { clientId: 'reader', ...RAW_PERSISTENT });
    assert.deepEqual(await granted(reader, 1, { topic: 'kept/#', qos: 1 }), [1]);
    const writer = await rawClient(broker);
    store.fault = 'hangs';
    writer.send(publish('kept/1', 'x', { qos: 1, messageId: 1 }));
    await writer.nothing();
    clock.advance(9_000);
    assert.deepEqual(told, []);
    clock.advance(2_000);
    assert.deepEqual(told, ['STORE_SLOW']);
    writer.send(publish('kept/1', 'y', { qos: 1, messageId: 2 }), publish('kept/1', 'z'));
    await writer.nothing();
    const got = await payloads(reader);
    assert.ok(got.includes('z'), `${got}`);
    const { setTimeout } = timers;
    t.mock.method(timers, 'setTimeout', (run: () => void) => setTimeout(run, 0)); // it waits in real time for a disk
    syncBuiltinESMExports();
    try {
      await assert.rejects(broker.stop({ timeoutMs: 0 }), ({ errors }: AggregateError) => {
        assert.equal(errors[0].code, 'STORE_FAILED');
        assert.match(errors[0].message, /^the disk: does not close/);
        return true;
      });
    } finally {
      t.mock.restoreAll();
      syncBuiltinESMExports();
    }
  });

  it('says which commits are missing that were kept, and leaves the gap for the next start', async () => {
    const { kit, store, told } = await stage();
    await kit.broker.publish('kept/1', 'x', { qos: 1 });
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'y', { qos: 1 }), { code: 'STORE_FAILED' });
    await turns();
    // the last commit is lost, as what LevelDB took after a full disk was
    await store.inner.open();
    const commits = await store.inner.read(Buffer.of(Kind.commit), Buffer.of(Kind.commit + 1), 1_000);
    const batch = new Batch();
    batch.delete((commits.at(-1) as { key: Buffer }).key);
    await store.inner.commit(batch);
    await mended(kit, store);
    assert.deepEqual(told.slice(3), ['error: STORE_CORRUPT', 'alarm: clear', 'recovered']);
    await kit[Symbol.asyncDispose]();
    assert.deepEqual(
      (await checkStore(store)).findings.map(({ code }) => code),
      ['COMMITS_MISSING']
    );
  });

  it('starts again on the same object after a stop that could not write', async () => {
    const { kit, store } = await stage();
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await assert.rejects(kit.broker.stop({ timeoutMs: 0 }), /not everything could be closed/);
    store.fault = undefined;
    await kit.broker.start();
    assert.deepEqual(await kit.broker.publish('kept/1', 'y', { qos: 1 }), { receivers: 1 });
    assert.deepEqual(await waiting(kit), ['y']);
    await kit[Symbol.asyncDispose]();
  });
});

/** Go on until it succeeds; time passes while it is under way, and each time it does not succeed. */
async function insist<T>(kit: TestBroker, what: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    let isSettled = false;
    const done = what().finally(() => {
      isSettled = true;
    });
    done.catch(() => undefined);
    for (let seconds = 0; seconds < 30 && !isSettled; seconds++) {
      await turns();
      if (!isSettled) await kit.clock.advance('1s');
    }
    try {
      return await done;
    } catch (error) {
      if (tries === 20) throw error;
      await kit.clock.advance('1s');
    }
  }
}

async function check(store: FaultyStore) {
  return checkStore(await copyOf(store));
}

/** What is in it now. */
async function copyOf(store: FaultyStore): Promise<Store> {
  const copy = memoryStore();
  const entries = await store.read(Buffer.of(0), Buffer.alloc(8, 0xff), 1e9);
  await change(copy, (batch) => {
    for (const { key, value } of entries) batch.put(key, value);
  });
  return copy;
}

describe('A store that fails at one commit, whichever', () => {
  for (const fault of FAULTS) {
    it(`costs no message that was acknowledged, and repeats none of QoS 2, when that commit ${fault}`, async () => {
      let commits = Infinity;
      for (let n = 2; n <= commits; n++) {
        const store = new FaultyStore();
        store.faultAt.set(n, fault);
        const where = `commit ${n} ${fault}`;
        const kit = await createTestBroker({ store, leakCheck: false });
        kit.broker.on('error', () => undefined);
        const got = { q1: [] as string[], q2: [] as string[] };
        const take = (client: Client) =>
          client.on('message', ({ topic, payload }) => got[topic as 'q1' | 'q2'].push(`${payload}`));
        const connect = async (clientId: string) => {
          const client = await insist(kit, () => kit.connect({ clientId, ...PERSISTENT }));
          take(client);
          return client;
        };
        let reader = await connect('reader');
        await insist(kit, async () => {
          const codes = await reader
            .subscribe([
              { topic: 'q1', qos: 1 },
              { topic: 'q2', qos: 2 }
            ])
            .catch(async (error) => {
              reader = await connect('reader');
              throw error;
            });
          assert.deepEqual([...codes], [1, 2]);
        });
        const writer = await connect('writer');
        const write = async (name: string) => {
          for (const qos of [1, 2] as const)
            await insist(kit, () => writer.publish(`q${qos}`, name, { qos }) as Promise<unknown>);
        };
        for (const name of ['a', 'b']) await write(name);
        await reader.disconnect();
        for (const name of ['c', 'd']) await write(name);
        reader = await connect('reader');
        await write('e');
        await kit.clock.advance('20s');
        await reader.disconnect();
        await writer.disconnect();
        await kit.clock.advance('20s');
        assert.deepEqual([...new Set(got.q1)], ['a', 'b', 'c', 'd', 'e'], where);
        assert.deepEqual(got.q2, ['a', 'b', 'c', 'd', 'e'], where);
        assert.deepEqual((await check(store)).findings, [], where);
        assert.equal(kit.broker.session('reader').figures().mqueueLen, 0, where);
        if (n > store.commits) break;
        commits = Math.max(store.commits, n);
        await kit[Symbol.asyncDispose]();
      }
    });
  }
});
