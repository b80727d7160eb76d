import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import type { Client } from '../../lib/client/client.ts';
import { DISCONNECT_REASONS } from '../../lib/events/reasons.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { Lives, PERSISTENT, turns } from './support.ts';

const HOUR = 3_600_000;

async function isPresent(lives: Lives, clientId: string): Promise<boolean> {
  const client = await lives.connect({ clientId, ...PERSISTENT });
  return client.connack.sessionPresent;
}

describe('A persisted session', () => {
  it('restores a session after a crash, and not if it expired while no process was running', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    await lives.leave('b', 'a/#');
    await lives.crash(HOUR / 2);
    assert.equal(await isPresent(lives, 'a'), true);
    await lives.crash(HOUR / 2 + 1000);
    assert.equal(await isPresent(lives, 'b'), false, 'b was offline for an hour');
    assert.equal(await isPresent(lives, 'a'), true, 'a was connected half an hour ago');
  });

  it('expires a session after its remaining expiry interval', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    await lives.crash(HOUR / 2);
    await lives.kit.clock.advance(HOUR / 2 - 10_000);
    assert.equal(lives.kit.broker.sessions.has('a'), true);
    await lives.kit.clock.advance(11_000);
    assert.equal(lives.kit.broker.sessions.has('a'), false);
  });

  it('restores a session that never expires after a year', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#', 1, { sessionExpiry: Number.POSITIVE_INFINITY });
    await lives.crash(365 * 24 * HOUR);
    assert.equal(await isPresent(lives, 'a'), true);
  });

  it('keeps a session if its client was connected and nothing was written for a long time before the crash', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await client.subscribe({ topic: 'a/#', qos: 1 });
    await lives.kit.clock.advance(3 * HOUR);
    await lives.crash(HOUR / 2);
    assert.equal(await isPresent(lives, 'a'), true);
  });

  it('expires a session on time, and publishes its will, for any number of crashes before', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('watcher', 'gone', 1, { sessionExpiry: '10h' });
    await lives.connect({ clientId: 'c', ...PERSISTENT });
    const properties = { willDelayInterval: 3_600 };
    await lives.connect({
      clientId: 'w',
      clean: false,
      sessionExpiry: '10h',
      will: { topic: 'gone', payload: 'x', qos: 1, properties }
    });
    for (let life = 0; life < 3; life++) {
      await lives.crash();
      await lives.kit.clock.advance('25m');
      await lives.kit.broker.publish('other', `${life}`, { retain: true, qos: 1 });
    }
    assert.equal(lives.kit.broker.sessions.has('c'), false);
    const { texts } = await lives.listen({ clientId: 'watcher' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), ['x']);
  });

  it('keeps a session expired if the process that found it expired crashed right after its start', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('away', 'a', 1, { sessionExpiry: '1d' });
    await lives.connect({ clientId: 'c', ...PERSISTENT });
    await lives.kit.clock.advance(300);
    await lives.kit.broker.publish('a', 'in a journal', { qos: 1 });
    await lives.kill({ downForMs: 2 * HOUR });
    await lives.kill();
    assert.equal(await isPresent(lives, 'c'), false);
  });

  it('expires a session on time after the broker was stopped with wills kept, started again, and crashed later', async () => {
    await using lives = await new Lives().begin();
    await lives.connect({ clientId: 'c', ...PERSISTENT });
    const { broker, clock } = lives.kit;
    await clock.settle();
    const wentAt = clock.now();
    await broker.stop({ wills: 'keep' });
    await broker.start();
    assert.equal(broker.sessions.get('c').client.disconnectedAt, wentAt);
    await clock.advance(3_000_000);
    await broker.table('t').set('k', 1); // the process was running until now
    await lives.crash();
    assert.equal(lives.kit.broker.sessions.has('c'), true);
    await lives.kit.clock.advance(601_000);
    assert.equal(lives.kit.broker.sessions.has('c'), false);
  });

  it('restores a session of MQTT 3.1.1 with its subscriptions', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'old', protocolVersion: 4, clean: false });
    await client.subscribe({ topic: 'a/#', qos: 1 });
    await client.disconnect();
    await lives.crash();
    await lives.kit.broker.publish('a/b', 'x', { qos: 1 });
    const again = await lives.listen({ clientId: 'old', protocolVersion: 4, sessionExpiry: undefined });
    await lives.kit.clock.advance(10);
    assert.equal(again.client.connack.sessionPresent, true);
    assert.deepEqual(again.texts(), ['x']);
  });

  it('restores the same client information as before', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({
      clientId: 'a',
      ...PERSISTENT,
      username: 'somebody',
      keepalive: 77,
      properties: { userProperties: [['k', 'v']] }
    });
    await client.disconnect();
    await lives.kit.clock.advance(100);
    const before = lives.kit.broker.sessions.get('a').client;
    const createdAt = lives.kit.broker.sessions.get('a').counters().createdAt;
    await lives.crash(1000);
    const handle = lives.kit.broker.sessions.get('a');
    const { clientId, username, keepalive, protocolVersion, sessionExpiry, cleanStart, userProperties, zone } =
      handle.client;
    assert.deepEqual(
      { clientId, username, keepalive, protocolVersion, sessionExpiry, cleanStart, userProperties, zone },
      {
        clientId: 'a',
        username: 'somebody',
        keepalive: 77,
        protocolVersion: 5,
        sessionExpiry: 3600,
        cleanStart: false,
        userProperties: [['k', 'v']],
        zone: before.zone
      }
    );
    assert.equal(handle.counters().createdAt, createdAt);
    assert.equal(handle.state, 'disconnected');
  });

  it('discards a session with all of its state by a clean start', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    await lives.kit.broker.publish('a/1', 'x', { qos: 1 });
    const client = await lives.connect({ clientId: 'a', clean: true, sessionExpiry: '1h' });
    await client.disconnect();
    await lives.crash();
    const { client: again, got } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(10);
    assert.equal(again.connack.sessionPresent, true, 'the session of the clean start');
    assert.deepEqual(got, []);
    assert.deepEqual((await lives.kit.broker.directory.subscriptions()).entries, []);
  });

  it('ends a session that was resumed with expiry 0 when the process crashes', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    const client = await lives.connect({ clientId: 'a', clean: false, sessionExpiry: 0 });
    assert.equal(client.connack.sessionPresent, true);
    await lives.crash();
    assert.equal(await isPresent(lives, 'a'), false);
  });

  it('ends a session permanently with a DISCONNECT that sets its expiry to 0', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await client.subscribe({ topic: 'a/#', qos: 1 });
    await lives.kit.broker.publish('a/1', 'x', { qos: 1 });
    await client.disconnect({ properties: { sessionExpiryInterval: 0 } });
    await lives.kit.clock.advance(100);
    assert.deepEqual(await lives.store.contents(), []);
    await lives.crash();
    assert.equal(lives.kit.broker.sessions.has('a'), false);
  });

  it('keeps the expiry that the last DISCONNECT set', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await client.disconnect({ properties: { sessionExpiryInterval: 10 } });
    await lives.crash(11_000);
    assert.equal(await isPresent(lives, 'a'), false);
  });

  it('assigns a session to the connection that took it over', async () => {
    await using lives = await new Lives().begin();
    const first = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await first.subscribe({ topic: 'a/#', qos: 1 });
    const second = await lives.connect({ clientId: 'a', clean: false, sessionExpiry: '2h', username: 'second' });
    assert.equal(second.connack.sessionPresent, true);
    await lives.crash(1.5 * HOUR);
    assert.equal(lives.kit.broker.sessions.get('a').client.username, 'second');
    assert.equal(await isPresent(lives, 'a'), true);
  });

  it('restores no session that ends while its last change is being written', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    lives.store.turnsBefore = () => 5;
    void client.subscribe({ topic: 'a/#', qos: 1 }).catch(() => undefined);
    await turns(4);
    lives.kit.broker.sessions.get('a').kick();
    await lives.crash();
    assert.equal(lives.kit.broker.sessions.has('a'), false);
    assert.deepEqual(await lives.store.contents(), []);
  });

  it('creates no session if the process crashed before its CONNACK', async () => {
    await using lives = await new Lives().begin();
    lives.store.turnsBefore = () => 50;
    const coming = lives.connect({ clientId: 'a', ...PERSISTENT });
    coming.catch(() => undefined);
    await turns(10);
    await lives.kill();
    await assert.rejects(coming);
    assert.equal(lives.kit.broker.sessions.has('a'), false);
  });

  for (const clean of [false, true]) {
    const how = clean ? 'is replaced by a clean start' : 'is taken over';
    it(`[MQTT-3.1.4-3] reports the reason to the client of a session that ${how} before its CONNACK`, async () => {
      for (const version of [3, 4, 5] as const) {
        await using lives = await new Lives().begin();
        const { broker } = lives.kit;
        const told: string[] = [];
        broker.on('client.connack', ({ reasonCode, why }) => told.push(`connack ${reasonCode} ${why}`));
        broker.on('client.disconnected', ({ reason, reasonCode }) => told.push(`disconnected ${reason} ${reasonCode}`));
        const properties = { sessionExpiryInterval: 60 };
        lives.store.turnsBefore = () => 50;
        const first = await rawClient(broker, { connect: false, version });
        first.send(connectPacket({ clientId: 'a', clean: false, properties, version }));
        await turns(10);
        const second = await rawClient(broker, { connect: false, version });
        second.send(connectPacket({ clientId: 'a', clean, properties, version }));
        await first.closed();
        const { about } = DISCONNECT_REASONS[clean ? 'discarded' : 'takeovered'];
        const answer = { cmd: 'connack', sessionPresent: false, reasonCode: 0x80, properties: { reasonString: about } };
        // no DISCONNECT before a CONNACK [MQTT-3.14.0-1]; MQTT 3.x has no return code for this
        assert.deepEqual(first.received, version === 5 ? [answer] : []);
        assert.equal((await second.next('connack')).reasonCode, 0);
        assert.deepEqual(
          told.map((text) => text.replace(/, from a connection of .*/, '')),
          [
            clean ? 'connack 128 another connection with Clean Start' : `connack 128 ${about}`,
            `disconnected ${clean ? 'discarded' : 'takeovered'} 142`,
            'connack 0 undefined'
          ]
        );
      }
    });
  }

  it('leaves nothing of an ended session in the store', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    for (let n = 0; n < 120; n++) {
      await lives.kit.broker.publish('a/1', `${n}`, { qos: 1 });
      await lives.kit.clock.advance(100);
    }
    assert.ok((await lives.store.contents()).length > 100);
    lives.kit.broker.sessions.get('a').discard();
    await lives.kit.clock.advance(100);
    assert.deepEqual(await lives.store.contents(), []);
  });

  it('leaves nothing in the store when many sessions end, and removes as much in one commit as it has room for', async () => {
    await using lives = await new Lives().begin();
    const ids = Array.from({ length: 200 }, (_, n) => `a${n}`);
    for (const id of ids) await lives.leave(id, 'a/#');
    await lives.kit.broker.publish('a/1', 'x', { qos: 1 });
    await lives.kit.clock.advance(200);
    const before = lives.store.committed.length;
    for (const id of ids) lives.kit.broker.sessions.get(id).discard();
    await lives.kit.clock.advance(200);
    assert.deepEqual(await lives.store.contents(), []);
    const commits = lives.store.committed.length - before;
    assert.ok(commits < 10, `${commits} commits`);
  });

  it('removes a session in the next process if its removal was interrupted', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    for (let n = 0; n < 300; n++) await lives.kit.broker.publish('a/1', `${n}`, { qos: 1 });
    await lives.kit.clock.advance(100);
    lives.kit.broker.sessions.get('a').discard();
    lives.store.turnsBefore = () => (lives.store.committed.length > 0 ? 3 : 0);
    await turns(6);
    await lives.kill();
    await lives.kit.clock.advance(100);
    assert.deepEqual(await lives.store.contents(), []);
  });

  it('releases a session from memory again if the client that resumed it disconnected before its CONNACK', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT, receiveMaximum: 3, acknowledge: 'manual' });
    await client.subscribe({ topic: 'a/#', qos: 1 });
    for (let n = 0; n < 10; n++) await lives.kit.broker.publish('a/1', `${n}`, { qos: 1 });
    await lives.crash();
    lives.store.turnsToRead = () => 10;
    const coming = lives.connect({ clientId: 'a', ...PERSISTENT });
    coming.catch(() => undefined);
    await turns(5);
    lives.kit.link('a').cut();
    await assert.rejects(coming);
    await turns(60);
    await lives.kit.clock.advance(100);
    assert.equal(engineOf(lives.kit.broker).sessions.get('a')?.outlet.inflight, undefined);
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.equal(texts().length, 10);
  });

  it('reports queued and in-flight messages even while its client is offline', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT, receiveMaximum: 3, acknowledge: 'manual' });
    await client.subscribe({ topic: 'a/#', qos: 1 });
    for (let n = 0; n < 10; n++) await lives.kit.broker.publish('a/1', `${n}`, { qos: 1 });
    await client.disconnect();
    await lives.crash();
    const { inflight, mqueueLen } = lives.kit.broker.sessions.get('a').counters();
    assert.deepEqual({ inflight, mqueueLen }, { inflight: 3, mqueueLen: 7 });
  });
});

