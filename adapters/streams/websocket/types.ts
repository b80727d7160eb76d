// One name for two roles: with `addr`, source and sink are clients of a server; without it, clients connect to a path
// here. The port is opened when the first path is used and closed with the last. What is opened for a stream is
// released if a later step fails. Credentials belong into `token` or `headers`, never into the URL, which errors
// show.

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, Server } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import {
  type OpenSink,
  type OpenSource,
  readOptions,
  type SinkSetup,
  type SinkType,
  type SourceSetup,
  type SourceType
} from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { portOf, type StreamsPort } from '../port.ts';
import { readTlsFiles } from '../tls-files.ts';
import { readToken, tokenFault } from '../token.ts';
import { Intake } from './intake.ts';
import { Link, type LinkListener, type LinkTarget } from './link.ts';
import { LIMIT_OPTIONS, type Limits, WEBSOCKET_PROPERTIES, type WebSocketLimits } from './options.ts';
import { type PathUse, ServedPaths } from './served.ts';

/** Options of `webSockets`. */
export interface WebSocketsOptions extends WebSocketLimits {
  /**
   * The port of paths, default 10081. It is open while a rule uses a path. 0: any free port; `off`: only client
   * connections to servers. A `StreamsPort` is shared with other types.
   */
  readonly port?: number | 'off' | StreamsPort;
  /**
   * Address, default 127.0.0.1. Connections need no credentials, unless a stream or a sink of the path has the property
   * `token`.
   */
  readonly host?: string;
}

/** The types `websocket`. */
export interface WebSocketTypes {
  /** The source type `websocket`. */
  readonly source: SourceType;
  /** The sink type `websocket`. */
  readonly sink: SinkType;
}

/** The types `websocket` on the HTTP server of the app. */
export interface MountedWebSockets extends WebSocketTypes {
  /**
   * Take the upgrade requests of a server for the paths of streams and sinks. Those for other paths are left to the
   * `upgrade` listeners of the app. For an Express app, pass what its `listen` returns; for a Fastify app,
   * `fastify.server`.
   * @returns a function that ends this
   * @throws BrokerError LISTENER_BIND_FAILED if a listener has one of the paths
   */
  attach(server: Server | HttpsServer): () => void;
  /**
   * For a host that routes upgrade requests itself, with the arguments of its `upgrade` event.
   * @returns false if the path belongs to no stream and no sink; nothing was done then
   */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean;
}

/**
 * Opens the paths for a stream or a sink.
 * @returns a function that releases them
 */
type Serve = (needs: Parameters<StreamsPort['use']>[1]) => Promise<() => Promise<void>>;

/**
 * The source and the sink `websocket`, which share a port.
 *
 * With the property `addr` they are clients of a server; a lost connection is established again after 1 to 30 seconds.
 * Without it, clients connect to a path of the port: that of DATASOURCE or of the property `path`. Their messages are
 * the rows of its stream, and the sinks of the path send to all connected clients. Outputs are text frames; binary
 * outputs, such as compressed ones, are binary frames.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
 */
export function webSockets({ port, host, ...given }: WebSocketsOptions = {}): WebSocketTypes {
  const limits = readLimits(given);
  const paths = new ServedPaths(limits, '');
  if (port === 'off') return typesOf(limits, paths, refuse);
  const shared = portOf(port, host);
  return typesOf(limits, paths, (needs) => shared.use(paths, needs));
}

/**
 * The source and the sink `websocket` for an app with an HTTP server.
 *
 * ```ts
 * const sockets = mountedWebSockets({ prefix: '/streams' });
 * const broker = createBroker({ streams: { sources: [sockets.source], sinks: [sockets.sink] } });
 * sockets.attach(server);
 * ```
 * @param options prefix: the prefix of the paths, by default none
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
 */
export function mountedWebSockets({
  prefix = '',
  ...given
}: WebSocketLimits & {
  /** The prefix of the paths. Default: none. */
  readonly prefix?: string;
} = {}): MountedWebSockets {
  const limits = readLimits(given);
  const paths = new ServedPaths(limits, prefix);
  return {
    ...typesOf(limits, paths, async () => async () => undefined),
    attach: (server) => paths.attach(server as Server),
    handleUpgrade: (request, socket, head) => paths.upgrade(request, socket, head)
  };
}

/** @throws InvalidInput PROPERTY_INVALID */
async function refuse(): Promise<never> {
  const text = 'websocket: property addr is missing, and the port for paths is off';
  throw new InvalidInput('PROPERTY_INVALID', 'addr', 'a server such as "ws://host:8080"', undefined, text);
}

function readLimits(given: object): Limits {
  return readOptions(LIMIT_OPTIONS, given, 'webSockets');
}

