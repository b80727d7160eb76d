import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import type { EventName } from '../../lib/events/catalogue.ts';
import type { AuthenticateRequest } from '../../lib/events/hooks.ts';
import type { DisconnectReason } from '../../lib/events/reasons.ts';
import type { ProtocolVersion, Will } from '../../lib/packets/types.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { connectPacket, type RawClient, rawClient } from '../support/raw-client.ts';
import {
  granted,
  payloads,
  publish,
  refusedConnect,
  rest,
  startBroker,
  turns,
  withResolvers
} from '../support/wire.ts';

const NEVER = 0xffff_ffff;

async function stage(options: BrokerOptions = {}): Promise<{ broker: Broker; clock: VirtualClock }> {
  const clock = new VirtualClock({ patienceMs: 20 });
  return { clock, broker: await startBroker({ clock, sysInterval: 0, sysHeartbeat: 0, ...options }) };
}

/** Connects a client `me` whose session outlives its connection by `expirySec`. */
function me(broker: Broker, expirySec: number, clean = false): Promise<RawClient> {
  return rawClient(broker, { clientId: 'me', clean, properties: { sessionExpiryInterval: expirySec } });
}

async function cut(client: RawClient): Promise<void> {
  client.cut();
  await turns(4);
}

/** Connects `me`, disconnects it and returns Session Present. */
async function isPresent(broker: Broker, expirySec: number): Promise<boolean | undefined> {
  const client = await me(broker, expirySec);
  await cut(client);
  return client.connack?.sessionPresent;
}

/**
 * Creates a session with every kind of state: a subscription, one message in flight of each kind, a backlog, a received QoS 2 packet id.
 */
async function full(broker: Broker, version: ProtocolVersion = 5): Promise<RawClient> {
  const client = await rawClient(broker, {
    clientId: 'me',
    version,
    clean: false,
    properties: { sessionExpiryInterval: 100 }
  });
  await granted(client, 1, { topic: 'x', qos: 2 });
  await broker.publish('x', 'one', { qos: 1 });
  await broker.publish('x', 'two', { qos: 2 });
  await broker.publish('x', 'three', { qos: 2 });
  assert.deepEqual(
    [await client.next(), await client.next(), await client.next()].map(({ cmd }) => cmd),
    ['publish', 'publish', 'publish']
  );
  client.send({ cmd: 'pubrec', messageId: 3, reasonCode: 0 });
  await client.next('pubrel');
  client.send(publish('other', 'twice?', { qos: 2, messageId: 77 }));
  await client.next('pubrec');
  await cut(client);
  await broker.publish('x', 'four', { qos: 1 });
  return client;
}

