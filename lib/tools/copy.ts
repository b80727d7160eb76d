import { systemClock } from '../base/clock.ts';
import { BrokerError, InvalidInput } from '../base/errors.ts';
import {
  checkFormat,
  checkVersion,
  IMPORT_MARK,
  inStore,
  isUnfinished,
  readFormat,
  refusedFor
} from '../store/commits.ts';
import { describeKey, Kind, kindKey } from '../store/keys.ts';
import { release } from '../store/owners.ts';
import { RecordError, RecordReader } from '../store/record.ts';
import { Batch, type Entry, type Store } from '../store/store.ts';
import { RECORDS, type RecordKind, type RecordName, recordName } from './record-kinds.ts';
import { claimFor, END, type StoreProgress, slicesOf, withClaim, withOpen } from './scan.ts';

/** Imported records that are written at once. */
const RECORDS_AT_ONCE = 1_000;
const BYTES_AT_ONCE = 1_048_576;

/** A record as a line of an export. */
interface ExportedRecord {
  readonly kind: RecordName;
  readonly key: string;
  readonly value: string;
  /** What it says, for people. An import does not look at it. */
  readonly content?: object;
  /** In the last line: how many lines there are. */
  readonly records?: number;
}

/**
 * All records of a store that no broker has open, as lines of JSON without line ends: `kind`, `key` and `value` in base64, which
 * `importStore` reads, and `content`, what the record says, with payloads in base64. The last one is the format record, with `records`,
 * how many lines there are: without it an export is not whole.
 * @throws BrokerError STORE_LOCKED, STORE_DAMAGED, STORE_UNUSABLE, STORE_TOO_NEW, STORE_CORRUPT naming the record: repair the store first,
 *   IMPORT_UNFINISHED; StateError STORE_IN_USE; what the store throws
 */
export async function* exportStore(
  store: Store,
  options: { readonly onProgress?: (progress: StoreProgress) => void } = {}
): AsyncGenerator<string, void> {
  claimFor(store, 'exported');
  try {
    await store.open();
    yield* linesOf(store, options.onProgress);
  } finally {
    await store.close().finally(() => release(store));
  }
}

async function* linesOf(
  store: Store,
  onProgress: ((progress: StoreProgress) => void) | undefined
): AsyncGenerator<string, void> {
  await checkFormat(store);
  let last: ExportedRecord | undefined;
  let records = 0;
  for await (const entries of slicesOf(store, onProgress))
    for (const entry of entries) {
      records++;
      const record = exported(store, entry);
      if (entry.key[0] === Kind.format) last = record;
      else yield JSON.stringify(record);
    }
  if (last !== undefined) yield JSON.stringify({ ...last, records });
}

function exported(store: Store, entry: Entry): ExportedRecord {
  const { key, value } = entry;
  const kind = recordName(key);
  try {
    if (kind === undefined) throw new RecordError('STORE_CORRUPT', key, 'it is of no kind that this version knows');
    const { read, show } = RECORDS[kind] as RecordKind<unknown>;
    const record = read(entry, { nowMs: systemClock.monotonic(), wallMs: systemClock.now() });
    const content = show === undefined ? undefined : (readable(show(record)) as object);
    return { kind, key: key.toString('base64'), value: value.toString('base64'), ...(content && { content }) };
  } catch (error) {
    const fault = error instanceof RecordError ? error : new RecordError('STORE_CORRUPT', key, String(error));
    throw refusedFor(store, fault);
  }
}

/** Bytes in base64. */
function readable(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, readable(part)]));
}

/**
 * Bring the lines of an export into a store with nothing in it. It is opened when the first lines (a thousand records, or 1 MiB) have been
 * read and found good. Until the last line is in, no broker starts on it. What it has written it takes out again when it fails; what it
 * leaves when the process dies (IMPORT_UNFINISHED) the next import takes out.
 * @param lines one record each; empty ones are passed over
 * @throws BrokerError STORE_NOT_EMPTY; StateError STORE_IN_USE; STORE_TOO_NEW, InvalidInput IMPORT_INVALID naming the line; what the store throws
 */
export async function importStore(
  store: Store,
  lines: AsyncIterable<string> | Iterable<string>,
  options: { readonly onProgress?: (progress: StoreProgress) => void } = {}
): Promise<StoreProgress> {
  const parts = partsOf(lines);
  try {
    const first = await parts.next();
    return await withClaim(store, 'imported into', () =>
      withOpen(store, async () => {
        await makeRoom(store);
        try {
          return await write(store, parts, first, options.onProgress);
        } catch (error) {
          // where that fails, too, the mark stays
          await clear(store).catch(() => {});
          throw error;
        }
      })
    );
  } finally {
    await parts.return();
  }
}

