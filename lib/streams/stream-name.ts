import type { TokenReader } from '../sql/token-reader.ts';

const SEPARATOR = /^[/#+]$/;

/**
 * Parse the name of a stream or a table. Its parts may be separated by the separator and wildcards of topic filters, as
 * in `site/+/temperature`.
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

const NAME_HINT = 'put a name that is a keyword or has other characters in backquotes: `a-b`';
