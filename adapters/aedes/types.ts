import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Store } from '../../lib/adapter.ts';
import type { BrokerOptions } from '../../lib/index.ts';
import type { Client } from './client.ts';
import type {
  AedesPublishPacket,
  ConnackPacket,
  ConnectPacket,
  PingreqPacket,
  PublishPacket,
  PubrelPacket,
  Subscription
} from './packets.ts';

/** A stream with a client at its other end. */
export type Connection = Duplex;

/** The callback of most operations. `error` is null or undefined if the operation has succeeded. */
export type Done = (error?: Error | null) => void;

/** The return codes with which `authenticate` can refuse a client. */
export const AuthErrorCode = {
  /** 1: the version of MQTT is not accepted. */
  UNNACCEPTABLE_PROTOCOL: 1, // spelled as in Aedes
  /** 2: the client id is not accepted. */
  IDENTIFIER_REJECTED: 2,
  /** 3: the server cannot serve the client now. */
  SERVER_UNAVAILABLE: 3,
  /** 4: the user name or the password is wrong. */
  BAD_USERNAME_OR_PASSWORD: 4,
  /** 5: the client may not connect. */
  NOT_AUTHORIZED: 5
} as const;

/** One of the return codes with which `authenticate` can refuse a client. */
export type AuthErrorCode = (typeof AuthErrorCode)[keyof typeof AuthErrorCode];

/** The error of `authenticate`. With a `returnCode` from 2 to 5, the CONNACK has this code; otherwise it has 5. */
export type AuthenticateError = Error & {
  /** The return code of the CONNACK. */
  returnCode: AuthErrorCode;
};

/** Decides whether a client may try to connect. `client.id` is null at this time. */
export type PreConnectHandler = (
  client: Client,
  packet: ConnectPacket,
  callback: (error: Error | null, success: boolean) => void
) => void;

/** Decides whether a client may connect. */
export type AuthenticateHandler = (
  client: Client,
  username: Readonly<string | undefined>,
  password: Readonly<Buffer | undefined>,
  done: (error: AuthenticateError | null, success: boolean | null) => void
) => void;

/**
 * Decides whether a client may publish a packet or its will, and may change it. `client` is null for the will of a
 * disconnected client.
 */
export type AuthorizePublishHandler = (client: Client | null, packet: PublishPacket, callback: Done) => void;

/** Decides whether a client may subscribe, and may change topic filter and QoS. null in place of the subscription refuses it. */
export type AuthorizeSubscribeHandler = (
  client: Client,
  subscription: Subscription,
  callback: (error: Error | null, subscription?: Subscription | null) => void
) => void;

/** Decides whether a client receives a packet, and may change it for this client. Anything but a packet drops it. */
export type AuthorizeForwardHandler = (
  client: Client,
  packet: AedesPublishPacket
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing drops the packet
) => AedesPublishPacket | null | undefined | void;

/** Called after a packet was published. The next packet of the same client is published after the callback. */
export type PublishedHandler = (packet: AedesPublishPacket, client: Client, callback: Done) => void;

/** The handlers that authorize clients. Each can be passed as an option and assigned to the broker at any time. */
export interface Handlers {
  /** Decides whether a client may try to connect. */
  preConnect: PreConnectHandler;
  /** Decides whether a client may connect. */
  authenticate: AuthenticateHandler;
  /** Decides whether a client may publish a message, or its will, and may change it. */
  authorizePublish: AuthorizePublishHandler;
  /** Decides whether a client may subscribe to a topic filter, and may change the subscription. */
  authorizeSubscribe: AuthorizeSubscribeHandler;
  /** Decides whether a client receives a message, and may change it. */
  authorizeForward: AuthorizeForwardHandler;
  /** Called after a message was published. */
  published: PublishedHandler;
}

