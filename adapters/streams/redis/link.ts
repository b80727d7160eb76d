import type { Redis } from 'ioredis';
import { BrokerError, type Clock } from '../../../lib/index.ts';
import { BackOff } from '../back-off.ts';
import type { RedisSettings } from './settings.ts';

const CONNECT_MS = 10_000;
/** Time limit of a command. */
const COMMAND_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;

/** Callbacks of a link. */
interface RedisLinkPorts {
  readonly clock: Clock;
  connected?(): void;
  disconnected?(reason: unknown): void;
  /** Called with each new connection before it counts as connected. */
  prepare?(client: Redis): Promise<unknown>;
}

type IORedis = { readonly Redis: typeof Redis };

/** @throws BrokerError PACKAGE_MISSING */
export async function loadRedis(): Promise<IORedis> {
  try {
    return await import('ioredis');
  } catch (cause) {
    const text = 'sources and sinks of Redis need the package ioredis: npm install ioredis';
    throw new BrokerError('PACKAGE_MISSING', text, { cause });
  }
}

/** A connection to Redis. If lost or failed, it is established again after 1 to 30 seconds. */
export class RedisLink {
  readonly #package: IORedis;
  readonly #settings: RedisSettings;
  readonly #ports: RedisLinkPorts;
  readonly #backOff: BackOff;
  #client: Redis | undefined;
  /** The current attempt, or the last one. */
  #attempt: Promise<Redis>;
  #isClosed = false;

  constructor(ioredis: IORedis, settings: RedisSettings, ports: RedisLinkPorts) {
    this.#package = ioredis;
    this.#settings = settings;
    this.#ports = ports;
    this.#backOff = new BackOff(ports.clock);
    this.#attempt = this.#try();
  }

  /**
   * The connection. Waits while it is being established; between two attempts, rejects at once.
   * @throws BrokerError REDIS_DOWN
   */
  ready(): Promise<Redis> {
    return this.#attempt;
  }

  close(): void {
    this.#isClosed = true;
    this.#backOff.cancel();
    this.#client?.disconnect();
  }

  #try(): Promise<Redis> {
    const attempt = this.#connect();
    attempt.catch(() => undefined); // reported elsewhere
    return attempt;
  }

  async #connect(): Promise<Redis> {
    const { host, port, db, isSecure, username, password } = this.#settings;
    const client = new this.#package.Redis({
      ...{ host, port, db, lazyConnect: true },
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(isSecure ? { tls: { servername: host } } : {}),
      connectTimeout: CONNECT_MS,
      commandTimeout: COMMAND_MS,
      keepAlive: KEEP_ALIVE_MS,
      // this class reconnects, so that the state is known to rules
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      autoResubscribe: false
    });
    this.#client = client;
    let reason: Error | undefined;
    client.on('error', (error: Error) => {
      reason = error;
    });
    try {
      await client.connect();
      await this.#ports.prepare?.(client);
    } catch (error) {
      client.disconnect();
      throw this.#lost(reason ?? error);
    }
    if (this.#isClosed) client.disconnect();
    client.on('end', () => {
      this.#attempt = Promise.reject(this.#lost(reason ?? new Error('the connection was closed')));
      this.#attempt.catch(() => undefined);
    });
    if (client.status === 'end') throw this.#lost(reason ?? new Error('the connection was closed'));
    this.#backOff.reset();
    this.#ports.connected?.();
    return client;
  }

  /**
   * Report a lost connection, and try again later.
   * @returns the error, without the data sent to the server
   */
  #lost(reason: unknown): BrokerError {
    const { host, port } = this.#settings;
    const error = new BrokerError(
      'REDIS_DOWN',
      `no connection to Redis at ${host}:${port}: ${(reason as Error).message}`
    );
    if (this.#isClosed) return error;
    this.#ports.disconnected?.(error);
    this.#backOff.later(() => {
      this.#attempt = this.#try();
    });
    return error;
  }
}
