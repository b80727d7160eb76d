// The options, results and events of the client: its public types, without code that checks or uses them.

import type { Clock } from '../base/clock.ts';
import { BrokerError } from '../base/errors.ts';
import type { Duration } from '../base/fields.ts';
import type { MessageInput } from '../packets/message.ts';
import type { Packet, Properties, ProtocolVersion, QoS } from '../packets/types.ts';
import type { Answers } from './answers.ts';
import type { ClientSession } from './session.ts';

/** The will of an in-process client. */
export interface WillInput extends Omit<MessageInput, 'properties'> {
  /** Properties of the will (MQTT 5.0), such as `willDelayInterval`. */
  readonly properties?: Properties;
}

/** A challenge of the server during enhanced authentication. */
export interface AuthChallenge {
  /** 0x18: the server expects another AUTH. */
  readonly reasonCode: number;
  /** The Authentication Method; undefined if the packet has none. */
  readonly method: string | undefined;
  /** The Authentication Data; undefined if the packet has none. */
  readonly data: Buffer | undefined;
  /** All properties of the packet. */
  readonly properties: Properties;
}

/**
 * The content of an AUTH that a client sends (MQTT 5.0, section 3.15): its Authentication Data, or its properties. The method is that of the CONNECT.
 * Default: no data.
 */
export type AuthAnswer =
  | Buffer
  | Pick<Properties, 'authenticationData' | 'reasonString' | 'userProperties'>
  | undefined;

/** Options of an in-process client. */
export interface ClientOptions {
  /** Default: empty; the broker then assigns one. */
  readonly clientId?: string;
  /** Clean Start; Clean Session before MQTT 5.0. Default: true. */
  readonly clean?: boolean;
  /** 3 is MQTT 3.1, 4 is MQTT 3.1.1, 5 is MQTT 5.0. Default: 5. */
  readonly protocolVersion?: ProtocolVersion;
  /** Keep alive in whole seconds, up to 65,535. Default: 0, disabled. A Server Keep Alive overrides it. */
  readonly keepalive?: number;
  /** The user name. Default: none. */
  readonly username?: string;
  /** The password; a string is sent as UTF-8. Default: none. */
  readonly password?: Buffer | string;
  /** The message that the server publishes if the connection ends without a normal DISCONNECT. Default: none. */
  readonly will?: WillInput;
  /** Properties of the CONNECT (MQTT 5.0). The options below with the name of a property are shorthands. */
  readonly properties?: Properties;
  /**
   * Time for which the session is kept after the connection has closed: whole seconds, or a string such as `1h`; `Infinity`: forever.
   * Default: 0, the session ends with the connection, also if `clean` is false. Before MQTT 5.0 it has no effect, and the server decides:
   * this broker with its option `sessionExpiryInterval`.
   */
  readonly sessionExpiry?: Duration;
  /** The number of unacknowledged QoS 1 and 2 messages that the broker may have in flight, from 1 to 65,535. */
  readonly receiveMaximum?: number;
  /** The maximum size of an accepted packet, in bytes, from 1 to 4,294,967,295. */
  readonly maximumPacketSize?: number;
  /** The number of topic aliases that the broker may use, from 0 to 65,535. */
  readonly topicAliasMaximum?: number;
  /**
   * Answers the challenges of enhanced authentication. It returns the Authentication Data of the next AUTH, or its properties; if it throws, the
   * connection is closed. Set the method in `properties.authenticationMethod`.
   */
  readonly onAuth?: (challenge: AuthChallenge) => AuthAnswer | Promise<AuthAnswer>;
  /** `manual`: the application acknowledges QoS 1 and 2 messages with `message.ack()`. Default: `auto`, acknowledge on receipt. */
  readonly acknowledge?: 'auto' | 'manual';
  /**
   * Called when the server has released the packet id of a QoS 2 message, also if this client does not know it. The PUBCOMP is sent when the promise
   * resolves; if it rejects, the connection is closed. An application that stores packet ids deletes them here. Default: it is sent at once.
   */
  readonly onReleased?: (messageId: number) => void | Promise<void>;
  /** Session state of an earlier client with the same client id (`client.session`), to complete its unfinished deliveries. */
  readonly session?: ClientSession;
  /** The clock for keep alive. Default: the clock of the broker, or the system clock. */
  readonly clock?: Clock;
  /** Aborts connecting, or closes the connection later on. */
  readonly signal?: AbortSignal;
}

/** Options of a PUBLISH. */
export interface PublishOptions {
  /** Default: 0. */
  readonly qos?: QoS;
  /** Default: false. */
  readonly retain?: boolean;
  /** Properties of the PUBLISH (MQTT 5.0). A topic alias is sent unchanged. */
  readonly properties?: Properties;
}

/** Options of `client.request`. */
export interface RequestOptions {
  /** Time within which the response must arrive: milliseconds, or a string such as `5s`. Default: 10 s. */
  readonly timeout?: Duration;
  /** Default: 1. With QoS 0, a request without subscribers is noticed only when the time is over. */
  readonly qos?: QoS;
  /** Properties of the request. The response topic and the correlation data are those of the client. */
  readonly properties?: Omit<Properties, 'responseTopic' | 'correlationData' | 'topicAlias'>;
  /** Rejects the request with its reason when it aborts. */
  readonly signal?: AbortSignal;
}

