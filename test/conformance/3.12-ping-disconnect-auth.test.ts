import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { rawClient } from '../support/raw-client.ts';
import {
  connect,
  granted,
  nothing,
  payloads,
  publish,
  refused,
  refusedConnect,
  sendAll,
  startBroker,
  subscribe,
  turns
} from '../support/wire.ts';

const WILL = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false };
/** Reason codes that a client may send in DISCONNECT. */
const CLIENT_CODES = [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99];

describe('PINGREQ', () => {
  it('[MQTT-3.12.4-1] answers PINGREQ by exactly one PINGRESP', async () => {
    await using broker = await startBroker();
    for (const version of [3, 4, 5] as const) {
      const client = await rawClient(broker, { version });
      sendAll(client, { cmd: 'pingreq' }, { cmd: 'pingreq' }, { cmd: 'pingreq' });
      for (let at = 0; at < 3; at++) assert.deepEqual(await client.next(), { cmd: 'pingresp' });
      await nothing(client);
    }
  });

  it('[MQTT-4.13.1-1] closes with 0x81 when PINGREQ has a body', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    client.sendBytes('c0 01 00');
    await refused(client, 0x81);
  });
});

describe('DISCONNECT', () => {
  it('[MQTT-3.14.0-1] never sends DISCONNECT before a successful CONNACK', async () => {
    await using broker = await startBroker({ hooks: { authenticate: () => false } });
    assert.equal((await refusedConnect(broker)).reasonCode, 0x87);
    const early = await rawClient(broker, { connect: false });
    early.send({ cmd: 'pingreq' });
    await early.closed();
    assert.deepEqual(early.received, []);
  });

  it('[MQTT-3.14.0-1] sends CONNACK 0x88 instead of DISCONNECT when the broker stops while a CONNECT is pending', async () => {
    const broker = await startBroker({ hooks: { authenticate: () => new Promise(() => {}) } });
    const client = await rawClient(broker, { connect: false });
    client.send(connect(5));
    await turns();
    await broker.stop({ timeoutMs: 100 });
    await client.closed();
    assert.deepEqual(
      client.received.map((packet) => [packet.cmd, 'reasonCode' in packet && packet.reasonCode]),
      [['connack', 0x88]]
    );
  });

  it('[MQTT-3.14.1-1] answers a DISCONNECT with reserved flags with 0x81, and publishes the will', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker);
    await granted(watcher, 1, 'will');
    for (const flags of [1, 2, 4, 8, 15]) {
      const client = await rawClient(broker, { will: WILL });
      client.send(Buffer.from([0xe0 | flags, 0]));
      await refused(client, 0x81);
      assert.deepEqual(await payloads(watcher), ['gone']);
    }
  });

  it('[MQTT-3.14.2-1] answers a DISCONNECT with 0x82 if a client must not send its code', async () => {
    await using broker = await startBroker();
    for (const code of [0x01, 0x10, 0x18, 0x84, 0x87, 0x89, 0x8b, 0x8d, 0x8e, 0x8f, 0x9c, 0xa2, 0xff]) {
      const client = await rawClient(broker);
      client.send(Buffer.from([0xe0, 1, code]));
      await refused(client, 0x82);
    }
  });

  it('[MQTT-3.14.2-1] ends the connection without an answer if the client may send the code of its DISCONNECT', async () => {
    await using broker = await startBroker();
    for (const code of CLIENT_CODES) {
      const client = await rawClient(broker);
      client.send({ cmd: 'disconnect', reasonCode: code });
      await client.closed();
      assert.deepEqual(
        client.received.map(({ cmd }) => cmd),
        ['connack']
      );
    }
  });

  it('[MQTT-3.14.2-1] sends DISCONNECT with a valid reason code, regardless of what a hook or the app returns', async () => {
    let round = 0;
    let refusal = 0;
    await using broker = await startBroker({
      aclDenyAction: 'disconnect',
      hooks: {
        authenticate: ({ isReauthentication }) => (isReauthentication ? { allow: false, reasonCode: refusal } : true),
        authorizePublish: () => ({ allow: false, reasonCode: [0x87, 0x85, 0x10, 0x123][round++] })
      }
    });
    for (const code of [0x87, 0x83, 0x83, 0x83]) {
      const client = await rawClient(broker);
      client.send(publish('a', 'x'));
      await refused(client, code);
    }
    const properties = { authenticationMethod: 'm' };
    // bad user name or password, and bad authentication method are valid in CONNACK only
    for (refusal of [0x86, 0x8c]) {
      const client = await rawClient(broker, { properties });
      client.send({ cmd: 'auth', reasonCode: 0x19, properties });
      await refused(client, 0x87);
    }
    const kicked = await rawClient(broker, { clientId: 'kicked' });
    broker.sessions.get('kicked').kick({ reasonCode: 0x84 });
    await refused(kicked, 0x80);
  });

  it('[MQTT-3.14.2-2] sends DISCONNECT without a Session Expiry Interval', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c', properties: { sessionExpiryInterval: 99 } });
    broker.sessions.get('c').kick({ session: 'keep' });
    await refused(client, 0x98);
    const last = client.received.at(-1);
    assert.ok(last?.cmd === 'disconnect' && last.properties?.sessionExpiryInterval === undefined);
  });

  it('[MQTT-3.14.2-2] answers a DISCONNECT that sets an expiry for a session that had none with 0x82, and publishes the will', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker);
    await granted(watcher, 1, 'will');
    const client = await rawClient(broker, { clientId: 'c', will: WILL });
    client.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 5 } });
    await refused(client, 0x82);
    assert.deepEqual(await payloads(watcher), ['gone']);
    assert.equal(broker.sessions.has('c'), false);
  });

  it('[MQTT-3.14.2-2] accepts a DISCONNECT that leaves an expiry of 0 unchanged, or shortens, extends or ends a session with an expiry', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const left = async (asked: number, told: number) => {
      const client = await rawClient(broker, { clientId: 'c', properties: { sessionExpiryInterval: asked } });
      client.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: told } });
      await client.closed();
      await turns();
      assert.deepEqual(
        client.received.map(({ cmd }) => cmd),
        ['connack']
      );
    };
    await left(0, 0);
    assert.equal(broker.sessions.has('c'), false);
    await left(100, 0);
    assert.equal(broker.sessions.has('c'), false);
    await left(100, 10);
    await clock.advance('9s');
    assert.equal(broker.sessions.has('c'), true);
    await clock.advance('1s');
    assert.equal(broker.sessions.has('c'), false);
    await left(10, 100);
    await clock.advance('99s');
    assert.equal(broker.sessions.has('c'), true);
    await clock.advance('1s');
    assert.equal(broker.sessions.has('c'), false);
  });

  it('[MQTT-3.14.2-3] [MQTT-3.14.2-4] omits the Reason String of DISCONNECT if that would exceed the Maximum Packet Size', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c', properties: { maximumPacketSize: 20 } });
    broker.sessions.get('c').kick({ reasonString: 'a reason of more than twenty bytes' });
    assert.deepEqual(await client.next(), { cmd: 'disconnect', reasonCode: 0x98 });
    const roomy = await rawClient(broker, { clientId: 'c', properties: { maximumPacketSize: 60 } });
    broker.sessions.get('c').kick({ reasonString: 'a reason of more than twenty bytes' });
    const { properties } = await roomy.next('disconnect');
    assert.deepEqual(properties, { reasonString: 'a reason of more than twenty bytes' });
  });

  it('[MQTT-3.14.4-1] [MQTT-3.14.4-2] sends DISCONNECT as the last packet before it closes', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c' });
    await granted(client, 1, 'a');
    broker.sessions.get('c').kick();
    await broker.publish('a', 'late');
    client.send({ cmd: 'pingreq' });
    await refused(client, 0x98);
    assert.deepEqual(
      client.received.map(({ cmd }) => cmd),
      ['connack', 'suback', 'disconnect']
    );
  });

  it('[MQTT-3.14.4-1] ends reading with DISCONNECT as well: the broker processes nothing that follows it', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker);
    await granted(watcher, 1, ['a', 'will']);
    const client = await rawClient(broker, { will: WILL });
    sendAll(client, { cmd: 'disconnect', reasonCode: 0 }, publish('a', 'late'), { cmd: 'pingreq' });
    await client.closed();
    assert.deepEqual(
      client.received.map(({ cmd }) => cmd),
      ['connack']
    );
    assert.deepEqual(await payloads(watcher), []);
  });

  it('[MQTT-3.14.4-3] drops the will with 0x00, and publishes it with any other code', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker);
    await granted(watcher, 1, 'will');
    for (const reasonCode of CLIENT_CODES) {
      const client = await rawClient(broker, { will: WILL });
      client.send({ cmd: 'disconnect', reasonCode });
      await client.closed();
      await turns();
      assert.deepEqual(await payloads(watcher), reasonCode === 0 ? [] : ['gone'], `0x${reasonCode.toString(16)}`);
    }
  });

  it('[MQTT-3.14.4-3] drops a delayed will with 0x00, and lets the delay run with 0x04', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const watcher = await rawClient(broker);
    await granted(watcher, 1, 'will');
    const will = { ...WILL, properties: { willDelayInterval: 5 } };
    for (const [reasonCode, expected] of [
      [0x00, []],
      [0x04, ['gone']]
    ] as const) {
      const client = await rawClient(broker, { clientId: 'c', will, properties: { sessionExpiryInterval: 60 } });
      client.send({ cmd: 'disconnect', reasonCode });
      await client.closed();
      await clock.advance('4s');
      assert.deepEqual(await payloads(watcher), []);
      await clock.advance('1s');
      assert.deepEqual(await payloads(watcher), expected);
    }
  });
});

