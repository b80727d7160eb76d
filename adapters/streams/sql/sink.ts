import type { FieldTable, OpenSink, SinkItem, SinkSetup, SinkType } from '../../../lib/adapter.ts';
import { InvalidInput, SendError, StreamFailure } from '../../../lib/index.ts';
import { type RowKind, rowKindOf, rowsOf, type SinkRow } from '../rows.ts';
import { quotedTable, Statement } from './dialect.ts';
import { Database, type StreamsSqlOptions } from './options.ts';

const PROPERTIES: FieldTable = {
  url: {
    type: 'string',
    isSecret: true,
    about: 'Passed to the function of the app, which may select a database by it.'
  },
  table: { type: 'string', required: true, isTemplate: true, about: 'Name of the table.' },
  fields: { type: 'array', about: 'Columns that are written. Default: all except rowkindField.' },
  tableDataField: { type: 'string', about: 'Column whose object, or list of objects, is written instead of the row.' },
  rowkindField: {
    type: 'string',
    about: 'Column with the operation on a row: insert, update, upsert or delete. Default: all rows are inserted.'
  },
  keyField: { type: 'string', about: 'Column of the primary key; needed with rowkindField.' },
  timeout: { type: 'duration', unit: 'ms', default: 30_000, min: 1, max: 290_000, about: 'Time limit of a statement.' }
};

interface SqlSinkProperties {
  readonly url?: string;
  readonly fields?: readonly string[];
  readonly tableDataField?: string;
  readonly rowkindField?: string;
  readonly keyField?: string;
  readonly timeout: number;
}

/** A row to be written, with its columns. */
interface Change {
  readonly kind: RowKind;
  readonly row: SinkRow;
  readonly columns: readonly string[];
}

/**
 * The sink `sql`: rows of a table, which the app writes with its own driver.
 *
 * Consecutive rows of an output with the same columns are inserted by one statement. Several statements do not form a
 * transaction. With a cache, permanently refused rows, such as those that violate a constraint, are not sent again.
 * @throws InvalidInput OPTION_INVALID
 */
export function sqlSink(options: StreamsSqlOptions): SinkType {
  const database = new Database(options);
  return {
    name: database.name,
    about: 'Writes rows to a table of a database.',
    properties: PROPERTIES,
    open(setup) {
      const { fields, rowkindField, keyField } = setup.properties as unknown as SqlSinkProperties;
      const isGood = fields === undefined || fields.every((each) => typeof each === 'string');
      if (!isGood) throw invalid('fields', 'a list of names of columns', fields);
      if (rowkindField && !keyField)
        throw invalid('keyField', 'the column of the primary key, because there is a rowkindField', keyField);
      return new SqlSink(setup, database);
    }
  };
}

function invalid(name: string, expected: string, got: unknown): InvalidInput {
  return new InvalidInput('PROPERTY_INVALID', name, expected, got, `sql sink: property ${name} must be ${expected}`);
}

class SqlSink implements OpenSink {
  readonly #setup: SinkSetup;
  readonly #properties: SqlSinkProperties;
  readonly #database: Database;

  constructor(setup: SinkSetup, database: Database) {
    this.#setup = setup;
    this.#properties = setup.properties as unknown as SqlSinkProperties;
    this.#database = database;
  }

  async send(item: SinkItem): Promise<void> {
    const table = quotedTable(String(item.property('table')), this.#database.dialect);
    const changes = this.#rowsOf(item).map((row) => this.#changeOf(row));
    for (const group of this.#groups(changes)) await this.#run(group, table);
  }

  close(): void {}

  /** @throws StreamFailure */
  #rowsOf(item: SinkItem): readonly SinkRow[] {
    const rows = rowsOf(item, 'sql sink');
    const { tableDataField } = this.#properties;
    if (!tableDataField) return rows;
    return rows.flatMap((row) => rowsOf({ value: row[tableDataField] }, `sql sink: column ${tableDataField}`));
  }

  /** @throws StreamFailure */
  #changeOf(row: SinkRow): Change {
    const { fields, rowkindField, keyField } = this.#properties;
    const kind = rowKindOf(row, rowkindField || undefined, 'sql sink');
    const columns = fields?.length
      ? fields
      : Object.keys(row).filter((name) => name !== rowkindField && row[name] !== undefined);
    if (kind !== 'insert' && (row[keyField as string] ?? undefined) === undefined)
      throw new StreamFailure(`sql sink: the row has no value in the keyField ${keyField}`);
    if (columns.length === 0 && kind !== 'delete') throw new StreamFailure('sql sink: the row has no columns');
    return { kind, row, columns };
  }

