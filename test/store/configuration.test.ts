import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Broker, engineOf } from '../../lib/broker/broker.ts';
import type { Override } from '../../lib/broker/configuration/configuration.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, payloads, startBroker, turns } from '../support/wire.ts';
import { MortalStore } from './support.ts';

/** The overrides as `key = value`. */
const texts = (overrides: readonly Override[]) =>
  overrides.map(({ key, value }) => `${key} = ${JSON.stringify(value)}`);

describe('broker.configuration', () => {
  it('lists every option with its key, value, source and when a change takes effect', async () => {
    await using broker = await startBroker({ maxInflight: 5, zones: { lab: { maxInflight: 7 } } });
    await broker.configuration.set('sysInterval', '90s');
    const list = broker.configuration.list();
    const brief = (key: string) => {
      const found = list.find((setting) => setting.key === key);
      return found && [found.name, found.zone, found.value, found.source, found.takesEffect];
    };
    assert.deepEqual(brief('broker.sys_interval'), ['sysInterval', undefined, 90_000, 'override', 'now']);
    assert.deepEqual(brief('node.name'), ['node', undefined, 'embermq@127.0.0.1', 'default', 'restart']);
    assert.deepEqual(brief('max_inflight'), ['maxInflight', '', 5, 'option', 'next connection']);
    assert.deepEqual(brief('zone.external.max_inflight'), ['maxInflight', 'external', 5, 'option', 'next connection']);
    assert.deepEqual(brief('zone.lab.max_inflight'), ['maxInflight', 'lab', 7, 'option', 'next connection']);
    assert.deepEqual(brief('mqtt.max_packet_size'), ['maxPacketSize', '', 1_048_576, 'default', 'next connection']);
    assert.deepEqual(brief('zone.internal.enable_ban'), ['enableBan', 'internal', false, 'default', 'next connection']);
    assert.deepEqual(brief('zone.lab.acl_nomatch'), ['aclNomatch', 'lab', undefined, 'default', 'now']);
    assert.equal(new Set(list.map(({ key }) => key)).size, list.length);
  });

  it('accepts every spelling of a key', async () => {
    await using broker = await startBroker();
    const { configuration } = broker;
    for (const key of list(broker)) assert.equal(configuration.get(key).key, key);
    for (const key of ['maxPacketSize', 'max_packet_size', 'mqtt.maxPacketSize'])
      assert.equal(configuration.get(key).key, 'mqtt.max_packet_size');
    for (const key of ['zone.external.maxInflight', 'zones.external.max_inflight'])
      assert.equal(configuration.get(key).key, 'zone.external.max_inflight');
  });

  it('refuses unknown keys with a suggestion, invalid values, and options that are fixed', async () => {
    await using broker = await startBroker();
    const { configuration } = broker;
    const refusals: [key: string, value: unknown, code: string, message: RegExp][] = [
      ['zone.external.max_inflght', 1, 'OPTION_UNKNOWN', /did you mean "zone.external.max_inflight"/],
      ['broker.sys_intervall', 1, 'OPTION_UNKNOWN', /did you mean "broker.sys_interval"/],
      ['zone.externl.max_inflight', 1, 'ZONE_UNKNOWN', /did you mean "external"/],
      ['zone.external.max_inflight', 'many', 'OPTION_INVALID', /zone.external.max_inflight: expected a whole number/],
      ['sysInterval', null, 'OPTION_INVALID', /sysInterval: expected a value/],
      [
        'node.name',
        'x',
        'OPTION_FIXED',
        /node.name takes effect only when the broker is created, because it is part of/
      ],
      ['delayedPublish', false, 'OPTION_FIXED', /what the feature `delayed` begins with/]
    ];
    for (const [key, value, code, message] of refusals)
      await assert.rejects(configuration.set(key, value), { code, message });
    assert.deepEqual(configuration.overrides(), []);
    await assert.rejects(
      configuration.setAll([
        ['sysInterval', 1],
        ['nothing', 1]
      ]),
      { code: 'OPTION_UNKNOWN' }
    );
    assert.deepEqual(configuration.overrides(), [], 'all changes of a call or none');
  });

  it('refuses values that would leave the broker without clients, with the reason', async () => {
    await using broker = await startBroker({ memoryHighWatermark: 1_000, memoryUsage: () => 0, maxPacketSize: 16 });
    const { configuration } = broker;
    const refusals: [key: string, value: unknown, message: RegExp][] = [
      ['max_packet_size', 1_023, /^max_packet_size: expected a size of at least 1024 bytes, because/],
      ['zone.external.max_packet_size', 16, /^zone.external.max_packet_size: expected .* because .*, got 16$/],
      ['memory_high_watermark', '1KB', /at least 33554432 bytes, because .*, or 0, got "1KB"$/]
    ];
    for (const [key, value, message] of refusals) {
      await assert.rejects(configuration.set(key, value), { code: 'OPTION_INVALID', message });
      assert.throws(() => configuration.check(key, value), { code: 'OPTION_INVALID', message });
    }
    assert.deepEqual(configuration.overrides(), []);
    await configuration.set('max_packet_size', 1_024);
    await configuration.set('memory_high_watermark', '32MB');
    await configuration.set('memory_high_watermark', 0);
  });

  it('refuses a low watermark above the high one, unless both change together', async () => {
    await using broker = await startBroker({ cpuHighWatermark: 50 });
    const { configuration } = broker;
    const refused = (message: RegExp) => ({ code: 'OPTION_INVALID', message });
    const low = /^vm_mon.process_high_watermark: expected at least 60 .*vm_mon.process_low_watermark.*, got 1$/;
    await assert.rejects(configuration.set('processHighWatermark', 1), refused(low));
    const high = /^vm_mon.process_low_watermark: expected at most 80 .*vm_mon.process_high_watermark.*, got 99$/;
    await assert.rejects(configuration.set('processLowWatermark', 99), refused(high));
    assert.deepEqual(configuration.overrides(), []);
    await configuration.setAll([
      ['processHighWatermark', 20],
      ['processLowWatermark', 10]
    ]);
    await assert.rejects(configuration.reset('processLowWatermark'), refused(/process_low_watermark/));
    assert.equal(await configuration.reset('processHighWatermark'), true);
    assert.equal(await configuration.reset('processLowWatermark'), true);
    await configuration.set('processHighWatermark', 0); // never
    await configuration.set('cpuLowWatermark', 50);
    assert.equal(
      await configuration.reset('cpuLowWatermark'),
      true,
      'the values of the options can always be restored'
    );
  });

  it('applies a value for all zones to zones without a separate value', async () => {
    await using broker = await startBroker({ zones: { lab: { maxInflight: 7 } } });
    const { configuration } = broker;
    await configuration.set('max_inflight', 9);
    assert.deepEqual([broker.zone().maxInflight, broker.zone('lab').maxInflight], [9, 7]);
    assert.equal(configuration.get('zone.external.max_inflight').source, 'override');
    await configuration.set('zone.lab.max_inflight', 8);
    assert.deepEqual([broker.zone().maxInflight, broker.zone('lab').maxInflight], [9, 8]);
    await configuration.reset('zone.lab.max_inflight');
    await configuration.reset('max_inflight');
    assert.deepEqual([broker.zone().maxInflight, broker.zone('lab').maxInflight], [128, 7]);
  });

  it('resets an option to the value of the options, and reports what an override replaces', async () => {
    await using broker = await startBroker({ sysInterval: '2m' });
    const { configuration } = broker;
    await configuration.set('broker.sys_interval', '3m');
    const [override] = configuration.overrides();
    assert.deepEqual([override?.value, override?.replaces, override?.replacedSource], [180_000, 120_000, 'option']);
    assert.equal(await configuration.reset('sysInterval'), true);
    assert.equal(await configuration.reset('sysInterval'), false);
    assert.equal(broker.settings.sysInterval, 120_000);
  });

  it('sets an option that has no value by default to no value', async () => {
    await using broker = await startBroker({ publishLimit: '5,1s' });
    await broker.configuration.set('zone.external.publish_limit', null);
    assert.equal(broker.zone().publishLimit, undefined);
    await broker.configuration.reset('zone.external.publish_limit');
    assert.deepEqual(broker.zone().publishLimit, { amount: 5, perMs: 1000 });
  });

  it('derives an option from another one that was changed', async () => {
    await using broker = await startBroker();
    await broker.configuration.set('memoryHighWatermark', '64MB');
    assert.equal(broker.settings.maxTotalMqueueBytes, 33_554_432);
  });

  it('keeps what was agreed with connected clients, except for what takes effect at once', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c' });
    await broker.configuration.setAll([
      ['maxInflight', 5],
      ['aclNomatch', 'deny']
    ]);
    await broker.configuration.set('aclDenyAction', 'disconnect');
    const { zone } = engineOf(broker).sessions.get('c')?.client.agreement ?? {};
    assert.deepEqual([zone?.maxInflight, zone?.aclNomatch, zone?.aclDenyAction], [128, 'deny', 'disconnect']);
    client.stream.destroy();
  });

  it('lets the connections of a zone share a total rate when another option of the zone has changed', async () => {
    await using broker = await startBroker({ totalPublishLimit: '1,10s' });
    const first = await rawClient(broker);
    await broker.configuration.set('maxInflight', 5);
    const second = await rawClient(broker);
    for (const client of [first, second]) {
      client.send({ cmd: 'publish', topic: 't', payload: Buffer.alloc(0), qos: 0, dup: false, retain: false });
      await turns();
    }
    second.send({ cmd: 'pingreq' });
    await turns();
    assert.ok(!second.received.some(({ cmd }) => cmd === 'pingresp'), 'the second one is paused');
    for (const { stream } of [first, second]) stream.destroy();
  });

  it('emits configuration.changed for a change and a reset', async () => {
    await using broker = await startBroker();
    const keys: string[] = [];
    broker.on('configuration.changed', ({ key }) => keys.push(key));
    await broker.configuration.set('sysInterval', 0);
    await broker.configuration.reset('sysInterval');
    assert.deepEqual(keys, ['broker.sys_interval', 'broker.sys_interval']);
  });
});

