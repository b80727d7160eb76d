import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { queryObjects } from 'node:v8';
import { Kind } from '../../lib/store/keys.ts';
import { PersistedMessage } from '../../lib/store/segment.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { sized } from '../support/samples.ts';
import { granted, publish, turns } from '../support/wire.ts';
import { acked, FAULTS, PERSISTENT, RAW_PERSISTENT, recover, stage, waiting } from './failing-support.ts';
import { FaultyStore } from './faulty-store.ts';

describe('Messages of persistent sessions, when a commit fails', () => {
  it('keeps the connections of clients whose queue it was reading, and continues with it', async () => {
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
    await recover(kit, store);
    assert.deepEqual(
      got,
      Array.from({ length: 3_000 }, (_, n) => `${n}`)
    );
  });

  it('sends once a message that was written twice because the failed commit was stored', async () => {
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
    await recover(kit, store);
    assert.deepEqual(await waiting(kit), ['more', 'zero']);
  });

  for (const when of ['before', 'when'] as const)
    it(`does not send a refused message to an in-memory session whose window opens ${when} the store is back`, async () => {
      const { kit, store } = await stage();
      await using _ = kit;
      const reader = await rawClient(kit.broker, { properties: { receiveMaximum: 1 } });
      assert.deepEqual(await granted(reader, 1, { topic: 'live/#', qos: 2 }), [2]);
      await kit.broker.publish('live/1', 'first', { qos: 1 });
      const { messageId = 0 } = await reader.next('publish');
      const options = { clientId: 'writer', version: 4, clean: false } as const;
      const writer = await rawClient(kit.broker, options);
      await kit.clock.advance('1s');
      store.fault = 'rejects';
      writer.send(publish('live/1', 'again', { qos: 2, messageId: 1 }));
      await writer.closed();
      if (when === 'when') await recover(kit, store);
      reader.send({ cmd: 'puback', messageId, reasonCode: 0 });
      await turns();
      await recover(kit, store);
      await reader.nothing();
      const back = await rawClient(kit.broker, options);
      back.send(publish('live/1', 'again', { qos: 2, messageId: 1, dup: true }));
      assert.equal(await acked(back, 'pubrec'), 0);
      assert.equal(`${(await reader.next('publish')).payload}`, 'again');
    });

  it('does not send a refused message again if its client reconnects before it has been removed from memory', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
    const writer = await rawClient(kit.broker, { clientId: 'writer', ...RAW_PERSISTENT });
    await kit.clock.advance('1s');
    const fail = store.failLater();
    writer.send(publish('kept/1', 'refused', { qos: 2, messageId: 1 }));
    await turns();
    reader.destroy();
    await turns();
    fail();
    assert.equal(await acked(writer, 'pubrec'), 0x97);
    // While the broker retries, the session receives another message, so its record has to be written again.
    const commit = store.commit.bind(store);
    const tried = new Promise<void>((resolve) => {
      store.commit = async (batch) => {
        store.commit = commit;
        void kit.broker.publish('kept/2', 'zero');
        await turns();
        await commit(batch);
        resolve();
      };
    });
    const advanced = kit.clock.advance('1s');
    await tried;
    const back = await rawClient(kit.broker, { clientId: 'reader', ...RAW_PERSISTENT });
    await advanced;
    assert.deepEqual(
      (await back.rest()).map((packet) => packet.cmd === 'publish' && `${packet.payload}`),
      ['zero']
    );
  });

  it('delivers a message that was accepted long before and becomes due in a commit that fails', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    await kit.broker.publish({ topic: '$delayed/5/kept/1', payload: 'due', qos: 1 });
    store.fault = 'rejects';
    await kit.clock.advance('6s');
    await recover(kit, store);
    assert.deepEqual(await waiting(kit), ['due']);
  });

  it('delivers QoS 1 messages queued after a QoS 2 message that cannot be sent now', async () => {
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
    await recover(kit, store);
    assert.equal(`${(await reader.next('publish')).payload}`, '0');
  });

  it('delivers a message that a listener causes while such a QoS 1 message is sent', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    for (const [n, qos] of ([2, 1] as const).entries()) await kit.broker.publish('kept/1', `${n}`, { qos });
    await kit.clock.advance('1s');
    await kit.connect({ clientId: 'dying', will: { topic: 'kept/will', payload: 'the will', qos: 2 } });
    kit.broker.on('message.delivered', ({ message }) => {
      if (store.fault !== undefined && `${message.payload}` === '1') kit.broker.sessions.get('dying').kick();
    });
    const read = store.read.bind(store);
    store.read = (from, to, limit) => {
      if (from[0] === Kind.segment) store.fault = 'rejects';
      return read(from, to, limit);
    };
    const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
    const got: string[] = [];
    reader.on('message', ({ payload }) => got.push(`${payload}`));
    await kit.clock.advance('1s');
    assert.deepEqual(got, ['1']);
    await recover(kit, store);
    assert.deepEqual(got, ['1', '0', 'the will']);
  });

  it('sends a retained message, accepted long before, whose turn came in a commit that failed', async () => {
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
    await recover(kit, store);
    assert.deepEqual([`${payload}`, `${(await reader.next('publish')).payload}`], ['1', '2']);
  });

  for (const by of ['a client', 'the app'] as const)
    it(`hands over to a stored member, in a commit that fails, what ${by} published long before`, async () => {
      const { kit, store } = await stage();
      await using _ = kit;
      const publisher = by === 'the app' ? kit.broker : await kit.connect({ clientId: 'publisher' });
      const worker = await rawClient(kit.broker, { clientId: 'worker' });
      assert.deepEqual(await granted(worker, 1, { topic: '$share/workers/jobs', qos: 1 }), [1]);
      const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
      await reader.subscribe({ topic: '$share/workers/jobs', qos: 1 });
      await reader.disconnect();
      await kit.clock.advance('1s');
      for (const payload of ['1', '2', '3']) await publisher.publish('jobs', payload, { qos: 1 });
      await kit.clock.advance('5s');
      store.fault = 'rejects';
      kit.broker.sessions.get('worker').kick();
      await kit.clock.advance('1s');
      await recover(kit, store);
      assert.deepEqual(await waiting(kit), ['1', '2', '3']);
    });

  it('completes flows in progress when the store is back', async () => {
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
    await recover(kit, store);
    assert.equal(await acked(writer, 'pubcomp'), 0);
    assert.equal(await acked(reader, 'pubrel'), 0);
    reader.send({ cmd: 'pubcomp', messageId: messageId as number, reasonCode: 0 });
    await reader.nothing();
    await writer.nothing();
  });

  for (const { name, leaves } of [
    { name: 'was closed for the first of them', leaves: false },
    { name: 'had ended before the commit failed', leaves: true }
  ])
    it(`treats QoS 2 messages that it could not persist as new from a client whose connection ${name}`, async () => {
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
      await recover(kit, store);
      const again = await rawClient(kit.broker, options);
      for (const id of [1, 2, 3]) {
        again.send(publish('kept/1', `${id}`, { qos: 2, messageId: id, dup: true }));
        assert.equal(await acked(again, 'pubrec'), 0);
      }
      assert.deepEqual(await waiting(kit), ['1', '2', '3']);
    });

  it('does not treat a persisted QoS 2 message as new that was sent again in a commit that fails', async () => {
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
    await recover(kit, store);
    const again = await rawClient(kit.broker, options);
    for (const [n, text] of ['once', 'twice'].entries()) {
      again.send(publish('kept/1', text, { qos: 2, messageId: n + 1, dup: true }));
      assert.equal(await acked(again, 'pubrec'), 0);
    }
    assert.deepEqual(await waiting(kit), ['once', 'twice']);
  });

  it('treats as new a QoS 2 message that it could not persist, after a hook had decided on it when its client was disconnected', async () => {
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
    await recover(kit, store);
    unhook();
    const again = await rawClient(kit.broker, options);
    again.send(publish('kept/1', 'x', { qos: 2, messageId: 1, dup: true }));
    assert.equal(await acked(again, 'pubrec'), 0);
    assert.deepEqual(await waiting(kit), ['x']);
  });

  it('delivers no message that it refused, even if a different commit failed than its own', async () => {
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
    await recover(kit, store);
    assert.deepEqual(await waiting(kit), []);
  });

  for (const fault of FAULTS)
    for (const version of [4, 5] as const)
      it(`delivers to the app once what was received at QoS 2 from version ${version}, when the first commit ${fault}`, async () => {
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
        await recover(kit, store);
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

  it('leaves nothing in flight of a message that was refused after its receiver had disconnected', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT, acknowledge: 'manual' });
    const writer = await kit.connect({ clientId: 'writer', ...PERSISTENT });
    await kit.clock.advance('1s');
    const fail = store.failLater();
    const sent = assert.rejects(writer.publish('kept/1', 'refused', { qos: 2 }));
    await turns();
    reader.destroy();
    await turns();
    fail();
    await sent;
    await recover(kit, store);
    await kit.clock.advance('1s');
    assert.equal(kit.broker.sessions.get('reader').counters().inflight, 0);
    assert.deepEqual(await waiting(kit), []);
  });

  it('does not accumulate messages dropped from queues while nothing can be written', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    await kit.clock.advance('1s');
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    for (let n = 0; n < sized(15_000, 30_000); n++) {
      void kit.broker.publish('kept/1', `${n}`);
      if (n % 100 === 0) await turns(1);
    }
    const left = queryObjects(PersistedMessage, { format: 'count' });
    assert.ok(left < 11_000, `${left} in memory`);
    await recover(kit, store);
  });

  it('does not accumulate completed messages while nothing can be written', async () => {
    const store = new FaultyStore();
    await using kit = await createTestBroker({ store, leakCheck: false, upgradeQos: true });
    const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
    await reader.subscribe({ topic: 'kept/#', qos: 1 });
    await kit.clock.advance('1s');
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    const before = queryObjects(PersistedMessage, { format: 'count' });
    for (let n = 0; n < sized(1_000, 3_000); n++) {
      void kit.broker.publish('kept/1', `${n}`);
      if (n % 10 === 0) await turns(5);
    }
    await turns(10);
    const { inflight, mqueueLen } = kit.broker.sessions.get('reader').counters();
    assert.deepEqual({ inflight, mqueueLen }, { inflight: 0, mqueueLen: 0 });
    const left = queryObjects(PersistedMessage, { format: 'count' }) - before;
    assert.ok(left < 200, `${left} in memory`);
    await recover(kit, store);
  });

  it('limits the queue of a connected, slow client while nothing can be written', async () => {
    const store = new FaultyStore();
    await using kit = await createTestBroker({ store, leakCheck: false, maxMqueueLen: 2_500 });
    const { broker } = kit;
    const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
    await reader.subscribe({ topic: 'kept/#', qos: 1 });
    await reader.disconnect();
    for (let n = 0; n < 2_000; n++) {
      void broker.publish('kept/1', `${n}`.padEnd(4_000), { qos: 1 });
      if (n % 50 === 0) await kit.clock.advance('1s');
    }
    for (let n = 0; n < 10; n++) void broker.publish('kept/1', `zero ${n}`, { qos: 0 });
    await kit.clock.advance('1s');
    const properties = { sessionExpiryInterval: 3_600, receiveMaximum: 1 };
    await rawClient(broker, { clientId: 'reader', clean: false, properties });
    await kit.clock.advance('1s');
    store.fault = 'rejects';
    await assert.rejects(async () => broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    const inMemory = queryObjects(PersistedMessage, { format: 'count' });
    for (let n = 0; n < sized(5_000, 10_000); n++) {
      void broker.publish('kept/1', `${n}`);
      if (n % 100 === 0) await turns(2);
    }
    await turns(2);
    const { mqueueLen } = broker.sessions.get('reader').counters();
    assert.ok(mqueueLen >= 2_500 && mqueueLen <= 2_540, `${mqueueLen} messages are queued`);
    const more = queryObjects(PersistedMessage, { format: 'count' }) - inMemory;
    assert.ok(more < 2_700, `${more} more in memory`);
    await recover(kit, store);
    assert.equal(broker.sessions.get('reader').counters().mqueueLen, mqueueLen);
  });

  it('stops reading from clients whose states exceed maxUnwrittenBytes while a commit is in progress', async () => {
    const store = new FaultyStore();
    await using kit = await createTestBroker({ store, leakCheck: false, maxUnwrittenBytes: 65_536 });
    const writers = await Promise.all(
      Array.from({ length: sized(20, 40) }, (_, n) => rawClient(kit.broker, { clientId: `${n}`, ...RAW_PERSISTENT }))
    );
    // Every 16th packet id: 8 KiB each.
    const all = (sent: number) =>
      writers.map((_, n) => kit.broker.sessions.get(`${n}`).counters().awaitingRel === sent);
    for (const writer of writers)
      for (let id = 1; id < 65_536; id += 16) {
        writer.send(publish('t', '', { qos: 2, messageId: id }));
        if (id % 4_096 === 1) await turns(1);
      }
    await kit.clock.advance('1s');
    assert.deepEqual(all(4_096), Array(writers.length).fill(true));
    const fail = store.failLater();
    for (let id = 2; id <= 4; id++) {
      for (const writer of writers) writer.send(publish('t', '', { qos: 2, messageId: id }));
      await turns(3);
    }
    const count = all(4_099).filter((isTaken) => isTaken).length;
    assert.ok(count < 16, `all ${count} packets were read`);
    fail();
    await recover(kit, store);
  });

  for (const qos of [0, 1] as const)
    it(`stops reading from QoS ${qos} publishers above maxUnwrittenBytes while a commit is in progress`, async () => {
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
      const { mqueueLen } = kit.broker.sessions.get('reader').counters();
      assert.ok(mqueueLen > 90 && mqueueLen < 250, `${mqueueLen} messages read`);
      fail();
      await changed;
      await recover(kit, store);
    });
});
