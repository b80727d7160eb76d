import { BrokerError } from '../base/errors.ts';
import { COMMITS_KEPT, describeKey, FORMAT, Kind, keyAfter, kindKey } from './keys.ts';
import { type Draft, RecordError, RecordReader } from './record.ts';
import type { Entry, Store } from './store.ts';

/** What a store's own records tell of the commits before. */
export interface Commits {
  /** Number of the last one; 0: there is none. */
  readonly last: number;
  /** Wall-clock milliseconds of the last one; 0: there is none. */
  readonly lastWallMs: number;
  /** Numbers of commits that are missing between others, as ranges. */
  readonly gaps: readonly (readonly [from: number, to: number])[];
  /** Keys of commit records that cannot be read. */
  readonly bad: readonly Buffer[];
  /** There is none that can be read, and other records: each of them came with one. */
  readonly areLost: boolean;
}

/** A store, or a line of an export. */
type Named = Pick<Store, 'name'>;

const READ_AT_ONCE = 1_000;
/** What to do about records that are lost or cannot be read. */
export const REPAIR_REMEDY =
  'Restore a copy, or go on without what is lost (option repairStore, checkStore with repair, embermq store check --repair).';
/** Is in a store as long as an import goes on. */
export const IMPORT_MARK: Entry = { key: kindKey(Kind.import), value: Buffer.from('embermq import') };

/**
 * Whether a store that is open is one of ours.
 * @returns its format, and when it was made (wall-clock milliseconds), by which it is known again; undefined: it is empty
 * @throws BrokerError STORE_CORRUPT, STORE_TOO_NEW, IMPORT_UNFINISHED; what the store throws
 */
export async function checkFormat(store: Store): Promise<{ format: number; madeAt: number } | undefined> {
  await checkFinished(store);
  const [entry] = await store.read(kindKey(0), kindKey(0xff), 1);
  if (entry === undefined) return undefined;
  if (entry.key.length !== 1 || entry.key[0] !== Kind.format)
    throw new BrokerError(
      'STORE_CORRUPT',
      `${store.name}: this is no store of embermq, or its first record is lost. Name another place, or restore a copy.`
    );
  try {
    const found = readFormat(entry);
    checkVersion(store, found.format);
    return found;
  } catch (error) {
    throw error instanceof RecordError ? refusedFor(store, error) : error;
  }
}

/** See whether a store that is open was filled by an import that did not end. @throws BrokerError IMPORT_UNFINISHED; what the store throws */
export async function checkFinished(store: Store): Promise<void> {
  if (await isUnfinished(store))
    throw new BrokerError(
      'IMPORT_UNFINISHED',
      `${store.name}: this is the rest of an import that did not end. Import again, which begins anew, or delete it.`
    );
}

export async function isUnfinished(store: Store): Promise<boolean> {
  const { key, value } = IMPORT_MARK;
  const [found] = await store.read(key, keyAfter(key), 1);
  return found?.value.equals(value) === true;
}

/** @throws BrokerError STORE_TOO_NEW */
export function checkVersion({ name }: Named, format: number): void {
  if (format <= FORMAT) return;
  throw new BrokerError(
    'STORE_TOO_NEW',
    `${name}: written by a later version (format ${format}, this one knows ${FORMAT}). Use that version, or another place.`
  );
}

/** An error that says in which store the record is, and what it holds. */
export function inStore({ name }: Named, { code, key, message }: RecordError): BrokerError {
  return new BrokerError(code, `${name}: ${describeKey(key)}: ${message}`);
}

/** The same, where nothing goes on with a record that cannot be read. */
export function refusedFor(store: Store, error: RecordError): BrokerError {
  const { code, message } = inStore(store, error);
  return new BrokerError(code, code === 'STORE_CORRUPT' ? `${message}. ${REPAIR_REMEDY}` : message);
}

/** @throws RecordError */
export function readFormat({ key, value }: Entry): { format: number; madeAt: number } {
  const reader = new RecordReader(key, value);
  return { format: reader.u8(), madeAt: reader.f64() };
}

/** @throws RecordError */
export function readCommit({ key, value }: Entry): { number: number; wallMs: number } {
  const reader = new RecordReader(key, value);
  return { number: reader.u48(), wallMs: reader.f64() };
}

/** The record that tells of a commit. */
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
 * Every commit leaves a record: those that are missing among the last `COMMITS_KEPT` have been lost, with all that they held.
 * @throws BrokerError STORE_TOO_NEW; what the store throws
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

/** Every entry of a kind, in slices. @param to where to end, before the end of the kind */
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
