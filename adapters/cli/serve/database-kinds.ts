import { isIP } from 'node:net';
import {
  type AuthSource,
  durationMs,
  type FieldValues,
  field,
  optionName,
  readOptions,
  type SourceContext
} from '../../../lib/adapter.ts';
import { BrokerError, type Duration, InvalidInput } from '../../../lib/index.ts';
import { mongodb, mysql, postgresql, redis } from '../../auth/database/index.ts';
import type { Shell } from '../command.ts';
import { type DatabaseConnection, DRIVERS, type Driver, type DriverKind, hostOf } from './database-drivers.ts';

/** The name of the option with the function of an app, which `serve` replaces by a driver. */
const FUNCTIONS = {
  postgresql: { name: 'query', create: postgresql },
  mysql: { name: 'query', create: mysql },
  redis: { name: 'command', create: redis },
  mongodb: { name: 'find', create: mongodb }
} as const;

const text = (about: string) => field('string', undefined as string | undefined, about);

/** Options of the connection, in addition to those of the source. */
const CONNECTION_OPTIONS = {
  ca: text('Certificate authorities, PEM.'),
  cert: text('Certificate of the broker, PEM.'),
  key: text('Private key of the certificate, PEM.'),
  passphrase: text('Passphrase of the key.'),
  servername: text('Name that the certificate of the server must have.'),
  connection: text('URL of the database.'),
  tls: field('boolean', undefined as boolean | undefined, 'Use TLS.')
};
const POOL_OPTIONS = {
  ...CONNECTION_OPTIONS,
  poolSize: field('integer', 10, 'Maximum number of concurrent connections.', { min: 1, max: 1_000 })
};
type ConnectionOptions = FieldValues<typeof CONNECTION_OPTIONS> & Partial<FieldValues<typeof POOL_OPTIONS>>;

/** URL parameters that would weaken the check of certificates, or that have an option here. */
const TLS_PARAMETER = /^(ssl|tls)/i;
/** The hosts of a replica set: credentials with the first host, and the others. */
const HOSTS = /^([^/]*\/\/(?:[^@/?]*@|(?![^/?]*@))[^,/?]*),[^/?]*/;
const REDIS_DATABASE = /^\/?$|^\/\d{1,4}$/;
const DEFAULT_TIMEOUT_MS = 5_000;
/** Time limit for closing connections, which wait for their queries. */
const CLOSE_MS = 2_000;

/**
 * Load the driver of a kind of database.
 * @returns a function that creates a source from the options of a config file
 * @throws BrokerError PACKAGE_MISSING
 */
export async function databaseKind(kind: DriverKind, shell: Shell): Promise<(options: object) => AuthSource> {
  const driver = DRIVERS[kind];
  let module: unknown;
  try {
    module = await shell.importPackage('module' in driver ? driver.module : driver.package);
  } catch (cause) {
    const text = `a source of the kind "${kind}" needs the package ${driver.package}: npm install ${driver.package}`;
    throw new BrokerError('PACKAGE_MISSING', text, { cause });
  }
  return (options) => {
    const { connection, others } = readConnection(kind, options);
    const open = () =>
      (driver.open as (given: DatabaseConnection, loaded: unknown) => Driver<unknown[]>)(connection, module);
    return new ConnectedAuthSource(kind, others, open);
  };
}

/** A source together with its driver. */
class ConnectedAuthSource implements AuthSource {
  readonly name: string;
  readonly timeoutMs: AuthSource['timeoutMs'];
  readonly authenticate: AuthSource['authenticate'];
  readonly authorize: AuthSource['authorize'];
  readonly #source: AuthSource;
  readonly #open: () => Driver<unknown[]>;
  #driver: Driver<unknown[]> | undefined = undefined;
  #context: SourceContext | undefined = undefined;

  /** @param open creates a driver; its connections are closed with the source */
  constructor(kind: DriverKind, options: object, open: () => Driver<unknown[]>) {
    const { name, create } = FUNCTIONS[kind];
    const ask = async (...args: unknown[]) => this.#driver?.ask(...args);
    const source = create({ [name]: ask, ...options } as never);
    this.name = source.name;
    this.timeoutMs = source.timeoutMs;
    this.authenticate = source.authenticate;
    this.authorize = source.authorize;
    this.#source = source;
    this.#open = open;
  }