describe('Clean Start', () => {
  it('[MQTT-3.1.2-4] discards subscriptions, backlog and unfinished flows of both directions when it is 1', async () => {
    const { broker } = await stage();
    await using _ = broker;
    const events: EventName[] = [];
    for (const name of ['session.discarded', 'session.terminated', 'session.created', 'session.resumed'] as const)
      broker.on(name, () => events.push(name));
    await full(broker);
    events.length = 0;
    const heard: string[] = [];
    broker.subscribe('other', ({ payload }) => {
      heard.push(String(payload));
    });
    const client = await me(broker, 100, true);
    assert.equal(client.connack?.sessionPresent, false);
    assert.deepEqual(events, ['session.discarded', 'session.terminated', 'session.created']);
    await client.nothing();
    await broker.publish('x', 'five');
    await client.nothing();
    client.send({ cmd: 'pubrel', messageId: 77, reasonCode: 0 });
    assert.equal((await client.next('pubcomp')).reasonCode, 0x92);
    client.send(publish('other', 'new', { qos: 2, messageId: 77 }));
    assert.equal((await client.next('pubrec')).reasonCode, 0);
    assert.deepEqual(heard, ['new']);
    await granted(client, 9, { topic: 'x', qos: 1 });
    await broker.publish('x', 'six', { qos: 1 });
    assert.equal((await client.next('publish')).messageId, 1);
  });

  it('[MQTT-3.1.2-4] creates a session that is stored in turn when it is 1', async () => {
    const { broker } = await stage();
    await using _ = broker;
    await cut(await me(broker, 100, true));
    assert.equal(await isPresent(broker, 100), true);
  });

  it('[MQTT-3.1.2-5] resumes subscriptions, backlog and unfinished flows of both directions when it is 0', async () => {
    const { broker } = await stage();
    await using _ = broker;
    await full(broker);
    const heard: string[] = [];
    broker.subscribe('other', ({ payload }) => {
      heard.push(String(payload));
    });
    const client = await me(broker, 100);
    assert.equal(client.connack?.sessionPresent, true);
    const got = (await rest(client)).map((packet) =>
      packet.cmd === 'publish'
        ? `${packet.payload} #${packet.messageId} qos ${packet.qos} dup ${packet.dup}`
        : `${packet.cmd} #${(packet as { messageId: number }).messageId}`
    );
    // PUBREL packets need no send quota, so they may precede messages that do.
    assert.deepEqual(got.sort(), [
      'four #4 qos 1 dup false',
      'one #1 qos 1 dup true',
      'pubrel #3',
      'two #2 qos 2 dup true'
    ]);
    client.send(publish('other', 'twice?', { qos: 2, messageId: 77, dup: true }));
    assert.equal((await client.next('pubrec')).reasonCode, 0);
    client.send({ cmd: 'pubrel', messageId: 77, reasonCode: 0 });
    assert.equal((await client.next('pubcomp')).reasonCode, 0);
    assert.deepEqual(heard, []);
    await broker.publish('x', 'five');
    assert.deepEqual(await payloads(client), ['five']);
  });

  it('[MQTT-3.1.2-5] resumes repeatedly when it is 0, regardless of what was acknowledged in between', async () => {
    const { broker } = await stage();
    await using _ = broker;
    await full(broker);
    for (const left of [4, 3, 2, 1]) {
      const client = await me(broker, 100);
      const packets = await rest(client);
      assert.equal(packets.length, left);
      const [first] = packets;
      if (first.cmd === 'pubrel') client.send({ cmd: 'pubcomp', messageId: first.messageId, reasonCode: 0 });
      else if (first.cmd === 'publish')
        client.send({
          cmd: first.qos === 1 ? 'puback' : 'pubrec',
          messageId: first.messageId as number,
          reasonCode: 0x80
        });
      await client.nothing();
      await cut(client);
    }
    await (await me(broker, 100)).nothing();
  });

  it('[MQTT-3.1.2-6] creates a session when it is 0 and none is stored, and sends Session Present 0', async () => {
    const { broker } = await stage();
    await using _ = broker;
    const created: string[] = [];
    broker.on('session.created', ({ client }) => created.push(client.clientId));
    const client = await me(broker, 100);
    assert.equal(client.connack?.sessionPresent, false);
    assert.deepEqual(created, ['me']);
    await granted(client, 1, 'x');
    assert.equal(broker.sessions.get('me').state, 'connected');
  });

  it('[MQTT-3.1.2-5] resumes a session from another protocol version', async () => {
    const { broker } = await stage();
    await using _ = broker;
    for (const from of [3, 4, 5] as const) {
      for (const to of [3, 4, 5] as const) {
        await full(broker, from);
        const options = { clientId: 'me', version: to, clean: false, properties: { sessionExpiryInterval: 100 } };
        const client = await rawClient(broker, options);
        // MQTT 3.1 has no Session Present flag.
        if (to !== 3) assert.equal(client.connack?.sessionPresent, true);
        assert.deepEqual(await payloads(client), ['one', 'two', 'four']);
        await cut(client);
        await cut(await rawClient(broker, { clientId: 'me', clean: true }));
      }
    }
  });
});

