// The class that apps import. It checks arguments and calls one part of the engine: logic belongs into the part.
// Members that tests or adapters of this package need, but apps must not use, are functions assigned in the static
// block (`engineOf`, `serveLocal`, ...). A stream of the app that cannot be served is destroyed before anything that
// may throw.

import type { Duplex } from 'node:stream';
import type { Applications } from '../access/applications.ts';
import type { ManagementUsers } from '../access/management-users.ts';
import type { ActorRef, Inspection } from '../base/actor.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import type { Clock } from '../base/clock.ts';
import { InvalidInput, StateError } from '../base/errors.ts';
import { checkNames, checkObject, unknownName } from '../base/fields.ts';
import { defineAsyncDispose, INSPECT } from '../base/symbols.ts';
import { type Client, clientOptionsOf, connectOver } from '../client/client.ts';
import { duplexPair } from '../client/duplex.ts';
import { localPair } from '../client/local-stream.ts';
import { EVENT_NAMES, type EventName } from '../events/catalogue.ts';
import type { BrokerEvents } from '../events/event-types.ts';
import type { Hook, HookName, HookOptions } from '../events/hooks.ts';
import type { Metrics } from '../events/metrics.ts';
import type { Alarms } from '../monitor/alarms.ts';
import type { Monitor } from '../monitor/monitor.ts';
import type { Trace, TraceOptions } from '../monitor/traces/trace.ts';
import type { Traces } from '../monitor/traces/traces.ts';
import type { Outboxes } from '../outbox/outboxes.ts';
import { type AppMessageInput, type Message, type MessageInput, PUBLISH_OPTION_NAMES } from '../packets/message.ts';
import type { TransportInfo } from '../records/client.ts';
import type { ListenerHandle } from '../records/listener.ts';
import { isAccepted, transportInfoOf } from '../records/transport-info.ts';
import type { Zone } from '../records/zone.ts';
import type { Directory } from '../routing/directory.ts';
import type { RulesApi } from '../rules/types.ts';
import type { StreamsApi } from '../streams/api.ts';
import { checkMountpoint } from '../topics/topic.ts';
import { BrokerLifecycle, notStarted, type StopOptions } from './broker-lifecycle.ts';
import { brokerText } from './broker-text.ts';
import type { ConnectOptions, ListenerOptions, NextEventOptions, Published, StartOptions } from './call-options.ts';
import type { Configuration } from './configuration/configuration.ts';
import type { Connectors } from './configuration/connectors.ts';
import { readBrokerOptions } from './configuration/option-reading.ts';
import { type BrokerOptions, DEFAULT_ZONE, type IfTyped, type Settings } from './configuration/options.ts';
import type { SchemaTable } from './configuration/payload-schemas.ts';
import type { Table } from './configuration/tables.ts';
import { Engine } from './engine.ts';
import { Access } from './facets/access.ts';
import { AppSubscriptions, checkFilter } from './facets/app-subscriptions.ts';
import type { AppRequestHandler, AppRespondOptions } from './facets/responder.ts';
import { Retained } from './facets/retained.ts';
import { Sessions } from './facets/sessions.ts';
import type { Features } from './features/features.ts';
import type { HandlerSubscriber, MessageHandler, SubscribeOptions } from './messages/handler-subscriber.ts';
import type { MessageStreamOptions } from './messages/message-stream.ts';
import type { TypedSubscriptions } from './messages/typed-subscriptions.ts';
import { BridgeAccess } from './rights/bridge-access.ts';
import type { Services } from './services.ts';
import { VERSION } from './version.ts';

defineAsyncDispose();

/** The engine of a broker. Not public: the tests of this project use it to inspect internal state. */
export let engineOf: (broker: Broker) => Engine;
/** The active `broker.subscribe` and `broker.messages` subscriptions, one per handler. Not public: the test kit uses it. */
export let handlersOf: (broker: Broker) => HandlerSubscriber[];
/** Serve a client within this process over a stream, as `Broker.handle` does. Not public: the test kit uses it. */
export let serveLocal: (broker: Broker, stream: ByteStream, transportInfo: Partial<TransportInfo>) => void;

