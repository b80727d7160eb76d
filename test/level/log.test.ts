import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import { damageOfLog } from '../../adapters/level/log.ts';
import { Batch } from '../../lib/index.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-log-'));
after(() => rmSync(home, { recursive: true, force: true }));

/** LevelDB's log after commits with values of these sizes, as a process that was killed leaves it. */
async function logOf(...sizes: readonly number[]): Promise<Buffer> {
  const folder = join(home, `${sizes}`);
  const store = levelStore(folder);
  await store.open();
  for (const [n, size] of sizes.entries()) {
    const batch = new Batch();
    batch.put(Buffer.of(n), Buffer.alloc(size, `${n} of some text`));
    await store.commit(batch);
  }
  const copy = `${folder}-copy`;
  cpSync(folder, copy, { recursive: true });
  await store.close();
  const name = readdirSync(copy).find((found) => found.endsWith('.log'));
  return readFileSync(join(copy, name as string));
}

describe('A log of LevelDB', () => {
  let short: Buffer;
  /** With a record that spans blocks. */
  let long: Buffer;
  before(async () => {
    short = await logOf(20, 500, 0, 300, 12);
    long = await logOf(30_000, 70_000, 100);
  });

  it('is sound as it was written, and wherever the writing ended', () => {
    for (let end = 0; end <= short.length; end++)
      assert.equal(damageOfLog(short.subarray(0, end)), undefined, `${end}`);
    for (let end = 0; end <= long.length; end += 97)
      assert.equal(damageOfLog(long.subarray(0, end)), undefined, `${end}`);
  });

  it('is damaged wherever one bit is another one, in its last record, too', () => {
    const damaged = (log: Buffer, at: number, bit: number) => {
      log[at] ^= 1 << bit;
      assert.ok(damageOfLog(log), `bit ${bit} of byte ${at} of ${log.length}`);
      log[at] ^= 1 << bit;
    };
    for (let at = 0; at < short.length; at++) for (let bit = 0; bit < 8; bit++) damaged(short, at, bit);
    for (let at = 0; at < long.length; at += 1_009) damaged(long, at, at % 8);
    for (let at = 32_768; at < 32_775; at++) for (let bit = 0; bit < 8; bit++) damaged(long, at, bit);
  });

  it('ends where pages of zeros begin, which a loss of power leaves, and is damaged where zeros stand amid it', () => {
    for (const page of [4_096, 32_768, 65_536]) {
      const log = Buffer.from(long);
      log.fill(0, page);
      assert.equal(damageOfLog(log), undefined, `from ${page}`);
      long.copy(log);
      log.fill(0, page, page + 4_096);
      assert.ok(damageOfLog(log), `page at ${page}`);
    }
  });
});