/** Options of `client.respond`. */
export interface RespondOptions {
  /** Maximum QoS of the requests and of the responses. Default: 1. */
  readonly qos?: QoS;
}

/** Responds to a request. The response is sent when a promise that it returns has resolved. */
export type RequestHandler = (request: ReceivedMessage) => Answers;

/** The acknowledgement of a PUBLISH: the PUBACK, or for QoS 2 the PUBCOMP with the properties of the PUBREC. */
export interface PublishResult {
  /** 0x00, or 0x10 if there are no matching subscribers; for QoS 2 that of the PUBREC. Always 0 for QoS 0, and before MQTT 5.0. */
  readonly reasonCode: number;
  /** The properties of the acknowledgement; empty for QoS 0, and before MQTT 5.0. */
  readonly properties: Properties;
}

/** A topic filter with options for it alone. */
export interface FilterInput {
  /** The topic filter, with the share prefix for a shared subscription. */
  readonly topic: string;
  /** The maximum QoS of messages. Default: 0. */
  readonly qos?: QoS;
  /** No Local */
  readonly noLocal?: boolean;
  /** Retain As Published */
  readonly retainAsPublished?: boolean;
  /** Retain Handling */
  readonly retainHandling?: 0 | 1 | 2;
}

/** Options of a SUBSCRIBE. They apply to the filters without options. */
export interface SubscribeOptions extends Omit<FilterInput, 'topic'> {
  /** Subscription identifier and user properties (MQTT 5.0). */
  readonly properties?: Properties;
}

/** Options of an UNSUBSCRIBE. */
export interface UnsubscribeOptions {
  /** Properties of the UNSUBSCRIBE (MQTT 5.0): user properties. */
  readonly properties?: Properties;
}

/** Options of `client.messages`. */
export interface MessagesOptions {
  /** Ends the iteration: it rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
  /** Number of messages that may wait to be read before nothing more is read from the stream. Default: 1,000. */
  readonly highWaterMark?: number;
}

/** Options of a DISCONNECT. */
export interface DisconnectOptions {
  /** The reason code (MQTT 5.0). Default: 0; with 0x04 the server publishes the will. */
  readonly reasonCode?: number;
  /** Properties of the DISCONNECT (MQTT 5.0). */
  readonly properties?: Properties;
}

/** A message that the client received. */
export interface ReceivedMessage {
  /** Topic name. Topic aliases are resolved. */
  readonly topic: string;
  /** The payload; empty if the message has none. */
  readonly payload: Buffer;
  /** The QoS at which it was delivered, which is not above that of the subscription. */
  readonly qos: QoS;
  /** True if it is a retained message that was sent because of a new subscription; with Retain As Published, if it was published with that flag. */
  readonly retain: boolean;
  /** True if the packet may have been sent before (DUP). */
  readonly dup: boolean;
  /** Packet id; 0 for QoS 0. */
  readonly messageId: number;
  /** The properties of the PUBLISH (MQTT 5.0); empty before. */
  readonly properties: Properties;
  /** Acknowledge a QoS 1 or 2 message, or refuse it with a code from 0x80. Has no effect on a message that is already acknowledged. */
  ack(reasonCode?: number): void;
}

/** A handler for messages. If it throws or returns a promise that rejects, the client emits `error`. */
export type MessageHandler = (message: ReceivedMessage) => void;

/** The events of `client.on`. */
export interface ClientEvents {
  /** A message was received. */
  message: ReceivedMessage;
  /** Every packet sent or received, in order. */
  packet: {
    /** `sent` by this client, or `received` from the server. */
    readonly direction: 'sent' | 'received';
    /** The packet, decoded. */
    readonly packet: Packet;
  };
  /** The server sent DISCONNECT (MQTT 5.0). */
  disconnect: {
    /** The reason code of the DISCONNECT. */
    readonly reasonCode: number;
    /** The properties of the DISCONNECT, such as `reasonString`. */
    readonly properties: Properties;
  };
  /**
   * The connection is closed. This is the last event.
   *
   * `error` is undefined if the connection was closed normally. Otherwise it is Refused CONNECT_REFUSED or DISCONNECTED, BrokerError
   * KEEPALIVE_TIMEOUT, a ProtocolError caused by the server, the error that `onAuth` threw, the reason of the signal, or the error of the
   * stream.
   */
  close: {
    /** The reason; undefined if the connection was closed normally. */
    readonly error: Error | undefined;
  };
  /**
   * A listener or handler threw or rejected, or the server violated the protocol. If this event has no listener, an error thrown by a
   * listener or handler is an uncaught exception.
   */
  error: Error;
}

/**
 * The server refused an operation, or closed the connection with a reason code.
 *
 * `code` is CONNECT_REFUSED, PUBLISH_REFUSED, SUBSCRIBE_REFUSED or DISCONNECTED. DISCONNECTED is the error of the event `close`, and the cause of the
 * CONNECTION_CLOSED with which pending operations reject. `reasonCode` is an MQTT 5.0 code from 0x80 (return codes of 3.x are translated);
 * with DISCONNECTED it may also be 0.
 */
export class Refused extends BrokerError {
  /** The reason code, as in MQTT 5.0. */
  readonly reasonCode: number;
  /** The properties of the packet with the refusal; empty before MQTT 5.0. */
  readonly properties: Properties;

  constructor(code: string, message: string, reasonCode: number, properties: Properties = {}) {
    super(code, message);
    this.reasonCode = reasonCode;
    this.properties = properties;
  }
}
