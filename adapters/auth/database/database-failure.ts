import { BrokerError } from '../../../lib/index.ts';

const MAX_CHARS = 500;
/** Data exceptions and cardinality violations [SQL standard]: a value of a client does not fit its column. */
const DATA_ERROR = /^2[12][0-9A-Z]{3}$/;
/**
 * The same as numbers of MySQL without such a state: mixed collations, strings that the character set lacks, invalid
 * characters.
 */
const DATA_ERROR_NUMBERS: readonly unknown[] = [1267, 1270, 1366, 3854, 3988];
/** The key of a client exists and has another type [Redis]. */
const TYPE_ERROR = /^WRONGTYPE /;

/** A query has failed. The errors of drivers may contain the whole command with its secrets, so only the message is kept. */
export class DatabaseFailure extends BrokerError {
  /** True if the database works and has refused a value of this client. */
  readonly isCausedByClient: boolean;

  /** @param cause the error thrown by the function of the app */
  constructor(cause: unknown) {
    const { message, code, sqlState, errno } = (cause ?? {}) as Readonly<Record<string, unknown>>;
    const reason = typeof message === 'string' && message !== '' ? message : (code ?? cause);
    super('DATABASE_FAILED', `the query failed: ${printable(String(reason))}`);
    const state = sqlState ?? code;
    this.isCausedByClient =
      (typeof state === 'string' && DATA_ERROR.test(state)) ||
      DATA_ERROR_NUMBERS.includes(errno) ||
      (typeof message === 'string' && TYPE_ERROR.test(message));
  }
}

/** Remove control characters: messages may contain values of clients. */
function printable(text: string): string {
  return text.slice(0, MAX_CHARS).replace(/\p{Cc}/gu, ' ');
}
