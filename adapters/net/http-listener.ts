// An HTTP server of the broker for apps without one: it opens and closes with the broker and knows nothing of what it
// serves. At a stop, requests in progress may end within the time of the stop; idle connections and streams of
// events, which have no end, are closed at once. Reloads of certificates run one after the other, because each starts
// from the settings of the previous one.

import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse
} from 'node:http';
import { createServer as createSecureServer, type Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  checkBroker,
  INSPECT,
  type ListenerAddress,
  type ListenerCounters,
  type ListenerProtocol,
  listenerText,
  shownUrl
} from '../../lib/adapter.ts';
import { type Broker, BrokerError, InvalidInput } from '../../lib/index.ts';
import {
  DescriptorReserve,
  HttpPlaces,
  isForWebSocket,
  peerOf,
  respond,
  serveWithoutUpgrade
} from '../upgrades/index.ts';
import { bind, boundAddress, type ServerMaker } from './bind.ts';
import { FileWatch } from './file-watch.ts';
import { ignore } from './gate.ts';
import { refuseConnect, refuseExpectation, refuseUnparsed, refuseWithoutHost } from './http-refusals.ts';
import { Listening } from './listen.ts';
import { freeName, type Listener, withoutTlsError } from './net-listener.ts';
import { type LoadedMaterial, loadMaterial } from './tls-material.ts';
import { filesOf, type TlsMaterial, type TlsRead, withMaterial } from './tls-options.ts';
import { type Transport, tcp } from './transport.ts';

/** Limits of the HTTP server, in milliseconds. */
const LIMITS = {
  /** Time from the start of a request to the end of its headers. */
  headersTimeout: 10_000,
  /** Time from the start of a request to its end. */
  requestTimeout: 60_000,
  /** Time for which an idle connection is kept. */
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 2_000
};
/** Node answers a request without the header `Host` with an empty response; `refuseWithoutHost` gives the reason. */
const OPTIONS = { ...LIMITS, requireHostHeader: false };

/** Handlers of requests and of upgrade requests, such as the result of `dashboard`. */
export interface HttpHandlers {
  /** Answers requests. */
  readonly node: RequestListener;
  /** Takes an upgrade request. Returns false if it is for another path: it is then answered with 404. */
  readonly handleUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;
}

/**
 * Serve HTTP on a port that the broker opens when it starts and closes when it stops, for an app without an HTTP
 * server.
 *
 * ```ts
 * listenHttp(broker, 8081, managementApi(broker, { revision: 'later' }).node);
 * listenHttp(broker, tls({ port: 8443, certFile: 'server.crt', keyFile: 'server.key' }), api.node);
 * ```
 * Errors and rejections of a handler are answered with 500 and reported by the event `error`. Input that Node refuses,
 * such as bytes that are not HTTP, is answered with `{"code","message"}` as JSON. At a stop, idle connections and
 * streams of events are closed at once, and requests in progress may end within the `timeoutMs` of the stop.
 * @param handler a handler of requests, or an object that also takes upgrade requests
 * @param where a port on 127.0.0.1, or the result of `tcp`, `tls` or `unix`, whose MQTT options have no effect
 * @returns the same as `listen`
 * @throws InvalidInput OPTION_INVALID; LISTENER_NAME_IN_USE
 */
export function listenHttp(
  broker: Broker,
  where: number | Transport,
  handler: RequestListener | HttpHandlers
): Listening {
  checkBroker(broker, 'listenHttp');
  const transport = typeof where === 'number' ? tcp({ port: where }) : where;
  if (transport.webSocket !== undefined || transport.proxies !== undefined)
    throw new InvalidInput(
      'OPTION_INVALID',
      'where',
      'a port, or tcp, tls or unix without proxyProtocol',
      transport.kind
    );
  const handlers = typeof handler === 'function' ? { node: handler } : handler;
  // an interface without upgrade requests is passed as its handler
  const isGood = typeof handler === 'function' || typeof handler?.handleUpgrade === 'function';
  if (!isGood || typeof handlers.node !== 'function')
    throw new InvalidInput(
      'OPTION_INVALID',
      'handler',
      'a function, such as managementApi(broker).node',
      typeof handler
    );
  return new Listening(broker, new HttpListener(broker, transport, handlers));
}

