// A connection is an `Arrival` from its accept until the broker gets it or it is refused; it passes stages (PROXY
// header, TLS, WebSocket), and one timeout counts for all of them. `isSettled` is set once, and every stage checks it
// after it has waited. A place counts until the broker begins to close the connection, not until the socket has
// closed. Nothing that a peer does may throw here. Listeners of sockets are shared, because a closure for each costs
// about 100 bytes per connection.

import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type CountedStream, type ListenerCounters, Newcomers, plainAddress } from '../../lib/adapter.ts';
import { type Clock, ConnectionRefused, type ProtocolVersion, type TransportInfo } from '../../lib/index.ts';
import { DescriptorReserve, type Descriptors } from '../upgrades/index.ts';
import type { Acceptor, Disconnected } from './acceptor.ts';

/** The reasons for which a listener closes a connection before handing it to the broker. */
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

/**
 * The reported faults of peers whose connection is refused. The other reasons are limits of the listener, or are
 * answered over HTTP.
 */
const FAULTS: { readonly [R in RefusalReason]?: string } = {
  handshake_timeout: 'the handshake has not ended in time (options handshakeTimeout, connectTimeout and idleTimeout)',
  proxy_untrusted: 'the address is not one of those in the option trustedProxies',
  proxy_malformed: 'the connection does not begin with a PROXY header (option proxyProtocol)',
  tls_failed: 'the TLS handshake has failed',
  upgrade_refused: 'the WebSocket upgrade is refused',
  no_username: 'there is no certificate with a user name (option usernameFrom)'
};

/** The limits for which a connection is closed when it arrives, in words. */
const LIMITS = {
  max_connections: 'it has too many connections (its option maxConnections)',
  max_conn_rate: 'connections arrive too fast (its option maxConnRate)',
  descriptors_short: 'the process has too few file descriptors left (option reservedDescriptors)'
} as const satisfies Partial<Record<RefusalReason, string>>;

/** Records a connection that is closed because of a limit. */
export type LimitReport = (address: string | undefined, why: string) => void;

/** Settings that all kinds of listeners share. */
interface GateSettings {
  readonly zone: string | undefined;
  readonly mountpoint: string | undefined;
  readonly protocolVersions: readonly ProtocolVersion[] | undefined;
  readonly maxConnections: number;
  readonly maxConnRate: number;
  readonly reservedDescriptors: number;
  readonly handshakeTimeout: number;
}

/** A connection between its accept and its hand-over to the broker, with the information about it so far. */
export interface Arrival {
  /** The accepted socket. */
  readonly socket: Duplex;
  /** The stream that the next stage reads: the socket itself, then the TLS socket over it, then the WebSocket stream over that. */
  stream: Duplex;
  readonly transport: TransportInfo['transport'];
  remoteAddress: string | undefined;
  remotePort: number | undefined;
  localAddress: string | undefined;
  localPort: number | undefined;
  username: string | undefined;
  isAuthenticated: boolean;
  certificate: TransportInfo['certificate'];
  headers: TransportInfo['headers'];
  /** The reason that is counted if the connection ends in the current stage. */
  reason: RefusalReason;
  /** The reason why the TLS handshake has failed or the upgrade is refused, as far as it is known. */
  fault: string;
  /** True if the connection was handed over or refused, or has ended. */
  isSettled: boolean;
  timer: unknown;
  /** The time of accept, if there are stages to pass before the hand-over to the broker. */
  acceptedAt: number | undefined;
}

/** The alarm about too many connections is cleared below this share of `maxConnections`. */
const FREED_SHARE = 0.9;
const FULL_TITLE = 'there are too many connections';

type Counted = Duplex & CountedStream;

/** An accepted socket, and the continuation for when there is room for it. */
interface Newcomer {
  readonly socket: Socket | Duplex;
  readonly transport: Arrival['transport'];
  readonly local: KnownLocal | undefined;
  readonly isStaged: boolean;
  readonly admitted: (arrival: Arrival) => void;
}