describe('Session Expiry Interval', () => {
  it('[MQTT-3.1.2-23] [MQTT-4.1.0-2] keeps the session for the interval after the close, and no longer', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    const reasons: DisconnectReason[] = [];
    broker.on('session.terminated', ({ reason }) => reasons.push(reason));
    const client = await me(broker, 10);
    await clock.advance('1h');
    await client.nothing();
    await cut(client);
    await clock.advance(9999);
    assert.equal(broker.sessions.get('me').state, 'disconnected');
    assert.equal(await isPresent(broker, 10), true);
    await clock.advance(9999);
    assert.equal(broker.sessions.has('me'), true);
    await clock.advance(1);
    assert.equal(broker.sessions.has('me'), false);
    assert.deepEqual(reasons, ['expired']);
    assert.equal(await isPresent(broker, 10), false);
  });

  it('[MQTT-3.1.2-23] [MQTT-4.1.0-1] ends the session with the connection when the interval is absent or 0', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    for (const properties of [undefined, { sessionExpiryInterval: 0 }]) {
      const client = await rawClient(broker, { clientId: 'me', clean: false, properties });
      await granted(client, 1, 'x');
      await clock.advance('30d');
      await broker.publish('x', '1');
      assert.deepEqual(await payloads(client), ['1']);
      await cut(client);
      assert.equal(broker.sessions.has('me'), false);
    }
  });

  it('[MQTT-3.1.2-23] never ends the session for 0xFFFFFFFF, and ends it after 136 years for the value below', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    await cut(await me(broker, NEVER));
    await clock.advance('73000d');
    assert.equal(await isPresent(broker, NEVER - 1), true);
    await clock.advance((NEVER - 1) * 1000 - 1);
    assert.equal(broker.sessions.has('me'), true);
    await clock.advance(1);
    assert.equal(broker.sessions.has('me'), false);
  });

  it('[MQTT-3.1.2-23] applies the interval of the last CONNECT', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    await cut(await me(broker, 10));
    await cut(await me(broker, 100));
    await clock.advance('99s');
    assert.equal(broker.sessions.has('me'), true);
    await cut(await me(broker, 5));
    await clock.advance('5s');
    assert.equal(broker.sessions.has('me'), false);
  });

  it('[MQTT-3.1.2-23] applies the interval of a DISCONNECT, which may also end the session', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    for (const [asked, seconds] of [
      [5, 5],
      [500, 500],
      [0, 0]
    ]) {
      const client = await me(broker, 50);
      client.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: asked } });
      await client.closed();
      assert.equal(broker.sessions.has('me'), seconds > 0);
      await clock.advance(Math.max(0, seconds * 1000 - 1));
      assert.equal(broker.sessions.has('me'), seconds > 0);
      await clock.advance(1);
      assert.equal(broker.sessions.has('me'), false);
    }
  });

  it('[MQTT-3.14.2-2] refuses with 0x82 a DISCONNECT that sets an interval for a session that had none', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    const client = await me(broker, 0);
    client.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 5 } });
    await client.refused(0x82);
    assert.equal(broker.sessions.has('me'), false);
    const zero = await me(broker, 0);
    zero.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 0 } });
    await zero.closed();
    assert.equal(zero.received.at(-1)?.cmd, 'connack');
    await clock.settle();
  });

  it('[MQTT-3.1.2-23] limits the interval to maxSessionExpiryInterval, which CONNACK announces', async () => {
    const { broker, clock } = await stage({ maxSessionExpiryInterval: 60 });
    await using _ = broker;
    for (const asked of [61, NEVER]) {
      const client = await me(broker, asked, true);
      assert.equal(client.connack?.properties?.sessionExpiryInterval, 60);
      await cut(client);
      await clock.advance(59_999);
      assert.equal(broker.sessions.has('me'), true);
      await clock.advance(1);
      assert.equal(broker.sessions.has('me'), false);
    }
    const less = await me(broker, 60);
    assert.equal(less.connack?.properties?.sessionExpiryInterval, undefined);
    less.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 600 } });
    await less.closed();
    await clock.advance('60s');
    assert.equal(broker.sessions.has('me'), false);
  });

  it('[MQTT-3.1.2-23] applies the interval to every way a connection can end', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    const endings: ((client: RawClient) => unknown)[] = [
      (client) => client.send({ cmd: 'disconnect', reasonCode: 0 }),
      (client) => client.send({ cmd: 'disconnect', reasonCode: 4 }),
      (client) => client.sendBytes('0000'),
      (client) => client.send(connectPacket()),
      (client) => client.stream.end(),
      (client) => client.stream.destroy(new Error('cable')),
      () => broker.sessions.get('me').kick({ session: 'keep' }),
      () => clock.advance('15s')
    ];
    for (const [at, end] of endings.entries()) {
      const client = await rawClient(broker, {
        clientId: 'me',
        clean: true,
        keepalive: 10,
        properties: { sessionExpiryInterval: 100 }
      });
      await granted(client, 1, 'x');
      await end(client);
      await turns(6);
      assert.equal(broker.sessions.get('me').state, 'disconnected', `way ${at}`);
      await clock.advance(99_999);
      assert.equal(broker.sessions.has('me'), true, `way ${at}`);
      await clock.advance(1);
      assert.equal(broker.sessions.has('me'), false, `way ${at}`);
    }
  });

  it('[MQTT-4.1.0-2] ends no session when the wall clock steps', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    await cut(await me(broker, 100));
    clock.stepWall(86_400_000);
    await clock.advance('99s');
    assert.equal(broker.sessions.has('me'), true);
    clock.stepWall(-172_800_000);
    await clock.advance('1s');
    assert.equal(broker.sessions.has('me'), false);
  });

  it('[MQTT-4.1.0-2] removes the subscriptions of an expired session', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    const client = await me(broker, 10);
    await granted(client, 1, ['a', 'b/+', '$share/g/c']);
    await cut(client);
    assert.equal(broker.metrics.gauges()['subscriptions.count'], 3);
    await clock.advance('10s');
    assert.equal(broker.metrics.gauges()['subscriptions.count'], 0);
    assert.deepEqual(await broker.publish('a', '1', { qos: 1 }), { receivers: 0 });
  });

  it('[MQTT-3.1.2-23] ends each of many sessions at its own time', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    for (let at = 1; at <= 50; at++) {
      const properties = { sessionExpiryInterval: at };
      await cut(await rawClient(broker, { clientId: `c${at}`, clean: false, properties }));
    }
    for (let second = 0; second < 50; second++) {
      assert.equal([...broker.sessions].length, 50 - second);
      await clock.advance('1s');
    }
    assert.equal([...broker.sessions].length, 0);
  });
});

