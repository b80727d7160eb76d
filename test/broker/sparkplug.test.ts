import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import { type Client, createBroker, type ReceivedMessage } from '../../lib/index.ts';
import { createTestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';

const NBIRTH = 'spBv1.0/G/NBIRTH/N';
const DBIRTH = 'spBv1.0/G/DBIRTH/N/D';
const NDEATH = 'spBv1.0/G/NDEATH/N';
const CERTIFICATES = '$sparkplug/certificates/';
/** A Sparkplug payload: timestamp 1, a metric of two bytes, seq 5. */
const BIRTH = Buffer.from([0x08, 1, 0x12, 2, 0xaa, 0xbb, 0x18, 5]);

const aware = (options: TestBrokerOptions = {}) => createTestBroker({ sparkplug: {}, leaks: 'ignore', ...options });

/** The messages that a new subscriber receives at once. */
async function received(client: Client, filter: string): Promise<ReceivedMessage[]> {
  const got: ReceivedMessage[] = [];
  await client.subscribe(filter, { qos: 1 }, (message) => got.push(message));
  await client.ping();
  return got;
}

describe('Sparkplug 3.0, a compliant MQTT server', () => {
  for (const qos of [0, 1] as const)
    it(`tck-id-conformance-mqtt-qos${qos}: supports publish and subscribe with QoS ${qos}`, async () => {
      await using kit = await aware();
      const [host, node] = [await kit.connect(), await kit.connect()];
      const got: ReceivedMessage[] = [];
      await host.subscribe('spBv1.0/#', { qos }, (message) => got.push(message));
      await node.publish('spBv1.0/G/NDATA/N', BIRTH, { qos });
      await host.ping();
      assert.deepEqual(
        got.map((message) => [message.qos, message.payload]),
        [[qos, BIRTH]]
      );
    });

  it('tck-id-conformance-mqtt-will-messages: supports wills with the retain flag and QoS 1', async () => {
    await using kit = await aware();
    const topic = 'spBv1.0/STATE/H';
    const host = await kit.connect({ will: { topic, payload: 'offline', qos: 1, retain: true } });
    const gone = kit.broker.nextEvent('client.disconnected');
    host.destroy();
    await gone;
    const [will] = await received(await kit.connect(), topic);
    assert.deepEqual([will.qos, will.retain, will.payload.toString()], [1, true, 'offline']);
  });

  it('tck-id-conformance-mqtt-retained: supports retained messages, and their deletion', async () => {
    await using kit = await aware();
    const node = await kit.connect();
    await node.publish('spBv1.0/STATE/H', 'online', { qos: 1, retain: true });
    const found = await received(await kit.connect(), 'spBv1.0/STATE/+');
    assert.deepEqual(
      found.map(({ retain }) => retain),
      [true]
    );
    await node.publish('spBv1.0/STATE/H', '', { qos: 1, retain: true });
    assert.deepEqual(await received(await kit.connect(), 'spBv1.0/STATE/+'), []);
  });
});

describe('Sparkplug 3.0, an aware MQTT server', () => {
  it('tck-id-conformance-mqtt-aware-basic: delivers births as any other message', async () => {
    await using kit = await aware();
    const [host, node] = [await kit.connect(), await kit.connect()];
    const got: string[] = [];
    await host.subscribe('#', { qos: 1 }, ({ topic }) => got.push(topic));
    await node.publish(NBIRTH, BIRTH, { qos: 1 });
    await host.ping();
    assert.deepEqual(got, [NBIRTH]);
  });

  it('tck-id-conformance-mqtt-aware-store: stores births, with a store also over a restart', async (t) => {
    const { mkdtempSync, rmSync } = await import('node:fs');
    const { join } = await import('node:path');
    const { tmpdir } = await import('node:os');
    const folder = mkdtempSync(join(tmpdir(), 'sparkplug-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    for (const isFirst of [true, false]) {
      await using broker = createBroker({ sparkplug: {}, store: levelStore(folder) });
      await broker.start();
      if (isFirst) await broker.publish(NBIRTH, BIRTH);
      assert.deepEqual((await broker.retained.get(CERTIFICATES + NBIRTH))?.payload, BIRTH);
    }
  });

  it('keeps the certificate when a retained birth is deleted', async () => {
    await using kit = await aware();
    await kit.broker.publish(NBIRTH, BIRTH, { retain: true });
    await kit.broker.publish(NBIRTH, '', { retain: true });
    assert.equal(await kit.broker.retained.get(NBIRTH), undefined);
    assert.deepEqual((await kit.broker.retained.get(CERTIFICATES + NBIRTH))?.payload, BIRTH);
  });

  for (const [name, topic] of [
    ['nbirth', NBIRTH],
    ['dbirth', DBIRTH]
  ]) {
    it(`tck-id-conformance-mqtt-aware-${name}-mqtt-topic: makes it available below $sparkplug/certificates`, async () => {
      await using kit = await aware();
      const [host, node] = [await kit.connect(), await kit.connect()];
      const live: string[] = [];
      await host.subscribe(`${CERTIFICATES}#`, { qos: 1 }, ({ topic }) => live.push(topic));
      await node.publish(topic, BIRTH);
      await node.ping();
      await host.ping();
      assert.deepEqual(live, [CERTIFICATES + topic]);
    });

    it(`tck-id-conformance-mqtt-aware-${name}-mqtt-retain: sets the retain flag, and keeps the newest`, async () => {
      await using kit = await aware();
      const node = await kit.connect();
      await node.publish(topic, Buffer.from([0x18, 1]), { qos: 1 });
      await node.publish(topic, BIRTH, { qos: 1 });
      const found = await received(await kit.connect(), `${CERTIFICATES}#`);
      assert.deepEqual(
        found.map(({ topic, retain, payload }) => [topic, retain, payload]),
        [[CERTIFICATES + topic, true, BIRTH]]
      );
      assert.equal(kit.broker.metrics.counter('messages.dropped'), 2, 'only the births had no subscribers');
    });
  }

  it('tck-id-conformance-mqtt-aware-ndeath-timestamp: sets the timestamp of an NDEATH at its delivery', async () => {
    await using kit = await aware({ sparkplug: { ndeathTimestamp: true } });
    const host = await kit.connect();
    const got: Buffer[] = [];
    await host.subscribe(NDEATH, { qos: 1 }, ({ payload }) => got.push(payload));
    const die = async (payload: Buffer | string) => {
      const node = await kit.connect({ will: { topic: NDEATH, payload, qos: 1 } });
      await kit.clock.advance('1h');
      const gone = kit.broker.nextEvent('client.disconnected');
      node.destroy();
      await gone;
      await host.ping();
      return got.pop();
    };
    for (const payload of [BIRTH, BIRTH.subarray(2), Buffer.concat([BIRTH.subarray(2), BIRTH.subarray(0, 2)])]) {
      const delivered = (await die(payload)) as Buffer;
      let [at, timestamp] = [1, 0n];
      do timestamp |= BigInt(delivered[at] & 127) << BigInt(7 * (at - 1));
      while (delivered[at++] > 127);
      assert.equal(delivered[0], 0x08);
      assert.equal(Number(timestamp), kit.clock.now());
      assert.deepEqual(delivered.subarray(at), BIRTH.subarray(2));
    }
    for (const payload of [
      'offline',
      '{"online":false}',
      '',
      Buffer.from([0x12, 9, 1]),
      Buffer.from([0x0a, 0]),
      Buffer.from([0x80])
    ])
      assert.deepEqual(
        await die(payload),
        Buffer.from(payload as string),
        'a payload that is not protobuf passes unchanged'
      );
  });

  it('publishes alone below $sparkplug/, and lets access rules decide who reads there', async () => {
    await using kit = await aware({ hooks: { authorizeSubscribe: ({ client }) => client.clientId !== 'stranger' } });
    const client = await kit.connect({ clientId: 'c' });
    const topic = `${CERTIFICATES}${NBIRTH}`;
    await assert.rejects(client.publish(topic, 'forged', { qos: 1, retain: true }), { reasonCode: 0x87 });
    await client.publish(topic, 'forged', { retain: true });
    await client.ping();
    await assert.rejects(kit.broker.publish(topic, 'forged', { retain: true }), {
      code: 'NOT_AUTHORIZED',
      message: `the message to "${topic}" is refused: the topic is not allowed: only the broker publishes below $sparkplug (option sparkplug)`
    });
    assert.equal(await kit.broker.retained.get(topic), undefined);
    const stranger = await kit.connect({ clientId: 'stranger' });
    assert.deepEqual(await stranger.subscribe(`${CERTIFICATES}#`), [0x87]);
    assert.deepEqual(await client.subscribe(`${CERTIFICATES}#`), [0]);
  });

  it('reports certificates to listeners and rules, and counts them, without a subscriber', async () => {
    await using kit = await aware();
    const { broker } = kit;
    const seen: string[] = [];
    broker.on('message.publish', ({ message }) => seen.push(message.topic), { filter: '$sparkplug/#' });
    await broker.rules.create({
      id: 'r',
      sql: 'SELECT topic FROM "$sparkplug/#"',
      actions: [(output) => seen.push(`rule ${(output as { readonly topic: string }).topic}`)]
    });
    await broker.publish(NBIRTH, BIRTH);
    await kit.clock.settle();
    assert.deepEqual(seen.sort(), [CERTIFICATES + NBIRTH, `rule ${CERTIFICATES}${NBIRTH}`]);
    assert.equal(broker.metrics.counter('messages.publish'), 2);
    assert.equal(broker.metrics.counter('messages.dropped'), 1, 'only the birth had no subscribers');
  });

  it('routes a birth whose certificate would have a topic that is too long, and reports it as not retained', async () => {
    await using kit = await aware();
    const long = `spBv1.0/${'g'.repeat(65_400)}/NBIRTH/${'n'.repeat(100)}`;
    const errors: unknown[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error));
    const dropped: string[] = [];
    kit.broker.on('message.dropped', ({ reason }) => dropped.push(reason));
    let count = 0;
    kit.broker.subscribe('spBv1.0/#', () => count++, { retainHandling: 2 });
    const node = await kit.connect();
    await node.publish(long, BIRTH, { qos: 1 });
    await kit.broker.publish(long, BIRTH);
    await node.publish(`$delayed/1/${long}`, BIRTH, { qos: 1 });
    await kit.clock.advance('2s');
    assert.deepEqual([count, node.isConnected, errors, new Set(dropped)], [3, true, [], new Set(['not_retained'])]);
  });

  it('retains nothing of a refused birth, nor without the option', async () => {
    await using kit = await aware({ hooks: { authorizePublish: () => false } });
    await assert.rejects((await kit.connect()).publish(NBIRTH, BIRTH, { qos: 1 }), { reasonCode: 0x87 });
    assert.equal(await kit.broker.retained.get(CERTIFICATES + NBIRTH), undefined);
    await using plain = await createTestBroker();
    await plain.broker.publish(NBIRTH, BIRTH);
    await plain.broker.publish(`${CERTIFICATES}x`, 'ordinary');
    assert.equal(await plain.broker.retained.get(CERTIFICATES + NBIRTH), undefined);
    const { engineOf } = await import('../../lib/broker/broker.ts');
    const { isForRuns, isObserved, mustDecide } = engineOf(plain.broker).routing.of(NBIRTH);
    assert.deepEqual([isForRuns, isObserved, mustDecide], [true, false, false]);
  });

  it('checks its option', () => {
    for (const sparkplug of [true, { ndeathTimestamp: 1 }])
      assert.throws(() => createBroker({ sparkplug: sparkplug as never }), { code: 'OPTION_INVALID' });
    assert.throws(() => createBroker({ sparkplug: { ndeath: true } as never }), { code: 'OPTION_UNKNOWN' });
  });
});
