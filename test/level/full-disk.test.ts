import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Level } from 'level';
import { levelStore } from '../../adapters/level/index.ts';
import { type Broker, type BrokerError, type Client, checkStore, createBroker } from '../../lib/index.ts';
import { fill, smallDisk } from './small-disk.ts';

/** Without a reserve, the tests decide how much of the disk is free. */
const NO_RESERVE = { reserve: 0 };
const PERSISTENT = { clientId: 'reader', clean: false, sessionExpiry: '1h' } as const;

/** Connects the reader, and returns the first 8 characters of its queued messages. */
async function receiveQueued(broker: Broker, count: number): Promise<string[]> {
  const reader = await broker.connect(PERSISTENT);
  const got: string[] = [];
  for await (const { payload } of reader.messages()) {
    got.push(payload.toString('latin1', 0, 8).trim());
    if (got.length === count) break;
  }
  await reader.ping(); // the broker has received the acknowledgements
  await reader.disconnect();
  return got;
}

/**
 * Copies a folder that LevelDB has open, as a kill would leave it. A thread of LevelDB may delete files in the meantime: then all of it is
 * copied again.
 */
function copyLiving(from: string, to: string): void {
  for (;;) {
    const names = () => readdirSync(from).sort().join();
    const before = names();
    try {
      cpSync(from, to, { recursive: true });
      if (names() === before) return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    rmSync(to, { recursive: true, force: true });
  }
}

/** Creates the folder of a killed process: a table, and 20 retained messages that are only in the log. */
async function createKilledFolder(folder: string): Promise<void> {
  const living = `${folder}-living`;
  const broker = createBroker({ store: levelStore(living, NO_RESERVE) });
  await broker.start();
  await broker.table('before').set('a', 1);
  await broker.stop();
  await broker.start();
  for (let n = 0; n < 20; n++)
    await broker.publish({ topic: `kept/${n}`, payload: Buffer.alloc(20_000, 65 + n), qos: 1, retain: true });
  copyLiving(living, folder);
  await broker.stop();
  rmSync(living, { recursive: true });
}

/** The content of a folder's files, without those in which LevelDB logs its operations. */
function filesOf(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => !/^LOG/.test(name));
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(folder, name), 'base64')]));
}

async function start(folder: string, repairStore: boolean): Promise<{ retained: number; told: string[] }> {
  const broker = createBroker({ store: levelStore(folder, NO_RESERVE), repairStore });
  const errors: string[] = [];
  broker.on('error', ({ error }) => errors.push((error as Error).message));
  await broker.start();
  let retained = 0;
  for await (const _ of broker.retained.match('kept/#')) retained++;
  assert.equal(broker.table('before').get('a'), 1);
  await broker.stop();
  return { retained, told: errors };
}

const NO_SPACE = { code: 'STORE_UNUSABLE', message: /no space left.*Free some disk space/i };