describe('Takeover', () => {
  it('[MQTT-3.1.4-3] sends 0x8E to the old connection and closes it', async () => {
    const { broker } = await stage();
    await using _ = broker;
    const reasons: DisconnectReason[] = [];
    broker.on('client.disconnected', ({ reason }) => reasons.push(reason));
    const first = await me(broker, 100);
    const second = await me(broker, 100);
    assert.deepEqual(await first.refused(0x8e), []);
    assert.equal(second.connack?.sessionPresent, true);
    const third = await me(broker, 100, true);
    assert.deepEqual(await second.refused(0x8e), []);
    assert.equal(third.connack?.sessionPresent, false);
    assert.deepEqual(reasons, ['takeovered', 'discarded']);
    assert.equal([...broker.sessions].length, 1);
  });

  it('[MQTT-3.1.4-3] closes an old connection of a 3.x client without an answer', async () => {
    const { broker } = await stage();
    await using _ = broker;
    let before: RawClient | undefined;
    for (const version of [3, 5, 4, 4, 5, 3] as const) {
      const client = await rawClient(broker, { clientId: 'me', clean: false, version });
      await before?.refused(0x8e);
      before = client;
    }
    await before?.nothing();
  });

  it('[MQTT-3.1.4-3] leaves one connection after two hundred takeovers of a client id', async () => {
    const { broker } = await stage();
    await using _ = broker;
    const clients: RawClient[] = [];
    for (let round = 0; round < 200; round++) clients.push(await me(broker, 100));
    await turns();
    assert.equal(clients.filter(({ isClosed }) => !isClosed).length, 1);
    assert.equal(broker.metrics.gauges()['connections.count'], 1);
    await clients[199].nothing();
  });

  it('[MQTT-3.1.4-4] applies Clean Start after the takeover: 1 discards the state of the old connection, 0 keeps it', async () => {
    const { broker } = await stage();
    await using _ = broker;
    const first = await me(broker, 100);
    await granted(first, 1, { topic: 'x', qos: 1 });
    await broker.publish('x', 'unacknowledged', { qos: 1 });
    await first.next('publish');
    const second = await me(broker, 100);
    const resent = await second.next('publish');
    assert.deepEqual([String(resent.payload), resent.dup], ['unacknowledged', true]);
    const third = await me(broker, 100, true);
    await broker.publish('x', '1');
    await third.nothing();
  });

  it('[MQTT-3.1.4-3] processes no packet that the old connection sends after the takeover', async () => {
    const { broker } = await stage();
    await using _ = broker;
    const heard: string[] = [];
    broker.subscribe('x', ({ payload }) => {
      heard.push(String(payload));
    });
    const first = await me(broker, 100);
    const second = await rawClient(broker, { connect: false });
    second.send(connectPacket({ clientId: 'me', clean: false, properties: { sessionExpiryInterval: 100 } }));
    first.send(publish('x', 'late'), { cmd: 'disconnect', reasonCode: 0 });
    assert.equal((await second.next('connack')).sessionPresent, true);
    await first.closed();
    await second.nothing();
    // The streams are independent: bytes of the old one may have arrived first, but then all of them were processed first.
    assert.ok(heard.length <= 1);
    assert.equal(broker.sessions.get('me').state, 'connected');
  });

  it('[MQTT-3.1.4-3] takes over while a hook decides on a message of the old connection', async () => {
    const answers = [withResolvers<boolean>(), withResolvers<boolean>()];
    let asked = 0;
    const { broker } = await stage({ hooks: { authorizePublish: () => answers[asked++].promise } });
    await using _ = broker;
    const heard: string[] = [];
    broker.subscribe('x', ({ payload }) => {
      heard.push(String(payload));
    });
    const first = await me(broker, 100);
    first.send(publish('x', 'once', { qos: 2, messageId: 4 }));
    await turns();
    const second = await me(broker, 100);
    await first.refused(0x8e);
    second.send(publish('x', 'once', { qos: 2, messageId: 4, dup: true }));
    await turns();
    for (const answer of answers) answer.resolve(true);
    await turns();
    assert.equal((await second.next('pubrec')).messageId, 4);
    assert.deepEqual(heard, ['once']);
  });

  it('[MQTT-3.1.4-3] does not wait for an old connection that does not read', async () => {
    const { broker, clock } = await stage({ outputHighWaterMark: 10_000 });
    await using _ = broker;
    const first = await me(broker, 100);
    await granted(first, 1, 'x');
    first.stream.pause();
    for (let count = 0; count < 100; count++) await broker.publish('x', 'a'.repeat(10_000));
    await turns();
    const second = await me(broker, 100);
    assert.equal(second.connack?.sessionPresent, true);
    await clock.advance('10s');
    assert.equal(broker.sessions.get('me').state, 'connected');
  });
});

