import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { kafkaSink, kafkaSource } from '../../adapters/streams/kafka/index.ts';
import type { HubPorts } from '../../lib/streams/sources/hub-ports.ts';
import { TestClient } from './kafka-client.ts';
import { openSink, turns } from './sink-bench.ts';
import { ALL, Kept, makeHub, settled, stream } from './source-fixture.ts';

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await settled();
}

const PROPERTIES = { brokers: 'a:9092, b:9092', topic: 'out' };

describe('the sink kafka', () => {
  it('sends outputs as records with key and headers of the row', async () => {
    const client = new TestClient();
    const properties = {
      ...{ ...PROPERTIES, topic: 'out-{{.kind}}', key: '{{.id}}', sendSingle: true },
      ...{ headers: { source: 'rule', id: '{{.id}}' }, requiredACKs: 1, compression: 'gzip' }
    };
    const { emitter } = await openSink(kafkaSink({ client }), properties);
    await turns();
    assert.equal(emitter.connection?.status, 1);
    await emitter.push([{ id: 5, kind: 'x' }]);
    const [{ topic, acks, compression, messages }] = client.sent;
    assert.deepEqual([topic, acks, compression], ['out-x', 1, 1]);
    assert.deepEqual(messages, [
      { key: '5', value: Buffer.from('{"id":5,"kind":"x"}'), headers: { source: 'rule', id: '5' } }
    ]);
    await emitter.close();
    assert.deepEqual(client.log, ['producer disconnected']);
  });

  it('needs neither key nor headers, and takes headers from a template', async () => {
    const client = new TestClient();
    const plain = await openSink(kafkaSink({ client }), PROPERTIES);
    const templated = await openSink(kafkaSink({ client }), { ...PROPERTIES, headers: '{"n":{{len .}}}' });
    await turns();
    await plain.emitter.push([{ id: 1 }]);
    await templated.emitter.push([{}]);
    assert.deepEqual(client.sent[0].messages, [{ key: null, value: Buffer.from('[{"id":1}]'), headers: {} }]);
    assert.deepEqual([client.sent[0].acks, client.sent[0].compression], [-1, 0]);
    assert.deepEqual(client.sent[1].messages[0].headers, { n: '1' });
    for (const { emitter } of [plain, templated]) await emitter.close();
  });

  it('creates a client from its properties', async () => {
    const client = new TestClient();
    const login = { saslUserName: 'u', saslPassword: 'secret' };
    for (const more of [{}, { saslAuthType: 'plain', ...login }, { saslAuthType: 'scram', ...login, tls: true }])
      await openSink(kafkaSink({ client: client.make }), { ...PROPERTIES, ...more });
    const [none, plain, scram] = client.configs;
    assert.deepEqual([none.brokers, none.sasl, none.ssl], [['a:9092', 'b:9092'], undefined, undefined]);
    assert.deepEqual(plain.sasl, { mechanism: 'plain', username: 'u', password: 'secret' });
    assert.deepEqual([scram.sasl?.mechanism, scram.ssl], ['scram-sha-512', {}]);
    const bad = (more: object, message: RegExp) =>
      assert.rejects(openSink(kafkaSink({ client: client.make }), { ...PROPERTIES, ...more }), message);
    await bad({ saslAuthType: 'scram' }, /kafka sink: saslAuthType needs the properties saslUserName and saslPassword/);
    await bad({ brokers: '' }, /property brokers must be hosts with ports/);
    await bad({ brokers: 'kafka' }, /property brokers must be hosts with ports/);
    await bad({ requiredACKs: 2 }, /requiredACKs must be one of/);
    await bad({ compression: 'lz4' }, /compression must be one of/);
    await bad({ rootCaPath: 'nowhere.pem' }, /rootCaPath: nowhere.pem: no such file/);
  });

  it('uses the package kafkajs without a client', async () => {
    const { emitter } = await openSink(kafkaSink(), { ...PROPERTIES, brokers: '127.0.0.1:1' });
    await assert.rejects(async () => emitter.push([{}]), /kafka sink: no connection: it is being established/);
    await emitter.close();
  });

  it('shows why there is no connection, and connects after a delay', async () => {
    const client = new TestClient();
    client.fault = () => new Error('ECONNREFUSED a:9092');
    const { ManualClock } = await import('../support/manual-clock.ts');
    const clock = new ManualClock();
    const { emitter } = await openSink(kafkaSink({ client }), PROPERTIES, { clock });
    await turns();
    assert.equal(emitter.connection?.disconnectedMessage, 'ECONNREFUSED a:9092');
    await assert.rejects(async () => emitter.push([{}]), /no connection: ECONNREFUSED a:9092/);
    client.fault = () => undefined;
    clock.advance(1100);
    await turns();
    assert.equal(emitter.connection?.status, 1);
    await emitter.push([{}]);
    client.fault = () => new Error('broken pipe');
    await assert.rejects(async () => emitter.push([{}]), /broken pipe/);
    assert.equal(emitter.connection?.status, -1);
    client.fault = () => Object.assign(new Error('too large'), { type: 'MESSAGE_TOO_LARGE' });
    await assert.rejects(async () => emitter.push([{}]), { message: 'kafka sink: too large', isFinal: true });
    await emitter.close();
    assert.equal(clock.pending, 0);
  });
});

