import { type AuthSource, field } from '../../../lib/adapter.ts';
import { type AccessRule, type Awaitable, InvalidInput } from '../../../lib/index.ts';
import { actionOf, topicOf } from './acl-rows.ts';
import { DatabaseSource } from './database-source.ts';
import { type DatabaseRow, hasAll, type Lookup, TextTemplate } from './lookup.ts';
import { type DatabaseOptions, readDatabaseOptions } from './options.ts';

/** Options of `redis`. */
export interface RedisOptions extends DatabaseOptions {
  /** Runs a command with the driver of the app and returns its reply. The first element is the name of the command. */
  command: (args: [string, ...string[]]) => Awaitable<unknown>;
  /**
   * The command for each CONNECT: HMGET or HGETALL, whose fields are `password`, `salt` if `passwordHash` needs one,
   * and optionally `is_superuser`; or HGET or GET, whose reply is the password. Without a password, the next source
   * decides. `false`: no authentication. Default `HMGET mqtt_user:%u password salt is_superuser`
   */
  authenticate?: string | readonly string[] | false;
  /** A command for each client with the right password: HGET, GET or HMGET of `is_superuser`. Default: none. */
  superuser?: string | readonly string[];
  /**
   * The command for each topic and filter that the rules of the broker do not decide: a hash of topics with 1
   * (subscribe), 2 (publish) or 3 (both). All of them allow; if none applies, the next source decides. `false`: no
   * access control. Default `HGETALL mqtt_acl:%u`
   */
  acl?: string | readonly string[] | false;
}

/** Commands whose arguments are programs, or that administer the server. */
const SCRIPTS = /^(eval|evalsha|eval_ro|evalsha_ro|fcall|fcall_ro|script|function|module|config|acl)$/i;

/**
 * A source that authenticates and authorizes clients with Redis, or a server with its protocol.
 *
 * ```ts
 * const client = new Redis(url); // of ioredis
 * redis({ command: (args) => client.call(...args) });
 * ```
 *
 * Commands are split at spaces, or given as a list, and may contain the placeholders of `postgresql`, one in each
 * element. A value is never more than a part of its element. If the client does not have one of the values, the command
 * is not sent, and there is no reply.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function redis(options: RedisOptions): AuthSource<never> {
  const line = (value: unknown, field: string): CommandLine => new CommandLine(value, field);
  const optional = (value: unknown, field: string) => (value === false ? undefined : line(value, field));
  const login = line('HMGET mqtt_user:%u password salt is_superuser', '') as CommandLine | undefined;
  const { settings, own } = readDatabaseOptions('redis', options, {
    command: field('function', undefined as RedisOptions['command'] | undefined, 'Runs a command.'),
    authenticate: field('object', login, 'Command of a login.', { check: optional }),
    superuser: field('object', undefined as CommandLine | undefined, 'Command of a superuser.', { check: line }),
    acl: field('object', line('HGETALL mqtt_acl:%u', '') as CommandLine | undefined, 'Command of access rules.', {
      check: optional
    })
  });
  const { command, authenticate, superuser, acl } = own;
  if (command === undefined) throw new InvalidInput('OPTION_INVALID', 'redis.command', 'a function', command);
  const lookup = (
    asked: CommandLine | undefined,
    read: (reply: unknown, asked: CommandLine) => DatabaseRow | undefined
  ): Lookup | undefined =>
    asked && {
      letters: asked.letters,
      find: async (facts) => {
        if (!hasAll(facts, asked.letters)) return [];
        const found = read(
          await command(asked.templates.map((one) => one.fill(facts)) as [string, ...string[]]),
          asked
        );
        return found === undefined ? [] : [found];
      }
    };
  const fieldsWith = (name: string) => (reply: unknown, asked: CommandLine) => {
    const found = fieldsOf(reply, asked, name);
    return found[name] === null || found[name] === undefined ? undefined : found;
  };
  return new DatabaseSource(settings, {
    authenticate: lookup(authenticate, fieldsWith('password')),
    superuser: lookup(superuser, fieldsWith('is_superuser')),
    acl: lookup(acl, (reply) => pairsOf(reply)),
    isRowOf: () => true,
    rulesOf
  });
}

function* rulesOf(rows: readonly DatabaseRow[]): Iterable<AccessRule> {
  for (const fields of rows)
    for (const [topic, access] of Object.entries(fields))
      yield { access: 'allow', action: actionOf(access, 'value of a topic'), ...topicOf(topic) };
}

/** A command with placeholders. */
class CommandLine {
  readonly templates: readonly TextTemplate[];
  /** The elements as written. */
  readonly words: readonly string[];
  readonly letters: Lookup['letters'];

  /** @throws InvalidInput OPTION_INVALID */
  constructor(value: unknown, field: string) {
    const words: unknown = typeof value === 'string' ? value.trim().split(/\s+/) : value;
    const isGood = Array.isArray(words) && words.length > 1 && words.every((word) => typeof word === 'string');
    if (!isGood)
      throw new InvalidInput('OPTION_INVALID', field, 'a command such as "HGETALL mqtt_acl:%u", or a list', value);
    this.words = words;
    this.templates = words.map((word) => new TextTemplate(word, field));
    this.letters = [...new Set(this.templates.flatMap(({ letter }) => letter ?? []))];
    const isProgram = this.templates[0].letter !== undefined || SCRIPTS.test(words[0]);
    if (isProgram) throw new InvalidInput('OPTION_INVALID', field, 'a command that reads a key', value);
  }
}

/** The fields of a reply, by name. @param name of the only value, for commands without names of fields */
function fieldsOf(reply: unknown, { words }: CommandLine, name: string): DatabaseRow {
  const [command] = words;
  if (/^hmget$/i.test(command)) {
    if (!Array.isArray(reply)) return pairsOf(reply);
    const names = words.slice(2);
    if (reply.length !== names.length) throw new Error(`the reply of HMGET must have ${names.length} values`);
    return Object.fromEntries(names.map((field, at) => [field, reply[at]]));
  }
  const isSingle = reply === null || typeof reply !== 'object' || reply instanceof Uint8Array;
  return isSingle ? { [name]: reply } : pairsOf(reply);
}

/**
 * The pairs of a hash: alternating names and values (RESP2), a Map, or an object.
 * @throws Error
 */
function pairsOf(reply: unknown): DatabaseRow {
  if (reply === null || reply === undefined) return {};
  if (Array.isArray(reply)) {
    if (reply.length % 2 === 1) throw new Error('the reply must be a list of names and values in turn');
    const names = reply.filter((_, at) => at % 2 === 0).map(String);
    return Object.fromEntries(names.map((name, at) => [name, reply[2 * at + 1]]));
  }
  if (reply instanceof Map) return Object.fromEntries(reply);
  if (typeof reply !== 'object') throw new Error('the reply must be a hash');
  return reply as DatabaseRow;
}
