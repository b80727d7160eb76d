import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DisconnectReason } from '../../lib/events/reasons.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { granted, publish, startBroker, turns, withResolvers } from '../support/wire.ts';
import { field, frame } from '../support/wire-connect.ts';

const PINGREQ = { cmd: 'pingreq' } as const;

describe('Keep alive', () => {
  it('[MQTT-3.1.2-22] closes with 0x8D after one and a half times the keep alive without a packet', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const reasons: DisconnectReason[] = [];
    broker.on('client.disconnected', ({ reason }) => reasons.push(reason));
    for (const keepalive of [1, 2, 7, 60, 65_535]) {
      const client = await rawClient(broker, { keepalive });
      assert.equal(client.connack?.properties?.serverKeepAlive, undefined);
      await clock.advance(keepalive * 1500 - 1);
      assert.equal(client.isClosed, false, `keep alive ${keepalive}`);
      await clock.advance(1);
      assert.deepEqual(await client.refused(0x8d), []);
    }
    assert.deepEqual(new Set(reasons), new Set(['keepalive_timeout']));
  });

  it('[MQTT-3.1.2-22] restarts the timeout at any packet, including one that needs no answer', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const client = await rawClient(broker, { keepalive: 10 });
    const packets = [
      PINGREQ,
      publish('x', '1'),
      publish('x', '1', { qos: 1, messageId: 1 }),
      { cmd: 'puback', messageId: 9, reasonCode: 0 } as const,
      frame(0x30, field('x'), Buffer.from([0]), Buffer.alloc(100_000))
    ];
    for (const packet of packets) {
      await clock.advance(14_999);
      client.send(packet);
      await clock.settle();
    }
    await clock.advance(14_999);
    assert.equal(client.isClosed, false);
    await clock.advance(1);
    await client.closed();
  });

  it('[MQTT-3.1.2-22] does not count packets that the broker sends to the client', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const client = await rawClient(broker, { keepalive: 2 });
    await granted(client, 1, '#');
    for (let half = 0; half < 5; half++) {
      await clock.advance(500);
      await broker.publish('x', '1');
    }
    await clock.advance(499);
    assert.equal(client.isClosed, false);
    await clock.advance(1);
    await client.closed();
  });

  it('[MQTT-3.1.2-22] does not count bytes of an incomplete packet', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    // Short enough to be joined as it grows, yet long enough that its parts are stored.
    for (const header of ['30ff7f', '32ffff07', '82ff7f']) {
      const client = await rawClient(broker, { keepalive: 10 });
      client.send(Buffer.concat([Buffer.from(header, 'hex'), field('x')]));
      for (let second = 1; second < 15; second++) {
        await clock.advance(1000);
        client.sendBytes('01');
      }
      await clock.advance(999);
      assert.equal(client.isClosed, false, header);
      await clock.advance(1);
      await client.refused(0x8d);
    }
  });

  it('[MQTT-3.1.2-22] waits for a large packet that arrives slowly in pieces of reasonable size', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const client = await rawClient(broker, { keepalive: 10 });
    const bytes = frame(0x32, field('x'), Buffer.from([0, 7, 0]), Buffer.alloc(100_000));
    for (let at = 0; at < bytes.length; at += 10_000) {
      client.send(bytes.subarray(at, at + 10_000));
      await clock.advance(14_000);
    }
    assert.equal((await client.next('puback')).messageId, 7);
  });

  it('[MQTT-3.1.2-22] sets no timeout when the keep alive is 0', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, sysInterval: 0, sysHeartbeat: 0 });
    for (const version of [3, 4, 5] as const) {
      const client = await rawClient(broker, { keepalive: 0, version });
      await clock.advance('30d');
      await client.nothing();
    }
  });

  it("[MQTT-3.1.2-22] pauses the timeout while a hook defers the client's packets", async () => {
    const clock = new VirtualClock({ patienceMs: 20 });
    const answer = withResolvers<boolean>();
    const hooks = { authorizePublish: () => answer.promise };
    await using broker = await startBroker({ clock, hooks, hookTimeout: 60_000 });
    const client = await rawClient(broker, { keepalive: 2 });
    client.send(publish('x', '1', { qos: 1, messageId: 3 }));
    await clock.advance(10_000);
    assert.equal(client.isClosed, false);
    answer.resolve(true);
    assert.equal((await client.next('puback')).messageId, 3);
    await clock.advance(2999);
    assert.equal(client.isClosed, false);
    await clock.advance(1);
    await client.closed();
  });

  it('[MQTT-3.1.2-22] counts from the CONNECT of the connection that took over the session', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const properties = { sessionExpiryInterval: 1000 };
    const first = await rawClient(broker, { clientId: 'me', clean: false, keepalive: 10, properties });
    await clock.advance(14_000);
    const second = await rawClient(broker, { clientId: 'me', clean: false, keepalive: 20, properties });
    await first.refused(0x8e);
    await clock.advance(29_999);
    assert.equal(second.isClosed, false);
    await clock.advance(1);
    await second.refused(0x8d);
  });

  it('[MQTT-3.1.2-20] [MQTT-3.1.2-21] [MQTT-3.2.2-21] [MQTT-3.2.2-22] uses Server Keep Alive instead of the value of a 5.0 client', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, serverKeepalive: 20 });
    for (const keepalive of [0, 5, 600]) {
      const client = await rawClient(broker, { keepalive });
      assert.equal(client.connack?.properties?.serverKeepAlive, 20);
      await clock.advance(20_000);
      client.send(PINGREQ);
      await client.next('pingresp');
      await clock.advance(29_999);
      assert.equal(client.isClosed, false);
      await clock.advance(1);
      await client.refused(0x8d);
    }
    const same = await rawClient(broker, { keepalive: 20 });
    assert.equal(same.connack?.properties?.serverKeepAlive, undefined);
  });

  it('[MQTT-3.1.2-21] [MQTT-3.2.2-21] announces maxKeepalive when the client asks for a longer keep alive or for none', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, maxKeepalive: 20 });
    for (const keepalive of [0, 21, 65_535]) {
      const client = await rawClient(broker, { keepalive });
      assert.equal(client.connack?.properties?.serverKeepAlive, 20);
      await clock.advance(29_999);
      assert.equal(client.isClosed, false);
      await clock.advance(1);
      await client.refused(0x8d);
    }
    for (const keepalive of [1, 20]) {
      const client = await rawClient(broker, { keepalive });
      assert.equal(client.connack?.properties?.serverKeepAlive, undefined);
    }
    await using forced = await startBroker({ clock, maxKeepalive: 20, serverKeepalive: 30 });
    assert.equal((await rawClient(forced, { keepalive: 5 })).connack?.properties?.serverKeepAlive, 20);
  });

  it('[MQTT-3.2.2-22] uses the value of a 3.x client, because CONNACK of 3.x cannot announce another', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, serverKeepalive: 20, maxKeepalive: 20 });
    for (const version of [3, 4] as const) {
      const client = await rawClient(broker, { version, keepalive: 100 });
      await clock.advance(149_999);
      assert.equal(client.isClosed, false);
      await clock.advance(1);
      await client.closed();
    }
  });

  it('[MQTT3-3.1.2-24] closes a 3.x connection without an answer after one and a half times the keep alive', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    for (const version of [3, 4] as const) {
      const client = await rawClient(broker, { version, keepalive: 10 });
      await clock.advance(7000);
      client.send(PINGREQ);
      await client.next('pingresp');
      await clock.advance(14_999);
      assert.equal(client.isClosed, false);
      await clock.advance(1);
      assert.deepEqual(await client.refused(0x8d), []);
    }
  });

  it('[MQTT-3.1.2-22] extends the timeout by keepaliveBackoff', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, keepaliveBackoff: 1 });
    const client = await rawClient(broker, { keepalive: 10 });
    await clock.advance(19_999);
    assert.equal(client.isClosed, false);
    await clock.advance(1);
    await client.refused(0x8d);
  });

  it('[MQTT-3.1.2-22] times out many clients to the second, and only the silent ones', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const clients = await Promise.all(
      Array.from({ length: 60 }, (_, at) => rawClient(broker, { clientId: `c${at}`, keepalive: at + 1 }))
    );
    for (let second = 1; second <= 90; second++) {
      await clock.advance(1000);
      for (const [at, client] of clients.entries()) {
        if (at % 2 === 1) client.send(PINGREQ);
        else assert.equal(client.isClosed, second >= (at + 1) * 1.5, `client ${at}, second ${second}`);
      }
      await turns(4);
    }
    for (const [at, client] of clients.entries()) assert.equal(client.isClosed, at % 2 === 0);
  });

  it('[MQTT-3.1.2-22] starts the timeout with CONNACK for a client that a hook accepts late', async () => {
    const clock = new VirtualClock({ patienceMs: 20 });
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({ clock, hookTimeout: 9000, hooks: { preConnect: () => answer.promise } });
    const client = await rawClient(broker, { connect: false });
    client.send(connectPacket({ keepalive: 2 }));
    await clock.advance(8000);
    answer.resolve(true);
    await client.next('connack');
    await clock.advance(2999);
    assert.equal(client.isClosed, false);
    await clock.advance(1);
    await client.refused(0x8d);
  });
});
