import type { FileHandle } from 'node:fs/promises';
import { BrokerError } from '../../../lib/index.ts';

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/**
 * The lines of a file without their ends, read in pieces.
 * @param path for errors
 * @param tooLong called for a longer line, which is skipped
 * @throws the error of the file
 */
export async function* readLines(
  file: FileHandle,
  path: string,
  maxBytes: number,
  tooLong: (error: BrokerError) => void
): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let bytes = 0;
  let isSkipping = false;
  let count = 0;
  const add = (part: Buffer) => {
    bytes += part.length;
    if (bytes <= maxBytes && !isSkipping) parts.push(part);
    else if (!isSkipping) {
      isSkipping = true;
      parts = [];
      tooLong(
        new BrokerError('LINE_TOO_LONG', `${path}: line ${count + 1} has more than ${maxBytes} bytes and is left out`)
      );
    }
  };
  const take = (): Buffer | undefined => {
    const line = isSkipping ? undefined : Buffer.concat(parts);
    parts = [];
    bytes = 0;
    isSkipping = false;
    count++;
    if (line === undefined) return undefined;
    const start = count === 1 && line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0;
    return line.subarray(start, line.at(-1) === RETURN ? -1 : undefined);
  };
  for await (const chunk of file.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      const line = take();
      if (line !== undefined) yield line;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  const last = bytes > 0 ? take() : undefined;
  if (last !== undefined) yield last;
}

/** Lines without the first and the last ones. */
export async function* within(lines: AsyncIterable<Buffer>, first: number, last: number): AsyncGenerator<Buffer> {
  const held: Buffer[] = [];
  let count = 0;
  for await (const line of lines) {
    if (count++ < first) continue;
    held.push(line);
    if (held.length > last) yield held.shift() as Buffer;
  }
}

/**
 * The records of a CSV file: a line with open quotation marks continues on the next one.
 * @param tooLong called for a longer record, which is skipped; the next line starts a record
 */
export async function* records(
  path: string,
  lines: AsyncIterable<Buffer>,
  maxBytes: number,
  tooLong: (error: BrokerError) => void
): AsyncGenerator<string> {
  let parts: string[] = [];
  let bytes = -1;
  let isOpen = false;
  for await (const line of lines) {
    const text = line.toString();
    parts.push(text);
    bytes += line.length + 1;
    if (text.split('"').length % 2 === 0) isOpen = !isOpen;
    const isTooLong = bytes > maxBytes;
    if (isOpen && !isTooLong) continue;
    const record = parts.join('\n');
    parts = [];
    bytes = -1;
    isOpen = false;
    if (isTooLong) {
      const text = `${path}: a record has more than ${maxBytes} bytes and is left out; is a quotation mark not closed?`;
      tooLong(new BrokerError('LINE_TOO_LONG', text));
    } else if (record !== '') yield record;
  }
  if (parts.length > 0) yield parts.join('\n');
}
