// A path exists while a stream or a sink uses it; both can share one, and then need the same token. Paths are claimed
// at every attached server before its `upgrade` listeners. A client that does not read is closed instead of slowing a
// sink. A refused upgrade is reported once in a minute for each path. An error of one peer must not reach others or
// the process.

import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { type SinkSetup, type SourceSetup, shownUrl } from '../../../lib/adapter.ts';
import { BrokerError, type Clock, InvalidInput } from '../../../lib/index.ts';
import type { Answer, Call, Service } from '../../rest/index.ts';
import { type Claimant, pathOf, respond, upgradesOf } from '../../upgrades/index.ts';
import type { PortUser } from '../port.ts';
import { BEARER_CHALLENGE, isAuthorized } from '../token.ts';
import { Intake } from './intake.ts';
import { CLOSE_MS, type Limits } from './options.ts';
import { Peer } from './peer.ts';

const PLAIN: Answer = {
  status: 426,
  headers: { 'content-type': 'text/plain; charset=utf-8', upgrade: 'websocket', connection: 'close' },
  body: 'this path speaks WebSocket\n'
};

/** Interval in which a path reports one refused upgrade. */
const REPORT_MS = 60_000;

/** The use of a path by a stream or a sink. */
export interface PathUse {
  readonly path: string;
  /** The token that clients need; undefined: none. It is the same for the stream and the sinks of a path. */
  readonly token: string | undefined;
}

/** The paths of streams and sinks, and the servers on which they are available. */
export class ServedPaths implements Service, PortUser {
  readonly prefixes = [''];
  readonly service = this;
  readonly #limits: Limits;
  readonly #prefix: string;
  readonly #sockets: WebSocketServer;
  readonly #paths = new Map<string, ServedPath>();
  /** Servers with a function to call for each connection that has become a WebSocket. */
  readonly #servers = new Map<Server, (socket: Duplex) => void>();
  /** Number of open connections of all paths. */
  #count = 0;

  constructor(limits: Limits, prefix: string) {
    this.#limits = limits;
    this.#prefix = prefix;
    // closeTimeout is missing in the type definitions of ws
    const options: ServerOptions & { closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: limits.maxPayload,
      closeTimeout: CLOSE_MS
    };
    this.#sockets = new WebSocketServer(options);
  }

  /**
   * Serve a path for a stream.
   * @returns a function that ends this
   * @throws InvalidInput STREAM_INVALID, PROPERTY_INVALID; BrokerError LISTENER_BIND_FAILED
   */
  addSource(setup: SourceSetup, use: PathUse): () => Promise<void> {
    const { path } = use;
    const known = this.#paths.get(this.#nameOf(path))?.stream;
    if (known !== undefined) {
      const text = `stream ${setup.stream}: the path ${path} belongs to the stream ${known}`;
      throw new InvalidInput('STREAM_INVALID', 'DATASOURCE', 'a path that no other stream has', path, text);
    }
    const served = this.#use(use, setup.clock);
    served.setSource(setup);
    return () => {
      served.setSource(undefined);
      return this.#leave(served);
    };
  }

  /** Serve a path for a sink. @throws InvalidInput PROPERTY_INVALID; BrokerError LISTENER_BIND_FAILED */
  addSink(setup: SinkSetup, use: PathUse): { send(data: Buffer, isBinary: boolean): void; close(): Promise<void> } {
    const served = this.#use(use, setup.clock);
    served.sinks.add(setup);
    return {
      send: (data, isBinary) => served.send(data, isBinary),
      close: () => {
        served.sinks.delete(setup);
        return this.#leave(served);
      }
    };
  }

  /**
   * Accept the upgrade requests of a server for current and future paths.
   * @returns a function that ends this
   * @throws BrokerError LISTENER_BIND_FAILED
   */
  attach(server: Server, upgraded: (socket: Duplex) => void = () => {}): () => void {
    for (const path of this.#paths.values()) upgradesOf(server).add(path);
    this.#servers.set(server, upgraded);
    return () => {
      if (!this.#servers.delete(server)) return;
      for (const path of this.#paths.values()) upgradesOf(server).delete(path);
    };
  }

  /**
   * Accept or refuse an upgrade request for one of the paths.
   * @returns false if the path is unknown; nothing was done then
   */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const path = this.#paths.get(pathOf(request));
    path?.handleUpgrade(request, socket, head);
    return path !== undefined;
  }

  methods(path: string): readonly string[] {
    return this.#paths.has(path) ? ['GET'] : [];
  }

  async answer({ path }: Call): Promise<Answer | undefined> {
    return this.#paths.has(path) ? PLAIN : undefined;
  }

  #nameOf(path: string): string {
    return this.#prefix + (path.startsWith('/') ? path : `/${path}`);
  }

  #use({ path, token }: PathUse, clock: Clock): ServedPath {
    const name = this.#nameOf(path);
    const known = this.#paths.get(name);
    if (known !== undefined) {
      if (known.token === token) return known;
      const expected = 'the same token, or none, for the stream and all sinks of a path';
      const text = `websocket: the path ${path} is in use with another property token: expected ${expected}`;
      throw new InvalidInput('PROPERTY_INVALID', 'token', expected, undefined, text);
    }
    const accept: Claimant['handleUpgrade'] = (...request) => this.#accept(served, ...request);
    const served = new ServedPath(name, token, { clock, limits: this.#limits, accept });
    const claimed: Server[] = [];
    try {
      for (const server of this.#servers.keys()) {
        upgradesOf(server).add(served);
        claimed.push(server);
      }
    } catch (error) {
      for (const server of claimed) upgradesOf(server).delete(served);
      throw error;
    }
    this.#paths.set(name, served);
    return served;
  }

  async #leave(served: ServedPath): Promise<void> {
    if (served.isUsed) return;
    if (this.#paths.get(served.path) === served) this.#paths.delete(served.path);
    for (const server of this.#servers.keys()) upgradesOf(server).delete(served);
    await served.close();
  }

  #accept(served: ServedPath, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!served.allows(request)) {
      served.refused(request, 'its origin is not allowed (option origins)');
      respond(socket, 403);
      return;
    }
    if (!served.admits(request)) {
      served.refused(request, 'it needs the header "Authorization: Bearer" with the property token of the path');
      respond(socket, 401, BEARER_CHALLENGE);
      return;
    }
    if (this.#count >= this.#limits.maxConnections) {
      served.refused(request, 'there are too many connections (option maxConnections)');
      respond(socket, 503);
      return;
    }
    try {
      this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
        this.#count++;
        for (const upgraded of this.#servers.values()) upgraded(socket);
        webSocket.once('close', () => this.#count--);
        served.add(webSocket, request.socket.remoteAddress ?? '');
      });
    } catch (error) {
      served.report(error); // another listener has taken the socket
      socket.destroy();
    }
  }
}

/** The dependencies of a path. */
interface PathPorts {
  readonly clock: Clock;
  readonly limits: Limits;
  readonly accept: Claimant['handleUpgrade'];
}

/** A path with its stream, its sinks and its connections. */
class ServedPath implements Claimant {
  readonly name: string;
  readonly path: string;
  /** The token that clients need; undefined: none. */
  readonly token: string | undefined;
  readonly sinks = new Set<SinkSetup>();
  readonly handleUpgrade: Claimant['handleUpgrade'];
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #peers = new Set<Peer>();
  #source: { readonly setup: SourceSetup; readonly intake: Intake } | undefined;
  #isClosed = false;
  /** Refused upgrades are not reported before this time. */
  #silentUntilMs = -Infinity;

