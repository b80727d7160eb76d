import type { ByteStream } from '../base/byte-stream.ts';
import { type Connection, isAttached } from '../connection/connection.ts';
import { Metric } from '../events/metrics.ts';
import { Watermark } from '../monitor/watermark.ts';
import type { TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import type { Session } from '../session/session.ts';
import { AddressCount } from './address-count.ts';
import type { Services } from './services.ts';
import type { SessionFactory } from './session-factory.ts';

/** Begins a session for a new connection; see `SessionFactory`. */
type BeginSession = SessionFactory['begin'];

/** Why the broker closes a new connection at once. */
type ConnectionRefusal = 'max_connections' | 'max_connections_per_address';

/** The connections of a broker, from the moment a stream is passed to the broker until it has closed. */
export class Connections {
  /** Connections whose stream has not closed. */
  readonly all = new Set<Connection<Session>>();
  readonly #services: Services;
  readonly #beginSession: BeginSession;
  /** Streams that arrived while the broker was starting. */
  readonly #early = new Map<ByteStream, readonly [transportInfo: TransportInfo, zone: Zone]>();
  /** Number of connections that count towards `maxConnections`; those that are closing do not. */
  #places = 0;
  /** The connections that count towards `maxConnectionsPerAddress`. */
  readonly #byAddress = new AddressCount<Connection<Session>>();
  /** Of `#places`. */
  readonly #watermark: Watermark;
  #onAllClosed: (() => void) | undefined = undefined;

  constructor(services: Services, beginSession: BeginSession) {
    this.#services = services;
    this.#beginSession = beginSession;
    this.#watermark = new Watermark(services.alarms, 0, 0, () => ({
      id: 'too_many_connections',
      severity: 'error',
      title: 'there are too many connections',
      summary: `the broker has ${services.settings.maxConnections} connections and closes further ones (option maxConnections)`
    }));
    this.configured();
  }

  /** The options `maxConnections` and `maxConnectionsPerAddress` have changed. */
  configured(): void {
    const { maxConnections, maxConnectionsPerAddress } = this.#services.settings;
    this.#watermark.move(maxConnections, maxConnections * 0.9, this.#places);
    const counted = [...this.all].filter(({ isClosed, hasPeerEnded }) => !isClosed && !hasPeerEnded);
    this.#byAddress.limit(
      maxConnectionsPerAddress,
      counted.map((connection) => [connection, connection.session.client.transportInfo.remoteAddress])
    );
  }

  /** Whether a stream was passed to the broker before. */
  has(stream: ByteStream): boolean {
    return isAttached(stream) || this.#early.has(stream);
  }

  /** Begin to serve a stream. @returns why it is closed instead; undefined: it is served, or was closed already */
  open(stream: ByteStream, transportInfo: TransportInfo, zone: Zone): ConnectionRefusal | undefined {
    const { settings, metrics, life, time, turn } = this.#services;
    const { maxConnections } = settings;
    const isFull = maxConnections > 0 && this.#places + this.#early.size >= maxConnections;
    const refusal = isFull ? 'max_connections' : this.#byAddress.refusal(transportInfo.remoteAddress);
    if (refusal !== undefined || stream.destroyed) {
      metrics.counts[Metric.connectionsRefused]++;
      stream.destroy();
      return refusal;
    }
    if (!life.isRunning) {
      stream.on('error', () => undefined); // an error destroys the stream, which `openEarly` then refuses
      this.#early.set(stream, [transportInfo, zone]);
      return undefined;
    }
    time.readMonotonic();
    const session = this.#beginSession(stream, transportInfo, zone);
    const connection = session.connection as Connection<Session>;
    this.all.add(connection);
    this.#watermark.is(++this.#places);
    this.#byAddress.add(connection, transportInfo.remoteAddress);
    turn.connectionArrived();
    connection.open();
    return undefined;
  }

  /** Serve the streams that arrived while the broker was starting. */
  openEarly(): void {
    for (const [stream, arrival] of this.#early) {
      this.#early.delete(stream); // first, because `open` counts it as a connection
      this.open(stream, ...arrival);
    }
  }

  /** Refuse the streams that arrived during a start that failed. */
  refuseEarly(): void {
    const streams = [...this.#early.keys()];
    this.#early.clear();
    for (const stream of streams) stream.destroy();
  }

  /** A connection has begun to close and no longer counts towards the limits. Called once for each connection. */
  placeFreed(connection: Connection<Session>): void {
    this.#byAddress.delete(connection);
    this.#watermark.is(--this.#places);
  }

  /** The stream of a connection has closed. */
  streamClosed(connection: Connection<Session>): void {
    const { events } = this.#services;
    this.#byAddress.delete(connection);
    if (this.all.delete(connection) && events.heard['connection.closed'])
      events.emit('connection.closed', { client: connection.session.client, isAccepted: connection.isConnackSent });
    if (this.all.size === 0) this.#onAllClosed?.();
  }

  /** Resolves when the last stream has closed. */
  allClosed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.all.size === 0) resolve();
      else this.#onAllClosed = resolve;
    });
  }

  /** Discard the pending result of `allClosed`. */
  forgetWaiting(): void {
    this.#onAllClosed = undefined;
  }

  /** Destroy every stream that has not closed yet. */
  cutOff(): void {
    for (const connection of this.all) {
      try {
        connection.destroy();
      } catch (error) {
        this.#services.announcer.failed(error, 'destroying a stream', connection.session.client);
      }
      this.all.delete(connection);
    }
  }
}
