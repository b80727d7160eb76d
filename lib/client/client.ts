import '../base/async-dispose.ts';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers';
import { type Clock, systemClock } from '../base/clock.ts';
import { BrokerError, InvalidInput, ProtocolError, StateError } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/options-table.ts';
import { asError } from '../events/events.ts';
import { SUBSCRIPTION_NAMES } from '../events/subscription-options.ts';
import { encode } from '../packets/encode.ts';
import { checkPropertyPlacement, type MessageInput, PUBLISH_OPTION_NAMES } from '../packets/message.ts';
import { PacketReader } from '../packets/packet-reader.ts';
import { ReasonCode, reasonName } from '../packets/reason-codes.ts';
import type {
  AckPacket,
  AuthPacket,
  ConnackPacket,
  ConnectPacket,
  DisconnectPacket,
  Packet,
  Properties,
  ProtocolVersion,
  PublishPacket,
  SubackPacket,
  UnsubackPacket
} from '../packets/types.ts';
import { checkTopicName, filterFault } from '../topics/topic.ts';
import { Inbox } from './inbox.ts';
import {
  checkClientOptions,
  checkDisconnectOptions,
  checkListener,
  checkMessagesOptions,
  checkUnsubscribeOptions,
  sessionExpirySec
} from './option-check.ts';
import {
  type ClientEvents,
  type ClientOptions,
  type FilterInput,
  type MessageHandler,
  type PublishOptions,
  type PublishResult,
  type ReceivedMessage,
  Refused,
  type SubscribeOptions
} from './options.ts';
import { ClientSession, type Outgoing } from './session.ts';

const DEFAULT_HIGH_WATER_MARK = 1_000;

/** A listener for an event of a client. */
export type ClientListener<E extends keyof ClientEvents> = (event: ClientEvents[E]) => void;

interface Pending<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}

/**
 * Connect a client over a stream: send CONNECT, perform enhanced authentication, and wait for the CONNACK.
 *
 * If this throws, the stream is destroyed.
 * @returns the connected client
 * @throws Refused CONNECT_REFUSED with the reason code of the CONNACK; BrokerError CONNECTION_CLOSED if the stream closes before; the
 *   reason of the signal if it aborts; InvalidInput OPTION_UNKNOWN, OPTION_INVALID, DURATION_INVALID
 */
