import { type FieldTable, type FieldValues, type ForeignCheck, field, readOptions } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { type LimitOptions, limitRows } from '../outgoing/limits.ts';
import type { Lookup } from './lookup.ts';
import { type PasswordFormat, readPasswordFormat } from './password-format.ts';

/** Options of `postgresql`, `mysql`, `redis` and `mongodb`. */
export interface DatabaseOptions extends LimitOptions {
  /**
   * The format of stored passwords.
   *
   * - `auto` (default): hashes that name their format: scrypt, PBKDF2, Argon2 (Node 24.7 or newer) and those of
   *   mosquitto, as `embermq passwd` and `hashPassword` write them, and bcrypt (`npm install bcryptjs`, or the option
   *   `bcrypt`)
   * - of old tables, as hexadecimal digits: `md5`, `sha`, `sha256`, `sha512`, with a salt before or after the password
   *   `salt,sha256` or `sha256,salt`, or `pbkdf2,sha256,1000,20` (digest, iterations, bytes), which also has a salt.
   *   Anyone who reads such a table can recover most passwords within minutes, except with a large number of iterations
   * - `bcrypt`, and `plain`: the password itself
   *
   * The time of an answer does not reveal whether a name is known. With `auto` and `bcrypt`, this is only true once the
   * password of one user has been read, because the cost of the hashes is unknown before.
   */
  passwordHash?: string;
  /** Checks a password against a bcrypt hash, for example `compare` of the package `bcrypt`. Default: the package `bcryptjs`, in a thread. */
  bcrypt?: ForeignCheck;
  /**
   * The answer if the database fails: the function rejects, takes too long, or does not return rows. `ignore` leaves
   * the decision to the next source. For a topic, the broker does not cache this answer: it asks again for the next
   * message, and soon for a subscription. Default `deny`.
   */
  onError?: 'deny' | 'ignore';
  /** Maximum number of queued queries. Further ones are answered at once, according to `onError`. Default 10,000. */
  maxQueued?: number;
  /** Name of the source, if there are several. Default: the name of the function. */
  name?: string;
}

/** Returns the common options of a kind of database. */
export function databaseOptions(name: string) {
  const limits = limitRows(32);
  return {
    ...limits,
    maxQueued: { ...limits.maxQueued, default: 10_000 },
    passwordHash: field(
      'string',
      readPasswordFormat('auto', '') as PasswordFormat,
      'Format of stored passwords, see above.',
      {
        check: readPasswordFormat
      }
    ),
    bcrypt: field(
      'function',
      undefined as ForeignCheck | undefined,
      'Checks a password against a bcrypt hash, for example `compare` of the package `bcrypt`.'
    ),
    name: field('string', name, 'Name of the source.')
  };
}

/** The checked common options. */
export type DatabaseSettings = FieldValues<ReturnType<typeof databaseOptions>>;

/**
 * Read the options of a kind of database.
 * @param rows the options that only this kind has
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN; a query about one client must have a placeholder
 */
export function readDatabaseOptions<T extends FieldTable>(
  kind: string,
  given: object,
  rows: T
): { readonly settings: DatabaseSettings; readonly own: FieldValues<T> } {
  const values = readOptions({ ...databaseOptions(kind), ...rows }, given, kind);
  for (const name of ['authenticate', 'superuser']) {
    const query = (values as Readonly<Record<string, Pick<Lookup, 'letters'> | undefined>>)[name];
    if (query?.letters.length === 0)
      throw new InvalidInput(
        'OPTION_INVALID',
        `${kind}.${name}`,
        'a placeholder such as %u, because the answer is about one client',
        (given as Readonly<Record<string, unknown>>)[name]
      );
  }
  return { settings: values as unknown as DatabaseSettings, own: values as FieldValues<T> };
}