type Handlers = Pick<HttpHandlers, 'node'> & Partial<HttpHandlers>;

/** A listener for HTTP. */
class HttpListener implements Listener {
  readonly name: string;
  readonly protocol: ListenerProtocol;
  readonly #broker: Broker;
  readonly #transport: Transport;
  readonly #handlers: Handlers;
  readonly #files: FileWatch;
  #tls: TlsRead | undefined;
  #server: HttpServer | HttpsServer | undefined;
  #opening: Promise<void> | undefined;
  #reloading: Promise<void> = Promise.resolve();
  #contextFor: LoadedMaterial['contextFor'];
  readonly #descriptors: DescriptorReserve;
  readonly #sockets: HttpPlaces;
  /** The answers in progress. */
  readonly #answers = new Set<ServerResponse>();
  /** Connections that have become WebSockets. A stop of the broker disconnects their clients. */
  readonly #upgraded = new Set<Duplex>();

  constructor(broker: Broker, transport: Transport, handlers: Handlers) {
    const { common, place, tls } = transport;
    this.#broker = broker;
    this.#transport = transport;
    this.#handlers = handlers;
    this.#tls = tls;
    this.protocol = tls === undefined ? 'http:management' : 'https:management';
    const scheme = this.protocol.slice(0, this.protocol.indexOf(':'));
    this.name = common.name ?? freeName(broker, `${scheme}:${'path' in place ? place.path : place.port}`);
    this.#descriptors = new DescriptorReserve(broker, this.name, common.reservedDescriptors);
    this.#sockets = new HttpPlaces(common.maxConnections, broker.clock, this.#descriptors);
    this.#files = new FileWatch(broker.clock, () => {
      this.reload().catch((error) => this.#report(error, 'reloading certificates'));
    });
  }

  get address(): ListenerAddress | undefined {
    return this.#server === undefined ? undefined : boundAddress(this.#server);
  }

  get port(): number | undefined {
    return this.address?.port;
  }

  open(): Promise<void> {
    if (this.#opening !== undefined) return this.#opening;
    const opening = Promise.resolve().then(() => this.#open());
    this.#opening = opening;
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    await opening?.catch(ignore);
    const server = this.#server;
    this.#server = undefined;
    this.#files.close();
    this.#descriptors.close();
    if (server === undefined) return;
    const cutOff = () => {
      for (const socket of [...this.#sockets, ...this.#upgraded]) socket.destroy();
    };
    this.#broker.once('broker.stopped', cutOff);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const busy = new Set([...this.#answers].map(({ req }) => peerOf(req.socket)));
    for (const socket of this.#sockets) if (!busy.has(peerOf(socket))) socket.destroy();
    for (const answer of this.#answers) endWith(answer);
    if (this.#broker.state === 'connected') for (const socket of this.#upgraded) socket.destroy();
    await closed;
    this.#broker.off('broker.stopped', cutOff);
  }

  /** Reloads run one after the other, because each starts from the settings of the previous one. */
  reload(material: TlsMaterial = {}): Promise<void> {
    const reload = this.#reloading.then(() => this.#reload(material));
    this.#reloading = reload.catch(ignore);
    return reload;
  }

  async #reload(material: TlsMaterial): Promise<void> {
    const previous = this.#tls;
    if (previous === undefined) throw withoutTlsError(this.name);
    const settings = withMaterial(previous, material);
    const isSame = filesOf(settings).join('\0') === filesOf(previous).join('\0');
    // watch before reading, so that no change is missed
    if (!isSame) this.#watch(settings);
    try {
      const loaded = await this.#load(settings);
      this.#tls = settings;
      this.#contextFor = loaded.contextFor;
      (this.#server as HttpsServer | undefined)?.setSecureContext(loaded.context);
    } catch (error) {
      if (!isSame) this.#watch(previous);
      throw error;
    }
  }

  info(): ListenerCounters {
    const { maxConnections } = this.#transport.common;
    return { acceptors: 1, maxConnections, currentConnections: this.#sockets.size, shutdownCount: {} };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  [INSPECT](depth: number, options: object): string {
    return listenerText(this, depth, options);
  }

  async #open(): Promise<void> {
    const { place } = this.#transport;
    if (this.#tls !== undefined) this.#watch(this.#tls);
    try {
      const create = await this.#maker();
      this.#server = await bind(
        place,
        (options) => create({ ...OPTIONS, ...options }),
        (error) => this.#report(error, 'accepting a connection')
      );
    } catch (error) {
      this.#files.close();
      throw error;
    }
  }

  #watch(settings: TlsRead): void {
    if (this.#opening !== undefined) this.#files.watch(filesOf(settings), settings.watchInterval);
  }

  /** Prepare the function that creates the server, which watches its connections from the beginning. */
  async #maker(): Promise<ServerMaker<HttpServer | HttpsServer>> {
    const create = await this.#plainMaker();
    return (options) => this.#withUpgrades(this.#watched(create(options)));
  }

  #watched(server: HttpServer | HttpsServer): HttpServer | HttpsServer {
    return this.#sockets
      .watch(server, (request, response) => {
        this.#answers.add(response);
        response.on('close', () => this.#answers.delete(response));
        if (!refuseWithoutHost(request, response)) void this.#serve(request, response);
      })
      .on('connect', refuseConnect)
      .on('checkExpectation', refuseExpectation)
      .on('clientError', (error: NodeJS.ErrnoException, socket) => this.#refuse(error, socket as Socket));
  }

  /** Without a handler of upgrade requests, Node takes them for other requests. */
  #withUpgrades(server: HttpServer | HttpsServer): HttpServer | HttpsServer {
    const { handleUpgrade } = this.#handlers;
    if (handleUpgrade === undefined) return server;
    return server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (!isForWebSocket(request)) {
        serveWithoutUpgrade(server as HttpServer, request, socket, head);
        return;
      }
      if (!handleUpgrade(request, socket, head)) {
        respond(socket, 404);
        return;
      }
      this.#sockets.release(socket);
      this.#upgraded.add(socket);
      socket.on('close', () => this.#upgraded.delete(socket));
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#handlers.node(request, response);
    } catch (error) {
      this.#report(error, `${request.method} ${shownUrl(request.url ?? '')}`);
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end();
    }
  }

  /** Answer input that is not a valid request, unless the client has disconnected or an answer has begun. */
  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ERR_SSL_HTTP_REQUEST') {
      // the failed connection below TLS
      for (const plain of this.#sockets) if (peerOf(plain) === peerOf(socket)) refuseUnparsed(plain, error);
      return;
    }
    const hasBegun = [...this.#answers].some(({ req, headersSent }) => headersSent && req.socket === socket);
    if (error.code === 'ECONNRESET' || /^ERR_SSL/.test(error.code ?? '') || !socket.writable || hasBegun)
      socket.destroy();
    else refuseUnparsed(socket, error);
  }

  async #plainMaker(): Promise<ServerMaker<HttpServer | HttpsServer>> {
    const settings = this.#tls;
    if (settings === undefined) return (options) => createServer(options);
    const { context, contextFor } = await this.#load(settings);
    this.#contextFor = contextFor;
    const { requestCert, rejectUnauthorized } = settings;
    return (options) =>
      createSecureServer({
        ...options,
        ...context,
        requestCert,
        rejectUnauthorized,
        handshakeTimeout: this.#transport.common.handshakeTimeout,
        ALPNProtocols: ['http/1.1'],
        SNICallback: (name, done) => done(null, this.#contextFor?.(name))
      });
  }

  /** @throws BrokerError TLS_INVALID */
  async #load(settings: TlsRead): Promise<LoadedMaterial> {
    try {
      return await loadMaterial(settings);
    } catch (cause) {
      const text = `certificates of listener ${this.name}: ${(cause as Error).message}`;
      throw new BrokerError('TLS_INVALID', text, { cause });
    }
  }

  #report(error: unknown, during: string): void {
    this.#broker.failed(error, `listener ${this.name}: ${during}`);
  }
}

/** Close the connection of an answer when the answer ends. A stream of events has no end, so it ends now. */
function endWith(answer: ServerResponse): void {
  if (/^text\/event-stream\b/.test(String(answer.getHeader('content-type')))) answer.destroy();
  else if (!answer.headersSent) answer.setHeader('connection', 'close');
  else answer.on('close', () => answer.req.socket.end());
}
