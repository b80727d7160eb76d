import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { AuthenticateRequest, Verdict } from '../../lib/events/hooks.ts';
import type { ConnectPacket, Packet, UserProperty } from '../../lib/packets/types.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { connectPacket, type RawClient, rawClient } from '../support/raw-client.ts';
import {
  granted,
  payloads,
  publish,
  refusedConnect,
  startBroker,
  subscribe,
  turns,
  withResolvers
} from '../support/wire.ts';
import { connectBytes, field, frame, sized, u16, u32 } from '../support/wire-connect.ts';

const NONE = Buffer.from([0]);
const ID = Buffer.from([0, 1]);
const x = field('x');

/**
 * Sends bytes on a new connection and waits until the broker closes it.
 * @returns all bytes that were received, in hexadecimal
 */
async function bytesUntilClose(broker: Broker, bytes: Buffer): Promise<string> {
  const stream = broker.stream();
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.write(bytes);
  await once(stream, 'end');
  return Buffer.concat(chunks).toString('hex');
}

/** Returns the reason code of the CONNACK that refuses these bytes. */
async function refusal(broker: Broker, bytes: Buffer): Promise<number> {
  const client = await rawClient(broker, { connect: false });
  client.send(bytes);
  const [connack, ...more] = await client.closed();
  assert.ok(connack?.cmd === 'connack', `no CONNACK for ${bytes.toString('hex')}`);
  assert.equal(connack.sessionPresent, false);
  assert.deepEqual(more, []);
  return connack.reasonCode;
}

/** Returns the CONNECT packet as the preConnect hook receives it. */
async function seen(bytes: Buffer): Promise<ConnectPacket> {
  const packets: ConnectPacket[] = [];
  const hooks = {
    preConnect: ({ packet }: { packet: ConnectPacket }) => {
      packets.push(packet);
    }
  };
  await using broker = await startBroker({ hooks });
  const client = await rawClient(broker, { connect: false });
  client.send(bytes);
  await client.next('connack');
  assert.equal(packets.length, 1);
  return packets[0];
}

function persistent(broker: Broker, clientId: string, clean = false): Promise<RawClient> {
  return rawClient(broker, { clientId, clean, properties: { sessionExpiryInterval: 100 } });
}

function cmds(packets: readonly Packet[]): string[] {
  return packets.map(({ cmd }) => cmd);
}