  async open(context: SourceContext): Promise<void> {
    this.#context = context;
    await this.#source.open?.(context);
    this.#driver = this.#open();
  }

  async close(): Promise<void> {
    const [driver, context] = [this.#driver, this.#context];
    this.#driver = undefined;
    await this.#source.close?.();
    if (driver === undefined || context === undefined) return;
    // queries still in progress then are ended by the timeouts of the driver
    await new Promise<void>((resolve) => {
      const timer = context.clock.setTimeout(resolve, CLOSE_MS);
      const closed = () => {
        context.clock.clearTimeout(timer);
        resolve();
      };
      driver.close().then(closed, closed);
    });
  }

  reload(): Promise<void> | void {
    return this.#source.reload?.() as Promise<void> | void;
  }
}

/** @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
function readConnection(kind: DriverKind, options: object): { connection: DatabaseConnection; others: object } {
  const [own, others]: [Record<string, unknown>, Record<string, unknown>] = [{}, {}];
  const table = kind === 'redis' ? CONNECTION_OPTIONS : POOL_OPTIONS; // a Redis client has one connection
  for (const [key, value] of Object.entries(options))
    (optionName(table, key) === undefined ? others : own)[key] = value;
  const settings = readOptions(table, own, kind) as ConnectionOptions;
  const { connection: text, poolSize = 1 } = settings;
  const url = checkConnection(kind, text);
  const connection = {
    url,
    text: text as string,
    tls: tlsOf(kind, url, settings),
    poolSize,
    timeoutMs: durationMs((others.timeoutMs ?? DEFAULT_TIMEOUT_MS) as Duration, `${kind}.timeoutMs`)
  };
  return { connection, others };
}

/** TLS is on if the URL or one of its options requires it. */
function tlsOf(kind: DriverKind, url: URL, settings: ConnectionOptions): DatabaseConnection['tls'] {
  const { ca, cert, key, passphrase, servername } = settings;
  const isWanted = [ca, cert, key, passphrase, servername].some((value) => value !== undefined);
  const isSecure = (DRIVERS[kind].secureSchemes as readonly string[]).includes(url.protocol);
  if (settings.tls === false && (isWanted || isSecure))
    throw new InvalidInput('OPTION_INVALID', `${kind}.tls`, 'true, because other options are for TLS', false);
  const hasTls = settings.tls === true || isWanted || isSecure;
  if (hasTls && kind === 'mysql' && servername === undefined && isIP(hostOf(url)) !== 0)
    throw new InvalidInput(
      'OPTION_INVALID',
      'mysql.servername',
      'a name, because the driver does not verify IP addresses',
      undefined
    );
  return hasTls ? ({ ca, cert, key, passphrase, servername } as DatabaseConnection['tls']) : undefined;
}

/** Check the URL. It contains a password, so errors do not show it. */
function checkConnection(kind: DriverKind, text: string | undefined): URL {
  const { schemes } = DRIVERS[kind];
  const fail = (expected: string): never => {
    throw new InvalidInput('OPTION_INVALID', `${kind}.connection`, expected, text === undefined ? undefined : '...');
  };
  const example = `a URL such as "${schemes[0]}//user:password@host/database"`;
  if (text === undefined) return fail(example);
  const single = kind === 'mongodb' ? text.replace(HOSTS, '$1') : text;
  if (!URL.canParse(single)) return fail(example);
  const url = new URL(single);
  if (!(schemes as readonly string[]).includes(url.protocol)) return fail(example);
  const parameters = [...url.searchParams.keys()];
  if (parameters.some((name) => TLS_PARAMETER.test(name)))
    return fail('a URL without parameters of TLS; use the options tls, ca, cert, key and servername');
  if (kind !== 'mongodb' && parameters.length > 0) return fail('a URL without parameters');
  if (kind === 'redis' && !REDIS_DATABASE.test(url.pathname)) return fail('a URL with the number of a database');
  try {
    for (const part of [url.username, url.password, url.pathname]) decodeURIComponent(part);
  } catch {
    return fail('a URL with valid percent signs');
  }
  return url;
}