describe('Simultaneous CONNECT packets of one client id', () => {
  const pending: { request: AuthenticateRequest; answer: (verdict: boolean) => void }[] = [];
  const authenticate = (request: AuthenticateRequest): Promise<boolean> =>
    new Promise((resolve) => pending.push({ request, answer: resolve }));

  async function begin(broker: Broker, username: string): Promise<RawClient> {
    const client = await rawClient(broker, { connect: false });
    const properties = { sessionExpiryInterval: 100 };
    client.send(connectPacket({ clientId: 'me', clean: false, username, properties }));
    await turns();
    return client;
  }

  it('[MQTT-3.1.4-3] decides on them concurrently, and keeps the client that was accepted last', async () => {
    pending.length = 0;
    const { broker } = await stage({ hooks: { authenticate }, hookTimeout: 60_000 });
    await using _ = broker;
    const clients = [await begin(broker, '0'), await begin(broker, '1'), await begin(broker, '2')];
    assert.deepEqual(
      pending.map(({ request }) => request.username),
      ['0', '1', '2'],
      'the hooks of all clients are called'
    );
    for (const [at, isPresent] of [
      [1, false],
      [2, true],
      [0, true]
    ] as const) {
      pending[at].answer(true);
      assert.equal((await clients[at].next('connack')).sessionPresent, isPresent);
    }
    await clients[1].refused(0x8e);
    await clients[2].refused(0x8e);
    await clients[0].nothing();
    assert.equal(broker.sessions.get('me').client.username, '0');
  });

  it('[MQTT-3.1.4-3] takes over nothing for a client that disconnects while its hook decides, regardless of what it had sent', async () => {
    for (const more of [[], [{ cmd: 'pingreq' }]] as const) {
      for (const how of ['cut', 'end'] as const) {
        pending.length = 0;
        const { broker } = await stage({ hooks: { authenticate }, hookTimeout: 60_000 });
        await using _ = broker;
        const [leaving, staying] = [await begin(broker, '0'), await begin(broker, '1')];
        for (const packet of more) leaving.send(packet);
        await turns();
        if (how === 'cut') leaving.cut();
        else leaving.stream.end();
        pending[1].answer(true);
        await staying.next('connack');
        pending[0].answer(true);
        await leaving.closed();
        await staying.nothing();
        assert.equal(leaving.received.length, 0);
        assert.equal(broker.sessions.get('me').client.username, '1');
      }
    }
  });

  it('[MQTT-3.1.4-3] leaves the others unaffected when one is refused', async () => {
    pending.length = 0;
    const { broker } = await stage({ hooks: { authenticate }, hookTimeout: 60_000 });
    await using _ = broker;
    const clients = [await begin(broker, '0'), await begin(broker, '1')];
    pending[1].answer(true);
    assert.equal((await clients[1].next('connack')).sessionPresent, false);
    pending[0].answer(false);
    assert.equal((await clients[0].next('connack')).reasonCode, 0x86);
    await clients[1].nothing();
  });

  it('[MQTT-3.1.4-3] delays no client, for any number of hooks that never answer', async () => {
    const { broker, clock } = await stage({
      hooks: { authenticate: ({ username }) => (username === 'good' ? true : new Promise<never>(() => {})) },
      hookTimeout: 5000,
      connectTimeout: 60_000
    });
    await using _ = broker;
    broker.on('error', () => undefined);
    const attackers: RawClient[] = [];
    for (let count = 0; count < 50; count++) attackers.push(await begin(broker, 'bad'));
    const client = await begin(broker, 'good');
    assert.equal((await client.next('connack')).reasonCode, 0);
    await clock.advance('5s');
    for (const attacker of attackers) assert.ok((await attacker.next('connack')).reasonCode >= 0x80);
    await client.nothing();
  });

  it('[MQTT-3.1.4-2] takes over when the new client is accepted, not earlier', async () => {
    pending.length = 0;
    const { broker } = await stage({ hooks: { authenticate }, hookTimeout: 60_000 });
    await using _ = broker;
    const first = await begin(broker, '0');
    pending[0].answer(true);
    await first.next('connack');
    await begin(broker, '1');
    await first.nothing();
    pending[1].answer(false);
    await turns();
    await first.nothing();
  });
});

