// The interface of Aedes over a broker of embermq: the behaviour of that package counts, including callbacks that
// come later, errors with its texts and handlers that are looked up at each call, because apps replace them. What the
// broker offers is not repeated here; it is at `broker`. Parts of Aedes that cannot be had throw AEDES_UNAVAILABLE
// and name the replacement. The hook for `authorizeForward` is registered only while the app has set one, because it
// costs time for every receiver.

import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { plainAddress, verifiedCertificate } from '../../lib/adapter.ts';
import {
  type Broker,
  createBroker,
  type Message,
  StateError,
  type TlsFacts,
  type TransportInfo
} from '../../lib/index.ts';
import { after, asError, noop } from './ask.ts';
import { Backpressure } from './backpressure.ts';
import { Client, type ClientHost, qosOf } from './client.ts';
import { EventRelay } from './events.ts';
import { ClientLinks, HandlerHooks } from './hooks.ts';
import { DEFAULT_HANDLERS, readOptions, type Settings } from './options.ts';
import { inputOf, type PacketNumbers, type PublishInput, packetOf, type Subscription } from './packets.ts';
import type {
  AedesEvents,
  AedesOptions,
  AuthenticateHandler,
  AuthorizeForwardHandler,
  AuthorizePublishHandler,
  AuthorizeSubscribeHandler,
  Connection,
  DeliverFunction,
  Done,
  PreConnectHandler,
  PublishedHandler
} from './types.ts';

/** A call of `aedes.subscribe`. */
interface AppSubscription {
  readonly topic: string;
  readonly deliver: DeliverFunction;
  end(): void;
}

/**
 * A broker with the interface of Aedes 1.x.
 *
 * `broker` is the embermq broker behind it, with all its features.
 */
export class Aedes extends EventEmitter<AedesEvents> {
  /** Name of the broker. */
  readonly id: string;
  /** The embermq broker that does the work. */
  readonly broker: Broker;
  /** The connected clients by client id. */
  readonly clients: Record<string, Client> = Object.create(null);
  /** Always empty: there are no other brokers of a cluster. */
  readonly brokers: Readonly<Record<string, number>> = Object.create(null);
  /** Decides whether a client may try to connect. */
  preConnect: PreConnectHandler;
  /** Decides whether a client may connect. */
  authenticate: AuthenticateHandler;
  /** Decides whether a client may publish, and may change the packet. */
  authorizePublish: AuthorizePublishHandler;
  /** Decides whether a client may subscribe, and may change the topic filter. */
  authorizeSubscribe: AuthorizeSubscribeHandler;
  /** Called after a packet was published. */
  published: PublishedHandler;
  readonly #settings: Settings;
  readonly #source: PacketNumbers;
  readonly #links = new ClientLinks();
  readonly #backpressure = new Backpressure();
  readonly #hooks: HandlerHooks;
  readonly #clientHost: ClientHost;
  #authorizeForward: AuthorizeForwardHandler = DEFAULT_HANDLERS.authorizeForward;
  /** Removes the `deliver` hook. */
  #stopForwarding: (() => void) | undefined;
  #connectedClients = 0;
  #counter = 0;
  #closed = true;
  /** The call of `listen` since the last `close`. */
  #listening: Promise<void> | undefined;
  #heartbeat: unknown;
  #subscriptions: AppSubscription[] = [];