function typesOf(limits: Limits, paths: ServedPaths, serve: Serve): WebSocketTypes {
  return {
    source: {
      name: 'websocket',
      about: 'Messages of WebSockets: of a server, or of clients of a path.',
      properties: WEBSOCKET_PROPERTIES,
      async open(setup) {
        const what = `source websocket of ${setup.stream}`;
        const path = setup.datasource || textOf(setup.properties.path);
        const target = await readTarget(setup, path, what);
        return target === undefined
          ? servedSource(setup, useOf(setup, path, what), paths, serve)
          : remoteSource(setup, target, limits);
      }
    },
    sink: {
      name: 'websocket',
      about: 'Sends outputs over WebSockets: to a server, or to all clients of a path.',
      properties: WEBSOCKET_PROPERTIES,
      async open(setup) {
        const path = textOf(setup.properties.path);
        const target = await readTarget(setup, path, 'websocket sink');
        return target === undefined
          ? servedSink(setup, useOf(setup, path, 'websocket sink'), paths, serve)
          : remoteSink(setup, target, limits);
      }
    }
  };
}

async function servedSource(setup: SourceSetup, use: PathUse, paths: ServedPaths, serve: Serve): Promise<OpenSource> {
  const release = paths.addSource(setup, use);
  const leave = await serve(setup).catch(async (error) => {
    await release();
    throw error;
  });
  setup.connected();
  return { close: () => release().finally(leave) };
}

async function servedSink(setup: SinkSetup, use: PathUse, paths: ServedPaths, serve: Serve): Promise<OpenSink> {
  const served = paths.addSink(setup, use);
  const failed = (error: unknown) => setup.log(`WebSocket ${use.path}: ${(error as Error).message}`);
  const leave = await serve({ clock: setup.clock, failed }).catch(async (error) => {
    await served.close();
    throw error;
  });
  setup.connected();
  return {
    send: ({ bytes, value }) => served.send(bytes, isBinary(value, bytes)),
    close: () => served.close().finally(leave)
  };
}

function remoteSource(setup: SourceSetup, target: LinkTarget, limits: Limits): OpenSource {
  const { origin, pathname } = target.url;
  const metadata = { url: `${origin}${pathname}` };
  const intake = new Intake(setup, () => (link.peer === undefined ? [] : [link.peer]));
  const listener: LinkListener = {
    connected: () => {
      if (intake.isPaused) link.peer?.pause();
      setup.connected();
    },
    disconnected: (reason) => setup.disconnected(reason),
    message: (payload) => intake.take(payload, metadata)
  };
  const link: Link = new Link(target, setup.clock, limits, listener);
  return {
    close() {
      intake.close();
      return link.close();
    }
  };
}

function remoteSink(setup: SinkSetup, target: LinkTarget, limits: Limits): OpenSink {
  const link = new Link(target, setup.clock, limits, {
    connected: () => setup.connected(),
    disconnected: (reason) => setup.disconnected(reason),
    message: () => undefined // answers of the server are not used by a sink
  });
  return {
    send: ({ bytes, value }) => link.send(bytes, isBinary(value, bytes)),
    close: () => link.close()
  };
}

/** Check whether an output is binary: it consists of bytes, or is compressed. */
function isBinary(value: unknown, bytes: Buffer): boolean {
  return value instanceof Uint8Array || !isUtf8(bytes);
}

/**
 * @returns undefined if there is no server to connect to
 * @throws InvalidInput PROPERTY_INVALID
 */
async function readTarget(
  { properties, dataDir }: Pick<SourceSetup, 'properties' | 'dataDir'>,
  path: string,
  what: string
): Promise<LinkTarget | undefined> {
  const addr = textOf(properties.addr);
  if (addr === '') return undefined;
  const tls = await readTlsFiles(properties, dataDir, what);
  const scheme = Object.keys(tls).length > 0 ? 'wss' : 'ws';
  const base = /^[a-z]+:\/\//i.test(addr) ? addr : `${scheme}://${addr}`;
  const text = path === '' ? base : base.replace(/\/+$/, '') + (path.startsWith('/') ? path : `/${path}`);
  const isGood = /^wss?:\/\/[^@#]+$/i.test(base) && !text.includes('#') && URL.canParse(text);
  if (!isGood) {
    const expected = 'a URL without credentials such as "ws://host:8080"';
    const message = `${what}: property addr must be ${expected}; use headers for credentials`;
    throw new InvalidInput('PROPERTY_INVALID', 'addr', expected, undefined, message);
  }
  const headers = Object.entries((properties.headers ?? {}) as object).map(([name, value]) => [name, String(value)]);
  const token = readToken(properties, what);
  if (token !== undefined) {
    if (headers.some(([name]) => name.toLowerCase() === 'authorization'))
      throw tokenFault(what, 'left out if headers has "Authorization"');
    headers.push(['Authorization', `Bearer ${token}`]);
  }
  const url = new URL(text);
  return { url, headers: Object.fromEntries(headers), tls };
}

/** @throws InvalidInput PROPERTY_INVALID */
function useOf({ properties }: Pick<SourceSetup, 'properties'>, path: string, what: string): PathUse {
  return { path: pathOf(path, what), token: readToken(properties, what) };
}

/** @throws InvalidInput PROPERTY_INVALID */
function pathOf(path: string, what: string): string {
  const wanted = path.startsWith('/') ? path : `/${path}`;
  const url = 'http://host';
  if (path !== '' && URL.canParse(wanted, url) && new URL(wanted, url).pathname === wanted) return wanted;
  const expected = 'the path of a URL, such as "/measurements", or addr a server';
  const text = `${what}: property path must be ${expected}`;
  throw new InvalidInput('PROPERTY_INVALID', 'path', expected, path, text);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
