// The client uses only the members of `ByteStream`, so it runs over sockets and local streams alike. Reading stops
// while the application has too many unread messages, unless it waits for a response: that response is behind the
// messages in the stream, and would never arrive. Parts that many clients never use are created at their first use.
// `#closed` ends every part, so each pending promise is rejected when the connection closes.

import type { Duplex } from 'node:stream';
import { onAbort } from '../base/abort-listeners.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { asError, BrokerError, InvalidInput, ProtocolError } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import { consoleText, defineAsyncDispose, INSPECT, inOneLine, namedOf } from '../base/symbols.ts';
import { checkPropertyPlacement, type MessageInput, PUBLISH_OPTION_NAMES } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { ConnackPacket, DisconnectPacket, Packet, ProtocolVersion, PublishPacket } from '../packets/types.ts';
import { VERSION_NAMES } from '../packets/version-names.ts';
import { ClientAuthentication } from './authentication.ts';
import { ClientConnection } from './connection.ts';
import { Inbox } from './inbox.ts';
import { IncomingMessages } from './incoming-messages.ts';
import { KeepAlive } from './keep-alive.ts';
import { type ClientListener, Listeners } from './listeners.ts';
import {
  checkClientOptions,
  checkDisconnectOptions,
  checkListener,
  checkMessagesOptions,
  checkRespond
} from './option-check.ts';
import type {
  AuthAnswer,
  ClientEvents,
  ClientOptions,
  DisconnectOptions,
  FilterInput,
  MessageHandler,
  MessagesOptions,
  PublishOptions,
  PublishResult,
  ReceivedMessage,
  RequestHandler,
  RequestOptions,
  RespondOptions,
  SubscribeOptions,
  UnsubscribeOptions
} from './options.ts';
import { OutgoingMessages } from './outgoing-messages.ts';
import { connectPacket, publishPacket } from './packets.ts';
import type { Pending } from './pending.ts';
import { refusal } from './refusal.ts';
import { ClientRequests, responding } from './requests.ts';
import { ClientSession } from './session.ts';
import { ClientSubscriptions } from './subscriptions.ts';

defineAsyncDispose();

const DEFAULT_HIGH_WATER_MARK = 1_000;

/**
 * Connect a client over a stream: send CONNECT, perform enhanced authentication, and wait for the CONNACK.
 *
 * If this throws, the stream is destroyed.
 * @returns the connected client
 * @throws Refused CONNECT_REFUSED with the reason code of the CONNACK; BrokerError CONNECTION_CLOSED if the stream closes before; the
 *   reason of the signal if it aborts; InvalidInput OPTION_UNKNOWN, OPTION_INVALID, DURATION_INVALID
 */
export function connectClient(stream: Duplex, options: ClientOptions = {}): Promise<Client> {
  return connectOver(stream, options);
}

/** The options of a client, without those of its stream. They are copied only if necessary. */
export function clientOptionsOf(options: ClientOptions & { readonly transportInfo?: unknown }): ClientOptions {
  if (!('transportInfo' in options)) return options;
  const { transportInfo: _, ...rest } = options;
  return rest;
}

/** See `connectClient`. */
export async function connectOver(stream: ByteStream, options: ClientOptions): Promise<Client> {
  if (typeof (stream as ByteStream | null | undefined)?.write !== 'function' || typeof stream.destroy !== 'function')
    throw new InvalidInput('OPTION_INVALID', 'stream', 'a Duplex stream, such as a socket', stream);
  let client: Client;
  try {
    checkClientOptions(options);
    client = new Client(stream as Duplex, options); // it uses only the members of ByteStream
  } catch (error) {
    stream.destroy();
    throw error;
  }
  return client.opened();
}

/**
 * An MQTT client in this process, with a full session over a stream, for any version of MQTT.
 *
 * It uses the packet codec of the broker. Its only timer is the one for keep alive.
 */
export class Client {
  /** 3 is MQTT 3.1, 4 is MQTT 3.1.1, 5 is MQTT 5.0. */
  readonly protocolVersion: ProtocolVersion;
  /** The session state of the client. Pass it to the next connect with the same client id to complete unfinished deliveries. */
  readonly session: ClientSession;
  readonly #options: ClientOptions;
  readonly #connection: ClientConnection;
  readonly #listeners = new Listeners();
  readonly #inbox: Inbox;
  readonly #outgoing: OutgoingMessages;
  readonly #incoming: IncomingMessages;
  readonly #authentication: ClientAuthentication;
  readonly #releaseSignal: () => void;
  // Parts that many clients of a test never use. They are created at their first use.
  #subscriptions: ClientSubscriptions | undefined = undefined;
  #keepAlive: KeepAlive | undefined = undefined;
  #requests: ClientRequests | undefined = undefined;
  #connecting: Pending<Client> | undefined;

