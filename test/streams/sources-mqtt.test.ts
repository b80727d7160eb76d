import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, createBroker } from 'embermq';
import { listen, tcp } from 'embermq/net';
import { mqttSource } from '../../adapters/streams/mqtt/index.ts';
import { systemClock } from '../../lib/base/clock.ts';
import { MemoryTopics } from '../../lib/streams/memory-topics.ts';
import { builtInSources } from '../../lib/streams/sources/built-in.ts';
import { ALL, Kept, makeHub, settled, stream } from './source-fixture.ts';

async function start(port = 0) {
  const broker = createBroker();
  const listening = listen(broker, tcp({ port }));
  await broker.start();
  return { broker, port: listening.port as number };
}

function attach(server: string, more: Record<string, unknown> = {}, manual = true) {
  const types = builtInSources({ watch: () => () => undefined, isOwn: () => false }, new MemoryTopics(), [
    mqttSource()
  ]);
  const sourceConfig = { mqtt: { default: { server, ...more } } };
  const fixture = makeHub(types, manual ? { sourceConfig } : { sourceConfig, clock: systemClock });
  const kept = new Kept();
  const attachment = fixture.hub.attach(stream({ TYPE: 'mqtt', DATASOURCE: 'a/+' }), ALL, kept);
  return { ...fixture, kept, attachment };
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await settled();
}

const clientsOf = async (broker: Broker) => [...broker.sessions].map(({ clientId }) => clientId);

describe('the source mqtt for another server', () => {
  it('emits the messages that match DATASOURCE, with their metadata', async () => {
    const { broker, port } = await start();
    const { kept, attachment } = attach(`tcp://127.0.0.1:${port}`, { protocolVersion: '5', clientid: 'own' });
    await until(() => attachment.connection.status === 1);
    assert.deepEqual(await clientsOf(broker), ['own']);
    broker.publish({ topic: 'a/1', payload: '{"n":1}', qos: 1, properties: { userProperties: [['unit', 'C']] } });
    broker.publish({ topic: 'b/1', payload: '{"n":2}' });
    broker.publish({ topic: 'a/2', payload: 'no JSON' });
    await until(() => kept.errors.length === 1);
    assert.deepEqual(kept.values, [{ n: 1 }]);
    const { messageid, ...metadata } = kept.rows[0].metadata();
    assert.deepEqual(metadata, { topic: 'a/1', qos: 1, retain: false, properties: { unit: 'C' } });
    assert.match(messageid as string, /^[1-9]\d*$/);
    await attachment.detach();
    await until(() => [...broker.sessions].length === 0);
    await broker.stop();
  });

  it('reports the subscriptions that the server refuses, and is down if all are refused', async () => {
    const other = createBroker({
      auth: [{ name: 'topics', authorize: ({ topic }) => topic !== 'a/+' }]
    });
    const listening = listen(other, tcp({ port: 0 }));
    await other.start();
    const sourceConfig = { mqtt: { default: { server: `127.0.0.1:${listening.port}` } } };
    const { hub } = makeHub([mqttSource()], { sourceConfig });
    const kept = new Kept();
    const all = hub.attach({ ...stream({ TYPE: 'mqtt', DATASOURCE: 'a/+' }), name: 'all' }, ALL, new Kept());
    const some = hub.attach(
      { ...stream({ TYPE: 'mqtt', DATASOURCE: 'a/+, b' }), name: 'some', sql: 'some' },
      ALL,
      kept
    );
    await until(() => all.connection.status === -1 && some.connection.status === 1);
    assert.match(all.connection.disconnectedMessage, /the server refuses the subscription to a\/\+; check the rights/);
    assert.match(kept.errors[0], /the server refuses the subscription to a\/\+;/);
    await Promise.all([all.detach(), some.detach()]);
    await other.stop();
  });

  it('appends the name of the stream to a client id that is in use', async () => {
    const { broker, port } = await start();
    const types = [mqttSource()];
    const sourceConfig = { mqtt: { default: { server: `127.0.0.1:${port}`, clientid: 'own' } } };
    const { hub } = makeHub(types, { sourceConfig });
    const one = hub.attach({ ...stream({ TYPE: 'mqtt', DATASOURCE: 'a' }), name: 'one' }, ALL, new Kept());
    const two = hub.attach({ ...stream({ TYPE: 'mqtt', DATASOURCE: 'b' }), name: 'two' }, ALL, new Kept());
    await until(() => one.connection.status === 1 && two.connection.status === 1);
    assert.deepEqual((await clientsOf(broker)).sort(), ['own', 'own_two']);
    await Promise.all([one.detach(), two.detach()]);
    await broker.stop();
  });

  it('refuses a server that is not a URL, and missing files', async () => {
    for (const server of ['http://x', 'tcp://user:secret@x', 'tcp://', 't1://x'])
      await assert.rejects(attach(server).attachment.opened, ({ code, message }) => {
        assert.equal(code, 'PROPERTY_INVALID');
        return !message.includes('secret');
      });
    await assert.rejects(attach('ssl://x', { rootCaPath: 'no such file' }).attachment.opened, {
      code: 'PROPERTY_INVALID',
      message: /rootCaPath: no such file: no such file or directory/
    });
  });
});
