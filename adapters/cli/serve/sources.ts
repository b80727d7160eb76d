// The kinds of sources that a config file can name; entry points are imported when they are used. An option can be
// taken from a file or the environment: at a reload the source is created again if such a value has changed, and the
// previous one is closed when it has answered its questions. `reload` never rejects, because the source must keep its
// place in the order. Errors name the entry and contain no secret, also if the secret was inserted.

import { type AuthSource, isSecretByName, type SourceContext } from '../../../lib/adapter.ts';
import {
  type AuthenticateRequest,
  type AuthorizeRequest,
  type Awaitable,
  BrokerError,
  InvalidInput
} from '../../../lib/index.ts';
import type { Shell } from '../command.ts';
import { filledOptions, type Inserted } from '../config-values.ts';

/** A kind of source that the list `auth` of the config file may contain. */
interface SourceKind {
  /**
   * Load the entry point.
   * @returns a function that creates a source from its options, and throws InvalidInput for invalid ones
   */
  load(shell: Shell): Promise<(options: never) => Awaitable<AuthSource>>;
  /**
   * Check whether the string at a path is a template, so that a percent sign in a value from a file or the environment
   * is doubled there.
   */
  readonly isTemplate?: (path: string) => boolean;
}

/** A database that `serve` queries with its own driver. A query taken completely from a file has placeholders. */
const database = (kind: 'postgresql' | 'mysql' | 'redis' | 'mongodb'): SourceKind => ({
  load: async (shell) => (await import('./database-kinds.ts')).databaseKind(kind, shell),
  isTemplate: (path) => /^(authenticate|superuser|acl)[.[]/.test(path)
});

/** The kinds. The field names in the errors of a kind begin with the name of the kind. */
const KINDS: Readonly<Record<string, SourceKind>> = {
  'password-file': { load: async () => (await import('../../auth/password-file/index.ts')).passwordFile },
  'acl-file': { load: async () => (await import('../../auth/acl-file/index.ts')).aclFile },
  jwt: { load: async () => (await import('../../auth/jwt/index.ts')).jwt },
  http: {
    load: async () => (await import('../../auth/http/index.ts')).http,
    isTemplate: (path) => /^(authenticate|superuser|acl)\.(?!url$)/.test(path)
  },
  ldap: { load: async () => (await import('../../auth/ldap/index.ts')).ldap },
  postgresql: database('postgresql'),
  mysql: database('mysql'),
  redis: database('redis'),
  mongodb: database('mongodb')
};

/** The place and the options of a configured source. */
interface SourceEntry {
  readonly kind: string;
  /** The place for messages: `FILE: auth[0]`. */
  readonly place: string;
  /** The description for the report of a reload: `password file users`. Default: its name. */
  readonly label?: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/**
 * Create the sources of the settings, in order: the files of `passwordFile` and `aclFile`, then the list `auth` of the
 * config file. Each entry of the list has the options of its function, and `kind`.
 * @throws InvalidInput, whose message names the place of the invalid setting
 */
export async function configuredSources(
  files: { readonly passwordFile: string | undefined; readonly aclFile: string | undefined },
  list: unknown,
  config: string | undefined,
  shell: Shell
): Promise<ConfiguredAuthSource[]> {
  const entries = [...fileEntries(files), ...listEntries(list, `${config}: auth`)];
  const sources: ConfiguredAuthSource[] = [];
  for (const entry of entries) {
    const source = await ConfiguredAuthSource.from(entry, shell);
    if (sources.some(({ name }) => name === source.name))
      throw new InvalidInput('OPTION_INVALID', `${entry.place}.name`, 'a name that no other source has', source.name);
    sources.push(source);
  }
  return sources;
}

function fileEntries(files: Parameters<typeof configuredSources>[0]): SourceEntry[] {
  const { passwordFile, aclFile } = files;
  const entry = (kind: string, place: string, label: string, file: string | undefined): SourceEntry[] =>
    file === undefined ? [] : [{ kind, place, label: `${label} ${file}`, options: { file } }];
  return [
    ...entry('password-file', '--password-file', 'password file', passwordFile),
    ...entry('acl-file', '--acl-file', 'ACL file', aclFile)
  ];
}

function listEntries(list: unknown, field: string): SourceEntry[] {
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new InvalidInput('OPTION_INVALID', field, 'a list of sources', list);
  return list.map((entry: unknown, at) => {
    const place = `${field}[${at}]`;
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
      throw new InvalidInput('OPTION_INVALID', place, 'an object with "kind"', entry);
    const { kind, ...options } = entry as Record<string, unknown>;
    if (typeof kind !== 'string' || !Object.hasOwn(KINDS, kind))
      throw new InvalidInput('OPTION_INVALID', `${place}.kind`, `one of ${Object.keys(KINDS).join(', ')}`, kind);
    return { kind, place, options };
  });
}

/** A source created from its entry, with the values that were inserted into its options. */
class MadeAuthSource {
  readonly source: AuthSource;
  readonly inserted: readonly Inserted[];
  /** Pending questions. */
  readonly #asked = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined = undefined;

  constructor(source: AuthSource, inserted: readonly Inserted[]) {
    this.source = source;
    this.inserted = inserted;
  }

  authenticate(request: AuthenticateRequest): ReturnType<NonNullable<AuthSource['authenticate']>> {
    return this.#noted(this.source.authenticate?.(request));
  }

  authorize(request: AuthorizeRequest): ReturnType<NonNullable<AuthSource['authorize']>> {
    return this.#noted(this.source.authorize?.(request));
  }

  /** Wait for the pending questions. Each source limits their time. */
  async finish(): Promise<void> {
    await Promise.allSettled(this.#asked);
  }

  /** Close the source, once. */
  close(): Promise<void> {
    this.#closed ??= (async () => this.source.close?.())();
    return this.#closed;
  }

  #noted<T>(answer: Awaitable<T>): Awaitable<T> {
    if (answer instanceof Promise) {
      const forget = () => this.#asked.delete(answer);
      this.#asked.add(answer);
      answer.then(forget, forget);
    }
    return answer;
  }
}

/**
 * A source of the settings. A reload reads its files again. If a file with an option has changed, the source is created
 * again; the previous one is closed when it has answered its pending questions.
 */
export class ConfiguredAuthSource implements AuthSource {
  readonly label: string;
  readonly name: string;
  readonly timeoutMs: AuthSource['timeoutMs'];
  readonly provides: AuthSource['provides'];
  readonly hasLastRules: AuthSource['hasLastRules'];
  readonly authenticate: AuthSource['authenticate'];
  readonly authorize: AuthSource['authorize'];
  readonly #entry: SourceEntry;
  readonly #shell: Shell;
  #made: MadeAuthSource;
  /** Previous sources that are not closed yet. */
  readonly #previous = new Set<MadeAuthSource>();
  #context: SourceContext | undefined = undefined;
  #failure: Error | undefined = undefined;

  private constructor(entry: SourceEntry, shell: Shell, made: MadeAuthSource) {
    const { source } = made;
    this.label = entry.label ?? `source ${source.name}`;
    this.name = source.name;
    this.timeoutMs = source.timeoutMs;
    this.provides = source.provides;
    this.hasLastRules = source.hasLastRules;
    this.authenticate = source.authenticate && ((request: AuthenticateRequest) => this.#made.authenticate(request));
    this.authorize = source.authorize && ((request: AuthorizeRequest) => this.#made.authorize(request));
    this.#entry = entry;
    this.#shell = shell;
    this.#made = made;
  }

  /** @throws InvalidInput, whose message names the place of the entry */
  static async from(entry: SourceEntry, shell: Shell): Promise<ConfiguredAuthSource> {
    return new ConfiguredAuthSource(entry, shell, await make(entry, shell));
  }

  /** True if the source authenticates clients. */
  get isAuthenticating(): boolean {
    return this.provides?.includes('authentication') ?? this.authenticate !== undefined;
  }

  /** The error of the last reload, after which the previous content is still in use. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  async open(context: SourceContext): Promise<void> {
    await this.#made.source.open?.(context);
    this.#context = context;
  }

  async close(): Promise<void> {
    this.#context = undefined;
    await Promise.all([this.#made, ...this.#previous].map((made) => made.close()));
  }

  /** Never rejects, because a source that cannot be reloaded must keep its place in the order. See `failure`. */
  async reload(): Promise<void> {
    this.#failure = undefined;
    try {
      await this.#reload();
    } catch (error) {
      this.#failure = error as Error;
    }
  }

  async #reload(): Promise<void> {
    const before = this.#made;
    const made = before.inserted.length === 0 ? before : await make(this.#entry, this.#shell);
    if (made.inserted.every(({ text }, at) => text === before.inserted[at].text)) return this.#reloadMade();
    const context = this.#context;
    if (context === undefined) return; // the broker has stopped
    await made.source.open?.(context);
    if (this.#context === undefined) return made.close();
    this.#made = made;
    void this.#retire(before, context);
  }

  /** Close a previous source when it has answered its pending questions. */
  async #retire(made: MadeAuthSource, context: SourceContext): Promise<void> {
    this.#previous.add(made);
    await made.finish();
    try {
      await made.close();
    } catch (error) {
      context.failed(error, `closing the previous ${this.label}`);
    }
    this.#previous.delete(made);
  }

  async #reloadMade(): Promise<void> {
    try {
      await this.#made.source.reload?.();
    } catch (cause) {
      const { message } = cause as Error;
      const isNamed = this.#entry.label !== undefined; // the error of a file names it
      throw isNamed ? cause : new BrokerError('SOURCE_NOT_RELOADED', `${this.label}: ${message}`, { cause });
    }
  }
}

async function make({ kind, place, options }: SourceEntry, shell: Shell): Promise<MadeAuthSource> {
  const { load, isTemplate } = KINDS[kind];
  const { filled, inserted } = await filledOptions(options, place, shell, isTemplate);
  const create = await load(shell);
  try {
    return new MadeAuthSource(await create(filled as never), inserted);
  } catch (error) {
    throw error instanceof InvalidInput ? located(error, kind, place, inserted) : error;
  }
}

/** Options that may contain a secret in any part, beside those whose names denote one. */
const SECRET = /^(connection|key)\b|^\w+\.(headers|query|form|json)\b/;

/** The error with the place of the entry in its message, and without secret values. */
function located(error: InvalidInput, kind: string, place: string, inserted: readonly Inserted[]): InvalidInput {
  const { code, field, expected, message } = error;
  const own = field.startsWith(`${kind}.`) ? field.slice(kind.length + 1) : field;
  const [name] = own.split(/\W/);
  const isSecretName = isSecretByName(name, '') && !/(hash|file)$/i.test(name);
  const isSecret = isSecretName || SECRET.test(own) || contains(error.got, inserted);
  const got = isSecret ? undefined : error.got;
  const text = isSecret ? `${field}: expected ${expected}` : message;
  if (code === 'OPTION_UNKNOWN')
    return new InvalidInput(code, own, expected, got, text.replace(` in ${kind}`, ` in ${place}`));
  const isNamed = text.startsWith(`${field}: `);
  const shown = isNamed ? `${place}.${own}${text.slice(field.length)}` : `${place}: ${text}`;
  return new InvalidInput(code, own, expected, got, shown);
}

function contains(value: unknown, inserted: readonly Inserted[]): boolean {
  if (typeof value === 'string') return inserted.some(({ text }) => value.includes(text));
  return typeof value === 'object' && value !== null && Object.values(value).some((item) => contains(item, inserted));
}
