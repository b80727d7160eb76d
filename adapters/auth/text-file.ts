import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { BrokerError } from '../../lib/index.ts';

/** Maximum size of a file. Files are read as a whole. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Read a text file in UTF-8, without a byte order mark. Only regular files are read: reading a pipe or a device may
 * never end.
 * @param ifMissing the remedy in the error if the file does not exist
 * @throws BrokerError FILE_UNREADABLE, which names the file
 */
export async function readTextFile(path: string, ifMissing?: string): Promise<string> {
  try {
    // without O_NONBLOCK, opening a named pipe would wait for a writer
    const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const found = await file.stat();
      if (!found.isFile())
        throw new Error(
          `it is ${found.isDirectory() ? 'a directory' : 'a pipe, a socket or a device'}; use a regular file`
        );
      if (found.size > MAX_BYTES) throw new Error(`it has ${found.size} bytes; the maximum is ${MAX_BYTES}`);
      return decoded(await file.readFile());
    } finally {
      await file.close();
    }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const remedy = code === 'ENOENT' && ifMissing !== undefined ? `; ${ifMissing}` : '';
    throw new BrokerError('FILE_UNREADABLE', `cannot read ${path}: ${message}${remedy}`, { cause });
  }
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('the text is not UTF-8; save it as UTF-8');
  }
}
