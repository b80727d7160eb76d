import type { Server as HttpServer, IncomingMessage } from 'node:http';
import type { Http2SecureServer } from 'node:http2';
import type { Server as HttpsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import {
  InvalidInput,
  type ListenerAddress,
  type ListenerFigures,
  type ListenerProtocol,
  type OptionValues,
  readOptions,
  type TlsFacts,
  verifiedCertificate
} from '../../lib/index.ts';
import { boundAddress } from './bind.ts';
import { usernameStage } from './certificate.ts';
import { type Acceptor, Gate, type Stage } from './gate.ts';
import { AppListener, Listening } from './listen.ts';
import { freeName, type Listener, noTls } from './net-listener.ts';
import { LISTENER_OPTIONS, type ListenerOptions } from './options.ts';
import { type Claimant, upgradesOf } from './upgrades.ts';
import {
  answer,
  WEBSOCKET_OPTIONS,
  WebSocketEndpoint,
  type WebSocketRead,
  type WebSocketSettings
} from './websocket.ts';

/** What `attachWebSocket` takes. A PROXY header in front of an HTTP server is for that server to read. */
export type AttachOptions = Omit<ListenerOptions, 'proxyProtocol' | 'trustedProxies'> & WebSocketSettings;
/** What `upgradeHandler` takes: the host decides on the path. */
export type UpgradeOptions = Omit<AttachOptions, 'path'>;

const { proxyProtocol: _, trustedProxies: __, ...COMMON } = LISTENER_OPTIONS;
const { path, ...WITHOUT_PATH } = WEBSOCKET_OPTIONS;
const UPGRADE_OPTIONS = {
  ...COMMON,
  ...WITHOUT_PATH,
  maxConnections: { ...COMMON.maxConnections, default: 102_400 }
};
const ATTACH_OPTIONS = { ...UPGRADE_OPTIONS, path };

/**
 * Serve MQTT over WebSocket on an HTTP or HTTPS server that the app has already, on one path.
 *
 * Upgrade requests for this path are answered here and reach no `upgrade` listener of the app, so that packages with WebSocket paths of
 * their own (`ws`, Socket.IO, `@fastify/websocket`) do not refuse them. Requests for other paths are left to those listeners, and answered
 * with 404 only if there are none. While the broker is stopped, and after `close()`, nothing of it is left on the server.
 * @param server the server itself, also of HTTP/2 with `allowHTTP1`: of an Express app what its `listen` returns, of a Fastify app `fastify.server`
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, ZONE_UNKNOWN or LISTENER_NAME_IN_USE
 */
export function attachWebSocket(
  broker: Acceptor,
  server: HttpServer | HttpsServer | Http2SecureServer,
  options: AttachOptions = {}
): Listening {
  // By its methods: other runtimes, realms and HTTP/2 have classes of their own.
  if (typeof server?.on !== 'function' || typeof server.address !== 'function') {
    const expected = 'a server of node:http or node:https, such as listen() of an Express app returns';
    throw new InvalidInput('OPTION_INVALID', 'server', expected, server);
  }
  const read = readOptions(ATTACH_OPTIONS, options, 'attached WebSocket') as OptionValues<typeof ATTACH_OPTIONS>;
  const http = server as HttpServer;
  if (read.usernameFrom !== undefined && !isSecure(http)) {
    const expected = 'an HTTPS server, which knows client certificates';
    throw new InvalidInput('OPTION_INVALID', 'usernameFrom', expected, read.usernameFrom);
  }
  return new Listening(broker, new AttachedListener(broker, http, read));
}

/**
 * Serve MQTT over WebSocket for a host that routes upgrade requests itself.
 *
 * ```ts
 * const mqtt = upgradeHandler(broker);
 * server.on('upgrade', (request, socket, head) => {
 *   if (request.url === '/mqtt') mqtt.handleUpgrade(request, socket, head);
 *   else app.handleUpgrade(request, socket, head);
 * });
 * ```
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, ZONE_UNKNOWN or LISTENER_NAME_IN_USE
 */
export function upgradeHandler(broker: Acceptor, options: UpgradeOptions = {}): UpgradeListener {
  const read = readOptions(UPGRADE_OPTIONS, options, 'upgrade handler') as OptionValues<typeof UPGRADE_OPTIONS>;
  return new UpgradeListener(broker, new HandedListener(broker, { ...read, path: undefined }));
}

/** The listener of a host that routes upgrade requests itself. The broker opens it at its start and closes it at its stop. */
export class UpgradeListener extends AppListener {
  /**
   * Take an upgrade request that the host has found to be MQTT's: with what its server's `upgrade` event gives. The path is not looked at. A
   * request that must not pass (origin, subprotocol, number of connections) is answered or closed here, with 503 while the broker is not
   * started. Bound, and never throws.
   */
  readonly handleUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

  /** @internal */
  constructor(broker: Acceptor, listener: HandedListener) {
    super(broker, listener);
    this.handleUpgrade = (request, socket, head) => listener.handleUpgrade(request, socket, head);
    broker.attach(listener);
    if (broker.state !== 'connected') return;
    void listener.open();
    listener.accept();
  }
}

/** Takes what an HTTP server of the app upgrades. */
class HandedListener implements Listener {
  readonly name: string;
  readonly protocol: ListenerProtocol;
  readonly #gate: Gate;
  readonly #endpoint: WebSocketEndpoint;
  readonly #usernameFrom: 'cn' | 'subject' | undefined;
  readonly #handOver: Stage = (arrival) => this.#gate.handOver(arrival);
  #isOpen = false;

  constructor(
    acceptor: Acceptor,
    options: OptionValues<typeof UPGRADE_OPTIONS> & WebSocketRead,
    base = 'ws:upgrade',
    protocol: ListenerProtocol = 'mqtt:ws'
  ) {
    this.name = options.name ?? freeName(acceptor, base);
    this.protocol = protocol;
    this.#gate = new Gate(acceptor, this.name, options);
    this.#endpoint = new WebSocketEndpoint(this.#gate, options, acceptor.zone(options.zone));
    this.#usernameFrom = options.usernameFrom;
  }

  /** That of the host's server, if it is known. */
  get address(): ListenerAddress | undefined {
    return undefined;
  }

  get port(): number | undefined {
    return this.address?.port;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  async open(): Promise<void> {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#gate.open();
  }

  accept(): void {
    this.#gate.accept();
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#gate.shut();
  }

  async reload(): Promise<void> {
    throw noTls(this.name);
  }

  info(): ListenerFigures {
    return this.#gate.figures();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  handleUpgrade(request: IncomingMessage, socket: Duplex & TlsFacts, head: Buffer): void {
    if (!this.#isOpen) {
      answer(socket, 503);
      return;
    }
    const arrival = this.#gate.admit(socket, socket.encrypted ? 'wss' : 'ws', undefined, true);
    if (arrival === undefined) return;
    if (socket.encrypted) arrival.certificate = verifiedCertificate(socket);
    const upgrade: Stage = (named) => this.#endpoint.upgrade(named, request, socket, head, this.#handOver);
    const name = this.#usernameFrom;
    this.#gate.enter(arrival, name === undefined ? upgrade : usernameStage(this.#gate, name, upgrade));
  }
}

/** Takes the upgrade requests of one path of an HTTP server. */
class AttachedListener extends HandedListener implements Claimant {
  readonly path: string;
  readonly #http: HttpServer;

  constructor(acceptor: Acceptor, http: HttpServer, options: OptionValues<typeof ATTACH_OPTIONS>) {
    const kind = isSecure(http) ? 'wss' : 'ws';
    super(acceptor, options, `${kind}:${options.path}`, `mqtt:${kind}`);
    this.path = options.path;
    this.#http = http;
  }

  override get address(): ListenerAddress | undefined {
    return this.isOpen ? boundAddress(this.#http) : undefined;
  }

  override async open(): Promise<void> {
    if (this.isOpen) return;
    upgradesOf(this.#http).add(this);
    await super.open();
  }

  override async close(): Promise<void> {
    upgradesOf(this.#http).delete(this);
    await super.close();
  }
}

function isSecure(server: object): boolean {
  return 'setSecureContext' in server;
}
