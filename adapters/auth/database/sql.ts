// PostgreSQL and MySQL differ only in their `Dialect`: how a parameter is written, and how quoted text ends. Values
// are never part of the text of a query, only its parameters; the driver belongs to the app. A quoted text that
// consists of one placeholder becomes a parameter, every other placeholder in quotes is refused, and so are
// parameters that a query already contains. `isRowOf` compares names again, because MySQL finds rows that differ in
// case or trailing spaces.

import { type AuthSource, field } from '../../../lib/adapter.ts';
import { type AccessRule, type Awaitable, InvalidInput } from '../../../lib/index.ts';
import { ruleOfRow } from './acl-rows.ts';
import { DatabaseSource } from './database-source.ts';
import {
  type DatabaseRow,
  type Facts,
  isLetter,
  KNOWN_PLACEHOLDERS,
  type Letter,
  type Lookup,
  rowsOf
} from './lookup.ts';
import { type DatabaseOptions, readDatabaseOptions } from './options.ts';

/** Options of `postgresql` and `mysql`. */
export interface SqlOptions extends DatabaseOptions {
  /**
   * Runs a query with the driver of the app and returns its rows. The text has `$1`, `$2`, ... (PostgreSQL) or `?` (MySQL) in place of the
   * values, and must be sent with the values as parameters.
   */
  query: (text: string, values: (string | null)[]) => Awaitable<unknown>;
  /**
   * The query for each CONNECT. A row has the columns `password`, `salt` if `passwordHash` needs one, and optionally
   * `is_superuser`. A row whose `username` or `clientid` is not exactly that of the client is ignored, because MySQL
   * ignores case and trailing spaces by default. The first other row decides. Without a row, the next source decides.
   * `false`: no authentication. Default
   * `SELECT username, password, salt, is_superuser FROM mqtt_user WHERE username = %u`
   */
  authenticate?: string | false;
  /** A query for each client with the right password. `is_superuser` of its first row exempts it from access control. Default: none. */
  superuser?: string;
  /**
   * The query for each topic and filter that the rules of the broker do not decide. The rows have the columns `allow`
   * (1 or 0), `access` (1: subscribe, 2: publish, 3: both) and `topic`, and optionally `ipaddr`, `username` (`$all`:
   * everyone) and `clientid`, which are conditions unless they are empty. The first row that applies decides. Without
   * one, the next source decides. `false`: no access control. Default
   * `SELECT allow, ipaddr, username, clientid, access, topic FROM mqtt_acl WHERE ipaddr = %a OR username = %u OR username = '$all' OR clientid = %c ORDER BY id`
   */
  acl?: string | false;
}

const LOGIN_QUERY = 'SELECT username, password, salt, is_superuser FROM mqtt_user WHERE username = %u';
const ACL_QUERY =
  'SELECT allow, ipaddr, username, clientid, access, topic FROM mqtt_acl ' +
  "WHERE ipaddr = %a OR username = %u OR username = '$all' OR clientid = %c ORDER BY id";

/** The differences between the databases. */
interface Dialect {
  readonly name: 'postgresql' | 'mysql';
  /** The text for a parameter. @param number of the fact, beginning with 1 */
  readonly parameter: (number: number) => string;
  /** True if all parameters of the same fact have the same text and are sent once. */
  readonly isNumbered: boolean;
  /** A parameter that the text must not already contain. */
  readonly ownParameter: RegExp;
  readonly hasBackslashes: boolean;
}

const POSTGRESQL: Dialect = {
  name: 'postgresql',
  parameter: (number) => `$${number}`,
  isNumbered: true,
  ownParameter: /\$\d/,
  hasBackslashes: false
};
const MYSQL: Dialect = {
  name: 'mysql',
  parameter: () => '?',
  isNumbered: false,
  ownParameter: /\?/,
  hasBackslashes: true
};

