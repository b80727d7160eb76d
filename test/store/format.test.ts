import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { RECORDS } from '../../lib/broker/records.ts';
import { checkStore, importStore, memoryStore, type Store } from '../../lib/index.ts';
import { kindKey } from '../../lib/store/keys.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { payloads } from '../support/wire.ts';

/**
 * What the first version left behind when it died at this time. Later versions open it: this file stays as it is, and one is added for each
 * format or version of records that comes.
 */
const DIED_AT = 1_700_000_004_130;
const LINES = readFileSync(new URL('./format-1.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n');

async function filled(): Promise<Store> {
  const store = memoryStore();
  await importStore(store, LINES);
  return store;
}

/** The place of each retained message in their order, as it is written. */
async function places(store: Store): Promise<Record<string, number | undefined>> {
  await store.open();
  const { kind, read } = RECORDS.retained;
  const entries = await store.read(kindKey(kind), kindKey(kind + 1), 100);
  await store.close();
  const kept = entries.map((entry) => read(entry, { nowMs: 0, wallMs: DIED_AT }));
  return Object.fromEntries(kept.map(({ message, seq }) => [message.topic, seq]));
}

describe('A store of format 1, records of version 1', () => {
  it('is sound', async () => {
    const { findings } = await checkStore(await filled());
    assert.deepEqual(findings, []);
  });

  it('opens, with all that was in it', async () => {
    const store = await filled();
    await using kit = await createTestBroker({ store, leakCheck: false, clock: { now: DIED_AT + 10_000 } });
    const { broker } = kit;
    const wills: string[] = [];
    broker.subscribe('a/will', ({ payload }) => wills.push(`${payload}`));
    await kit.clock.advance('1s');
    assert.deepEqual(broker.table('rules').get('r1'), { sql: 'select 1', on: true });
    const retained: string[] = [];
    for await (const { topic, payload } of broker.retained('kept/#')) retained.push(`${topic} ${payload}`);
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
    const subscriptions = broker.session('reader').subscriptions();
    assert.deepEqual(
      [...subscriptions].map(({ filter, options: { qos, nl, rap, rh } }) => [filter, qos, nl, rap, rh]),
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
    for await (const { topic } of broker.retained('kept/#')) retained.push(topic);
    assert.deepEqual(retained, ['kept/2', 'kept/1', 'kept/3'], 'one has expired');
    await kit.clock.advance('2h');
    assert.equal(broker.hasSession('waiting'), false);
  });

  it('has the places of its retained messages written, so that they are the same at each start from then on', async () => {
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
});
