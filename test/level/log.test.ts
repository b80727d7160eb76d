import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { crc32c } from '../../adapters/level/files/crc32c.ts';
import { damageOfLog } from '../../adapters/level/files/log.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch } from '../../lib/index.ts';
import { recordsAt } from './log-records.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-log-'));
after(() => rmSync(home, { recursive: true, force: true }));

let folders = 0;

/** A whole record of so many bytes, as anybody can send it in a payload. */
function record(bytes: number, sequence = 1): Buffer {
  const made = Buffer.alloc(7 + bytes, 0x61);
  made.writeUInt16LE(bytes, 4);
  made[6] = 1;
  if (bytes >= 12) {
    made.writeBigUInt64LE(BigInt(sequence), 7);
    made.writeUInt32LE(1, 15);
  }
  const sum = crc32c(made, 6, made.length);
  made.writeUInt32LE((((sum >>> 15) | (sum << 17)) + 0xa282ead8) >>> 0, 0);
  return made;
}

const emptyRecord = record(0);

/** LevelDB's log after commits with these values, or values of these sizes, as a process that was killed leaves it. */
async function logOf(...values: readonly (number | Buffer)[]): Promise<Buffer> {
  const folder = join(home, `${folders++}`);
  const store = levelStore(folder);
  await store.open();
  for (const [n, value] of values.entries()) {
    const batch = new Batch();
    batch.put(Buffer.of(n), typeof value === 'number' ? Buffer.alloc(value, `${n} of some text`) : value);
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

  it('is sound wherever the writing ended, whatever the payload says that was cut off', async () => {
    const planted = await logOf(20, Buffer.alloc(20_000, emptyRecord), Buffer.alloc(70_000, record(30)));
    // a batch of its own, with any sequence number
    const batches = Buffer.concat(Array.from({ length: 500 }, (_, n) => record(13, n)));
    for (const log of [planted, await logOf(20, batches, 9_000)])
      for (let end = 0; end <= log.length; end += 89)
        assert.equal(damageOfLog(log.subarray(0, end)), undefined, `${end} of ${log.length}`);
  });

  it('is damaged where the length of a record says more than there is, and where another one stands in its place', () => {
    const log = Buffer.from(short);
    for (const [at, { length }] of recordsAt(log)) {
      log.writeUInt16LE(length + log.length, at + 4);
      assert.ok(damageOfLog(log), `the length at ${at}`);
      // its checksum with it, as no single bit does
      log[at] ^= 0xff;
      log[at + 7] ^= 0xff;
      if (at > 0) assert.ok(damageOfLog(log), `the head at ${at}`);
      short.copy(log);
    }
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
