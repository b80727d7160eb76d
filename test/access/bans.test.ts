import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readBrokerOptions } from '../../lib/adapter.ts';
import type { Ban, Broker, Client } from '../../lib/index.ts';
import { memoryStore } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';

/** The reason code with which a client is refused; 0 if it is accepted. */
async function codeOf(connecting: Promise<Client>): Promise<number> {
  try {
    await (await connecting).disconnect();
    return 0;
  } catch (error) {
    return (error as { reasonCode: number }).reasonCode;
  }
}

function bansOf(broker: Broker): Ban[] {
  const bans: Ban[] = [];
  broker.on('client.banned', ({ ban }) => bans.push(ban));
  return bans;
}

/** Connects a client and loses its connection. */
async function lose(kit: TestBroker, clientId: string, times = 1): Promise<void> {
  for (let n = 0; n < times; n++) {
    const client = await kit.connect({ clientId });
    client.on('error', () => {});
    const gone = kit.broker.nextEvent('client.disconnected');
    kit.link(client).cut();
    await gone;
  }
}

describe('a ban', () => {
  it('keeps banned clients out until the ban ends or is lifted, and reports the ban', async () => {
    await using kit = await createTestBroker();
    const { banned } = kit.broker.access;
    const bans = bansOf(kit.broker);
    await banned.create({ kind: 'clientId', who: 'c', reason: 'test', until: kit.clock.now() + 5_000 });
    await banned.create({ kind: 'username', who: 'u', until: Infinity });
    await banned.create({ kind: 'address', who: '10.0.0.0/8' });
    assert.deepEqual(
      bans.map(({ kind, who, by, reason }) => [kind, who, by, reason]),
      [
        ['clientId', 'c', 'user', 'test'],
        ['username', 'u', 'user', undefined],
        ['address', '10.0.0.0/8', 'user', undefined]
      ]
    );
    const connect = (clientId: string, username?: string, remoteAddress?: string) =>
      codeOf(kit.connect({ clientId, username, protocolVersion: 5, transportInfo: { remoteAddress } }));
    assert.deepEqual(
      await Promise.all([connect('c'), connect('x', 'u'), connect('y', undefined, '10.1.1.1')]),
      [0x8a, 0x8a, 0x8a]
    );
    assert.deepEqual(await Promise.all([connect('d'), connect('z', 'c', '11.1.1.1')]), [0, 0]);
    await kit.clock.advance('5s');
    assert.equal(await connect('c'), 0);
    await banned.delete('username', 'u');
    assert.equal(await connect('x', 'u'), 0);
  });

  it('refuses a banned client with return code 5 in MQTT 3.1.1', async () => {
    await using kit = await createTestBroker();
    await kit.broker.access.banned.create({ kind: 'clientId', who: 'c' });
    const { connack } = await rawClient(kit.broker, { version: 4, clientId: 'c' });
    assert.equal(connack?.reasonCode, 0x87, 'as return code 5 is decoded');
  });

  it('keeps connected clients connected by default', async () => {
    await using kit = await createTestBroker();
    const client = await kit.connect({ clientId: 'c' });
    await kit.broker.access.banned.create({ kind: 'clientId', who: 'c' });
    assert.equal(kit.broker.sessions.has('c'), true);
    await client.disconnect();
  });

  it('closes the connections of banned clients with banDisconnects', async () => {
    await using kit = await createTestBroker({ banDisconnects: true });
    const reasons: string[] = [];
    kit.broker.on('client.disconnected', ({ client, reason, reasonCode }) =>
      reasons.push(`${client.clientId} ${reason} ${reasonCode}`)
    );
    const one = await rawClient(kit.broker, { clientId: 'one', meta: { remoteAddress: '10.0.0.1' } });
    await rawClient(kit.broker, { clientId: 'two', version: 4, username: 'u' });
    await rawClient(kit.broker, { clientId: 'three', meta: { remoteAddress: '11.0.0.1' } });
    const inner = await rawClient(kit.broker, { clientId: 'inner', username: 'u', meta: { zone: 'internal' } });
    const { banned } = kit.broker.access;
    await banned.create({ kind: 'address', who: '10.0.0.0/8' });
    const last = await one.next('disconnect');
    assert.equal(last.reasonCode, 0x87, 'DISCONNECT cannot carry 0x8A');
    await banned.create({ kind: 'username', who: 'u' });
    await banned.create({ kind: 'clientId', who: 'three', until: 5 });
    assert.deepEqual(reasons, ['one banned 135', 'two banned 135']);
    await banned.create({ kind: 'clientId', who: 'three' });
    assert.equal(reasons.at(-1), 'three banned 135');
    inner.stream.destroy();
  });

  it('disconnects the clients of a ban on request, and keeps their sessions', async () => {
    await using kit = await createTestBroker();
    const { banned } = kit.broker.access;
    const reasons: string[] = [];
    kit.broker.on('client.disconnected', ({ client, reason }) => reasons.push(`${client.clientId} ${reason}`));
    const ofOne = { clientId: 'one', properties: { sessionExpiryInterval: 100 } };
    const one = await rawClient(kit.broker, { ...ofOne, meta: { remoteAddress: '10.0.0.1' } });
    const two = await rawClient(kit.broker, { clientId: 'two', meta: { remoteAddress: '10.0.0.2' } });
    const free = await rawClient(kit.broker, { clientId: 'free', meta: { remoteAddress: '11.0.0.1' } });
    const inner = await rawClient(kit.broker, {
      clientId: 'inner',
      meta: { remoteAddress: '10.0.0.3', zone: 'internal' }
    });
    assert.equal(banned.disconnect('address', '10.0.0.0/8'), 0, 'no ban has this address');
    await banned.create({ kind: 'address', who: '10.0.0.0/8' });
    assert.deepEqual(reasons, []);
    assert.equal(banned.disconnect('address', '10.0.0.0/8'), 2);
    assert.equal((await one.next('disconnect')).reasonCode, 0x87);
    assert.deepEqual(reasons, ['one banned', 'two banned']);
    assert.equal(kit.broker.sessions.get('one').state, 'disconnected');
    assert.equal(banned.disconnect('address', '10.0.0.0/8'), 0, 'they are disconnected already');
    for (const { stream } of [two, free, inner]) stream.destroy();
  });

  it('refuses a banned client with 0x8A while a hook is still deciding about it, with banDisconnects', async () => {
    await using kit = await createTestBroker({
      banDisconnects: true,
      hooks: { authenticate: () => new Promise(() => {}) }
    });
    const client = await rawClient(kit.broker, { connect: false });
    client.send({ cmd: 'connect', protocolVersion: 5, bridge: false, clientId: 'c', clean: true, keepalive: 0 });
    await kit.clock.advance(10);
    await kit.broker.access.banned.create({ kind: 'clientId', who: 'c' });
    assert.equal((await client.next('connack')).reasonCode, 0x8a);
  });

  it('applies bans in the zones with enableBan: all but internal, unless the option is set explicitly', async () => {
    const ofZones = (options: object) =>
      [...readBrokerOptions(options).zones.values()].map(({ name, enableBan }) => `${name} ${enableBan}`);
    assert.deepEqual(ofZones({}), ['external true', 'internal false']);
    assert.deepEqual(ofZones({ enable_ban: 'on' }), ['external true', 'internal true']);
    assert.deepEqual(ofZones({ 'zone.internal.enable_ban': true, zones: { external: { enableBan: false } } }), [
      'external false',
      'internal true'
    ]);
    await using kit = await createTestBroker();
    await kit.broker.access.banned.create({ kind: 'clientId', who: 'c' });
    assert.equal(await codeOf(kit.connect({ clientId: 'c', transportInfo: { zone: 'internal' } })), 0);
  });

  it('deletes a ban within a minute after its end, also after a restart', async () => {
    const store = memoryStore();
    {
      await using kit = await createTestBroker({ store });
      const { banned } = kit.broker.access;
      await banned.create({ kind: 'clientId', who: 'a', until: kit.clock.now() + 1_000 });
      await banned.create({ kind: 'clientId', who: 'b', until: kit.clock.now() + 100_000 });
      await kit.clock.advance('61s');
      assert.deepEqual(
        [...banned].map(({ who }) => who),
        ['b']
      );
    }
    await using kit = await createTestBroker({ store });
    assert.equal(kit.broker.access.banned.size, 1);
    await kit.clock.advance('3m');
    assert.equal(kit.broker.access.banned.size, 0);
  });
});

