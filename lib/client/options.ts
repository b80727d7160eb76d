import type { Clock } from '../clock.ts';
import { BrokerError } from '../errors.ts';
import type { Duration } from '../options-table.ts';
import type { MessageInput } from '../packets/message.ts';
import type { Packet, Properties, ProtocolVersion, QoS } from '../packets/types.ts';
import type { ClientSession } from './session.ts';

/** A will as the in-process client takes it. */
export interface WillInput extends Omit<MessageInput, 'properties'> {
  readonly properties?: Properties;
}

/** One round of enhanced authentication, as the server asked for it. */
export interface AuthChallenge {
  /** 0x18: go on with another AUTH. */
  readonly reasonCode: number;
  readonly method: string | undefined;
  readonly data: Buffer | undefined;
  readonly properties: Properties;
}

/** What a client of this process connects with. */
export interface ClientOptions {
  /** Default: empty, the broker assigns one. */
  readonly clientId?: string;
  /** Clean start; clean session before MQTT 5.0. Default true. */
  readonly clean?: boolean;
  /** 3: MQTT 3.1, 4: MQTT 3.1.1, 5: MQTT 5.0. Default 5. */
  readonly protocolVersion?: ProtocolVersion;
  /** Whole seconds up to 65,535; default 0: off. A Server Keep Alive takes its place. */
  readonly keepalive?: number;
  readonly username?: string;
  readonly password?: Buffer | string;
  readonly will?: WillInput;
  /** Properties of the CONNECT (MQTT 5.0). The options below that name one are shorthands. */
  readonly properties?: Properties;
  /** How long the session outlives the connection: whole seconds, or text such as `1h`; `Infinity`: for ever. */
  readonly sessionExpiry?: Duration;
  /** QoS 1 and 2 messages the broker may send before the first is acknowledged. */
  readonly receiveMaximum?: number;
  /** Bytes of the largest packet taken. */
  readonly maximumPacketSize?: number;
  /** Topic aliases the broker may set. */
  readonly topicAliasMaximum?: number;
  /**
   * Answers the rounds of enhanced authentication (the method goes into `properties.authenticationMethod`). What it returns becomes the
   * Authentication Data of the answer. When it throws, the connection ends.
   */
  readonly onAuth?: (challenge: AuthChallenge) => Buffer | undefined | Promise<Buffer | undefined>;
  /** `manual`: QoS 1 and 2 messages are acknowledged by `message.ack()`. Default `auto`: as they come. */
  readonly acknowledge?: 'auto' | 'manual';
  /** State of an earlier client (`client.session`) with the same client id, so that its unfinished messages go on. */
  readonly session?: ClientSession;
  /** Time of the keep alive; the broker's, or the machine's. */
  readonly clock?: Clock;
  /** Aborting gives up connecting, and cuts the connection later on. */
  readonly signal?: AbortSignal;
}

/** Options of a PUBLISH. */
export interface PublishOptions {
  /** Default 0. */
  readonly qos?: QoS;
  /** Default false. */
  readonly retain?: boolean;
  /** Properties of the PUBLISH (MQTT 5.0); a topic alias is sent as given. */
  readonly properties?: Properties;
}

/** What acknowledged a PUBLISH: PUBACK, or PUBCOMP for QoS 2 (then the properties are those of the PUBREC). */
export interface PublishResult {
  /** 0x00, or 0x10: no subscriber. Always 0 for QoS 0 and before MQTT 5.0. */
  readonly reasonCode: number;
  readonly properties: Properties;
}

/** A topic filter with options of its own. */
export interface FilterInput {
  readonly topic: string;
  readonly qos?: QoS;
  /** No Local */
  readonly noLocal?: boolean;
  /** Retain As Published */
  readonly retainAsPublished?: boolean;
  /** Retain Handling */
  readonly retainHandling?: 0 | 1 | 2;
}

/** Options of a SUBSCRIBE, for the filters that do not bring their own. */
export interface SubscribeOptions extends Omit<FilterInput, 'topic'> {
  /** Subscription identifier and user properties (MQTT 5.0). */
  readonly properties?: Properties;
}

/** A message as it reached the client. */
export interface ReceivedMessage {
  /** Topic name; an alias is resolved. */
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: QoS;
  readonly retain: boolean;
  readonly dup: boolean;
  readonly properties: Properties;
  /** Acknowledge a QoS 1 or 2 message, once; with a code of 0x80 or above to refuse it. Without effect when that was done automatically. */
  ack(reasonCode?: number): void;
}

/** Hears messages. What it throws, or rejects with where it is asynchronous, goes to the client's `error` event. */
export type MessageHandler = (message: ReceivedMessage) => void;

/** What `client.on` can hear. */
export interface ClientEvents {
  message: ReceivedMessage;
  /** Every packet, in the order of the wire. */
  packet: { readonly direction: 'sent' | 'received'; readonly packet: Packet };
  /** The server's DISCONNECT (MQTT 5.0). */
  disconnect: { readonly reasonCode: number; readonly properties: Properties };
  /**
   * The connection is gone; nothing follows. `error` is undefined where it was simply closed, else Refused CONNECT_REFUSED or DISCONNECTED,
   * BrokerError KEEPALIVE_TIMEOUT, a ProtocolError of the server, what `onAuth` threw, the reason of the signal, or the stream's own.
   */
  close: { readonly error: Error | undefined };
  /**
   * A listener or handler threw or rejected, or the server broke the protocol. Without a listener what a listener threw is an uncaught
   * exception.
   */
  error: Error;
}

/**
 * The server refused an operation, or ended the connection with a reason. `code` is CONNECT_REFUSED, PUBLISH_REFUSED or DISCONNECTED;
 * the last one is the error of the event `close`, and the cause of the CONNECTION_CLOSED that waiting operations reject with. `reasonCode`
 * is that of MQTT 5.0: 0x80 or above (return codes of 3.x are translated), with DISCONNECTED also 0.
 */
export class Refused extends BrokerError {
  readonly reasonCode: number;
  readonly properties: Properties;

  constructor(code: string, message: string, reasonCode: number, properties: Properties = {}) {
    super(code, message);
    this.reasonCode = reasonCode;
    this.properties = properties;
  }
}
