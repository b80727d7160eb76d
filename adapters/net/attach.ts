import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket, Server as TlsServer } from 'node:tls';
import {
  BrokerError,
  InvalidInput,
  type ListenerAddress,
  type ListenerFigures,
  type ListenerProtocol,
  type OptionValues,
  readOptions
} from '../../lib/index.ts';
import { usernameStage, verifiedCertificate } from './certificate.ts';
import { type Acceptor, Gate, type Stage } from './gate.ts';
import { Listening } from './listen.ts';
import { freeName, type Listener, noTls } from './net-listener.ts';
import { LISTENER_OPTIONS, type ListenerOptions } from './options.ts';
import { answer, pathOf, WEBSOCKET_OPTIONS, WebSocketEndpoint, type WebSocketSettings } from './websocket.ts';

/** What `attachWebSocket` takes. A PROXY header in front of an HTTP server is for that server to read. */
export type AttachOptions = Omit<ListenerOptions, 'proxyProtocol' | 'trustedProxies'> & WebSocketSettings;

const { proxyProtocol: _, trustedProxies: __, ...COMMON } = LISTENER_OPTIONS;
const ATTACH_OPTIONS = {
  ...COMMON,
  ...WEBSOCKET_OPTIONS,
  maxConnections: { ...COMMON.maxConnections, default: 102_400 }
};

/**
 * Serve MQTT over WebSocket on an HTTP or HTTPS server that the app has already, on one path.
 *
 * Upgrade requests for other paths are left to the app's own `upgrade` listeners. Only where the app has none are they answered with 404:
 * nobody else would ever answer them. While the broker is stopped, and after `close()`, nothing of it is left on the server.
 * @param server the server itself: of a framework's app, what its `listen` returns
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, ZONE_UNKNOWN or LISTENER_NAME_IN_USE
 */
export function attachWebSocket(broker: Acceptor, server: Server, options: AttachOptions = {}): Listening {
  if (!(server instanceof NetServer)) {
    const expected = 'a server of node:http or node:https, such as listen() of an Express app returns';
    throw new InvalidInput('OPTION_INVALID', 'server', expected, server);
  }
  const read = readOptions(ATTACH_OPTIONS, options, 'attached WebSocket') as OptionValues<typeof ATTACH_OPTIONS>;
  if (read.usernameFrom !== undefined && !(server instanceof TlsServer)) {
    throw new InvalidInput(
      'OPTION_INVALID',
      'usernameFrom',
      'an HTTPS server, which knows client certificates',
      read.usernameFrom
    );
  }
  return new Listening(broker, new AttachedListener(broker, server, read));
}

class AttachedListener implements Listener {
  readonly name: string;
  readonly protocol: ListenerProtocol;
  readonly path: string;
  readonly #http: Server;
  readonly #gate: Gate;
  readonly #endpoint: WebSocketEndpoint;
  readonly #usernameFrom: 'cn' | 'subject' | undefined;
  readonly #handOver: Stage = (arrival) => this.#gate.handOver(arrival);
  #isOpen = false;

  constructor(acceptor: Acceptor, http: Server, options: OptionValues<typeof ATTACH_OPTIONS>) {
    const isSecure = http instanceof TlsServer;
    this.path = options.path;
    this.name = options.name ?? freeName(acceptor, `${isSecure ? 'wss' : 'ws'}:${options.path}`);
    this.protocol = isSecure ? 'mqtt:wss' : 'mqtt:ws';
    this.#http = http;
    this.#gate = new Gate(acceptor, this.name, options);
    this.#endpoint = new WebSocketEndpoint(this.#gate, options, acceptor.zone(options.zone));
    this.#usernameFrom = options.usernameFrom;
  }

  get address(): ListenerAddress | undefined {
    const address = this.#isOpen ? (this.#http.address() as AddressInfo | string | null) : null;
    if (address === null) return undefined;
    return typeof address === 'string' ? { path: address } : { host: address.address, port: address.port };
  }

  get port(): number | undefined {
    return this.address?.port;
  }

  async open(): Promise<void> {
    if (this.#isOpen) return;
    switchboard(this.#http).add(this);
    this.#isOpen = true;
    this.#gate.open();
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    switchboard(this.#http).delete(this);
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

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const isSecure = socket instanceof TLSSocket;
    const arrival = this.#gate.admit(socket, isSecure ? 'wss' : 'ws', undefined, true);
    if (arrival === undefined) return;
    if (isSecure) arrival.certificate = verifiedCertificate(socket);
    const upgrade: Stage = (named) => this.#endpoint.upgrade(named, request, socket, head, this.#handOver);
    if (this.#usernameFrom === undefined) upgrade(arrival);
    else usernameStage(this.#gate, this.#usernameFrom, upgrade)(arrival);
  }
}

/** The attached listeners of one HTTP server, behind the one `upgrade` listener they share. */
class Switchboard {
  readonly #http: Server;
  readonly #listeners = new Map<string, AttachedListener>();

  constructor(http: Server) {
    this.#http = http;
  }

  add(listener: AttachedListener): void {
    const other = this.#listeners.get(listener.path);
    if (other !== undefined) {
      throw new BrokerError(
        'LISTENER_BIND_FAILED',
        `path ${listener.path} of this HTTP server is taken by listener ${other.name}; choose another path`
      );
    }
    if (this.#listeners.size === 0) this.#http.on('upgrade', this.#upgraded);
    this.#listeners.set(listener.path, listener);
  }

  delete(listener: AttachedListener): void {
    this.#listeners.delete(listener.path);
    if (this.#listeners.size === 0) this.#http.off('upgrade', this.#upgraded);
  }

  readonly #upgraded = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const listener = this.#listeners.get(pathOf(request));
    if (listener !== undefined) listener.upgrade(request, socket, head);
    else if (this.#http.listenerCount('upgrade') === 1) {
      socket.on('error', () => {});
      answer(socket, 404);
    }
  };
}

const switchboards = new WeakMap<Server, Switchboard>();

function switchboard(http: Server): Switchboard {
  let board = switchboards.get(http);
  if (board === undefined) {
    board = new Switchboard(http);
    switchboards.set(http, board);
  }
  return board;
}
