/** Transport of a listener, as the management interface names it. */
export type ListenerProtocol =
  | 'mqtt:tcp'
  | 'mqtt:ssl'
  | 'mqtt:ws'
  | 'mqtt:wss'
  | 'mqtt:unix'
  | 'http:management'
  | 'https:management';

/** Address of a listener: host and port, or the path of a Unix socket. */
export interface ListenerAddress {
  /** The IP address or host name that it is bound to. */
  readonly host?: string;
  /** The actual port, even if port 0 was requested. */
  readonly port?: number;
  /** The path of a Unix socket. */
  readonly path?: string;
}

/** An address for people, with IPv6 addresses in brackets; undefined for none. */
export function placeOf(address: ListenerAddress | undefined): string | undefined {
  const { host = '', port, path } = address ?? {};
  if (port === undefined) return path ?? (host === '' ? undefined : host);
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Counters of a listener, as the management interface shows them. */
export interface ListenerCounters {
  /** Number of accept loops. */
  readonly acceptors: number;
  /** Maximum number of connections at a time; 0: unlimited. */
  readonly maxConnections: number;
  /** Number of connections now. */
  readonly currentConnections: number;
  /** Number of connections that have ended, by reason. */
  readonly shutdownCount: Readonly<Record<string, number>>;
}

/**
 * Optional methods of a stream that collects bytes before it passes them on, as a WebSocket does with its messages.
 *
 * Until its CONNECT is accepted, such a stream itself limits the bytes it holds to the zone's `maxConnectSize`. The broker calls these
 * methods to report progress.
 */
export interface GatheringStream {
  /** Called when a complete packet has been read before CONNACK. From then on the stream stops reading at the limit and does not fail. */
  packetTaken?(): void;
  /** Called when the CONNECT is accepted; the limit no longer applies. */
  admitted?(): void;
}

/** Optional members of a stream whose listener limits the number of its connections. */
export interface CountedStream {
  /**
   * Called once when the broker has decided to close the connection or the client has ended it. The connection no longer counts towards
   * `maxConnections`, although the stream may take a while to close.
   */
  placeFreed?(): void;
  /**
   * Time at which the connection was accepted, in milliseconds of `monotonic` of the broker's clock. `connectTimeout` and `idleTimeout`
   * start at this time, so that they include handshakes. Undefined: they start when the broker receives the stream.
   */
  acceptedAt?: number | undefined;
}

/**
 * A listener, implemented by an adapter. `broker.start` opens it, and `broker.stop` closes it before everything else.
 */
export interface ListenerHandle {
  /** Unique name, for example `tcp:1883`, `ws:8083`, `unix:/run/x.sock`. */
  readonly name: string;
  /** Transport of the listener. */
  readonly protocol: ListenerProtocol;
  /** Address of the listener; undefined while it is not open, or if the app has the server and its address is unknown. */
  readonly address: ListenerAddress | undefined;
  /**
   * The address and the zone of a listener that other machines can reach, and that asks its clients for no certificate and no pre-shared key.
   * The broker warns if anyone may connect there.
   */
  readonly exposure?:
    | {
        /** The address that it is bound to. */
        readonly host: string;
        /** The zone of its clients. */
        readonly zone: string;
      }
    | undefined;
  /** True if it accepts clients. Without this property, a listener with an address counts as open. */
  readonly isOpen?: boolean;
  /**
   * Called when the broker has added the listener.
   * @param arriving to be called for each accepted connection that is not passed on immediately, for example during its
   *   TLS handshake. In the meantime the broker postpones work that can wait, so that Node accepts the next connections
   *   soon
   * @param limited to be called for each connection that the listener closes because of a limit, with the address of the
   *   peer and the limit in words
   */
  attached?(arriving: () => void, limited?: (address: string | undefined, why: string) => void): void;
  /**
   * Bind the address. Until `accept` is called, connections wait unread; a listener without `accept` passes them on
   * immediately.
   * @throws BrokerError LISTENER_BIND_FAILED, with the address and the remedy in its message
   */
  open(): Promise<void>;
  /**
   * Start to serve clients. Called when all listeners of a starting broker are open, so that a failed start serves no
   * client.
   */
  accept?(): void;
  /** Stop accepting, and close the connections that wait for `accept`. The broker closes the connections that it has received. */
  close(): Promise<void>;
  /**
   * Called when the broker has immediately closed a connection of this listener, so that the listener can count it.
   * @param reason `max_connections` or `max_connections_per_address`
   */
  refused?(reason: string): void;
  /** The current counters of the listener. */
  info(): ListenerCounters;
}