describe('AUTH', () => {
  const properties = { authenticationMethod: 'm' };

  it('[MQTT-3.15.1-1] treats AUTH with reserved flags as malformed: 0x81', async () => {
    await using broker = await startBroker({ hooks: { authenticate: () => true } });
    for (const flags of [1, 2, 4, 8]) {
      const client = await rawClient(broker, { properties });
      client.send(Buffer.from([0xf0 | flags, 6, 0x19, 4, 0x15, 0, 1, 0x6d]));
      await refused(client, 0x81);
    }
  });

  it('[MQTT-3.15.2-1] treats AUTH with a code other than 0x18 and 0x19 as a protocol error: 0x82', async () => {
    await using broker = await startBroker({ hooks: { authenticate: () => true } });
    for (const code of [0x00, 0x01, 0x17, 0x1a, 0x87]) {
      const client = await rawClient(broker, { properties });
      client.send(Buffer.from([0xf0, 6, code, 4, 0x15, 0, 1, 0x6d]));
      await refused(client, 0x82);
    }
    const short = await rawClient(broker, { properties });
    short.sendBytes('f0 00');
    await refused(short, 0x82);
  });

  it('[MQTT-3.15.2-1] sends AUTH with 0x18 during the exchange and 0x00 at its end', async () => {
    await using broker = await startBroker({
      hooks: {
        authenticate: ({ round, isReauthentication }) =>
          isReauthentication && round === 0 ? { challenge: Buffer.from('?') } : true
      }
    });
    const client = await rawClient(broker, { properties });
    client.send({ cmd: 'auth', reasonCode: 0x19, properties });
    assert.equal((await client.next('auth')).reasonCode, 0x18);
    client.send({ cmd: 'auth', reasonCode: 0x18, properties });
    assert.equal((await client.next('auth')).reasonCode, 0x00);
  });

  it('[MQTT-3.15.2-2] [MQTT-3.15.2-3] sends no Reason String and no User Property in AUTH that could exceed a Maximum Packet Size', async () => {
    await using broker = await startBroker({
      hooks: {
        authenticate: ({ isReauthentication }) =>
          isReauthentication ? { allow: true, userProperties: [['a', 'b']] } : true
      }
    });
    const client = await rawClient(broker, { properties: { ...properties, maximumPacketSize: 40 } });
    client.send({ cmd: 'auth', reasonCode: 0x19, properties });
    assert.deepEqual(await client.next('auth'), { cmd: 'auth', reasonCode: 0, properties });
  });

  it('[MQTT-3.1.2-24] sends no AUTH with more data than the Maximum Packet Size allows: the exchange fails', async () => {
    await using broker = await startBroker({
      hooks: { authenticate: ({ data }) => (data === undefined ? true : { challenge: Buffer.alloc(100) }) }
    });
    const given = { ...properties, maximumPacketSize: 60 };
    const client = await rawClient(broker, { properties: given });
    client.send({ cmd: 'auth', reasonCode: 0x19, properties: { ...properties, authenticationData: Buffer.from('x') } });
    await refused(client, 0x95);
    const connack = await refusedConnect(broker, { properties: { ...given, authenticationData: Buffer.from('x') } });
    assert.equal(connack.reasonCode, 0x95);
  });
});

describe('Packets that only a server may send', () => {
  it('[MQTT-4.13.1-1] closes with 0x82 when a client sends a packet that only a server may send', async () => {
    await using broker = await startBroker();
    for (const bytes of ['20 03 00 00 00', '90 04 0001 00 00', 'b0 04 0001 00 00', 'd0 00']) {
      const client = await rawClient(broker);
      client.sendBytes(bytes);
      await refused(client, 0x82);
    }
    const reserved = await rawClient(broker);
    reserved.sendBytes('00 00');
    await refused(reserved, 0x81);
  });

  it('[MQTT-3.14.4-1] processes no SUBSCRIBE that follows a packet that only a server may send', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c', properties: { sessionExpiryInterval: 60 } });
    client.send(Buffer.from('d000', 'hex'));
    client.send(subscribe(1, 'a'));
    await refused(client, 0x82);
    assert.deepEqual([...broker.sessions.get('c').subscriptions()], []);
  });
});