/** One step between accept and broker. It passes the arrival to the next stage, or refuses it through the gate. */
export type Stage = (arrival: Arrival) => void;

/** Local address that is the same for all connections of a listener, which saves a system call for each. */
export interface KnownLocal {
  readonly address: string | undefined;
  readonly port: number | undefined;
}

/**
 * Admits or refuses the connections of a listener, counts them, enforces the handshake timeout, and hands them to the
 * broker. No action of a peer makes it throw.
 */
export class Gate {
  /** Name of the listener. */
  readonly name: string;
  readonly shutdownCount: Record<string, number> = {};
  readonly settings: GateSettings;
  readonly clock: Clock;
  readonly #acceptor: Acceptor;
  /** Notifies the broker of an arrival that has handshakes. */
  #announce: (() => void) | undefined;
  /** Records a connection that is closed because of a limit. */
  #limited: LimitReport | undefined;
  readonly #arriving = new Map<Duplex, Arrival>();
  /** Connections that count towards `maxConnections`: they have not closed, and the broker has not begun to close them. */
  #places = 0;
  /** True if `maxConnections` was reached and the alarm has not been cleared yet. */
  #isFull = false;
  readonly #held: Newcomers<Newcomer>;
  readonly #placeFreed: (this: Duplex) => void;
  readonly #onClose: (this: Duplex) => void;
  /** Called when a connection that waited for a place has closed. */
  readonly #onHeldClose = () => this.#descriptors.remove();
  /** Connections that arrived before `accept`, in order, each with its first stage; undefined after `accept`. */
  #waiting: (readonly [arrival: Arrival, first: Stage])[] | undefined = [];
  readonly #descriptors: DescriptorReserve;
  /** Time for all stages together; the timeouts of the broker also count from accept. */
  readonly #handshakeMs: number;
  #tokens: number;
  #filledAt: number;

