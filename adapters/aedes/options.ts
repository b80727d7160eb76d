import { randomUUID } from 'node:crypto';
import type { Store } from '../../lib/adapter.ts';
import { type BrokerOptions, InvalidInput } from '../../lib/index.ts';
import type { AedesOptions, Handlers } from './types.ts';

/** Time limit of a handler. Aedes has none; this limit releases the resources of a handler that never calls back. */
const HANDLER_MS = 3_600_000;
const MAX_TOPIC_LEVELS = 100;
const SYS = '$SYS/';

/** The options after reading. */
export interface Settings {
  readonly id: string;
  readonly heartbeatInterval: number;
  readonly connectTimeout: number;
  readonly keepaliveLimit: number;
  readonly maxClientsIdLength: number;
  readonly maxTopicLevels: number;
  readonly broker: BrokerOptions;
}

/** The handlers of a broker without handlers. */
export const DEFAULT_HANDLERS: Readonly<Handlers> = {
  preConnect: (_client, _packet, callback) => callback(null, true),
  authenticate: (_client, _username, _password, done) => done(null, true),
  authorizePublish: (_client, { topic }, callback) =>
    callback(topic.startsWith(SYS) ? new Error(`${SYS} topic is reserved`) : null),
  authorizeSubscribe: (_client, subscription, callback) => callback(null, subscription),
  authorizeForward: (_client, packet) => packet,
  published: (_packet, _client, callback) => callback(null)
};

/**
 * Read the options of Aedes.
 * @throws InvalidInput OPTION_INVALID for an option that embermq does not support; the message names the replacement
 */
export function readOptions(given: AedesOptions): Settings {
  checkAvailable(given);
  const { drainTimeout = 60_000, maxInflightInbound = 1_000, maxTopicLevels = MAX_TOPIC_LEVELS, persistence } = given;
  const levels = Math.min(Math.max(maxTopicLevels, 1), MAX_TOPIC_LEVELS);
  const isCount = Number.isInteger(maxInflightInbound) && maxInflightInbound >= 0;
  return {
    id: given.id ?? randomUUID(),
    heartbeatInterval: given.heartbeatInterval ?? 60_000,
    connectTimeout: given.connectTimeout ?? 30_000,
    keepaliveLimit: given.keepaliveLimit ?? 0,
    maxClientsIdLength: given.maxClientsIdLength ?? 23,
    maxTopicLevels: levels,
    broker: {
      // `Client` limits the time until CONNECT
      connectTimeout: 2 * HANDLER_MS,
      idleTimeout: 2 * HANDLER_MS,
      hookTimeout: HANDLER_MS,
      slowConsumerTimeout: drainTimeout,
      maxAwaitingRel: isCount ? Math.min(maxInflightInbound, 65_535) : 1_000,
      maxTopicLevels: levels,
      // as in Aedes: sessions do not expire, and their QoS 0 messages are not queued
      sessionExpiryInterval: Infinity,
      mqueueStoreQos0: false,
      controlCharacters: 'allow',
      sysForRemoteClients: true,
      delayedPublish: false,
      maxPacketSize: 268_435_460,
      maxRetainedPayloadSize: 0,
      ...(persistence ? { store: persistence } : {}),
      ...given.embermq
    }
  };
}

function checkAvailable(given: AedesOptions): void {
  const { persistence, trustProxy, trustedProxies = [] } = given;
  if (given.mq !== undefined && given.mq !== null)
    throw unavailable(
      'mq',
      given.mq,
      'the broker delivers messages itself; use bridge() of embermq/bridge between brokers'
    );
  if (persistence !== undefined && persistence !== null && !isStore(persistence))
    throw unavailable(
      'persistence',
      persistence,
      'modules of aedes-persistence cannot be used; pass levelStore(folder) of embermq/level, or leave the option out to keep the state in memory'
    );
  const isProxied = given.decodeProtocol || trustProxy || trustedProxies.length > 0;
  const field = given.decodeProtocol ? 'decodeProtocol' : 'trustProxy';
  if (isProxied)
    throw unavailable(
      field,
      given[field],
      'a listener of embermq/net with `proxyProtocol: true` reads the addresses that a proxy reports; attach it to aedes.broker, and decide about its clients with hooks of embermq'
    );
}

function unavailable(field: string, got: unknown, remedy: string): InvalidInput {
  return new InvalidInput('OPTION_INVALID', field, 'undefined', got, `option ${field}: ${remedy}`);
}

function isStore(value: unknown): value is Store {
  const { open, commit, read, close } = value as Readonly<Record<string, unknown>>;
  return [open, commit, read, close].every((method) => typeof method === 'function');
}
