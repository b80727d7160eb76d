// A stream counts as a connection from `#serve` until the broker begins to close it, not until it has closed. A stream of a
// listener for which there is no room waits for a moment (`Newcomers`), because the end of the previous connection of
// its client may not have been read yet; others are closed at once. Streams that arrive during the start wait for it.

import type { ByteStream } from '../../base/byte-stream.ts';
import { Newcomers } from '../../base/newcomers.ts';
import { type Connection, isAttached } from '../../connection/connection.ts';
import { Metric } from '../../events/metrics.ts';
import { Watermark } from '../../monitor/machine/watermark.ts';
import type { TransportInfo } from '../../records/client.ts';
import type { Zone } from '../../records/zone.ts';
import type { Session } from '../../session/session.ts';
import type { Services } from '../services.ts';
import type { SessionFactory } from '../sessions/session-factory.ts';
import { AddressCount } from './address-count.ts';

/** Starts a session for a new connection; see `SessionFactory`. */
type BeginSession = SessionFactory['begin'];

/** The reason why the broker closes a new connection at once. */
type ConnectionRefusal = 'max_connections' | 'max_connections_per_address';

const LIMITS: Readonly<Record<ConnectionRefusal, string>> = {
  max_connections: 'the broker has too many connections (option maxConnections)',
  max_connections_per_address: 'the address has too many connections (option maxConnectionsPerAddress)'
};
/** The address in records of connections that have none, such as those of Unix sockets. */
const UNKNOWN_ADDRESS = 'unknown';

/** A stream that was passed to the broker, with its properties. */
interface Arrival {
  readonly stream: ByteStream;
  readonly transportInfo: TransportInfo;
  readonly zone: Zone;
  /** Called if the stream is closed because of a limit. */
  refused(refusal: ConnectionRefusal): void;
}

/** The connections of a broker, from the moment a stream is passed to the broker until it has closed. */
export class Connections {
  /** Connections whose stream has not closed. */
  readonly all = new Set<Connection<Session>>();
  readonly #services: Services;
  readonly #beginSession: BeginSession;
  /** Streams that arrived while the broker was starting. */
  readonly #early = new Map<ByteStream, Arrival>();
  /** Streams of listeners that wait for a place. */
  readonly #held: Newcomers<Arrival>;
  readonly #heldStreams = new WeakSet<ByteStream>();
  /** Number of connections that count towards `maxConnections`; those that are closing do not. */
  #places = 0;
  /** The connections that count towards `maxConnectionsPerAddress`. */
  readonly #byAddress = new AddressCount<Connection<Session>>();
  /** The watermark of `#places`. */
  readonly #watermark: Watermark;
  #onAllClosed: (() => void) | undefined = undefined;

