import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  type Alarm,
  type BrokerEvents,
  type Clock,
  type ConnectionMeta,
  type CountedStream,
  type ListenerFigures,
  type ListenerHandle,
  type ProtocolVersion,
  plainAddress
} from '../../lib/index.ts';
import { DescriptorReserve } from './descriptors.ts';

/** What a listener needs of a zone. */
export interface ZoneSizes {
  readonly maxPacketSize: number;
  readonly maxConnectSize: number;
}

/** What a listener needs of a broker. `Broker` fits; so does a stub in a test. */
export interface Acceptor {
  /** Time of handshakes and rates. */
  readonly clock: Clock;
  /** `connected` once it has started. */
  readonly state: string;
  /** Settings of a zone. Throws InvalidInput ZONE_UNKNOWN. */
  zone(name: string | undefined): ZoneSizes;
  /** Take a connection: its bytes and what the listener knows of it. */
  handle(stream: Duplex, meta: ConnectionMeta): void;
  /** Open this listener at the next start, close it at the next stop. */
  attach(listener: ListenerHandle): void;
  /** Forget a listener that was closed. */
  detach(listener: ListenerHandle): void;
  /** Those it knows. */
  listeners(): readonly ListenerHandle[];
  /** Announce an error that no caller can be told of. */
  failed(thrown: unknown, during: string, client: undefined): void;
  /** Announce a condition that an operator should know, or that it is over. */
  alarm(change: 'alert' | 'clear', alarm: Alarm): void;
  /** Tell when a client has gone, and why. */
  on(event: 'client.disconnected', hear: (event: Disconnected) => void): unknown;
  /** Tell no more. */
  off(event: 'client.disconnected', hear: (event: Disconnected) => void): unknown;
}

/** A client that has gone. */
export type Disconnected = Pick<BrokerEvents['client.disconnected'], 'client' | 'reason'>;

/** Why a listener itself ended a connection, before the broker had it. */
export type RefusalReason =
  | 'max_connections'
  | 'max_conn_rate'
  | 'descriptors_short'
  | 'handshake_timeout'
  | 'proxy_untrusted'
  | 'proxy_malformed'
  | 'tls_failed'
  | 'no_username'
  | 'upgrade_failed'
  | 'upgrade_refused'
  | 'listener_closed'
  | 'internal_error';

/** The settings every kind of listener has. */
export interface GateSettings {
  readonly zone: string | undefined;
  readonly mountpoint: string | undefined;
  readonly protocolVersions: readonly ProtocolVersion[] | undefined;
  readonly maxConnections: number;
  readonly maxConnRate: number;
  readonly reservedDescriptors: number;
  readonly handshakeTimeout: number;
}

/** A connection on its way from accept to the broker, and what has been learnt of it so far. */
export interface Arrival {
  /** What was accepted; its close ends the connection. */
  readonly socket: Duplex;
  /** What the next stage reads: the socket itself, then the TLS socket over it, then the WebSocket stream over that. */
  stream: Duplex;
  readonly transport: ConnectionMeta['transport'];
  remoteAddress: string | undefined;
  remotePort: number | undefined;
  localAddress: string | undefined;
  localPort: number | undefined;
  username: string | undefined;
  isAuthenticated: boolean;
  certificate: ConnectionMeta['certificate'];
  headers: ConnectionMeta['headers'];
  /** What it counts as when it ends in the present stage. */
  reason: RefusalReason;
  /** It was handed over, refused, or has ended. */
  isOver: boolean;
  timer: unknown;
}

/** One step of a connection's way in. It passes the arrival on, or has the gate refuse it. */
export type Stage = (arrival: Arrival) => void;

/** Addresses that are the same for all connections of a listener, so that nobody asks the kernel for each. */
export interface KnownLocal {
  readonly address: string | undefined;
  readonly port: number | undefined;
}

/**
 * Counts a listener's connections, lets them in or not, watches over the ones on their way, and hands them to the broker.
 * Nothing that a peer does throws out of here.
 */
export class Gate {
  /** The listener's name, as the broker is told it. */
  readonly name: string;
  readonly shutdownCount: Record<string, number> = {};
  readonly settings: GateSettings;
  readonly clock: Clock;
  readonly #acceptor: Acceptor;
  readonly #arriving = new Map<Duplex, Arrival>();
  /** Sockets that count for `maxConnections`: from accept until the broker begins to close the connection, or the socket closes. */
  readonly #places = new Set<Duplex>();
  readonly #placeFreed: (this: Duplex) => void;
  readonly #left: (this: Duplex) => void;
  /** Connections that came before `accept`, in order, and where their way begins; undefined: they enter as they come. */
  #waiting: (readonly [arrival: Arrival, first: Stage])[] | undefined = [];
  readonly #descriptors: DescriptorReserve;
  #tokens: number;
  #filledAt: number;

