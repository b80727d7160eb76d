import { truncated } from '../../base/errors.ts';
import { STREAM_DIALECT } from '../../sql/dialect.ts';
import type { SqlError } from '../../sql/sql-error.ts';
import { TokenReader } from '../../sql/token-reader.ts';

/** Maximum number of characters of a token that are shown in an error. */
const SHOWN = 60;

/** Reads the tokens of statements about definitions, and creates errors with the sentences of the original. */
export class DdlReader extends TokenReader {
  /** @throws SqlError */
  constructor(text: string) {
    super(text, STREAM_DIALECT);
  }

  /** The error for a next token that is not allowed here. @param sentence what is expected */
  wrong(sentence: string, hint?: string): SqlError {
    const { start, type, text } = this.token;
    const found = type === 'end' ? 'EOF' : text;
    const shown = truncated(found, SHOWN);
    return this.errorAt(start, `found ${JSON.stringify(shown)}, ${sentence}`, hint);
  }
}