describe('the source kafka', () => {
  function attach(properties: Record<string, unknown> = {}, datasource = 'readings', ports: Partial<HubPorts> = {}) {
    const client = new TestClient();
    const sourceConfig = { kafka: { default: { brokers: 'a:9092', ...properties } } };
    const fixture = makeHub([kafkaSource({ client: client.make })], { sourceConfig, ...ports });
    const kept = new Kept();
    const attachment = fixture.hub.attach(stream({ TYPE: 'kafka', DATASOURCE: datasource }), ALL, kept);
    return { ...fixture, client, kept, attachment };
  }

  it('emits the values of records as rows, with their metadata', async () => {
    const { client, kept, attachment } = attach({ offset: 'earliest', groupID: 'g' });
    await until(() => attachment.connection.status === 1);
    assert.deepEqual(client.groups, [{ groupId: 'g', maxBytes: 1_048_576 }]);
    assert.deepEqual(client.subscribed, [{ topics: ['readings'], fromBeginning: true }]);
    await client.record('{"n":1}', { key: Buffer.from('k'), headers: { a: Buffer.from('1'), b: ['2', '3'] } });
    await client.record(null);
    await client.record('[{"n":2},{"n":3}]');
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }, { n: 3 }]);
    assert.deepEqual(kept.rows[0].metadata(), {
      ...{ topic: 'readings', partition: 2, offset: 7, timestamp: 1_700_000_000_000, key: 'k' },
      headers: { a: '1', b: '2' }
    });
    await attachment.detach();
    assert.deepEqual(client.log, ['consumer disconnected']);
  });

  it('takes no record while a rule has no room, and keeps its place in the group', async () => {
    const { client, kept, attachment, clock } = attach();
    await until(() => attachment.connection.status === 1);
    assert.deepEqual(client.groups, [{ groupId: 'embermq-demo', maxBytes: 1_048_576 }]);
    attachment.setFull(true);
    let heartbeats = 0;
    const taken = client.record('{"n":1}', {}, async () => void heartbeats++);
    await settled();
    clock.advance(3000);
    await settled();
    clock.advance(3000);
    await settled();
    assert.deepEqual([heartbeats, kept.rows.length], [2, 0]);
    attachment.setFull(false);
    await taken;
    assert.equal(kept.rows.length, 1);
    await attachment.detach();
    assert.equal(clock.pending, 0);
  });

  it('creates another consumer after a delay when one has failed', async () => {
    const { client, kept, attachment, clock } = attach();
    await until(() => attachment.connection.status === 1);
    client.listeners['consumer.crash']({ payload: { error: new Error('not the leader'), restart: true } });
    assert.equal(attachment.connection.disconnectedMessage, 'not the leader');
    client.listeners['consumer.group_join']({ payload: {} });
    assert.equal(attachment.connection.status, 1);
    client.listeners['consumer.crash']({ payload: { error: new Error('not authorized'), restart: false } });
    assert.equal(attachment.connection.disconnectedMessage, 'not authorized');
    client.fault = () => new Error('ECONNREFUSED');
    clock.advance(1100);
    await until(() => attachment.connection.disconnectedMessage === 'ECONNREFUSED');
    client.fault = () => undefined;
    clock.advance(2200);
    await until(() => attachment.connection.status === 1);
    await client.record('{"n":1}');
    assert.equal(kept.rows.length, 1);
    assert.equal(client.groups.length, 3);
    await attachment.detach();
  });

  it('commits a record when its row is committed, and not if the store refuses it', async () => {
    const commits: { resolve(): void; reject(error: Error): void }[] = [];
    const records = {
      get added() {
        return kept.rows.length;
      },
      committed: () => new Promise<void>((resolve, reject) => void commits.push({ resolve, reject }))
    };
    const { client, kept, attachment } = attach({}, 'readings', { records, isKept: () => true });
    await until(() => attachment.connection.status === 1);
    let committed = 0;
    const first = client.record('{"n":1}').then(() => committed++);
    await until(() => commits.length === 1);
    await settled();
    assert.equal(committed, 0);
    commits[0].resolve();
    await first;
    const second = client.record('{"n":2}');
    await until(() => commits.length === 2);
    commits[1].reject(new Error('disk full'));
    await assert.rejects(second, /disk full/);
    await attachment.detach();
  });

  it('can be closed by the change for which its first record waits', async () => {
    const { client, attachment } = attach({}, 'readings', {
      isKept: () => true,
      ready: () => new Promise(() => undefined)
    });
    await until(() => attachment.connection.status === 1);
    const taken = client.record('{"n":1}');
    await attachment.detach();
    await assert.rejects(taken, { code: 'SOURCE_CLOSED' });
  });

  it('refuses an invalid topic', async () => {
    await assert.rejects(attach({}, '').attachment.opened, { code: 'STREAM_INVALID' });
    await assert.rejects(attach({}, 'a/b').attachment.opened, /DATASOURCE must be the name of a topic/);
  });
});
