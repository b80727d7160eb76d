import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, describe, it, type TestContext } from 'node:test';
import { Level } from 'level';
import { MemoryLevel } from 'memory-level';
import { type LevelDatabase, levelStore } from '../../adapters/level/index.ts';
import { Batch, type Store } from '../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../lib/index.ts';
import { storeContract } from '../../lib/testing/index.ts';
import { MANY_KEYS } from '../../lib/testing/store-contract.ts';
import { evalFlags, SOURCES } from '../support/programs.ts';
import { IS_LONG } from '../support/samples.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-level-'));
let folders = 0;
const newFolder = () => join(home, `${folders++}`);

after(() => rmSync(home, { recursive: true, force: true }));

function batchOf(...entries: readonly (readonly [key: string, value: string | Buffer])[]): Batch {
  const batch = new Batch();
  for (const [key, value] of entries) batch.put(Buffer.from(key), Buffer.from(value));
  return batch;
}

async function keysOf(store: Store): Promise<string[]> {
  return (await store.read(Buffer.of(0), Buffer.of(0xff), 100_000)).map(({ key }) => key.toString());
}

/** Creates a folder with a table and a log. */
async function createFolder(): Promise<string> {
  const folder = newFolder();
  const store = levelStore(folder);
  await store.open();
  await store.commit(batchOf(['a', '1']));
  await store.close();
  await store.open();
  await store.commit(batchOf(['b', '2']));
  await store.close();
  return folder;
}

function findFile(folder: string, pattern: RegExp): string {
  const name = readdirSync(folder).find((found) => pattern.test(found));
  assert.ok(name, `${folder} has a file ${pattern}`);
  return join(folder, name);
}

/** Checks that opening is refused, with a message that names the folder, the reason and the remedy. */
async function assertRefused(folder: string, code: string, ...parts: readonly RegExp[]): Promise<void> {
  await assert.rejects(levelStore(folder).open(), (error) => {
    assert.ok(error instanceof BrokerError);
    assert.equal(error.code, code);
    assert.ok(error.message.startsWith(`${folder}: `), error.message);
    for (const part of parts) assert.match(error.message, part);
    assert.ok(error.cause instanceof Error);
    return true;
  });
}