describe('CONNECT as the first packet', () => {
  it('[MQTT-3.1.0-1] closes without an answer when another packet comes first', async () => {
    await using broker = await startBroker();
    const first = [0x20, 0x30, 0x40, 0x50, 0x62, 0x70, 0x82, 0x90, 0xa2, 0xb0, 0xc0, 0xd0, 0xe0, 0xf0, 0x00];
    for (const byte of first) assert.equal(await bytesUntilClose(broker, frame(byte, ID)), '', `first byte ${byte}`);
    assert.equal(await bytesUntilClose(broker, Buffer.from('GET / HTTP/1.1\r\n\r\n')), '');
    assert.equal(await bytesUntilClose(broker, Buffer.from('1603010200010001fc0303', 'hex')), ''); // a TLS ClientHello
  });

  it('[MQTT-3.1.0-1] does not wait for the body of another first packet, regardless of its length field', async () => {
    await using broker = await startBroker();
    assert.equal(await bytesUntilClose(broker, Buffer.from('30ffffff7f', 'hex')), '');
    assert.equal(await bytesUntilClose(broker, Buffer.from('82ffff7f', 'hex')), '');
  });

  it('[MQTT-3.1.0-1] accepts a CONNECT that arrives byte by byte', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { connect: false });
    for (const byte of connectBytes({ clientId: 'slow' })) {
      client.send(Buffer.from([byte]));
      await turns(2);
    }
    assert.equal((await client.next('connack')).reasonCode, 0);
  });

  it('[MQTT-3.1.0-1] closes at the fixed header of a CONNECT that is larger than maxPacketSize', async () => {
    await using broker = await startBroker({ maxPacketSize: 1000 });
    assert.equal(await bytesUntilClose(broker, Buffer.from('10e907', 'hex')), '');
    const fits = connectBytes({ clientId: 'a'.repeat(1000 - 16) });
    assert.equal(fits.length, 1000);
    const client = await rawClient(broker, { connect: false });
    client.send(fits);
    assert.equal((await client.next('connack')).reasonCode, 0);
  });

  it('[MQTT-3.1.0-1] closes a connection whose CONNECT is not complete in time, even if bytes keep arriving', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, connectTimeout: 10_000 });
    const client = await rawClient(broker, { connect: false });
    const bytes = connectBytes({ clientId: 'a-client-id-of-many-bytes' });
    for (let second = 0; second < 9; second++) {
      client.send(bytes.subarray(second, second + 1));
      await clock.advance(1000);
    }
    client.send(bytes.subarray(9, 10));
    await clock.advance(999);
    assert.equal(client.isClosed, false);
    await clock.advance(1);
    assert.deepEqual(await client.closed(), []);
  });

  it('[MQTT-3.1.0-1] closes a silent connection after idleTimeout, and one that has started its CONNECT after connectTimeout', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, connectTimeout: 10_000, idleTimeout: 3000 });
    const silent = await rawClient(broker, { connect: false });
    const begun = await rawClient(broker, { connect: false });
    begun.sendBytes('10');
    await clock.advance(2999);
    assert.equal(silent.isClosed, false);
    await clock.advance(1);
    assert.deepEqual(await silent.closed(), []);
    assert.equal(begun.isClosed, false);
    await clock.advance(7000);
    assert.deepEqual(await begun.closed(), []);
  });

  it('[MQTT-3.1.0-1] closes a connection whose hook has not answered before the CONNECT timeout', async () => {
    const clock = new VirtualClock({ patienceMs: 20 });
    const hooks = { authenticate: () => withResolvers<boolean>().promise };
    await using broker = await startBroker({ clock, connectTimeout: 4000, hookTimeout: 60_000, hooks });
    const client = await rawClient(broker, { connect: false });
    client.send(connectPacket({ clientId: 'late' }));
    await clock.advance(3999);
    assert.equal(client.isClosed, false);
    await clock.advance(1);
    assert.ok((await client.next('connack')).reasonCode >= 0x80);
    await client.closed();
    assert.equal(broker.sessions.has('late'), false);
  });

  it('[MQTT-3.1.0-2] closes with 0x82 for a second CONNECT', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'twice' });
    client.send(connectPacket({ clientId: 'twice' }));
    assert.deepEqual(await client.refused(0x82), []);
  });

  it('[MQTT-3.1.0-2] processes packets before a second CONNECT in the same chunk, and none after it', async () => {
    await using broker = await startBroker();
    const reader = await rawClient(broker);
    await granted(reader, 1, 'x');
    const client = await rawClient(broker, { connect: false });
    const connect = connectBytes({ clientId: 'twice' });
    client.send(connect, publish('x', 'before'), connect, publish('x', 'behind'));
    await client.closed();
    assert.deepEqual(cmds(client.received), ['connack', 'disconnect']);
    assert.deepEqual(await payloads(reader), ['before']);
  });
});

