import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { connectAsync } from 'mqtt';
import { createWebSocketStream, WebSocketServer } from 'ws';
import { Aedes, type AedesOptions, type DeliverFunction } from '../../adapters/aedes/index.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { ConnectionRefused, memoryStore } from '../../lib/index.ts';
import { makeCertificates } from '../support/certificates.ts';
import { called, Fixture, IMPLEMENTATIONS, message } from './implementations.ts';

for (const implementation of IMPLEMENTATIONS) {
  const closing = (aedes: Aedes) => called((callback) => aedes.close(() => callback()));

  describe(`${implementation.name}: servers`, () => {
    it('serves clients over TLS, with the certificate of the client in client.conn', async () => {
      using certificates = makeCertificates();
      const { ca, server: identity, client: own } = certificates;
      const aedes = await implementation.Aedes.createBroker();
      const server = createTlsServer(
        { key: identity.key, cert: identity.cert, ca: ca.cert, requestCert: true },
        aedes.handle
      );
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const names: unknown[] = [];
      aedes.authenticate = (client, _username, _password, done) => {
        const socket = client.conn as unknown as { getPeerCertificate(): { subject: { CN: string } } };
        names.push(socket.getPeerCertificate().subject.CN);
        done(null, true);
      };
      const { port } = server.address() as AddressInfo;
      const device = await connectAsync(`mqtts://127.0.0.1:${port}`, {
        ca: ca.cert,
        key: own.key,
        cert: own.cert,
        reconnectPeriod: 0
      });
      await device.endAsync();
      assert.deepEqual(names, ['device-1']);
      await closing(aedes);
      server.close();
    });

    it('serves clients over WebSocket, with the upgrade request in client.req', async () => {
      const aedes = await implementation.Aedes.createBroker();
      const server = createHttpServer();
      const sockets = new WebSocketServer({ server });
      sockets.on('connection', (socket, request) => void aedes.handle(createWebSocketStream(socket), request));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const paths: unknown[] = [];
      aedes.on('client', (client) => paths.push(client.req?.url));
      const { port } = server.address() as AddressInfo;
      const device = await connectAsync(`ws://127.0.0.1:${port}/mqtt`, { reconnectPeriod: 0 });
      const received = once(device as never, 'message');
      await device.subscribeAsync('a');
      device.publish('a', 'x'.repeat(100_000));
      assert.equal(((await received) as [string, Buffer])[1].length, 100_000);
      await device.endAsync();
      assert.deepEqual(paths, ['/mqtt']);
      await closing(aedes);
      sockets.close();
      server.close();
    });
  });

  describe(`${implementation.name}: messages of the app`, () => {
    it('passes packets to subscribe until unsubscribe with the same function', async () => {
      await using fixture = await Fixture.start(implementation);
      const { aedes } = fixture;
      const topics: string[] = [];
      const deliver: DeliverFunction = (packet, callback) => {
        topics.push(`${packet.cmd} ${packet.topic} ${packet.payload} ${packet.retain}`);
        callback();
      };
      await called((callback) => aedes.publish({ topic: 'a/0', payload: 'before', retain: true }, callback));
      await called((callback) => aedes.subscribe('a/+', deliver, callback));
      const device = await fixture.connect();
      await device.publishAsync('a/1', 'x', { qos: 1, retain: true });
      await called((callback) => aedes.publish({ topic: 'a/2', payload: Buffer.from('y') }, callback));
      await called((callback) => aedes.unsubscribe('a/+', deliver, callback));
      await called((callback) => aedes.publish({ topic: 'a/3' }, callback));
      assert.deepEqual(topics, ['publish a/1 x true', 'publish a/2 y false']);
    });

    it('takes null for options that name modules as if they were absent', async () => {
      const aedes = await implementation.Aedes.createBroker({ mq: null, persistence: null } as unknown as AedesOptions);
      await called((callback) => aedes.publish({ topic: 'a' }, callback));
      await closing(aedes);
    });

    it('refuses topics with too many levels', async () => {
      await using fixture = await Fixture.start(implementation, { maxTopicLevels: 3 });
      const { aedes } = fixture;
      await assert.rejects(
        called((callback) => aedes.publish({ topic: 'a/b/c/d' }, callback)),
        { message: 'topic has too many levels' }
      );
    });

    it('keeps QoS 1 messages and retained messages for a session, and reports it as present', async () => {
      await using fixture = await Fixture.start(implementation);
      const first = await fixture.connect({ clean: false });
      await first.subscribeAsync('a/#', { qos: 1 });
      await first.endAsync();
      await called((callback) => fixture.aedes.publish({ topic: 'a/b', payload: 'kept', qos: 1 }, callback));
      const sent = fixture.next('connackSent');
      const second = await fixture.connect({ clean: false });
      assert.equal((await sent)[0].sessionPresent, true);
      assert.equal(await message(second), 'a/b: kept');
    });
  });
}

