import { Reply } from './reply.ts';

/** Size of the parts that are written at once, in characters. Each part is produced in its own slice. */
const PART_LENGTH = 65_536;

/** An answer that consists of lines of text instead of an envelope. */
export function replyWithLines(lines: AsyncIterableIterator<string>): Reply {
  return new Reply((nextSlice) => {
    const parts = partsOf(lines, nextSlice);
    const iterator = {
      next: () => parts.next(),
      // works before the first read, which the generator would not notice
      return: async () => {
        await lines.return?.();
        return parts.return(undefined);
      }
    };
    return { [Symbol.asyncIterator]: () => iterator };
  });
}

async function* partsOf(
  lines: AsyncIterable<string>,
  nextSlice: () => Promise<void>
): AsyncGenerator<string, undefined> {
  let part = '';
  for await (const line of lines) {
    part += `${line}\n`;
    if (part.length < PART_LENGTH) continue;
    yield part;
    part = '';
    await nextSlice(); // otherwise all lines of an in-memory store would be produced in one slice
  }
  if (part !== '') yield part;
  return undefined;
}
