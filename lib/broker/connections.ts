import type { Duplex } from 'node:stream';
import type { TimeReading } from '../base/time-reading.ts';
import { type Connection, isAttached } from '../connection/connection.ts';
import type { Announcer } from '../events/announcer.ts';
import { Metric, type Metrics } from '../events/metrics.ts';
import type { TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import type { Session } from '../session/session.ts';
import type { Life } from './life.ts';

/** What serving connections asks of the broker. */
export interface ConnectionsHost {
  readonly time: TimeReading;
  readonly metrics: Metrics;
  readonly announcer: Announcer;
  readonly life: Life;
  readonly settings: { readonly maxConnections: number };
  readonly turn: { connectionArrived(): void };
  /** Begin a session in `idle` with this stream. */
  beginSession(stream: Duplex, transportInfo: TransportInfo, zone: Zone): Session;
}

/** The connections of a broker, from the stream that is handed over to its close. */
export class Connections {
  /** Connections whose stream has not closed. */
  readonly all = new Set<Connection<Session>>();
  readonly #host: ConnectionsHost;
  /** Streams that came while the broker starts. */
  readonly #early = new Map<Duplex, readonly [transportInfo: TransportInfo, zone: Zone]>();
  /** Connections that count for `maxConnections`: those whose close is not under way. */
  #places = 0;
  #onAllClosed: (() => void) | undefined = undefined;

  constructor(host: ConnectionsHost) {
    this.#host = host;
  }

  /** Whether a stream has been handed over before. */
  has(stream: Duplex): boolean {
    return isAttached(stream) || this.#early.has(stream);
  }

  /** Begin to serve a stream. */
  open(stream: Duplex, transportInfo: TransportInfo, zone: Zone): void {
    const { settings, metrics, life, time, turn } = this.#host;
    const { maxConnections } = settings;
    const isFull = maxConnections > 0 && this.#places + this.#early.size >= maxConnections;
    if (isFull || stream.destroyed) {
      metrics.counts[Metric.connectionsRefused]++;
      stream.destroy();
      return;
    }
    if (!life.isRunning) {
      stream.on('error', () => undefined); // it is destroyed then, and refused
      this.#early.set(stream, [transportInfo, zone]);
      return;
    }
    time.readMonotonic();
    const session = this.#host.beginSession(stream, transportInfo, zone);
    const connection = session.connection as Connection<Session>;
    this.all.add(connection);
    this.#places++;
    turn.connectionArrived();
    connection.open();
  }

  /** The broker runs: serve the streams that came while it started. */
  openEarly(): void {
    for (const [stream, arrival] of this.#early) {
      this.#early.delete(stream); // before it is counted as a connection
      this.open(stream, ...arrival);
    }
  }

  /** The start failed: refuse the streams that came meanwhile. */
  refuseEarly(): void {
    const streams = [...this.#early.keys()];
    this.#early.clear();
    for (const stream of streams) stream.destroy();
  }

  /** The connection no longer counts for `maxConnections`: its close is under way. Called once. */
  placeFreed(): void {
    this.#places--;
  }

  /** The stream has closed. */
  streamClosed(connection: Connection<Session>): void {
    this.all.delete(connection);
    if (this.all.size === 0) this.#onAllClosed?.();
  }

  /** Resolves when the last stream has closed. */
  allClosed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.all.size === 0) resolve();
      else this.#onAllClosed = resolve;
    });
  }

  /** Nobody waits for `allClosed` any more. */
  forgetWaiting(): void {
    this.#onAllClosed = undefined;
  }

  /** Destroy every stream that has not closed by itself. */
  cutOff(): void {
    for (const connection of this.all) {
      try {
        connection.destroy();
      } catch (error) {
        this.#host.announcer.failed(error, 'destroying a stream', connection.session);
      }
      this.all.delete(connection);
    }
  }
}
