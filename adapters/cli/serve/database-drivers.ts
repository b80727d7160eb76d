// Each kind of database has a driver with its own gaps in timeouts, errors and TLS; a row closes them, so that `ask`
// always ends in time and a broken connection is replaced. `open` starts no query, so that `serve` starts while a
// database is down. Drivers are optional packages, imported when a source needs one. An idle connection that fails
// must not end the process.

import { Socket } from 'node:net';
import type { Redis } from 'ioredis';
import type { MongoClient } from 'mongodb';
import type { createPool } from 'mysql2/promise';
import type pg from 'pg';

/** TLS settings of a connection, PEM. */
type DatabaseTls = Readonly<Record<'ca' | 'cert' | 'key' | 'passphrase' | 'servername', string | undefined>>;

/** The address of a database. */
export interface DatabaseConnection {
  /** URL with user name, password, host and name of the database. */
  readonly url: URL;
  /** The URL as written, because the hosts of a replica set do not form a valid URL. */
  readonly text: string;
  /** Undefined: without TLS. */
  readonly tls: DatabaseTls | undefined;
  readonly poolSize: number;
  /** Time limit for a connection, in milliseconds. */
  readonly timeoutMs: number;
}

/** A driver with open connections, or ready to open them. */
export interface Driver<A extends unknown[]> {
  /** The function that the source calls. */
  readonly ask: (...args: A) => Promise<unknown>;
  /** Close the connections. It may wait for queries in progress. */
  close(): Promise<unknown>;
}

/** Maximum number of documents of an answer. Every document allows topics, so those beyond it allow nothing. */
const MAX_DOCUMENTS = 10_000;

type SqlArguments = [text: string, values: (string | null)[]];

