import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { crc32c } from '../../adapters/level/files/crc32c.ts';
import { findLogDamage } from '../../adapters/level/files/log.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch } from '../../lib/adapter.ts';
import { recordsAt } from './log-records.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-log-'));
after(() => rmSync(home, { recursive: true, force: true }));

let folders = 0;

/** Builds a complete record of this many bytes, which a publisher could send as a payload. */
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

/** Returns the log that a killed process leaves after commits with these values, or values of these sizes. */
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

describe('a log of LevelDB', () => {
  let short: Buffer;
  /** A log with a record that spans blocks. */
  let long: Buffer;
  before(async () => {
    short = await logOf(20, 500, 0, 300, 12);
    long = await logOf(30_000, 70_000, 100);
  });

  it('counts as sound when complete, and when truncated at any byte', () => {
    for (let end = 0; end <= short.length; end++)
      assert.equal(findLogDamage(short.subarray(0, end)), undefined, `${end}`);
    for (let end = 0; end <= long.length; end += 97)
      assert.equal(findLogDamage(long.subarray(0, end)), undefined, `${end}`);
  });

  it('counts as damaged if any single bit has changed, in its last record as well', () => {
    const damaged = (log: Buffer, at: number, bit: number) => {
      log[at] ^= 1 << bit;
      assert.ok(findLogDamage(log), `bit ${bit} of byte ${at} of ${log.length}`);
      log[at] ^= 1 << bit;
    };
    for (let at = 0; at < short.length; at++) for (let bit = 0; bit < 8; bit++) damaged(short, at, bit);
    for (let at = 0; at < long.length; at += 1_009) damaged(long, at, at % 8);
    for (let at = 32_768; at < 32_775; at++) for (let bit = 0; bit < 8; bit++) damaged(long, at, bit);
  });

  it('counts as sound when truncated inside a payload that looks like records', async () => {
    const planted = await logOf(20, Buffer.alloc(20_000, emptyRecord), Buffer.alloc(70_000, record(30)));
    // each record is a batch, with any sequence number
    const batches = Buffer.concat(Array.from({ length: 500 }, (_, n) => record(13, n)));
    for (const log of [planted, await logOf(20, batches, 9_000)])
      for (let end = 0; end <= log.length; end += 89)
        assert.equal(findLogDamage(log.subarray(0, end)), undefined, `${end} of ${log.length}`);
  });

  it('counts as damaged if the length of a record exceeds the file, or if another record is in its place', () => {
    const log = Buffer.from(short);
    for (const [at, { length }] of recordsAt(log)) {
      log.writeUInt16LE(length + log.length, at + 4);
      assert.ok(findLogDamage(log), `the length at ${at}`);
      // change the checksum as well, which no single flipped bit does
      log[at] ^= 0xff;
      log[at + 7] ^= 0xff;
      if (at > 0) assert.ok(findLogDamage(log), `the head at ${at}`);
      short.copy(log);
    }
  });

  it('counts as sound with sectors of zeros at its end, as after a loss of power, and as damaged with zeros before its end', () => {
    for (const sector of [512, 1_024, 4_096, 32_768, 65_536]) {
      const log = Buffer.from(long);
      log.fill(0, sector);
      assert.equal(findLogDamage(log), undefined, `from ${sector}`);
      long.copy(log);
      log.fill(0, sector, sector + 4_096);
      assert.ok(findLogDamage(log), `sector at ${sector}`);
    }
  });

  it('counts as sound with zeros in the place of its last records, as after a loss of power, and as damaged with zeros elsewhere', () => {
    for (const [at] of recordsAt(short)) {
      const log = Buffer.from(short);
      log.fill(0, at);
      assert.equal(findLogDamage(log), undefined, `from the record at ${at}`);
      short.copy(log);
      log.fill(0, at + 1);
      assert.ok(findLogDamage(log), `from the byte behind ${at}`);
      short.copy(log);
      log.fill(0, at, log.length - 1);
      assert.ok(findLogDamage(log), `from ${at}, but for the last byte`);
    }
  });
});
