import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { ConnectPacket } from '../../lib/packets/types.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish, startBroker, turns } from '../support/wire.ts';
import { type ConnectParts, connectBytes, field } from '../support/wire-connect.ts';

const x = field('x');

/** Encodes a CONNECT of 3.1 (`MQIsdp`, level 3) or 3.1.1. */
function connect(level: 3 | 4, parts: ConnectParts = {}): Buffer {
  return connectBytes({ name: level === 3 ? 'MQIsdp' : 'MQTT', level, ...parts });
}

/**
 * Sends bytes and waits until the broker closes the connection.
 * @returns the received bytes, in hexadecimal
 */
async function refusal(broker: Broker, bytes: Buffer): Promise<string> {
  const stream = broker.stream();
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.write(bytes);
  await once(stream, 'end');
  return Buffer.concat(chunks).toString('hex');
}

/**
 * Sends bytes that the broker accepts.
 * @returns the CONNECT that the broker read
 */
async function accepted(bytes: Buffer): Promise<ConnectPacket> {
  const packets: ConnectPacket[] = [];
  const hooks = {
    preConnect: ({ packet }: { packet: ConnectPacket }) => {
      packets.push(packet);
    }
  };
  await using broker = await startBroker({ hooks });
  const client = await rawClient(broker, { version: 4, connect: false });
  client.send(bytes);
  assert.equal((await client.next('connack')).reasonCode, 0);
  await client.nothing();
  return packets[0];
}

describe('CONNECT of 3.x', () => {
  for (const level of [3, 4] as const) {
    const which = `protocol level ${level}`;

    it(`[MQTT3-3.1.0-2] closes without an answer for a second CONNECT (${which})`, async () => {
      await using broker = await startBroker();
      const client = await rawClient(broker, { version: level });
      client.send(connectPacket({ version: level }));
      assert.deepEqual(await client.refused(0x82), []);
      assert.equal(client.received.length, 1);
    });

    it(`[MQTT3-3.1.2-22] closes for a password without a user name (${which})`, async () => {
      await using broker = await startBroker();
      assert.equal(await refusal(broker, connect(level, { flags: 0x42, payload: [field('password')] })), '');
      const both = await accepted(connect(level, { flags: 0xc2, payload: [field('user'), field('password')] }));
      assert.deepEqual([both.username, String(both.password)], ['user', 'password']);
      const name = await accepted(connect(level, { flags: 0x82, payload: [field('user')] }));
      assert.deepEqual([name.username, name.password], ['user', undefined]);
    });

    it(`[MQTT3-3.1.3-9] refuses a client id with return code 2 and closes (${which})`, async () => {
      await using broker = await startBroker({ maxClientidLen: 40, mountpoint: '%c/' });
      assert.equal(await refusal(broker, connect(level, { clientId: 'a'.repeat(41) })), '20020002');
      assert.equal(await refusal(broker, connect(level, { clientId: 'a/#' })), '20020002');
    });

    it(`[MQTT3-3.1.4-5] keeps nothing of a CONNECT that is refused (${which})`, async () => {
      await using broker = await startBroker({ allowAnonymous: false });
      let published = 0;
      broker.on('message.publish', () => published++);
      const bytes = connect(level, { flags: 0x04, clientId: 'me', payload: [x, x] });
      assert.equal(await refusal(broker, bytes), '20020005');
      await turns();
      assert.equal(published, 0);
      assert.equal(broker.sessions.has('me'), false);
    });

    it(`[MQTT3-4.8.0-1] closes without an answer for a CONNECT truncated at any byte (${which})`, async () => {
      await using broker = await startBroker();
      const payload = [x, x, field('user'), field('password')];
      const whole = connect(level, { flags: 0xc6, payload });
      for (let end = 2; end < whole.length; end++) {
        // In 3.1 user name and password may be missing although their flags are set.
        const isWhole = level === 3 && (end === whole.length - 10 || end === whole.length - 16);
        if (isWhole) continue;
        const cut = Buffer.concat([Buffer.from([0x10, end - 2]), whole.subarray(2, end)]);
        assert.equal(await refusal(broker, cut), '', `${end} of ${whole.length} bytes`);
      }
      const long = Buffer.concat([Buffer.from([0x10, whole.length - 1]), whole.subarray(2), Buffer.from([0])]);
      assert.equal(await refusal(broker, long), '');
    });
  }

  it('[MQTT3-3.1.2-1] refuses another protocol name', async () => {
    await using broker = await startBroker();
    for (const name of ['mqtt', 'MQIsdp', 'MQTTT', '', 'HTTP'])
      assert.equal(await refusal(broker, connectBytes({ name, level: 4 })), '20020001', name);
    assert.equal(await refusal(broker, connectBytes({ name: 'MQTT', level: 3 })), '20020001');
    // If the name is not a valid string, the broker does not answer.
    assert.equal(await refusal(broker, connectBytes({ name: Buffer.from([0xff, 0xff]), level: 4 })), '');
  });

  it('[MQTT3-3.1.2-2] refuses an unknown protocol level with return code 1 and closes', async () => {
    await using broker = await startBroker();
    for (const level of [0, 1, 2, 3]) assert.equal(await refusal(broker, connectBytes({ level })), '20020001');
    await using only5 = await startBroker({ protocolVersions: [5] });
    for (const level of [3, 4] as const) assert.equal(await refusal(only5, connect(level)), '20020001');
  });

  it('[MQTT3-3.1.3-7] assigns a client id to a client without one if CleanSession is 1', async () => {
    await using broker = await startBroker();
    const ids = new Set<string>();
    broker.on('client.connected', ({ client }) => ids.add(client.clientId));
    for (let count = 0; count < 5; count++) {
      const client = await rawClient(broker, { version: 4, clientId: '', clean: true });
      await granted(client, 1, `own/${count}`);
      client.send(publish(`own/${count}`, '1'));
      assert.deepEqual(await payloads(client), ['1']);
    }
    assert.equal(ids.size, 5);
    assert.equal(ids.has(''), false);
  });

  it('[MQTT3-3.1.3-8] refuses a client without a client id with return code 2 if CleanSession is 0', async () => {
    await using broker = await startBroker();
    assert.equal(await refusal(broker, connect(4, { flags: 0, clientId: '' })), '20020002');
    assert.deepEqual([...broker.sessions], []);
  });
});

