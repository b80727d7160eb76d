import { constants, fstatSync, type Stats } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { BrokerError, InvalidInput } from '../../lib/index.ts';

/** The maximum size of a config file. The file is read as a whole, and all its keys are checked. */
export const MAX_CONFIG_BYTES = 16 * 1024 * 1024;

/**
 * Read a file.
 * @param maxBytes if set, the file must be a regular file of at most this size, because reading from a pipe or a device may never end
 */
export async function readFileUpTo(path: string, maxBytes = Infinity): Promise<Buffer> {
  if (maxBytes === Infinity) return readFile(path);
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = await file.stat();
    if (found.isDirectory()) throw new Error('it is a directory');
    if (!found.isFile()) throw new Error('it is a pipe, a socket or a device; use a regular file');
    if (found.size > maxBytes) throw new Error(`it has ${found.size} bytes; the maximum is ${maxBytes}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/**
 * Standard input.
 * @throws BrokerError FILE_UNREADABLE if it is a directory, which Node.js reads as an empty stream
 */
export function standardInput(): typeof process.stdin {
  let found: Stats | undefined;
  try {
    found = fstatSync(0);
  } catch {
    // it is closed, or of a kind that the platform cannot describe
  }
  if (found?.isDirectory())
    throw new BrokerError('FILE_UNREADABLE', 'cannot read standard input: EISDIR: it is a directory');
  return process.stdin;
}

/**
 * Decode the text of a config file, without a byte order mark.
 * @throws InvalidInput CONFIG_INVALID if it is not UTF-8
 */
export function configText(path: string, bytes: Buffer): string {
  const refuse = (fault: string) =>
    new InvalidInput('CONFIG_INVALID', path, 'UTF-8', undefined, `${path}: ${fault}; save it as UTF-8`);
  const hasWideMark = [0xfffe, 0xfeff].includes(bytes.length < 2 ? 0 : bytes.readUInt16BE());
  if (hasWideMark || bytes.subarray(0, 2).includes(0)) throw refuse('the text is in UTF-16');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw refuse('the text is not UTF-8');
  }
}

/** Find a key that occurs twice in one object of a valid JSON text. `JSON.parse` silently uses the last value of such a key. */
export function repeatedKey(json: string): string | undefined {
  const open: Set<string>[] = []; // the keys of each open object; empty for an array
  let text = '';
  for (const [token] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/g)) {
    if (token === '{' || token === '[') open.push(new Set());
    else if (token === '}' || token === ']') open.pop();
    else if (token !== ':') text = token;
    else {
      const keys = open.at(-1) as Set<string>;
      const key = JSON.parse(text) as string;
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return undefined;
}
