import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { Level } from 'level';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch, type Store } from '../../lib/adapter.ts';
import { evalFlags, urlOf } from '../support/programs.ts';
import { IS_LONG } from '../support/samples.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-manifest-'));
after(() => rmSync(home, { recursive: true, force: true }));
let folders = 0;

function copyOf(folder: string): string {
  const copy = join(home, `${folders++}`);
  cpSync(folder, copy, { recursive: true });
  rmSync(join(copy, 'OWNER'), { force: true });
  return copy;
}

function manifestOf(folder: string): string {
  return readFileSync(join(folder, 'CURRENT'), 'latin1').trim();
}

/** Lists the offsets at which the records of a manifest of one block end. */
function endsIn(file: string): number[] {
  const bytes = readFileSync(file);
  const ends: number[] = [];
  for (let at = 0; at < bytes.length; ) ends.push((at += 7 + bytes.readUInt16LE(at + 4)));
  return ends;
}

async function keysOf(store: Store): Promise<string[]> {
  await store.open();
  const entries = await store.read(Buffer.of(0), Buffer.of(255), 1e6);
  await store.close();
  return entries.map(({ key }) => `${key}`);
}

function tablesIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.ldb'));
}

describe('a manifest whose end is lost', () => {
  const RECORDS = 150;
  let live: string;

  before(async () => {
    live = join(home, 'live');
    const store = levelStore(live);
    await store.open();
    for (let n = 0; n < RECORDS; n++) {
      const batch = new Batch();
      batch.put(Buffer.from(`key ${String(n).padStart(3, '0')}`), randomBytes(100_000));
      await store.commit(batch);
    }
    await store.close(); // waits until all tables are written
    assert.ok(tablesIn(live).length >= 3, 'LevelDB wrote tables while it was open');
  });

  for (const bytes of [0, 3, 10, 40])
    it(`reports STORE_DAMAGED by name, and a repair keeps every table, if ${bytes} bytes of any record are left`, async () => {
      const file = manifestOf(live);
      const ends = endsIn(join(live, file));
      for (const [at, end] of ends.slice(0, -1).entries()) {
        if (end + bytes >= ends[at + 1]) continue;
        const folder = copyOf(live);
        rmSync(join(folder, 'CLOSED'), { force: true }); // as after a crash
        truncateSync(join(folder, file), end + bytes);
        const store = levelStore(folder);
        const message =
          bytes === 0
            ? /STORE_DAMAGED|is missing|corrupt/i
            : new RegExp(`its file ${file} is damaged: its record at byte ${end} `);
        await assert.rejects(store.open(), { code: 'STORE_DAMAGED', message }, `cut at ${end + bytes}`);
        await store.repair?.();
        assert.equal((await keysOf(store)).length, RECORDS, `cut at ${end + bytes}`);
        rmSync(folder, { recursive: true });
      }
    });

  /** Returns a folder whose broker was killed while LevelDB wrote the record that would name a table. */
  async function killed(record: Buffer): Promise<{ folder: string; log: string }> {
    const live = join(home, `${folders++}`);
    const store = levelStore(live);
    await store.open();
    const batch = new Batch();
    batch.put(Buffer.from('a'), Buffer.from('1'));
    await store.commit(batch);
    const folder = copyOf(live);
    await store.close();
    writeFileSync(join(folder, manifestOf(folder)), record, { flag: 'a' });
    writeFileSync(join(folder, '000099.ldb'), 'not yet a table');
    const log = readdirSync(folder).find((name) => name.endsWith('.log')) as string;
    return { folder, log };
  }

  const ends = {
    'after a process was killed while LevelDB wrote its last record': Buffer.from('00112233280001', 'hex'),
    'after a loss of power that left zeros in the place of its last record': Buffer.alloc(50)
  };
  for (const [when, record] of Object.entries(ends)) {
    it(`counts as sound ${when}, because the log still exists`, async () => {
      const { folder } = await killed(record);
      assert.deepEqual(await keysOf(levelStore(folder)), ['a']);
    });

    it(`reports STORE_DAMAGED ${when}, if the log is missing`, async () => {
      const { folder, log } = await killed(record);
      rmSync(join(folder, log));
      await assert.rejects(keysOf(levelStore(folder)), { code: 'STORE_DAMAGED' });
    });
  }
});