  constructor(acceptor: Acceptor, name: string, settings: GateSettings) {
    this.name = name;
    this.clock = acceptor.clock;
    this.#acceptor = acceptor;
    this.settings = settings;
    this.#descriptors = new DescriptorReserve(acceptor, name, settings.reservedDescriptors);
    this.#tokens = Math.max(settings.maxConnRate, 1);
    this.#filledAt = acceptor.clock.monotonic();
    const gate = this;
    this.#placeFreed = function placeFreed() {
      gate.#places.delete(this);
    };
    // One function for all sockets: a closure for each would cost an idle connection some 100 bytes.
    this.#left = function left() {
      gate.#places.delete(this);
      gate.#descriptors.given();
      const arrival = gate.#arriving.get(this);
      if (arrival !== undefined) gate.refuse(arrival, arrival.reason);
    };
  }

  /**
   * Take in a socket, within the bounds on number and rate; past them it is closed at once and counted.
   * @param isStaged it has a way to go before the broker gets it, and must have gone it within the handshake timeout
   */
  admit(
    socket: Socket | Duplex,
    transport: Arrival['transport'],
    local: KnownLocal | undefined,
    isStaged: boolean
  ): Arrival | undefined {
    socket.on('error', ignore);
    const { maxConnections } = this.settings;
    if (maxConnections > 0 && this.#places.size >= maxConnections) return this.#turnAway(socket, 'max_connections');
    if (!this.#hasToken()) return this.#turnAway(socket, 'max_conn_rate');
    if (!this.#descriptors.admits()) return this.#turnAway(socket, 'descriptors_short');
    this.#places.add(socket);
    this.#descriptors.taken();
    socket.on('close', this.#left);
    const { remoteAddress, remotePort } = socket as Socket;
    const arrival: Arrival = {
      socket,
      stream: socket,
      transport,
      remoteAddress: plainAddress(remoteAddress),
      remotePort,
      localAddress: local === undefined ? plainAddress((socket as Socket).localAddress) : local.address,
      localPort: local === undefined ? (socket as Socket).localPort : local.port,
      username: undefined,
      isAuthenticated: false,
      certificate: undefined,
      headers: undefined,
      reason: 'internal_error',
      isOver: false,
      timer: undefined
    };
    if (isStaged || this.#waiting !== undefined) {
      this.#arriving.set(socket, arrival);
      arrival.timer = this.clock.setTimeout(
        () => this.refuse(arrival, 'handshake_timeout'),
        this.settings.handshakeTimeout
      );
    }
    return arrival;
  }

  /** Begin an arrival's way. Before `accept` it waits, and nothing of it is read or answered. */
  enter(arrival: Arrival, first: Stage): void {
    if (this.#waiting === undefined) first(arrival);
    else this.#waiting.push([arrival, first]);
  }

  /** All listeners of the broker are open: let in what waits and what comes from now on. */
  accept(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const [arrival, first] of waiting) if (!arrival.isOver) first(arrival);
  }

  /** The last stage: the broker has it from here. */
  handOver(arrival: Arrival): void {
    if (arrival.isOver) return;
    if (arrival.stream.destroyed) {
      this.refuse(arrival, arrival.reason);
      return;
    }
    this.#settle(arrival);
    const { stream, socket } = arrival;
    (stream as Duplex & CountedStream).placeFreed =
      stream === socket ? this.#placeFreed : this.#placeFreed.bind(socket);
    const { zone, mountpoint, protocolVersions } = this.settings;
    try {
      this.#acceptor.handle(stream, {
        transport: arrival.transport,
        listener: this.name,
        zone,
        mountpoint,
        protocolVersions,
        remoteAddress: arrival.remoteAddress,
        remotePort: arrival.remotePort,
        localAddress: arrival.localAddress,
        localPort: arrival.localPort,
        username: arrival.username,
        authenticated: arrival.isAuthenticated,
        certificate: arrival.certificate,
        headers: arrival.headers
      });
    } catch (error) {
      this.count('internal_error');
      this.report(error, 'handing a connection over');
      stream.destroy();
    }
  }

  /** End a connection that the broker never had, and count why. */
  refuse(arrival: Arrival, reason: RefusalReason): void {
    if (arrival.isOver) return;
    this.#settle(arrival);
    this.count(reason);
    arrival.stream.destroy();
    arrival.socket.destroy();
  }

  count(reason: string): void {
    this.shutdownCount[reason] = (this.shutdownCount[reason] ?? 0) + 1;
  }

  figures(): ListenerFigures {
    const { shutdownCount, settings } = this;
    return {
      acceptors: 1,
      maxConnections: settings.maxConnections,
      currentConnections: this.#places.size,
      shutdownCount: { ...shutdownCount }
    };
  }

  /** Tell the broker of an error that belongs to no caller. */
  report(error: unknown, during: string): void {
    this.#acceptor.failed(error, `listener ${this.name}: ${during}`, undefined);
  }

  /** Count why clients go, as the broker tells it, while the listener is open. */
  open(): void {
    this.#acceptor.on('client.disconnected', this.#disconnected);
  }

  /** End what has not reached the broker yet. */
  shut(): void {
    this.#acceptor.off('client.disconnected', this.#disconnected);
    this.#descriptors.shut();
    this.#waiting = [];
    for (const arrival of [...this.#arriving.values()]) this.refuse(arrival, 'listener_closed');
  }

  #settle(arrival: Arrival): void {
    arrival.isOver = true;
    if (!this.#arriving.delete(arrival.socket)) return;
    this.clock.clearTimeout(arrival.timer);
  }

  readonly #disconnected = ({ client, reason }: Disconnected): void => {
    if (client.connection.listener === this.name) this.count(reason);
  };

  #turnAway(socket: Duplex, reason: RefusalReason): undefined {
    this.count(reason);
    socket.destroy();
    return undefined;
  }

  /** A bucket that holds one second's worth. */
  #hasToken(): boolean {
    const { maxConnRate } = this.settings;
    if (maxConnRate === 0) return true;
    const now = this.clock.monotonic();
    this.#tokens = Math.min(Math.max(maxConnRate, 1), this.#tokens + ((now - this.#filledAt) * maxConnRate) / 1000);
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

/** A socket's error is followed by its close, and that is what counts; without a listener it would end the process. */
export function ignore(): void {}
