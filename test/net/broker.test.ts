import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt';
import { type Listener, listen, tls, ws } from '../../adapters/net/index.ts';
import { Broker, type BrokerError, type TransportInfo } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { makeCertificates } from '../support/certificates.ts';
import { connect } from '../support/wire.ts';
import { closed, readBytes, turnsUntil } from './stub-broker.ts';

let broker: Broker;
const clients: MqttClient[] = [];

function dial(scheme: string, { port }: Listener, options: IClientOptions = {}): Promise<MqttClient> {
  return mqtt.connectAsync(`${scheme}://127.0.0.1:${port}`, { reconnectPeriod: 0, ...options }).then((client) => {
    client.on('error', () => {});
    clients.push(client);
    return client;
  });
}

/** Connects a client over WebSocket whose frames the test builds itself. */
async function framedClient({ port }: Listener): Promise<Socket> {
  const socket = connectTcp(port as number, '127.0.0.1');
  socket.on('error', () => {});
  const head = [
    'GET /mqtt HTTP/1.1',
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: mqtt'
  ];
  const connected = broker.nextEvent('client.connected');
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(frame(2, encode(connect(5, { clientId: 'framed' }), 5)));
  await connected;
  let answer = '';
  while (!answer.endsWith('\r\n\r\n')) answer += (await readBytes(socket, 1)).toString('latin1');
  const [, length] = await readBytes(socket, 2);
  await readBytes(socket, length); // CONNACK
  return socket;
}

