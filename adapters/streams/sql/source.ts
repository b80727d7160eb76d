import type { FieldTable, LookupSetup, OpenLookup, OpenSource, SourceSetup, SourceType } from '../../../lib/adapter.ts';
import { InvalidInput, type StreamValue, type StreamValueObject } from '../../../lib/index.ts';
import { BackOff } from '../back-off.ts';
import { quotedTable, Statement } from './dialect.ts';
import { Database, type RunOptions, type StreamsSqlOptions } from './options.ts';
import { readSqlQuery, type SqlQueryPlan } from './source-query.ts';

/** Maximum number of rows of a lookup, and of a query. */
const MAX_FOUND = 10_000;
const MAX_ROWS = 100_000;

const PROPERTIES: FieldTable = {
  url: {
    type: 'string',
    isSecret: true,
    about: 'Passed to the function of the app, which may select a database by it.'
  },
  interval: {
    type: 'duration',
    unit: 'ms',
    default: 10_000,
    min: 1,
    about: 'Time between two queries, and before the first one.'
  },
  timeout: { type: 'duration', unit: 'ms', default: 30_000, min: 1, max: 290_000, about: 'Time limit of a query.' },
  internalSqlQueryCfg: {
    type: 'object',
    about: 'Query of a table: table, limit, indexField, indexValue, indexFieldType.'
  },
  templateSqlQueryCfg: {
    type: 'object',
    about:
      'Query as text: TemplateSql, where {{.NAME}} of the indexField is its value; indexField, indexValue, indexFieldType.'
  }
};

/**
 * The source `sql`: rows of a database, which the app queries with its own driver.
 *
 * As a lookup table, DATASOURCE is the name of the table, and ON compares its columns. As a stream or a table, a query
 * is repeated at each `interval`; with an `indexField`, it returns rows with higher values than before. The highest
 * value is kept until the last rule on the stream stops. A failed query is repeated after 1 to 30 seconds.
 *
 * ```ts
 * const pool = new pg.Pool({ connectionString });
 * sqlSource({ dialect: 'postgres', query: (text, values) => pool.query(text, values).then(({ rows }) => rows) });
 * ```
 * @throws InvalidInput OPTION_INVALID
 */
export function sqlSource(options: StreamsSqlOptions): SourceType {
  const database = new Database(options);
  return {
    name: database.name,
    about: 'Rows of a database: lookup tables, and repeated queries.',
    properties: PROPERTIES,
    for: ['stream', 'table', 'lookup'],
    open: (setup) => new Pull(setup, database, readSqlQuery(setup, database.dialect, MAX_ROWS + 1)),
    openLookup: (setup) => new Lookup(setup, database)
  };
}

function runOptions({ properties, clock }: Pick<SourceSetup, 'properties' | 'clock'>): RunOptions {
  const { url, timeout } = properties as { readonly url?: string; readonly timeout: number };
  return { clock, timeoutMs: timeout, url };
}

class Lookup implements OpenLookup {
  readonly #database: Database;
  readonly #options: RunOptions & { readonly most: number };
  readonly #table: string;

  /** @throws InvalidInput STREAM_INVALID */
  constructor(setup: LookupSetup, database: Database) {
    const { datasource, stream } = setup;
    if (datasource === '') {
      const text = `lookup table ${stream}: the option DATASOURCE must be the name of a table`;
      throw new InvalidInput('STREAM_INVALID', 'DATASOURCE', 'the name of a table', datasource, text);
    }
    this.#database = database;
    this.#options = { ...runOptions(setup), most: MAX_FOUND };
    this.#table = quotedTable(datasource, database.dialect);
  }

  find(
    keys: readonly string[],
    values: readonly StreamValue[]
  ): readonly StreamValueObject[] | Promise<readonly StreamValueObject[]> {
    // null equals nothing
    if (values.some((value) => value === null || value === undefined)) return [];
    const { dialect } = this.#database;
    const statement = new Statement(dialect);
    const conditions = keys.map((key, at) => `${statement.column(key)} = ${statement.value(values[at])}`);
    const text = dialect.limited(`* FROM ${this.#table} WHERE ${conditions.join(' AND ')}`, MAX_FOUND + 1);
    return this.#database.rows(text, statement.parameters, this.#options);
  }

  close(): void {}
}

class Pull implements OpenSource {
  readonly #setup: SourceSetup;
  readonly #database: Database;
  readonly #query: SqlQueryPlan;
  readonly #backOff: BackOff;
  #timer: unknown;
  #isClosed = false;

  constructor(setup: SourceSetup, database: Database, query: SqlQueryPlan) {
    this.#setup = setup;
    this.#database = database;
    this.#query = query;
    this.#backOff = new BackOff(setup.clock);
    this.#later();
  }

  close(): void {
    this.#isClosed = true;
    this.#backOff.cancel();
    this.#setup.clock.clearTimeout(this.#timer);
  }

  #later(): void {
    this.#timer = this.#setup.clock.setTimeout(() => this.#pullIfRoom(), this.#setup.properties.interval as number);
  }

  #pullIfRoom(): void {
    if (this.#isClosed) return;
    if (this.#setup.isFull) this.#setup.whenRoom(() => this.#pullIfRoom());
    else void this.#pull();
  }

  async #pull(): Promise<void> {
    const { text, parameters } = this.#query.next();
    try {
      const rows = await this.#database.rows(text, parameters, { ...runOptions(this.#setup), most: MAX_ROWS });
      if (this.#isClosed) return;
      this.#setup.connected();
      this.#backOff.reset();
      this.#query.seen(rows);
      for (const row of rows) {
        if (this.#setup.isFull) await new Promise<void>((resolve) => this.#setup.whenRoom(resolve));
        if (this.#isClosed) return;
        this.#setup.row(row);
      }
      this.#later();
    } catch (error) {
      if (this.#isClosed) return;
      this.#setup.disconnected(error);
      this.#setup.failed(error);
      this.#backOff.later(() => this.#pullIfRoom());
    }
  }
}