describe('CONNECT: protocol name, version and flags', () => {
  /** The return code of 3.x for an unacceptable protocol version. */
  const V3 = '20020001';

  it('[MQTT-3.1.2-1] refuses other protocol names, and a name with the level of another version', async () => {
    await using broker = await startBroker();
    const pairs: [string, number][] = [
      ['mqtt', 5],
      ['MQTt', 5],
      ['MQTT ', 5],
      ['MQT', 5],
      ['', 5],
      ['MQIsdp', 5],
      ['MQIsdp', 4],
      ['MQTT', 3],
      ['mqisdp', 3],
      ['MQTT-SN', 4]
    ];
    for (const [name, level] of pairs) {
      const got = await bytesUntilClose(broker, connectBytes({ name, level }));
      const wanted = level === 5 ? got.replace(/^20..00(84).*/, '$1') : got;
      assert.equal(wanted, level === 5 ? '84' : V3, `${name} ${level}: ${got}`);
    }
    assert.deepEqual([...broker.sessions], []);
  });

  it('[MQTT-3.1.2-2] refuses unknown versions in the format of the nearest known version', async () => {
    await using broker = await startBroker();
    for (const level of [0, 1, 2, 6, 7, 100, 127, 128, 255]) {
      const got = await bytesUntilClose(broker, connectBytes({ level }));
      if ((level & 127) >= 5) assert.match(got, /^20..0084/, `level ${level}`);
      else assert.equal(got, V3, `level ${level}`);
    }
    // The bytes after the level are not read, because they may belong to a future version.
    assert.match(await bytesUntilClose(broker, frame(0x10, field('MQTT'), Buffer.from([6, 255, 255]))), /^20..0084/);
  });

  it('[MQTT-3.1.2-2] refuses versions that the zone or the listener does not allow', async () => {
    await using broker = await startBroker({ protocolVersions: [4] });
    assert.equal((await refusedConnect(broker)).reasonCode, 0x84);
    assert.equal(await bytesUntilClose(broker, connectBytes({ level: 3, name: 'MQIsdp' })), V3);
    const meta = { protocolVersions: [5] as const };
    // The test client's reader translates the return code to a reason code.
    assert.equal((await refusedConnect(broker, { version: 4, meta })).reasonCode, 0x84);
    assert.equal((await rawClient(broker, { meta })).connack?.reasonCode, 0);
  });

  it('[MQTT-3.1.2-3] refuses a CONNECT whose reserved flag is set: 0x81', async () => {
    await using broker = await startBroker();
    assert.equal(await refusal(broker, connectBytes({ flags: 0x03 })), 0x81);
    assert.equal(await refusal(broker, connectBytes({ flags: 0x01 })), 0x81);
    assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, flags: 0x03 })), '');
  });

  it('[MQTT-3.1.2-9] refuses a CONNECT whose will lacks its properties, topic or payload: 0x81', async () => {
    await using broker = await startBroker();
    for (const payload of [[], [NONE], [NONE, x], [NONE, x, u16(9)]])
      assert.equal(await refusal(broker, connectBytes({ flags: 0x06, payload })), 0x81);
    for (const payload of [[], [x], [x, u16(1)]])
      assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, flags: 0x06, payload })), '');
  });

  it('[MQTT-3.1.2-9] refuses a CONNECT with a will in the payload but no Will Flag: 0x81', async () => {
    await using broker = await startBroker();
    assert.equal(await refusal(broker, connectBytes({ flags: 0x02, payload: [NONE, x, x] })), 0x81);
    assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, flags: 0x02, payload: [x, x] })), '');
  });

  it('[MQTT-3.1.2-11] refuses a will QoS without the Will Flag', async () => {
    await using broker = await startBroker();
    for (const flags of [0x0a, 0x12]) {
      assert.equal(await refusal(broker, connectBytes({ flags })), 0x82);
      assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, flags })), '');
    }
  });

  it('[MQTT-3.1.2-12] refuses will QoS 3 with 0x81, with and without the Will Flag', async () => {
    await using broker = await startBroker();
    assert.equal(await refusal(broker, connectBytes({ flags: 0x1e, payload: [NONE, x, x] })), 0x81);
    assert.equal(await refusal(broker, connectBytes({ flags: 0x1a })), 0x81);
    assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, flags: 0x1e, payload: [x, x] })), '');
  });

  it('[MQTT-3.1.2-13] refuses Will Retain without the Will Flag', async () => {
    await using broker = await startBroker();
    assert.equal(await refusal(broker, connectBytes({ flags: 0x22 })), 0x82);
    assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, flags: 0x22 })), '');
  });

  it('[MQTT-3.1.2-16] refuses a user name without its flag: 0x81', async () => {
    await using broker = await startBroker();
    assert.equal(await refusal(broker, connectBytes({ flags: 0x02, payload: [field('user')] })), 0x81);
    assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, payload: [field('user')] })), '');
  });

  it('[MQTT-3.1.2-17] refuses the user name flag without a user name: 0x81', async () => {
    await using broker = await startBroker();
    assert.equal(await refusal(broker, connectBytes({ flags: 0x82 })), 0x81);
    assert.equal(await refusal(broker, connectBytes({ flags: 0x82, payload: [u16(5), Buffer.from('user')] })), 0x81);
    assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, flags: 0x82 })), '');
  });

  it('[MQTT-3.1.2-18] refuses a password without its flag: 0x81', async () => {
    await using broker = await startBroker();
    const payload = [field('user'), field('password')];
    assert.equal(await refusal(broker, connectBytes({ flags: 0x82, payload })), 0x81);
    assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, flags: 0x82, payload })), '');
  });

  it('[MQTT-3.1.2-19] refuses the password flag without a password: 0x81', async () => {
    await using broker = await startBroker();
    assert.equal(await refusal(broker, connectBytes({ flags: 0xc2, payload: [field('user')] })), 0x81);
    assert.equal(await refusal(broker, connectBytes({ flags: 0x42 })), 0x81);
    assert.equal(await bytesUntilClose(broker, connectBytes({ level: 4, flags: 0xc2, payload: [field('user')] })), '');
  });

  it('[MQTT-3.1.2-19] accepts a password without a user name, and an empty password', async () => {
    const alone = await seen(connectBytes({ flags: 0x42, payload: [field(Buffer.from([0, 255]))] }));
    assert.equal(alone.username, undefined);
    assert.deepEqual(alone.password, Buffer.from([0, 255]));
    const empty = await seen(connectBytes({ flags: 0xc2, payload: [field(''), field('')] }));
    assert.equal(empty.username, '');
    assert.deepEqual(empty.password, Buffer.alloc(0));
  });
});

