import { BrokerError } from '../../../lib/index.ts';

const MAX_CHARS = 500;
/** Data exceptions, cardinality violations [SQL standard]: the value of a client does not suit its column. */
const DATA_ERROR = /^2[12][0-9A-Z]{3}$/;
/** The same as numbers of MySQL that have no such state: mixed collations, strings that the character set lacks, invalid characters. */
const DATA_ERROR_NUMBERS: readonly unknown[] = [1267, 1270, 1366, 3854, 3988];
/** The key of a client exists and is of another type [Redis]. */
const TYPE_ERROR = /^WRONGTYPE /;

/** A query has failed. The errors of drivers may contain the whole command with its secrets, so only the message is kept. */
export class DatabaseFailure extends BrokerError {
  /** The database works, and has refused a value of this client. */
  readonly isCausedByClient: boolean;

  /** @param cause what the function of the app has thrown */
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

/** Messages may contain the values of clients. */
function printable(text: string): string {
  return text.slice(0, MAX_CHARS).replace(/\p{Cc}/gu, ' ');
}
