// The part of kafkajs that sources and sinks use, as types, so that the package is needed only where it is used, and the properties from which a
// client is configured.

import type { ConnectionOptions } from 'node:tls';
import type { FieldTable } from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { tlsOf } from '../../outgoing/index.ts';
import { readTlsFiles, TLS_FILE_PROPERTIES } from '../tls-files.ts';

/** The part of a client that the source and the sink use: the class `Kafka` of kafkajs implements it. */
export interface KafkaClient {
  /** Make a producer. */
  producer(config?: {
    /** True: a topic that does not exist is created. */
    readonly allowAutoTopicCreation?: boolean;
  }): KafkaProducer;
  /** Make a consumer. */
  consumer(config: {
    /** The consumer group. */
    readonly groupId: string;
    /** Maximum size of an answer in bytes. */
    readonly maxBytes?: number;
  }): KafkaConsumer;
}

/** The part of a producer that the sink uses. */
export interface KafkaProducer {
  /** Connect. */
  connect(): Promise<void>;
  /** Disconnect. */
  disconnect(): Promise<void>;
  /** Send records to a topic. */
  send(record: {
    /** The topic. */
    readonly topic: string;
    /** The replicas that must acknowledge; -1: all that are in sync. */
    readonly acks: number;
    /** Time for these acknowledgements, in milliseconds. */
    readonly timeout: number;
    /** The number of the compression in the protocol; 0: none. */
    readonly compression: number;
    /** The records. */
    readonly messages: {
      /** The key, which selects the partition; null: any. */
      readonly key: string | null;
      /** The value. */
      readonly value: Buffer;
      /** The headers. */
      readonly headers: Record<string, string>;
    }[];
  }): Promise<unknown>;
}

/** The part of a consumer that the source uses. */
export interface KafkaConsumer {
  /** Connect. */
  connect(): Promise<void>;
  /** Disconnect. */
  disconnect(): Promise<void>;
  /** Select topics. */
  subscribe(topics: {
    /** The topics. */
    readonly topics: string[];
    /** True: a group without offsets begins with the oldest record; false: with new ones. */
    readonly fromBeginning: boolean;
  }): Promise<void>;
  /** Begin to read. */
  run(config: {
    /** Takes a record. The next one of its partition follows when the promise resolves. */
    readonly eachMessage: (payload: KafkaRecord) => Promise<void>;
  }): Promise<void>;
  /** Add a listener. */
  on(
    event: 'consumer.group_join' | 'consumer.crash',
    listener: (event: {
      /** Facts about the event. */
      readonly payload: {
        /** The error of a crash. */
        readonly error?: Error;
        /** True if the consumer restarts on its own. */
        readonly restart?: boolean;
      };
    }) => void
  ): unknown;
}

/** A record in the form of kafkajs. */
export interface KafkaRecord {
  /** The topic. */
  readonly topic: string;
  /** The number of the partition. */
  readonly partition: number;
  /** The record. */
  readonly message: {
    /** The key; null if there is none. */
    readonly key?: Buffer | null;
    /** The value; null if there is none. */
    readonly value: Buffer | null;
    /** The time in milliseconds since 1970, as a string. */
    readonly timestamp: string;
    /** The offset in the partition, as a string. */
    readonly offset: string;
    /** The headers. */
    readonly headers?: Readonly<Record<string, Buffer | string | (Buffer | string)[] | undefined>>;
  };
  /** Tell the group that the consumer is alive. */
  heartbeat(): Promise<void>;
}

/** Credentials of a client. */
export interface KafkaLogin<M extends string> {
  /** The mechanism of SASL. */
  readonly mechanism: M;
  /** The user name. */
  readonly username: string;
  /** The password. */
  readonly password: string;
}

/** The configuration of a client, in the form of kafkajs. */
export interface KafkaConfig {
  /** The client id. */
  readonly clientId: string;
  /** The servers, as `host:port`. */
  readonly brokers: string[];
  /** Settings of TLS. Default: no TLS. */
  readonly ssl?: ConnectionOptions;
  /** Credentials. Default: none. */
  readonly sasl?: KafkaLogin<'plain'> | KafkaLogin<'scram-sha-256'> | KafkaLogin<'scram-sha-512'>;
  /** Time for connecting, in milliseconds. */
  readonly connectionTimeout: number;
  /** Time for a request, in milliseconds. */
  readonly requestTimeout: number;
  /** Repetition of requests that have failed. */
  readonly retry: {
    /** Maximum number of repetitions. */
    readonly retries: number;
  };
  /** 0: no log. Errors are in the status of rules. */
  readonly logLevel: 0;
}