/** The kinds of databases with their drivers. `open` sends no query, so the database may be down. */
export const DRIVERS = {
  postgresql: {
    package: 'pg',
    schemes: ['postgresql:', 'postgres:'],
    secureSchemes: [],
    open: (
      { url, tls, poolSize, timeoutMs }: DatabaseConnection,
      module: { default: typeof pg }
    ): Driver<SqlArguments> => {
      const [host, port] = [hostOf(url), portOf(url, 5432)];
      const pool = new module.default.Pool({
        ...credentialsOf(url),
        // the driver requires that the certificate has this name
        host: tls?.servername ?? host,
        port,
        stream: () => new DirectSocket(host),
        // older versions of the driver compare the certificate of an IP address only with this name
        ssl: tls && { host: tls.servername ?? host, ...pemsOf(tls), rejectUnauthorized: true },
        max: poolSize,
        connectionTimeoutMillis: timeoutMs,
        query_timeout: timeoutMs,
        allowExitOnIdle: true
      });
      pool.on('error', () => {}); // an idle connection; the next query opens another one
      return { ask: async (text, values) => (await pool.query(text, values)).rows, close: () => pool.end() };
    }
  },
  mysql: {
    package: 'mysql2',
    module: 'mysql2/promise',
    schemes: ['mysql:', 'mariadb:'],
    secureSchemes: [],
    open: (
      { url, tls, poolSize, timeoutMs }: DatabaseConnection,
      module: { createPool: typeof createPool }
    ): Driver<SqlArguments> => {
      const [host, port] = [hostOf(url), portOf(url, 3306)];
      const pool = module.createPool({
        ...credentialsOf(url),
        host: tls?.servername ?? host, // as above
        port,
        stream: () => new Socket().connect(port, host),
        ...(tls === undefined
          ? {}
          : { ssl: { ...pemsOf(tls), rejectUnauthorized: true, verifyIdentity: true } as never }),
        connectionLimit: poolSize,
        connectTimeout: timeoutMs
      });
      return {
        ask: async (text, values) => {
          const sentMs = performance.now();
          const connecting = pool.getConnection();
          // the driver has no timeout for waiting in the queue of the pool
          const connection = await withTimeout(connecting, timeoutMs, `no connection within ${timeoutMs} ms`, () =>
            connecting.then(
              (late) => late.release(),
              () => {}
            )
          );
          // nor for preparing a statement, and after the timeout of a query it keeps the connection
          const asked = connection.execute(text, values);
          const leftMs = timeoutMs - (performance.now() - sentMs);
          const [rows] = await withTimeout(asked, leftMs, `no answer within ${timeoutMs} ms`, () =>
            connection.destroy()
          ).finally(() => connection.release());
          return rows;
        },
        close: () => pool.end()
      };
    }
  },
  redis: {
    package: 'ioredis',
    schemes: ['redis:', 'rediss:'],
    secureSchemes: ['rediss:'],
    open: (
      { url, tls, timeoutMs }: DatabaseConnection,
      module: { Redis: typeof Redis }
    ): Driver<[[string, ...string[]]]> => {
      const { user, password, database } = credentialsOf(url);
      const host = hostOf(url);
      const client = new module.Redis({
        ...(user === undefined ? {} : { username: user }),
        ...(password === undefined ? {} : { password }),
        host,
        port: portOf(url, 6379),
        db: Number(database ?? 0),
        ...(tls === undefined
          ? {}
          : { tls: { ...pemsOf(tls), servername: tls.servername, rejectUnauthorized: true } as never }),
        connectTimeout: timeoutMs,
        socketTimeout: timeoutMs, // ends a connection that does not respond
        maxRetriesPerRequest: 1
      });
      client.on('error', () => {}); // the next command fails, unless the client has reconnected
      return {
        ask: (args) => client.call(...args),
        close: async () => client.disconnect()
      };
    }
  },
  mongodb: {
    package: 'mongodb',
    schemes: ['mongodb:', 'mongodb+srv:'],
    secureSchemes: ['mongodb+srv:'],
    open: (
      { text, tls, poolSize, timeoutMs }: DatabaseConnection,
      module: { MongoClient: typeof MongoClient }
    ): Driver<[string, Record<string, unknown>]> => {
      const client = new module.MongoClient(text, {
        ...(tls === undefined ? {} : ({ ...pemsOf(tls), servername: tls.servername, tls: true } as object)),
        maxPoolSize: poolSize,
        connectTimeoutMS: timeoutMs,
        socketTimeoutMS: timeoutMs,
        waitQueueTimeoutMS: timeoutMs,
        serverSelectionTimeoutMS: timeoutMs
      });
      return {
        ask: (collection, filter) =>
          client.db().collection(collection).find(filter, { maxTimeMS: timeoutMs, limit: MAX_DOCUMENTS }).toArray(),
        close: () => client.close()
      };
    }
  }
} as const;

export type DriverKind = keyof typeof DRIVERS;

/** A socket that connects to a given host, whatever name the driver expects in the certificate. */
class DirectSocket extends Socket {
  readonly #host: string;

  constructor(host: string) {
    super();
    this.#host = host;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the driver calls it with port and host
  override connect(port: any): this {
    return super.connect(port as number, this.#host);
  }
}

/**
 * Wait for a response. On timeout, `giveUp` is called.
 * @throws Error with the message
 */
async function withTimeout<T>(answer: Promise<T>, timeoutMs: number, message: string, giveUp: () => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      giveUp();
      reject(new Error(message));
    }, timeoutMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

function credentialsOf({ username, password, pathname }: URL) {
  const [user, secret, database] = [username, password, pathname.slice(1)].map(decodeURIComponent);
  return {
    ...(user === '' ? {} : { user }),
    ...(secret === '' ? {} : { password: secret }),
    ...(database === '' ? {} : { database })
  } as { user?: string; password?: string; database?: string };
}

/** The host, without the brackets of an IPv6 address. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '') || 'localhost';
}

function portOf({ port }: URL, usual: number): number {
  return port === '' ? usual : Number(port);
}

/** The TLS options in the form of node:tls. */
function pemsOf({ ca, cert, key, passphrase }: DatabaseTls): Record<string, unknown> {
  const given: Record<string, string | undefined> = { ca, cert, key, passphrase };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