describe('a level store in a folder', () => {
  for (const durability of ['process', 'power'] as const) {
    describe(`with durability ${durability}`, () => {
      const contract = storeContract({
        create: () => levelStore(newFolder(), { durability }),
        reopen: (store) => levelStore(store.name, { durability }),
        dispose: (store) => rmSync(store.name, { recursive: true, force: true })
      });
      for (const { name, run } of contract)
        if (IS_LONG || durability === 'process' || name !== MANY_KEYS) it(name, run);
    });
  }

  it('uses its absolute path as the name', () => {
    assert.equal(levelStore('some/where').name, resolve('some/where'));
  });

  it('touches nothing before it is opened', () => {
    const folder = newFolder();
    levelStore(folder);
    assert.equal(statSync(folder, { throwIfNoEntry: false }), undefined);
  });

  it('creates the folder and its parents', async () => {
    const folder = join(newFolder(), 'deep', 'down');
    const store = levelStore(folder);
    await store.open();
    await store.close();
    assert.ok(readdirSync(folder).includes('CURRENT'));
  });

  it('refuses a folder that another process has open, and opens it once that process has ended', async () => {
    const folder = newFolder();
    const program = `
      import { levelStore } from 'embermq/level';
      await levelStore(process.argv[1]).open();
      console.log('open');
      setInterval(() => {}, 1000);
    `;
    const other = spawn(process.execPath, [...evalFlags(program), folder], {
      cwd: SOURCES,
      stdio: ['ignore', 'pipe', 'inherit']
    });
    try {
      const [line] = await once(createInterface(other.stdout), 'line');
      assert.equal(line, 'open');
      await assertRefused(folder, 'STORE_LOCKED', /in use by another process/, /Stop it, or name another folder\./);
    } finally {
      other.kill('SIGKILL');
      await once(other, 'exit');
    }
    const store = levelStore(folder);
    await store.open();
    await store.close();
  });

  it('refuses a folder that another store of this process has open, and opens it once that store is closed', async () => {
    const folder = newFolder();
    const [one, two] = [levelStore(folder), levelStore(folder)];
    await one.open();
    await assert.rejects(two.open(), { code: 'STORE_LOCKED' });
    await one.commit(batchOf(['a', '1']));
    await one.close();
    await two.open();
    assert.deepEqual(await keysOf(two), ['a']);
    await two.close();
  });

  it('stays locked for other processes after another store of this process was refused, by any path', async () => {
    const folder = newFolder();
    const link = newFolder();
    symlinkSync(folder, link);
    const store = levelStore(folder);
    await store.open();
    for (const path of [folder, link]) {
      const second = levelStore(path);
      await assert.rejects(second.open(), { code: 'STORE_LOCKED' });
      await assert.rejects(async () => second.repair?.(), { code: 'STORE_LOCKED' });
    }
    const program = `
      import { levelStore } from 'embermq/level';
      await levelStore(process.argv[1]).open().then(() => console.log('open'), ({ code }) => console.log(code));
    `;
    const flags = [...evalFlags(program), folder];
    assert.equal(execFileSync(process.execPath, flags, { cwd: SOURCES, encoding: 'utf8' }), 'STORE_LOCKED\n');
    await store.commit(batchOf(['a', '1']));
    await store.close();
    const again = levelStore(link);
    await again.open();
    assert.deepEqual(await keysOf(again), ['a']);
    await again.close();
  });

  for (const what of ['the same path', 'a link'] as const) {
    it(`opens for one of two stores that are opened at the same time by a path and ${what}, and stays locked for other processes`, async () => {
      const folder = await createFolder();
      const other = what === 'the same path' ? folder : newFolder();
      if (other !== folder) symlinkSync(folder, other);
      const stores = [levelStore(folder), levelStore(other)];
      const opened = await Promise.allSettled(stores.map((store) => store.open()));
      const codes = opened.map((result) => (result.status === 'fulfilled' ? 'open' : result.reason.code));
      assert.deepEqual(codes, ['open', 'STORE_LOCKED']);
      const program = `
        import { levelStore } from 'embermq/level';
        await levelStore(process.argv[1]).open().then(() => console.log('open'), ({ code }) => console.log(code));
      `;
      const flags = [...evalFlags(program), folder];
      assert.equal(execFileSync(process.execPath, flags, { cwd: SOURCES, encoding: 'utf8' }), 'STORE_LOCKED\n');
      await stores[0].commit(batchOf(['c', '3']));
      await stores[0].close();
      await stores[1].open();
      assert.deepEqual(await keysOf(stores[1]), ['a', 'b', 'c']);
      await stores[1].close();
    });
  }

  it('refuses a repair while another store opens it, and opening while it is repaired', async () => {
    const folder = await createFolder();
    const [one, two] = [levelStore(folder), levelStore(folder)];
    const opening = one.open();
    await assert.rejects(async () => two.repair?.(), { code: 'STORE_LOCKED' });
    await opening;
    await one.close();
    const repairing = two.repair?.();
    await one.open();
    await repairing;
    assert.deepEqual(await keysOf(one), ['a', 'b']);
    await one.close();
  });

  it('releases its folder if closing the database fails', async (t) => {
    const folder = newFolder();
    const store = levelStore(folder);
    await store.open();
    const close = t.mock.method(Level.prototype, 'close', async function (this: Level) {
      close.mock.restore();
      await this.close();
      throw new Error('the disk is gone');
    });
    await assert.rejects(store.close(), /the disk is gone/);
    const other = levelStore(folder);
    await other.open();
    await other.close();
  });

  it('refuses a path at or below a file', async () => {
    const file = newFolder();
    writeFileSync(file, 'text');
    await assertRefused(file, 'STORE_UNUSABLE', /EEXIST/, /A file is in the place of a folder/);
    for (const place of ['below', 'far/below'])
      await assertRefused(
        join(file, place),
        'STORE_UNUSABLE',
        /EEXIST/,
        new RegExp(`'${file}'\\. A file is in the place of a folder`)
      );
    for (const place of [file, join(file, 'below')]) {
      const { repair } = levelStore(place);
      assert.ok(repair);
      await assert.rejects(repair(), {
        code: 'STORE_UNUSABLE',
        message: /EEXIST.*A file is in the place of a folder/
      });
    }
    assert.equal(readFileSync(file, 'utf8'), 'text');
  });

  it('refuses a folder in which it may not write', async () => {
    const folder = newFolder();
    mkdirSync(folder);
    chmodSync(folder, 0o555);
    chmodSync(home, 0o755);
    const isRoot = process.geteuid?.() === 0;
    // root may write everywhere
    if (isRoot) process.seteuid?.(65_534);
    try {
      const parts = [/permission denied/i, /Give this process permission to read and write there/];
      await assertRefused(folder, 'STORE_UNUSABLE', ...parts);
      await assertRefused(join(folder, 'below'), 'STORE_UNUSABLE', ...parts);
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

  it('reports no missing file in a folder that it may not read', async () => {
    const folder = await createFolder();
    chmodSync(folder, 0o311);
    chmodSync(home, 0o755);
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      await assertRefused(
        folder,
        'STORE_UNUSABLE',
        /permission denied/i,
        /Give this process permission to read and write there/
      );
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

  const damages: readonly [what: string, damage: (folder: string) => void][] = [
    ['CURRENT contains something else', (folder) => writeFileSync(join(folder, 'CURRENT'), 'garbage')],
    ['CURRENT names another folder', (folder) => writeFileSync(join(folder, 'CURRENT'), '..\n')],
    ['CURRENT is empty', (folder) => writeFileSync(join(folder, 'CURRENT'), '')],
    ['CURRENT is missing', (folder) => rmSync(join(folder, 'CURRENT'))],
    ['the manifest is missing', (folder) => rmSync(findFile(folder, /^MANIFEST/))],
    ['the manifest is empty', (folder) => writeFileSync(findFile(folder, /^MANIFEST/), '')],
    ['a byte of the manifest has changed', (folder) => flip(findFile(folder, /^MANIFEST/), 20)],
    ['a table is missing', (folder) => rmSync(findFile(folder, /\.ldb$/))],
    ['the log is missing', (folder) => rmSync(findFile(folder, /\.log$/))]
  ];
  for (const [what, damage] of damages) {
    it(`refuses a folder if ${what}, and keeps its tables and logs`, async () => {
      const folder = await createFolder();
      damage(folder);
      const records = () => readdirSync(folder).filter((name) => /\.(ldb|log)$/.test(name));
      const before = records();
      await assertRefused(
        folder,
        'STORE_DAMAGED',
        /Restore the folder from a backup, or continue without the lost records/
      );
      assert.deepEqual(records(), before);
    });
  }

  it('names a missing log, and can be repaired without it', async () => {
    const folder = await createFolder();
    const log = findFile(folder, /\.log$/);
    rmSync(log);
    await assertRefused(folder, 'STORE_DAMAGED', new RegExp(`its file ${basename(log)} is missing\\.`));
    const store = levelStore(folder);
    await store.repair?.();
    await store.open();
    assert.deepEqual(await keysOf(store), ['a'], 'the record of the table');
    await store.close();
    await store.open();
    await store.close();
  });

  it('opens a folder that LevelDB was creating and that has no log yet', async () => {
    const young = newFolder();
    mkdirSync(young);
    // checksum, length, type; then name of the comparator, log 0, next file 2, last sequence number 0
    const first = '957cb9c5220001' + '011a6c6576656c64622e4279746577697365436f6d70617261746f72020003020400';
    writeFileSync(join(young, 'MANIFEST-000001'), Buffer.from(first, 'hex'));
    writeFileSync(join(young, 'CURRENT'), 'MANIFEST-000001\n');
    const store = levelStore(young);
    await store.open();
    assert.deepEqual(await keysOf(store), []);
    await store.close();
  });

  describe('whose folder is deleted or moved while it is open', () => {
    /** Opens a store with a record. `secondLater` advances the clock by a second. */
    async function opened(t: TestContext) {
      let nowMs = performance.now();
      t.mock.method(performance, 'now', () => nowMs);
      const folder = newFolder();
      const store = levelStore(folder);
      await store.open();
      await store.commit(batchOf(['a', '1']));
      const secondLater = () => {
        nowMs += 1_001;
      };
      return { folder, store, secondLater };
    }

    const losses: readonly [what: string, lose: (folder: string) => void, message: RegExp][] = [
      ['is deleted', (folder) => rmSync(folder, { recursive: true }), /LOCK is missing \(ENOENT.*deleted or moved/],
      ['is moved', (folder) => renameSync(folder, `${folder}-moved`), /LOCK is missing \(ENOENT.*deleted or moved/],
      ['loses its files', (folder) => removeFiles(folder), /LOCK is missing \(ENOENT.*deleted or moved/],
      [
        'is replaced by an empty one',
        (folder) => {
          renameSync(folder, `${folder}-moved`);
          mkdirSync(folder);
          writeFileSync(join(folder, 'LOCK'), '');
        },
        /LOCK has been replaced: another folder is in this place/
      ]
    ];
    for (const [what, lose, message] of losses) {
      it(`refuses commits within a second after its folder ${what}, and creates no new one`, async (t) => {
        const { folder, store, secondLater } = await opened(t);
        lose(folder);
        secondLater();
        await assert.rejects(store.commit(batchOf(['b', '1'])), (error: Error) => {
          assert.match(error.message, message);
          return error.message.includes(folder);
        });
        await assert.rejects(store.commit(batchOf(['c', '1'])), message);
        for (let n = 0; n < 2; n++) {
          await store.close();
          await assert.rejects(store.open(), {
            code: 'STORE_UNUSABLE',
            message: new RegExp(
              `^${folder}: the store cannot be opened: the folder was deleted or moved.*Move it back, or`
            )
          });
        }
        const names = existsSync(folder) ? readdirSync(folder) : [];
        assert.deepEqual(
          names.filter((name) => name !== 'LOCK'),
          []
        );
        const anew = levelStore(folder);
        await anew.open();
        await anew.close();
      });
    }

    it('opens with all its records once the folder has been restored', async (t) => {
      const { folder, store, secondLater } = await opened(t);
      renameSync(folder, `${folder}-moved`);
      secondLater();
      await assert.rejects(store.commit(batchOf(['b', '1'])), /deleted or moved/);
      await store.close();
      await assert.rejects(store.open(), { code: 'STORE_UNUSABLE' });
      renameSync(`${folder}-moved`, folder);
      await store.open();
      await store.commit(batchOf(['c', '1']));
      const keys = await keysOf(store);
      assert.deepEqual(
        keys.filter((key) => key !== 'b'),
        ['a', 'c']
      );
      await store.close();
    });

    it('creates no new folder after another folder was in its place', async (t) => {
      const { folder, store, secondLater } = await opened(t);
      renameSync(folder, `${folder}-moved`);
      renameSync(await createFolder(), folder);
      secondLater();
      await assert.rejects(store.commit(batchOf(['b', '1'])), /has been replaced/);
      await store.close();
      await store.open(); // the broker decides whether it is the same store
      await store.close();
      rmSync(folder, { recursive: true });
      await assert.rejects(store.open(), { code: 'STORE_UNUSABLE', message: /not created again/ });
      assert.equal(existsSync(folder), false);
      renameSync(`${folder}-moved`, folder);
      await store.open();
      await store.commit(batchOf(['c', '1']));
      await store.close();
    });

    it('refuses commits after LOCK was deleted, which would let another process open the folder, and can be opened again', async (t) => {
      const { folder, store, secondLater } = await opened(t);
      secondLater();
      await store.commit(batchOf(['b', '1']));
      rmSync(join(folder, 'LOCK'));
      secondLater();
      await assert.rejects(store.commit(batchOf(['b', '2'])), /LOCK is missing/);
      await store.close();
      await store.open();
      secondLater();
      await store.commit(batchOf(['c', '1']));
      assert.deepEqual(await keysOf(store), ['a', 'b', 'c']);
      await store.close();
    });

    it('checks its folder at most once a second, and never that of a database passed by the app', async (t) => {
      const { folder, store } = await opened(t);
      renameSync(folder, `${folder}-moved`);
      await store.commit(batchOf(['b', '1']));
      await store.close();
      let nowMs = performance.now();
      t.mock.method(performance, 'now', () => nowMs);
      const own = newFolder();
      const given = levelStore(new Level(own));
      await given.open();
      rmSync(join(own, 'LOCK'));
      nowMs += 10_000;
      await given.commit(batchOf(['a', '1']));
      await given.close();
    });

    it('creates a new folder if the folder was deleted while the store was closed', async () => {
      const folder = await createFolder();
      const store = levelStore(folder);
      await store.open();
      await store.close();
      rmSync(folder, { recursive: true });
      await store.open();
      assert.deepEqual(await keysOf(store), []);
      await store.close();
    });
  });

  it('opens with the same store object after a damaged folder was restored', async () => {
    const folder = await createFolder();
    const current = readFileSync(join(folder, 'CURRENT'));
    rmSync(join(folder, 'CURRENT'));
    const store = levelStore(folder);
    await assert.rejects(store.open(), { code: 'STORE_DAMAGED' });
    writeFileSync(join(folder, 'CURRENT'), current);
    await store.open();
    assert.deepEqual(await keysOf(store), ['a', 'b']);
    await store.close();
  });

  it('refuses commits after its disk was full, until there is space and it is opened again', async (t) => {
    const disk = newFolder();
    mkdirSync(disk);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk], { stdio: 'pipe' });
    } catch (error) {
      t.skip(`no small disk can be mounted here: ${(error as Error).message.trim()}`);
      return;
    }
    try {
      const store = levelStore(join(disk, 'store'), { reserve: 0 });
      await store.open();
      await store.commit(batchOf(['first', '1']));
      writeFileSync(join(disk, 'ballast'), Buffer.alloc(1_048_576));
      await assert.rejects(store.commit(batchOf(['large', Buffer.alloc(1_500_000)])), /No space left on device/);
      rmSync(join(disk, 'ballast'));
      // LevelDB would accept this commit, and lose it at the next open
      await assert.rejects(store.commit(batchOf(['small', '1'])), /No space left on device/);
      assert.deepEqual(await keysOf(store), ['first'], 'reads still work');
      await store.close();
      await store.open();
      await store.commit(batchOf(['second', '2']));
      await store.close();
      await store.open();
      assert.deepEqual(await keysOf(store), ['first', 'second']);
      await store.close();

      const small = join(disk, 'small');
      fill(join(disk, 'ballast'));
      await assertRefused(small, 'STORE_UNUSABLE', /no space left/i, /Free some disk space/);
    } finally {
      execFileSync('umount', ['-l', disk]); // works even if a failed test has left a file open
    }
  });
});

describe('a level store in a folder that contains a folder in the place of a log', () => {
  it('fails with STORE_UNUSABLE, naming that folder and the remedy', async () => {
    const folder = await createFolder();
    const log = join(folder, readdirSync(folder).find((name) => name.endsWith('.log')) as string);
    rmSync(log);
    mkdirSync(log);
    await assert.rejects(levelStore(folder).open(), {
      code: 'STORE_UNUSABLE',
      message: new RegExp(`${log} is a folder\\. A folder is in the place of a file: remove it`)
    });
  });
});

describe('a level store over a Level passed by the app', () => {
  const levels = new Map<Store, Level>();
  const contract = storeContract({
    create: () => {
      const database = new Level(newFolder());
      const store = levelStore(database);
      levels.set(store, database);
      return store;
    },
    reopen: (store) => levelStore(store.name),
    failNextCommit: (store) => failNextBatch(levels.get(store) as Level),
    dispose: (store) => {
      levels.delete(store);
      rmSync(store.name, { recursive: true, force: true });
    }
  });
  for (const { name, run } of contract) if (IS_LONG || name !== MANY_KEYS) it(name, run);
});

describe('a level store over another database passed by the app', () => {
  const memoryLevels = new Map<Store, MemoryLevel>();
  const contract = storeContract({
    create: () => {
      const database = new MemoryLevel();
      const store = levelStore(database);
      memoryLevels.set(store, database);
      return store;
    },
    failNextCommit: (store) => failNextWrite(memoryLevels.get(store) as MemoryLevel),
    dispose: (store) => {
      memoryLevels.delete(store);
    }
  });
  for (const { name, run } of contract) it(name, run);

  it('accepts a Level with its own options, and uses its folder as the name', async () => {
    const folder = newFolder();
    const store = levelStore(new Level(folder, { keyEncoding: 'json', compression: false }), { durability: 'power' });
    assert.equal(store.name, folder);
    await store.open();
    await store.commit(batchOf(['a', '1']));
    await store.close();
    const again = levelStore(folder);
    await again.open();
    assert.deepEqual(await keysOf(again), ['a']);
    await again.close();
  });

  it('accepts a sublevel of a database, and changes nothing outside it', async () => {
    const database = new MemoryLevel();
    await database.put('beside', 'x');
    const part = database.sublevel('mqtt');
    const store = levelStore(part);
    await store.open();
    await store.commit(batchOf(['a', '1']));
    assert.deepEqual(await keysOf(store), ['a']);
    await store.close();
    assert.equal(await database.get('beside'), 'x');
  });

  it('uses the class of the database as the name if there is no folder', () => {
    assert.equal(levelStore(new MemoryLevel()).name, 'MemoryLevel');
  });

  it('writes nothing after a failed commit until it is opened again', async () => {
    const database = new MemoryLevel();
    const store = levelStore(database);
    await store.open();
    failNextWrite(database);
    await assert.rejects(store.commit(batchOf(['a', '1'])), /the disk is full/);
    await assert.rejects(store.commit(batchOf(['b', '1'])), /the disk is full/);
    assert.deepEqual(await keysOf(store), []);
    await store.close();
    await store.open();
    await store.commit(batchOf(['c', '1']));
    assert.deepEqual(await keysOf(store), ['c']);
    await store.close();
  });

  it('reports why it cannot be opened', async () => {
    const database = new MemoryLevel();
    Object.assign(database, { _open: () => Promise.reject(new Error('the key is wrong')) });
    await assert.rejects(levelStore(database).open(), {
      code: 'STORE_UNUSABLE',
      message: 'MemoryLevel: the store cannot be opened: the key is wrong. Remove the cause, or name another folder.'
    });
  });

  it('limits concurrent reads to 4, each of which copies its records, and waits for all of them when it closes', async () => {
    const database = new MemoryLevel<Buffer, Buffer>();
    const iterator = database.iterator.bind(database) as (range: unknown) => ReturnType<LevelDatabase['iterator']>;
    let open = 0;
    let most = 0;
    Object.assign(database, {
      iterator: (range: unknown) => {
        const made = iterator(range);
        const close = made.close.bind(made);
        most = Math.max(most, ++open);
        made.close = async () => {
          open--;
          await close();
        };
        return made;
      }
    });
    const store = levelStore(database as unknown as LevelDatabase);
    await store.open();
    await store.commit(batchOf(['a', '1'], ['b', '2']));
    const reads = Array.from({ length: 100 }, (_, n) =>
      store.read(Buffer.from(n % 2 ? 'a' : 'b'), Buffer.from('c'), 1)
    );
    await store.close();
    const found = (await Promise.all(reads)).map(([{ value }]) => `${value}`);
    assert.deepEqual(found, Array(50).fill(['2', '1']).flat());
    assert.deepEqual([most, open], [4, 0]);
  });

  it('leaves no large batch or read to the garbage collector, which does not know of the memory of LevelDB', async () => {
    const database = new MemoryLevel<Buffer, Buffer>();
    const iterators: { isEmpty: boolean }[] = [];
    let filled = 0;
    const batch = database.batch.bind(database) as (...parameters: unknown[]) => unknown;
    const iterator = database.iterator.bind(database) as (range: unknown) => ReturnType<LevelDatabase['iterator']>;
    Object.assign(database, {
      batch: (...parameters: unknown[]) => {
        if (parameters.length === 0) filled++;
        return batch(...parameters);
      },
      iterator: (range: unknown) => {
        const made = iterator(range);
        const nextv = made.nextv.bind(made);
        const state = { isEmpty: false };
        iterators.push(state);
        made.nextv = async (size) => {
          const found = await nextv(size);
          state.isEmpty = found.length === 0;
          return found;
        };
        return made;
      }
    });
    const store = levelStore(database as unknown as LevelDatabase);
    await store.open();
    await store.commit(batchOf(['a', Buffer.alloc(100_000, 1)], ['b', Buffer.alloc(100_000, 2)]));
    assert.equal(filled, 0);
    const read = await store.read(Buffer.from('a'), Buffer.from('c'), 1);
    assert.deepEqual(
      read.map(({ key, value }) => [`${key}`, value.length]),
      [['a', 100_000]]
    );
    assert.deepEqual(iterators, [{ isEmpty: true }]);
    await store.commit(batchOf(['c', '3']));
    assert.equal(filled, 1);
    await store.close();
  });

  it('syncs each commit with durability power, and none with durability process', async () => {
    for (const durability of ['process', 'power'] as const) {
      const seen: unknown[] = [];
      const database = new MemoryLevel();
      const batch = database.batch.bind(database) as () => { write(options: unknown): Promise<void> };
      Object.assign(database, {
        batch: () => {
          const made = batch();
          const write = made.write.bind(made);
          made.write = (options) => {
            seen.push(options);
            return write(options);
          };
          return made;
        }
      });
      const store = levelStore(database, { durability });
      await store.open();
      await store.commit(batchOf(['a', '1']));
      await store.close();
      assert.deepEqual(seen, [{ sync: durability === 'power' }]);
    }
  });
});

describe('levelStore', () => {
  const wrong: readonly [what: string, make: () => unknown, code: string, message: RegExp][] = [
    [
      'an unknown option',
      () => levelStore('x', { durabilty: 'power' } as object),
      'OPTION_UNKNOWN',
      /did you mean "durability"\?/
    ],
    [
      'an unknown durability',
      () => levelStore('x', { durability: 'eternal' as 'power' }),
      'OPTION_INVALID',
      /one of process, power/
    ],
    ['an empty path', () => levelStore(''), 'OPTION_INVALID', /a folder, or an abstract-level database/],
    ['undefined', () => levelStore(undefined as unknown as string), 'OPTION_INVALID', /a folder, or an abstract/],
    ['null', () => levelStore(null as unknown as string), 'OPTION_INVALID', /a folder, or an abstract/],
    [
      'an object that is not a database',
      () => levelStore({} as LevelDatabase),
      'OPTION_INVALID',
      /a folder, or an abstract/
    ],
    [
      'a database that stores strings, which sort differently',
      () => levelStore(new MemoryLevel({ storeEncoding: 'utf8' })),
      'OPTION_INVALID',
      /an abstract-level database that stores bytes, got/
    ]
  ];
  for (const [what, make, code, message] of wrong) {
    it(`refuses ${what}`, () => {
      assert.throws(
        make,
        (error) => error instanceof InvalidInput && error.code === code && message.test(error.message)
      );
    });
  }
});

/** Lets the next batch of the database fail, as on a full disk. */
function failNextWrite(database: MemoryLevel): void {
  const internals = database as unknown as { _batch(operations: unknown, options: unknown): Promise<void> };
  const write = internals._batch;
  internals._batch = async () => {
    internals._batch = write;
    throw new Error('the disk is full');
  };
}

/** Lets the next batch of a LevelDB database fail, as on a full disk. */
function failNextBatch(database: Level): void {
  const { batch } = database;
  const failing = () => {
    database.batch = batch;
    const made = batch.call(database);
    made.write = async () => {
      await made.close();
      throw new Error('the disk is full');
    };
    return made;
  };
  database.batch = failing as unknown as typeof batch;
}

function removeFiles(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
}

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes[at] ^= 1;
  writeFileSync(file, bytes);
}

/** Writes a file until the disk is full. */
function fill(file: string): void {
  for (let size = 4_194_304; size >= 1; size = Math.floor(size / 2)) {
    try {
      writeFileSync(file, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // a smaller piece may still fit
    }
  }
}