  /**
   * Create a broker. It accepts clients after `listen`; `Aedes.createBroker` does both.
   * @throws InvalidInput OPTION_INVALID for an option that embermq does not support; the message names the replacement
   */
  constructor(options: AedesOptions = {}) {
    super();
    const settings = readOptions(options);
    this.#settings = settings;
    this.id = settings.id;
    this.broker = createBroker(settings.broker);
    this.preConnect = options.preConnect ?? DEFAULT_HANDLERS.preConnect;
    this.authenticate = options.authenticate ?? DEFAULT_HANDLERS.authenticate;
    this.authorizePublish = options.authorizePublish ?? DEFAULT_HANDLERS.authorizePublish;
    this.authorizeSubscribe = options.authorizeSubscribe ?? DEFAULT_HANDLERS.authorizeSubscribe;
    this.published = options.published ?? DEFAULT_HANDLERS.published;
    this.#source = { id: this.id, nextCount: () => ++this.#counter };
    this.#hooks = new HandlerHooks(this.#handlers(), settings, this.#links, this.#backpressure);
    this.#clientHost = this.#hostOfClients();
    this.authorizeForward = options.authorizeForward ?? DEFAULT_HANDLERS.authorizeForward;
    const relay = new EventRelay(this.#hostOfEvents(), this.#links, this.#hooks, this.#backpressure);
    (this as EventEmitter).on('newListener', (event: string) => {
      if (event === 'ack') relay.hearAcks();
    });
  }

  /**
   * Create a broker and start it.
   * @throws errors of the constructor and of `listen`
   */
  static async createBroker(options?: AedesOptions): Promise<Aedes> {
    const aedes = new Aedes(options);
    await aedes.listen();
    return aedes;
  }

  /** Decides whether a client receives a packet, and may change it for this client. */
  get authorizeForward(): AuthorizeForwardHandler {
    return this.#authorizeForward;
  }

  set authorizeForward(handler: AuthorizeForwardHandler) {
    this.#authorizeForward = handler;
    const isNeeded = handler !== DEFAULT_HANDLERS.authorizeForward;
    if (isNeeded) this.#stopForwarding ??= this.broker.hook('deliver', this.#hooks.deliver);
    else this.#stopForwarding = this.#stopForwarding?.() as undefined;
  }

  /** Number of connected clients. */
  get connectedClients(): number {
    return this.#connectedClients;
  }

  /** True before `listen` and after `close`. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Number of packets numbered by this broker. */
  get counter(): number {
    return this.#counter;
  }

  /** The version of embermq. */
  get version(): string {
    return this.broker.version;
  }

  /** Not available. @throws StateError AEDES_UNAVAILABLE, which names the replacement */
  get mq(): never {
    throw new StateError('AEDES_UNAVAILABLE', 'aedes.mq is not available; use aedes.subscribe and aedes.publish');
  }

  /** Not available. @throws StateError AEDES_UNAVAILABLE, which names the replacement */
  get persistence(): never {
    const text =
      'aedes.persistence is not available; use aedes.broker.retained, aedes.broker.sessions and aedes.broker.directory';
    throw new StateError('AEDES_UNAVAILABLE', text);
  }

  /**
   * Start the broker; a second call resolves with the first one.
   * @throws errors of `broker.start`, for example BrokerError STORE_LOCKED
   */
  listen(): Promise<void> {
    if (this.#listening !== undefined && this.broker.state !== 'disconnected') return this.#listening;
    const listening: Promise<void> = this.broker.start().then(
      () => {
        if (this.#listening === listening) this.#begin(); // unless it has been closed meanwhile
      },
      (error) => {
        if (this.#listening === listening) this.#listening = undefined;
        throw error;
      }
    );
    this.#listening = listening;
    return listening;
  }

  #begin(): void {
    this.#closed = false;
    this.broker.clock.clearTimeout(this.#heartbeat);
    this.#announce('birth', this.id);
    this.#beat();
  }

  /** Serve a client over a stream. The method is bound: `net.createServer(aedes.handle)`. */
  readonly handle = (stream: Connection, request?: IncomingMessage): Client => {
    const transportInfo = transportInfoOf(stream as Socket, request);
    const client = new Client(this.#clientHost, stream, request);
    this.#links.add(transportInfo, client);
    const serve = () => {
      try {
        this.broker.handle(stream, transportInfo);
      } catch (error) {
        client.emit('error', asError(error));
      }
    };
    // while the broker starts, the stream is not read
    if (this.#closed && this.#listening !== undefined) this.#listening.then(serve, serve);
    else serve();
    return client;
  };

  /** Publish a packet of the app. `authorizePublish` is not called. */
  publish(packet: PublishInput, callback?: Done): void;
  /**
   * Publish a packet of the app. `authorizePublish` is not called.
   * @param client the client that events name as the publisher
   */
  publish(packet: PublishInput, client: Client | null, callback?: Done): void;
  publish(packet: PublishInput, second?: Client | Done | null, third?: Done): void {
    const client = typeof second === 'function' ? null : (second ?? null);
    const callback = (typeof second === 'function' ? second : third) ?? noop;
    const published = async (): Promise<void> => {
      this.#checkLevels(packet.topic);
      if (this.#closed) await this.#listening; // undefined if it is not starting, which the broker reports
      const input = client === null ? inputOf(packet) : { ...inputOf(packet), clientId: client.id };
      const error = await this.#backpressure.publish(client, () => this.broker.publish(input));
      if (error !== undefined) throw error;
    };
    published().then(() => callback(null), callback);
  }

  /** Call a function for each packet that matches a topic filter, without a session. Retained messages are not delivered. */
  subscribe(topic: string, deliver: DeliverFunction, callback: Done = noop): void {
    this.#inTurn(callback, () => {
      this.#checkLevels(topic);
      const handler = (message: Message) => deliver(packetOf(message, this.#source), noop);
      const end = this.broker.subscribe(topic, handler, { retainHandling: 2, retainAsPublished: true });
      this.#subscriptions.push({ topic, deliver, end });
    });
  }

  /** Remove a subscription of the app. @param deliver the function that was passed to `subscribe` */
  unsubscribe(topic: string, deliver: DeliverFunction, callback: Done = noop): void {
    this.#inTurn(callback, () => {
      const at = this.#subscriptions.findIndex((known) => known.topic === topic && known.deliver === deliver);
      if (at >= 0) this.#subscriptions.splice(at, 1)[0].end();
    });
  }

  /** Disconnect all clients and stop the broker. @param callback called when it has stopped */
  close(callback: (error?: Error) => void = noop): void {
    if (this.#listening === undefined) {
      callback();
      return;
    }
    this.#listening = undefined;
    const done = (error?: Error) => {
      this.emit('closed');
      callback(error);
    };
    this.#closed = true;
    this.broker.clock.clearTimeout(this.#heartbeat);
    this.broker.stop().then(() => done(), done); // after a start in progress
  }

  // -------------------------------------------------------------------------------------------------------- internals

  #inTurn(callback: Done, run: () => void): void {
    let error: Error | null = null;
    try {
      run();
    } catch (thrown) {
      error = asError(thrown);
    }
    queueMicrotask(() => callback(error));
  }

  /** @throws Error if the topic has more levels than `maxTopicLevels` */
  #checkLevels(topic: string): void {
    if (typeof topic === 'string' && topic.split('/').length > this.#settings.maxTopicLevels)
      throw new Error('topic has too many levels');
  }

  #beat(): void {
    const { heartbeatInterval } = this.#settings;
    this.#heartbeat = this.broker.clock.setTimeout(() => {
      if (this.broker.state !== 'connected') return; // the app has stopped the broker directly
      this.#announce('heartbeat', this.id);
      this.#beat();
    }, heartbeatInterval);
  }

  /** Publish a message of the broker. */
  #announce(topic: string, payload: string): void {
    if (this.broker.state === 'connected') this.publish({ topic: `$SYS/${this.id}/${topic}`, payload });
  }

  #handlers() {
    const { broker } = this;
    // called as methods of this object, as in Aedes, and looked up for each call
    return {
      ...this.#source,
      broker,
      preConnect: (...args: Parameters<PreConnectHandler>) => this.preConnect(...args),
      authenticate: (...args: Parameters<AuthenticateHandler>) => this.authenticate(...args),
      authorizePublish: (...args: Parameters<AuthorizePublishHandler>) => this.authorizePublish(...args),
      authorizeSubscribe: (...args: Parameters<AuthorizeSubscribeHandler>) => this.authorizeSubscribe(...args),
      authorizeForward: (...args: Parameters<AuthorizeForwardHandler>) => this.authorizeForward(...args),
      published: (...args: Parameters<PublishedHandler>) => this.published(...args)
    };
  }

