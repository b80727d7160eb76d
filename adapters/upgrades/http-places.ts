// If there is no room for a connection, one of the address with the most incomplete requests is closed: the one that
// has waited longest for a complete request. Clients that open many connections and send nothing, or only parts of
// requests, therefore only affect themselves.
//
// After a request, a connection reads no more in this turn. Otherwise Node would read up to 2 MB of requests from
// each connection before serving the clients of other listeners. Few connections resume reading in each turn, in the
// order of their requests.

import type { Server as HttpServer, IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { loginSourceOf } from '../../lib/adapter.ts';
import type { Clock } from '../../lib/index.ts';

/** A connection of an HTTP server. */
interface Place {
  readonly socket: Socket;
  readonly source: string;
  /** Number of complete requests that have not been answered yet. */
  answering: number;
  /** Number of requests that have not been answered yet. */
  unanswered: number;
  /** Number of requests it has sent since it last resumed reading, answered or not. */
  unpaused: number;
  /** Start of the wait for a complete request. */
  sinceMs: number;
}

/** File descriptors that connections must leave free. */
interface Reserve {
  /** Check whether a newly accepted connection may stay. */
  admits(): boolean;
  /** Count a connection. */
  add(): void;
  /** Subtract a connection that has closed. */
  remove(): void;
}

/** Maximum number of requests that a connection may send without waiting for answers. Clients that do so send few. */
const MAX_PIPELINED = 64;
/** Number of connections that resume reading in one turn. */
const RESUMED_PER_TURN = 4;

/** The requests at ports of this package. */
const OWN = new WeakSet<IncomingMessage>();

/**
 * Check whether a request arrived at a port of this package. Otherwise its connection belongs to the server of the app.
 */
export function isAtOwnPort(request: IncomingMessage): boolean {
  return OWN.has(request);
}

/** The connections of an HTTP server that this package opens, up to a limit, and as long as file descriptors are free. */
export class HttpPlaces {
  /** The accepted connections by `peerOf`, in order of arrival. */
  readonly #places = new Map<unknown, Place>();
  readonly #max: number;
  readonly #clock: Clock;
  readonly #descriptors: Reserve | undefined;
  /** Connections that wait to resume reading. */
  readonly #paused = new Set<Socket>();
  readonly #known = new WeakSet<Socket>();
  #immediate: NodeJS.Immediate | undefined;

  /** @param max 0: no limit */
  constructor(max: number, clock: Clock, descriptors?: Reserve) {
    this.#max = max;
    this.#clock = clock;
    this.#descriptors = descriptors;
  }

  get size(): number {
    return this.#places.size;
  }

  /** The accepted connections; with TLS, the underlying ones. */
  *[Symbol.iterator](): Iterator<Socket> {
    for (const { socket } of this.#places.values()) yield socket;
  }

  /** Watch the connections and requests of a server. @param handler answers the requests */
  watch<S extends HttpServer | HttpsServer>(server: S, handler: RequestListener): S {
    server.on('connection', (socket: Socket) => this.#add(socket));
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (this.#begin(request, response)) handler(request, response);
    });
    return server;
  }

  /** Stop counting a connection, because it has become a WebSocket. */
  release(socket: Duplex): void {
    this.#places.delete(peerOf(socket as Socket));
  }

  #add(socket: Socket): void {
    const key = peerOf(socket);
    if (this.#places.get(key)?.socket === socket) return; // it begins again (`serveWithoutUpgrade`)
    const hasRoom = (this.#max === 0 || this.#places.size < this.#max) && this.#descriptors?.admits() !== false;
    if (!hasRoom && !this.#makeRoom(loginSourceOf(socket.remoteAddress))) {
      socket.destroy();
      return;
    }
    const sinceMs = this.#clock.monotonic();
    const place: Place = {
      socket,
      source: loginSourceOf(socket.remoteAddress),
      answering: 0,
      unanswered: 0,
      unpaused: 0,
      sinceMs
    };
    this.#places.set(key, place);
    this.#descriptors?.add();
    socket.on('close', () => {
      this.#descriptors?.remove();
      if (this.#places.get(key) === place) this.#places.delete(key);
    });
  }

  /**
   * @param newcomer the address of the connection that needs room
   * @returns false: every connection has a request in progress
   */
  #makeRoom(newcomer: string): boolean {
    const counts = new Map<string, number>([[newcomer, 1]]);
    const waiting = [...this.#places].filter(([, { answering }]) => answering === 0);
    let most = 0;
    for (const [, { source }] of waiting) {
      const count = (counts.get(source) ?? 0) + 1;
      counts.set(source, count);
      most = Math.max(most, count);
    }
    let longest: readonly [unknown, Place] | undefined;
    for (const one of waiting) {
      const [, { source, sinceMs }] = one;
      if (counts.get(source) === most && sinceMs < (longest?.[1].sinceMs ?? Infinity)) longest = one;
    }
    if (longest === undefined) return false;
    const [key, { socket }] = longest;
    this.#places.delete(key); // removed now, because the newcomer takes its place in this turn
    socket.destroy();
    return true;
  }

  /** @returns false: the request is not answered, because its connection is closed */
  #begin(request: IncomingMessage, response: ServerResponse): boolean {
    const { socket } = request;
    OWN.add(request);
    const place = this.#places.get(peerOf(socket));
    if (place !== undefined && Math.max(place.unanswered, place.unpaused) >= MAX_PIPELINED) socket.destroy();
    if (socket.destroyed) return false;
    this.#pause(socket);
    if (place === undefined) return true;
    place.unanswered++;
    place.unpaused++;
    let isComplete = false;
    const complete = () => {
      if (isComplete) return;
      isComplete = true;
      place.answering++;
    };
    const hasBody = request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length']) > 0;
    if (hasBody) request.on('end', complete);
    else complete();
    response.on('close', () => {
      place.unanswered--;
      if (!isComplete) request.off('end', complete);
      else place.answering--;
      place.sinceMs = this.#clock.monotonic();
    });
    return true;
  }

  #pause(socket: Socket): void {
    socket.pause();
    this.#paused.add(socket);
    if (!this.#known.has(socket)) {
      this.#known.add(socket);
      // Node resumes a connection to read or discard a body
      socket.on('resume', () => {
        if (this.#paused.has(socket)) socket.pause();
      });
    }
    this.#immediate ??= setImmediate(() => this.#resume());
  }

  #resume(): void {
    let left = RESUMED_PER_TURN;
    for (const socket of this.#paused) {
      if (left-- === 0) break;
      this.#paused.delete(socket);
      const place = this.#places.get(peerOf(socket));
      if (place !== undefined) place.unpaused = 0;
      socket.resume();
    }
    this.#immediate = this.#paused.size === 0 ? undefined : setImmediate(() => this.#resume());
  }
}

/**
 * A key that a connection shares with TLS over it. A client may use the same port for several addresses of this
 * machine.
 */
export function peerOf(socket: Socket): unknown {
  const { remoteAddress, remotePort, localAddress } = socket;
  return remotePort === undefined ? socket : `${remoteAddress} ${remotePort} ${localAddress}`;
}
