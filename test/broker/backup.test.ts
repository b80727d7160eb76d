import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import type { Store } from '../../lib/adapter.ts';
import { type Broker, backup, createBroker, importStore, memoryStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { FaultyStore } from '../store/faulty-store.ts';

const QUIET = { sysInterval: 0, sysHeartbeat: 0 };

/** The payloads that wait for a client. */
async function waitingFor(broker: Broker, clientId: string, count: number): Promise<Set<string>> {
  const client = await broker.connect({ clientId, clean: false, sessionExpiry: 3600 });
  const payloads = new Set<string>();
  for await (const { payload } of client.messages()) {
    payloads.add(`${payload}`);
    if (payloads.size >= count) break;
  }
  return payloads;
}

const KINDS: Readonly<Record<string, (name: string) => Store>> = {
  'a memory store': () => memoryStore(),
  'a level store': (folder) => levelStore(folder)
};

for (const [kind, make] of Object.entries(KINDS))
  describe(`A backup of ${kind}`, () => {
    it('backs up everything that was acknowledged before while clients publish, and can be imported', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'embermq-backup-'));
      try {
        const broker = await createBroker({ ...QUIET, store: make(join(folder, 'a')) }).start();
        const reader = await broker.connect({ clientId: 'reader', sessionExpiry: 3600 });
        await reader.subscribe('q/#', { qos: 1 });
        await reader.disconnect();
        await broker.access.usernames.create('ann', 'a password');
        await broker.table('t').set('k', { a: 1 });
        const writers = await Promise.all(
          Array.from({ length: 4 }, (_, n) => broker.connect({ clientId: `writer ${n}` }))
        );
        const acked = new Set<string>();
        let isWriting = true;
        const work = writers.map(async (writer, n) => {
          for (let at = 0; isWriting; at++) {
            await writer.publish(`q/${n}`, `${n} ${at}`, { qos: 1, retain: true });
            acked.add(`${n} ${at}`);
          }
        });
        while (acked.size < 500) await new Promise(setImmediate);
        const before = new Set(acked);
        const lines: string[] = [];
        for await (const line of await backup(broker)) lines.push(line);
        const count = acked.size;
        while (acked.size < count + 100) await new Promise(setImmediate);
        isWriting = false;
        await Promise.all(work);
        await broker.stop();

        const copy = make(join(folder, 'b'));
        await importStore(copy, lines);
        await using restored = await createBroker({ ...QUIET, store: copy }).start();
        assert.deepEqual([restored.table('t').get('k'), restored.access.usernames.size], [{ a: 1 }, 1]);
        assert.equal(restored.retained.count, 4);
        const waiting = await waitingFor(restored, 'reader', before.size);
        for (const payload of before) assert.ok(waiting.has(payload), payload);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    it('contains changes from before without an acknowledgement, and nothing of what comes later', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'embermq-backup-'));
      try {
        await using broker = await createBroker({ ...QUIET, store: make(join(folder, 'a')) }).start();
        const client = await broker.connect({ clientId: 'c' });
        await client.publish('before', 'x', { retain: true });
        await client.publish('ping', 'x', { qos: 1 });
        const lines = await backup(broker);
        await broker.publish('after', 'x', { retain: true });
        const copy = make(join(folder, 'b'));
        await importStore(copy, lines);
        await using restored = await createBroker({ ...QUIET, store: copy }).start();
        assert.deepEqual(
          [restored.retained.get('before')?.topic, restored.retained.get('after')],
          ['before', undefined]
        );
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    it('ends with an error when the broker stops in the meantime', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'embermq-backup-'));
      try {
        const broker = await createBroker({ ...QUIET, store: make(join(folder, 'a')) }).start();
        for (let n = 0; n < 1_000; n++) await broker.publish(`r/${n}`, 'x', { retain: true });
        const lines = await backup(broker);
        await lines.next();
        await broker.stop();
        await assert.rejects(
          async () => {
            for await (const _ of lines);
          },
          { code: 'STORE_CLOSED' }
        );
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });

describe('backup', () => {
  it('makes one backup of a broker at a time, and the next one after any end of the first', async () => {
    await using broker = await createBroker({ ...QUIET, store: memoryStore() }).start();
    const unread = await backup(broker);
    await assert.rejects(backup(broker), { code: 'BACKUP_RUNNING' });
    await unread.return?.();
    const begun = await backup(broker);
    await begun.next();
    await begun.return?.();
    for await (const _ of await backup(broker));
    await (await backup(broker)).return?.();
  });

  it('ends a backup when nothing is read for 60 seconds, closes its snapshot, and reports it', async () => {
    const store = memoryStore();
    let open = 0;
    const take = (store.snapshot as NonNullable<Store['snapshot']>).bind(store);
    store.snapshot = async () => {
      const snapshot = await take();
      open++;
      const close = async () => {
        open--;
        await snapshot.close();
      };
      return { read: snapshot.read.bind(snapshot), close };
    };
    for (const linesBefore of [0, 2]) {
      await using kit = await createTestBroker({ store });
      const { broker, clock } = kit;
      const errors: string[] = [];
      broker.on('error', ({ error }) => errors.push((error as { code?: string }).code ?? `${error}`));
      for (let n = 0; n < 10; n++) await broker.publish(`r/${n}`, 'x', { retain: true });
      const lines = await backup(broker);
      for (let left = linesBefore; left > 0; left--) {
        await clock.advance('59s');
        assert.equal((await lines.next()).done, false);
      }
      await clock.advance('59s');
      assert.deepEqual([open, errors], [1, []]);
      await clock.advance('2s');
      assert.deepEqual([open, errors], [0, ['BACKUP_STALLED']]);
      for await (const _ of await backup(broker)); // another backup can be made
      await assert.rejects(lines.next(), { code: 'BACKUP_STALLED', message: /60 seconds/ });
      await lines.return?.();
      assert.equal(open, 0);
    }
  });

  it('removes the time limit when the backup has ended', async () => {
    await using kit = await createTestBroker({ store: memoryStore() });
    const errors: unknown[] = [];
    kit.broker.on('error', (value) => errors.push(value));
    for await (const _ of await backup(kit.broker));
    await (await backup(kit.broker)).return?.();
    await kit.clock.advance('5m');
    assert.deepEqual(errors, []);
  });

  it('refuses a backup without a store, with one that has no snapshots, before the start, and while the store fails', async () => {
    await using none = await createBroker(QUIET).start();
    await assert.rejects(backup(none), { code: 'BACKUP_UNSUPPORTED' });
    const store = new FaultyStore();
    await using faulty = await createBroker({ ...QUIET, store }).start();
    await assert.rejects(backup(faulty), { code: 'BACKUP_UNSUPPORTED' });
    await assert.rejects(backup(createBroker({ ...QUIET, store: memoryStore() })), { code: 'BROKER_NOT_STARTED' });
  });
});