describe('Persisted subscriptions', () => {
  it('restores the options and identifiers of subscriptions', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await client.subscribe([{ topic: 'a/+', qos: 2, noLocal: true, retainAsPublished: true, retainHandling: 2 }], {
      properties: { subscriptionIdentifier: [7] }
    });
    await client.subscribe([{ topic: '$share/g/b/#', qos: 1, retainHandling: 1 }]);
    await client.subscribe([{ topic: 'ü/#', qos: 0 }], { properties: { subscriptionIdentifier: [268_435_455] } });
    await lives.crash();
    const records = [...lives.kit.broker.sessions.get('a').subscriptions()].map(
      ({ node, clientId, filter, ...options }) => [filter, options] as const
    );
    assert.deepEqual(
      new Map<string, object>(records),
      new Map([
        ['a/+', { qos: 2, noLocal: true, retainAsPublished: true, retainHandling: 2, id: 7 }],
        ['$share/g/b/#', { qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 1, id: undefined }],
        ['ü/#', { qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0, id: 268_435_455 }]
      ])
    );
  });

  it('lists restored subscriptions first and in the order of their bytes, later ones in the order in which they were made', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    for (const topic of ['z', 'ü', 'a', 'Z', '+/b']) await client.subscribe({ topic, qos: 0 });
    const filters = () => Array.from(lives.kit.broker.sessions.get('a').subscriptions(), ({ filter }) => filter);
    assert.deepEqual(filters(), ['z', 'ü', 'a', 'Z', '+/b']);
    await lives.crash();
    for (const topic of ['y', 'b']) lives.kit.broker.sessions.get('a').subscribe(topic);
    assert.deepEqual(filters(), ['+/b', 'Z', 'a', 'z', 'ü', 'y', 'b']);
  });

  it('applies restored subscriptions: No Local, Retain As Published and identifiers', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await client.subscribe([{ topic: 'a', qos: 1, noLocal: true }]);
    await client.subscribe([{ topic: 'b', qos: 1, retainAsPublished: true }], {
      properties: { subscriptionIdentifier: [9] }
    });
    await lives.crash();
    const { client: again, got } = await lives.listen({ clientId: 'a' });
    await again.publish('a', 'own', { qos: 1 });
    await lives.kit.broker.publish('b', 'other', { qos: 1, retain: true });
    await lives.kit.clock.advance(10);
    assert.deepEqual(
      got.map(({ payload, retain, properties }) => [`${payload}`, retain, properties.subscriptionIdentifier]),
      [['other', true, [9]]]
    );
  });

  it('restores no subscriptions that were removed', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await client.subscribe([{ topic: 'a' }, { topic: 'b' }]);
    await client.unsubscribe('a');
    await lives.kill();
    assert.deepEqual(
      (await lives.kit.broker.directory.subscriptions()).entries.map(({ filter }) => filter),
      ['b']
    );
  });

  it('restores the options of the last SUBSCRIBE that was acknowledged', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await client.subscribe({ topic: 'a', qos: 0 });
    await client.subscribe({ topic: 'a', qos: 2 });
    await lives.kill();
    assert.deepEqual(
      (await lives.kit.broker.directory.subscriptions()).entries.map(({ qos }) => qos),
      [2]
    );
  });

  it('persists subscriptions that the app makes and removes for an offline client', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a');
    lives.kit.broker.sessions.get('a').subscribe('b', { qos: 1 });
    lives.kit.broker.sessions.get('a').unsubscribe('a');
    await lives.crash();
    assert.deepEqual(
      (await lives.kit.broker.directory.subscriptions()).entries.map(({ filter }) => filter),
      ['b']
    );
  });

  it('continues the turns of a share group', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', '$share/g/t');
    await lives.leave('b', '$share/g/t');
    await lives.crash();
    const members = [await lives.listen({ clientId: 'a' }), await lives.listen({ clientId: 'b' })];
    for (let n = 0; n < 64; n++) await lives.kit.broker.publish('t', `${n}`, { qos: 1 });
    await lives.kit.clock.advance(10);
    assert.equal(members[0].got.length + members[1].got.length, 64);
    assert.ok(members.every(({ got }) => got.length > 0));
  });

  it('does not assign subscriptions that were removed just before their session to the next session with its number', async () => {
    await using lives = await new Lives().begin();
    const client = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await client.subscribe({ topic: 'a' });
    const { broker } = lives.kit;
    broker.sessions.get('a').unsubscribe('a');
    broker.sessions.get('a').kick();
    await lives.crash();
    const other = (await lives.connect({ clientId: 'b', ...PERSISTENT })) as Client;
    await other.subscribe({ topic: 'b' });
    await lives.crash();
    assert.deepEqual(
      (await lives.kit.broker.directory.subscriptions()).entries.map(({ filter }) => filter),
      ['b']
    );
  });
});
