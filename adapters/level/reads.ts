import type { Entry } from '../../lib/adapter.ts';
import type { LevelDatabase, LevelEncodings, LevelRange } from './database.ts';

/** Bytes that LevelDB reads at a time. 1,000 records of 200 bytes cost 2.5 us each; with the default of 16 KiB 3.5 us. */
const READ_BYTES = 1_048_576;
/** Records that LevelDB returns at a time. */
const READ_RECORDS = 1_000;
/** A read of at least this many bytes is released when it is done. */
const RELEASED_BYTES = 4_096;
/**
 * Maximum number of concurrent reads of LevelDB: one for each thread that Node has for them. More would only hold
 * copies of records when hundreds of clients return at once.
 */
const READS_AT_ONCE = 4;

/** Reads ranges of a database, a limited number at a time and the others in order. */
export class Reads {
  readonly #pending = new Set<Promise<Entry[]>>();
  readonly #waiting = new Set<() => void>();
  #running = 0;

  /** Read at most `limit` records from `from` to before `to`. @throws the error of the database */
  read(...parameters: Parameters<typeof readEntries>): Promise<Entry[]> {
    const reading = this.#inTurn(() => readEntries(...parameters)).finally(() => this.#pending.delete(reading));
    this.#pending.add(reading);
    return reading;
  }

  /** Wait until all reads have ended. */
  async end(): Promise<void> {
    await Promise.allSettled(this.#pending);
  }

  async #inTurn(read: () => Promise<Entry[]>): Promise<Entry[]> {
    if (this.#running < READS_AT_ONCE) this.#running++;
    else await new Promise<void>((resolve) => this.#waiting.add(resolve));
    try {
      return await read();
    } finally {
      this.#endTurn();
    }
  }

  #endTurn(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next();
      return;
    }
    this.#running--;
  }
}

/**
 * Read a range. An iterator keeps a copy of the records that it has returned last until it reads again, or is garbage-collected. V8 does not
 * know of that memory, and may let hundreds of megabytes of it accumulate; so after many bytes the iterator reads behind the range.
 */
async function readEntries(
  database: LevelDatabase,
  from: Buffer,
  to: Buffer,
  limit: number,
  options: Pick<LevelRange, 'snapshot'> & Partial<LevelEncodings>
): Promise<Entry[]> {
  const iterator = database.iterator({ gte: from, lt: to, highWaterMarkBytes: READ_BYTES, ...options });
  try {
    const entries: Entry[] = [];
    let bytes = 0;
    while (entries.length < limit) {
      const found = await iterator.nextv(Math.min(limit - entries.length, READ_RECORDS));
      if (found.length === 0) break; // LevelDB was not called again: it still holds the last records
      bytes = 0;
      for (const [key, value] of found as [Buffer, Buffer][]) {
        entries.push({ key, value });
        bytes += value.length;
      }
    }
    if (bytes >= RELEASED_BYTES && database.supports.seek === true) {
      iterator.seek(to, { keyEncoding: 'buffer' });
      await iterator.nextv(1);
    }
    return entries;
  } finally {
    await iterator.close();
  }
}
