import { serialize } from 'node:v8';
import { crc32 } from 'node:zlib';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import { memoryStore } from '../../lib/index.ts';
import { Kind } from '../../lib/store/keys.ts';
import { Draft } from '../../lib/store/record.ts';
import { Batch, type Entry, type Store } from '../../lib/store/store.ts';
import { writeStreamRecord } from '../../lib/store/stream-record.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** Broker options that make every kind of record possible. */
export const ALL_KINDS: Omit<BrokerOptions, 'clock' | 'store'> = { delayedPublish: true };

/**
 * Creates the store of a crashed broker with records of every kind: sessions `reader` and `other`, the first with 20 queued messages,
 * retained and delayed messages, the will of a connected client, an entry of an outbox, a row of a stream rule, a table.
 */
export async function fill(store: Store): Promise<void> {
  const living = memoryStore();
  const kit = await createTestBroker({ ...ALL_KINDS, store: living, leakCheck: false });
  for (const clientId of ['reader', 'other']) {
    const client = await kit.connect({ clientId, clean: false, sessionExpiry: '1h' });
    await client.subscribe([{ topic: `to/${clientId}/#`, qos: 2 }]);
    await client.subscribe([{ topic: 'all', qos: 1 }]);
    await client.disconnect();
  }
  await kit.connect({
    clientId: 'dying',
    will: { topic: 'gone', payload: Buffer.from('will'), qos: 1, retain: false }
  });
  for (let n = 0; n < 20; n++) {
    await kit.broker.publish({ topic: 'to/reader/x', payload: `${n}`, qos: n % 3 === 0 ? 2 : 1 });
    await kit.clock.advance(100); // a separate segment
  }
  for (let n = 0; n < 20; n++) await kit.broker.publish({ topic: `kept/${n}`, payload: `${n}`, qos: 1, retain: true });
  await kit.broker.publish({ topic: '$delayed/60/later', payload: 'later', qos: 1 });
  const outbox = kit.broker.outboxes.open({
    name: 'target',
    isPersisted: true,
    send: () => Promise.reject(new Error('it is down'))
  });
  outbox.add('key', 'content');
  await kit.clock.advance(100); // messages that no one waits for are written as well
  const entries = await living.read(Buffer.of(0), Buffer.alloc(8, 0xff), 1e9);
  await kit[Symbol.asyncDispose]();
  const draft = new Draft();
  draft.key(Kind.table).tail('colours').u8(0).tail('sky').value().bytes(Buffer.from('"blue"')).put();
  draft.key(Kind.stream).u48(1).value();
  writeStreamRecord(draft, { rule: 'mean', kind: 'row', body: serialize([0, [{ a: 1 }, 0, {}, []]]) });
  draft.put();
  await change(store, (batch) => {
    for (const { key, value } of entries) batch.put(key, value);
    for (const [at, key] of draft.batch.keys.entries()) batch.put(key, draft.batch.values[at] as Buffer);
  });
}

export async function entriesOf(store: Store): Promise<Entry[]> {
  await store.open();
  const entries = await store.read(Buffer.of(0), Buffer.alloc(8, 0xff), 1e9);
  await store.close();
  return entries;
}

/** Changes a store without its broker. */
export async function change(store: Store, how: (batch: Batch) => void): Promise<void> {
  const batch = new Batch();
  how(batch);
  await store.open();
  await store.commit(batch);
  await store.close();
}

/** Encodes a record as a later version of this package would write it. */
export function laterVersion({ key, value }: Entry): Buffer {
  const changed = Buffer.from(value);
  changed[0] = 2;
  changed.writeUInt32LE(crc32(changed.subarray(0, -4), crc32(key)), changed.length - 4);
  return changed;
}