/** @throws BrokerError STORE_NOT_EMPTY */
async function makeRoom(store: Store): Promise<void> {
  const [found] = await store.read(kindKey(0), END, 1);
  if (found === undefined) return;
  if (!(await isUnfinished(store)))
    throw new BrokerError(
      'STORE_NOT_EMPTY',
      `${store.name}: there are records already; an import needs an empty place`
    );
  await clear(store);
}

/** Take out what an import has written; the mark goes last. */
async function clear(store: Store): Promise<void> {
  for await (const entries of slicesOf(store, undefined)) {
    const batch = new Batch();
    for (const { key } of entries) if (!key.equals(IMPORT_MARK.key)) batch.delete(key);
    await store.commit(batch);
  }
  const last = new Batch();
  last.delete(IMPORT_MARK.key);
  await store.commit(last);
}

async function write(
  store: Store,
  parts: AsyncGenerator<ImportPart, void, void>,
  first: IteratorResult<ImportPart, void>,
  onProgress: ((progress: StoreProgress) => void) | undefined
): Promise<StoreProgress> {
  let progress: StoreProgress = { records: 0, bytes: 0 };
  for (let part = first; !part.done; part = await parts.next()) {
    await store.commit(part.value.batch);
    ({ progress } = part.value);
    onProgress?.(progress);
  }
  return progress;
}

/** A part of an import, written at once. */
interface ImportPart {
  readonly batch: Batch;
  /** With this one. */
  readonly progress: StoreProgress;
}

async function* partsOf(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<ImportPart, void, void> {
  let format: Entry | undefined;
  let batch = new Batch();
  batch.put(IMPORT_MARK.key, IMPORT_MARK.value);
  let [number, records, bytes] = [0, 0, 0];
  for await (const line of lines) {
    number++;
    if (line.trim() === '') continue;
    if (format !== undefined) throw wrong(line, number, 'it comes behind the last line of an export, of kind format');
    const { entry, count } = imported(line, number);
    records++;
    bytes += entry.key.length + entry.value.length;
    if (count !== undefined && count !== records) {
      const why = `the export had ${count} records, and ${records} came: lines are missing, or there twice`;
      throw wrong(line, number, `${why}. Where that is meant, take out the "records" of this line`);
    }
    // without it nothing opens what is half there
    if (entry.key[0] === Kind.format) format = entry;
    else batch.put(entry.key, entry.value);
    if (batch.length < RECORDS_AT_ONCE && batch.bytes < BYTES_AT_ONCE) continue;
    yield { batch, progress: { records, bytes } };
    batch = new Batch();
  }
  if (format === undefined)
    throw new InvalidInput(
      'IMPORT_INVALID',
      'lines',
      'a whole export',
      undefined,
      'the export ends early: its last line, of kind format, is missing'
    );
  batch.put(format.key, format.value);
  batch.delete(IMPORT_MARK.key);
  yield { batch, progress: { records, bytes } };
}

/** @returns also how many records the export has, where the line says so */
function imported(line: string, number: number): { entry: Entry; count: number | undefined } {
  let record: Partial<ExportedRecord>;
  try {
    record = JSON.parse(line.trim()); // without a byte order mark
  } catch (error) {
    throw wrong(line, number, `no JSON: ${(error as Error).message}`);
  }
  if (typeof record?.key !== 'string' || typeof record.value !== 'string')
    throw wrong(line, number, 'a record has a "key" and a "value"');
  const entry = { key: Buffer.from(record.key, 'base64'), value: Buffer.from(record.value, 'base64') };
  if (recordName(entry.key) === undefined) throw wrong(line, number, `${describeKey(entry.key)} is of no known kind`);
  const where = { name: `line ${number}` };
  try {
    if (entry.key[0] === Kind.format) checkVersion(where, readFormat(entry).format);
    else new RecordReader(entry.key, entry.value);
  } catch (error) {
    const fault = error instanceof RecordError ? inStore(where, error) : error;
    if ((fault as BrokerError).code === 'STORE_TOO_NEW') throw fault;
    throw wrong(line, number, `${describeKey(entry.key)}: ${(error as Error).message}`);
  }
  return { entry, count: record.records };
}

function wrong(line: string, number: number, why: string): InvalidInput {
  return new InvalidInput('IMPORT_INVALID', `line ${number}`, 'a record of an export', line, `line ${number}: ${why}`);
}
