import { type FileHandle, link, lstat, open, rename, rm } from 'node:fs/promises';
import { BrokerError } from '../../../lib/index.ts';

/** Only the owner may read the file: exports and backups contain password hashes. */
const PRIVATE = 0o600;
/** Characters that are written at once. */
const WRITTEN_AT_ONCE = 65_536;

/**
 * Check that a file can be written: it does not exist, or is a regular file that may be replaced.
 * @throws BrokerError FILE_EXISTS, FILE_UNWRITABLE
 */
async function checkWritable(file: string, mayReplace: boolean): Promise<void> {
  const found = await lstat(file).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return undefined;
    throw unwritable(file, cause);
  });
  if (found === undefined) return;
  if (!found.isFile())
    throw new BrokerError('FILE_UNWRITABLE', `${file} is not a regular file; "-" is standard output`);
  if (!mayReplace) throw exists(file);
}

/**
 * Write a file as a whole: it appears under its name when its last byte is on the disk. Until then its name has the
 * suffix `.partial`, and it is removed after a failure.
 * @param parts the text. If they fail, the write fails with the same error
 * @throws errors of `checkWritable`
 */
export async function writeWhole(file: string, parts: AsyncIterable<string>, mayReplace: boolean): Promise<void> {
  await checkWritable(file, mayReplace);
  const partial = `${file}.${process.pid}.partial`;
  const during = <T>(work: Promise<T>) =>
    work.catch((cause: Error) => {
      throw unwritable(file, cause);
    });
  const handle = await during(open(partial, 'wx', PRIVATE));
  try {
    await fill(handle, parts, during).finally(() => handle.close());
    if (mayReplace) await during(rename(partial, file));
    else await during(linkNew(partial, file));
  } finally {
    await rm(partial, { force: true });
  }
}

async function fill(
  handle: FileHandle,
  parts: AsyncIterable<string>,
  during: <T>(work: Promise<T>) => Promise<T>
): Promise<void> {
  let text = '';
  for await (const part of parts) {
    text += part;
    if (text.length < WRITTEN_AT_ONCE) continue;
    await during(handle.writeFile(text));
    text = '';
  }
  await during(handle.writeFile(text));
  await during(handle.sync());
}

/** Give a file its name, unless another process has taken it meanwhile. */
async function linkNew(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw exists(to);
    // a file system without hard links
    await checkWritable(to, false);
    await rename(from, to);
  }
}

function exists(file: string): BrokerError {
  return new BrokerError('FILE_EXISTS', `${file} exists; --force replaces it`);
}

function unwritable(file: string, cause: Error): BrokerError {
  if (cause instanceof BrokerError) return cause;
  return new BrokerError('FILE_UNWRITABLE', `cannot write ${file}: ${cause.message}`, { cause });
}