  /** @param descriptors those of the process, except in tests */
  constructor(acceptor: Acceptor, name: string, settings: GateSettings, descriptors?: Descriptors) {
    this.name = name;
    this.clock = acceptor.clock;
    this.#acceptor = acceptor;
    this.settings = settings;
    this.#descriptors = new DescriptorReserve(acceptor, name, settings.reservedDescriptors, descriptors);
    const { connectTimeout, idleTimeout } = acceptor.zone(settings.zone);
    this.#handshakeMs = Math.min(settings.handshakeTimeout, connectTimeout, idleTimeout);
    this.#tokens = Math.max(settings.maxConnRate, 1);
    this.#filledAt = acceptor.clock.monotonic();
    this.#held = new Newcomers(acceptor.clock, {
      hasRoom: ({ socket }) => !this.#hasNoPlace || socket.destroyed,
      serve: (newcomer) => this.#serve(newcomer),
      refuse: ({ socket }) => this.#reject(socket, 'max_connections')
    });
    const gate = this;
    // one function for all sockets, because a closure for each would cost about 100 bytes per connection
    this.#placeFreed = function placeFreed() {
      gate.#freePlace(this);
    };
    this.#onClose = function left() {
      gate.#freePlace(this);
      gate.#descriptors.remove();
      const arrival = gate.#arriving.get(this);
      if (arrival !== undefined) gate.refuse(arrival, arrival.reason);
    };
  }

  /**
   * Free the place of a socket, on the first of two events: the broker closes the connection, or its socket has closed.
   */
  #freePlace(socket: Counted): void {
    if (socket.placeFreed === ignore) return;
    socket.placeFreed = ignore;
    this.#places--;
    if (this.#isFull && this.#places < this.settings.maxConnections * FREED_SHARE) this.#clearFull();
    this.#held.placeFreed();
  }

  get #hasNoPlace(): boolean {
    const { maxConnections } = this.settings;
    return maxConnections > 0 && this.#places >= maxConnections;
  }

  /**
   * Admit a socket if number, rate and file descriptors allow it; otherwise close it and count it. If there are too
   * many connections, it first waits for a moment: its client may have closed another one just before.
   * @param isStaged the socket has stages to pass, which must end within `handshakeTimeout`, `connectTimeout` and
   * `idleTimeout`
   * @param admitted continues with the socket
   */
  admit(
    socket: Socket | Duplex,
    transport: Arrival['transport'],
    local: KnownLocal | undefined,
    isStaged: boolean,
    admitted: (arrival: Arrival) => void
  ): void {
    const newcomer = { socket, transport, local, isStaged, admitted };
    if (!this.#hasNoPlace) this.#enter(newcomer);
    else if (!this.#descriptors.admits()) this.#reject(socket, 'descriptors_short');
    else if (!this.#held.hold(newcomer)) this.#reject(socket, 'max_connections');
    else {
      socket.on('error', ignore);
      this.#descriptors.add();
      socket.on('close', this.#onHeldClose);
    }
  }

  /** Serve a connection that has waited. */
  #serve(newcomer: Newcomer): void {
    const { socket } = newcomer;
    if (!socket.closed) {
      socket.off('close', this.#onHeldClose);
      this.#descriptors.remove(); // added again below, with the other connections
    }
    this.#enter(newcomer);
  }

  #enter({ socket, transport, local, isStaged, admitted }: Newcomer): void {
    const arrival = this.#arrive(socket, transport, local, isStaged);
    if (arrival !== undefined) admitted(arrival);
  }

  /** @returns undefined if the socket was closed */
  #arrive(
    socket: Socket | Duplex,
    transport: Arrival['transport'],
    local: KnownLocal | undefined,
    isStaged: boolean
  ): Arrival | undefined {
    const { maxConnections } = this.settings;
    const isWaiting = isStaged || this.#waiting !== undefined;
    if (isWaiting) socket.on('error', ignore); // otherwise the broker adds a listener in this turn, or the socket is destroyed
    if (socket.destroyed) return this.#reject(socket, 'max_connections'); // no place became free
    if (!this.#hasToken()) return this.#reject(socket, 'max_conn_rate');
    if (!this.#descriptors.admits()) return this.#reject(socket, 'descriptors_short');
    this.#places++;
    if (this.#places === maxConnections) this.#raiseFull();
    this.#descriptors.add();
    socket.on('close', this.#onClose);
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
      fault: '',
      isSettled: false,
      timer: undefined,
      acceptedAt: isStaged ? this.clock.monotonic() : undefined
    };
    if (isStaged) this.#announce?.();
    if (isWaiting) this.#await(arrival, isStaged ? this.#handshakeMs : this.settings.handshakeTimeout);
    return arrival;
  }

  /** Refuse an arrival that is not handed over within this time. */
  #await(arrival: Arrival, withinMs: number): void {
    this.#arriving.set(arrival.socket, arrival);
    arrival.timer = this.clock.setTimeout(() => this.refuse(arrival, 'handshake_timeout'), withinMs);
  }

  /** Start the first stage of an arrival. Before `accept` it waits, and nothing is read or answered. */
  enter(arrival: Arrival, first: Stage): void {
    if (this.#waiting === undefined) first(arrival);
    else this.#waiting.push([arrival, first]);
  }

  /** Start the waiting arrivals, and all later ones at once; to be called when all listeners of the broker are open. */
  accept(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const [arrival, first] of waiting) if (!arrival.isSettled) first(arrival);
  }

  /** Hand the connection to the broker: the last stage. */
  handOver(arrival: Arrival): void {
    if (arrival.isSettled) return;
    if (arrival.stream.destroyed) {
      this.refuse(arrival, arrival.reason);
      return;
    }
    this.#settle(arrival);
    const stream = arrival.stream as Counted;
    const socket = arrival.socket as Counted;
    socket.placeFreed = this.#placeFreed;
    if (stream !== socket) forwardPlaceFreed(stream, socket);
    if (arrival.acceptedAt !== undefined) stream.acceptedAt = arrival.acceptedAt;
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
      this.report(error, 'accepting a connection');
      stream.destroy();
    }
  }

  /** Close a connection before its hand-over, count the reason, and report it if it is a fault of the peer. */
  refuse(arrival: Arrival, reason: RefusalReason): void {
    if (arrival.isSettled) return;
    this.#settle(arrival);
    this.count(reason);
    arrival.stream.destroy();
    arrival.socket.destroy();
    const text = FAULTS[reason];
    const { fault } = arrival;
    // a request without an upgrade may come from a load balancer that probes the port repeatedly
    if (text === undefined || (reason === 'upgrade_refused' && fault === '')) return;
    const peer = arrival.remoteAddress === undefined ? '' : ` from ${arrival.remoteAddress}`;
    const message = reason === 'tls_failed' || reason === 'upgrade_refused' ? `${text}: ${fault}` : text;
    this.report(new ConnectionRefused(reason, message, arrival.remoteAddress), `accepting a connection${peer}`);
  }

  count(reason: string): void {
    this.shutdownCount[reason] = (this.shutdownCount[reason] ?? 0) + 1;
  }

  counters(): ListenerCounters {
    const { shutdownCount, settings } = this;
    return {
      acceptors: 1,
      maxConnections: settings.maxConnections,
      currentConnections: this.#places,
      shutdownCount: { ...shutdownCount }
    };
  }

  /** Report an error that belongs to no caller. */
  report(error: unknown, during: string): void {
    this.#acceptor.failed(error, `listener ${this.name}: ${during}`, undefined);
  }

  /** See `ListenerHandle.attached`. */
  attached(arriving: () => void, limited?: LimitReport): void {
    this.#announce = arriving;
    this.#limited = limited;
  }

  /** Start counting the reasons of disconnects; called when the listener opens. */
  open(): void {
    this.#acceptor.on('client.disconnected', this.#disconnected);
  }

  /** Refuse all connections that have not been handed over; to be called when the listener closes. */
  close(): void {
    this.#acceptor.off('client.disconnected', this.#disconnected);
    this.#descriptors.close();
    if (this.#isFull) this.#clearFull();
    this.#held.refuseAll();
    this.#waiting = [];
    for (const arrival of [...this.#arriving.values()]) this.refuse(arrival, 'listener_closed');
  }

  #raiseFull(): void {
    if (this.#isFull) return;
    this.#isFull = true;
    const summary = `listener ${this.name} has ${this.#places} connections and closes further ones (its option maxConnections)`;
    this.#acceptor.alarms.raise({ id: this.#fullAlarm, severity: 'error', title: FULL_TITLE, summary });
  }

  #clearFull(): void {
    this.#isFull = false;
    this.#acceptor.alarms.clear(this.#fullAlarm);
  }

  get #fullAlarm(): string {
    return `too_many_connections:${this.name}`;
  }

  #settle(arrival: Arrival): void {
    arrival.isSettled = true;
    if (!this.#arriving.delete(arrival.socket)) return;
    this.clock.clearTimeout(arrival.timer);
  }

  readonly #disconnected = ({ client, reason }: Disconnected): void => {
    if (client.transportInfo.listener === this.name) this.count(reason);
  };

  #reject(socket: Duplex, reason: keyof typeof LIMITS): undefined {
    this.count(reason);
    this.#limited?.(plainAddress((socket as Socket).remoteAddress), `listener ${this.name}: ${LIMITS[reason]}`);
    socket.destroy();
    return undefined;
  }

  /** Take a token from a bucket that holds the tokens of one second. */
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

/**
 * Forward the report that the broker makes to a stream to the gate of the socket. Not part of `handOver`, where it
 * would allocate for every socket.
 */
function forwardPlaceFreed(stream: Counted, socket: Counted): void {
  stream.placeFreed = () => socket.placeFreed?.();
}

/** Listener for `error` events: without one, the error of a socket would end the process. The `close` event that follows is counted. */
export function ignore(): void {}
