// An import is complete or nothing: the first commit contains a mark that no broker starts with, the format record
// and the removal of the mark are in the last one. A failed import removes its records, the mark last; if the process
// ends first, the next import does. The lines of an export are read in parts and checked before they are written, so
// a file of any size needs little memory. `content` is for people and is never read back.

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

/** Limits of one commit of an import. */
const RECORDS_AT_ONCE = 1_000;
const BYTES_AT_ONCE = 1_048_576;

/** One line of an export: a record. */
interface ExportedRecord {
  readonly kind: RecordName;
  readonly key: string;
  readonly value: string;
  /** The decoded content, for people. An import ignores it. */
  readonly content?: object;
  /** The number of lines; in the last line only. */
  readonly records?: number;
}

/**
 * Export all records of a store as lines of JSON, without line ends.
 *
 * No broker may have the store open. Each line has `kind`, and `key` and `value` in base64, which `importStore` reads. `content` is the decoded
 * record for people, with payloads in base64. The last line is the format record, with the number of lines in `records`. An export without
 * this line is incomplete.
 * @throws BrokerError STORE_LOCKED, STORE_DAMAGED, STORE_UNUSABLE, STORE_TOO_NEW, IMPORT_UNFINISHED; STORE_CORRUPT, which names the record:
 *   repair the store first; StateError STORE_IN_USE; the errors of the store
 */
export async function* exportStore(
  store: Store,
  options: {
    /** Called every few hundred records with the progress. */
    readonly onProgress?: (progress: StoreProgress) => void;
  } = {}
): AsyncGenerator<string, void> {
  claimFor(store, 'exported');
  try {
    await store.open();
    yield* linesOf(store, options.onProgress);
  } finally {
    await store.close().finally(() => release(store));
  }
}

/**
 * The lines of an export of what can be read.
 * @param withContent false: the lines have no `content`
 */
export async function* linesOf(
  store: Pick<Store, 'name' | 'read'>,
  onProgress: ((progress: StoreProgress) => void) | undefined,
  withContent = true
): AsyncGenerator<string, void> {
  await checkFormat(store);
  let last: ExportedRecord | undefined;
  let records = 0;
  for await (const entries of slicesOf(store, onProgress))
    for (const entry of entries) {
      records++;
      const record = exported(store, entry, withContent);
      if (entry.key[0] === Kind.format) last = record;
      else yield JSON.stringify(record);
    }
  if (last !== undefined) yield JSON.stringify({ ...last, records });
}

function exported(store: Pick<Store, 'name'>, entry: Entry, withContent: boolean): ExportedRecord {
  const { key, value } = entry;
  const kind = recordName(key);
  try {
    if (kind === undefined)
      throw new RecordError('STORE_CORRUPT', key, 'records of this kind are unknown to this version of embermq');
    if (!withContent) return { kind, key: key.toString('base64'), value: value.toString('base64') };
    const { read, show } = RECORDS[kind] as RecordKind<unknown>;
    const record = read(entry, { nowMs: systemClock.monotonic(), wallMs: systemClock.now() });
    const content = show === undefined ? undefined : (readable(show(record)) as object);
    return { kind, key: key.toString('base64'), value: value.toString('base64'), ...(content && { content }) };
  } catch (error) {
    const fault = error instanceof RecordError ? error : new RecordError('STORE_CORRUPT', key, String(error));
    throw refusedFor(store, fault);
  }
}

/** A copy of a value with all buffers in base64. */
function readable(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, readable(part)]));
}

/**
 * Import the lines of an export into an empty store.
 *
 * The store is opened after the first 1000 records or 1 MiB have been read and checked. A broker does not start on the store before the
 * import is complete (IMPORT_UNFINISHED). If the import fails, it removes the records that it has written. If the process ends first, the
 * next import removes them.
 * @param lines one record each; empty lines are ignored
 * @returns the number of records and bytes
 * @throws BrokerError STORE_NOT_EMPTY, STORE_TOO_NEW; StateError STORE_IN_USE; InvalidInput IMPORT_INVALID, which names the line; the errors
 *   of the store
 */
export async function importStore(
  store: Store,
  lines: AsyncIterable<string> | Iterable<string>,
  options: {
    /** Called whenever a part has been written, with the progress. */
    readonly onProgress?: (progress: StoreProgress) => void;
  } = {}
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
          // If this also fails, the import mark remains in the store.
          await clear(store).catch(() => {});
          throw error;
        }
      })
    );
  } finally {
    await parts.return();
  }
}

/** Remove the records of an unfinished import. @throws BrokerError STORE_NOT_EMPTY */
async function makeRoom(store: Store): Promise<void> {
  const [found] = await store.read(kindKey(0), END, 1);
  if (found === undefined) return;
  if (!(await isUnfinished(store)))
    throw new BrokerError('STORE_NOT_EMPTY', `${store.name}: the store contains records; import into an empty store`);
  await clear(store);
}

/** Remove all records of an import. The import mark is removed last. */
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

/** A part of an import, which is written in one commit. */
interface ImportPart {
  readonly batch: Batch;
  /** The progress after this part. */
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
    if (format !== undefined)
      throw wrong(line, number, 'unexpected line after the format record, which is the last line of an export');
    const { entry, count } = imported(line, number);
    records++;
    bytes += entry.key.length + entry.value.length;
    if (count !== undefined && count !== records) {
      const why = `the export has ${count} records, but ${records} were read: lines are missing or duplicated`;
      throw wrong(line, number, `${why}. If this is intended, remove "records" from this line`);
    }
    // The format record is written last, because no store opens without it.
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
      'a complete export',
      undefined,
      'the export is incomplete: the format record, its last line, is missing'
    );
  batch.put(format.key, format.value);
  batch.delete(IMPORT_MARK.key);
  yield { batch, progress: { records, bytes } };
}

/** Read one line. @returns the record and, from the last line, the number of records of the export */
function imported(line: string, number: number): { entry: Entry; count: number | undefined } {
  let record: Partial<ExportedRecord>;
  try {
    record = JSON.parse(line.trim()); // without a byte order mark
  } catch (error) {
    throw wrong(line, number, `not valid JSON: ${(error as Error).message}`);
  }
  if (typeof record?.key !== 'string' || typeof record.value !== 'string')
    throw wrong(line, number, 'a record needs the strings "key" and "value"');
  const entry = { key: Buffer.from(record.key, 'base64'), value: Buffer.from(record.value, 'base64') };
  if (recordName(entry.key) === undefined) throw wrong(line, number, `${describeKey(entry.key)} is of an unknown kind`);
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