/** Options of `kafkaSource` and `kafkaSink`. */
export interface KafkaOptions {
  /**
   * A client of the app, or a function that creates one from the properties of a stream or an action. With a client,
   * the connection properties have no effect. Default: a client of the package kafkajs.
   */
  readonly client?: KafkaClient | ((config: KafkaConfig) => KafkaClient);
}

/** Time limit for connecting to a broker, and for a request, in milliseconds. */
const CONNECT_MS = 10_000;
export const REQUEST_MS = 20_000;
/** Attempts by the client itself, before the next delay of this module. */
const RETRIES = 2;

const MECHANISMS = { plain: 'plain', scram: 'scram-sha-512', scram256: 'scram-sha-256' } as const;

/** The properties of a connection. */
export const KAFKA_PROPERTIES: FieldTable = {
  brokers: { type: 'string', about: 'Bootstrap brokers, separated by commas: host:9092,other:9092.' },
  saslAuthType: {
    type: 'string',
    default: 'none',
    choices: ['none', ...Object.keys(MECHANISMS)],
    about: 'Authentication: none, plain, scram (SHA-512) or scram256.'
  },
  saslUserName: { type: 'string', about: 'User name.' },
  saslPassword: { type: 'string', isSecret: true, about: 'Password.' },
  clientId: { type: 'string', default: 'embermq', about: 'Client id.' },
  tls: {
    type: 'boolean',
    default: false,
    about: 'Connect with TLS. Also implied by one of the file paths.'
  },
  ...TLS_FILE_PROPERTIES,
  insecureSkipVerify: {
    type: 'boolean',
    about: 'Only false: the certificate of the brokers is always verified.',
    choices: [false]
  }
};

interface Connection {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly dataDir: string | undefined;
}

/**
 * The client for a stream or an action.
 * @param what for messages
 * @throws InvalidInput PROPERTY_INVALID; BrokerError PACKAGE_MISSING
 */
export async function clientFor(
  { properties, dataDir }: Connection,
  { client }: KafkaOptions,
  what: string
): Promise<KafkaClient> {
  if (client !== undefined && typeof client !== 'function') return client;
  const { brokers = '', clientId, saslAuthType } = properties as Record<string, string | undefined>;
  const list = brokers
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
  const expected = 'hosts with ports, such as "kafka:9092,other:9092"';
  if (list.length === 0 || list.some((each) => !/^[^\s/@]+:\d{1,5}$/.test(each)))
    throw new InvalidInput(
      'PROPERTY_INVALID',
      'brokers',
      expected,
      brokers,
      `${what}: property brokers must be ${expected}`
    );
  const files = await readTlsFiles(properties, dataDir, what);
  const hasTls = properties.tls === true || Object.keys(files).length > 0;
  const mechanism = MECHANISMS[saslAuthType as keyof typeof MECHANISMS];
  const config: KafkaConfig = {
    clientId: clientId ?? 'embermq',
    brokers: list,
    ...(hasTls ? { ssl: tlsOf(files) as ConnectionOptions } : {}),
    ...(mechanism === undefined ? {} : { sasl: { mechanism, ...readLogin(properties, what) } as KafkaConfig['sasl'] }),
    connectionTimeout: CONNECT_MS,
    requestTimeout: REQUEST_MS,
    retry: { retries: RETRIES },
    logLevel: 0
  };
  return client === undefined ? ownClient(config, what) : client(config);
}

/** @throws InvalidInput PROPERTY_INVALID */
function readLogin(properties: Connection['properties'], what: string): { username: string; password: string } {
  const { saslUserName: username, saslPassword: password } = properties;
  if (typeof username === 'string' && typeof password === 'string' && username !== '') return { username, password };
  const text = `${what}: saslAuthType needs the properties saslUserName and saslPassword`;
  throw new InvalidInput('PROPERTY_INVALID', 'saslUserName', 'a user name and a password', undefined, text);
}

/** @throws BrokerError PACKAGE_MISSING */
async function ownClient(config: KafkaConfig, what: string): Promise<KafkaClient> {
  try {
    const { Kafka } = await import('kafkajs');
    return new Kafka(config) as KafkaClient;
  } catch (cause) {
    if ((cause as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw new BrokerError('PACKAGE_MISSING', `${what} needs the package kafkajs: npm install kafkajs`, { cause });
  }
}