export async function connectClient(stream: Duplex, options: ClientOptions = {}): Promise<Client> {
  let client: Client;
  try {
    checkClientOptions(options);
    client = new Client(stream, options);
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
  readonly #stream: Duplex;
  readonly #options: ClientOptions;
  readonly #clock: Clock;
  readonly #reader: PacketReader;
  readonly #inbox: Inbox;
  readonly #listeners: { [E in keyof ClientEvents]?: ClientListener<E>[] } = {};
  readonly #publishing = new Map<number, Pending<PublishResult> & { properties?: Properties }>();
  readonly #requests = new Map<number, Pending<SubackPacket | UnsubackPacket>>();
  /** QoS 1 and 2 messages that exceed the server's Receive Maximum, or for which no packet id is free. */
  #queued: (Pending<PublishResult> & { readonly packet: PublishPacket })[] = [];
  /** QoS 0 messages that were written while the stream's buffer was full; they resolve when it drains. */
  #draining: Pending<PublishResult>[] = [];
  readonly #aliases = new Map<number, string>();
  #connecting: Pending<Client> | undefined;
  #authenticating: Pending<void> | undefined;
  #connack: ConnackPacket | undefined;
  #clientId: string;
  #sendQuota = 65_535;
  #keepAliveMs = 0;
  #lastSentMs = 0;
  #resumedMs = -Infinity;
  /** PINGREQs without a PINGRESP, the oldest first; undefined for those that keep alive sent. */
  #pings: (Pending<void> | undefined)[] = [];
  #timer: unknown;
  #isClosing = false;
  #isClosed = false;
  #failure: Error | undefined;

  /** Use `connectClient` or `broker.connect` instead. */
  constructor(stream: Duplex, options: ClientOptions) {
    this.#stream = stream;
    this.#options = options;
    this.#clock = options.clock?.internal ?? options.clock ?? systemClock;
    this.#clientId = options.clientId ?? '';
    this.protocolVersion = options.protocolVersion ?? 5;
    this.session = options.session ?? new ClientSession();
    this.#inbox = new Inbox(
      (handler, message) => this.#run(handler, message),
      () => this.#updateFlow()
    );
    const maximumPacketSize = options.maximumPacketSize ?? options.properties?.maximumPacketSize;
    this.#reader = new PacketReader({ side: 'client', version: this.protocolVersion, maximumPacketSize });
    stream.on('data', (chunk: Buffer) => this.#read(chunk));
    stream.on('error', (error) => {
      this.#failure ??= error;
      stream.destroy();
      this.#closed(); // not every stream emits 'close'
    });
    stream.on('end', () => stream.destroy()); // also closes streams that allow half-open connections
    stream.on('drain', () => {
      for (const waiting of this.#draining.splice(0)) waiting.resolve(SENT);
    });
    stream.on('close', () => this.#closed());
    options.signal?.addEventListener('abort', this.#abort);
    if (options.signal?.aborted) this.#abort();
    else this.#send(connectPacket(options, this.protocolVersion));
    stream.resume(); // the stream may have been paused
  }

  /** Wait until the client is connected. @internal */
  opened(): Promise<Client> {
    return new Promise((resolve, reject) => {
      this.#connecting = { resolve, reject };
      const { destroyed, readableEnded, writableEnded, errored } = this.#stream;
      if (!destroyed && !readableEnded && !writableEnded) return;
      this.#failure ??= errored ?? undefined;
      this.#stream.destroy();
      this.#closed(); // a stream that is already closed does not emit 'close' again
    });
  }

  /** The client id that was requested, or the one that the broker assigned. */
  get clientId(): string {
    return this.#clientId;
  }

  /**
   * The server's CONNACK.
   *
   * `reasonCode` is always 0, because a refusal causes the error `Refused` CONNECT_REFUSED. The `reasonCode` of that error is an MQTT 5.0
   * code in every version; the return codes of 3.x are translated: 1 to 0x84, 2 to 0x85, 3 to 0x88, 4 to 0x86, 5 to 0x87. `sessionPresent`
   * is always false in MQTT 3.1, and `properties` is undefined before MQTT 5.0.
   */
  get connack(): ConnackPacket {
    return this.#connack!;
  }

  /** Whether the client has received its CONNACK and the connection is open. */
  get isConnected(): boolean {
    return this.#connack !== undefined && !this.#isClosing && !this.#isClosed && !this.#stream.destroyed;
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
    return new Promise((resolve, reject) => {
      if (options !== undefined) {
        checkObject(options, 'options');
        checkNames(options, PUBLISH_OPTION_NAMES, 'publish');
      }
      const isWhole = typeof topic === 'object' && topic !== null;
      if (isWhole) checkPropertyPlacement(topic);
      const packet = publishPacket(isWhole ? topic : { ...options, topic, payload });
      this.#checkConnected();
      this.#checkSize(packet);
      if (packet.qos > 0) {
        this.#queued.push({ packet, resolve, reject });
        this.#publishQueued();
      } else if (this.#send(packet)) resolve(SENT);
      else this.#draining.push({ resolve, reject });
    });
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
  async subscribe(
    filters: string | FilterInput | readonly (string | FilterInput)[],
    options: SubscribeOptions | MessageHandler = {},
    handler?: MessageHandler
  ): Promise<readonly number[]> {
    this.#checkConnected();
    const handle = typeof options === 'function' ? options : handler;
    if (typeof options !== 'function') {
      checkObject(options, 'options');
      checkNames(options, [...SUBSCRIPTION_NAMES, 'properties'], 'subscribe');
    }
    for (const filter of arrayOf(filters))
      if (typeof filter === 'object' && filter !== null)
        checkNames(filter, [...SUBSCRIPTION_NAMES, 'topic'], 'subscribe');
    const { properties, ...rest } = typeof options === 'function' ? {} : options;
    const subscriptions = arrayOf(filters).map((filter) => ({
      ...({ qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const),
      ...withoutUndefined(rest),
      ...(typeof filter === 'string' ? { topic: filter } : withoutUndefined(filter))
    }));
    checkFilters(
      subscriptions.map(({ topic }) => topic),
      this.protocolVersion
    );
    const unknown = subscriptions.find(({ qos }) => qos !== 0 && qos !== 1 && qos !== 2);
    if (unknown !== undefined) throw new InvalidInput('OPTION_INVALID', 'qos', '0, 1 or 2', unknown.qos);
    // Add the handlers before the SUBACK, because retained messages may arrive before it.
    const added = subscriptions.filter(({ topic }) => handle !== undefined && this.#inbox.addHandler(topic, handle));
    const forget = ({ topic }: FilterInput) => this.#inbox.removeHandler(topic, handle as MessageHandler);
    try {
      const { granted } = await this.#request((messageId) => ({
        cmd: 'subscribe',
        messageId,
        subscriptions,
        properties
      }));
      for (const one of added) if (granted[subscriptions.indexOf(one)] >= 0x80) forget(one);
      return granted;
    } catch (error) {
      for (const one of added) forget(one);
      throw error;
    }
  }

  /**
   * Unsubscribe from topic filters and remove their handlers.
   *
   * If a handler is passed, only this handler is removed, and only the subscriptions that have no other handler are ended.
   * @returns one code per filter: 0, or in MQTT 5.0 also 0x11 if there was no such subscription
   * @throws InvalidInput TOPIC_FILTER_INVALID for a filter that is not well-formed, OPTION_UNKNOWN, OPTION_INVALID; BrokerError
   *   NOT_CONNECTED, PACKET_TOO_LARGE, PACKET_IDS_EXHAUSTED, or CONNECTION_CLOSED if the connection closes before the UNSUBACK
   */
  async unsubscribe(
    filters: string | readonly string[],
    options: { readonly properties?: Properties } | MessageHandler = {}
  ): Promise<readonly number[]> {
    this.#checkConnected();
    if (typeof options !== 'function') checkUnsubscribeOptions(options);
    const asked = arrayOf(filters);
    checkFilters(asked, this.protocolVersion);
    const handle = typeof options === 'function' ? options : undefined;
    const properties = typeof options === 'function' ? undefined : options.properties;
    const needed = new Set(
      asked.filter((filter) => handle !== undefined && this.#inbox.removeHandler(filter, handle) > 0)
    );
    const unsubscriptions = asked.filter((filter) => !needed.has(filter));
    if (unsubscriptions.length === 0) return asked.map(() => 0);
    const removed = unsubscriptions.map((filter) => [filter, this.#inbox.handlersOf(filter)] as const);
    const { granted } = await this.#request((messageId) => ({
      cmd: 'unsubscribe',
      messageId,
      unsubscriptions,
      properties
    }));
    for (const [filter, handlers] of removed) for (const one of handlers) this.#inbox.removeHandler(filter, one);
    return asked.map((filter) => (this.protocolVersion === 5 ? granted[unsubscriptions.indexOf(filter)] : 0) ?? 0);
  }

  /**
   * Add a listener.
   *
   * The newest 1,000 messages that arrived before there was a handler, listener or iterator are passed to the first listener of `message`.
   * Older ones are acknowledged and lost, also if the server has more messages queued for a resumed session.
   * @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID
   */
  on<E extends keyof ClientEvents>(event: E, listener: ClientListener<E>): this {
    checkListener(event, listener);
    if (event === 'message') this.#inbox.addListener(listener as MessageHandler);
    else
      (this.#listeners[event] as ClientListener<E>[] | undefined) = [
        ...(this.#listeners[event] ?? []),
        listener
      ] as ClientListener<E>[];
    return this;
  }

  /** Remove a listener. */
  off<E extends keyof ClientEvents>(event: E, listener: ClientListener<E>): this {
    if (event === 'message') this.#inbox.removeListener(listener as MessageHandler);
    const known = this.#listeners[event] as ClientListener<E>[] | undefined;
    if (known?.includes(listener)) {
      (this.#listeners[event] as ClientListener<E>[]) = known.toSpliced(known.indexOf(listener), 1);
    }
    return this;
  }

  /**
   * Iterate over the messages that the client receives, beginning with those that have had no listener yet.
   *
   * The iteration ends with the connection. It rejects with the reason of the signal if that aborts. While `highWaterMark` messages
   * (default: 1,000) are waiting to be read, nothing more is read from the stream, unless an operation is waiting for its response.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
   */
  messages(
    options: { readonly signal?: AbortSignal; readonly highWaterMark?: number } = {}
  ): AsyncIterableIterator<ReceivedMessage> {
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
      this.#checkConnected();
      this.#pings.push({ resolve, reject });
      this.#send({ cmd: 'pingreq' });
      this.#updateFlow();
    });
  }

  /**
   * Re-authenticate with the method of the CONNECT (MQTT 5.0), and wait until the server accepts.
   *
   * `onAuth` answers the challenges of the server.
   * @throws BrokerError NOT_CONNECTED, or CONNECTION_CLOSED if the connection closes before, as it does if the server refuses; StateError
   *   REAUTHENTICATION_UNDER_WAY
   */
  reauthenticate(data?: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#checkConnected();
      if (this.#authenticating !== undefined) {
        throw new StateError(
          'REAUTHENTICATION_UNDER_WAY',
          'a re-authentication is already in progress; wait until it has ended'
        );
      }
      this.#authenticating = { resolve, reject };
      this.#send(this.#authPacket(ReasonCode.reAuthenticate, data));
    });
  }

  /** Send DISCONNECT, end the stream, and wait until it is closed. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
  async disconnect(options: { readonly reasonCode?: number; readonly properties?: Properties } = {}): Promise<void> {
    checkDisconnectOptions(options);
    if (this.#isClosed) return;
    const closed = new Promise<void>((resolve) => this.on('close', () => resolve()));
    if (!this.#isClosing) {
      this.#send({ cmd: 'disconnect', reasonCode: options.reasonCode ?? 0, properties: options.properties });
      this.#closeGracefully();
    }
    await closed;
  }

  /** Close the connection without a DISCONNECT, so that the broker publishes the will. */
  destroy(): void {
    this.#stream.destroy();
  }

  /** Call `disconnect()` without options. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.disconnect();
  }

  readonly #abort = (): void => {
    this.#failure = asError(this.#options.signal?.reason);
    this.#stream.destroy();
  };

  // ---- received packets

  #read(chunk: Buffer): void {
    try {
      this.#reader.feed(chunk);
      for (let packet = this.#reader.next(); packet !== undefined; packet = this.#reader.next()) {
        if (this.#isClosing || this.#isClosed) return;
        this.#emit('packet', { direction: 'received', packet });
        this.#receive(packet);
      }
    } catch (error) {
      this.#fail(asError(error));
    }
  }

  #receive(packet: Packet): void {
    if (this.#connack === undefined && packet.cmd !== 'connack' && packet.cmd !== 'auth') {
      throw new ProtocolError(ReasonCode.protocolError, `${packet.cmd}: the server must send CONNACK first`);
    }
    switch (packet.cmd) {
      case 'connack':
        this.#onConnack(packet);
        break;
      case 'publish':
        this.#onPublish(packet);
        break;
      case 'puback':
      case 'pubrec':
      case 'pubcomp':
        this.#onAcknowledgement(packet);
        break;
      case 'pubrel':
        this.#onPubrel(packet.messageId);
        break;
      case 'suback':
      case 'unsuback':
        this.session.answered(packet.messageId);
        takeEntry(this.#requests, packet.messageId)?.resolve(packet);
        break;
      case 'pingresp':
        this.#pings.shift()?.resolve();
        break;
      case 'auth':
        this.#onAuth(packet);
        break;
      case 'disconnect':
        this.#onDisconnect(packet);
    }
  }

  #onDisconnect({ reasonCode, properties = {} }: DisconnectPacket): void {
    const text = `the server ended the connection: ${reasonName(reasonCode)}${reasonSuffix(properties)}`;
    this.#failure = new Refused('DISCONNECTED', text, reasonCode, properties);
    this.#emit('disconnect', { reasonCode, properties });
    this.#closeAbruptly();
  }

  #onConnack(packet: ConnackPacket): void {
    const { reasonCode, properties = {} } = packet;
    if (this.#connack !== undefined)
      throw new ProtocolError(ReasonCode.protocolError, 'CONNACK: the server sent a second one');
    if (reasonCode >= 0x80) {
      const text = `CONNECT was refused: ${reasonName(reasonCode)}${reasonSuffix(properties)}`;
      this.#failure = new Refused('CONNECT_REFUSED', text, reasonCode, properties);
      this.#closeAbruptly();
      return;
    }
    this.#connack = packet;
    this.#clientId = properties.assignedClientIdentifier ?? this.#clientId;
    this.#sendQuota = properties.receiveMaximum ?? 65_535;
    this.#keepAliveMs = 1000 * (properties.serverKeepAlive ?? this.#options.keepalive ?? 0);
    if (this.#keepAliveMs > 0) this.#armKeepAlive(this.#keepAliveMs);
    if (packet.sessionPresent) this.#resend();
    else this.session.clear();
    this.#connecting?.resolve(this);
    this.#connecting = undefined;
  }

  #onPublish(packet: PublishPacket): void {
    const topic = this.#topicOf(packet);
    const { messageId = 0, payload, qos, retain, dup } = packet;
    if (qos === 2) {
      const wasAcknowledged = this.session.incoming.get(messageId);
      if (wasAcknowledged) this.#send({ cmd: 'pubrec', messageId, reasonCode: 0 });
      if (wasAcknowledged !== undefined) return; // a duplicate must not be delivered again [MQTT-4.3.3-10]
      this.session.incoming.set(messageId, false);
    }
    let isAcknowledged = qos === 0;
    const ack = (reasonCode = 0) => {
      if (isAcknowledged || this.#isClosing || this.#isClosed) return;
      isAcknowledged = true;
      if (qos === 2 && reasonCode >= 0x80) this.session.incoming.delete(messageId);
      else if (qos === 2) this.session.incoming.set(messageId, true);
      this.#send({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId, reasonCode });
    };
    const { topicAlias: _, ...properties } = packet.properties ?? {};
    if (this.#options.acknowledge !== 'manual') ack();
    this.#inbox.deliver({ topic, payload, qos, retain, dup, properties, ack });
  }

  #topicOf({ topic, properties }: PublishPacket): string {
    const alias = properties?.topicAlias;
    if (alias === undefined) return topic;
    const allowed = this.#options.topicAliasMaximum ?? this.#options.properties?.topicAliasMaximum ?? 0;
    const known = topic === '' ? this.#aliases.get(alias) : topic;
    if (alias > allowed || known === undefined) {
      throw new ProtocolError(
        ReasonCode.topicAliasInvalid,
        alias > allowed
          ? `topic alias ${alias}: greater than the Topic Alias Maximum of ${allowed}`
          : `topic alias ${alias}: not assigned to a topic name`
      );
    }
    this.#aliases.set(alias, known);
    return known;
  }

  #onPubrel(messageId: number): void {
    const isKnown = this.session.incoming.delete(messageId);
    const reasonCode = isKnown ? ReasonCode.success : ReasonCode.packetIdentifierNotFound;
    this.#send({ cmd: 'pubcomp', messageId, reasonCode });
  }

  #onAcknowledgement({ cmd, messageId, reasonCode, properties }: AckPacket): void {
    const outgoing = this.session.outgoing.get(messageId);
    if (cmd === 'pubrec' && reasonCode < 0x80) {
      const code = outgoing === undefined ? ReasonCode.packetIdentifierNotFound : ReasonCode.success;
      if (outgoing !== undefined) outgoing.isReleased = true;
      const waiting = this.#publishing.get(messageId);
      if (waiting !== undefined) waiting.properties = properties;
      this.#send({ cmd: 'pubrel', messageId, reasonCode: code });
      return;
    }
    if (outgoing === undefined) return;
    this.session.outgoing.delete(messageId);
    this.#sendQuota++;
    const waiting = takeEntry(this.#publishing, messageId);
    const replyProperties = waiting?.properties ?? properties ?? {};
    if (reasonCode < 0x80 || cmd === 'pubcomp')
      waiting?.resolve({ reasonCode: cmd === 'pubcomp' ? 0 : reasonCode, properties: replyProperties });
    else {
      const { topic } = outgoing.packet;
      const text = `PUBLISH to "${topic}" was refused: ${reasonName(reasonCode)}${reasonSuffix(replyProperties)}`;
      waiting?.reject(new Refused('PUBLISH_REFUSED', text, reasonCode, replyProperties));
    }
    this.#publishQueued();
  }

  #onAuth({ reasonCode, properties = {} }: AuthPacket): void {
    if (reasonCode === ReasonCode.success) {
      this.#authenticating?.resolve();
      this.#authenticating = undefined;
      return;
    }
    const { authenticationMethod: method, authenticationData: data } = properties;
    const answer = async () => this.#options.onAuth?.({ reasonCode, method, data, properties });
    answer()
      .then((reply) => this.#isClosed || this.#send(this.#authPacket(ReasonCode.continueAuthentication, reply)))
      .catch((error) => {
        this.#failure = asError(error);
        this.#stream.destroy();
      });
  }

  #authPacket(reasonCode: number, authenticationData: Buffer | undefined): AuthPacket {
    const authenticationMethod = this.#options.properties?.authenticationMethod;
    return { cmd: 'auth', reasonCode, properties: { authenticationMethod, authenticationData } };
  }

  // ---- sent packets

  /** Send a packet. @returns false if the stream's buffer is full */
  #send(packet: Packet): boolean {
    if (this.#isClosed || this.#stream.writableEnded || this.#stream.destroyed) return true;
    const bytes = encode(packet, this.protocolVersion);
    this.#lastSentMs = this.#clock.monotonic();
    this.#emit('packet', { direction: 'sent', packet });
    return bytes.length === 0 || this.#stream.write(bytes);
  }

  #publishQueued(): void {
    while (this.#queued.length > 0 && this.#sendQuota > 0 && this.isConnected) {
      const messageId = this.session.takeId();
      if (messageId === undefined) return;
      const { packet, resolve, reject } = this.#queued.shift()!;
      packet.messageId = messageId;
      this.#publishing.set(messageId, { resolve, reject });
      this.session.outgoing.set(messageId, { packet, isReleased: false });
      this.#sendQuota--;
      try {
        this.#send(packet);
      } catch (error) {
        // The packet cannot be encoded, so nothing was sent.
        this.#publishing.delete(messageId);
        this.session.outgoing.delete(messageId);
        this.#sendQuota++;
        reject(asError(error));
      }
    }
    this.#updateFlow();
  }

  /** Resend the messages that were not acknowledged, in their original order [MQTT-4.4.0-1]. */
  #resend(): void {
    for (const [messageId, outgoing] of this.session.outgoing) {
      this.#sendQuota--;
      this.#send(outgoing.isReleased ? { cmd: 'pubrel', messageId, reasonCode: 0 } : duplicateOf(outgoing));
    }
  }

  #request(make: (messageId: number) => Packet): Promise<SubackPacket | UnsubackPacket> {
    return new Promise((resolve, reject) => {
      const messageId = this.session.takeId();
      if (messageId === undefined)
        throw new BrokerError('PACKET_IDS_EXHAUSTED', 'all 65535 packet ids are in use; wait for acknowledgements');
      const packet = make(messageId);
      this.#checkSize(packet);
      this.session.asked(messageId);
      this.#requests.set(messageId, { resolve, reject });
      try {
        this.#send(packet);
      } catch (error) {
        this.session.answered(messageId);
        this.#requests.delete(messageId);
        throw error;
      }
      this.#updateFlow();
    });
  }

  #checkConnected(): void {
    if (!this.isConnected) throw new BrokerError('NOT_CONNECTED', `client "${this.#clientId}" is not connected`);
  }

  #checkSize(packet: Packet): void {
    const maximum = this.#connack?.properties?.maximumPacketSize;
    if (maximum === undefined) return;
    const size = encode({ ...packet, messageId: 1 } as Packet, this.protocolVersion).length;
    if (size > maximum)
      throw new BrokerError('PACKET_TOO_LARGE', `packet of ${size} bytes: the server accepts at most ${maximum} bytes`);
  }

  // ---- keep alive, flow control, closing

  #armKeepAlive(delayMs: number): void {
    this.#timer = this.#clock.setTimeout(() => {
      const nowMs = this.#clock.monotonic();
      const idleMs = nowMs - this.#lastSentMs;
      if (idleMs < this.#keepAliveMs) return this.#armKeepAlive(this.#keepAliveMs - idleMs);
      // A missing PINGRESP means nothing if the client has not read from the stream.
      const wasRead = !this.#stream.isPaused() && nowMs - this.#resumedMs >= this.#keepAliveMs;
      if (this.#pings.length > 0 && wasRead) {
        this.#failure = new BrokerError('KEEPALIVE_TIMEOUT', `no PINGRESP within ${this.#keepAliveMs} ms`);
        this.#stream.destroy();
        return;
      }
      this.#pings.push(undefined);
      this.#send({ cmd: 'pingreq' }); // [MQTT-3.1.2-20]
      this.#armKeepAlive(this.#keepAliveMs);
    }, delayMs);
  }

  /** Pause the stream while an iterator has reached its high water mark, unless an operation is waiting for its response. */
  #updateFlow(): void {
    const isWanted =
      !this.#inbox.isFull ||
      this.#isClosing ||
      this.#requests.size > 0 ||
      this.#publishing.size > 0 ||
      this.#pings.some((asking) => asking !== undefined) ||
      this.#authenticating !== undefined;
    if (isWanted === !this.#stream.isPaused() || this.#isClosed) return;
    if (!isWanted) {
      this.#stream.pause();
      return;
    }
    this.#resumedMs = this.#clock.monotonic();
    this.#stream.resume();
  }

  #closeGracefully(): void {
    this.#isClosing = true;
    this.#stream.end();
    this.#updateFlow(); // the end of the stream comes after the unread packets
  }

  #closeAbruptly(): void {
    this.#isClosing = true;
    this.#stream.destroy();
  }

  #fail(error: Error): void {
    this.#failure = error;
    const reasonCode = error instanceof ProtocolError ? error.reasonCode : ReasonCode.unspecifiedError;
    if (this.protocolVersion === 5 && this.#connack !== undefined) this.#send({ cmd: 'disconnect', reasonCode });
    this.#closeAbruptly();
    if (this.#connack !== undefined) this.#emit('error', error);
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#clock.clearTimeout(this.#timer);
    this.#options.signal?.removeEventListener('abort', this.#abort);
    this.session.detach();
    const isAbort = this.#options.signal?.aborted === true;
    this.#connecting?.reject(isAbort ? (this.#options.signal?.reason as Error) : this.#closedError());
    const waiting = [...this.#publishing.values(), ...this.#requests.values(), ...this.#queued, ...this.#draining];
    for (const { reject } of waiting) reject(this.#closedError());
    for (const asking of this.#pings.splice(0)) asking?.reject(this.#closedError());
    this.#authenticating?.reject(this.#closedError());
    this.#publishing.clear();
    this.#requests.clear();
    this.#queued = [];
    this.#draining = [];
    this.#inbox.close();
    this.#emit('close', { error: this.#failure });
  }

  #closedError(): Error {
    if (this.#failure instanceof Refused && this.#failure.code === 'CONNECT_REFUSED') return this.#failure;
    const why = this.#failure === undefined ? '' : `: ${this.#failure.message}`;
    return new BrokerError('CONNECTION_CLOSED', `the connection of client "${this.#clientId}" is closed${why}`, {
      cause: this.#failure
    });
  }

  #emit<E extends keyof ClientEvents>(event: E, value: ClientEvents[E]): void {
    const listeners = this.#listeners[event] as ClientListener<E>[] | undefined;
    if (listeners === undefined) return;
    for (const listener of listeners) this.#run(listener, value);
  }

  /** Call code of the application. If it throws or rejects, the packet is still processed. */
  #run<T>(handler: (value: T) => unknown, value: T): void {
    try {
      const result = handler(value);
      if (result instanceof Promise) result.catch((error) => this.#reportThrown(error, value));
    } catch (error) {
      this.#reportThrown(error, value);
    }
  }

  #reportThrown(error: unknown, value: unknown): void {
    const isHeard = (this.#listeners.error?.length ?? 0) > 0 && !(value instanceof Error); // not for an error listener that throws
    if (isHeard) this.#emit('error', asError(error));
    else {
      setImmediate(() => {
        throw error;
      });
    }
  }
}

const SENT: PublishResult = { reasonCode: 0, properties: {} };

function connectPacket(options: ClientOptions, version: ProtocolVersion): ConnectPacket {
  const { clientId = '', clean = true, keepalive = 0, username, password, will } = options;
  const packet: ConnectPacket = { cmd: 'connect', protocolVersion: version, bridge: false, clientId, clean, keepalive };
  if (username !== undefined) packet.username = username;
  if (password !== undefined) packet.password = bytesOf(password);
  if (will !== undefined) {
    const { topic, payload, qos = 0, retain = false, properties } = will;
    packet.will = { topic, payload: bytesOf(payload), qos, retain, properties };
  }
  const { sessionExpiry, receiveMaximum, maximumPacketSize, topicAliasMaximum } = options;
  packet.properties = {
    receiveMaximum,
    maximumPacketSize,
    topicAliasMaximum,
    sessionExpiryInterval: sessionExpirySec(sessionExpiry),
    ...options.properties
  };
  return packet;
}

function publishPacket({
  topic,
  payload,
  qos = 0,
  retain = false,
  properties
}: MessageInput & PublishOptions): PublishPacket {
  const hasAlias = topic === '' && properties?.topicAlias !== undefined;
  const fault =
    typeof topic !== 'string' ? 'the topic name must be a string' : hasAlias ? undefined : checkTopicName(topic);
  if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
  if (qos !== 0 && qos !== 1 && qos !== 2) throw new InvalidInput('MESSAGE_INVALID', 'qos', '0, 1 or 2', qos);
  const packet: PublishPacket = { cmd: 'publish', topic, payload: bytesOf(payload), qos, dup: false, retain };
  if (properties !== undefined) packet.properties = properties;
  return packet;
}

/** A copy without the properties that are undefined, so that it does not override defaults. */
function withoutUndefined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as T;
}

function duplicateOf({ packet }: Outgoing): PublishPacket {
  return { ...packet, dup: true };
}

function reasonSuffix({ reasonString }: Properties): string {
  return reasonString === undefined ? '' : ` (${reasonString})`;
}

/**
 * Check that there are filters and that they are well-formed, because others would end the connection. The server may still refuse them.
 */
function checkFilters(filters: readonly unknown[], version: ProtocolVersion): void {
  if (filters.length === 0) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filters', 'topic filters', filters);
  for (const filter of filters) {
    const fault = typeof filter === 'string' ? filterFault(filter, version === 5) : 'the topic filter must be a string';
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filters', 'topic filters', filter, fault);
  }
}

function takeEntry<V>(map: Map<number, V>, id: number): V | undefined {
  const value = map.get(id);
  map.delete(id);
  return value;
}

function arrayOf<T>(one: T | readonly T[]): readonly T[] {
  return Array.isArray(one) ? one : [one as T];
}

function bytesOf(payload: Buffer | Uint8Array | string = ''): Buffer {
  if (Buffer.isBuffer(payload)) return payload;
  if (typeof payload === 'string') return Buffer.from(payload);
  if (payload instanceof Uint8Array) return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  throw new InvalidInput('MESSAGE_INVALID', 'payload', 'a Buffer, Uint8Array or string', payload);
}
