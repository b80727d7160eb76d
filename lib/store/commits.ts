import { BrokerError } from '../base/errors.ts';
import { COMMITS_KEPT, describeKey, FORMAT, Kind, keyAfter, kindKey } from './keys.ts';
import { type Draft, RecordError, RecordReader } from './record.ts';
import type { Entry, Store } from './store.ts';

/** The previous commits of a store, according to its commit records. */
export interface Commits {
  /** Number of the last commit; 0 if there is none. */
  readonly last: number;
  /** Wall-clock time of the last commit, in milliseconds since 1970; 0 if there is none. */
  readonly lastWallMs: number;
  /** Ranges of numbers of missing commits; both ends are inclusive. */
  readonly gaps: readonly (readonly [from: number, to: number])[];
  /** Keys of commit records that cannot be read. */
  readonly bad: readonly Buffer[];
  /** True if there are other records, but no readable commit record. Each record is written together with a commit record. */
  readonly areLost: boolean;
}

/** The first record of a store. */
export interface FormatRecord {
  /** The version of the format of the records. */
  readonly format: number;
  /** Time of creation, in milliseconds since 1970, which identifies the store. */
  readonly madeAt: number;
  /** See `DEFINITIONS_VERSION`. */
  readonly definitions: number;
}

/** The name of a store, or of a line of an export file, for errors. */
type Named = Pick<Store, 'name'>;
/** A store, or a snapshot of one. */
type Readable = Pick<Store, 'name' | 'read'>;

const READ_AT_ONCE = 1_000;
/** The remedy that errors name for records that are lost or cannot be read. */
export const REPAIR_REMEDY =
  'Restore a copy, or continue without the lost records (option repairStore, checkStore with repair, or embermq store check --repair).';
/** Key of the format record. */
export const FORMAT_KEY: Buffer = kindKey(Kind.format);
/** The record that marks a store while it is being imported. */
export const IMPORT_MARK: Entry = { key: kindKey(Kind.import), value: Buffer.from('embermq import') };

/**
 * Check that an open store is empty or a store of embermq.
 * @returns its format record; undefined if the store is empty
 * @throws BrokerError STORE_CORRUPT, STORE_TOO_NEW, IMPORT_UNFINISHED; errors of the store
 */
export async function checkFormat(store: Readable): Promise<FormatRecord | undefined> {
  await checkFinished(store);
  const [entry] = await store.read(kindKey(0), kindKey(0xff), 1);
  if (entry === undefined) return undefined;
  if (entry.key.length !== 1 || entry.key[0] !== Kind.format)
    throw new BrokerError(
      'STORE_CORRUPT',
      `${store.name}: this is not a store of embermq, or its first record is missing. Use another store, or restore a copy.`
    );
  try {
    const found = readFormat(entry);
    checkVersion(store, found.format);
    return found;
  } catch (error) {
    throw error instanceof RecordError ? refusedFor(store, error) : error;
  }
}

/** Check that an open store is not the result of an interrupted import. @throws BrokerError IMPORT_UNFINISHED; errors of the store */
export async function checkFinished(store: Readable): Promise<void> {
  if (await isUnfinished(store))
    throw new BrokerError(
      'IMPORT_UNFINISHED',
      `${store.name}: the import into this store was interrupted. Import again, which starts from the beginning, or delete the store.`
    );
}

/** Tell whether an open store is the result of an interrupted import. */
export async function isUnfinished(store: Readable): Promise<boolean> {
  const { key, value } = IMPORT_MARK;
  const [found] = await store.read(key, keyAfter(key), 1);
  return found?.value.equals(value) === true;
}

/** Check that this version can read a format. @throws BrokerError STORE_TOO_NEW */
export function checkVersion({ name }: Named, format: number): void {
  if (format <= FORMAT) return;
  throw new BrokerError(
    'STORE_TOO_NEW',
    `${name}: written by a later version of embermq (format ${format}; this version reads up to ${FORMAT}). Use that version, or another store.`
  );
}

/** Turn the error of a record into one that names the store and the content of the record. */
export function inStore({ name }: Named, { code, key, message }: RecordError): BrokerError {
  return new BrokerError(code, `${name}: ${describeKey(key)}: ${message}`);
}

/** As `inStore`, with the remedy; for callers that cannot continue without the record. */
export function refusedFor(store: Named, error: RecordError): BrokerError {
  const { code, message } = inStore(store, error);
  return new BrokerError(code, code === 'STORE_CORRUPT' ? `${message}. ${REPAIR_REMEDY}` : message);
}

/** Read the format record. @throws RecordError */
export function readFormat({ key, value }: Entry): FormatRecord {
  const reader = new RecordReader(key, value);
  return { format: reader.u8(), madeAt: reader.f64(), definitions: reader.isAtEnd ? 0 : reader.u8() };
}

/** Write the format record of this version. */
export function writeFormat(draft: Draft, madeAt: number, definitions: number): void {
  draft.key(Kind.format).value().u8(FORMAT).f64(madeAt).u8(definitions).put();
}

/** Read a commit record: the number of the commit, and its time in milliseconds since 1970. @throws RecordError */
export function readCommit({ key, value }: Entry): { number: number; wallMs: number } {
  const reader = new RecordReader(key, value);
  return { number: reader.u48(), wallMs: reader.f64() };
}

/** Write the record of a commit. */
export function writeCommit(draft: Draft, number: number, wallMs: number): void {
  draft
    .key(Kind.commit)
    .u16(number % COMMITS_KEPT)
    .value()
    .u48(number)
    .f64(wallMs)
    .put();
}

/**
 * Read the records of the previous commits. Each commit writes one, so a commit whose record is missing among the last `COMMITS_KEPT` is
 * lost, with all its changes.
 * @throws BrokerError STORE_TOO_NEW; errors of the store
 */
export async function readCommits(store: Store): Promise<Commits> {
  const slots = new Float64Array(COMMITS_KEPT);
  const bad: Buffer[] = [];
  let last = 0;
  let lastWallMs = 0;
  await readAll(store, Kind.commit, (entry) => {
    try {
      const { number, wallMs } = readCommit(entry);
      slots[number % COMMITS_KEPT] = number;
      if (number <= last) return;
      last = number;
      lastWallMs = wallMs;
    } catch (error) {
      if (error instanceof RecordError && error.code === 'STORE_TOO_NEW') throw inStore(store, error);
      bad.push(entry.key);
    }
  });
  const gaps: [number, number][] = [];
  for (let number = Math.max(1, last - COMMITS_KEPT + 1); number < last; number++) {
    if (slots[number % COMMITS_KEPT] === number) continue;
    const gap = gaps.at(-1);
    if (gap?.[1] === number - 1) gap[1] = number;
    else gaps.push([number, number]);
  }
  const [other] = last > 0 ? [] : await store.read(kindKey(Kind.commit + 1), kindKey(0xff), 1);
  return { last, lastWallMs, gaps, bad, areLost: other !== undefined };
}

/**
 * Read all entries of a kind, in several reads.
 * @param from the first key; default: that of the kind
 * @param to the exclusive end; default: that of the kind
 */
export async function readAll(
  store: Store,
  kind: number,
  each: (entry: Entry) => void,
  from: Buffer = kindKey(kind),
  to: Buffer = kindKey(kind + 1)
): Promise<void> {
  for (;;) {
    const entries = await store.read(from, to, READ_AT_ONCE);
    for (const entry of entries) each(entry);
    const last = entries.at(-1);
    if (last === undefined || entries.length < READ_AT_ONCE) return;
    from = keyAfter(last.key);
  }
}