const LOCAL = { transport: 'local' } as const;

/** The part of a broker that a bridge uses. For `embermq/bridge`. */
export let bridgeAccessOf: (broker: Broker) => BridgeAccess;

/**
 * An MQTT broker in this process.
 *
 * The broker opens no port. Clients connect through listeners (`embermq/net`), through any Duplex passed to `handle`, or inside this
 * process with `connect`. The app can also publish and subscribe directly.
 */
export class Broker<Data = unknown> {
  /** The options after they have been read, with defaults; those that `configuration` changes have their current values. */
  readonly settings: Settings;
  /** The clock of the broker (option `clock`). */
  readonly clock: Clock;
  /** Counters and gauges. */
  readonly metrics: Metrics;
  /** The rights of clients. */
  readonly access: Access<Data>;
  /** The sessions, connected or not. */
  readonly sessions: Sessions<Data>;
  /** The retained messages. */
  readonly retained: Retained;
  /** Lists clients, sessions, subscriptions, routes and retained messages page by page, and looks them up. */
  readonly directory: Directory;
  /** The features that can be started and stopped while clients are connected. */
  readonly features: Features;
  /** The options with their current values, and changing them at run time. */
  readonly configuration: Configuration;
  /** The queues of messages to targets outside of this process. For adapters. */
  readonly outboxes: Outboxes;
  /** Webhooks and bridges: listing, creating, starting and stopping them at run time. */
  readonly connectors: Connectors;
  /** Rules over broker events, with their actions and resources. */
  readonly rules: RulesApi;
  /** Streams, tables and continuous queries over them. */
  readonly streams: StreamsApi;
  /** The conditions that an operator should know, present and past. */
  readonly alarms: Alarms;
  /** The applications that may use the management interface. */
  readonly applications: Applications;
  /** The users of the management interface and its console. They are not MQTT clients. */
  readonly users: ManagementUsers;
  /** Observations of the broker about itself: the last drops, and the last changes made through management interfaces. */
  readonly monitor: Monitor;
  /** The active traces; `trace` starts one. */
  readonly traces: Traces;
  /** The actor of the broker, for reading and observing with xstate: `idle`, `connected`, `disconnected`. It is never done. */
  readonly actor: ActorRef;
  readonly #engine: Engine;
  readonly #services: Services;
  readonly #lifecycle: BrokerLifecycle;
  readonly #subscriptions: AppSubscriptions;

