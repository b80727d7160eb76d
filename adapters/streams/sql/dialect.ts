import { BrokerError } from '../../../lib/index.ts';

/** The names of the supported SQL dialects. */
export type SqlDialectName = 'postgres' | 'mysql' | 'sqlite' | 'sqlserver' | 'oracle';

/** The SQL syntax of a database. */
export interface Dialect {
  readonly name: SqlDialectName;
  readonly open: string;
  readonly close: string;
  /** The text for a parameter. @param number from 1 */
  readonly parameter: (number: number) => string;
  /** True if a parameter may be used in several places of a text. */
  readonly isNumbered: boolean;
  /** Maximum number of parameters of a statement. */
  readonly mostParameters: number;
  /** True if an INSERT may have several rows. */
  readonly hasManyRows: boolean;
  /**
   * A limited SELECT.
   * @param rest the text after `SELECT`
   */
  readonly limited: (rest: string, limit: number) => string;
  /**
   * The clause that makes an INSERT replace the row with the same key; undefined: not supported.
   * @param set the other columns, quoted
   */
  readonly orUpdate?: (key: string, set: readonly string[]) => string;
}

const limit = (rest: string, most: number) => `SELECT ${rest} LIMIT ${most}`;
const onConflict = (key: string, set: readonly string[]) => {
  const action =
    set.length === 0 ? 'NOTHING' : `UPDATE SET ${set.map((name) => `${name} = EXCLUDED.${name}`).join(', ')}`;
  return `ON CONFLICT (${key}) DO ${action}`;
};

export const DIALECTS: Readonly<Record<SqlDialectName, Dialect>> = {
  postgres: {
    ...{ name: 'postgres', open: '"', close: '"', mostParameters: 65_535, hasManyRows: true },
    parameter: (number) => `$${number}`,
    isNumbered: true,
    limited: limit,
    orUpdate: onConflict
  },
  mysql: {
    ...{ name: 'mysql', open: '`', close: '`', mostParameters: 65_535, hasManyRows: true },
    parameter: () => '?',
    isNumbered: false,
    limited: limit,
    orUpdate: (key, set) =>
      `ON DUPLICATE KEY UPDATE ${(set.length === 0 ? [key] : set).map((name) => `${name} = VALUES(${name})`).join(', ')}`
  },
  sqlite: {
    ...{ name: 'sqlite', open: '"', close: '"', mostParameters: 32_766, hasManyRows: true },
    parameter: () => '?',
    isNumbered: false,
    limited: limit,
    orUpdate: onConflict
  },
  sqlserver: {
    ...{ name: 'sqlserver', open: '[', close: ']', mostParameters: 2_000, hasManyRows: true },
    parameter: (number) => `@p${number}`,
    isNumbered: true,
    limited: (rest, most) => `SELECT TOP (${most}) ${rest}`
  },
  oracle: {
    ...{ name: 'oracle', open: '"', close: '"', mostParameters: 32_766, hasManyRows: false },
    parameter: (number) => `:${number}`,
    isNumbered: false,
    limited: (rest, most) => `SELECT ${rest} FETCH FIRST ${most} ROWS ONLY`
  }
};

/**
 * Quote the name of a column.
 * @throws BrokerError SQL_NAME_INVALID
 */
function quoted(name: string, { open, close }: Dialect): string {
  if (name === '' || name.length > 256 || name.includes('\0'))
    throw new BrokerError('SQL_NAME_INVALID', `"${name.slice(0, 40)}" cannot be the name of a table or a column`);
  return open + name.replaceAll(close, close + close) + close;
}

/**
 * Quote the name of a table; a dot separates schema and table.
 * @throws BrokerError SQL_NAME_INVALID
 */
export function quotedTable(name: string, dialect: Dialect): string {
  return name
    .split('.')
    .map((part) => quoted(part, dialect))
    .join('.');
}

/** SQL with parameters in place of values. */
export class Statement {
  readonly #dialect: Dialect;
  readonly parameters: unknown[] = [];

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** Add a value, and return its text. */
  value(value: unknown): string {
    this.parameters.push(value);
    return this.#dialect.parameter(this.parameters.length);
  }

  /**
   * Return the text for a column.
   * @throws BrokerError SQL_NAME_INVALID
   */
  column(name: string): string {
    return quoted(name, this.#dialect);
  }
}