describe('CONNECT: payload', () => {
  it('[MQTT-3.1.3-1] reads client id, will properties, will topic, will payload, user name and password in this order', async () => {
    const will = [sized(Buffer.from([0x18]), u32(7)), field('will/topic'), field('will payload')];
    const names = [field('user'), field('password')];
    const packet = await seen(
      connectBytes({ clientId: 'me', flags: 0xf6, keepalive: 9, payload: [...will, ...names] })
    );
    assert.deepEqual(packet, {
      cmd: 'connect',
      protocolVersion: 5,
      bridge: false,
      clientId: 'me',
      clean: true,
      keepalive: 9,
      will: {
        topic: 'will/topic',
        payload: Buffer.from('will payload'),
        qos: 2,
        retain: true,
        properties: { willDelayInterval: 7 }
      },
      username: 'user',
      password: Buffer.from('password')
    });
  });

  it('[MQTT-3.1.3-2] keeps separate session state for each client id', async () => {
    await using broker = await startBroker();
    const one = await persistent(broker, 'one');
    await granted(one, 1, { topic: 'x', qos: 1 });
    await persistent(broker, 'two');
    assert.deepEqual([...broker.sessions.get('two').subscriptions()], []);
    for (const other of ['One', 'one ', 'on']) assert.equal(broker.sessions.has(other), false);
    one.cut();
    await turns();
    assert.equal((await persistent(broker, 'One')).connack?.sessionPresent, false);
    assert.equal((await persistent(broker, 'one')).connack?.sessionPresent, true);
  });

  it('[MQTT-3.1.3-3] refuses a CONNECT without a client id field: 0x81', async () => {
    await using broker = await startBroker();
    const head = Buffer.concat([field('MQTT'), Buffer.from([5, 2, 0, 0, 0])]);
    assert.equal(await refusal(broker, frame(0x10, head)), 0x81);
    assert.equal(await refusal(broker, frame(0x10, head, NONE)), 0x81);
    assert.equal(await refusal(broker, frame(0x10, head, u16(3), Buffer.from('ab'))), 0x81);
  });

  it('[MQTT-3.1.3-4] refuses a client id that is not UTF-8: 0x81', async () => {
    await using broker = await startBroker();
    assert.equal(await refusal(broker, connectBytes({ clientId: Buffer.from('c3', 'hex') })), 0x81);
  });

  it('[MQTT-3.1.3-5] accepts client ids of 1 to 23 letters and digits, longer ones, and ones with other characters', async () => {
    await using broker = await startBroker();
    const letters = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
    const ids = [...letters, ...[0, 20, 39].map((at) => letters.slice(at, at + 23))];
    ids.push('a'.repeat(24), 'a/b+c#d', ' ', '$SYS', '💡', '__proto__', 'constructor', 'a'.repeat(4096));
    for (const clientId of ids) {
      for (const version of [3, 4, 5] as const) {
        const client = await rawClient(broker, { clientId, version });
        assert.equal(client.connack?.reasonCode, 0, clientId);
        assert.equal(broker.sessions.get(clientId).state, 'connected');
        assert.equal(client.connack?.properties?.assignedClientIdentifier, undefined);
        client.cut();
      }
      await turns(4);
    }
  });

  it('[MQTT-3.1.3-6] assigns a unique client id to a client that sends an empty one', async () => {
    await using broker = await startBroker();
    const ids = new Set<string>();
    for (let count = 0; count < 200; count++) {
      const client = await rawClient(broker, { clientId: '' });
      ids.add(client.connack?.properties?.assignedClientIdentifier ?? '');
    }
    assert.equal(ids.size, 200);
    assert.equal(ids.has(''), false);
  });

  it('[MQTT-3.1.3-6] assigns a client id no longer than the broker accepts', async () => {
    await using broker = await startBroker({ maxClientidLen: 23 });
    const client = await rawClient(broker, { clientId: '' });
    assert.equal(client.connack?.properties?.assignedClientIdentifier?.length, 23);
  });

  it('[MQTT-3.1.3-7] reports the assigned client id, which the client can use to resume the session', async () => {
    await using broker = await startBroker();
    const first = await rawClient(broker, { clientId: '', clean: false, properties: { sessionExpiryInterval: 100 } });
    const clientId = first.connack?.properties?.assignedClientIdentifier as string;
    assert.match(clientId, /^[0-9a-zA-Z-]+$/);
    assert.equal(first.connack?.sessionPresent, false);
    first.cut();
    await turns();
    const second = await persistent(broker, clientId);
    assert.equal(second.connack?.sessionPresent, true);
    assert.equal(second.connack?.properties?.assignedClientIdentifier, undefined);
  });

  it('[MQTT-3.1.3-8] refuses client ids that it does not accept: 0x85', async () => {
    await using broker = await startBroker({ maxClientidLen: 30, mountpoint: 'devices/%c/' });
    assert.equal((await refusedConnect(broker, { clientId: 'a'.repeat(31) })).reasonCode, 0x85);
    assert.equal((await refusedConnect(broker, { clientId: 'é'.repeat(16) })).reasonCode, 0x85);
    assert.equal((await refusedConnect(broker, { clientId: 'a+' })).reasonCode, 0x85);
    assert.equal((await refusedConnect(broker, { clientId: '#' })).reasonCode, 0x85);
    assert.equal((await refusedConnect(broker, { clientId: 'a'.repeat(31), version: 4 })).reasonCode, 0x85);
    assert.equal((await rawClient(broker, { clientId: 'a'.repeat(30) })).connack?.reasonCode, 0);
  });

  it('[MQTT-3.1.3-12] refuses a user name that is not UTF-8: 0x81', async () => {
    await using broker = await startBroker();
    const payload = [field(Buffer.from('eda080', 'hex'))];
    assert.equal(await refusal(broker, connectBytes({ flags: 0x82, payload })), 0x81);
  });
});

