import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Store } from '../../lib/adapter.ts';
import { checkStore, memoryStore } from '../../lib/index.ts';
import { beginJournal, foldJournals, readJournal } from '../../lib/store/journal.ts';
import { Kind, kindKey, numberKey } from '../../lib/store/keys.ts';
import { Draft } from '../../lib/store/record.ts';
import { Batch } from '../../lib/store/store.ts';
import { TestBroker } from '../../lib/testing/index.ts';
import { Lives, MortalStore } from './support.ts';

async function kept(store: Store, kind: number): Promise<number> {
  return (await store.read(kindKey(kind), kindKey(kind + 1), 1e6)).length;
}

describe('A journal', () => {
  it('returns the records that were put into it, of any size, and none that was incomplete', () => {
    const large = Buffer.alloc(300_000, 7);
    const journal = beginJournal(new Draft(), 5);
    journal.key(Kind.flow).u48(1).value().raw(Buffer.from('one')).put();
    journal.key(Kind.segment).u48(1).u48(2).value().raw(Buffer.from('half'));
    journal.key(Kind.segment).u48(1).u48(3).value().raw(large).put();
    journal.key(Kind.flow).u48(2).value();
    journal.unnest().put();
    const [key] = journal.batch.keys;
    assert.deepEqual(key, numberKey(Kind.journal, 5));
    assert.deepEqual(readJournal({ key, value: journal.batch.values[0] as Buffer }), [
      { key: numberKey(Kind.flow, 1), value: Buffer.from('one') },
      { key: numberKey(Kind.segment, 1, 3), value: large }
    ]);
  });

  it('contains queued messages until they become one segment', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    await lives.kit.clock.advance(100);
    for (let n = 0; n < 30; n++) await lives.kit.broker.publish('a/1', `${n}`, { qos: 1 });
    assert.equal(await kept(lives.store, Kind.segment), 0);
    assert.equal(await kept(lives.store, Kind.journal), 30);
    await lives.kit.clock.advance(100);
    assert.equal(await kept(lives.store, Kind.segment), 1);
    assert.equal(await kept(lives.store, Kind.journal), 0);
  });

  it('becomes empty once the broker has stopped', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    await lives.kit.broker.publish('a/1', 'x', { qos: 1 });
    await lives.kit.broker.stop();
    await lives.store.open();
    assert.deepEqual([await kept(lives.store, Kind.journal), await kept(lives.store, Kind.segment)], [0, 1]);
  });

  it('restores nothing of a session that has ended since', async () => {
    const store = memoryStore();
    await store.open();
    const draft = new Draft();
    draft.key(Kind.session).u48(2).value().put();
    const journal = beginJournal(new Draft(), 1);
    for (const session of [1, 2]) journal.key(Kind.flow).u48(session).value().u8(0).put();
    journal.unnest().put();
    const batch = new Batch();
    for (const { keys, values } of [draft.batch, journal.batch]) batch.put(keys[0], values[0] as Buffer);
    await store.commit(batch);
    await store.commit((await foldJournals(store)).draft.batch);
    const flows = await store.read(kindKey(Kind.flow), kindKey(Kind.flow + 1), 10);
    assert.deepEqual(
      flows.map(({ key }) => key),
      [numberKey(Kind.flow, 2)]
    );
    assert.equal(await kept(store, Kind.journal), 0);
  });

  it('reports a journal as missing if it was folded at a start, is lost, and later commits exist', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#', 2);
    await lives.kit.clock.advance(300);
    await lives.kit.broker.publish('a/1', 'x', { qos: 2 });
    const first = lives.store;
    await lives.kill();
    const { client, texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(1000);
    assert.deepEqual(texts(), ['x']);
    await client.disconnect();
    await lives.kit.clock.advance(1000);
    const before = new Batch();
    for (const { key, value } of await first.entries()) before.put(key, value);
    const store = await MortalStore.of([before, ...lives.store.committed.slice(1)]);
    const { findings } = await checkStore(store);
    assert.deepEqual(
      findings.map(({ code }) => code),
      ['COMMITS_MISSING']
    );
  });

  it('prevents a broker from starting if it is damaged, and names its commit; repairStore continues without it', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    await lives.kit.clock.advance(100);
    await lives.kit.broker.publish('a/1', 'x', { qos: 1 });
    const store = await lives.store.copy();
    await store.open();
    const [{ key, value }] = await store.read(kindKey(Kind.journal), kindKey(Kind.journal + 1), 1);
    value[value.length >> 1] ^= 1;
    const batch = new Batch();
    batch.put(key, value);
    await store.commit(batch);
    await store.close();
    const number = key.readUIntBE(1, 6);
    const kit = new TestBroker({ store, leakCheck: false });
    await assert.rejects(kit.broker.start(), new RegExp(`the messages of commit ${number} cannot be read`));
    const { findings } = await checkStore(store, { repair: true });
    assert.deepEqual(
      findings.map(({ code }) => code),
      ['RECORD_UNREADABLE']
    );
    assert.deepEqual((await checkStore(store)).findings, []);
  });
});
