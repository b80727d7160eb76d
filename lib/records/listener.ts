/** How a listener carries MQTT, in the words of the management interface. */
export type ListenerProtocol = 'mqtt:tcp' | 'mqtt:ssl' | 'mqtt:ws' | 'mqtt:wss' | 'mqtt:unix';

/** Where a listener accepts: host and port, or the path of a Unix socket. */
export interface ListenerAddress {
  readonly host?: string;
  /** The real port, also where port 0 was asked for. */
  readonly port?: number;
  readonly path?: string;
}

/** What the management interface shows of a listener. */
export interface ListenerFigures {
  /** Accept loops. */
  readonly acceptors: number;
  /** Most connections at one time; 0: unlimited. */
  readonly maxConnections: number;
  readonly currentConnections: number;
  /** Connections that ended, by reason. */
  readonly shutdownCount: Readonly<Record<string, number>>;
}

/**
 * What a stream may have that gathers bytes before it hands them on, as a WebSocket's messages are: until its client is let in it keeps to
 * the zone's `maxConnectSize` by itself, and the broker tells it how far that is.
 */
export interface GatheringStream {
  /** A packet before CONNACK is complete. What comes behind it is no reason to fail: at the bound it stays in the network. */
  packetTaken?(): void;
  /** The CONNECT is accepted: the bound is lifted. */
  admitted?(): void;
}

/** What a stream may have whose listener counts connections. */
export interface CountedStream {
  /**
   * The broker has decided to close the connection, or has seen the client's end: it no longer counts for `maxConnections`, though the stream
   * may take a while to close. Called once.
   */
  placeFreed?(): void;
  /**
   * When the connection was accepted, by `monotonic` of the broker's clock, where handshakes came in between: `connectTimeout` and
   * `idleTimeout` count from then. Undefined: from when the broker was given the stream.
   */
  acceptedAt?: number | undefined;
}

/** A listener as the broker knows it: opened by `start`, closed first by `stop`. The broker itself opens no port. */
export interface ListenerHandle {
  /** Unique name, for example `tcp:1883`, `ws:8083`, `unix:/run/x.sock`. */
  readonly name: string;
  /** How it carries MQTT. */
  readonly protocol: ListenerProtocol;
  /** Where it accepts; undefined while it is not open. */
  readonly address: ListenerAddress | undefined;
  /** Bind. Connections that come before `accept` wait unread, or, where there is no `accept`, are handed over at once. Rejects with BrokerError LISTENER_BIND_FAILED, which names the address and the remedy. */
  open(): Promise<void>;
  /** Serve clients. Called when all listeners of a starting broker are open, so that nobody is served by a start that fails. */
  accept?(): void;
  /** Stop accepting, and cut off what waits for `accept`. Connections already handed over are the broker's to end. */
  close(): Promise<void>;
  /** Its numbers as they are now. */
  info(): ListenerFigures;
}