describe('tables that LevelDB had not yet deleted', () => {
  /** Creates a database with `kept` and `deleted` in one table and the deletion of `deleted` in another, before and after compaction. */
  async function compacted(): Promise<{ before: string; after: string }> {
    const folder = join(home, `${folders++}`);
    const encodings = { keyEncoding: 'utf8', valueEncoding: 'utf8' } as const;
    const lives: ((db: Level) => Promise<void>)[] = [
      (db) =>
        db.batch([
          { type: 'put', key: 'deleted', value: '1' },
          { type: 'put', key: 'kept', value: '1' }
        ]),
      (db) => db.del('deleted')
    ];
    for (const live of lives) {
      const db = new Level(folder, encodings);
      await db.open();
      await live(db);
      await db.close();
    }
    const db = new Level(folder, encodings);
    await db.open();
    const beforeIt = copyOf(folder);
    await (db as unknown as { compactRange(from: string, to: string): Promise<void> }).compactRange('a', 'z');
    const afterIt = copyOf(folder);
    await db.close();
    return { before: beforeIt, after: afterIt };
  }

  /** Restores the older of the two tables, without the table that contains the deletion. */
  function restoreOlder(from: string, to: string): string {
    const [older] = tablesIn(from).sort();
    cpSync(join(from, older), join(to, older));
    return older;
  }

  it('restores no deleted records if the end of the manifest is lost', async () => {
    const { before: source, after: folder } = await compacted();
    const older = restoreOlder(source, folder);
    const file = join(folder, manifestOf(folder));
    const compactionAt = endsIn(join(source, manifestOf(source))).at(-1) as number;
    truncateSync(file, compactionAt + 5);
    const store = levelStore(folder);
    await assert.rejects(store.open(), { code: 'STORE_DAMAGED' });
    await store.repair?.();
    assert.deepEqual(await keysOf(store), ['kept']);
    assert.ok(readdirSync(join(folder, 'lost')).includes(older));
  });

  it('restores no deleted records if another damage is repaired', async () => {
    const { before: source, after: folder } = await compacted();
    // each open writes a new manifest
    await keysOf(levelStore(folder));
    restoreOlder(source, folder);
    for (const damage of ['garbage', '', undefined]) {
      const damaged = copyOf(folder);
      if (damage === undefined) rmSync(join(damaged, 'CURRENT'));
      else writeFileSync(join(damaged, 'CURRENT'), damage);
      const store = levelStore(damaged);
      await store.repair?.();
      assert.deepEqual(await keysOf(store), ['kept']);
    }
  });

  it('finds them in bounded memory, however many records they contain', async () => {
    const folder = join(home, `${folders++}`);
    const db = new Level(folder, { keyEncoding: 'utf8', valueEncoding: 'utf8' });
    await db.open();
    await db.put('a', '1');
    await (db as unknown as { compactRange(from: string, to: string): Promise<void> }).compactRange('a', 'z');
    const known = endsIn(join(folder, manifestOf(folder))).at(-1) as number;
    const [count, heapMb] = IS_LONG ? [800_000, 96] : [250_000, 32];
    for (let from = 0; from < count; from += 50_000) {
      const puts = Array.from({ length: 50_000 }, (_, at) => `${from + at}`.padStart(24, 'k'));
      await db.batch(puts.map((key) => ({ type: 'put', key, value: '' })));
    }
    await db.close();
    truncateSync(join(folder, manifestOf(folder)), known); // now it names only the table of `a`
    const script = `const { obsoleteTables } = await import('${urlOf('adapters/level/files/obsolete.ts')}');
      console.log(JSON.stringify(await obsoleteTables(${JSON.stringify(folder)}, new Set())));`;
    const args = [`--max-old-space-size=${heapMb}`, ...evalFlags(script)];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    assert.deepEqual(JSON.parse(stdout), []);
  });
});