describe('CONNECT: result', () => {
  it('[MQTT-3.1.4-1] refuses a CONNECT that is truncated at any byte, and one with trailing bytes: 0x81', async () => {
    await using broker = await startBroker();
    const payload = [sized(Buffer.from([0x01, 1])), x, x, field('user'), field('password')];
    const whole = connectBytes({ flags: 0xe6, properties: Buffer.concat([Buffer.from([0x11]), u32(9)]), payload });
    for (let end = 2; end < whole.length; end++) {
      const cut = frame(0x10, whole.subarray(2, end));
      // Before the protocol level has arrived, the format of an answer is not known.
      if (end < 2 + 7) assert.equal(await bytesUntilClose(broker, cut), '', `${end} bytes`);
      else assert.equal(await refusal(broker, cut), 0x81, `${end} bytes`);
    }
    assert.equal(await refusal(broker, frame(0x10, whole.subarray(2), NONE)), 0x81);
    assert.deepEqual([...broker.sessions], []);
  });

  it('[MQTT-3.1.4-2] leaves the connected client, its session and its will unchanged when another CONNECT is refused', async () => {
    const hooks = { authenticate: ({ password }: AuthenticateRequest) => String(password) === 'good' };
    await using broker = await startBroker({ hooks });
    const reader = await rawClient(broker, { username: 'r', password: Buffer.from('good') });
    await granted(reader, 1, '#');
    const owner = await rawClient(broker, { clientId: 'me', username: 'u', password: Buffer.from('good') });
    await granted(owner, 1, 'x');
    const will = { topic: 'will', payload: Buffer.from('of the thief'), qos: 0 as const, retain: true };
    for (const clean of [true, false]) {
      for (const version of [4, 5] as const) {
        const bad = { clientId: 'me', clean, version, username: 'u', password: Buffer.from('bad'), will };
        const { reasonCode, sessionPresent } = await refusedConnect(broker, bad);
        assert.equal(reasonCode, 0x86);
        assert.equal(sessionPresent, false);
      }
    }
    await owner.nothing();
    await reader.nothing();
    assert.equal([...broker.sessions.get('me').subscriptions()].length, 1);
  });

  it('[MQTT-3.1.4-2] lets an app check more, and refuse with its own code', async () => {
    let verdict: Verdict = false;
    await using broker = await startBroker({ hooks: { preConnect: () => verdict } });
    assert.equal((await refusedConnect(broker)).reasonCode, 0x87);
    verdict = { allow: false, reasonCode: 0x8a, reasonString: 'go away' };
    const connack = await refusedConnect(broker);
    assert.equal(connack.reasonCode, 0x8a);
    assert.equal(connack.properties?.reasonString, 'go away');
    verdict = { allow: false, reasonCode: 0x9d, serverReference: 'elsewhere:1883' };
    assert.equal((await refusedConnect(broker)).properties?.serverReference, 'elsewhere:1883');
    verdict = true;
    assert.equal((await rawClient(broker)).connack?.reasonCode, 0);
  });

  it('[MQTT-3.1.4-2] refuses the CONNECT whose hook throws, and no other', async () => {
    const hooks = {
      authenticate: ({ client }: AuthenticateRequest) => {
        if (client.clientId === 'bad') throw new Error('out of order');
        return true;
      }
    };
    await using broker = await startBroker({ hooks });
    const errors: string[] = [];
    broker.on('error', ({ error }) => errors.push(error.message));
    assert.ok((await refusedConnect(broker, { clientId: 'bad' })).reasonCode >= 0x80);
    assert.equal((await rawClient(broker, { clientId: 'good' })).connack?.reasonCode, 0);
    assert.deepEqual(errors, ['out of order']);
  });

  it('[MQTT-3.1.4-5] answers a valid CONNECT with 0x00, from the shortest one to one with every field', async () => {
    await using broker = await startBroker({ maxConnectSize: '256KB' });
    const userProperties: UserProperty[] = [
      ['a', '1'],
      ['a', '1']
    ];
    const client = await rawClient(broker, {
      clientId: 'all',
      clean: false,
      keepalive: 65_535,
      username: 'user',
      password: Buffer.alloc(65_535),
      will: {
        topic: 'will',
        payload: Buffer.alloc(65_535),
        qos: 2,
        retain: true,
        properties: { willDelayInterval: 1 }
      },
      properties: {
        sessionExpiryInterval: 1,
        receiveMaximum: 1,
        maximumPacketSize: 1000,
        topicAliasMaximum: 1,
        requestResponseInformation: 1,
        requestProblemInformation: 0,
        userProperties
      }
    });
    assert.equal(client.connack?.reasonCode, 0);
    assert.deepEqual(broker.sessions.get('all').client.userProperties, userProperties);
    assert.equal((await rawClient(broker, { clientId: '' })).connack?.reasonCode, 0);
  });

  it('[MQTT-3.1.4-6] processes no packet that follows a refused CONNECT', async () => {
    const answer = withResolvers<boolean>();
    for (const authenticate of [() => false, () => answer.promise]) {
      await using broker = await startBroker({ hooks: { authenticate } });
      let published = 0;
      broker.on('message.publish', () => published++);
      const client = await rawClient(broker, { connect: false });
      client.send(connectPacket({ clientId: 'me' }), publish('x', '1'), subscribe(1, 'x'), publish('x', '2'));
      client.send(publish('x', '3', { retain: true }), { cmd: 'pingreq' });
      await turns();
      answer.resolve(false);
      assert.deepEqual(cmds(await client.closed()), ['connack']);
      assert.equal(published, 0);
      assert.equal(broker.sessions.has('me'), false);
    }
  });
});