  static {
    engineOf = (broker) => broker.#engine;
    handlersOf = (broker) => broker.#subscriptions.handlers();
    bridgeAccessOf = (b) => new BridgeAccess(b.#services, b, (ours, zone) => b.#serve(ours, LOCAL, zone));
    serveLocal = (broker, stream, transportInfo) => broker.#serve(stream, { ...LOCAL, ...transportInfo });
  }

  /**
   * Create a broker. It accepts clients after `start`.
   * @param options see the options tables of the README. The documented spelling of a name (`max_packet_size`) is also accepted
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, REWRITE_INVALID, HOOK_UNKNOWN, HOOK_INVALID
   */
  constructor(options: BrokerOptions = {}) {
    this.handle = this.handle.bind(this);
    this.settings = readBrokerOptions(options);
    const engine = new Engine(this.settings, this, () => this.listeners());
    const { services } = engine;
    this.#engine = engine;
    this.#services = services;
    ({ clock: this.clock, metrics: this.metrics, alarms: this.alarms, traces: this.traces } = services);
    this.access = new Access(engine);
    this.sessions = new Sessions(engine);
    this.retained = new Retained(engine);
    ({ features: this.features, configuration: this.configuration } = engine.operated);
    ({ outboxes: this.outboxes, connectors: this.connectors } = engine.kept);
    this.rules = engine.kept.rules.api;
    this.streams = engine.kept.streams.api;
    ({ applications: this.applications, users: this.users } = engine.access);
    ({ directory: this.directory, monitor: this.monitor } = engine);
    this.#subscriptions = new AppSubscriptions(engine);
    this.#lifecycle = new BrokerLifecycle(engine, () => this.#subscriptions.endMessages());
    this.actor = this.#lifecycle.actor;
  }

  // ----------------------------------------------------------------------------------------------------------- lifecycle

  /** The state of the broker: `idle` (not started yet, or starting), `connected` (accepting) or `disconnected` (stopping or stopped). */
  get state(): 'idle' | 'connected' | 'disconnected' {
    return this.#lifecycle.state;
  }

  /** Time of the start in wall-clock milliseconds; undefined while the broker is not started. */
  get startedAt(): number | undefined {
    return this.#lifecycle.startedAt;
  }

  /** The version of this package. */
  get version(): string {
    return VERSION;
  }

  /**
   * Open the store and the attached listeners, and accept clients.
   * Clients that connect before the last listener is open wait until it is. Calls of `start` and `stop` are executed one after the other,
   * in the order of the calls. The call has no effect on a broker that is started already. If the start fails, everything is closed again.
   * @param options.signal aborts the start, but a store that is being opened is waited for
   * @returns this broker
   * @throws BrokerError LISTENER_BIND_FAILED, which names the address. With a store: BrokerError STORE_LOCKED, STORE_UNUSABLE,
   * STORE_DAMAGED, STORE_CORRUPT, STORE_TOO_NEW, IMPORT_UNFINISHED; StateError STORE_IN_USE (after 10 s if the previous stop could not
   * close the store and it still does not respond); StateError STORE_CHANGED if another broker has written to the store since the last
   * stop, or if the store was replaced. The reason of the signal; BROKER_NOT_STARTED if `stop` ends it
   */
  async start(options: StartOptions = {}): Promise<this> {
    checkObject(options, 'options');
    await this.#lifecycle.start(options.signal);
    return this;
  }

  /**
   * Stop the broker: accept no more clients, disconnect the connected ones, close the store and release all resources.
   * MQTT 5.0 clients receive reason code 0x8B (server shutting down). Output that is already queued on connections is sent before they
   * close, within `timeoutMs`, which also ends a start in progress. A shorter one of another call takes effect.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, without stopping. AggregateError with the errors of all listeners and sources of
   *   authentication that could not be closed (SOURCE_FAILED: one takes too long) and of the store (STORE_FAILED: the last changes are not
   *   persisted), or the reason of the signal if it aborts; in these cases the broker has stopped nevertheless
   */
  stop(options: StopOptions = {}): Promise<void> {
    return this.#lifecycle.stop(options);
  }

  /** Stop the broker with the default options; for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /**
   * Observe every transition of every actor of this broker, as inspection events of xstate.
   * @param observer called for each step; its errors become `error` events
   * @returns a function that ends the inspection @throws InvalidInput HANDLER_INVALID
   */
  inspect(observer: (event: Inspection) => void): () => void {
    if (typeof observer !== 'function') throw new InvalidInput('HANDLER_INVALID', 'observer', 'a function', observer);
    return this.#engine.actors.inspect(observer);
  }

  // ----------------------------------------------------------------------------------------------------------- connections

  /**
   * Serve a client over a Duplex stream.
   * The broker sends nothing before it has received a CONNECT. While the broker starts, the client waits. The method is bound, so
   * `net.createServer(broker.handle)` and `tls.createServer(options, broker.handle)` are MQTT servers.
   *
   * A stream that detects a protocol violation of its peer may be destroyed with a `ProtocolError`; its reason code is then the reason of
   * the disconnection. Any other error of a stream is reported as an `error` event, unless the peer simply closed the connection or
   * `transportInfo.listener` is set.
   * @param transportInfo describes the connection. By default it is read from the stream if that is a socket: addresses, transport, verified
   *   client certificate. If it is not given and a server passes on a socket while the broker is not started, the socket is closed and an
   *   `error` event is emitted. An exception could not be caught in the `connection` event of the server.
   * @throws StateError BROKER_NOT_STARTED (also while the broker stops), InvalidInput ZONE_UNKNOWN, MOUNTPOINT_INVALID: the stream is
   *   destroyed. InvalidInput STREAM_INVALID, OPTION_INVALID; StateError STREAM_IN_USE if the stream was passed before: it is left alone
   */
  handle(stream: Duplex, transportInfo?: TransportInfo): void {
    if (!isDuplex(stream)) throw new InvalidInput('STREAM_INVALID', 'stream', 'a Duplex', stream);
    if (transportInfo !== undefined) checkObject(transportInfo, 'transportInfo');
    if (this.#engine.connections.has(stream)) throw streamInUse();
    if (!this.#lifecycle.isOpen) {
      stream.destroy(); // first, because the getters of a stream of the app may throw
      if (transportInfo !== undefined || !isAccepted(stream)) throw notStarted();
      this.failed(notStarted(), 'accepting a connection');
      return;
    }
    this.#serve(stream, transportInfo ?? transportInfoOf(stream));
  }

  /** See `handle`. */
  #serve(stream: ByteStream, known: TransportInfo, bridgeZone?: Zone): void {
    if (!this.#lifecycle.isOpen) throw refused(stream, notStarted());
    const zone = bridgeZone ?? this.settings.zones.get(known.zone ?? DEFAULT_ZONE);
    if (zone === undefined) throw refused(stream, unknownZone(known.zone ?? DEFAULT_ZONE, this.settings.zones));
    const fault = known.mountpoint === undefined ? undefined : checkMountpoint(known.mountpoint);
    if (fault !== undefined) throw refused(stream, mountpointInvalid(known.mountpoint, fault));
    this.#engine.connections.open(stream, known, zone, (refusal) => {
      if (known.listener !== undefined) this.#lifecycle.listeners.get(known.listener)?.refused?.(refusal);
    });
  }

