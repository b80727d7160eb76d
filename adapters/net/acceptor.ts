import type { Duplex } from 'node:stream';
import type { ListenerHandle } from '../../lib/adapter.ts';
import type { Alarms, BrokerEvents, Clock, TransportInfo } from '../../lib/index.ts';

/** The settings of a zone that a listener needs. */
export interface ZoneSizes {
  /** Maximum size of a packet, in bytes. */
  readonly maxPacketSize: number;
  /** Maximum number of bytes until the CONNECT is accepted. */
  readonly maxConnectSize: number;
  /** Milliseconds from accept until CONNACK, and until the first byte of MQTT. */
  readonly connectTimeout: number;
  /** Milliseconds from accept until the first byte of MQTT. */
  readonly idleTimeout: number;
}

/** The part of a broker that a listener needs. `Broker` implements it; so can a stub in a test. */
export interface Acceptor {
  /** Clock for handshake timeouts and rates. */
  readonly clock: Clock;
  /** `connected` while the broker is started. */
  readonly state: string;
  /** Return the settings of a zone. @throws InvalidInput ZONE_UNKNOWN */
  zone(name: string | undefined): ZoneSizes;
  /** Accept a connection: its stream, and the information of the listener about it. */
  handle(stream: Duplex, meta: TransportInfo): void;
  /** Add a listener, which the broker opens when it starts and closes when it stops. */
  attach(listener: ListenerHandle): void;
  /** Remove a listener. */
  detach(listener: ListenerHandle): void;
  /** Return all added listeners. */
  listeners(): readonly ListenerHandle[];
  /** Report an error that belongs to no caller. */
  failed(thrown: unknown, during: string, client: undefined): void;
  /** Alarms for operators. */
  readonly alarms: Pick<Alarms, 'raise' | 'clear'>;
  /** Call `listener` when a client has disconnected. */
  on(event: 'client.disconnected', listener: (event: Disconnected) => void): unknown;
  /** Remove `listener`. */
  off(event: 'client.disconnected', listener: (event: Disconnected) => void): unknown;
}

/** A client that has disconnected, and the reason. */
export type Disconnected = Pick<BrokerEvents['client.disconnected'], 'client' | 'reason'>;
