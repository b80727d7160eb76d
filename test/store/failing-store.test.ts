import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { granted, publish, refusedConnect, subscribe, turns, unsubscribe, withResolvers } from '../support/wire.ts';
import { acked, check, FAULTS, PERSISTENT, RAW_PERSISTENT, recover, stage, waiting } from './failing-support.ts';

describe('A broker whose store fails', () => {
  it('STORE_FAILED: retries without closing the store if the store says that nothing was written (isUntouched)', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    const writer = await rawClient(kit.broker, { clientId: 'writer' });
    const { opens } = store;
    store.fault = 'refuses';
    writer.send(publish('kept/1', 'refused', { qos: 1, messageId: 1 }));
    assert.equal(await acked(writer, 'puback'), 0x97);
    assert.deepEqual(told, ['alarm: alert', 'error: STORE_FAILED', 'failed: STORE_FAILED']);
    await recover(kit, store);
    assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
    assert.equal(store.opens, opens);
    writer.send(publish('kept/1', 'after', { qos: 1, messageId: 2 }));
    assert.equal(await acked(writer, 'puback'), 0);
    assert.deepEqual(await waiting(kit), ['after']);
  });

  for (const fault of FAULTS) {
    it(`acknowledges nothing that is not committed, and recovers, when a commit ${fault}`, async () => {
      const { kit, store, told } = await stage();
      await using _ = kit;
      const writer = await rawClient(kit.broker, { clientId: 'writer' });
      writer.send(publish('kept/1', 'before', { qos: 1, messageId: 1 }));
      assert.equal(await acked(writer, 'puback'), 0);
      store.fault = fault;
      // The messages of the failing commit, and those that arrive while nothing can be written.
      for (const id of [2, 4]) {
        writer.send(publish('kept/1', `lost ${id}`, { qos: 1, messageId: id }));
        assert.equal(await acked(writer, 'puback'), 0x97);
        writer.send(publish('kept/1', `lost ${id + 1}`, { qos: 2, messageId: id + 1 }));
        assert.equal(await acked(writer, 'pubrec'), 0x97);
      }
      assert.deepEqual(told, ['alarm: alert', 'error: STORE_FAILED', 'failed: STORE_FAILED']);
      await recover(kit, store);
      assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
      writer.send(publish('kept/1', 'after', { qos: 2, messageId: 5 }));
      assert.equal(await acked(writer, 'pubrec'), 0);
      assert.deepEqual(await waiting(kit), ['after', 'before']);
      await kit.clock.advance('1s');
      assert.deepEqual((await check(store)).findings, []);
    });

    it(`closes connections of 3.1.1 whose messages are not committed, when a commit ${fault}`, async () => {
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
      await recover(kit, store);
      const again = await rawClient(kit.broker, { clientId: 'writer', version: 4 });
      again.send(publish('kept/1', 'one', { qos: 1, messageId: 1, dup: true }));
      assert.equal(await acked(again, 'puback'), 0);
      assert.deepEqual(await waiting(kit), ['one']);
    });
  }

  it('continues everything that need not be persisted', async () => {
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
    await recover(kit, store);
  });

  it('refuses with a code what would have to be persisted', async () => {
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
        'its session cannot be ended either'
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
    assert.equal(kit.broker.table('t').has('a'), false, 'it has no effect');
    for await (const _message of kit.broker.retained.match('state')) assert.fail('it is not retained');
    writer.send(publish('jobs', 'x', { qos: 1, messageId: 1 }));
    assert.equal(await acked(writer, 'puback'), 0x97, 'a member of the group would have to persist it');
    await recover(kit, store);
    assert.deepEqual(await kit.broker.publish('kept/1', 'y', { qos: 1 }), { receivers: 1 });
    await kit.broker.table('t').set('a', 1);
    assert.deepEqual(await waiting(kit), ['y']);
  });

  it('keeps subscriptions that it cannot remove permanently: a 5.0 client receives a code, a 3.1.1 client is disconnected', async () => {
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
    assert.deepEqual((await other.next('unsuback')).granted, [0, 0x11], 'its session is not persisted');
    present4.send(unsubscribe(2, 'none'));
    await present4.next('unsuback');
    present4.send(unsubscribe(3, 'live'));
    assert.deepEqual(
      (await present4.closed()).map(({ cmd }) => cmd),
      ['connack', 'suback', 'unsuback']
    );
    writer.send(publish('live', 'y'));
    assert.equal(`${(await present.next('publish')).payload}`, 'y');
    assert.equal([...kit.broker.sessions.get('present4').subscriptions()].length, 1);
    await recover(kit, store);
    present.send(unsubscribe(3, 'live'));
    assert.deepEqual((await present.next('unsuback')).granted, [0]);
  });

  for (const version of [4, 5] as const)
    it(`answers SUBSCRIBE and UNSUBSCRIBE of version ${version} at once if they change nothing, even if the session has something to write`, async () => {
      const { kit, store } = await stage();
      await using _ = kit;
      const client = await rawClient(kit.broker, { clientId: 'c', version, ...RAW_PERSISTENT });
      await granted(client, 1, { topic: 'mine', qos: 1 });
      await kit.broker.publish('mine', 'x', { qos: 1 });
      const { messageId = 0 } = await client.next('publish');
      await kit.clock.advance('1s');
      store.fault = 'rejects';
      await assert.rejects(kit.broker.table('t').set('a', 1));
      client.send({ cmd: 'puback', messageId, reasonCode: 0 });
      assert.deepEqual(await granted(client, 2, 'other'), [version === 5 ? 0x97 : 0x80]);
      client.send(unsubscribe(3, 'other'));
      assert.deepEqual((await client.next('unsuback')).granted, version === 5 ? [0x11] : []);
      await kit.clock.advance('1m');
      assert.equal(client.isClosed, false);
      await recover(kit, store);
      assert.deepEqual(await granted(client, 4, 'other'), [0]);
    });

  it('does not report a subscription that the app has removed as missing until the removal is committed', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const client = await rawClient(kit.broker, { clientId: 'c', ...RAW_PERSISTENT });
    await granted(client, 1, 'live');
    await kit.clock.advance('1s');
    store.fault = 'rejects';
    kit.broker.sessions.get('c').unsubscribe('live');
    await turns();
    client.send(unsubscribe(2, 'live', 'none'));
    assert.deepEqual((await client.next('unsuback')).granted, [0x83, 0x11]);
    await recover(kit, store);
    client.send(unsubscribe(3, 'live', 'none'));
    assert.deepEqual((await client.next('unsuback')).granted, [0x11, 0x11]);
  });

  it('does not acknowledge a SUBSCRIBE that was granted in part before a commit failed', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const answer = withResolvers<boolean>();
    kit.broker.hook('authorizeSubscribe', ({ filter }) => (filter === 'second' ? answer.promise : true));
    const client = await rawClient(kit.broker, { clientId: 'c', ...RAW_PERSISTENT });
    await kit.clock.advance('1s');
    store.fault = 'rejects';
    client.send(subscribe(1, ['first', 'second']));
    await turns();
    answer.resolve(true);
    const packets = await client.closed();
    assert.deepEqual(
      packets.map(({ cmd }) => cmd),
      ['connack', 'disconnect']
    );
    await recover(kit, store);
  });

  it('refuses changes of a persistent session by the app, and disconnects its client when the app kicks it', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const will = { topic: 'gone', payload: 'x', properties: { willDelayInterval: 600 } };
    for (const clientId of ['away', 'here']) {
      const client = await kit.connect({ clientId, ...PERSISTENT, will });
      await client.subscribe({ topic: 'live', qos: 1 });
      if (clientId === 'away') await client.disconnect({ reasonCode: 4 });
    }
    await kit.connect({ clientId: 'passing' });
    const [away, here, passing] = ['away', 'here', 'passing'].map((clientId) => kit.broker.sessions.get(clientId));
    await kit.clock.advance('1s');
    const before = (await kit.broker.directory.subscriptions()).entries;
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
    away.kick({ session: 'keep' }); // this has no effect
    assert.deepEqual((await kit.broker.directory.subscriptions()).entries, before);
    assert.throws(() => here.kick(), refused);
    assert.equal(here.state, 'disconnected', 'its client is disconnected');
    assert.equal(passing.subscribe('b'), 0, 'nothing of it is persisted');
    assert.equal(passing.unsubscribe('b'), true);
    passing.kick();
    assert.equal(passing.state, 'gone');
    await recover(kit, store);
    assert.deepEqual((await kit.broker.directory.subscriptions()).entries, before);
    assert.equal(away.subscribe('b', { qos: 1 }), 1);
    assert.equal(here.unsubscribe('live'), true);
    here.discard();
    away.kick();
    assert.deepEqual([away.state, here.state], ['gone', 'gone']);
    store.fault = 'rejects';
    await assert.rejects(kit.broker.table('t').set('a', 1), refused);
    for (const session of [away, here]) {
      session.kick(); // an ended session must not change
      session.discard();
      assert.equal(session.unsubscribe('live'), false);
      assert.throws(() => session.subscribe('b'), { code: 'SUBSCRIBE_REFUSED' });
    }
    await recover(kit, store);
  });

  for (const fault of FAULTS)
    it(`does not acknowledge an UNSUBSCRIBE whose commit ${fault}`, async () => {
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
        await recover(kit, store);
        const again = await rawClient(kit.broker, options);
        again.send(unsubscribe(2, 'live'));
        await again.next('unsuback');
        assert.deepEqual([...kit.broker.sessions.get(`c${version}`).subscriptions()], []);
      }
    });

  it('keeps no session for a client whose first CONNECT was not committed', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    for (const fault of FAULTS) {
      store.fault = fault;
      const options = { clientId: `c-${fault}`, clean: false, properties: RAW_PERSISTENT.properties };
      assert.equal((await refusedConnect(kit.broker, options)).reasonCode, 0x88);
      await recover(kit, store);
      const client = await rawClient(kit.broker, options);
      assert.equal(client.connack?.sessionPresent, false);
    }
  });

  it('ends the session of a client that disconnected before its first CONNECT failed to be committed, and publishes no will of it', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const wills: string[] = [];
    kit.broker.subscribe('will', ({ payload }) => wills.push(`${payload}`));
    const will = { topic: 'will', payload: Buffer.from('x'), qos: 1, retain: false } as const;
    for (const sessionExpiryInterval of [0, 0xffff_ffff]) {
      await kit.clock.advance('1s');
      const fail = store.failLater();
      const client = await rawClient(kit.broker, { connect: false });
      client.send(connectPacket({ clientId: 'c', clean: false, will, properties: { sessionExpiryInterval } }));
      await turns();
      client.cut();
      await turns();
      fail();
      await turns();
      await recover(kit, store);
      assert.equal(kit.broker.sessions.has('c'), false);
      assert.deepEqual(wills, []);
    }
    await kit.clock.advance('1s');
    assert.deepEqual((await check(store)).findings, []);
  });

  it('publishes no will of a client that was taken over before its CONNACK', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const wills: string[] = [];
    kit.broker.subscribe('will', ({ payload }) => wills.push(`${payload}`));
    const will = { topic: 'will', payload: Buffer.from('x'), qos: 1, retain: false } as const;
    await kit.clock.advance('1s');
    const fail = store.failLater();
    const first = await rawClient(kit.broker, { connect: false });
    first.send(connectPacket({ clientId: 'c', will, ...RAW_PERSISTENT }));
    await turns();
    const second = await rawClient(kit.broker, { connect: false });
    second.send(connectPacket({ clientId: 'c', ...RAW_PERSISTENT }));
    await turns();
    fail();
    await recover(kit, store);
    assert.equal(kit.broker.sessions.has('c'), false);
    assert.deepEqual(wills, []);
  });
});
