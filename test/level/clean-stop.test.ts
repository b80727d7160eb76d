import assert from 'node:assert/strict';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { Level } from 'level';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch, type Store } from '../../lib/adapter.ts';
import { checkStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { recordsAt } from './log-records.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-clean-stop-'));
after(() => rmSync(home, { recursive: true, force: true }));
let folders = 0;

function newFolder(): string {
  return join(home, `${folders++}`);
}

async function put(store: Store, ...keys: string[]): Promise<void> {
  for (const key of keys) {
    const batch = new Batch();
    batch.put(Buffer.from(key), Buffer.alloc(3_000, key));
    await store.commit(batch);
  }
}

/** Creates a folder with a table and a log, whose store was closed cleanly. */
async function closedFolder(): Promise<string> {
  const folder = newFolder();
  const store = levelStore(folder);
  for (const key of ['a', 'b']) {
    await store.open();
    await put(store, key, `${key}2`, `${key}3`);
    await store.close();
  }
  return folder;
}

function logOf(folder: string): string {
  return readdirSync(folder).find((name) => name.endsWith('.log')) as string;
}

async function keysOf(folder: string): Promise<string[]> {
  const store = levelStore(folder);
  await store.open();
  const entries = await store.read(Buffer.of(0), Buffer.of(255), 1e6);
  await store.close();
  return entries.map(({ key }) => `${key}`);
}

const ALL = ['a', 'a2', 'a3', 'b', 'b2', 'b3'];

describe('STORE_DAMAGED: a folder after a clean stop', () => {
  const damages: Readonly<Record<string, (log: string) => void>> = {
    'is empty': (log) => truncateSync(log, 0),
    'is truncated in its last record': (log) => truncateSync(log, readFileSync(log).length - 5),
    'is truncated behind a record': (log) => truncateSync(log, recordsAt(readFileSync(log))[2][0]),
    'ends with zeros': (log) => {
      writeFileSync(log, readFileSync(log).fill(0, 4_096)); // a page
    }
  };
  for (const [what, damage] of Object.entries(damages))
    it(`names the damaged log, and can be repaired, if the log ${what}`, async () => {
      const folder = await closedFolder();
      const log = logOf(folder);
      damage(join(folder, log));
      const store = levelStore(folder);
      await assert.rejects(store.open(), {
        code: 'STORE_DAMAGED',
        message: new RegExp(
          `its file ${log} is damaged: (it has \\d+ bytes, but had \\d+ when|its content has changed since) the store was closed`
        )
      });
      await assert.rejects(checkStore(levelStore(folder)), { code: 'STORE_DAMAGED' });
      await store.repair?.();
      assert.ok((await keysOf(folder)).includes('a'));
      assert.ok((await keysOf(folder)).includes('a'), 'a second time');
    });

  it('stops a broker if its last commits are lost, which no crash can have caused', async () => {
    const folder = newFolder();
    const kit = await createTestBroker({ store: levelStore(folder), leakCheck: false });
    await kit.broker.publish({ topic: 'r', payload: 'x', qos: 1, retain: true });
    await kit[Symbol.asyncDispose]();
    truncateSync(join(folder, logOf(folder)), 0);
    await assert.rejects(createTestBroker({ store: levelStore(folder), leakCheck: false }), { code: 'STORE_DAMAGED' });
  });
});

describe('The mark of a clean stop', () => {
  it('reports no damage in a folder that was copied, moved or opened any number of times', async () => {
    const folder = await closedFolder();
    const copy = newFolder();
    cpSync(folder, copy, { recursive: true });
    for (const one of [copy, folder, folder]) assert.deepEqual(await keysOf(one), ALL);
    assert.deepEqual(await keysOf(copy), ALL);
  });

  it('reports no damage after an earlier release, which writes no mark, has used the folder', async () => {
    for (const end of ['closed', 'killed']) {
      const folder = await closedFolder();
      const db = new Level(folder, { keyEncoding: 'buffer', valueEncoding: 'buffer' });
      await db.open();
      await db.put(Buffer.from('c') as never, Buffer.from('1') as never);
      const killed = newFolder();
      cpSync(folder, killed, { recursive: true });
      await db.close();
      assert.deepEqual(await keysOf(end === 'closed' ? folder : killed), [...ALL, 'c']);
    }
  });

  it('reports no damage after a crash, whether or not the process had written anything', async () => {
    for (const keys of [[], ['c'], ['c', 'd', 'e']]) {
      const folder = await closedFolder();
      const store = levelStore(folder);
      await store.open();
      await put(store, ...keys);
      const killed = newFolder();
      cpSync(folder, killed, { recursive: true });
      await store.close();
      rmSync(join(killed, 'OWNER'), { force: true });
      const log = join(killed, logOf(killed));
      if (keys.length > 0) truncateSync(log, readFileSync(log).length - 3); // the last record was being written
      assert.deepEqual(await keysOf(killed), [...ALL, ...keys.slice(0, -1)]);
    }
  });

  it('reports no damage after a repair', async () => {
    const folder = await closedFolder();
    writeFileSync(join(folder, 'CURRENT'), 'garbage');
    const store = levelStore(folder);
    await store.repair?.();
    for (let n = 0; n < 2; n++) assert.deepEqual(await keysOf(folder), ALL);
  });

  it('ignores an unreadable mark', async () => {
    for (const damage of ['', 'garbage', '{}\n0\n', undefined]) {
      const folder = await closedFolder();
      const mark = join(folder, 'CLOSED');
      if (damage === undefined) {
        rmSync(mark);
        mkdirSync(mark);
      } else writeFileSync(mark, damage);
      for (let n = 0; n < 2; n++) assert.deepEqual(await keysOf(folder), ALL);
    }
  });
});