describe('a folder on a full disk', () => {
  it('needs no repair if nothing is damaged, and contains everything that was acknowledged once there is space', async (t) => {
    using disk = smallDisk(t, '4m');
    if (disk === undefined) return;
    const folder = join(disk.path, 'data');
    await createKilledFolder(folder);
    fill(join(disk.path, 'ballast'));
    const before = filesOf(folder);
    for (const repairStore of [false, true]) await assert.rejects(start(folder, repairStore), NO_SPACE);
    await assert.rejects(checkStore(levelStore(folder, NO_RESERVE), { repair: true }), NO_SPACE);
    assert.deepEqual(filesOf(folder), before);
    rmSync(join(disk.path, 'ballast'));
    assert.deepEqual(await start(folder, false), { retained: 20, told: [] });
  });

  it('stays closed for LevelDB if the file OWNER cannot be written', async (t) => {
    using disk = smallDisk(t, '4m');
    if (disk === undefined) return;
    const folder = join(disk.path, 'data');
    await createKilledFolder(folder);
    fill(join(disk.path, 'ballast'));
    const opens = t.mock.method(Level.prototype as unknown as { _open(options: object): Promise<void> }, '_open');
    await assert.rejects(levelStore(folder, NO_RESERVE).open(), { ...NO_SPACE, message: /ENOSPC/ });
    assert.equal(opens.mock.callCount(), 0);
    rmSync(join(disk.path, 'ballast'));
    const store = levelStore(folder, NO_RESERVE);
    await store.open();
    assert.equal(opens.mock.callCount(), 1);
    await store.close();
  });

  it('waits for space before a repair, and loses nothing until then', async (t) => {
    using disk = smallDisk(t, '6m');
    if (disk === undefined) return;
    const folder = join(disk.path, 'data');
    await createKilledFolder(folder);
    writeFileSync(join(folder, 'CURRENT'), 'garbage');
    fill(join(disk.path, 'ballast'));
    const before = filesOf(folder);
    await assert.rejects(start(folder, false), { code: 'STORE_DAMAGED', message: /CURRENT is damaged/ });
    for (let n = 0; n < 2; n++) await assert.rejects(start(folder, true), NO_SPACE);
    assert.deepEqual(filesOf(folder), before);
    rmSync(join(disk.path, 'ballast'));
    const { retained, told: errors } = await start(folder, true);
    assert.equal(retained, 20);
    assert.equal(errors.length, 1);
    assert.match(errors[0], /repaired; this is lost: .*CURRENT is damaged/);
  });

  it('keeps its records if the disk fills up during a repair, and does not open until a repair has succeeded', async (t) => {
    using disk = smallDisk(t, '6m');
    if (disk === undefined) return;
    const folder = join(disk.path, 'data');
    await createKilledFolder(folder);
    writeFileSync(join(folder, 'CURRENT'), 'garbage');
    writeFileSync(join(folder, '000099.ldb'), 'a table that was incomplete when the process ended');
    const repairing = Level as unknown as { repair(location: string): Promise<void> };
    const original = repairing.repair;
    t.mock.method(repairing, 'repair', (location: string) => {
      fill(join(disk.path, 'ballast'));
      return original.call(Level, location);
    });
    // LevelDB moves a table that was incomplete when the process ended to lost/; its records are still in the log.
    const records = () =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .map((name) => name.replace(/^lost\//, ''))
        .filter((name) => /\.(log|ldb)$/.test(name))
        .sort();
    const before = records();
    await assert.rejects(start(folder, true), { code: 'STORE_UNUSABLE', message: /cannot be repaired/ });
    assert.deepEqual(records(), before);
    assert.equal(existsSync(join(folder, 'CURRENT')), false);
    t.mock.restoreAll();
    rmSync(join(disk.path, 'ballast'));
    await assert.rejects(start(folder, false), { code: 'STORE_DAMAGED', message: /CURRENT is missing/ });
    assert.equal((await start(folder, true)).retained, 20);
  });
});

describe('a broker on a disk that fills up', () => {
  it('refuses what does not fit, recovers once there is space, and keeps everything it has accepted', async (t) => {
    using disk = smallDisk(t, '3m');
    if (disk === undefined) return;
    const ballast = join(disk.path, 'ballast');
    const store = levelStore(join(disk.path, 'data'), NO_RESERVE);
    const broker = createBroker({ store });
    const errors: string[] = [];
    const alive = setInterval(() => {}, 1_000); // the broker's own timers do not keep a process alive
    broker.on('error', ({ error }) => errors.push((error as Error & { code: string }).code));
    broker.on('store.failed', () => errors.push('failed'));
    try {
      await broker.start();
      const reader = await broker.connect(PERSISTENT);
      await reader.subscribe({ topic: 'a', qos: 1 });
      await reader.disconnect();
      writeFileSync(ballast, Buffer.alloc(2_000_000));
      const accepted: string[] = [];
      const send = async (name: string) => {
        await broker.publish({
          topic: 'a',
          payload: Buffer.concat([Buffer.from(name.padEnd(8)), randomBytes(60_000)]),
          qos: 1
        });
        accepted.push(name);
      };
      await assert.rejects(
        async () => {
          for (let n = 0; n < 100; n++) await send(`n${n}`);
        },
        { code: 'STORE_FAILED', message: /No space left on device/ }
      );
      assert.ok(accepted.length > 3, `${accepted.length} were accepted`);
      await assert.rejects(send('refused'), { code: 'STORE_FAILED' });
      assert.deepEqual(errors, ['STORE_FAILED', 'failed']);
      let live = 0;
      broker.subscribe('live', () => live++);
      await broker.publish({ topic: 'live', qos: 1 });
      assert.equal(live, 1, 'messages that are not stored are delivered');
      const recovered = new Promise<void>((resolve) => broker.once('store.recovered', () => resolve()));
      rmSync(ballast);
      await recovered;
      await send('after');
      assert.deepEqual(await receiveQueued(broker, accepted.length), accepted);
      await broker.stop();
      assert.deepEqual((await checkStore(store)).findings, []);
    } finally {
      await broker.stop().catch(() => undefined);
      clearInterval(alive);
    }
  });
});

describe('A small disk during a flood of messages for offline clients', () => {
  const names = Array.from({ length: 10 }, (_, at) => `away-${at}`);
  const options = (clientId: string) => ({ clientId, clean: false, sessionExpiry: '1h' }) as const;
  /** Connects a client, repeatedly while the store is opened after a compaction of LevelDB that found no space. */
  const connect = async (broker: Broker, clientId: string): Promise<Client> => {
    for (;;) {
      try {
        return await broker.connect(options(clientId));
      } catch (error) {
        if ((error as BrokerError & { reasonCode?: number }).reasonCode !== 0x88) throw error;
        await turn();
      }
    }
  };

  it('never fills up: the largest queues are shortened, publishers get success, and the clients receive the rest', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const store = levelStore(join(disk.path, 'data'));
    const { compact } = store;
    let compaction = Promise.resolve();
    store.compact = () => (compaction = compact?.() ?? compaction);
    const broker = createBroker({ store });
    const errors: unknown[] = [];
    const reasons = new Set<string>();
    broker.on('error', ({ error }) => errors.push(error));
    broker.on('message.dropped', ({ reason }) => reasons.add(reason));
    await broker.start();
    for (const name of names) {
      const client = await broker.connect(options(name));
      await client.subscribe({ topic: name, qos: 1 });
      await client.disconnect();
    }
    const flood = async (from: number) => {
      for (let n = from; n < 5_000; n += 20)
        await broker.publish({ topic: names[n % 10], payload: randomBytes(16_384), qos: 1 });
    };
    await Promise.all(Array.from({ length: 20 }, (_, at) => flood(at)));
    assert.deepEqual(errors, []);
    assert.deepEqual([...reasons], ['total_queue_full']);
    // another program takes the rest of the disk, after the compaction has returned its part of the reserve
    await compaction;
    fill(join(disk.path, 'other'));
    // the disk fills up so fast that a commit may fail first, and the store is opened again
    for (let code = ''; code !== 'QUOTA_EXCEEDED'; await turn())
      code = await broker.publish({ topic: names[0], payload: randomBytes(65_536), qos: 1 }).then(
        () => '',
        (error: BrokerError) => error.code
      );
    let drained = 0;
    for (const name of names) {
      const client = await connect(broker, name);
      client.on('message', () => drained++);
      const waits = () => {
        const { mqueueLen, inflight } = broker.sessions.get(name).counters();
        return mqueueLen + inflight > 0;
      };
      while (waits()) await turn();
      await client.disconnect();
    }
    assert.ok(drained > 300, `${drained} were left`);
    await assert.rejects(connect(broker, 'new'), { reasonCode: 0x97 });
    rmSync(join(disk.path, 'other'));
    await broker.stop();
  });
});
