import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { publish, turns } from '../support/wire.ts';
import { acked, check, PERSISTENT, RAW_PERSISTENT, retained, stage, waiting } from './failing-support.ts';
import type { FaultyStore } from './faulty-store.ts';

/** Maximum size that a full store accepts. */
const SMALL = 16_384;
/** Size of a message that is refused. */
const LARGE = 2 * SMALL;
const names = (count: number) => Array.from({ length: count }, (_, n) => `m${n}`.padStart(5));

/** Publishes messages of 1 KB, whose first 5 characters are their names. */
async function queue(kit: TestBroker, list: readonly string[]): Promise<void> {
  for (const name of list) await kit.broker.publish('kept/1', name.padEnd(1_024), { qos: 1 });
}

async function drained(kit: TestBroker): Promise<string[]> {
  return (await waiting(kit)).map((payload) => payload.slice(0, 5));
}

async function assertSound(kit: TestBroker, store: FaultyStore): Promise<void> {
  store.mostBytes = Infinity;
  await kit.clock.advance('10s');
  assert.deepEqual((await check(store)).findings, []);
}

describe('A broker whose store only has space for small commits', () => {
  it('works again although messages wait in journals, and lets their client drain them', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    await kit.clock.advance('1s');
    await queue(kit, names(50)); // in journals, which are to be folded
    store.mostBytes = SMALL;
    await assert.rejects(kit.broker.publish('kept/1', Buffer.alloc(LARGE), { qos: 1 }), { code: 'STORE_FAILED' });
    await kit.clock.advance('1s');
    assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
    assert.deepEqual(await drained(kit), names(50));
    assert.deepEqual(told.slice(5), []);
    await assertSound(kit, store);
  });

  it('works again after a commit that failed without saying whether it was written, as soon as the store is open', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    await kit.clock.advance('1s');
    await queue(kit, names(50));
    store.mostBytes = SMALL;
    store.faultAt.set(store.commits + 1, 'rejects');
    await assert.rejects(kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await kit.clock.advance('1s');
    assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
    assert.deepEqual(await drained(kit), names(50));
    await assertSound(kit, store);
  });

  it('refuses nothing because journals cannot be folded, and folds them once there is space', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    await kit.clock.advance('1s');
    await queue(kit, names(50));
    store.mostBytes = SMALL;
    for (let n = 50; n < 100; n++) {
      await queue(kit, [names(100)[n]]);
      await kit.clock.advance(100);
    }
    assert.deepEqual(told, []);
    store.mostBytes = Infinity;
    await kit.clock.advance('2s');
    assert.deepEqual((await check(store)).findings, []);
    assert.deepEqual(await drained(kit), names(100));
    assert.deepEqual(told, []);
  });

  it('stops without folding journals, and the next start restores their messages', async () => {
    const { kit, store } = await stage();
    await kit.clock.advance('1s');
    await queue(kit, names(50));
    store.mostBytes = SMALL;
    await kit.broker.stop();
    await kit[Symbol.asyncDispose]();
    store.mostBytes = Infinity;
    await using again = await createTestBroker({ store });
    assert.deepEqual(await drained(again), names(50));
  });

  it('writes the states of many sessions in parts', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    const clientIds = names(600).map((name) => name.trim());
    for (const clientId of clientIds) {
      const client = await kit.connect({ clientId, ...PERSISTENT });
      await client.subscribe({ topic: 'all', qos: 1 });
      await client.disconnect();
    }
    await kit.clock.advance('1s');
    store.mostBytes = SMALL;
    await assert.rejects(kit.broker.publish('all', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await kit.clock.advance('10s');
    assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
    for (const clientId of clientIds) assert.equal(kit.broker.sessions.get(clientId).counters().mqueueLen, 0);
    await assertSound(kit, store);
  });

  it('retains the previous messages without writing them again, and new ones of QoS 0 in parts', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    const writer = await rawClient(kit.broker);
    await kit.broker.publish('state/large', 'old'.padEnd(LARGE), { qos: 1, retain: true });
    await kit.clock.advance('1s');
    store.mostBytes = SMALL;
    for (let n = 0; n < 50; n++) writer.send(publish(`state/${n}`, 'new'.padEnd(1_024), { retain: true }));
    writer.send(publish('state/large', 'new'.padEnd(LARGE), { qos: 1, retain: true, messageId: 1 }));
    assert.equal(await acked(writer, 'puback'), 0x97);
    await kit.clock.advance('10s');
    assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
    const found = (await retained(kit.broker)).map((text) => text.trim());
    const expected = [...Array(50).keys()].map((n) => `${n}: new`);
    assert.deepEqual(found, [...expected, 'large: old'].sort());
    await assertSound(kit, store);
  });

  it('discards messages that it has refused and sent if their client disconnects, and queued messages of QoS 0', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    await kit.clock.advance('1s');
    const reader = await rawClient(kit.broker, { clientId: 'reader', ...RAW_PERSISTENT });
    store.mostBytes = SMALL;
    const writer = await rawClient(kit.broker, { clientId: 'writer' });
    writer.send(publish('kept/1', 'sent'.padEnd(LARGE), { qos: 1, messageId: 1 }));
    assert.equal(await acked(writer, 'puback'), 0x97);
    await reader.next('publish');
    reader.stream.destroy();
    await turns();
    for (let n = 0; n < 20; n++) void kit.broker.publish('kept/1', `${n}`.padEnd(1_024));
    await kit.clock.advance('10s');
    assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
    assert.deepEqual(await waiting(kit), []);
    await assertSound(kit, store);
  });
});