describe('the detection of flapping', () => {
  it('bans a client id that loses its connection too often, with an alarm that ends with the ban', async () => {
    await using kit = await createTestBroker({
      zones: { external: { enableFlappingDetect: true } },
      flappingDetectPolicy: '3,1m,5m'
    });
    const bans = bansOf(kit.broker);
    await lose(kit, 'c', 2);
    await lose(kit, 'd');
    assert.equal(bans.length, 0);
    const now = kit.clock.now();
    await lose(kit, 'c');
    assert.equal(bans.length, 1);
    const { at, until, ...ban } = bans[0];
    assert.deepEqual(ban, { kind: 'clientId', who: 'c', by: 'flapping detector', reason: 'flapping is detected' });
    assert.equal(until - at, 300_000);
    assert.ok(at - now < 1_000);
    assert.equal(await codeOf(kit.connect({ clientId: 'c', protocolVersion: 5 })), 0x8a);
    const { alarms } = kit.broker;
    assert.deepEqual(
      alarms.present().map(({ id }) => id),
      ['flapping_detected:c']
    );
    await kit.clock.advance('6m');
    assert.deepEqual(alarms.present(), []);
    assert.equal(kit.broker.access.banned.size, 0);
    assert.equal(await codeOf(kit.connect({ clientId: 'c' })), 0);
  });

  it('clears the flapping alarm when the ban ends, later if it was extended, and within a minute if it was lifted', async () => {
    await using kit = await createTestBroker({ enableFlappingDetect: true, flappingDetectPolicy: '1,1m,2s' });
    const { access, alarms } = kit.broker;
    await lose(kit, 'c');
    await kit.clock.advance('1900ms');
    assert.equal(alarms.present().length, 1);
    await kit.clock.advance('200ms');
    assert.deepEqual(alarms.present(), [], 'after the two seconds of the ban');
    await lose(kit, 'c');
    await access.banned.create({ kind: 'clientId', who: 'c', until: kit.clock.now() + 600_000 });
    await kit.clock.advance('5m');
    assert.equal(alarms.present().length, 1);
    await access.banned.delete('clientId', 'c');
    await kit.clock.advance('1m');
    assert.deepEqual(alarms.present(), []);
  });

  it('counts neither DISCONNECT nor connections lost before the window', async () => {
    await using kit = await createTestBroker({
      enable_flapping_detect: true,
      flapping_detect_policy: '3,1m,5m'
    } as object);
    const bans = bansOf(kit.broker);
    for (let n = 0; n < 5; n++) await (await kit.connect({ clientId: 'c' })).disconnect();
    await lose(kit, 'c', 2);
    await kit.clock.advance('61s');
    await lose(kit, 'c', 2);
    assert.equal(bans.length, 0);
    await lose(kit, 'c');
    assert.equal(bans.length, 1);
  });

  it('detects flapping only in zones with the option, which is off by default', async () => {
    await using kit = await createTestBroker({
      zones: { internal: { enableFlappingDetect: true } },
      flappingDetectPolicy: '2,1m,5m'
    });
    const bans = bansOf(kit.broker);
    await lose(kit, 'c', 4);
    assert.equal(bans.length, 0);
    assert.equal(readBrokerOptions().zones.get('external')?.enableFlappingDetect, false);
  });

  it('truncates the client id in the id of the alarm to the maximum length', async () => {
    await using kit = await createTestBroker({ enableFlappingDetect: true, flappingDetectPolicy: '1,1m,1m' });
    await lose(kit, '\u{1f525}'.repeat(500));
    const [{ id }] = kit.broker.alarms.present();
    assert.ok(id.length >= 255 && id.length <= 256 && !/\p{Surrogate}/u.test(id), id);
    await kit.clock.advance('2m');
    assert.deepEqual(kit.broker.alarms.present(), []);
    assert.equal(kit.broker.alarms.history().length, 1);
  });

  it('refuses a flapping policy that is not valid [OPTION_INVALID]', () => {
    for (const policy of ['', '30', '30,1m', '0,1m,5m', '30,1,5m', '30,1m,5m,1', 'x,1m,5m', 5])
      assert.throws(() => readBrokerOptions({ flappingDetectPolicy: policy as string }), {
        code: 'OPTION_INVALID',
        field: 'flappingDetectPolicy'
      });
  });
});
