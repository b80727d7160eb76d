import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Level } from 'level';
import { levelStore } from '../../adapters/level/index.ts';
import { checkStore } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { acked, PERSISTENT, waiting } from '../store/failing-support.ts';
import { rawClient } from '../support/raw-client.ts';
import { publish, turns } from '../support/wire.ts';

/** Real milliseconds. */
const PATIENCE_MS = 10_000;

/** Returns a Level whose batches fail with `error` while that is set, in place of a disk that fails. */
function createFailingLevel(folder: string): { database: Level; error: Error | undefined; refused: number } {
  const database = new Level(folder);
  const disk = { database, error: undefined as Error | undefined, refused: 0 };
  const batch = database.batch as () => ReturnType<typeof database.batch>;
  const made = () => {
    const chained = batch.call(database);
    const write = chained.write.bind(chained);
    chained.write = async (options: { sync?: boolean } = {}) => {
      if (disk.error === undefined) return write(options);
      disk.refused++;
      await chained.close();
      throw disk.error;
    };
    return chained;
  };
  database.batch = made as typeof database.batch;
  return disk;
}

/** Advances virtual time while LevelDB closes and opens in real time. */
async function advanceUntil(kit: TestBroker, condition: () => boolean): Promise<void> {
  const giveUpMs = performance.now() + PATIENCE_MS;
  while (!condition()) {
    assert.ok(performance.now() < giveUpMs, 'the condition becomes true in time');
    await kit.clock.advance(100);
    await turns();
  }
}

/** Messages as LevelDB reports them. */
const ERRORS: Readonly<Record<string, string>> = {
  EIO: 'Input/output error',
  EROFS: 'Read-only file system'
};

describe('a broker over a level database whose writes fail (errors injected into the write of batches)', () => {
  for (const [code, text] of Object.entries(ERRORS)) {
    it(`refuses messages that must be stored, delivers QoS 0 messages, answers reads, and recovers after ${code}`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'embermq-errors-'));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      const disk = createFailingLevel(folder);
      const store = levelStore(disk.database);
      const reports: string[] = [];
      {
        await using kit = await createTestBroker({ store, leakCheck: false });
        const { broker } = kit;
        broker.on('error', ({ error }) => reports.push((error as Error).message));
        broker.on('store.failed', () => reports.push('failed'));
        broker.on('store.recovered', () => reports.push('recovered'));
        broker.subscribe('$SYS/brokers/+/alarms/#', ({ topic }) => reports.push(`alarm: ${topic.split('/').at(-1)}`));
        const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
        await reader.subscribe({ topic: 'kept/#', qos: 2 });
        await reader.disconnect();
        const writer = await rawClient(broker);
        writer.send(publish('kept/1', 'before', { qos: 1, messageId: 1 }));
        assert.equal(await acked(writer, 'puback'), 0);
        await broker.publish('state', 'retained', { retain: true, qos: 1 });

        disk.error = Object.assign(new Error(`IO error: ${folder}/000003.log: ${text}`), { code: 'LEVEL_IO_ERROR' });
        writer.send(publish('kept/1', 'lost', { qos: 1, messageId: 2 }));
        assert.equal(await acked(writer, 'puback'), 0x97);
        writer.send(publish('kept/1', 'lost', { qos: 2, messageId: 3 }));
        assert.equal(await acked(writer, 'pubrec'), 0x97);
        const older = await rawClient(broker, { version: 4 });
        older.send(publish('kept/1', 'lost', { qos: 1, messageId: 1 }));
        assert.deepEqual(
          (await older.closed()).map(({ cmd }) => cmd),
          ['connack']
        );
        const live = await kit.connect();
        const got: string[] = [];
        live.on('message', ({ payload }) => got.push(`${payload}`));
        await live.subscribe(['live', 'state']);
        writer.send(publish('live', 'QoS 0'));
        await advanceUntil(kit, () => disk.refused > 3); // retried in the meantime, without success
        assert.deepEqual(got, ['retained', 'QoS 0']);
        const message = `${folder}: a commit failed: ${disk.error.message}. The broker retries; check the disk. Operation`;
        assert.deepEqual(
          reports.splice(0).map((line) => line.slice(0, message.length)),
          ['alarm: alert', message, 'failed']
        );
        writer.send(publish('kept/1', 'lost', { qos: 1, messageId: 4 }));
        assert.equal(await acked(writer, 'puback'), 0x97);

        disk.error = undefined;
        await advanceUntil(kit, () => reports.includes('recovered'));
        assert.deepEqual(reports, ['alarm: clear', 'recovered']);
        writer.send(publish('kept/1', 'after', { qos: 2, messageId: 5 }));
        assert.equal(await acked(writer, 'pubrec'), 0);
        assert.deepEqual(await waiting(kit), ['after', 'before']);
      }
      assert.deepEqual((await checkStore(levelStore(folder))).findings, []);
    });
  }
});