describe('Sessions of 3.x clients', () => {
  for (const version of [3, 4] as const) {
    const which = `protocol level ${version}`;

    it(`[MQTT3-3.1.2-4] resumes or creates a session for CleanSession 0, and queues QoS 1 and 2 (${which})`, async () => {
      const { broker } = await stage();
      await using _ = broker;
      const options = { clientId: 'me', version, clean: false };
      const client = await rawClient(broker, options);
      await granted(client, 1, { topic: 'x', qos: 2 });
      await cut(client);
      for (const qos of [1, 2] as const) await broker.publish('x', String(qos), { qos });
      const back = await rawClient(broker, options);
      assert.deepEqual(await payloads(back), ['1', '2']);
    });

    it(`[MQTT3-3.1.2-4] ends a CleanSession 0 session at the zone's sessionExpiryInterval (${which})`, async () => {
      const { broker, clock } = await stage({ sessionExpiryInterval: '1h' });
      await using _ = broker;
      await cut(await rawClient(broker, { clientId: 'me', version, clean: false }));
      await clock.advance(3_599_999);
      assert.equal(broker.sessions.has('me'), true);
      await clock.advance(1);
      assert.equal(broker.sessions.has('me'), false);
    });

    it(`[MQTT3-3.1.2-6] creates a new session for CleanSession 1, and ends it with the connection (${which})`, async () => {
      const { broker } = await stage();
      await using _ = broker;
      await full(broker, version);
      const client = await rawClient(broker, { clientId: 'me', version, clean: true });
      assert.equal(client.connack?.sessionPresent, false);
      await client.nothing();
      await granted(client, 1, { topic: 'x', qos: 1 });
      await cut(client);
      assert.equal(broker.sessions.has('me'), false);
      await broker.publish('x', '1', { qos: 1 });
      const back = await rawClient(broker, { clientId: 'me', version, clean: false });
      assert.equal(back.connack?.sessionPresent, false);
      await back.nothing();
    });

    it(`[MQTT3-3.1.2-7] keeps retained messages after the session of their publisher has ended (${which})`, async () => {
      const { broker } = await stage();
      await using _ = broker;
      const client = await rawClient(broker, { version, clean: true });
      client.send(publish('x', 'kept', { qos: 1, messageId: 1, retain: true }));
      await client.next('puback');
      await cut(client);
      const late = await rawClient(broker, { version });
      await granted(late, 1, 'x');
      assert.deepEqual(await payloads(late), ['kept']);
    });

    it(`[MQTT3-3.1.4-2] closes the old connection of a client id without an answer (${which})`, async () => {
      const { broker } = await stage();
      await using _ = broker;
      for (const clean of [true, false]) {
        const first = await rawClient(broker, { clientId: 'me', version, clean });
        const second = await rawClient(broker, { clientId: 'me', version, clean });
        assert.deepEqual(await first.refused(0x8e), []);
        assert.equal(first.received.length, 1);
        await cut(second);
      }
    });

    it(`[MQTT3-3.1.4-5] does not process packets that follow a refused CONNECT (${which})`, async () => {
      const { broker } = await stage({ hooks: { authenticate: () => false } });
      await using _ = broker;
      let published = 0;
      broker.on('message.publish', () => published++);
      const client = await rawClient(broker, { version, connect: false });
      const will: Will = { topic: 'will', payload: Buffer.alloc(0), qos: 0, retain: false };
      client.send(connectPacket({ version, will }), publish('x', '1'));
      await client.closed();
      assert.equal(published, 0);
      await refusedConnect(broker, { version });
    });
  }
});