  constructor(path: string, token: string | undefined, { clock, limits, accept }: PathPorts) {
    this.name = `of streams at ${path}`;
    this.path = path;
    this.token = token;
    this.handleUpgrade = accept;
    this.#clock = clock;
    this.#limits = limits;
  }

  /** The name of its stream. */
  get stream(): string | undefined {
    return this.#source?.setup.stream;
  }

  get isUsed(): boolean {
    return this.#source !== undefined || this.sinks.size > 0;
  }

  setSource(setup: SourceSetup | undefined): void {
    this.#source?.intake.close();
    if (this.#source?.intake.isPaused) for (const peer of this.#peers) peer.resume();
    this.#source = setup && { setup, intake: new Intake(setup, () => this.#peers) };
  }

  /** Check whether a client has the token. */
  admits({ headers }: IncomingMessage): boolean {
    return this.token === undefined || isAuthorized(headers.authorization, this.token);
  }

  /** Check whether the page of a client may connect, if the client is a browser. */
  allows(request: IncomingMessage): boolean {
    try {
      const answer: unknown = this.#limits.origins(request.headers.origin, request);
      if (typeof answer === 'boolean') return answer;
      // a rejected promise must not end the process
      Promise.resolve(answer).catch(() => undefined);
      throw new InvalidInput('OPTION_INVALID', 'origins', 'a function that returns true or false at once', answer);
    } catch (error) {
      this.report(error);
      return false;
    }
  }

  add(socket: WebSocket, remoteaddress: string): void {
    const metadata = { path: this.path, remoteaddress };
    const peer: Peer = new Peer(socket, this.#clock, this.#limits.pingInterval, {
      // without a stream, data from clients is discarded
      message: (data) => this.#source?.intake.take(data, metadata),
      closed: () => this.#peers.delete(peer)
    });
    this.#peers.add(peer);
    if (this.#source?.intake.isPaused) peer.pause();
    if (this.#isClosed) void peer.end('the path is no longer served');
  }

  /** Send to all connections. A connection that does not read is closed. */
  send(data: Buffer, isBinary: boolean): void {
    for (const peer of this.#peers) {
      if (!peer.isOpen) continue;
      const { bufferedBytes } = peer;
      if (bufferedBytes === 0 || bufferedBytes + data.length <= this.#limits.maxBuffered) {
        peer.send(data, isBinary);
        continue;
      }
      const text = `WebSocket ${this.path}: a client does not read, and more than ${this.#limits.maxBuffered} bytes are queued for it (maxBuffered); it is disconnected`;
      const error = new BrokerError('BUFFER_FULL', text);
      peer.drop(error);
      this.report(error);
    }
  }

  /** Report a refused upgrade, at most one per minute, because clients may retry continuously. */
  refused({ socket, headers }: IncomingMessage, why: string): void {
    const nowMs = this.#clock.monotonic();
    if (nowMs < this.#silentUntilMs) return;
    this.#silentUntilMs = nowMs + REPORT_MS;
    const page = headers.origin === undefined ? '' : ` for a page of "${shownUrl(headers.origin).slice(0, 200)}"`;
    const text = `${this.path}: the WebSocket upgrade of ${socket.remoteAddress ?? 'a client'}${page} is refused: ${why}`;
    const [sink] = this.sinks;
    if (sink !== undefined) sink.log(text);
    else this.#source?.setup.warn(text);
  }

  report(error: unknown): void {
    const [sink] = this.sinks;
    if (sink !== undefined) sink.log((error as Error).message);
    else this.#source?.setup.failed(error);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#peers].map((peer) => peer.end('the path is no longer served')));
  }
}