  #hostOfClients(): ClientHost {
    const { broker } = this;
    return {
      broker,
      connectTimeout: this.#settings.connectTimeout,
      emit: (event, ...args) => this.emit(event as 'closed', ...(args as [])),
      registered: (client) => {
        this.clients[client.id]?.ended();
        this.clients[client.id] = client;
        this.#connectedClients++;
        this.emit('client', client);
        this.#announce('new/clients', client.id);
      },
      unregistered: (client) => {
        if (this.clients[client.id] === client) delete this.clients[client.id];
        this.#connectedClients--;
        this.emit('clientDisconnect', client);
        this.#announce('disconnect/clients', client.id);
      },
      subscribe: (client, subscriptions) => this.#subscribeFor(client, subscriptions),
      unsubscribed: (client, filters) => this.#unsubscribed(client, filters)
    };
  }

  #hostOfEvents() {
    return {
      ...this.#source,
      broker: this.broker,
      published: (...args: Parameters<PublishedHandler>) => this.published(...args),
      hasPublished: () => this.published !== DEFAULT_HANDLERS.published,
      emit: <E extends keyof AedesEvents>(event: E, ...args: AedesEvents[E]) =>
        this.emit(event as 'closed', ...(args as [])),
      listenerCount: (event: keyof AedesEvents) => this.listenerCount(event),
      clientOf: (clientId: string): Client | undefined => this.clients[clientId],
      subscribed: (client: Client, subscriptions: Subscription[]) => this.#subscribed(client, subscriptions),
      unsubscribed: (client: Client, filters: string[]) => this.#unsubscribed(client, filters)
    };
  }

  #subscribed(client: Client, subs: Subscription[]): void {
    this.emit('subscribe', subs, client);
    this.#announce('new/subscribes', JSON.stringify({ clientId: client.id, subs }));
  }

  #unsubscribed(client: Client, subs: string[]): void {
    this.emit('unsubscribe', subs, client);
    this.#announce('new/unsubscribes', JSON.stringify({ clientId: client.id, subs }));
  }

  /** Subscribe on behalf of a client. @throws the error of `authorizeSubscribe`, which also closes the connection */
  async #subscribeFor(client: Client, subscriptions: readonly Subscription[]): Promise<void> {
    const granted: Subscription[] = [];
    for (const given of subscriptions) {
      const asked = { ...given, qos: qosOf(given) };
      const { error, value } = await after(this.#hooks.authorizeSubscribe(client, asked), (answer) => answer);
      if (error !== undefined) {
        client.emit('error', error);
        throw error;
      }
      if (!value) {
        granted.push({ ...asked, qos: 128 as Subscription['qos'] });
        continue;
      }
      this.broker.sessions.get(client.id).subscribe(value.topic, { qos: value.qos });
      granted.push(value);
    }
    this.#subscribed(client, granted);
  }
}

/**
 * The description of a connection. Each connection has a separate object, by which hooks and events find the client.
 */
function transportInfoOf(stream: Socket & TlsFacts, request: IncomingMessage | undefined): TransportInfo {
  const socket: Socket & TlsFacts = request?.socket ?? stream;
  const { remotePort, localPort } = socket;
  const isTls = socket.encrypted === true;
  const isSocket = 'remoteAddress' in socket;
  return {
    transport: transportOf(isSocket, isTls, request?.headers !== undefined),
    remoteAddress: plainAddress(socket.remoteAddress),
    remotePort,
    localAddress: plainAddress(socket.localAddress),
    localPort,
    certificate: isTls ? verifiedCertificate(socket) : undefined,
    headers: request?.headers
  };
}

function transportOf(isSocket: boolean, isTls: boolean, isWebSocket: boolean): TransportInfo['transport'] {
  if (isWebSocket) return isTls ? 'wss' : 'ws';
  if (!isSocket) return 'stream';
  return isTls ? 'tls' : 'tcp';
}
