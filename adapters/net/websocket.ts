import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import {
  type Duration,
  InvalidInput,
  type OptionValues,
  ProtocolError,
  ReasonCode,
  optionRow as row,
  type Size
} from '../../lib/index.ts';
import { type Arrival, type Gate, ignore, type Stage, type ZoneSizes } from './gate.ts';
import { checkOrigins, LOOPBACK_ORIGINS, type OriginCheck } from './origins.ts';
import { WebSocketStream } from './websocket-stream.ts';

/** How MQTT is spoken over WebSocket. */
export interface WebSocketSettings {
  /** Path of the URL, as it stands in requests: with a leading slash, percent-encoded, without a query. Default `/mqtt`. */
  path?: string;
  /**
   * Web pages that may connect besides those of loopback origins: origins such as `https://app.example`, `null` for pages without an origin
   * (files, sandboxed frames), `*` or `any` for all pages. A function decides alone, and is also asked about clients that send no origin.
   * Default: pages of `http(s)://localhost`, `*.localhost`, `127.0.0.0/8` and `[::1]` with any port, and clients that send no origin because
   * they are not browsers. Others are refused with 403, also where the Host header has the same name, which DNS rebinding makes so.
   */
  origins?: string | readonly string[] | OriginCheck;
  /** Refuse clients that offer none of the subprotocols `mqtt`, `mqttv3.1.1` and `mqttv3.1` [MQTT-6.0.0-3]. Default true. */
  requireSubprotocol?: boolean;
  /**
   * Largest WebSocket message (1009 past it). A message is in memory as a whole before its packets are read, and some clients gather many
   * packets in one. Default: 4 times the zone's `maxPacketSize`.
   */
  maxPayload?: Size;
  /**
   * Compress frames, at the price of memory and time for each connection. `maxConnectSize` counts them as they come: inflated, a message
   * before CONNECT may be as large as `maxPayload`. Default false.
   */
  perMessageDeflate?: boolean;
  /** Send a ping so often, and close a connection from which nothing came since the last. Default 0: MQTT's keep alive does that. */
  pingInterval?: Duration;
}

export const WEBSOCKET_OPTIONS = {
  path: row('text', '/mqtt', 'Path of the URL.', { aliases: ['mqttPath', 'mqtt_path'], check: checkPath }),
  origins: row('object', LOOPBACK_ORIGINS, 'Origins that may connect, besides loopback ones.', { check: checkOrigins }),
  requireSubprotocol: row('boolean', true, 'Refuse clients without an MQTT subprotocol.'),
  maxPayload: row(
    'size',
    undefined as number | undefined,
    'Largest WebSocket message; by default 4 times maxPacketSize.',
    { unit: 'bytes', min: 16 }
  ),
  perMessageDeflate: row('boolean', false, 'Compress frames.', { aliases: ['compress'] }),
  pingInterval: row('duration', 0, 'Ping so often; 0: never.', { unit: 'ms' })
};

/** WebSocket options as read, with that of the socket below where it is the listener's own. Without a path, requests for any path are taken. */
export type WebSocketRead = Omit<OptionValues<typeof WEBSOCKET_OPTIONS>, 'path'> & {
  readonly path: string | undefined;
  readonly noDelay?: boolean;
};

/** Preferred first. */
const SUBPROTOCOLS = ['mqtt', 'mqttv3.1.1', 'mqttv3.1'];
/** How many packets of the greatest size a message may hold, unless its bound is given. */
const MESSAGE_PACKETS = 4;
/** How long a peer may take to answer our close. */
const CLOSE_TIMEOUT_MS = 3_000;

/** The WebSocket side of a listener: decides on upgrade requests, and makes streams of what was upgraded. */
export class WebSocketEndpoint {
  readonly #gate: Gate;
  readonly #settings: WebSocketRead;
  readonly #maxConnectSize: number;
  readonly #server: WebSocketServer;
  readonly #pinged = new Set<WebSocketStream>();
  #pingTimer: unknown;

