import type { Redis } from 'ioredis';
import { BrokerError, type Clock } from '../../../lib/index.ts';
import { BackOff } from '../back-off.ts';
import type { RedisSettings } from './settings.ts';

const CONNECT_MS = 10_000;
/** A command without an answer has failed after this time. */
const COMMAND_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;

/** What a link reports. */
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

/** A connection to Redis that is made again after 1 to 30 seconds when it is lost, or cannot be made. */
export class RedisLink {
  readonly #package: IORedis;
  readonly #settings: RedisSettings;
  readonly #ports: RedisLinkPorts;
  readonly #backOff: BackOff;
  #client: Redis | undefined;
  /** The attempt that is under way, or the last one. */
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
   * The connection. While it is being made, this waits; between two attempts, it rejects at once.
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
    attempt.catch(() => undefined); // which is reported
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
      // this class connects again, so that a rule can tell
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

  /** Report that there is no connection, and try again later. @returns the error, without what was sent to the server */
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