  constructor(services: Services, beginSession: BeginSession) {
    this.#services = services;
    this.#beginSession = beginSession;
    this.#watermark = new Watermark(services.alarms, () => ({
      id: 'too_many_connections',
      severity: 'error',
      title: 'there are too many connections',
      summary: `the broker has ${services.settings.maxConnections} connections and closes further ones (option maxConnections)`
    }));
    this.#held = new Newcomers(services.clock.internal ?? services.clock, {
      hasRoom: (arrival) => arrival.stream.destroyed || this.#refusal(arrival) === undefined,
      serve: (arrival) => this.#serve(arrival),
      refuse: (arrival) => this.#refuse(arrival, this.#refusal(arrival))
    });
    this.configured();
  }

  /** Apply changed options `maxConnections` and `maxConnectionsPerAddress`. */
  configured(): void {
    const { maxConnections, maxConnectionsPerAddress } = this.#services.settings;
    this.#watermark.move(maxConnections, maxConnections * 0.9, this.#places);
    const counted = [...this.all].filter(({ isClosed, hasPeerEnded }) => !isClosed && !hasPeerEnded);
    this.#byAddress.limit(
      maxConnectionsPerAddress,
      counted.map((connection) => [connection, connection.session.client.transportInfo.remoteAddress])
    );
    this.#held.placeFreed();
  }

  /** Tell whether a stream was passed to the broker before. */
  has(stream: ByteStream): boolean {
    return isAttached(stream) || this.#early.has(stream) || this.#heldStreams.has(stream);
  }

  /**
   * Start serving a stream. If there is no room, a stream of a listener waits for a moment, because the end of the previous connection of
   * its client may not have been read yet; any other stream is closed at once.
   */
  open(stream: ByteStream, transportInfo: TransportInfo, zone: Zone, refused: Arrival['refused']): void {
    const { metrics, life } = this.#services;
    const arrival = { stream, transportInfo, zone, refused };
    if (stream.destroyed) {
      metrics.counts[Metric.connectionsRefused]++;
      return;
    }
    const refusal = this.#refusal(arrival);
    if (refusal !== undefined) {
      if (transportInfo.listener === undefined || !life.isRunning || !this.#held.hold(arrival))
        this.#refuse(arrival, refusal);
      else {
        this.#heldStreams.add(stream);
        stream.on('error', () => undefined); // an error destroys the stream
      }
    } else if (life.isRunning) this.#serve(arrival);
    else {
      stream.on('error', () => undefined); // an error destroys the stream, which `openEarly` then refuses
      this.#early.set(stream, arrival);
    }
  }

  /** The reason why there is no room for a stream. */
  #refusal({ transportInfo }: Arrival): ConnectionRefusal | undefined {
    const { maxConnections } = this.#services.settings;
    if (maxConnections > 0 && this.#places + this.#early.size >= maxConnections) return 'max_connections';
    return this.#byAddress.refusal(transportInfo.remoteAddress);
  }

  #refuse({ stream, transportInfo, refused }: Arrival, refusal: ConnectionRefusal | undefined): void {
    this.#services.metrics.counts[Metric.connectionsRefused]++;
    stream.destroy();
    if (refusal === undefined) return;
    this.limited(transportInfo.remoteAddress, LIMITS[refusal]);
    refused(refusal);
  }

  /** Record that a connection was closed because of a limit, before its CONNECT was read. */
  limited(address: string | undefined, why: string): void {
    const from = address ?? UNKNOWN_ADDRESS;
    this.#services.reasons.add('connection_limit', { address: from, detail: `${why} (from ${from})` });
  }

  #serve({ stream, transportInfo, zone }: Arrival): void {
    const { metrics, time, turn } = this.#services;
    if (stream.destroyed) {
      metrics.counts[Metric.connectionsRefused]++;
      return;
    }
    time.read();
    const session = this.#beginSession(stream, transportInfo, zone);
    const connection = session.connection as Connection<Session>;
    this.all.add(connection);
    this.#watermark.is(++this.#places);
    this.#byAddress.add(connection, transportInfo.remoteAddress);
    turn.connectionArrived();
    connection.open();
  }

  /** Serve the streams that arrived while the broker was starting. */
  openEarly(): void {
    for (const [stream, { transportInfo, zone, refused }] of this.#early) {
      this.#early.delete(stream); // first, because `open` counts it as a connection
      this.open(stream, transportInfo, zone, refused);
    }
  }

  /** Refuse the streams that wait for a place, because the broker stops. */
  refuseHeld(): void {
    this.#held.refuseAll();
  }

  /** Refuse the streams that arrived during a start that failed. */
  refuseEarly(): void {
    const streams = [...this.#early.keys()];
    this.#early.clear();
    for (const stream of streams) stream.destroy();
  }

  /** Note that a connection has begun to close and no longer counts towards the limits. Called once for each connection. */
  placeFreed(connection: Connection<Session>): void {
    this.#byAddress.delete(connection);
    this.#watermark.is(--this.#places);
    this.#held.placeFreed();
  }

  /** Note that the stream of a connection has closed. */
  streamClosed(connection: Connection<Session>): void {
    const { events } = this.#services;
    this.#byAddress.delete(connection);
    this.#held.placeFreed();
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