/** Builds the frame of a client, masked with zeros. */
function frame(opcode: number, payload: Buffer, isFinal = true): Buffer {
  return Buffer.concat([Buffer.from([(isFinal ? 0x80 : 0) | opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}

beforeEach(() => {
  broker = new Broker();
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.end(true);
  await broker.stop();
});

describe('a broker with listeners', () => {
  it('opens its listeners on start, closes them on stop, and opens them again', async () => {
    const listeners = [listen(broker, 0), listen(broker, ws({ port: 0 }))];
    assert.deepEqual(
      listeners.map(({ address }) => address),
      [undefined, undefined]
    );
    for (let life = 0; life < 2; life++) {
      await broker.start();
      for (const { port } of listeners) assert.ok((port as number) > 0);
      await broker.stop();
      for (const { address } of listeners) assert.equal(address, undefined);
    }
  });

  it('fails to start with the address in the message, and leaves nothing open', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const first = listen(broker, 0);
    listen(broker, port);
    await assert.rejects(
      broker.start(),
      (error: BrokerError) => error.code === 'LISTENER_BIND_FAILED' && error.message.includes(`127.0.0.1:${port}`)
    );
    assert.equal(first.address, undefined);
    other.close();
    await once(other, 'close');
    await broker.start();
    assert.notEqual(first.address, undefined);
  });

  it('opens a listener that is added after its start at once, and reports a failure as an error event', async () => {
    await broker.start();
    const listener = await listen(broker, 0);
    const failed = broker.nextEvent('error');
    listen(broker, listener.port as number);
    const { error, during } = await failed;
    assert.equal((error as BrokerError).code, 'LISTENER_BIND_FAILED');
    assert.match(during, /opening listener tcp:\d+/);
    assert.equal(broker.listeners().length, 1);
  });

  it('refuses an unknown zone before anything is opened', () => {
    assert.throws(() => listen(broker, { port: 0, zone: 'nowhere' }), { code: 'ZONE_UNKNOWN' });
    assert.deepEqual(broker.listeners(), []);
  });

  it('routes between clients of all kinds of listeners', async () => {
    using certificates = makeCertificates();
    const { cert, key } = certificates.server;
    await broker.start();
    const plain = await listen(broker, 0);
    const secure = await listen(broker, tls({ port: 0, cert, key }));
    const web = await listen(broker, ws({ port: 0 }));
    const secureWeb = await listen(broker, { port: 0, tls: { cert, key }, ws: true });
    const ca = certificates.ca.cert;
    const dialed = await Promise.all([
      dial('mqtt', plain),
      dial('mqtts', secure, { ca, protocolVersion: 5 }),
      dial('ws', web, { path: '/mqtt' }),
      dial('wss', secureWeb, { path: '/mqtt', ca, protocolVersion: 5 })
    ]);
    const payload = Buffer.alloc(300_000, 'x');
    const heard = dialed.map(async (client) => {
      await client.subscribeAsync('a/#', { qos: 1 });
      return client;
    });
    await Promise.all(heard);
    const messages = dialed.map(
      (client) =>
        new Promise<[string, Buffer]>((resolve) =>
          client.once('message', (topic, received) => resolve([topic, received]))
        )
    );
    await dialed[3].publishAsync('a/b', payload, { qos: 1 });
    for (const [topic, received] of await Promise.all(messages)) {
      assert.equal(topic, 'a/b');
      assert.ok(payload.equals(received));
    }
  });

  it('takes the identity of a pre-shared key as user name, without calling the authenticate hook', async () => {
    const asked: string[] = [];
    broker.hook('authenticate', ({ client }) => {
      asked.push(client.clientId);
      return { allow: false };
    });
    await broker.start();
    const listener = await listen(broker, tls({ port: 0, psk: { 'device-7': '0011' } }));
    const connected = broker.nextEvent('client.connected');
    const psk = Buffer.from('0011', 'hex');
    await dial('mqtts', listener, {
      clientId: 'c',
      ciphers: 'PSK',
      pskCallback: () => ({ identity: 'device-7', psk }),
      checkServerIdentity: () => undefined
    } as IClientOptions);
    const { client } = await connected;
    assert.equal(client.username, 'device-7');
    assert.equal((client.transportInfo as TransportInfo).authenticated, true);
    assert.deepEqual(asked, []);
  });

  it('refuses a banned user even with a pre-shared key', async () => {
    await broker.start();
    await broker.access.banned.create({ kind: 'username', who: 'device-7' });
    const listener = await listen(broker, tls({ port: 0, psk: { 'device-7': '0011' } }));
    const psk = Buffer.from('0011', 'hex');
    const options = { ciphers: 'PSK', pskCallback: () => ({ identity: 'device-7', psk }), protocolVersion: 5 as const };
    const login = dial('mqtts', listener, { ...options, checkServerIdentity: () => undefined } as IClientOptions);
    await assert.rejects(login, { code: 0x8a });
  });

  it('counts the reasons of disconnects for each listener', async () => {
    await broker.start();
    const listener = await listen(broker, { port: 0, name: 'counted' });
    const other = await listen(broker, 0);
    const client = await dial('mqtt', listener);
    await client.endAsync();
    const cut = await dial('mqtt', listener);
    cut.stream.destroy();
    await turnsUntil(() => listener.info().currentConnections === 0);
    await turnsUntil(() => Object.keys(listener.info().shutdownCount).length === 2);
    assert.deepEqual(listener.info().shutdownCount, { normal: 1, closed: 1 });
    assert.deepEqual(other.info().shutdownCount, {});
  });

  const mistakes: [name: string, bytes: Buffer, closeCode: number, reason: string][] = [
    ['a text frame', frame(1, Buffer.from('hi')), 1003, 'protocol_error'],
    ['a text frame with invalid UTF-8', frame(1, Buffer.from([0xff])), 1007, 'protocol_error'],
    ['an unmasked frame', Buffer.from([0x82, 1, 0x30]), 1002, 'protocol_error'],
    ['reserved bits', Buffer.from([0xf2, 0x80, 0, 0, 0, 0]), 1002, 'protocol_error'],
    ['an unknown opcode', frame(3, Buffer.alloc(1)), 1002, 'protocol_error'],
    ['a ping in fragments', frame(9, Buffer.alloc(1), false), 1002, 'protocol_error'],
    ['a continuation without a first frame', frame(0, Buffer.alloc(1)), 1002, 'protocol_error'],
    ['a close code that must not be sent', frame(8, Buffer.from([0x03, 0xed])), 1002, 'protocol_error'],
    ['a message of 4 GB', Buffer.from('82ff0000000100000000', 'hex'), 1009, 'packet_too_large']
  ];
  for (const [name, bytes, closeCode, reason] of mistakes) {
    it(`closes a connection with ${closeCode} after ${name}, gives the reason, and emits no error event [MQTT-6.0.0-1]`, async () => {
      await broker.start();
      const listener = await listen(broker, ws({ port: 0 }));
      const errors: Error[] = [];
      broker.on('error', ({ error }) => errors.push(error));
      const gone = broker.nextEvent('client.disconnected');
      const client = await framedClient(listener);
      client.write(bytes);
      const answer = await readBytes(client, 4);
      assert.deepEqual([answer[0], answer.readUInt16BE(2)], [0x88, closeCode]);
      const { reason: told, reasonCode } = await gone;
      assert.equal(told, reason);
      assert.equal(reasonCode, reason === 'packet_too_large' ? 0x95 : 0x82);
      client.destroy();
      await turnsUntil(() => listener.info().currentConnections === 0);
      assert.deepEqual(listener.info().shutdownCount, { [reason]: 1 });
      assert.deepEqual(errors, []);
    });
  }

  it('disconnects a client whose WebSocket answers no ping with the reason of an expired keep alive', async () => {
    await using kit = await createTestBroker();
    const listener = await listen(kit.broker, ws({ port: 0, pingInterval: '5s' }));
    const errors: Error[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error));
    broker = kit.broker;
    const gone = kit.broker.nextEvent('client.disconnected');
    const client = await framedClient(listener);
    await kit.clock.advance('5s');
    await readBytes(client, 2);
    await kit.clock.advance('5s');
    const { reason, reasonCode } = await gone;
    assert.deepEqual([reason, reasonCode, errors], ['keepalive_timeout', 0x8d, []]);
    client.destroy();
  });

  it('disconnects a client that breaks TLS after the handshake, without an error event', async () => {
    using certificates = makeCertificates();
    const { cert, key } = certificates.server;
    await broker.start();
    const listener = await listen(broker, tls({ port: 0, cert, key }));
    const errors: Error[] = [];
    broker.on('error', ({ error }) => errors.push(error));
    const raw = connectTcp(listener.port as number, '127.0.0.1');
    raw.on('error', () => {});
    const secure = connectTls({ socket: raw, ca: certificates.ca.cert });
    secure.on('error', () => {});
    await once(secure, 'secureConnect');
    const connected = broker.nextEvent('client.connected');
    const gone = broker.nextEvent('client.disconnected');
    secure.write(encode(connect(5, { clientId: 'c' }), 5));
    await connected;
    raw.write(Buffer.from('170303001000112233445566778899aabbccddeeff', 'hex'));
    assert.equal((await gone).reason, 'stream_error');
    assert.deepEqual(listener.info().shutdownCount, { stream_error: 1 });
    assert.deepEqual(errors, []);
    raw.destroy();
  });

  it('sends everything to connections before it closes them at its stop, and accepts no new ones', async () => {
    await broker.start();
    const listener = await listen(broker, 0);
    const { port } = listener;
    const client = await dial('mqtt', listener, { protocolVersion: 5 });
    const told = new Promise<number | undefined>((resolve) =>
      client.once('disconnect', ({ reasonCode }) => resolve(reasonCode))
    );
    await broker.stop();
    assert.equal(await told, 0x8b);
    const late = connectTcp(port as number, '127.0.0.1');
    late.on('error', () => {});
    await closed(late);
    assert.equal(listener.info().currentConnections, 0);
  });
});
