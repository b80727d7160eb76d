import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { mqttSink as remoteSink } from '../../adapters/streams/mqtt/index.ts';
import { systemClock } from '../../lib/base/clock.ts';
import type { ReceivedMessage } from '../../lib/client/options.ts';
import { type Client, createBroker } from '../../lib/index.ts';
import { mqttSink } from '../../lib/streams/sinks/mqtt-sink.ts';
import { Mosquitto, withMosquitto } from '../bridge/mosquitto.ts';
import { server } from '../bridge/pair.ts';
import { makeCertificates } from '../support/certificates.ts';
import { openSink, type SinkBench } from './sink-bench.ts';

const messages = { publish: () => assert.fail('it publishes at another broker') };

function open(properties: object, more: object = {}): Promise<SinkBench> {
  return openSink(mqttSink({ messages, remote: remoteSink }), properties, { clock: systemClock, ...more });
}

/** A function that resolves with the topic, the payload and the QoS of the next message of a client. */
function inbox(client: Client): () => Promise<readonly [string, string, number]> {
  const messages: ReceivedMessage[] = [];
  let wake = () => {};
  client.on('message', (message) => {
    messages.push(message);
    wake();
  });
  return async () => {
    while (messages.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    const { topic, payload, qos } = messages.shift() as ReceivedMessage;
    return [topic, String(payload), qos];
  };
}

describe('The mqtt sink for another broker', () => {
  it('publishes with a topic from a template, QoS and retain', async () => {
    const { broker, port } = await server();
    await using far = broker;
    const client = await far.connect({ clientId: 'c' });
    await client.subscribe('out/#', { qos: 2 });
    const next = inbox(client);
    for (const [qos, protocolVersion] of [
      [0, '3.1'],
      [1, '3.1.1'],
      [2, '5']
    ] as const) {
      const properties = {
        server: `tcp://127.0.0.1:${port}`,
        topic: 'out/{{.id}}',
        qos,
        protocolVersion,
        sendSingle: true
      };
      const { emitter } = await open({ ...properties, retained: true });
      await emitter.push([{ id: qos }]);
      assert.deepEqual(await next(), [`out/${qos}`, `{"id":${qos}}`, qos]);
      assert.equal(emitter.connection?.status, 1);
      await emitter.close();
    }
    assert.ok((await far.retained.get('out/2')) !== undefined);
  });

  it('shows in its state that there is no server, and connects when there is one', async () => {
    const first = await server();
    const { port } = first;
    await first.broker.stop();
    await using near = await createBroker().start();
    const properties = { server: `tcp://127.0.0.1:${port}`, topic: 'a', enableCache: true, resendInterval: 20 };
    const { emitter, failures } = await open(properties, { outboxes: near.outboxes });
    emitter.push([{ id: 1 }]);
    while (emitter.connection?.status !== -1) await near.outboxes.drained();
    assert.match(emitter.connection.disconnectedMessage, /ECONNREFUSED/);
    await using far = (await server({}, port)).broker;
    const client = await far.connect({ clientId: 'c' });
    await client.subscribe('a', { qos: 1 });
    const next = inbox(client);
    assert.deepEqual(await next(), ['a', '[{"id":1}]', 0]);
    assert.ok(failures.length > 0);
    await emitter.close();
  });

  it('sends nothing to a server whose certificate is not trusted, and names the properties that help', async () => {
    using certificates = makeCertificates();
    const { cert, key } = certificates.server;
    const received: Buffer[] = [];
    const secure = createTlsServer({ cert, key }, (socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => received.push(bytes));
    }).listen(0, '127.0.0.1');
    await once(secure, 'listening');
    const { port } = secure.address() as AddressInfo;
    const { emitter } = await open({ server: `ssl://localhost:${port}`, topic: 'a' });
    await assert.rejects(
      async () => emitter.push([{ id: 1 }]),
      /; name the file of its authorities in the property rootCaPath, or set insecureSkipVerify to true/
    );
    assert.match(emitter.connection?.disconnectedMessage ?? '', /certificate.*; name the file of its authorities/);
    assert.deepEqual(received, []);
    await emitter.close();
    secure.close();
  });

  it('publishes at mosquitto', withMosquitto, async () => {
    const mosquitto = await new Mosquitto().begin();
    const client = await mosquitto.client();
    await client.subscribe('a', { qos: 1 });
    const next = inbox(client);
    const { emitter } = await open({ server: `127.0.0.1:${mosquitto.port}`, topic: 'a', qos: 1 });
    await emitter.push([{ id: 1 }]);
    assert.deepEqual(await next(), ['a', '[{"id":1}]', 1]);
    await emitter.close();
    await client.disconnect();
    await mosquitto.end();
  });

  it('names the invalid property', async () => {
    const fails = (properties: object, message: RegExp) => assert.rejects(open({ topic: 'a', ...properties }), message);
    await fails({ server: 'http://x' }, /mqtt sink: property server must be a URL/);
    await fails({ server: 'tcp://u:p@x' }, /a URL without credentials/);
    await fails({ server: 'ssl://x', certificationPath: '/nowhere' }, /no such file/);
  });
});
