import type { SourceSetup } from '../../../lib/adapter.ts';
import { InvalidInput, type StreamValue, type StreamValueObject } from '../../../lib/index.ts';
import { type Dialect, quotedTable, Statement } from './dialect.ts';

/** A repeated query, with the highest value of its index column so far. */
export interface SqlQueryPlan {
  /** The next query. */
  next(): { readonly text: string; readonly parameters: readonly unknown[] };
  /** Called with its rows. */
  seen(rows: readonly StreamValueObject[]): void;
}

type Fields = Readonly<Record<string, unknown>>;

/** Matches `{{.name}}`, with or without quotes, which a parameter does not need. */
const PLACEHOLDER = /'\{\{\s*\.(\w+)\s*\}\}'|"\{\{\s*\.(\w+)\s*\}\}"|\{\{\s*\.(\w+)\s*\}\}/g;

/**
 * Read the query of a source: from `templateSqlQueryCfg`, otherwise from `internalSqlQueryCfg`; without both, of the
 * table in DATASOURCE.
 * @param most the maximum number of rows of a query without a limit
 * @throws InvalidInput PROPERTY_INVALID
 */
export function readSqlQuery(setup: SourceSetup, dialect: Dialect, most: number): SqlQueryPlan {
  const { properties, datasource, stream } = setup;
  const what = `source sql of ${stream}`;
  const { templateSqlQueryCfg: template, internalSqlQueryCfg: internal = {} } = properties as {
    readonly templateSqlQueryCfg?: Fields;
    readonly internalSqlQueryCfg?: Fields;
  };
  if (template !== undefined) return templateQuery(fieldsOf(template), dialect, `${what}: templateSqlQueryCfg`);
  const fields = fieldsOf({ table: datasource, ...internal });
  return tableQuery(fields, dialect, most, `${what}: internalSqlQueryCfg`);
}

/** Fields by lower-case names: the original writes `TemplateSql`. */
function fieldsOf(given: Fields): Fields {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value ?? undefined]));
}

function tableQuery(fields: Fields, dialect: Dialect, most: number, what: string): SqlQueryPlan {
  const table = textOf(fields.table, `${what}.table`, 'the name of a table; or name it with DATASOURCE');
  const { limit = most } = fields as { readonly limit?: number };
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= most))
    throw invalid(`${what}.limit`, `an integer from 1 to ${most - 1}`, limit);
  const index = readIndex(fields, what);
  const from = `* FROM ${quotedTable(table, dialect)}`;
  return {
    next() {
      const statement = new Statement(dialect);
      if (index === undefined) return { text: dialect.limited(from, limit), parameters: [] };
      const column = statement.column(index.field);
      const where = index.value === undefined ? '' : ` WHERE ${column} > ${statement.value(index.value)}`;
      // in this order, a limit skips no row permanently
      const text = dialect.limited(`${from}${where} ORDER BY ${column} ASC`, limit);
      return { text, parameters: statement.parameters };
    },
    seen: (rows) => index?.seen(rows)
  };
}

function templateQuery(fields: Fields, dialect: Dialect, what: string): SqlQueryPlan {
  const template = textOf(fields.templatesql, `${what}.TemplateSql`, 'a query');
  const index = readIndex(fields, what);
  const names = [...template.matchAll(PLACEHOLDER)].map(([, first, second, third]) => first ?? second ?? third);
  const isPlain = !template.replaceAll(PLACEHOLDER, '').includes('{{');
  if (!isPlain || names.some((name) => name !== index?.field))
    throw invalid(
      `${what}.TemplateSql`,
      `a query, in which {{.${index?.field ?? 'NAME'}}} of the indexField is the only template`,
      template
    );
  if (names.length > 0 && index?.value === undefined)
    throw invalid(`${what}.indexValue`, 'the first value of the indexField', undefined);
  return {
    next() {
      const parameters: unknown[] = [];
      const text = template.replaceAll(PLACEHOLDER, () => {
        if (!dialect.isNumbered || parameters.length === 0) parameters.push(index?.value);
        return dialect.parameter(parameters.length);
      });
      return { text, parameters };
    },
    seen: (rows) => index?.seen(rows)
  };
}

/** The column whose highest value is remembered. */
class Index {
  readonly field: string;
  readonly #isTime: boolean;
  value: StreamValue;

  constructor(field: string, value: StreamValue, isTime: boolean) {
    this.field = field;
    this.value = value;
    this.#isTime = isTime;
  }

  seen(rows: readonly StreamValueObject[]): void {
    for (const row of rows) {
      const value = row[this.field];
      if (value !== undefined && value !== null && this.#isGreater(value)) this.value = value;
    }
  }

  #isGreater(value: StreamValue): boolean {
    const { value: before } = this;
    if (before === undefined) return true;
    const [a, b] = [comparable(value, this.#isTime), comparable(before, this.#isTime)];
    return a > b;
  }
}

/** A value that `>` orders like the database: times as numbers, and digits as integers. */
function comparable(value: StreamValue, isTime: boolean): number | bigint | string {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  const text = String(value);
  if (isTime) {
    const time = Date.parse(text);
    return Number.isNaN(time) ? text : time;
  }
  return /^-?\d{1,40}$/.test(text) ? BigInt(text) : text;
}

function readIndex(fields: Fields, what: string): Index | undefined {
  const { indexfield, indexvalue, indexfieldtype } = fields;
  if (indexfield === undefined || indexfield === '') return undefined;
  const field = textOf(indexfield, `${what}.indexField`, 'the name of a column');
  const isScalar = ['undefined', 'string', 'number', 'bigint'].includes(typeof indexvalue);
  if (!isScalar) throw invalid(`${what}.indexValue`, 'a number or a string', indexvalue);
  return new Index(field, indexvalue as StreamValue, String(indexfieldtype ?? '').toUpperCase() === 'DATETIME');
}

function textOf(value: unknown, place: string, expected: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw invalid(place, expected, value);
}

function invalid(place: string, expected: string, got: unknown): InvalidInput {
  return new InvalidInput('PROPERTY_INVALID', place, expected, got);
}
