// Decides on upgrade requests: path, origin, subprotocol, and the limits of the gate. The default allows pages of
// loopback origins only, and clients without an origin; the Host header is not trusted, since DNS rebinding can make
// it match. A function of the app that decides on origins must answer at once. A listener with its own socket uses a
// server of node:http that never listens: connections are handed to it.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { type FieldValues, field, shownUrl } from '../../lib/adapter.ts';
import { type Duration, InvalidInput, ProtocolError, ReasonCode, type Size } from '../../lib/index.ts';
import {
  checkOrigins,
  LOOPBACK_ORIGINS,
  type OriginCheck,
  PROXY_HEADERS,
  type ProxyHeaderName,
  pathOf,
  respond,
  type TrustedProxies
} from '../upgrades/index.ts';
import type { ZoneSizes } from './acceptor.ts';
import { type Arrival, type Gate, ignore, type Stage } from './gate.ts';
import { WebSocketStream } from './websocket-stream.ts';

/** WebSocket settings of a listener. */
export interface WebSocketSettings {
  /** Path of the URL as in requests: with a leading slash, percent-encoded, without a query. Default `/mqtt`. */
  path?: string;
  /**
   * Web pages that may connect in addition to those of loopback origins: origins such as `https://app.example`, `null`
   * for pages without an origin (files, sandboxed frames), `*` or `any` for all pages. A function decides about all
   * clients, including those that send no origin.
   *
   * Default: pages of `http(s)://localhost`, `*.localhost`, `127.0.0.0/8` and `[::1]` with any port, and clients that
   * send no origin because they are not browsers. Others are refused with 403, even if the Host header has the same
   * name, because DNS rebinding can cause that.
   */
  origins?: string | readonly string[] | OriginCheck;
  /** Refuse clients that offer none of the subprotocols `mqtt`, `mqttv3.1.1` and `mqttv3.1` [MQTT-6.0.0-3]. Default true. */
  requireSubprotocol?: boolean;
  /**
   * Maximum size of a WebSocket message; a larger one closes the connection with 1009. A whole message is in memory
   * before its packets are read, and some clients send many packets in one. Default: 4 times the `maxPacketSize` of the
   * zone.
   */
  maxPayload?: Size;
  /**
   * Compress frames, which costs memory and time for each connection. `maxConnectSize` counts compressed bytes: decompressed, a message
   * before CONNECT may be as large as `maxPayload`. Default false.
   */
  perMessageDeflate?: boolean;
  /**
   * Interval of pings; a connection is closed if it was read and nothing was received since the last ping. Default 0:
   * no pings, because MQTT has a keep alive.
   */
  pingInterval?: Duration;
  /**
   * The header in which `trustedProxies` report the address of the client: `x-forwarded-for` (default), or `forwarded` (RFC 7239). The other
   * one is ignored, because a proxy may pass it on as the client has sent it; both are ignored with `proxyProtocol`.
   */
  proxyHeader?: 'x-forwarded-for' | 'forwarded';
}

export const WEBSOCKET_OPTIONS = {
  path: field(
    'string',
    '/mqtt',
    'Path of the URL as in requests: with a leading slash, percent-encoded, without a query.',
    { aliases: ['mqttPath', 'mqtt_path'], check: checkPath }
  ),
  origins: field('object', LOOPBACK_ORIGINS, 'Web pages that may connect in addition to those of loopback origins.', {
    check: checkOrigins
  }),
  requireSubprotocol: field('boolean', true, 'Refuse clients that offer none of the subprotocols of MQTT.'),
  maxPayload: field(
    'size',
    undefined as number | undefined,
    'Maximum size of a WebSocket message; a larger one closes the connection with 1009.',
    { unit: 'bytes', min: 16 }
  ),
  perMessageDeflate: field('boolean', false, 'Compress frames, which costs memory and time for each connection.', {
    aliases: ['compress']
  }),
  pingInterval: field(
    'duration',
    0,
    'Interval of pings; a connection that answers none is closed. 0: never, because MQTT has a keep alive.',
    { unit: 'ms' }
  ),
  proxyHeader: field(
    'choice',
    'x-forwarded-for' as ProxyHeaderName,
    'The header in which `trustedProxies` report the address of the client. Others are ignored, and all with `proxyProtocol`.',
    { choices: PROXY_HEADERS }
  )
};

