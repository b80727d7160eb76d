import { type Duration, InvalidInput, type ProtocolVersion, optionRow as row, ZONE_OPTIONS } from '../../lib/index.ts';

/** What every listener can be told. Durations are numbers in milliseconds or text such as `10s`. */
export interface ListenerOptions {
  /** Name in logs, events and the management interface; by default kind and port (`tcp:1883`) or path. */
  name?: string;
  /** Zone whose settings its connections live under; `external` by default. */
  zone?: string;
  /** Prefix of all topics of its connections, over the zone's. `%c` and `%u` stand for client id and user name. */
  mountpoint?: string;
  /** Accepted versions, over the zone's: 3 (MQTT 3.1), 4 (3.1.1), 5. */
  protocolVersions?: readonly ProtocolVersion[];
  /** Connections at one time; one more is closed at once. 0: unlimited. Default 1024000, with TLS or WebSocket 102400. */
  maxConnections?: number;
  /**
   * Connections accepted per second, with one second's worth as burst; one more is closed at once, before anything is read, because
   * holding sockets back would only move the flood into this process. 0 (default): unlimited.
   */
  maxConnRate?: number;
  /**
   * File descriptors of the process that connections leave free, for the files of a store; a quarter of the limit at most. While fewer are
   * free, new connections are closed at once, and an alarm and the error DESCRIPTORS_SHORT say so. Known on Linux only (`/proc`). Default 64;
   * 0: none.
   */
  reservedDescriptors?: number;
  /** From accept until the broker has the connection: PROXY header, TLS handshake and WebSocket upgrade together. Default `10s`. */
  handshakeTimeout?: Duration;
  /**
   * Every connection begins with a PROXY protocol header (version 1 or 2), which tells the client's real address. Only from
   * `trustedProxies`: a connection from anywhere else is closed. Default false.
   */
  proxyProtocol?: boolean;
  /** Addresses and networks whose PROXY headers are believed: `['127.0.0.1', '10.0.0.0/8', 'fd00::/8']`. */
  trustedProxies?: readonly string[];
  /**
   * Take the user name from the verified client certificate: its common name, or its whole subject (`CN=a,O=b`). A connection without
   * one is closed. Needs TLS, or a proxy that ends TLS and passes the common name on.
   */
  usernameFrom?: 'cn' | 'subject';
}

export const LISTENER_OPTIONS = {
  name: row('text', undefined as string | undefined, 'Name of the listener.'),
  zone: row('text', undefined as string | undefined, 'Zone whose settings apply.'),
  mountpoint: row('text', undefined as string | undefined, 'Prefix of all topics.'),
  protocolVersions: { ...ZONE_OPTIONS.protocolVersions, default: undefined as readonly ProtocolVersion[] | undefined },
  maxConnections: row('integer', 1_024_000, 'Connections at one time; 0: unlimited.', {
    unit: 'connections',
    aliases: ['maxConns', 'max_conns']
  }),
  maxConnRate: row('number', 0, 'Connections accepted per second; 0: unlimited.', { unit: 'connections' }),
  reservedDescriptors: row('integer', 64, 'File descriptors that connections leave free; 0: none.'),
  handshakeTimeout: row('duration', 10_000, 'From accept until the broker has the connection.', { unit: 'ms', min: 1 }),
  proxyProtocol: row('boolean', false, 'Connections begin with a PROXY protocol header.'),
  trustedProxies: row('object', [] as readonly string[], 'Addresses and networks of proxies.', { check: checkTexts }),
  usernameFrom: row('choice', undefined as 'cn' | 'subject' | undefined, 'User name from the client certificate.', {
    choices: ['cn', 'subject'],
    aliases: ['peerCertAsUsername', 'peer_cert_as_username']
  })
};

/** Where a TCP listener binds, also under TLS and WebSocket. */
export interface TcpOptions extends ListenerOptions {
  /** 0 takes a free one; the real one is then in `listener.address`. */
  port: number;
  /** Address or name to bind. Default `127.0.0.1`: only this machine. `0.0.0.0` is every IPv4 address, `::` every address. */
  host?: string;
  /** With host `::`, leave IPv4 out. Default false. */
  ipv6Only?: boolean;
  /** Connections the kernel holds until they are accepted. Default 1024. */
  backlog?: number;
  /** Send small packets at once instead of gathering them (TCP_NODELAY). Default true. */
  noDelay?: boolean;
  /**
   * Idle time after which the kernel probes a peer, which finds dead ones whose MQTT keep alive is off. Rounded up to whole seconds, at
   * most 32,767 of them. 0 (default): never.
   */
  tcpKeepAlive?: Duration;
}

/** The kernel takes no more, and keeps its own two hours without a word. */
const KEEP_ALIVE_MAX_MS = 32_767_000;

export const TCP_OPTIONS = {
  ...LISTENER_OPTIONS,
  port: row('integer', undefined as number | undefined, 'Port; 0 takes a free one.', { max: 65_535 }),
  host: row('text', '127.0.0.1', 'Address to bind.'),
  ipv6Only: row('boolean', false, 'With host "::", leave IPv4 out.'),
  backlog: row('integer', 1024, 'Connections the kernel holds until they are accepted.', { min: 1, max: 2 ** 31 - 1 }),
  noDelay: row('boolean', true, 'TCP_NODELAY.', { aliases: ['nodelay'] }),
  tcpKeepAlive: row('duration', 0, 'Idle time before keep-alive probes; 0: none.', {
    unit: 'ms',
    max: KEEP_ALIVE_MAX_MS
  })
};

/** Where a Unix socket listener binds. */
export interface UnixOptions extends ListenerOptions {
  /** Path of the socket (on Windows a pipe, `\\.\pipe\name`). A file left over there is replaced when nobody listens on it. */
  path: string;
  /** Who may connect, as file mode, for example `0o660` or `'660'`. By default what the process's umask leaves. */
  mode?: number | string;
  /** Connections the kernel holds until they are accepted. Default 1024. */
  backlog?: number;
}

export const UNIX_OPTIONS = {
  ...LISTENER_OPTIONS,
  path: row('text', undefined as string | undefined, 'Path of the socket.'),
  mode: row('object', undefined as number | undefined, 'File mode of the socket.', { check: checkMode }),
  backlog: TCP_OPTIONS.backlog
};

/** A list of texts, or one. */
export function checkTexts(value: unknown, field: string): readonly string[] {
  const list = typeof value === 'string' ? [value] : value;
  if (Array.isArray(list) && list.every((item) => typeof item === 'string')) return list;
  throw new InvalidInput('OPTION_INVALID', field, 'a list of texts', value);
}

function checkMode(value: unknown, field: string): number {
  const mode =
    typeof value === 'string' && /^(0o?)?[0-7]{3}$/.test(value) ? Number.parseInt(value.replace('o', ''), 8) : value;
  if (typeof mode === 'number' && Number.isInteger(mode) && mode >= 0 && mode <= 0o777) return mode;
  throw new InvalidInput('OPTION_INVALID', field, 'a file mode such as 0o660 or "660"', value);
}
