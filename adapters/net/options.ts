import { field, ZONE_OPTIONS } from '../../lib/adapter.ts';
import { type Duration, InvalidInput, type ProtocolVersion } from '../../lib/index.ts';
import { readProxies, TrustedProxies } from '../upgrades/index.ts';

/** Options of every listener. Durations are numbers in milliseconds or strings such as `10s`. */
export interface ListenerOptions {
  /** Name in logs, events and the management interface. Default: kind and port (`tcp:1883`) or path. */
  name?: string;
  /** Zone whose settings apply to its connections. Default `external`. */
  zone?: string;
  /** Prefix of all topics of its connections; overrides that of the zone. `%c` and `%u` stand for client id and user name. */
  mountpoint?: string;
  /** Accepted protocol versions: 3 (MQTT 3.1), 4 (3.1.1), 5. Overrides the setting of the zone. */
  protocolVersions?: readonly ProtocolVersion[];
  /**
   * Maximum number of concurrent connections; further MQTT clients are closed if no place becomes free within 0.5 s. 0:
   * unlimited. Default 1024000, with TLS or WebSocket 102400.
   */
  maxConnections?: number;
  /**
   * Connections accepted per second, with a burst of one second's worth. Further connections are closed at once, before
   * anything is read: holding them would only move the flood into this process. 0 (default): unlimited.
   */
  maxConnRate?: number;
  /**
   * File descriptors that connections leave free for the files of a store, at most a quarter of the limit of the process. While fewer are
   * free, new connections are closed at once, with an alarm and the error DESCRIPTORS_SHORT. Linux only (`/proc`). Default 64; 0: none.
   */
  reservedDescriptors?: number;
  /**
   * Time from accept until the broker gets the connection: PROXY header, TLS handshake and WebSocket upgrade together. The zone's
   * `connectTimeout` and `idleTimeout` also count from accept and close a connection that is still in a handshake. Default `10s`.
   */
  handshakeTimeout?: Duration;
  /**
   * Every connection begins with a PROXY protocol header (version 1 or 2), which contains the real address of the client. Connections that
   * do not come from `trustedProxies` are closed. Default false.
   */
  proxyProtocol?: boolean;
  /**
   * Addresses and networks of proxies, such as `['127.0.0.1', '10.0.0.0/8', 'fd00::/8']`, or `unix` for Unix sockets. With `proxyProtocol`,
   * their PROXY headers are trusted; otherwise, with WebSocket, the address in their `proxyHeader`. Default: none.
   */
  trustedProxies?: string | readonly string[];
  /**
   * Take the user name from the verified client certificate: its common name, or its whole subject (`CN=a,O=b`). A connection without
   * one is closed. Requires TLS, or a proxy that terminates TLS and sends the common name in its PROXY header.
   */
  usernameFrom?: 'cn' | 'subject';
}

export const LISTENER_OPTIONS = {
  name: field('string', undefined as string | undefined, 'Name in logs, events and the management interface.'),
  zone: field('string', undefined as string | undefined, 'Zone whose settings apply to its connections.'),
  mountpoint: field(
    'string',
    undefined as string | undefined,
    'Prefix of all topics of its connections; `%c` and `%u` stand for client id and user name, as in the option of the zone, which it overrides.'
  ),
  protocolVersions: {
    ...ZONE_OPTIONS.protocolVersions,
    default: undefined as readonly ProtocolVersion[] | undefined,
    about: 'Accepted protocol versions: 3 (MQTT 3.1), 4 (3.1.1), 5. Overrides those of the zone.'
  },
  maxConnections: field(
    'integer',
    1_024_000,
    'Maximum number of concurrent connections; further MQTT clients are closed if no place becomes free within 0.5 s. 0: unlimited.',
    {
      unit: 'connections',
      aliases: ['maxConns', 'max_conns']
    }
  ),
  maxConnRate: field(
    'number',
    0,
    'Connections accepted per second, with a burst of one second; further ones are closed at once. 0: unlimited.',
    { unit: 'connections' }
  ),
  reservedDescriptors: field(
    'integer',
    64,
    'File descriptors that connections leave free for the files of a store, on Linux; at most a quarter of the limit. 0: none.'
  ),
  handshakeTimeout: field(
    'duration',
    10_000,
    'Time limit for PROXY header, TLS handshake and WebSocket upgrade together.',
    {
      unit: 'ms',
      min: 1
    }
  ),
  proxyProtocol: field('boolean', false, 'Every connection begins with a PROXY protocol header, version 1 or 2.'),
  trustedProxies: field(
    'object',
    new TrustedProxies([], false),
    'Addresses and networks of proxies. Their PROXY headers are trusted with `proxyProtocol`, which needs them except on a Unix socket; otherwise, with WebSocket, their `proxyHeader`.',
    { check: readProxies }
  ),
  usernameFrom: field(
    'choice',
    undefined as 'cn' | 'subject' | undefined,
    'Take the user name from the client certificate: its common name or its whole subject. A connection without one is closed.',
    {
      choices: ['cn', 'subject'],
      aliases: ['peerCertAsUsername', 'peer_cert_as_username']
    }
  )
};