/**
 * The checked WebSocket options, with `noDelay` if the listener owns the socket. Without `path`, requests for any path
 * are accepted.
 */
export type WebSocketRead = Omit<FieldValues<typeof WEBSOCKET_OPTIONS>, 'path'> & {
  readonly path: string | undefined;
  readonly noDelay?: boolean;
  readonly trustedProxies: TrustedProxies;
  readonly proxyProtocol?: boolean;
};

/** Subprotocols in the order of preference. */
const SUBPROTOCOLS = ['mqtt', 'mqttv3.1.1', 'mqttv3.1'];
/** Default of `maxPayload`, as a multiple of `maxPacketSize`. */
const MESSAGE_PACKETS = 4;
/** Time for a peer to answer a close frame. */
const CLOSE_TIMEOUT_MS = 3_000;

/** Maximum number of characters of a path or origin in the reason of a refusal. */
const MAX_SHOWN = 200;

/** The WebSocket part of a listener: accepts or refuses upgrade requests, and creates the streams of upgraded connections. */
export class WebSocketEndpoint {
  readonly #gate: Gate;
  readonly #settings: WebSocketRead;
  readonly #maxConnectSize: number;
  readonly #server: WebSocketServer;
  /** The proxies whose header is read. Undefined: none. */
  readonly #proxies: TrustedProxies | undefined;
  readonly #pinged = new Set<WebSocketStream>();
  #pingTimer: unknown;

  constructor(gate: Gate, settings: WebSocketRead, { maxPacketSize, maxConnectSize }: ZoneSizes) {
    this.#gate = gate;
    this.#maxConnectSize = maxConnectSize;
    this.#settings = settings;
    const { maxPayload = MESSAGE_PACKETS * maxPacketSize, perMessageDeflate, trustedProxies, proxyHeader } = settings;
    // With PROXY headers the list says who may send these; the clients that they name could be in it.
    if (!trustedProxies.isEmpty && settings.proxyProtocol !== true) {
      this.#proxies = trustedProxies.with(proxyHeader);
      this.#proxies.reportTo({ clock: gate.clock, failed: (error, during) => gate.report(error, during) });
    }
    // closeTimeout is missing in the type definitions of ws
    const options: ServerOptions & { closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      maxPayload,
      perMessageDeflate,
      closeTimeout: CLOSE_TIMEOUT_MS,
      handleProtocols: (offered) => SUBPROTOCOLS.find((name) => offered.has(name)) ?? false
    };
    this.#server = new WebSocketServer(options);
  }