describe('CONNECT of 3.1', () => {
  it('[MQTT31-client-id] accepts client ids of 1 to 23 characters, and longer ones', async () => {
    await using broker = await startBroker();
    for (const length of [1, 22, 23, 24, 100]) {
      const clientId = 'c'.repeat(length);
      const client = await rawClient(broker, { version: 3, clientId });
      assert.equal(client.connack?.reasonCode, 0);
      assert.equal(broker.sessions.get(clientId).client.protocolVersion, 3);
    }
  });

  it('[MQTT31-no-empty-id] refuses an empty client id with return code 2, for any CleanSession', async () => {
    await using broker = await startBroker();
    for (const flags of [0, 2]) assert.equal(await refusal(broker, connect(3, { flags, clientId: '' })), '20020002');
  });

  it('[MQTT31-client-id] treats user name and password as absent if their flags are set but the length leaves no room for them', async () => {
    const neither = await accepted(connect(3, { flags: 0xc2 }));
    assert.deepEqual([neither.username, neither.password], [undefined, undefined]);
    const name = await accepted(connect(3, { flags: 0xc2, payload: [field('user')] }));
    assert.deepEqual([name.username, name.password], ['user', undefined]);
  });

  it('[MQTT31-unused] accepts a CONNECT of MQTT 3.1 with unused bits set, and closes for each of them in 3.1.1', async () => {
    // The reserved flag; Will QoS 1, 2 and 3 and Will Retain without a will; the flags of the fixed header.
    const unused: ConnectParts[] = [0x03, 0x0a, 0x12, 0x1a, 0x22, 0x3b].map((flags) => ({ flags }));
    for (const first of [0x11, 0x12, 0x16, 0x18, 0x1f]) unused.push({ first });
    await using broker = await startBroker();
    for (const parts of unused) {
      const packet = await accepted(connect(3, parts));
      assert.deepEqual([packet.clientId, packet.clean, packet.will], ['raw', true, undefined], JSON.stringify(parts));
      assert.equal(await refusal(broker, connect(4, parts)), '', JSON.stringify(parts));
    }
    const login = await accepted(connect(3, { flags: 0xfb, payload: [field('user'), field('password')] }));
    assert.deepEqual([login.username, String(login.password)], ['user', 'password']);
  });

  it('[MQTT31-bridge] treats bit 7 of the level as the mark of a bridge, in 3.1 and 3.1.1 only', async () => {
    await using broker = await startBroker();
    for (const version of [3, 4] as const) {
      const client = await rawClient(broker, { version, clientId: `bridge${version}`, bridge: true });
      assert.equal(client.connack?.reasonCode, 0);
      assert.equal(broker.sessions.get(`bridge${version}`).client.isBridge, true);
      assert.equal(broker.sessions.get(`bridge${version}`).client.protocolVersion, version);
      await rawClient(broker, { version, clientId: `plain${version}` });
      assert.equal(broker.sessions.get(`plain${version}`).client.isBridge, false);
    }
    assert.match(await refusal(broker, connectBytes({ level: 0x85 })), /^20..0084/);
  });
});
