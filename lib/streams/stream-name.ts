import type { TokenReader } from '../sql/token-reader.ts';

const SEPARATOR = /^[/#+]$/;

/**
 * Read the name of a stream or a table. Its parts may have the separator and the wildcards of topic filters between them, as in
 * `site/+/temperature`.
 * @throws SqlError
 */
export function readStreamName(reader: TokenReader): string {
  const { start } = reader.token;
  let name = '';
  for (let isAfterPart = false; ; ) {
    const { type, text } = reader.token;
    const isSeparator = type === 'symbol' && SEPARATOR.test(text);
    const isPart = reader.isName || (type === 'number' && name !== '' && /^\d+$/.test(text));
    if (!isSeparator && (!isPart || isAfterPart)) break;
    name += text;
    isAfterPart = isPart;
    reader.advance();
  }
  if (reader.previousEnd <= start) throw reader.unexpected('the name of a stream or a table', NAME_HINT);
  if (name === '') throw reader.errorAt(start, 'the name of a stream or a table is empty');
  return name;
}

const NAME_HINT = 'a name that is a keyword or has other characters stands in backquotes: `a-b`';
