import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, createServer } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt';
import { type Listener, listen, tls, ws } from '../../adapters/net/index.ts';
import { Broker, type BrokerError, type ConnectionMeta } from '../../lib/index.ts';
import { makeCertificates } from '../support/certificates.ts';
import { closed, turnsUntil } from './stub-broker.ts';

let broker: Broker;
const clients: MqttClient[] = [];

function dial(scheme: string, { port }: Listener, options: IClientOptions = {}): Promise<MqttClient> {
  return mqtt.connectAsync(`${scheme}://127.0.0.1:${port}`, { reconnectPeriod: 0, ...options }).then((client) => {
    client.on('error', () => {});
    clients.push(client);
    return client;
  });
}

beforeEach(() => {
  broker = new Broker();
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.end(true);
  await broker.stop();
});

describe('a broker with listeners', () => {
  it('opens them when it starts, closes them when it stops, and opens them again', async () => {
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

  it('opens one at once that comes after its start, and says in an error event when it can not', async () => {
    await broker.start();
    const listener = await listen(broker, 0);
    const failed = broker.nextEvent('error');
    listen(broker, listener.port as number);
    const { error, during } = await failed;
    assert.equal((error as BrokerError).code, 'LISTENER_BIND_FAILED');
    assert.match(during, /opening listener tcp:\d+/);
    assert.equal(broker.listeners().length, 1);
  });

  it('refuses a zone it does not know before anything is opened', () => {
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

  it('takes the identity of a pre-shared key as user name and asks no authenticate hook', async () => {
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
    assert.equal((client.connection as ConnectionMeta).authenticated, true);
    assert.deepEqual(asked, []);
  });

  it('counts by listener why clients went', async () => {
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

  it('ends connections of a stopped broker with what was sent, and takes no new ones', async () => {
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
