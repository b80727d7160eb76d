import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createBroker, memoryStore } from 'embermq';
import type { Store } from 'embermq/adapter';
import { levelStore } from 'embermq/level';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;

describe('The store over REST', () => {
  it('shows the store with its size, commits and records while it is written to', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'x-store-'));
    const broker = createBroker({ store: levelStore(folder) });
    await broker.start();
    try {
      const away = await broker.connect({ clientId: 'away', sessionExpiry: 600 });
      await away.subscribe('a/#', { qos: 1 });
      await away.disconnect();
      await broker.publish('kept', 'x', { retain: true });
      for (const revision of REVISIONS) {
        await using server = await serveManagement(broker, { revision, credentials: 'none' });
        const publishing = Promise.all(
          Array.from({ length: 500 }, (_, number) => broker.publish(`a/${number}`, 'x'.repeat(1_000), { qos: 1 }))
        );
        const { data } = (await server.call('GET', '/api/x/store?records=true')).body;
        await publishing;
        assert.deepEqual([data.has_store, data.failed, data.records_complete], [true, false, true]);
        assert.match(data.name, /x-store-/);
        assert.ok(data.size_bytes > 0 && data.commits > 0 && data.commits_per_s >= 0 && data.unwritten_bytes >= 0);
        assert.deepEqual(
          ['session', 'subscription', 'retained'].map((kind) => data.records[kind].records),
          [1, 1, 1]
        );
        const without = (await server.call('GET', '/api/x/store')).body.data;
        assert.deepEqual([without.records, without.records_complete], [undefined, undefined]);
      }
    } finally {
      await broker.stop();
      await rm(folder, { recursive: true });
    }
  });

  it('reports no store if the broker has none', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const { body } = await server.call('GET', '/api/x/store?records=true');
      assert.deepEqual(body, { code: 0, data: { has_store: false } });
    }
  });

  it('reports the store as unavailable while it is closed', async () => {
    const broker = createBroker({ store: memoryStore() });
    await broker.start();
    await using server = await serveManagement(broker, { credentials: 'none' });
    await broker.stop();
    const { status, body } = await server.call('GET', '/api/x/store?records=true');
    assert.deepEqual([status, body.code], [503, 101]);
  });

  it('counts the records once for concurrent requests', async () => {
    const store = memoryStore();
    let reads = 0;
    const counted: Store = {
      name: store.name,
      open: () => store.open(),
      commit: (batch) => store.commit(batch),
      read: (...range) => {
        reads++;
        return store.read(...range);
      },
      close: () => store.close()
    };
    await using broker = createBroker({ store: counted });
    await broker.start();
    for (let number = 0; number < 300; number++) await broker.publish(`kept/${number}`, 'x', { retain: true });
    reads = 0;
    const both = await Promise.all([broker.monitor.store.records(), broker.monitor.store.records()]);
    assert.deepEqual([both[0]?.kinds.retained.records, both[0] === both[1]], [300, true]);
    assert.ok(reads < 30, `${reads} reads`);
  });
});