  /** Group changes into statements. */
  *#groups(changes: readonly Change[]): Iterable<readonly Change[]> {
    const { hasManyRows, mostParameters } = this.#database.dialect;
    let group: Change[] = [];
    for (const change of changes) {
      const [first] = group;
      const fits =
        first !== undefined &&
        hasManyRows &&
        first.kind === 'insert' &&
        change.kind === 'insert' &&
        (group.length + 1) * change.columns.length <= mostParameters &&
        group.length < MAX_ROWS &&
        isSame(first.columns, change.columns);
      if (fits) group.push(change);
      else {
        if (first !== undefined) yield group;
        group = [change];
      }
    }
    if (group.length > 0) yield group;
  }

  async #run(changes: readonly Change[], table: string): Promise<void> {
    const statement = new Statement(this.#database.dialect);
    const text = this.#textOf(changes, table, statement);
    const { clock } = this.#setup;
    const { timeout: timeoutMs, url } = this.#properties;
    try {
      await this.#database.run(text, statement.parameters, { clock, timeoutMs, url });
    } catch (error) {
      const state = stateOf(error);
      if (state === undefined || CONNECTION.test(state)) this.#setup.disconnected(error);
      else this.#setup.connected();
      const isFinal = state !== undefined && FINAL.test(state);
      throw new SendError(`sql sink: ${(error as Error)?.message ?? error}`, { isFinal, cause: error });
    }
    this.#setup.connected();
  }

  /** @throws StreamFailure */
  #textOf(changes: readonly Change[], table: string, statement: Statement): string {
    const { keyField = '' } = this.#properties;
    const [{ kind, row, columns }] = changes;
    const others = columns.filter((name) => name !== keyField);
    const where = () => `WHERE ${statement.column(keyField)} = ${statement.value(row[keyField])}`;
    if (kind === 'delete') return `DELETE FROM ${table} ${where()}`;
    if (kind === 'update') {
      if (others.length === 0) throw new StreamFailure('sql sink: an update needs columns besides the keyField');
      const set = others.map((name) => `${statement.column(name)} = ${statement.value(row[name])}`);
      return `UPDATE ${table} SET ${set.join(', ')} ${where()}`;
    }
    const all = kind === 'upsert' ? [keyField, ...others] : columns;
    const names = all.map((name) => statement.column(name));
    const rows = changes.map((change) => `(${all.map((name) => statement.value(change.row[name])).join(', ')})`);
    const insert = `INSERT INTO ${table} (${names.join(', ')}) VALUES ${rows.join(', ')}`;
    if (kind === 'insert') return insert;
    const { orUpdate, name } = this.#database.dialect;
    if (orUpdate === undefined)
      throw new StreamFailure(`sql sink: upsert is not possible with ${name}; use insert and update`);
    const [key, ...set] = names;
    return `${insert} ${orUpdate(key, set)}`;
  }
}

/** Maximum number of rows of an INSERT: the limit of SQL Server. */
const MAX_ROWS = 1_000;
/** SQLSTATE classes of a lost connection and of a server that shuts down. */
const CONNECTION = /^(08|57P)/;
/** Wrong values, violated constraints, wrong names and rights. */
const FINAL = /^(22|23|42)/;

/** The SQLSTATE of a server error, in the form of pg and mysql2; undefined for other errors. */
function stateOf(error: unknown): string | undefined {
  const { sqlState, code } = (error ?? {}) as { readonly sqlState?: unknown; readonly code?: unknown };
  const state = sqlState ?? code;
  return typeof state === 'string' && /^[0-9A-Z]{5}$/.test(state) && /\d/.test(state) ? state : undefined;
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, at) => name === b[at]);
}