  /** Use `connectClient` or `broker.connect` instead. */
  constructor(stream: Duplex, options: ClientOptions) {
    this.#options = options;
    this.session = options.session ?? new ClientSession();
    this.#inbox = new Inbox(
      (handler, message) => this.#listeners.run(handler, message),
      () => this.#connection.updateFlow(),
      options.acknowledge === 'manual'
    );
    this.#connection = new ClientConnection(stream, options, clockOf(options), {
      seen: (direction, packet) => this.#listeners.emit('packet', { direction, packet }),
      receive: (packet) => this.#receive(packet),
      failed: (error) => this.#fail(error),
      drained: () => this.#outgoing.drained(),
      closed: () => this.#closed(),
      isReading: () => !this.#inbox.isFull || this.#isAwaiting()
    });
    this.protocolVersion = this.#connection.version;
    this.#outgoing = new OutgoingMessages(this.#connection, this.session);
    this.#incoming = new IncomingMessages(this.#connection, this.session, (message) => this.#deliver(message), options);
    this.#authentication = new ClientAuthentication(this.#connection, options);
    this.#releaseSignal = onAbort(options.signal, this.#abort);
    if (options.signal?.aborted) this.#abort();
    else this.#connection.send(connectPacket(options, this.protocolVersion));
    stream.resume(); // the stream may have been paused
  }

  /** Wait until the client is connected. @internal */
  opened(): Promise<Client> {
    return new Promise((resolve, reject) => {
      this.#connecting = { resolve, reject };
      this.#connection.closeIfEnded();
    });
  }

  /** The client id that was requested, or the one that the broker assigned. */
  get clientId(): string {
    return this.#connection.clientId;
  }

  /**
   * The server's CONNACK.
   *
   * `reasonCode` is always 0, because a refusal causes the error `Refused` CONNECT_REFUSED. The `reasonCode` of that error is an MQTT 5.0
   * code in every version; the return codes of 3.x are translated: 1 to 0x84, 2 to 0x85, 3 to 0x88, 4 to 0x86, 5 to 0x87. `sessionPresent`
   * is always false in MQTT 3.1, and `properties` is undefined before MQTT 5.0.
   */
  get connack(): ConnackPacket {
    return this.#connection.connack!;
  }

  /** True if the client has received its CONNACK and the connection is open. */
  get isConnected(): boolean {
    return this.#connection.isConnected;
  }

  /**
   * Publish a message.
   *
   * The promise resolves at once for QoS 0 (or when the stream drains, if its buffer is full), with the PUBACK for QoS 1, and with the
   * PUBCOMP for QoS 2. Messages beyond the server's Receive Maximum are queued.
   * @throws Refused PUBLISH_REFUSED for a reason code of 0x80 and above; InvalidInput OPTION_UNKNOWN, TOPIC_NAME_INVALID, MESSAGE_INVALID;
   *   BrokerError NOT_CONNECTED, PACKET_TOO_LARGE (larger than the server accepts), or CONNECTION_CLOSED if the connection closes before
   *   the acknowledgement
   */
  publish(
    topic: string | (MessageInput & PublishOptions),
    payload?: Buffer | Uint8Array | string,
    options?: PublishOptions
  ): Promise<PublishResult> {
    return this.#publish(() => {
      if (options !== undefined) {
        checkObject(options, 'options');
        checkNames(options, PUBLISH_OPTION_NAMES, 'publish');
      }
      const isWhole = typeof topic === 'object' && topic !== null;
      if (isWhole) checkPropertyPlacement(topic);
      return publishPacket(isWhole ? topic : { ...options, topic, payload });
    });
  }

  #publish(make: () => PublishPacket): Promise<PublishResult> {
    return new Promise((resolve, reject) => {
      const packet = make();
      this.#connection.checkConnected();
      this.#connection.checkSize(packet);
      this.#outgoing.publish(packet, { resolve, reject });
    });
  }

  /**
   * Publish a request, and wait for its response (MQTT 5.0, section 4.10). Responses are not passed to listeners and iterators.
   *
   * The response topic is the Response Information of the server (followed by `response` if it ends with a slash), otherwise
   * `$client/<client id>/response`, with `%`, `/`, `+` and `#` of the client id as `%25` and so on.
   * @param payload default: empty
   * @returns the response
   * @throws BrokerError NO_SUBSCRIBERS as soon as the server says so; REQUEST_TIMEOUT; RESPONDER_FAILED if the handler of the responder has
   *   failed; the reason of the signal; Refused PUBLISH_REFUSED or SUBSCRIBE_REFUSED; InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID,
   *   OPTION_UNKNOWN, OPTION_INVALID, DURATION_INVALID; BrokerError MQTT_5_REQUIRED, NOT_CONNECTED, PACKET_TOO_LARGE, QUOTA_EXCEEDED with
   *   10,000 pending requests, or CONNECTION_CLOSED if the connection closes before the response
   */
  async request(
    topic: string,
    payload?: Buffer | Uint8Array | string,
    options: RequestOptions = {}
  ): Promise<ReceivedMessage> {
    checkVersion(this, 'request');
    return this.#useRequests().request(topic, payload, options);
  }

  /** The number of responses that came after their request had ended, or to no request of this client. They are ignored. */
  get lateResponses(): number {
    return this.#requests?.late ?? 0;
  }

  /**
   * Respond to requests (MQTT 5.0, section 4.10): publish what the handler returns to the response topic of each message of a filter. If the
   * handler throws or rejects, the client emits `error`, if that has a listener, and the response has the user property `response-error`
   * with the `code` of the error, otherwise `RESPONDER_FAILED`. With `acknowledge: 'manual'`, a request is acknowledged after its response.
   * @returns a function that stops responding
   * @throws Refused SUBSCRIBE_REFUSED; BrokerError MQTT_5_REQUIRED; InvalidInput HANDLER_INVALID; as `subscribe`
   */
  async respond(filter: string, handler: RequestHandler, options: RespondOptions = {}): Promise<() => Promise<void>> {
    checkVersion(this, 'respond');
    checkRespond(handler, options);
    const failed = (error: Error) => this.#listeners.emit('error', error);
    const respond = responding(handler, this.#connection, this.#send, failed);
    const [code] = await this.subscribe(filter, { qos: options.qos ?? 1, retainHandling: 2 }, respond);
    if (code >= 0x80) throw refusal('SUBSCRIBE_REFUSED', `the subscription to "${filter}" was refused`, code, {});
    return async () => void (this.isConnected && (await this.unsubscribe(filter, respond)));
  }

  /**
   * Subscribe to topic filters.
   *
   * `handler` is called for the messages that match these filters, in addition to the listeners of `message`. A client has one subscription
   * per filter: subscribing again replaces its options and adds the handler to the existing ones.
   * @returns one code per filter: the granted QoS, or a failure from 0x80
   * @throws InvalidInput TOPIC_FILTER_INVALID for a filter that is not well-formed, OPTION_UNKNOWN, OPTION_INVALID; BrokerError
   *   NOT_CONNECTED, PACKET_TOO_LARGE, PACKET_IDS_EXHAUSTED, or CONNECTION_CLOSED if the connection closes before the SUBACK
   */
  subscribe(
    filters: string | FilterInput | readonly (string | FilterInput)[],
    options: SubscribeOptions | MessageHandler = {},
    handler?: MessageHandler
  ): Promise<readonly number[]> {
    return this.#useSubscriptions().subscribe(filters, options, handler);
  }

  /**
   * Unsubscribe from topic filters and remove their handlers.
   *
   * If a handler is passed, only this handler is removed, and only the subscriptions that have no other handler are ended.
   * @returns one code per filter: 0, or in MQTT 5.0 also 0x11 if there was no such subscription
   * @throws InvalidInput TOPIC_FILTER_INVALID for a filter that is not well-formed, OPTION_UNKNOWN, OPTION_INVALID; BrokerError
   *   NOT_CONNECTED, PACKET_TOO_LARGE, PACKET_IDS_EXHAUSTED, or CONNECTION_CLOSED if the connection closes before the UNSUBACK
   */
  unsubscribe(
    filters: string | readonly string[],
    options: UnsubscribeOptions | MessageHandler = {}
  ): Promise<readonly number[]> {
    return this.#useSubscriptions().unsubscribe(filters, options);
  }

  /**
   * Add a listener.
   *
   * The newest 1,000 messages that arrived before there was a handler, listener or iterator are passed to the first listener of `message`.
   * Older ones are acknowledged and lost, also if the server has more messages queued for a resumed session. With `acknowledge: 'manual'`, all
   * messages of QoS 1 and 2 are kept.
   * @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID
   */
  on<E extends keyof ClientEvents>(event: E, listener: ClientListener<E>): this {
    checkListener(event, listener);
    if (event === 'message') this.#inbox.addListener(listener as MessageHandler);
    else this.#listeners.add(event, listener);
    return this;
  }

  /** Remove a listener. */
  off<E extends keyof ClientEvents>(event: E, listener: ClientListener<E>): this {
    if (event === 'message') this.#inbox.removeListener(listener as MessageHandler);
    this.#listeners.remove(event, listener);
    return this;
  }

  /**
   * Iterate over the messages that the client receives, starting with those that have had no listener yet.
   *
   * The iteration ends with the connection. It rejects with the reason of the signal if that aborts. While `highWaterMark` messages
   * (default: 1,000) are waiting to be read, nothing more is read from the stream, unless an operation is waiting for its response.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
   */
  messages(options: MessagesOptions = {}): AsyncIterableIterator<ReceivedMessage> {
    checkMessagesOptions(options);
    return this.#inbox.iterate(options.highWaterMark ?? DEFAULT_HIGH_WATER_MARK, options.signal);
  }

  /**
   * Send a PINGREQ and wait for the PINGRESP.
   *
   * A server processes packets in order, so the PINGRESP confirms that it has received everything sent before, including QoS 0 messages.
   * @throws BrokerError NOT_CONNECTED, or CONNECTION_CLOSED if the connection closes before the PINGRESP
   */
  ping(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#connection.checkConnected();
      this.#useKeepAlive().ping({ resolve, reject });
    });
  }

  /**
   * Re-authenticate with the method of the CONNECT (MQTT 5.0), and wait until the server accepts.
   *
   * `onAuth` answers the challenges of the server.
   * @param answer the Authentication Data of the first AUTH, or its properties
   * @throws BrokerError NOT_CONNECTED, or CONNECTION_CLOSED if the connection closes before, as it does if the server refuses; StateError
   *   REAUTHENTICATION_UNDER_WAY
   */
  reauthenticate(answer?: AuthAnswer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#connection.checkConnected();
      this.#authentication.repeat(answer, { resolve, reject });
    });
  }

  /** Send DISCONNECT, end the stream, and wait until it is closed. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
  async disconnect(options: DisconnectOptions = {}): Promise<void> {
    checkDisconnectOptions(options);
    if (this.#connection.isClosed) return;
    const closed = new Promise<void>((resolve) => this.on('close', () => resolve()));
    if (!this.#connection.isClosing) {
      this.#connection.send({
        cmd: 'disconnect',
        reasonCode: options.reasonCode ?? 0,
        properties: options.properties
      });
      this.#connection.end();
    }
    await closed;
  }

  /** Close the connection without a DISCONNECT, so that the broker publishes the will. */
  destroy(): void {
    this.#connection.destroy();
  }

  /** Call `disconnect()` without options. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.disconnect();
  }

  /** @internal */
  [INSPECT](depth: number, options: object): string {
    return consoleText('Client', depth, options, ({ quoted, state, count }) => {
      const { isClosing, connack, failure, clientId } = this.#connection;
      const isOpen = connack === undefined ? 'connecting' : 'connected';
      const why = failure === undefined ? '' : `: ${inOneLine(failure.message)}`;
      const begun = connack?.sessionPresent ? 'session resumed' : 'new session';
      const filters = [...this.session.subscribed];
      const list = filters.length === 0 ? '' : `: ${namedOf(filters.map(quoted))}`;
      return [
        `${quoted(clientId)} ${isClosing ? `${state('closed')}${why}` : state(isOpen)}`,
        `${VERSION_NAMES[this.protocolVersion]}${connack === undefined ? '' : `, ${begun}`}`,
        `${count(filters.length, 'subscription')}${list}`
      ];
    });
  }

  readonly #send = (packet: PublishPacket) => this.#publish(() => packet);
  readonly #abort = (): void => this.#connection.destroy(asError(this.#options.signal?.reason));

  #deliver(message: ReceivedMessage): void {
    if (this.#requests?.take(message) !== true) this.#inbox.deliver(message);
  }

  #receive(packet: Packet): void {
    if (this.#connection.connack === undefined && packet.cmd !== 'connack' && packet.cmd !== 'auth') {
      throw new ProtocolError(ReasonCode.protocolError, `${packet.cmd}: the server must send CONNACK first`);
    }
    switch (packet.cmd) {
      case 'connack':
        this.#onConnack(packet);
        break;
      case 'publish':
        this.#incoming.receive(packet);
        break;
      case 'puback':
      case 'pubrec':
      case 'pubcomp':
        this.#outgoing.acknowledged(packet);
        break;
      case 'pubrel':
        this.#incoming.released(packet.messageId);
        break;
      case 'suback':
      case 'unsuback':
        this.#useSubscriptions().answered(packet);
        break;
      case 'pingresp':
        this.#keepAlive?.answered();
        break;
      case 'auth':
        this.#authentication.receive(packet);
        break;
      case 'disconnect':
        this.#onDisconnect(packet);
    }
  }

  #onConnack(packet: ConnackPacket): void {
    const { reasonCode, properties = {} } = packet;
    if (this.#connection.connack !== undefined)
      throw new ProtocolError(ReasonCode.protocolError, 'CONNACK: the server sent a second one');
    if (reasonCode >= 0x80) {
      this.#connection.refuse(refusal('CONNECT_REFUSED', 'CONNECT was refused', reasonCode, properties));
      return;
    }
    this.#connection.accepted(packet);
    const keepAliveSec = properties.serverKeepAlive ?? this.#options.keepalive ?? 0;
    if (keepAliveSec > 0) this.#useKeepAlive().start(1000 * keepAliveSec);
    this.#outgoing.begin(packet.sessionPresent, properties.receiveMaximum);
    if (this.session.hasRequested) this.#useRequests(); // late responses are not messages
    this.#connecting?.resolve(this);
    this.#connecting = undefined;
  }

  #onDisconnect({ reasonCode, properties = {} }: DisconnectPacket): void {
    this.#listeners.emit('disconnect', { reasonCode, properties });
    this.#connection.refuse(refusal('DISCONNECTED', 'the server ended the connection', reasonCode, properties));
  }

  #fail(error: Error): void {
    const reasonCode = error instanceof ProtocolError ? error.reasonCode : ReasonCode.unspecifiedError;
    const isAccepted = this.#connection.connack !== undefined;
    if (this.protocolVersion === 5 && isAccepted) this.#connection.send({ cmd: 'disconnect', reasonCode });
    this.#connection.refuse(error);
    if (isAccepted) this.#listeners.emit('error', error);
  }

  /** Tell whether the application waits for a response of the server. */
  #isAwaiting(): boolean {
    return (
      this.#outgoing.isAwaited ||
      this.#subscriptions?.isAwaited === true ||
      this.#keepAlive?.isAwaited === true ||
      this.#requests?.isAwaited === true ||
      this.#authentication.isAwaited
    );
  }

  #useSubscriptions(): ClientSubscriptions {
    this.#subscriptions ??= new ClientSubscriptions(this.#connection, this.session, this.#inbox);
    return this.#subscriptions;
  }

  #useRequests(): ClientRequests {
    const [clock, subscriptions] = [clockOf(this.#options), this.#useSubscriptions()];
    return (this.#requests ??= new ClientRequests(this.#connection, this.session, clock, subscriptions, this.#send));
  }

  #useKeepAlive(): KeepAlive {
    this.#keepAlive ??= new KeepAlive(this.#connection, clockOf(this.#options));
    return this.#keepAlive;
  }

  #closed(): void {
    const { signal } = this.#options;
    this.#releaseSignal();
    this.session.detach();
    this.#connecting?.reject(signal?.aborted ? (signal.reason as Error) : this.#connection.closedError());
    this.#outgoing.close();
    this.#subscriptions?.close();
    this.#keepAlive?.close();
    this.#requests?.close();
    this.#authentication.close();
    this.#inbox.close();
    this.#listeners.emit('close', { error: this.#connection.failure });
  }
}

/** @throws BrokerError MQTT_5_REQUIRED */
function checkVersion({ protocolVersion, clientId }: Client, what: string): void {
  if (protocolVersion !== 5) throw new BrokerError('MQTT_5_REQUIRED', `${what}: client "${clientId}" uses MQTT 3.x`);
}

/** The clock for the timers of a client. */
function clockOf({ clock }: ClientOptions): Clock {
  return clock?.internal ?? clock ?? systemClock;
}