/** Address and socket options of a TCP listener, also with TLS and WebSocket. */
export interface TcpOptions extends ListenerOptions {
  /** Port to bind; 0 for a free port, which `listener.address` then contains. */
  port: number;
  /** Address or host name to bind. Default `127.0.0.1`: only this machine. `0.0.0.0` is every IPv4 address, `::` every address. */
  host?: string;
  /** With host `::`, do not bind IPv4. Default false. */
  ipv6Only?: boolean;
  /** Number of connections that the kernel holds until they are accepted. Default 1024. */
  backlog?: number;
  /** Send small packets at once instead of collecting them (TCP_NODELAY). Default true. */
  noDelay?: boolean;
  /**
   * Idle time after which the kernel probes a peer, which detects dead peers without an MQTT keep alive. Rounded up to whole seconds, at
   * most 32,767. 0 (default): never.
   */
  tcpKeepAlive?: Duration;
}

/** Maximum value of the kernel. It silently ignores larger ones and uses its default of two hours. */
const KEEP_ALIVE_MAX_MS = 32_767_000;

export const TCP_OPTIONS = {
  ...LISTENER_OPTIONS,
  port: field('integer', undefined as number | undefined, 'Port; 0 for a free one.', { max: 65_535 }),
  host: field(
    'string',
    '127.0.0.1',
    'Address or host name to bind. `0.0.0.0`: every IPv4 address; `::`: every address.'
  ),
  ipv6Only: field('boolean', false, 'With the host `::`, do not bind IPv4.'),
  backlog: field('integer', 1024, 'Number of connections that the kernel holds until they are accepted.', {
    min: 1,
    max: 2 ** 31 - 1
  }),
  noDelay: field('boolean', true, 'Send small packets at once (TCP_NODELAY).', { aliases: ['nodelay'] }),
  tcpKeepAlive: field(
    'duration',
    0,
    'Idle time after which the kernel probes a peer, rounded up to whole seconds; 0: never.',
    {
      unit: 'ms',
      max: KEEP_ALIVE_MAX_MS
    }
  )
};

/** Options of a listener on a Unix socket. */
export interface UnixOptions extends ListenerOptions {
  /** Path of the socket (on Windows a pipe, `\\.\pipe\name`). A leftover socket on which no process listens is replaced. */
  path: string;
  /** File mode of the socket, which decides who may connect, such as `0o660` or `'660'`. Default: `0o600`, the user of the process. */
  mode?: number | string;
  /** Number of connections that the kernel holds until they are accepted. Default 1024. */
  backlog?: number;
}

export const UNIX_OPTIONS = {
  ...LISTENER_OPTIONS,
  path: field('string', undefined as string | undefined, 'Path of the socket; on Windows the name of a pipe.', {
    check: checkSocketPath
  }),
  mode: field(
    'object',
    0o600,
    'File mode of the socket, which decides who may connect, such as `0o660`. By default only the user of the process may.',
    { check: checkMode }
  ),
  backlog: TCP_OPTIONS.backlog
};

/** Read an option that is a string or a list of strings. @throws InvalidInput OPTION_INVALID */
export function checkTexts(value: unknown, field: string): readonly string[] {
  const list = typeof value === 'string' ? [value] : value;
  if (Array.isArray(list) && list.every((item) => typeof item === 'string')) return list;
  throw new InvalidInput('OPTION_INVALID', field, 'a list of strings', value);
}

function checkSocketPath(value: unknown, field: string): string {
  if (value !== '') return value as string;
  throw new InvalidInput('OPTION_INVALID', field, 'the path of a socket, such as "/run/mqtt.sock"', value);
}

function checkMode(value: unknown, field: string): number {
  const mode =
    typeof value === 'string' && /^(0o?)?[0-7]{3}$/.test(value) ? Number.parseInt(value.replace('o', ''), 8) : value;
  if (typeof mode === 'number' && Number.isInteger(mode) && mode >= 0 && mode <= 0o777) return mode;
  throw new InvalidInput('OPTION_INVALID', field, 'a file mode such as 0o660 or "660"', value);
}
