// An upgrade request is claimed before the `upgrade` listeners of the app see it, because packages with WebSocket
// paths refuse what they do not know; requests for other paths are left to them. While the broker is stopped, and
// after `close`, the server is as it was before. A server is recognized by its methods, since other runtimes and
// HTTP/2 have other classes. `handleUpgrade` never throws: the host calls it in a listener.

import type { Server as HttpServer, IncomingMessage } from 'node:http';
import type { Http2SecureServer } from 'node:http2';
import type { Server as HttpsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import {
  checkBroker,
  type FieldValues,
  type ListenerAddress,
  type ListenerCounters,
  type ListenerProtocol,
  readOptions,
  verifiedCertificate
} from '../../lib/adapter.ts';
import { InvalidInput, type TlsFacts } from '../../lib/index.ts';
import { type Claimant, respond, upgradesOf } from '../upgrades/index.ts';
import type { Acceptor } from './acceptor.ts';
import { boundAddress } from './bind.ts';
import { usernameStage } from './certificate.ts';
import { Gate, type LimitReport, type Stage } from './gate.ts';
import { AppListener, Listening } from './listen.ts';
import { freeName, type Listener, withoutTlsError } from './net-listener.ts';
import { LISTENER_OPTIONS, type ListenerOptions } from './options.ts';
import { WEBSOCKET_OPTIONS, WebSocketEndpoint, type WebSocketRead, type WebSocketSettings } from './websocket.ts';

/** Options of `attachWebSocket`. PROXY headers are left to the HTTP server. */
export type AttachOptions = Omit<ListenerOptions, 'proxyProtocol'> & WebSocketSettings;
/** Options of `upgradeHandler`. The host selects the path. */
export type UpgradeOptions = Omit<AttachOptions, 'path'>;

const { proxyProtocol: _, ...COMMON } = LISTENER_OPTIONS;
const { path, ...WITHOUT_PATH } = WEBSOCKET_OPTIONS;
const UPGRADE_OPTIONS = {
  ...COMMON,
  ...WITHOUT_PATH,
  maxConnections: { ...COMMON.maxConnections, default: 102_400 }
};
const ATTACH_OPTIONS = { ...UPGRADE_OPTIONS, path };

/**
 * Serve MQTT over WebSocket on one path of an HTTP or HTTPS server that the app already has.
 *
 * Upgrade requests for this path reach no `upgrade` listener of the app, because packages that serve other WebSocket
 * paths (`ws`, Socket.IO, `@fastify/websocket`) would refuse them. Requests for other paths are left to those
 * listeners; if there are none, they are answered with 404. While the broker is stopped, and after `close()`, the
 * server is as it was before.
 * @param server a server of `node:http`, `node:https`, or `node:http2` with `allowHTTP1`. For an Express app, pass what
 * its `listen` returns; for a Fastify app, `fastify.server`
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, ZONE_UNKNOWN or LISTENER_NAME_IN_USE
 */
export function attachWebSocket(
  broker: Acceptor,
  server: HttpServer | HttpsServer | Http2SecureServer,
  options: AttachOptions = {}
): Listening {
  // recognized by its methods, because other runtimes, realms and HTTP/2 have different classes
  if (typeof server?.on !== 'function' || typeof server.address !== 'function') {
    const expected = 'a server of node:http or node:https, such as listen() of an Express app returns';
    throw new InvalidInput('OPTION_INVALID', 'server', expected, server);
  }
  const read = readOptions(ATTACH_OPTIONS, options, 'attached WebSocket') as FieldValues<typeof ATTACH_OPTIONS>;
  const http = server as HttpServer;
  if (read.usernameFrom !== undefined && !isSecure(http)) {
    const text = 'usernameFrom needs client certificates, so attach to an HTTPS server; this one is HTTP';
    throw new InvalidInput('OPTION_INVALID', 'usernameFrom', 'an HTTPS server', read.usernameFrom, text);
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
  checkBroker(broker, 'upgradeHandler');
  const read = readOptions(UPGRADE_OPTIONS, options, 'upgrade handler') as FieldValues<typeof UPGRADE_OPTIONS>;
  return new UpgradeListener(broker, new ForwardedListener(broker, { ...read, path: undefined }));
}

/** The listener of a host that routes upgrade requests itself. The broker opens it when it starts and closes it when it stops. */
export class UpgradeListener extends AppListener {
  /**
   * Accept an upgrade request for MQTT, with the arguments of the `upgrade` event of the host's server. The path is not checked.
   *
   * A request with a refused origin or subprotocol, or past `maxConnections`, is answered or closed here; while the broker is not started,
   * the answer is 503. The function is bound and never throws.
   */
  readonly handleUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

  /** @internal */
  constructor(broker: Acceptor, listener: ForwardedListener) {
    super(broker, listener);
    this.handleUpgrade = (request, socket, head) => listener.handleUpgrade(request, socket, head);
    broker.attach(listener);
    if (broker.state !== 'connected') return;
    void listener.open();
    listener.accept();
  }
}

/** Accepts upgrade requests from an HTTP server of the app. */
class ForwardedListener implements Listener {
  readonly name: string;
  readonly protocol: ListenerProtocol;
  readonly #gate: Gate;
  readonly #endpoint: WebSocketEndpoint;
  readonly #usernameFrom: 'cn' | 'subject' | undefined;
  readonly #handOver: Stage = (arrival) => this.#gate.handOver(arrival);
  #isOpen = false;

  constructor(
    acceptor: Acceptor,
    options: FieldValues<typeof UPGRADE_OPTIONS> & WebSocketRead,
    base = 'ws:upgrade',
    protocol: ListenerProtocol = 'mqtt:ws'
  ) {
    this.name = options.name ?? freeName(acceptor, base);
    this.protocol = protocol;
    this.#gate = new Gate(acceptor, this.name, options);
    this.#endpoint = new WebSocketEndpoint(this.#gate, options, acceptor.zone(options.zone));
    this.#usernameFrom = options.usernameFrom;
  }

  /** Address of the host's server; undefined if it is unknown. */
  get address(): ListenerAddress | undefined {
    return undefined;
  }

  get port(): number | undefined {
    return this.address?.port;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  attached(arriving: () => void, limited?: LimitReport): void {
    this.#gate.attached(arriving, limited);
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
    this.#gate.close();
  }

  async reload(): Promise<void> {
    throw withoutTlsError(this.name);
  }

  refused(reason: string): void {
    this.#gate.count(reason);
  }

  info(): ListenerCounters {
    return this.#gate.counters();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  handleUpgrade(request: IncomingMessage, socket: Duplex & TlsFacts, head: Buffer): void {
    if (!this.#isOpen) {
      respond(socket, 503);
      return;
    }
    // the host may have decided asynchronously; a closed socket would never be subtracted again
    if (socket.destroyed) {
      this.#gate.count('upgrade_failed');
      return;
    }
    const upgrade: Stage = (named) => this.#endpoint.upgrade(named, request, socket, head, this.#handOver);
    const name = this.#usernameFrom;
    this.#gate.admit(socket, socket.encrypted ? 'wss' : 'ws', undefined, true, (arrival) => {
      if (socket.encrypted) arrival.certificate = verifiedCertificate(socket);
      this.#gate.enter(arrival, name === undefined ? upgrade : usernameStage(this.#gate, name, upgrade));
    });
  }
}

/** Accepts the upgrade requests for one path of an HTTP server. */
class AttachedListener extends ForwardedListener implements Claimant {
  readonly path: string;
  readonly #http: HttpServer;

  constructor(acceptor: Acceptor, http: HttpServer, options: FieldValues<typeof ATTACH_OPTIONS>) {
    const kind = isSecure(http) ? 'wss' : 'ws';
    super(acceptor, options, `${kind}:${options.path}`, `mqtt:${kind}`);
    this.path = options.path;
    this.#http = http;
  }

  override get address(): ListenerAddress | undefined {
    return super.isOpen ? boundAddress(this.#http) : undefined;
  }

  /** True once the server of the app listens. */
  override get isOpen(): boolean {
    return this.address !== undefined;
  }

  override async open(): Promise<void> {
    if (super.isOpen) return;
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
