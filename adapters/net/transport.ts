import { type FieldTable, type FieldValues, readOptions } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';
import type { TrustedProxies } from '../upgrades/index.ts';
import type { Place } from './bind.ts';
import { exposedHostOf } from './exposure.ts';
import { type LISTENER_OPTIONS, TCP_OPTIONS, type TcpOptions, UNIX_OPTIONS, type UnixOptions } from './options.ts';
import { completeTlsOptions, TLS_OPTIONS, type TlsRead, type TlsSettings } from './tls-options.ts';
import { WEBSOCKET_OPTIONS, type WebSocketRead, type WebSocketSettings } from './websocket.ts';

type Common = FieldValues<typeof LISTENER_OPTIONS>;
type Kind = Transport['kind'];

/** Options of `tls`. */
export type TlsOptions = TcpOptions & TlsSettings;
/** Options of `ws`. */
export type WsOptions = TcpOptions & WebSocketSettings;
/** Options of `wss`. */
export type WssOptions = TcpOptions & TlsSettings & WebSocketSettings;

/** Default of `maxConnections` for listeners whose connections cost more. */
const LOWER_LIMIT = { maxConnections: { ...TCP_OPTIONS.maxConnections, default: 102_400 } };
const TLS_TABLE = { ...TCP_OPTIONS, ...TLS_OPTIONS, ...LOWER_LIMIT };
const WS_TABLE = { ...TCP_OPTIONS, ...WEBSOCKET_OPTIONS, ...LOWER_LIMIT };
const WSS_TABLE = { ...TLS_TABLE, ...WEBSOCKET_OPTIONS };

/** Description of a listener with checked options: the result of `tcp`, `tls`, `ws`, `wss` and `unix`, and an argument of `listen`. */
export class Transport {
  /** Kind of its connections. */
  readonly kind: 'tcp' | 'tls' | 'ws' | 'wss' | 'unix';
  /** @internal */
  readonly common: Common;
  /** @internal */
  readonly place: Place;
  /** @internal */
  readonly tls: TlsRead | undefined;
  /** @internal */
  readonly webSocket: WebSocketRead | undefined;
  /** Peers whose PROXY headers are trusted; `anyone` on a Unix socket, whose file mode decides; undefined: no PROXY headers. @internal */
  readonly proxies: TrustedProxies | 'anyone' | undefined;

  /**
   * The address at which other machines can reach the listener without an identity in TLS; undefined: they cannot.
   * @internal
   */
  readonly exposedHost: string | undefined;

  /** @internal */
  constructor(kind: Kind, common: Common, place: Place, more: { tls?: TlsRead; webSocket?: WebSocketRead } = {}) {
    this.kind = kind;
    this.common = common;
    this.place = place;
    this.tls = more.tls;
    this.webSocket = more.webSocket;
    this.proxies = proxiesOf(kind, common);
    this.exposedHost = exposedHostOf(place, this.tls);
    if (common.usernameFrom !== undefined && this.tls === undefined && this.proxies === undefined) {
      const expected = 'a listener with TLS or proxyProtocol';
      const text = `usernameFrom needs client certificates, so use ${expected}`;
      throw new InvalidInput('OPTION_INVALID', 'usernameFrom', expected, common.usernameFrom, text);
    }
  }
}

/**
 * Describe a TCP listener.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID or OPTION_MISSING
 */
export function tcp(options: TcpOptions): Transport {
  const read = readFor(TCP_OPTIONS, options, 'tcp', 'port');
  return new Transport('tcp', read, portPlace(read));
}

/**
 * Describe a TLS listener: with `cert` and `key` (or their files), with pre-shared keys, or with both.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING or PSK_INVALID
 */
export function tls(options: TlsOptions): Transport {
  const read = readFor(TLS_TABLE, options, 'tls', 'port');
  return new Transport('tls', read, portPlace(read), {
    tls: completeTlsOptions(read, read.usernameFrom !== undefined, ['mqtt'])
  });
}

/**
 * Describe a WebSocket listener.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID or OPTION_MISSING
 */
export function ws(options: WsOptions): Transport {
  const read = readFor(WS_TABLE, options, 'ws', 'port');
  return new Transport('ws', read, portPlace(read), { webSocket: read });
}

/**
 * Describe a listener for WebSocket over TLS.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING or PSK_INVALID
 */
export function wss(options: WssOptions): Transport {
  const read = readFor(WSS_TABLE, options, 'wss', 'port');
  return new Transport('wss', read, portPlace(read), {
    tls: completeTlsOptions(read, read.usernameFrom !== undefined, ['http/1.1']),
    webSocket: read
  });
}

/**
 * Describe a listener on a Unix socket. The file mode of the socket decides who may connect.
 * @param where path of the socket, as in `unix('/run/mqtt.sock')`, or options
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID or OPTION_MISSING
 */
export function unix(where: string | UnixOptions): Transport {
  const options = typeof where === 'string' ? { path: where } : where;
  const read = readFor(UNIX_OPTIONS, options, 'unix', 'path');
  return new Transport('unix', read, { path: read.path as string, mode: read.mode, backlog: read.backlog });
}

function readFor<T extends FieldTable>(
  table: T,
  options: object,
  kind: Kind,
  needed: keyof T & string
): FieldValues<T> {
  const read = readOptions(table, options, `${kind} listener`) as FieldValues<T>;
  if (read[needed] === undefined)
    throw new InvalidInput('OPTION_MISSING', needed, `the ${needed} to listen on`, undefined);
  return read;
}

function portPlace(read: FieldValues<typeof TCP_OPTIONS>): Place {
  const { port, host, ipv6Only, backlog, noDelay, tcpKeepAlive } = read;
  return { port: port as number, host, ipv6Only, backlog, noDelay, tcpKeepAlive };
}

function proxiesOf(kind: Kind, { proxyProtocol, trustedProxies }: Common): TrustedProxies | 'anyone' | undefined {
  if (!proxyProtocol) return undefined;
  if (kind === 'unix') return 'anyone';
  if (!trustedProxies.isEmpty) return trustedProxies;
  const expected = 'the addresses of the proxies, for example ["10.0.0.0/8"]';
  throw new InvalidInput('OPTION_MISSING', 'trustedProxies', expected, undefined);
}
