import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { FORMAT_KEY, type FormatRecord, IMPORT_MARK, readFormat } from '../../lib/adapter.ts';
import { checkCurrent } from './files/check.ts';
import { ClosedMark } from './files/closed-mark.ts';
import { namesIn } from './files/folder.ts';
import { findLeftovers } from './files/leftovers.ts';
import { BATCH_HEADER_BYTES, readRecords } from './files/log.ts';
import { readManifest } from './files/manifest.ts';
import { identityOf, ownerOf } from './files/owner.ts';
import { type Change, findInTable } from './files/table.ts';
import { findDamage, numberedFiles } from './files/tables.ts';
import { VarintReader } from './files/varint-reader.ts';

/** The state of a data folder, as `inspectFolder` finds it. */
export interface FolderReport {
  /** Process that has the folder open; undefined: none. */
  readonly holder: number | undefined;
  /** True if the folder contains files of a store. */
  readonly hasStore: boolean;
  /** Versions of the store, and time of its creation; undefined if there is none, or it cannot be read. */
  readonly format: FormatRecord | undefined;
  /** True if the store is the result of an interrupted `embermq store import`. */
  readonly isUnfinishedImport: boolean;
  /** Damaged and missing files. Empty while a process has the folder open, because its files change. */
  readonly damages: readonly {
    /** Name of the file. */
    readonly file: string;
    /** The fault, such as `its record at byte 7 is corrupt`; undefined: the file is missing. */
    readonly why: string | undefined;
  }[];
  /** Names of files that interrupted writes have left, and that the next open deletes. Empty while a process has the folder open. */
  readonly leftovers: readonly string[];
}

/** Attempts to read the files of an open folder, which may be replaced while they are read. */
const ATTEMPTS = 5;
/** Names of files that exist only while another file is written. */
const TEMPORARY = /\.dbtmp$|^(OWNER|CLOSED)\.new$/;

/** Examine a folder; see `inspectFolder`. */
export async function inspect(
  folder: string,
  { verify = true }: { readonly verify?: boolean } = {}
): Promise<FolderReport> {
  const path = resolve(folder);
  const names = await namesIn(path);
  const hasStore = names.some((name) => /^CURRENT$|^MANIFEST-\d+$|^\d+\.(ldb|sst|log)$/.test(name));
  const holder = await holderOf(path);
  const isClosed = holder === undefined;
  const damages = isClosed && verify && hasStore ? await damagesIn(path) : [];
  const [format, mark] = damages.length > 0 ? [] : await lookUpAll(path, [FORMAT_KEY, IMPORT_MARK.key]);
  const leftovers = isClosed ? [...(await findLeftovers(path)), ...temporary(names)].map(({ name }) => name) : [];
  return {
    holder,
    hasStore,
    format: formatIn(format),
    isUnfinishedImport: mark?.equals(IMPORT_MARK.value) === true,
    damages,
    leftovers
  };
}

function formatIn(value: Buffer | undefined): FormatRecord | undefined {
  try {
    return value && readFormat({ key: FORMAT_KEY, value });
  } catch {
    return undefined; // the record is damaged
  }
}

function temporary(names: readonly string[]): { readonly name: string }[] {
  return names.filter((name) => TEMPORARY.test(name)).map((name) => ({ name }));
}

/** The process that has a folder open. Without /proc, the process that OWNER names counts while it lives. */
async function holderOf(folder: string): Promise<number | undefined> {
  const owner = join(folder, 'OWNER');
  const held = await ownerOf(folder, owner, join(folder, 'LOCK'));
  const hasProc = await identityOf('/proc/self').then(
    () => true,
    () => false
  );
  if (held !== undefined || hasProc) return held;
  const [pid, , identity] = (await readFile(owner, 'utf8').catch(() => '')).split('\n');
  if (identity === undefined || identity !== (await identityOf(folder))) return undefined;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return undefined;
  }
  return Number(pid);
}

async function damagesIn(folder: string): Promise<{ file: string; why: string | undefined }[]> {
  try {
    await checkCurrent(folder);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'LEVEL_CORRUPTION') throw error;
    return [{ file: 'CURRENT', why: message.replace(/^its file CURRENT /, 'it ') }];
  }
  const found = [...(await findDamage(folder, new Set())), ...(await new ClosedMark(folder).damages())];
  const isFirst = (file: string, at: number) => found.findIndex((other) => other.file === file) === at;
  return found.filter(({ file }, at) => isFirst(file, at)).map(({ file, why }) => ({ file, why }));
}

/** Read the values of keys; a key that does not exist has the value undefined. */
async function lookUpAll(folder: string, keys: readonly Buffer[]): Promise<(Buffer | undefined)[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      const values: (Buffer | undefined)[] = [];
      for (const key of keys) values.push((await latestChange(folder, key))?.value);
      return values;
    } catch (error) {
      // a process that has the folder open replaces tables and logs
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || attempt === ATTEMPTS) throw error;
    }
  }
}

async function latestChange(folder: string, key: Buffer): Promise<Change | undefined> {
  const { tables, isReplayed } = await readManifest(folder);
  let latest: Change | undefined;
  for (const { name, number } of await numberedFiles(folder)) {
    const path = join(folder, name);
    const isLog = name.endsWith('.log');
    if (isLog ? !isReplayed(number) : !tables.has(number)) continue;
    const found = isLog ? findInLog(await readFile(path), key) : await findInTable(path, key);
    if (found !== undefined && (latest === undefined || found.sequence >= latest.sequence)) latest = found;
  }
  return latest;
}

/** Find the last change to a key in a log. */
function findInLog(log: Buffer, key: Buffer): Change | undefined {
  let last: Change | undefined;
  for (const record of readRecords(log).records) {
    if (record.length < BATCH_HEADER_BYTES) continue;
    const reader = new VarintReader(record.subarray(BATCH_HEADER_BYTES));
    for (let sequence = record.readBigUInt64LE(0); !reader.isAtEnd; sequence++) {
      const [type] = reader.readBytes(1);
      const isHit = reader.readBytes(reader.readVarint()).equals(key);
      const value = type === 0 ? undefined : reader.readBytes(reader.readVarint());
      if (isHit) last = { sequence, value };
    }
  }
  return last;
}