describe('Packets sent before CONNACK', () => {
  it('[MQTT-3.1.4-5] processes packets sent before CONNACK in order once the hook has accepted the client', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({ hooks: { authenticate: () => answer.promise } });
    const client = await rawClient(broker, { connect: false });
    client.send(connectPacket(), subscribe(1, { topic: 'x', qos: 1 }), publish('x', '1'));
    await turns();
    client.send(publish('x', '2', { qos: 1, messageId: 5 }), { cmd: 'pingreq' });
    await turns();
    assert.deepEqual(client.received, []);
    answer.resolve(true);
    const got = [];
    for (let count = 0; count < 6; count++) got.push((await client.next()).cmd);
    assert.deepEqual(got, ['connack', 'suback', 'publish', 'publish', 'puback', 'pingresp']);
  });

  it('[MQTT-3.1.4-5] processes packets sent before CONNACK when a chunk ends in the middle of a packet', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({ hooks: { preConnect: () => answer.promise } });
    const client = await rawClient(broker, { connect: false });
    const bytes = frame(0x32, x, ID, NONE, Buffer.alloc(100_000, 'a'));
    client.send(connectPacket(), bytes.subarray(0, 50_000));
    await turns();
    client.send(bytes.subarray(50_000, 99_999));
    await turns();
    answer.resolve(true);
    await client.next('connack');
    client.send(bytes.subarray(99_999));
    assert.equal((await client.next('puback')).messageId, 1);
  });

  it('[MQTT-3.1.4-5] closes a client that sends more packets before CONNACK than the broker buffers', async () => {
    await using broker = await startBroker({
      hooks: { preConnect: () => withResolvers<boolean>().promise },
      hookTimeout: 60_000,
      maxPacketSize: 1000,
      maxHeldBytes: 10_000
    });
    const client = await rawClient(broker, { connect: false });
    client.send(connectPacket());
    for (let count = 0; count < 200; count++) client.send(publish('x', 'a'.repeat(900)));
    await turns(40);
    const waiting = client.stream.writableLength;
    // The broker either has stopped reading or has sent the reason for the close.
    assert.ok(client.isClosed || waiting > 0, `${waiting} bytes are unsent`);
  });

  it('[MQTT-3.1.2-30] closes with 0x82 a client that sends anything but AUTH and DISCONNECT during an authentication exchange', async () => {
    const hooks = { authenticate: () => ({ challenge: Buffer.from('who?') }) };
    await using broker = await startBroker({ hooks });
    const others: (Packet | Buffer)[] = [
      publish('x'),
      subscribe(1, 'x'),
      { cmd: 'pingreq' },
      { cmd: 'puback', messageId: 1, reasonCode: 0 },
      connectPacket()
    ];
    for (const packet of others) {
      const client = await rawClient(broker, { connect: false });
      client.send(connectPacket({ properties: { authenticationMethod: 'm' } }));
      assert.equal((await client.next('auth')).reasonCode, 0x18);
      client.send(packet);
      assert.equal((await client.next('connack')).reasonCode, 0x82);
      await client.closed();
    }
    const client = await rawClient(broker, { connect: false });
    client.send(connectPacket({ properties: { authenticationMethod: 'm' } }));
    await client.next('auth');
    client.send({ cmd: 'disconnect', reasonCode: 0 });
    await client.closed();
    assert.deepEqual(cmds(client.received), ['auth']);
  });

  it('[MQTT-3.1.4-2] notifies a hook when the client that it decides on has disconnected', async () => {
    const signals: AbortSignal[] = [];
    const ask = ({ signal }: { signal: AbortSignal }) => {
      signals.push(signal);
      return withResolvers<boolean>().promise;
    };
    for (const hooks of [{ preConnect: ask }, { authenticate: ask }]) {
      await using broker = await startBroker({ hooks, hookTimeout: 60_000 });
      const client = await rawClient(broker, { connect: false });
      client.send(connectPacket());
      await turns();
      assert.equal(signals.at(-1)?.aborted, false);
      client.cut();
      await turns();
      assert.equal(signals.at(-1)?.aborted, true);
    }
    assert.equal(signals.length, 2);
  });

  it('[MQTT-3.1.4-5] publishes what a client sent before it disconnected, even if a hook was still pending', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({ hooks: { authenticate: () => answer.promise } });
    const got: string[] = [];
    broker.subscribe('#', ({ payload }) => {
      got.push(String(payload));
    });
    const client = await rawClient(broker, { connect: false });
    const will = { topic: 'will', payload: Buffer.from('will'), qos: 0 as const, retain: false };
    client.send(connectPacket({ will }), publish('x', '1'), { cmd: 'disconnect', reasonCode: 0 });
    client.stream.end();
    await turns();
    assert.deepEqual(got, []);
    answer.resolve(true);
    await turns();
    assert.deepEqual(got, ['1']);
  });
});