/** The keys of all options. */
function list(broker: Broker): string[] {
  return broker.configuration.list().map(({ key }) => key);
}

describe('Overrides with a store', () => {
  it('applies overrides after a restart, regardless of the options, including for sessions of the store', async () => {
    const store = memoryStore();
    const first = await startBroker({ store });
    const stay = { clientId: 'c', properties: { sessionExpiryInterval: 1000 } };
    const client = await rawClient(first, stay);
    await granted(client, 1, { topic: 't', qos: 1 });
    client.stream.destroy();
    await first.configuration.setAll([
      ['zone.external.max_mqueue_len', 3],
      ['session_expiry_interval', 'infinity'],
      ['zone.external.mqueue_priorities', 'a=1'],
      ['zone.external.rate_limit', '1MB,1s'],
      ['retainer.max_retained_messages', 5]
    ]);
    const before = texts(first.configuration.overrides());
    await first.stop();
    await using second = await startBroker({ store, maxMqueueLen: 7, maxRetainedMessages: 1 });
    assert.deepEqual(texts(second.configuration.overrides()), before);
    assert.equal(second.zone().maxMqueueLen, 3);
    assert.equal(second.zone().sessionExpiryInterval, Infinity);
    assert.deepEqual([...(second.zone().mqueuePriorities ?? [])], [['a', 1]]);
    for (let left = 5; left > 0; left--) await second.publish('t', 'x', { qos: 1 });
    const back = await rawClient(second, { ...stay, clean: false });
    assert.equal((await payloads(back)).length, 3);
    back.stream.destroy();
    for (const topic of ['1', '2']) await second.publish(topic, 'x', { retain: true });
    assert.equal(second.retained.get('2')?.topic, '2');
  });

  it('applies overrides before retained messages are restored, so that a lower limit of the options drops none', async () => {
    const store = memoryStore();
    const first = await startBroker({ store, maxRetainedMessages: 1 });
    await first.configuration.set('maxRetainedMessages', 3);
    for (const topic of ['1', '2', '3']) await first.publish(topic, 'x', { retain: true });
    await first.stop();
    await using second = await startBroker({ store, maxRetainedMessages: 1 });
    for (const topic of ['1', '2', '3']) assert.equal(second.retained.get(topic)?.topic, topic);
  });

  it('acknowledges no override if the process ends before the commit', async () => {
    const store = new MortalStore();
    store.turnsBefore = () => 50;
    const first = await startBroker({ store });
    let isDone = false;
    void first.configuration.set('sysInterval', '5s').then(() => (isDone = true));
    await turns(5);
    assert.equal(isDone, false);
    await store.die();
    await using second = await startBroker({ store: await store.copy() });
    assert.deepEqual(second.configuration.overrides(), []);
    assert.equal(second.settings.sysInterval, 60_000);
  });

  it('refuses an override if the commit fails, and keeps the previous value', async () => {
    const store = new MortalStore();
    await using kit = await createTestBroker({ store });
    const { broker, clock } = kit;
    broker.on('error', () => undefined);
    await broker.configuration.set('sysInterval', '5s');
    store.fault = () => 'refuses';
    await assert.rejects(broker.configuration.set('sysInterval', '6s'), { code: 'STORE_FAILED' });
    assert.equal(broker.settings.sysInterval, 5_000);
    assert.equal(broker.configuration.get('sysInterval').value, 5_000);
    store.fault = () => undefined;
    await clock.advance('1s');
  });

  it('refuses an override before the start, because the store is not known', async () => {
    const broker = new Broker({ store: memoryStore() });
    await assert.rejects(broker.configuration.set('sysInterval', 1), { code: 'BROKER_NOT_STARTED' });
  });

  it('reports and ignores overrides that are no longer valid, and can reset them', async () => {
    const store = memoryStore();
    const first = await startBroker({ store, zones: { lab: {} } });
    await first.configuration.setAll([
      ['zone.lab.max_inflight', 3],
      ['sysInterval', '5s']
    ]);
    const table = engineOf(first).kept.tables.own('$configuration');
    await table.set('max_inflight', { value: 'many', setAt: 0 });
    await table.set('forgotten', { value: 1, setAt: 0 });
    await first.stop();
    await using second = new Broker({ store, timerResolution: 1, memoryHighWatermark: 0 });
    const errors: string[] = [];
    second.on('error', ({ error }) => errors.push((error as Error & { code: string }).code));
    await second.start();
    assert.deepEqual(errors.toSorted(), ['OPTION_INVALID', 'OPTION_UNKNOWN', 'ZONE_UNKNOWN']);
    assert.deepEqual(texts(second.configuration.overrides()), ['broker.sys_interval = 5000']);
    for (const key of ['forgotten', 'zone.lab.max_inflight', 'max_inflight'])
      assert.equal(await second.configuration.reset(key), true);
  });
});
