import { mkdir, open } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import type { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import type { Entry, ZipFile } from 'yauzl';
import { BrokerError } from '../../lib/index.ts';
import { archiveError, messageOf } from './errors.ts';

/** Limits of an archive. */
interface ArchiveLimits {
  readonly maxEntries: number;
  readonly maxUnpackedBytes: number;
}

/** A path of more levels, or of more bytes, is refused. */
const MAX_LEVELS = 32;
const MAX_PATH_BYTES = 1024;
/** A file that is larger than this may not be compressed to less than one part in `MAX_RATIO`. */
const RATIO_FROM_BYTES = 1024 * 1024;
const MAX_RATIO = 200;

/** Kinds of files in the attributes of Unix. */
const KIND_MASK = 0o170000;
const REGULAR = 0o100000;
const DIRECTORY = 0o040000;
const LINK = 0o120000;

/** An entry of an archive after checks. */
interface CheckedEntry {
  readonly entry: Entry;
  readonly path: string;
  readonly isFolder: boolean;
}

/**
 * Unpack an archive.
 * @param folder an empty folder without other writers
 * @returns the paths of the files, with `/`
 * @throws BrokerError PLUGIN_ARCHIVE_INVALID, PACKAGE_MISSING
 */
export async function unpack(bytes: Buffer, folder: string, limits: ArchiveLimits): Promise<string[]> {
  const zip = await openZip(bytes);
  try {
    const entries = check(await readEntries(zip, limits), limits);
    for (const each of entries) {
      const target = join(folder, each.path);
      await mkdir(each.isFolder ? target : dirname(target), { recursive: true, mode: 0o700 });
      if (!each.isFolder) await write(zip, each, target);
    }
    return entries.filter(({ isFolder }) => !isFolder).map(({ path }) => path);
  } catch (error) {
    if (error instanceof BrokerError) throw error;
    throw archiveError(messageOf(error), { cause: error });
  } finally {
    zip.close();
  }
}

async function openZip(bytes: Buffer): Promise<ZipFile> {
  const { fromBuffer } = await loadYauzl();
  return new Promise((resolve, reject) => {
    fromBuffer(bytes, { lazyEntries: true, strictFileNames: true, autoClose: false }, (error, zip) => {
      if (error) reject(archiveError(messageOf(error), { cause: error }));
      else resolve(zip);
    });
  });
}

async function loadYauzl(): Promise<Pick<typeof import('yauzl'), 'fromBuffer'>> {
  try {
    const { default: yauzl } = await import('yauzl');
    return yauzl;
  } catch (cause) {
    throw new BrokerError('PACKAGE_MISSING', 'plugins need the package yauzl: npm install yauzl', { cause });
  }
}

function readEntries(zip: ZipFile, { maxEntries }: ArchiveLimits): Promise<Entry[]> {
  return new Promise((resolve, reject) => {
    const entries: Entry[] = [];
    zip.on('entry', (entry: Entry) => {
      entries.push(entry);
      if (entries.length <= maxEntries) zip.readEntry();
      else reject(archiveError(`it has more than ${maxEntries} entries, the option maxEntries`));
    });
    zip.on('error', reject);
    zip.on('end', () => resolve(entries));
    zip.readEntry();
  });
}

function check(entries: readonly Entry[], { maxUnpackedBytes }: ArchiveLimits): CheckedEntry[] {
  const checked = entries.map(checkEntry).filter(({ path }) => path !== '.');
  const total = entries.reduce((sum, { uncompressedSize }) => sum + uncompressedSize, 0);
  if (total > maxUnpackedBytes)
    throw archiveError(`its files have more than ${maxUnpackedBytes} bytes, the option maxUnpackedSize`);
  // some file systems do not distinguish names that differ in case or in the composition of letters
  const kinds = new Map<string, boolean>();
  for (const { path, isFolder } of checked) {
    const key = path.normalize('NFC').toLowerCase();
    if (kinds.has(key)) throw archiveError(`it has "${path}" twice`);
    kinds.set(key, isFolder);
  }
  for (const [key] of kinds)
    for (let parent = posix.dirname(key); parent !== '.'; parent = posix.dirname(parent))
      if (kinds.get(parent) === false) throw archiveError(`"${parent}" is both a file and a folder`);
  return checked;
}

function checkEntry(entry: Entry): CheckedEntry {
  const { fileName, uncompressedSize, compressedSize, externalFileAttributes } = entry;
  const name = JSON.stringify(fileName.length > 80 ? `${fileName.slice(0, 77)}...` : fileName);
  const kind = (externalFileAttributes >>> 16) & KIND_MASK;
  const path = posix.normalize(fileName).replace(/\/$/, '');
  const isFolder = fileName.endsWith('/');
  if (kind === LINK) throw archiveError(`${name} is a link`);
  if (kind !== 0 && kind !== REGULAR && kind !== DIRECTORY) throw archiveError(`${name} is a special file`);
  if (kind !== 0 && (kind === DIRECTORY) !== isFolder) throw archiveError(`${name} is both a file and a folder`);
  // yauzl refuses these as well; this code does not depend on it
  if (path.startsWith('/') || path.split('/').includes('..') || /[\\:]/.test(path))
    throw archiveError(`${name} is not a relative path`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(path)) throw archiveError(`${name} has control characters`);
  if (path.split('/').length > MAX_LEVELS || Buffer.byteLength(path) > MAX_PATH_BYTES)
    throw archiveError(`${name} has more than ${MAX_LEVELS} levels or ${MAX_PATH_BYTES} bytes`);
  if (entry.isEncrypted()) throw archiveError(`${name} is encrypted`);
  if (uncompressedSize > RATIO_FROM_BYTES && uncompressedSize > compressedSize * MAX_RATIO)
    throw archiveError(`${name} is compressed to less than 1/${MAX_RATIO}`);
  if (isFolder && uncompressedSize > 0) throw archiveError(`${name} is a folder with content`);
  return { entry, path, isFolder };
}

async function write(zip: ZipFile, { entry, path }: CheckedEntry, target: string): Promise<void> {
  const isExecutable = ((entry.externalFileAttributes >>> 16) & 0o100) !== 0;
  const file = await open(target, 'wx', isExecutable ? 0o700 : 0o600);
  try {
    let sum = 0;
    // yauzl checks that there are as many bytes as declared
    for await (const chunk of await readStream(zip, entry)) {
      sum = crc32(chunk as Buffer, sum);
      await file.appendFile(chunk as Buffer);
    }
    if (sum !== entry.crc32 >>> 0) throw archiveError(`the checksum of "${path}" is wrong`);
  } finally {
    await file.close();
  }
}

function readStream(zip: ZipFile, entry: Entry): Promise<Readable> {
  return new Promise((resolve, reject) => {
    zip.openReadStream(entry, (error, stream) => {
      if (error) reject(error);
      else resolve(stream);
    });
  });
}
