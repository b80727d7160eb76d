import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Store } from '../../lib/adapter.ts';
import { checkStore, importStore, memoryStore } from '../../lib/index.ts';
import { FORMAT, Kind, kindKey, numberKey } from '../../lib/store/keys.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { RECORDS } from '../../lib/tools/record-kinds.ts';
import { rawClient } from '../support/raw-client.ts';
import { payloads } from '../support/wire.ts';
import { change } from './filled-store.ts';

/**
 * The store of the first version, which crashed at this time. Later versions must open it: this file is never changed, and one is added for
 * each new format or version of records.
 */
const DIED_AT = 1_700_000_004_130;

async function filled(format = 1): Promise<Store> {
  const store = memoryStore();
  const text = readFileSync(join(import.meta.dirname, `format-${format}.jsonl`), 'utf8');
  await importStore(store, text.trim().split('\n'));
  return store;
}

async function formatOf(store: Store): Promise<number> {
  const { kind, read } = RECORDS.format;
  await store.open();
  const [entry] = await store.read(kindKey(kind), kindKey(kind + 1), 1);
  await store.close();
  return read(entry, { nowMs: 0, wallMs: DIED_AT }).format;
}

/** Returns the position of each retained message in their order, as it is written. */
async function places(store: Store): Promise<Record<string, number | undefined>> {
  await store.open();
  const { kind, read } = RECORDS.retained;
  const entries = await store.read(kindKey(kind), kindKey(kind + 1), 100);
  await store.close();
  const kept = entries.map((entry) => read(entry, { nowMs: 0, wallMs: DIED_AT }));
  return Object.fromEntries(kept.map(({ message, seq }) => [message.topic, seq]));
}

describe('A store of format 1 with records of version 1', () => {
  it('passes a check', async () => {
    const { findings } = await checkStore(await filled());
    assert.deepEqual(findings, []);
  });

  it('opens with all of its state', async () => {
    const store = await filled();
    await using kit = await createTestBroker({ store, leakCheck: false, clock: { now: DIED_AT + 10_000 } });
    const { broker } = kit;
    const wills: string[] = [];
    broker.subscribe('a/will', ({ payload }) => wills.push(`${payload}`));
    await kit.clock.advance('1s');
    assert.deepEqual(broker.table('rules').get('r1'), { sql: 'select 1', on: true });
    const retained: string[] = [];
    for await (const { topic, payload } of broker.retained.match('kept/#')) retained.push(`${topic} ${payload}`);
    assert.deepEqual(retained, ['kept/2 2', 'kept/1 1', 'kept/3 3', 'kept/x x']);

    const properties = { sessionExpiryInterval: 3_600 };
    const reader = await rawClient(broker, { clientId: 'reader', clean: false, properties });
    assert.equal(reader.connack?.sessionPresent, true);
    const rel = await reader.next('pubrel');
    assert.equal(rel.messageId, 1);
    const resent = await reader.next('publish');
    assert.deepEqual([`${resent.payload}`, resent.dup, resent.messageId], ['one', true, 2]);
    assert.deepEqual(resent.properties?.subscriptionIdentifier, [7]);
    const texts = ['0', '1', '2', 'from writer', 'for gone', 'in the journal', 'will'];
    assert.deepEqual(await payloads(reader), texts);
    const subscriptions = broker.sessions.get('reader').subscriptions();
    assert.deepEqual(
      [...subscriptions].map(({ filter, qos, noLocal, retainAsPublished, retainHandling }) => [
        filter,
        qos,
        noLocal,
        retainAsPublished,
        retainHandling
      ]),
      [
        ['$share/g/jobs', 1, false, false, 0],
        ['a/#', 2, true, true, 1]
      ]
    );

    const writer = await rawClient(broker, { clientId: 'writer', version: 4, clean: false });
    assert.equal(writer.connack?.sessionPresent, true);
    writer.send({ cmd: 'pubrel', messageId: 9, reasonCode: 0 });
    await writer.next('pubcomp');

    await kit.clock.advance('6m');
    assert.deepEqual(await payloads(reader), ['later']);
    await kit.clock.advance('5m');
    assert.deepEqual(wills, ['delayed will']);
    retained.length = 0;
    for await (const { topic } of broker.retained.match('kept/#')) retained.push(topic);
    assert.deepEqual(retained, ['kept/2', 'kept/1', 'kept/3'], 'one has expired');
    await kit.clock.advance('2h');
    assert.equal(broker.sessions.has('waiting'), false);
  });

  it('writes the positions of its retained messages, so that they are the same at each later start', async () => {
    const store = await filled();
    assert.deepEqual(await places(store), {
      'kept/1': undefined,
      'kept/2': undefined,
      'kept/3': undefined,
      'kept/x': undefined
    });
    for (const gone of ['kept/2', undefined]) {
      await using kit = await createTestBroker({ store, leakCheck: false, clock: { now: DIED_AT + 10_000 } });
      if (gone !== undefined) await kit.broker.publish(gone, '', { qos: 1, retain: true });
      await kit.broker.stop();
      assert.deepEqual(await places(store), { 'kept/1': 1, 'kept/3': 2, 'kept/x': 3 });
    }
  });

  it('gets the current format once a broker has opened it, and keeps its creation time', async () => {
    const store = await filled();
    assert.equal(await formatOf(store), 1);
    for (let round = 0; round < 2; round++) {
      await using kit = await createTestBroker({ store, leakCheck: false, clock: { now: DIED_AT + 10_000 } });
      await kit.broker.stop();
      assert.equal(await formatOf(store), FORMAT);
      await kit.broker.start(); // the same store again
    }
    assert.deepEqual((await checkStore(store)).findings, []);
  });

  it('keeps its format if a broker refuses it', async () => {
    const store = await filled();
    await change(store, (batch) => batch.put(numberKey(Kind.flow, 1), Buffer.from('bad bad')));
    await assert.rejects(createTestBroker({ store, leakCheck: false }), { code: 'STORE_CORRUPT' });
    assert.equal(await formatOf(store), 1);
  });
});

describe('A store of format 2', () => {
  it('opens, and restores the many packet ids that wait for PUBREL', async () => {
    const store = await filled(2);
    assert.deepEqual((await checkStore(store)).findings, []);
    await using kit = await createTestBroker({ store, leakCheck: false, clock: { now: 1_700_000_001_000 } });
    const properties = { sessionExpiryInterval: 3_600 };
    const writer = await rawClient(kit.broker, { clientId: 'writer', clean: false, properties });
    assert.equal(kit.broker.sessions.get('writer').counters().awaitingRel, 301);
    for (const [messageId, code] of [
      [1, 0],
      [300, 0],
      [301, 0x92],
      [400, 0]
    ]) {
      writer.send({ cmd: 'pubrel', messageId, reasonCode: 0 });
      const { reasonCode } = await writer.next('pubcomp');
      assert.equal(reasonCode, code, `packet id ${messageId}`);
    }
  });
});
