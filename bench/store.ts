import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Batch } from 'embermq/adapter';
import { levelStore } from 'embermq/level';
import { Level } from 'level';
import { median } from './report.ts';

/** The cost of a put, in the store and in a bare loop over the same database, measured alternately. */
export interface Row {
  readonly durability: 'process' | 'power';
  readonly batch: number;
  readonly putsPerSecond: number;
  /** CPU microseconds per put, of all threads. */
  readonly putUs: number;
  readonly bareUs: number;
  /** The median of the ratios of `putUs` to `bareUs` within each repetition. */
  readonly ratio: number;
}

interface Figures {
  readonly perSecond: number;
  readonly us: number;
}

interface Target {
  write(from: number, count: number): Promise<void>;
  close(): Promise<void>;
}

type Open = (folder: string, durability: Row['durability']) => Promise<Target>;

const VALUE = Buffer.alloc(100, 7);

/** Write `puts` records with keys of 16 bytes and values of 100 bytes, each time into a new folder. */
export async function run(puts: number, repetitions: number): Promise<Row[]> {
  const keys = Array.from({ length: puts }, (_, i) => keyOf(i));
  const ours: Open = async (folder, durability) => {
    const store = levelStore(folder, { durability });
    await store.open();
    const write = (from: number, count: number) => {
      const batch = new Batch();
      for (let i = from; i < from + count; i++) batch.put(keys[i], VALUE);
      return store.commit(batch);
    };
    return { write, close: () => store.close() };
  };
  const bare: Open = async (folder, durability) => {
    const database = new Level<Buffer, Buffer>(folder, { keyEncoding: 'buffer', valueEncoding: 'buffer' });
    await database.open();
    const write = (from: number, count: number) => {
      const batch = database.batch();
      for (let i = from; i < from + count; i++) batch.put(keys[i], VALUE);
      return batch.write({ sync: durability === 'power' });
    };
    return { write, close: () => database.close() };
  };
  // Warm up the compiler; these measurements are not reported.
  for (const open of [ours, bare]) await measure(open, 'process', Math.min(puts, 50_000), 1000);
  const rows: Row[] = [];
  for (const durability of ['process', 'power'] as const) {
    for (const size of [100, 1000]) {
      const pairs: [store: Figures, bare: Figures][] = [];
      for (let i = 0; i < repetitions; i++) {
        // alternate the order, because the first one also pays for leftover work of the other
        const first = await measure(i % 2 === 0 ? ours : bare, durability, puts, size);
        const second = await measure(i % 2 === 0 ? bare : ours, durability, puts, size);
        pairs.push(i % 2 === 0 ? [first, second] : [second, first]);
      }
      rows.push({
        durability,
        batch: size,
        putsPerSecond: median(pairs.map(([store]) => store.perSecond)),
        putUs: median(pairs.map(([store]) => store.us)),
        bareUs: median(pairs.map(([, bare]) => bare.us)),
        ratio: median(pairs.map(([store, bare]) => store.us / bare.us))
      });
    }
  }
  return rows;
}

async function measure(open: Open, durability: Row['durability'], puts: number, size: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-bench-'));
  try {
    const target = await open(folder, durability);
    const cpu = process.cpuUsage();
    const beganMs = performance.now();
    for (let i = 0; i < puts; i += size) await target.write(i, size);
    const { user, system } = process.cpuUsage(cpu);
    const tookMs = performance.now() - beganMs;
    await target.close();
    return { perSecond: (puts / tookMs) * 1000, us: (user + system) / puts };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Keys in random order, like those of many sessions. */
function keyOf(i: number): Buffer {
  const key = Buffer.alloc(16);
  key.writeUInt32BE(Math.imul(i, 2_654_435_761) >>> 0, 4);
  key.writeUInt32BE(i, 12);
  return key;
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  return [
    'Puts of 16-byte keys and 100-byte values, one commit at a time. `bare` is a loop over `level` without the store.',
    '',
    '| survives the end of the | puts a commit | puts a second | CPU us a put | bare us | store to bare |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows.map(({ durability, batch, putsPerSecond, putUs, bareUs, ratio }) => {
      const perSecond = Math.round(putsPerSecond).toLocaleString('en-US');
      return `| ${durability} | ${batch} | ${perSecond} | ${putUs.toFixed(2)} | ${bareUs.toFixed(2)} | ${ratio.toFixed(2)} |`;
    })
  ].join('\n');
}