/**
 * A source that authenticates and authorizes clients with PostgreSQL.
 *
 * ```ts
 * const pool = new pg.Pool({ connectionString });
 * postgresql({ query: (text, values) => pool.query(text, values).then(({ rows }) => rows) });
 * ```
 *
 * The queries may contain the placeholders `%u` (user name), `%c` (client id), `%a` (IP address), `%C` and `%d` (common
 * name and subject of the client certificate); quotes around them are removed. The values are never part of the text.
 * Missing facts of a client are NULL.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function postgresql(options: SqlOptions): AuthSource<never> {
  return sqlSource(POSTGRESQL, options);
}

/**
 * A source that authenticates and authorizes clients with MySQL or MariaDB. See `postgresql` for placeholders.
 *
 * ```ts
 * const pool = createPool({ uri }); // of mysql2/promise
 * mysql({ query: (text, values) => pool.execute(text, values).then(([rows]) => rows) });
 * ```
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function mysql(options: SqlOptions): AuthSource<never> {
  return sqlSource(MYSQL, options);
}

function sqlSource(dialect: Dialect, options: SqlOptions): AuthSource<never> {
  const text = (value: unknown, field: string): SqlText => new SqlText(value, dialect, field);
  const optional = (value: unknown, field: string) => (value === false ? undefined : text(value, field));
  const { name } = dialect;
  const { settings, own } = readDatabaseOptions(name, options, {
    query: field('function', undefined as SqlOptions['query'] | undefined, 'Runs a query.'),
    authenticate: field('object', text(LOGIN_QUERY, '') as SqlText | undefined, 'Query of a login.', {
      check: optional
    }),
    superuser: field('object', undefined as SqlText | undefined, 'Query of a superuser.', { check: text }),
    acl: field('object', text(ACL_QUERY, '') as SqlText | undefined, 'Query of access rules.', { check: optional })
  });
  const { query, authenticate, superuser, acl } = own;
  if (query === undefined) throw new InvalidInput('OPTION_INVALID', `${name}.query`, 'a function', query);
  const lookup = (sql: SqlText | undefined): Lookup | undefined =>
    sql && {
      letters: sql.letters,
      find: async (facts) => rowsOf(await query(sql.text, sql.valuesOf(facts)), 'query')
    };
  return new DatabaseSource(settings, {
    authenticate: lookup(authenticate),
    superuser: lookup(superuser),
    acl: lookup(acl),
    isRowOf,
    rulesOf
  });
}

/**
 * Compare the names in a row with those of the client. Columns that are not selected, or not text, are not compared.
 */
function isRowOf({ username, clientid }: DatabaseRow, facts: Facts): boolean {
  return (
    (typeof username !== 'string' || username === facts.u) && (typeof clientid !== 'string' || clientid === facts.c)
  );
}

function* rulesOf(rows: readonly DatabaseRow[]): Iterable<AccessRule> {
  for (const one of rows) yield ruleOfRow(one);
}

/** SQL text with parameters in place of its placeholders. */
class SqlText {
  readonly text: string;
  /** The fact of each parameter. */
  readonly letters: readonly Letter[];

  /**
   * @throws InvalidInput OPTION_INVALID for values other than strings, unknown placeholders, and placeholders inside
   * quoted text
   */
  constructor(value: unknown, dialect: Dialect, field: string) {
    if (typeof value !== 'string' || value.trim() === '')
      throw new InvalidInput('OPTION_INVALID', field, 'a query', value);
    const letters: Letter[] = [];
    const numbers = new Map<Letter, number>();
    const parameter = (letter: Letter): string => {
      const known = dialect.isNumbered ? numbers.get(letter) : undefined;
      if (known === undefined) {
        letters.push(letter);
        numbers.set(letter, letters.length);
      }
      return dialect.parameter(known ?? letters.length);
    };
    const pieces = piecesOf(value, dialect.hasBackslashes);
    const fail = (expected: string): never => {
      throw new InvalidInput('OPTION_INVALID', field, expected, value);
    };
    this.text = pieces.map((piece) => withParameters(piece, parameter, dialect.ownParameter, fail)).join('');
    this.letters = letters;
  }

  valuesOf(facts: Facts): (string | null)[] {
    return this.letters.map((letter) => facts[letter] ?? null);
  }
}

/** Split SQL into quoted text and the parts in between. */
function piecesOf(text: string, hasBackslashes: boolean): string[] {
  const quoted = hasBackslashes
    ? /('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`)/s
    : /('(?:[^']|'')*'|"(?:[^"]|"")*")/s;
  return text.split(quoted);
}

/**
 * Replace the placeholders of a piece of SQL.
 * @param own parameters as the database writes them
 * @param fail throws for a piece that is not valid
 */
function withParameters(
  piece: string,
  parameter: (letter: Letter) => string,
  own: RegExp,
  fail: (expected: string) => never
): string {
  const whole = /^(['"])%([ucaCd])\1$/.exec(piece); // as in queries that insert the values into the text
  if (whole !== null) return parameter(whole[2] as Letter);
  const isQuoted = /^['"`]/.test(piece);
  if (!isQuoted && own.test(piece)) fail('%u and the like for values; the parameters are made from them');
  return piece.replace(/%([A-Za-z%])/g, (found, letter: string) => {
    if (letter === '%') return '%';
    if (isLetter(letter))
      return isQuoted ? fail(`no placeholder inside quoted text (%% for a percent sign): ${piece}`) : parameter(letter);
    return isQuoted ? found : fail(`only the placeholders ${KNOWN_PLACEHOLDERS}`);
  });
}