  /** @param sizes of the listener's zone */
  constructor(gate: Gate, settings: WebSocketRead, { maxPacketSize, maxConnectSize }: ZoneSizes) {
    this.#gate = gate;
    this.#maxConnectSize = maxConnectSize;
    this.#settings = settings;
    const { maxPayload = MESSAGE_PACKETS * maxPacketSize, perMessageDeflate } = settings;
    // closeTimeout is newer than the type definitions of ws.
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

  /** Answer an upgrade request: pass its stream on, or refuse it with a status. */
  upgrade(arrival: Arrival, request: IncomingMessage, socket: Duplex, head: Buffer, next: Stage): void {
    const status = this.#refusal(request);
    if (status !== undefined) {
      arrival.reason = 'upgrade_refused';
      answer(socket, status);
      return;
    }
    arrival.reason = 'upgrade_failed';
    try {
      this.#server.handleUpgrade(request, socket, head, (webSocket) => {
        arrival.stream = this.#stream(webSocket, socket);
        // ws has turned it on
        if (this.#settings.noDelay === false) (socket as Socket).setNoDelay(false);
        arrival.headers = request.headers;
        next(arrival);
      });
    } catch (error) {
      // ws throws where another listener of the same HTTP server has taken this very socket.
      this.#gate.report(error, 'upgrading a connection');
      this.#gate.refuse(arrival, 'upgrade_failed');
    }
  }

  #refusal(request: IncomingMessage): number | undefined {
    const { origins, requireSubprotocol, path } = this.#settings;
    if (path !== undefined && pathOf(request) !== path) return 404;
    if (!this.#isWelcome(origins, request)) return 403;
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
    // The specification leaves open how to refuse; a client reads "bad request" as its own mistake.
    return requireSubprotocol && !SUBPROTOCOLS.some((name) => offered.includes(name)) ? 400 : undefined;
  }

  #isWelcome(origins: OriginCheck, request: IncomingMessage): boolean {
    try {
      return origins(request.headers.origin, request) === true;
    } catch (error) {
      this.#gate.report(error, 'checking an origin');
      return false;
    }
  }

  #stream(webSocket: WebSocket, carrier: Duplex): WebSocketStream {
    const stream = new WebSocketStream(webSocket, carrier, this.#maxConnectSize);
    if (this.#settings.pingInterval > 0) this.#watchOver(stream);
    return stream;
  }

  /** One timer for all connections, while there are any. */
  #watchOver(stream: WebSocketStream): void {
    this.#pinged.add(stream);
    stream.on('close', () => this.#pinged.delete(stream));
    if (this.#pinged.size === 1) this.#armPing();
  }

  #armPing(): void {
    const { clock } = this.#gate;
    clock.clearTimeout(this.#pingTimer);
    this.#pingTimer = clock.setTimeout(() => {
      for (const stream of this.#pinged) {
        if (!stream.isAlive) {
          this.#pinged.delete(stream);
          stream.destroy(new ProtocolError(ReasonCode.keepAliveTimeout, 'nothing came since the last WebSocket ping'));
        } else {
          stream.isAlive = false;
          stream.ping();
        }
      }
      if (this.#pinged.size > 0) this.#armPing();
    }, this.#settings.pingInterval);
  }
}

/** The stage that waits for the upgrade request, where the listener has a socket of its own. */
export function upgradeStage(endpoint: WebSocketEndpoint, next: Stage): Stage {
  const arrivals = new WeakMap<Duplex, Arrival>();
  const server: Server = createServer((request, response) => refuseRequest(arrivals.get(request.socket), response));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const arrival = arrivals.get(socket);
    if (arrival === undefined || arrival.isOver) socket.destroy();
    else endpoint.upgrade(arrival, request, socket, head, next);
  });
  return (arrival) => {
    arrival.reason = 'upgrade_failed';
    arrivals.set(arrival.stream, arrival);
    server.emit('connection', arrival.stream);
  };
}

/** The path of a request, without its query. */
export function pathOf({ url = '' }: IncomingMessage): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

/** Answer an upgrade request with a status and close. */
export function answer(socket: Duplex, status: number): void {
  const text = STATUS_CODES[status] as string;
  socket.on('error', ignore);
  socket.once('finish', () => socket.destroy());
  socket.end(
    `HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}\r\n\r\n${text}`
  );
}

function refuseRequest(arrival: Arrival | undefined, response: ServerResponse): void {
  if (arrival !== undefined) arrival.reason = 'upgrade_refused';
  response.writeHead(426, { Connection: 'close', Upgrade: 'websocket', 'Content-Type': 'text/plain' });
  response.end('This port speaks MQTT over WebSocket.\n');
}

/** One that is written otherwise than requests have it would never match. */
function checkPath(value: unknown, field: string): string {
  const path = value as string;
  const url = 'http://host';
  if (path.startsWith('/') && URL.canParse(path, url) && new URL(path, url).pathname === path) return path;
  throw new InvalidInput('OPTION_INVALID', field, 'the path of a URL, such as "/mqtt"', path);
}
