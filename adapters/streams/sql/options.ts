import { streamJson } from '../../../lib/adapter.ts';
import {
  type Awaitable,
  BrokerError,
  type Clock,
  InvalidInput,
  type StreamValue,
  type StreamValueObject
} from '../../../lib/index.ts';
import { DIALECTS, type Dialect, type SqlDialectName } from './dialect.ts';

/**
 * Runs a statement with the driver of the app, and returns its rows; the result of statements other than SELECT is
 * ignored. The text has `$1`, `?`, `@p1` or `:1`, depending on the dialect, in place of the values, and must be sent
 * with them as parameters.
 * @param url the property `url` of the source or the sink, for an app with several databases
 */
export type SqlQuery = (text: string, parameters: unknown[], url: string | undefined) => Awaitable<unknown>;

/** Options of `sqlSource` and `sqlSink`. */
export interface StreamsSqlOptions {
  /** Sends a statement to the database of the app. */
  readonly query: SqlQuery;
  /** The kind of database, which determines placeholders and quotes. */
  readonly dialect: SqlDialectName;
  /** Name of the type. Default `sql`. */
  readonly name?: string;
}

/** A database of the app. */
export class Database {
  readonly dialect: Dialect;
  readonly name: string;
  readonly #query: SqlQuery;

  /** @throws InvalidInput OPTION_INVALID */
  constructor({ query, dialect, name = 'sql' }: StreamsSqlOptions) {
    if (typeof query !== 'function') throw new InvalidInput('OPTION_INVALID', 'query', 'a function', query);
    if (!Object.hasOwn(DIALECTS, dialect))
      throw new InvalidInput('OPTION_INVALID', 'dialect', `one of ${Object.keys(DIALECTS).join(', ')}`, dialect);
    this.dialect = DIALECTS[dialect];
    this.name = name;
    this.#query = query;
  }

  /**
   * Run a statement.
   * @throws errors of the function of the app; BrokerError SQL_TIMEOUT
   */
  async run(text: string, parameters: readonly unknown[], { clock, timeoutMs, url }: RunOptions): Promise<unknown> {
    let timer: unknown;
    const late = new Promise<never>((_, reject) => {
      const error = () =>
        reject(new BrokerError('SQL_TIMEOUT', `the database has not answered within ${timeoutMs} ms`));
      timer = clock.setTimeout(error, timeoutMs);
    });
    try {
      return await Promise.race([this.#query(text, parameters.map(parameterOf), url), late]);
    } finally {
      clock.clearTimeout(timer);
    }
  }

  /**
   * Run a SELECT.
   * @throws errors of `run`; BrokerError SQL_ROWS_INVALID, SQL_ROWS_TOO_MANY
   */
  async rows(
    text: string,
    parameters: readonly unknown[],
    options: RunOptions & { readonly most: number }
  ): Promise<readonly StreamValueObject[]> {
    const rows = await this.run(text, parameters, options);
    const isGood = Array.isArray(rows) && rows.every((row) => typeof row === 'object' && row !== null);
    if (!isGood)
      throw new BrokerError('SQL_ROWS_INVALID', 'the function query must return a list of rows, which are objects');
    if (rows.length > options.most)
      throw new BrokerError('SQL_ROWS_TOO_MANY', `a query has more than ${options.most} rows: limit it`);
    return rows.map((row) => streamValue(row, 0) as StreamValueObject);
  }
}

export interface RunOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly url: string | undefined;
}

/** A value for drivers: JSON for arrays and objects, digits for integers beyond the precision of numbers. */
function parameterOf(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  return value instanceof Uint8Array ? Buffer.from(value) : streamJson(value);
}

const MAX_LEVELS = 100;

/**
 * Convert a value of a driver to one of a stream.
 * @throws BrokerError SQL_ROWS_INVALID
 */
function streamValue(value: unknown, level: number): StreamValue {
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value !== 'object' || value === null || value instanceof Date) return value as StreamValue;
  if (value instanceof Uint8Array) return value;
  if (level > MAX_LEVELS) throw new BrokerError('SQL_ROWS_INVALID', `a value has more than ${MAX_LEVELS} levels`);
  if (Array.isArray(value)) return value.map((each) => streamValue(each, level + 1));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, streamValue(each, level + 1)]));
}