/** The options of `Aedes`. */
export interface AedesOptions extends Partial<Handlers> {
  /** Not available, because the broker delivers messages without it: use `embermq/bridge` between brokers. */
  readonly mq?: undefined;
  /** Name of the broker, part of its `$SYS` topics. Default: a random UUID. */
  readonly id?: string;
  /** A store of embermq: `levelStore(folder)` of `embermq/level`. Persistence modules of Aedes are not available. Default: memory. */
  readonly persistence?: Store;
  /** Has no effect: a slow client never holds up messages to others. */
  readonly concurrency?: number;
  /** Interval of the messages to `$SYS/<id>/heartbeat`, in milliseconds. Default 60000. */
  readonly heartbeatInterval?: number;
  /** Time in which a new connection has to send CONNECT, in milliseconds. Default 30000. */
  readonly connectTimeout?: number;
  /** Time after which a client that accepts no output is disconnected, in milliseconds; 0: never. Default 60000. */
  readonly drainTimeout?: number;
  /** Maximum keep alive, in seconds; a client without keep alive exceeds it as well. 0 (default): unlimited. */
  readonly keepaliveLimit?: number;
  /**
   * Has no effect: the data that a client sends before its CONNACK is limited in bytes (`maxHeldBytes` in `embermq`).
   */
  readonly queueLimit?: number;
  /** Maximum number of QoS 2 messages of one client that wait for PUBREL; 0: unlimited. Default 1000. */
  readonly maxInflightInbound?: number;
  /** Maximum length of the client id of MQTT 3.1 clients. Default 23. */
  readonly maxClientsIdLength?: number;
  /** Maximum number of levels of topic names and filters, from 1 to 100. Default 100. */
  readonly maxTopicLevels?: number;
  /** Not available: a listener of `embermq/net` with `proxyProtocol` reads the addresses that a proxy reports. */
  readonly decodeProtocol?: undefined;
  /** Only false, see `decodeProtocol`. */
  readonly trustProxy?: false;
  /** Only an empty list, see `decodeProtocol`. */
  readonly trustedProxies?: readonly never[];
  /**
   * Options of `createBroker` of embermq, which Aedes does not have. They take precedence over those derived from the
   * options above.
   */
  readonly embermq?: BrokerOptions;
}

/** The events of `Aedes`, with the arguments of their listeners. */
export interface AedesEvents {
  /** A client was accepted. */
  client: [client: Client];
  /** The CONNACK of a client that was accepted was sent. */
  clientReady: [client: Client];
  /** A client has disconnected. */
  clientDisconnect: [client: Client];
  /** An error of a client that had sent a CONNECT. */
  clientError: [client: Client, error: Error];
  /** An error of a connection without a CONNECT. */
  connectionError: [client: Client, error: Error];
  /** A client sent nothing for longer than its keep alive allows. */
  keepaliveTimeout: [client: Client];
  /** A message was published; `client` is null for messages of the app and of the broker. */
  publish: [packet: AedesPublishPacket, client: Client | null];
  /** A receiver has acknowledged a message of QoS 1 or 2. */
  ack: [packet: PublishPacket | PubrelPacket, client: Client];
  /** A PINGREQ was answered. */
  ping: [packet: PingreqPacket, client: Client];
  /** A client has subscribed. */
  subscribe: [subscriptions: Subscription[], client: Client];
  /** A client has unsubscribed. */
  unsubscribe: [unsubscriptions: string[], client: Client];
  /** A CONNACK was sent. */
  connackSent: [packet: ConnackPacket, client: Client];
  /** The broker has closed. */
  closed: [];
  /** An error that has no caller. */
  error: [error: Error];
}

/** The events of `Client`, with the arguments of their listeners. */
export interface ClientEvents {
  /** The client was accepted, and its CONNACK was sent. */
  connected: [];
  /** An error of the client. */
  error: [error: Error];
}

/** Receives the packets of `aedes.subscribe`. The callback has no effect. */
export type DeliverFunction = (packet: AedesPublishPacket, callback: () => void) => void;

/** The upgrade request of a WebSocket connection. */
export type UpgradeRequest = IncomingMessage;