  /** The settings of a zone. @param name default: `external` @throws InvalidInput ZONE_UNKNOWN */
  zone(name: string = DEFAULT_ZONE): Zone {
    const zone = this.settings.zones.get(name);
    if (zone === undefined) throw unknownZone(name, this.settings.zones);
    return zone;
  }

  /**
   * Create a Duplex whose other end is served by this broker. It connects MQTT.js or any other client without a socket.
   * @param transportInfo describes the connection; its `transport` is `local` by default
   * @throws as `handle`
   */
  stream(transportInfo: Partial<TransportInfo> = {}): Duplex {
    checkObject(transportInfo, 'transportInfo');
    const [ours, theirs] = duplexPair(this.#services.work);
    this.#serve(ours, { ...LOCAL, ...transportInfo });
    return theirs;
  }

  /**
   * Connect a client inside this process. It has a full MQTT session, but no socket.
   * @throws Refused CONNECT_REFUSED with the reason code of the CONNACK; StateError BROKER_NOT_STARTED; the errors of `connectClient`
   */
  async connect(options: ConnectOptions = {}): Promise<Client> {
    checkObject(options, 'options');
    const { transportInfo = {} } = options;
    checkObject(transportInfo, 'transportInfo');
    const [ours, theirs] = localPair(this.#services.work);
    this.#serve(ours, { ...LOCAL, ...transportInfo });
    return connectOver(theirs, { clock: this.clock, ...clientOptionsOf(options) });
  }

  /**
   * Attach a listener, which `start` opens and `stop` closes. A start in progress opens it, too. Used by `embermq/net`.
   * @throws InvalidInput LISTENER_INVALID, LISTENER_NAME_IN_USE
   */
  attach(listener: ListenerHandle): void {
    if (typeof listener?.open !== 'function' || typeof listener.close !== 'function')
      throw new InvalidInput('LISTENER_INVALID', 'listener', 'a listener (see listen() of embermq/net)', listener);
    if (this.#lifecycle.listeners.has(listener.name)) {
      throw new InvalidInput('LISTENER_NAME_IN_USE', 'name', 'a name that no other listener has', listener.name);
    }
    this.#lifecycle.attach(listener);
  }

  /** Detach a listener. The caller closes it. */
  detach(listener: ListenerHandle): void {
    this.#lifecycle.detach(listener);
  }

  /** The attached listeners, in the order in which they are opened. */
  listeners(): ListenerHandle[] {
    return [...this.#lifecycle.listeners.values()];
  }

  // -------------------------------------------------------------------------------------------------------------- messages

  /**
   * Publish a message of the app. The publish hooks run; authorization does not apply.
   * @returns the number of subscribers that accepted the message. The promise resolves when the broker has taken responsibility: if the
   *   message has to be persisted, its commit has succeeded
   * @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID, OPTION_UNKNOWN, SCHEMA_MISMATCH; NotAuthorized if a hook refuses the message;
   *   StateError BROKER_NOT_STARTED, DELAYED_OFF (option delayedPublish); BrokerError SCHEMA_FAILED; BrokerError QUOTA_EXCEEDED if there are
   *   too many delayed messages, or no room to queue this one; BrokerError STORE_FAILED if the message has to be persisted and cannot be. If
   *   its commit fails, connected subscribers may have received it already
   */
  async publish(message: AppMessageInput): Promise<Published>;
  async publish(
    topic: string,
    payload?: MessageInput['payload'],
    options?: Omit<AppMessageInput, 'topic' | 'payload'>
  ): Promise<Published>;
  async publish(
    first: AppMessageInput | string,
    payload?: MessageInput['payload'],
    options: Omit<AppMessageInput, 'topic' | 'payload'> = {}
  ): Promise<Published> {
    if (!this.#services.life.isRunning) throw notStarted();
    checkObject(options, 'options');
    checkNames(options, [...PUBLISH_OPTION_NAMES, 'clientId'], 'publish');
    const input = typeof first === 'string' ? { ...options, topic: first, payload } : first;
    if (typeof input !== 'object' || input === null)
      throw new InvalidInput('MESSAGE_INVALID', 'message', 'a topic name or { topic, payload }', input);
    return { receivers: await this.#engine.publishing.own.publish(input) };
  }

  /**
   * Call a handler for each message that matches a topic filter. The handler is a subscriber like any client, without a session.
   * @param filter a topic filter; shared subscriptions (`$share/<group>/<filter>`) are supported
   * @param handler called for each message; an error or rejection of it becomes an `error` event
   * @returns a function that unsubscribes this handler
   * @throws InvalidInput TOPIC_FILTER_INVALID, HANDLER_INVALID, OPTION_UNKNOWN, OPTION_INVALID
   */
  subscribe(filter: string, handler: MessageHandler, options: SubscribeOptions = {}): () => void {
    return this.#subscriptions.subscribe(filter, handler, options);
  }

  /**
   * Respond to requests (MQTT 5.0, section 4.10) as `client.respond` does; errors of the handler become `error` events. The response to a
   * client is published only if it is subscribed to the response topic and may publish there, or the topic is below `$client/<client id>/`;
   * otherwise it is dropped (`not_authorized`).
   * @returns a function that stops responding
   * @throws InvalidInput as `subscribe`
   */
  respond(filter: string, handler: AppRequestHandler, options: AppRespondOptions = {}): () => void {
    return this.#subscriptions.respond(filter, handler, options);
  }

  /** Remove the subscriptions of the app to a filter. @param handler only those of this handler @returns the number of removed subscriptions */
  unsubscribe(filter: string, handler?: MessageHandler): number {
    return this.#subscriptions.unsubscribe(filter, handler);
  }

  /**
   * Iterate over the messages that match a topic filter.
   *
   * Messages that are not read yet wait in a buffer of `highWaterMark` messages. When it is full, the oldest message is dropped and counted
   * as `delivery.dropped.queue_full`. The iteration ends when the broker stops.
   * @throws InvalidInput TOPIC_FILTER_INVALID, OPTION_UNKNOWN, OPTION_INVALID
   */
  messages(filter: string, options: MessageStreamOptions = {}): AsyncIterableIterator<Message> {
    return this.#subscriptions.messages(filter, options);
  }

  /**
   * A key-value table of the app, which is persisted with the state of the broker.
   *
   * Without the option `store`, the table ends with the process. All entries are in memory, so a table suits configuration rather than
   * large amounts of data. Each call with the same name returns the same table.
   * @param name 1 to 64 letters, digits, `.`, `-` and `_`
   * @throws InvalidInput TABLE_NAME_INVALID
   */
  table<V = unknown>(name: string): Table<V> {
    return this.#engine.kept.tables.table(name) as Table<V>;
  }

  // --------------------------------------------------------------------------------------------------------- events and hooks

  /**
   * Add a listener for an event. An error or rejection of the listener becomes an `error` event. Adding it again has no effect.
   * @param options.filter for `message.publish`, `message.queued`, `message.delivered`, `message.acked` and `message.dropped`: call the
   * listener only for topics that match this topic filter. QoS 0 messages of other topics stay on the fast path
   * @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID, TOPIC_FILTER_INVALID, OPTION_UNKNOWN, OPTION_INVALID for a
   * filter on another event
   */
  on<E extends EventName>(
    event: E,
    listener: (event: BrokerEvents<Data>[E]) => unknown,
    options: ListenerOptions = {}
  ): this {
    checkEvent(event, listener);
    checkOptions(options, ['filter'], 'on');
    const { filter } = options;
    if (filter !== undefined) checkEventFilter(event, filter);
    this.#services.events.on(event, listener as Listener<E>, filter);
    return this;
  }

  /** Add a listener for the next event of a name only. @throws InvalidInput as `on` */
  once<E extends EventName>(event: E, listener: (event: BrokerEvents<Data>[E]) => unknown): this {
    checkEvent(event, listener);
    this.#services.events.once(event, listener as Listener<E>);
    return this;
  }

  /** Remove a listener, if it is registered. */
  off<E extends EventName>(event: E, listener: (event: BrokerEvents<Data>[E]) => unknown): this {
    this.#services.events.off(event, listener as Listener<E>);
    return this;
  }

  /**
   * Wait for the next event of a name that satisfies `where`.
   *
   * The promise is rejected with the reason of the signal if that aborts, and with the error if `where` throws.
   * @param options.where default: every event
   * @throws InvalidInput EVENT_UNKNOWN with a suggestion, OPTION_INVALID, OPTION_UNKNOWN
   */
  nextEvent<E extends EventName>(event: E, options: NextEventOptions<E, Data> = {}): Promise<BrokerEvents<Data>[E]> {
    checkEvent(event, () => undefined);
    checkOptions(options, ['where', 'signal'], 'nextEvent');
    const where = options.where as ((value: BrokerEvents[E]) => boolean) | undefined;
    return this.#services.events.next(event, { ...options, where }) as Promise<BrokerEvents<Data>[E]>;
  }

  /**
   * Register a hook. It runs after the hooks of this name that are registered already, or with `isFirst` before them.
   * @param options.cache `'route'`, for authorizePublish: the answer depends only on client and topic
   * @returns a function that removes the hook
   * @throws InvalidInput HOOK_UNKNOWN with a suggestion, HOOK_INVALID, OPTION_INVALID, OPTION_UNKNOWN
   */
  hook<N extends HookName>(name: N, hook: Hook<N, Data>, options: HookOptions = {}): () => void {
    checkOptions(options, ['isFirst', 'cache'], 'hook');
    return this.#engine.hook(name, hook as unknown as Hook<N>, options);
  }

  /** Trace a client, the messages of a topic, or the clients of an address: see `Traces.start`. @throws as `Traces.start` */
  trace(options: TraceOptions): Trace {
    return this.traces.start(options);
  }

  /** Report an error that has no caller to throw to, as an `error` event. For adapters. @param during the operation, such as `closing the store` */
  failed(error: unknown, during: string): void {
    const { announcer, rejections } = this.#services;
    rejections.noteError(error);
    announcer.failed(error, during, undefined);
  }

  /** @internal */
  [INSPECT](depth: number, options: object): string {
    return brokerText(this, depth, options);
  }
}

/** The option `schemas`, for which the compiler infers the types of `message.value`. */
export interface WithSchemas<S extends SchemaTable> {
  /** Schemas of payloads by topic filter. */
  readonly schemas: S;
}

/** A broker with the option `schemas`: `message.value` has the type of the schema of the same filter. */
export type SchemaBroker<S extends SchemaTable, Data = unknown> = TypedSubscriptions<S> & Broker<Data>;

/** The type of a table without schemas. */
export type NoSchemas = Readonly<Record<never, never>>;

/** The broker of some options: `Broker`, or `SchemaBroker` if they have schemas. */
export type BrokerOf<S extends SchemaTable> = [keyof S] extends [never] ? Broker : SchemaBroker<S>;

/**
 * Create a broker. It accepts clients after `await broker.start()`.
 *
 * `createBroker<Data>()` sets the type of the data that hooks and sources keep with clients: `client.data` is `Data | undefined` in hooks,
 * events, sources and sessions. Without it, the type is `unknown`. With the option `schemas`, handlers of the same filters get typed values.
 * @throws as the constructor of `Broker`
 */
export function createBroker<const S extends SchemaTable = NoSchemas>(
  options?: BrokerOptions & Partial<WithSchemas<S>>
): BrokerOf<S>;
/** Create a broker with the type of the data that hooks and sources keep with clients. @throws as the constructor of `Broker` */
export function createBroker<Data, Caller = unknown>(
  this: Caller,
  options?: BrokerOptions<Data>,
  ...rest: IfTyped<Caller>
): Broker<Data>;
export function createBroker<Data>(options?: BrokerOptions<Data>): Broker<Data> {
  return new Broker<Data>(options);
}

function isDuplex(stream: Duplex | null | undefined): boolean {
  return (
    typeof stream?.on === 'function' &&
    typeof stream.resume === 'function' &&
    typeof stream.write === 'function' &&
    typeof stream.destroy === 'function'
  );
}

/** Close a stream that cannot be served. @returns the error */
function refused(stream: ByteStream, error: Error): Error {
  stream.destroy();
  return error;
}

function mountpointInvalid(mountpoint: string | undefined, fault: string): InvalidInput {
  return new InvalidInput('MOUNTPOINT_INVALID', 'mountpoint', 'a prefix of topic names', mountpoint, fault);
}

function streamInUse(): StateError {
  return new StateError('STREAM_IN_USE', 'this stream is in use already; pass a separate stream for each connection');
}

function unknownZone(name: string, zones: Settings['zones']): InvalidInput {
  const known = [...zones.keys()].join(', ');
  const text = `zone "${name}" is not defined; use one of ${known}, or define it (option zones)`;
  return new InvalidInput('ZONE_UNKNOWN', 'zone', `one of ${known}`, name, text);
}

type Listener<E extends EventName> = (event: BrokerEvents[E]) => unknown;

const EVENTS_WITH_TOPIC: readonly EventName[] = [
  'message.publish',
  'message.queued',
  'message.delivered',
  'message.acked',
  'message.dropped'
];

/** @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
function checkOptions(options: object, known: readonly string[], where: string): void {
  checkObject(options, 'options');
  checkNames(options, known, where);
}

/** @throws InvalidInput OPTION_INVALID, TOPIC_FILTER_INVALID */
function checkEventFilter(event: EventName, filter: string): void {
  if (!EVENTS_WITH_TOPIC.includes(event))
    throw new InvalidInput(
      'OPTION_INVALID',
      'filter',
      `undefined for other events than ${EVENTS_WITH_TOPIC.join(', ')}`,
      filter
    );
  checkFilter(filter);
}

/** @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID */
function checkEvent(event: EventName, listener: unknown): void {
  if (!EVENT_NAMES.includes(event)) throw unknownName('EVENT_UNKNOWN', 'event', event, EVENT_NAMES);
  if (typeof listener !== 'function') throw new InvalidInput('HANDLER_INVALID', event, 'a function', listener);
}