  /** Accept an upgrade request and pass its stream to the next stage, or refuse it with a status. */
  upgrade(arrival: Arrival, request: IncomingMessage, socket: Duplex, head: Buffer, next: Stage): void {
    const { remoteAddress } = arrival;
    const address = this.#proxies?.clientAddress(remoteAddress, (name) => request.headers[name]) ?? remoteAddress;
    if (address !== remoteAddress) {
      arrival.remoteAddress = address;
      arrival.remotePort = undefined; // that of the proxy
    }
    const refusal = this.#refusalOf(request);
    if (refusal !== undefined) {
      arrival.reason = 'upgrade_refused';
      arrival.fault = refusal.why;
      respond(socket, refusal.status);
      return;
    }
    arrival.reason = 'upgrade_failed';
    try {
      this.#server.handleUpgrade(request, socket, head, (webSocket) => {
        arrival.stream = this.#createStream(webSocket, socket);
        // ws has set noDelay
        if (this.#settings.noDelay === false) (socket as Socket).setNoDelay(false);
        arrival.headers = request.headers;
        next(arrival);
      });
    } catch (error) {
      // ws throws if another listener of the same HTTP server has upgraded the socket
      this.#gate.report(error, 'upgrading a connection');
      this.#gate.refuse(arrival, 'upgrade_failed');
    }
  }

  #refusalOf(request: IncomingMessage): { readonly status: number; readonly why: string } | undefined {
    const { origins, requireSubprotocol, path } = this.#settings;
    const asked = pathOf(request);
    if (path !== undefined && asked !== path) {
      const why = `the path is "${shownUrl(asked).slice(0, MAX_SHOWN)}", not "${path}" (option path)`;
      return { status: 404, why };
    }
    if (!this.#allowsOrigin(origins, request)) {
      const { origin } = request.headers;
      const what = origin === undefined ? 'no origin' : `the origin "${shownUrl(origin).slice(0, MAX_SHOWN)}"`;
      return { status: 403, why: `${what} is not allowed (option origins)` };
    }
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
    if (!requireSubprotocol || SUBPROTOCOLS.some((name) => offered.includes(name))) return undefined;
    // not specified: the status of a refusal. 400 tells the client that its request is wrong
    return { status: 400, why: 'the client does not offer the subprotocol "mqtt" (option requireSubprotocol)' };
  }

  #allowsOrigin(origins: OriginCheck, request: IncomingMessage): boolean {
    try {
      const answer: unknown = origins(request.headers.origin, request);
      if (typeof answer === 'boolean') return answer;
      // a rejected promise must not end the process
      Promise.resolve(answer).catch(ignore);
      throw new InvalidInput('OPTION_INVALID', 'origins', 'a function that returns true or false at once', answer);
    } catch (error) {
      this.#gate.report(error, 'checking an origin');
      return false;
    }
  }

  #createStream(webSocket: WebSocket, carrier: Duplex): WebSocketStream {
    const stream = new WebSocketStream(webSocket, carrier, this.#maxConnectSize);
    if (this.#settings.pingInterval > 0) this.#addToPings(stream);
    return stream;
  }

  /** Add a stream to those that are pinged. One timer serves all of them. */
  #addToPings(stream: WebSocketStream): void {
    this.#pinged.add(stream);
    stream.on('close', () => this.#pinged.delete(stream));
    if (this.#pinged.size === 1) this.#armPing();
  }

  #armPing(): void {
    const { clock } = this.#gate;
    clock.clearTimeout(this.#pingTimer);
    this.#pingTimer = clock.setTimeout(() => {
      for (const stream of this.#pinged) {
        if (!stream.isAlive && !stream.isUnread) {
          this.#pinged.delete(stream);
          stream.destroy(
            new ProtocolError(ReasonCode.keepAliveTimeout, 'nothing was received since the last WebSocket ping')
          );
        } else {
          stream.ping();
        }
      }
      if (this.#pinged.size > 0) this.#armPing();
    }, this.#settings.pingInterval);
  }
}

/** Create the stage that waits for the upgrade request, for a listener with its own server socket. */
export function upgradeStage(endpoint: WebSocketEndpoint, next: Stage): Stage {
  const arrivals = new WeakMap<Duplex, Arrival>();
  const server: Server = createServer((request, response) => refuseRequest(arrivals.get(request.socket), response));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const arrival = arrivals.get(socket);
    if (arrival === undefined || arrival.isSettled) socket.destroy();
    else endpoint.upgrade(arrival, request, socket, head, next);
  });
  return (arrival) => {
    arrival.reason = 'upgrade_failed';
    arrival.fault = '';
    arrivals.set(arrival.stream, arrival);
    server.emit('connection', arrival.stream);
  };
}

function refuseRequest(arrival: Arrival | undefined, response: ServerResponse): void {
  if (arrival !== undefined) arrival.reason = 'upgrade_refused';
  response.writeHead(426, { Connection: 'close', Upgrade: 'websocket', 'Content-Type': 'text/plain' });
  response.end('This port speaks MQTT over WebSocket.\n');
}

/** Read the option `path`. A path that differs from its form in requests would never match, so it is refused. */
function checkPath(value: unknown, field: string): string {
  const path = value as string;
  const url = 'http://host';
  if (path.startsWith('/') && URL.canParse(path, url) && new URL(path, url).pathname === path) return path;
  throw new InvalidInput('OPTION_INVALID', field, 'the path of a URL, such as "/mqtt"', path);
}