describe('embermq/aedes', () => {
  const unavailable: readonly [string, object, RegExp][] = [
    ['mq', { mq: {} }, /bridge\(\) of embermq\/bridge/],
    ['persistence', { persistence: { setup: async () => undefined } }, /levelStore\(folder\) of embermq\/level/],
    ['decodeProtocol', { decodeProtocol: () => undefined }, /proxyProtocol: true/],
    ['trustProxy', { trustProxy: true }, /proxyProtocol: true/]
  ];
  for (const [name, options, remedy] of unavailable)
    it(`names the replacement of the option ${name}`, () => {
      assert.throws(() => new Aedes(options as AedesOptions), { code: 'OPTION_INVALID', field: name, message: remedy });
    });

  it('names the replacements of aedes.mq and aedes.persistence', () => {
    const aedes = new Aedes();
    assert.throws(() => aedes.mq, { code: 'AEDES_UNAVAILABLE', message: /aedes\.subscribe/ });
    assert.throws(() => aedes.persistence, { code: 'AEDES_UNAVAILABLE', message: /aedes\.broker\.retained/ });
  });

  it('keeps its state in an embermq store', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-aedes-'));
    const start = () => Fixture.start({ Aedes }, { persistence: levelStore(folder) });
    {
      await using fixture = await start();
      const device = await fixture.connect({ clean: false });
      await device.publishAsync('a', 'retained', { qos: 1, retain: true });
      await device.subscribeAsync('b', { qos: 1 });
    }
    {
      await using fixture = await start();
      const device = await fixture.connect({ clean: false });
      fixture.aedes.publish({ topic: 'b', payload: 'subscribed', qos: 1 });
      assert.equal(await message(device), 'b: subscribed');
      await device.subscribeAsync('a');
      assert.equal(await message(device), 'a: retained');
    }
    rmSync(folder, { recursive: true });
  });

  it('accepts MQTT 5.0 clients, and passes on their properties', async () => {
    await using fixture = await Fixture.start({ Aedes }, { persistence: memoryStore() });
    const device = await fixture.connect({ protocolVersion: 5 });
    const published = fixture.next('publish', ({ topic }) => topic === 'a');
    const properties = {
      contentType: 'text/plain',
      userProperties: { unit: ['C', 'F'] },
      payloadFormatIndicator: true
    };
    await device.publishAsync('a', '21', { qos: 1, properties });
    const [{ properties: seen }, client] = await published;
    assert.deepEqual({ ...seen, userProperties: { ...seen?.userProperties } }, properties);
    assert.equal(client?.version, 5);
  });

  it('refuses clients whose keep alive exceeds keepaliveLimit, and long client ids of MQTT 3.1', async () => {
    await using fixture = await Fixture.start({ Aedes }, { keepaliveLimit: 10, maxClientsIdLength: 5 });
    const first = fixture.next('connectionError');
    await assert.rejects(fixture.connect({ keepalive: 11 }));
    assert.equal((await first)[1].message, 'keep alive limit exceeded');
    const second = fixture.next('connectionError');
    await assert.rejects(
      fixture.connect({ keepalive: 5, protocolVersion: 3, protocolId: 'MQIsdp', clientId: 'device-1' })
    );
    assert.equal((await second)[1].message, 'identifier rejected');
    await fixture.connect({ keepalive: 10 });
  });

  it('reports that preConnect cannot change the client id', async () => {
    await using fixture = await Fixture.start(
      { Aedes },
      {
        preConnect(_client, packet, callback) {
          packet.clientId = 'other';
          callback(null, true);
        }
      }
    );
    const failed = fixture.next('connectionError');
    await assert.rejects(fixture.connect());
    assert.match((await failed)[1].message, /preConnect cannot change "clientId"/);
  });

  it('refuses clients of other listeners unless hooks of embermq accept them', async () => {
    await using fixture = await Fixture.start({ Aedes });
    const { broker } = fixture.aedes;
    await assert.rejects(broker.connect({ clientId: 'inside' }), { code: 'CONNECT_REFUSED' });
    broker.hook('authenticate', ({ client }) => client.clientId === 'inside' || undefined);
    const client = await broker.connect({ clientId: 'inside' });
    await client.disconnect();
  });

  it('closes a stream that arrives before listen, and reports it', async () => {
    const aedes = new Aedes();
    const errors: unknown[] = [];
    aedes.on('connectionError', (_client, error) => errors.push((error as Error & { code?: string }).code));
    const server = (await import('node:net')).createServer(aedes.handle).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await assert.rejects(connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0 }, false));
    assert.deepEqual(errors, ['BROKER_NOT_STARTED']);
    server.close();
  });

  it('passes errors caused by peers only to listeners, without process warnings', async () => {
    const aedes = await Aedes.createBroker();
    const warnings: string[] = [];
    const warn = ({ message }: Error) => void warnings.push(message);
    process.on('warning', warn);
    aedes.broker.failed(new ConnectionRefused('tls_failed', 'from a peer'), 'accepting a connection');
    aedes.broker.failed(new Error('of the app'), 'accepting a connection');
    await new Promise(setImmediate);
    process.off('warning', warn);
    assert.deepEqual(warnings, ['of the app']);
    const heard = once(aedes, 'error');
    aedes.broker.failed(new ConnectionRefused('tls_failed', 'from a peer'), 'accepting a connection');
    assert.match(String(await heard), /from a peer/);
    await called((callback) => aedes.close(() => callback()));
  });

  it('starts once for two calls of listen, and stops a broker that is starting', async () => {
    const aedes = new Aedes();
    const births: string[] = [];
    aedes.broker.subscribe('$SYS/+/birth', ({ topic }) => births.push(topic));
    await Promise.all([aedes.listen(), aedes.listen()]);
    await aedes.listen();
    assert.deepEqual(births, [`$SYS/${aedes.id}/birth`]);
    await called((callback) => aedes.close(() => callback()));
    const starting = aedes.listen();
    await called((callback) => aedes.close(() => callback()));
    await starting;
    assert.deepEqual([aedes.closed, aedes.broker.state], [true, 'disconnected']);
  });

  it('starts if listen is called after close, or after the app has stopped the broker', async () => {
    const aedes = new Aedes();
    const first = aedes.listen();
    const closed = called((callback) => aedes.close(() => callback()));
    await Promise.all([first, closed, aedes.listen()]);
    assert.deepEqual([aedes.closed, aedes.broker.state], [false, 'connected']);
    await aedes.broker.stop();
    await aedes.listen();
    assert.equal(aedes.broker.state, 'connected');
    await called((callback) => aedes.close(() => callback()));
    assert.deepEqual([aedes.closed, aedes.broker.state], [true, 'disconnected']);
  });

  it('starts again after a failed start', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-aedes-'));
    const [first, second] = [1, 2].map(() => new Aedes({ persistence: levelStore(folder) }));
    await first.listen();
    await assert.rejects(second.listen(), { code: 'STORE_LOCKED' });
    assert.equal(second.closed, true);
    await called((callback) => first.close(() => callback()));
    await second.listen();
    assert.equal(second.closed, false);
    await called((callback) => second.close(() => callback()));
    rmSync(folder, { recursive: true });
  });

  it('reports an invalid topic filter from authorizeSubscribe for a resumed session', async () => {
    await using fixture = await Fixture.start({ Aedes });
    const first = await fixture.connect({ clean: false });
    await first.subscribeAsync('a', { qos: 1 });
    await first.endAsync();
    fixture.aedes.authorizeSubscribe = (_client, subscription, callback) => {
      setImmediate(() => callback(null, { ...subscription, topic: 'a/#/b' }));
    };
    const failed = fixture.next('clientError');
    await Promise.allSettled([fixture.connect({ clean: false })]); // it may be closed before CONNACK is read
    const [client, error] = await failed;
    assert.equal((error as Error & { code?: string }).code, 'TOPIC_FILTER_INVALID');
    assert.equal(client.closed, true);
  });

  it('reports an asynchronous authorizeForward, and drops the packet', async () => {
    await using fixture = await Fixture.start({ Aedes });
    const { aedes } = fixture;
    const errors: string[] = [];
    aedes.on('error', (error) => errors.push(error.message));
    aedes.on('clientError', (_client, error) => errors.push(error.message));
    const device = await fixture.connect();
    await device.subscribeAsync('#');
    aedes.authorizeForward = (() => Promise.reject(new Error('unhandled'))) as never;
    await called((callback) => aedes.publish({ topic: 'a', payload: '1' }, callback));
    aedes.authorizeForward = (_client, packet) => packet;
    aedes.publish({ topic: 'b', payload: '2' });
    assert.equal(await message(device), 'b: 2');
    assert.match(errors.join(), /cannot be asynchronous/);
  });

  it('provides all documented public methods and properties of Aedes and its clients', () => {
    const documented = readFileSync(join(import.meta.dirname, '../../node_modules/aedes/docs/Aedes.md'), 'utf8');
    const names = [...documented.matchAll(/^## (?:aedes\.|Handler: )(\w+)/gm)].map(([, name]) => name);
    const aedes = new Aedes();
    assert.ok(names.length > 12);
    assert.deepEqual(
      names.filter((name) => !(name in aedes)),
      []
    );
  });
});

describe('embermq/aedes: callbacks of client.close', () => {
  it('calls all of them if one throws, and reports the error', async () => {
    await using fixture = await Fixture.start({ Aedes });
    const errors: string[] = [];
    fixture.aedes.broker.on('error', ({ error }) => errors.push(error.message));
    const ready = fixture.next('client');
    await fixture.connect();
    const [client] = await ready;
    await new Promise<void>((resolve) => {
      client.close(() => {
        throw new Error('a callback of the app');
      });
      client.close(resolve);
    });
    assert.deepEqual(errors, ['a callback of the app']);
  });
});
