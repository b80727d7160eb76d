import { type AuthSource, field, isPlainObject, unknownKey } from '../../../lib/adapter.ts';
import { type AccessRule, type Awaitable, InvalidInput } from '../../../lib/index.ts';
import { topicOf } from './acl-rows.ts';
import { DatabaseSource } from './database-source.ts';
import { type DatabaseRow, type Facts, hasAll, type Letter, type Lookup, rowsOf, TextTemplate } from './lookup.ts';
import { type DatabaseOptions, readDatabaseOptions } from './options.ts';

/** The documents to look up. */
export interface MongodbQuery {
  /** The name of the collection. Default: `mqtt_user` for users, `mqtt_acl` for access rules. */
  readonly collection?: string;
  /**
   * A filter. Its strings may contain the placeholders of `postgresql`, one in each string; a value is always a string of the filter, never
   * an operator. Default `{ username: '%u' }`
   */
  readonly filter?: Readonly<Record<string, unknown>>;
}

/** Options of `mongodb`. */
export interface MongodbOptions extends DatabaseOptions {
  /** Finds documents with the driver of the app and returns them as a list. */
  find: (collection: string, filter: Record<string, unknown>) => Awaitable<unknown>;
  /**
   * The query for each CONNECT. The first document has the fields `password`, `salt` if `passwordHash` needs one, and
   * optionally `is_superuser`. Without a document, the next source decides. `false`: no authentication. Default
   * collection `mqtt_user`
   */
  authenticate?: MongodbQuery | false;
  /** A query for each client with the right password. `is_superuser` of its first document exempts it from access control. Default: none. */
  superuser?: MongodbQuery;
  /**
   * The query for each topic and filter that the rules of the broker do not decide. The documents have lists of topic
   * filters: `publish`, `subscribe` and `pubsub`. All of them allow; if none applies, the next source decides. `false`:
   * no access control. Default collection `mqtt_acl`
   */
  acl?: MongodbQuery | false;
}

/** Operators whose values are compared unchanged, or are filters themselves. Others may run or interpret a string. */
const SAFE_OPERATORS = ['$eq', '$ne', '$in', '$nin', '$and', '$or', '$nor', '$not', '$elemMatch'];
const ACTIONS = ['publish', 'subscribe', 'pubsub'] as const;

/**
 * A source that authenticates and authorizes clients with MongoDB.
 *
 * ```ts
 * mongodb({ find: (collection, filter) => db.collection(collection).find(filter).toArray() });
 * ```
 *
 * If the client does not have one of the values of a filter, nothing is looked up.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function mongodb(options: MongodbOptions): AuthSource<never> {
  const users = { collection: 'mqtt_user', filter: { username: '%u' } };
  const rules = { ...users, collection: 'mqtt_acl' };
  const reader = (defaults: Required<MongodbQuery>) => (value: unknown, field: string) =>
    value === false ? undefined : new DocumentQuery(value as MongodbQuery, defaults, field);
  const queryRow = (defaults: Required<MongodbQuery>, isDefault: boolean, about: string) => {
    const check = reader(defaults);
    return field('object', isDefault ? check({}, '') : undefined, about, { check });
  };
  const { settings, own } = readDatabaseOptions('mongodb', options, {
    find: field('function', undefined as MongodbOptions['find'] | undefined, 'Finds documents.'),
    authenticate: queryRow(users, true, 'Query of a login.'),
    superuser: queryRow(users, false, 'Query of a superuser.'),
    acl: queryRow(rules, true, 'Query of access rules.')
  });
  const { find, authenticate, superuser, acl } = own;
  if (find === undefined) throw new InvalidInput('OPTION_INVALID', 'mongodb.find', 'a function', find);
  const lookup = (query: DocumentQuery | undefined): Lookup | undefined =>
    query && {
      letters: query.letters,
      find: async (facts) =>
        hasAll(facts, query.letters) ? rowsOf(await find(query.collection, query.filterFor(facts)), 'find') : []
    };
  return new DatabaseSource(settings, {
    authenticate: lookup(authenticate),
    superuser: lookup(superuser),
    acl: lookup(acl),
    isRowOf: () => true,
    rulesOf
  });
}

function* rulesOf(rows: readonly DatabaseRow[]): Iterable<AccessRule> {
  for (const document of rows)
    for (const action of ACTIONS) {
      const topics = document[action] ?? [];
      if (!Array.isArray(topics)) throw new Error(`the field "${action}" of a document must be a list of topics`);
      for (const topic of topics) yield { access: 'allow', action, ...topicOf(topic) };
    }
}

/** Produces a part of a filter. */
type Part = (facts: Facts) => unknown;

/** A filter with placeholders, and its collection. */
class DocumentQuery {
  readonly collection: string;
  readonly letters: readonly Letter[];
  readonly #filter: Part;

  /** @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
  constructor(given: MongodbQuery, defaults: Required<MongodbQuery>, field: string) {
    checkFields(given, field);
    for (const key of Object.keys(given))
      if (!Object.hasOwn(defaults, key)) throw unknownKey(key, Object.keys(defaults), field);
    const { collection = defaults.collection, filter = defaults.filter } = given;
    if (typeof collection !== 'string' || collection === '')
      throw new InvalidInput('OPTION_INVALID', `${field}.collection`, 'a name', collection);
    checkFields(filter, `${field}.filter`);
    const letters = new Set<Letter>();
    this.collection = collection;
    this.#filter = partOf(filter, `${field}.filter`, letters, true);
    this.letters = [...letters];
  }

  filterFor(facts: Facts): Record<string, unknown> {
    return this.#filter(facts) as Record<string, unknown>;
  }
}

/** @throws InvalidInput OPTION_INVALID */
function checkFields(value: unknown, field: string): void {
  if (!isPlainObject(value)) throw new InvalidInput('OPTION_INVALID', field, 'an object', value);
}

/** @param isSafe a value of a client may be inserted here */
function partOf(value: unknown, field: string, letters: Set<Letter>, isSafe: boolean): Part {
  if (typeof value === 'string') {
    const template = new TextTemplate(value, field);
    if (template.letter !== undefined && !isSafe)
      throw new InvalidInput(
        'OPTION_INVALID',
        field,
        `no placeholder below operators other than ${SAFE_OPERATORS.join(', ')}`,
        value
      );
    if (template.letter !== undefined) letters.add(template.letter);
    return (facts) => template.fill(facts);
  }
  if (Array.isArray(value)) {
    const parts = value.map((item, at) => partOf(item, `${field}[${at}]`, letters, isSafe));
    return (facts) => parts.map((part) => part(facts));
  }
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain) return () => value; // a number, or a value of the driver, such as an ObjectId
  const parts = Object.entries(value).map(([key, item]) => {
    const isKnown = !key.startsWith('$') || SAFE_OPERATORS.includes(key);
    return [key, partOf(item, `${field}.${key}`, letters, isSafe && isKnown)] as const;
  });
  return (facts) => Object.fromEntries(parts.map(([key, part]) => [key, part(facts)]));
}
