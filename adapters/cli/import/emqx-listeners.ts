// A listener is several lines of emqx.conf, which may stand anywhere in the file: one with its port, and one for each
// setting. It is written when all lines were read, because a setting may depend on others.

import { createSecureContext } from 'node:tls';
import { InvalidInput } from '../../../lib/index.ts';
import { tcp, tls, ws, wss } from '../../net/index.ts';
import { type Draft, entryOf, isOn, located, type SourceLine, type Verdict } from './draft.ts';

/** A listener, as it is collected from its lines. */
interface EmqxListener {
  readonly kind: keyof typeof MAKERS;
  head: SourceLine | undefined;
  readonly lines: SourceLine[];
  readonly options: Record<string, unknown>;
}

type Row = string | ((value: string, listener: EmqxListener, line: SourceLine) => Verdict);

const MAKERS = { tcp, ssl: tls, ws, wss } as unknown as Readonly<
  Record<'tcp' | 'ssl' | 'ws' | 'wss', (options: object) => unknown>
>;
const KINDS = { tcp: 'tcp', ssl: 'tls', ws: 'ws', wss: 'wss' } as const;

const OF_SOCKET = 'is about the sockets of the Erlang runtime';
const OF_TLS = 'Node.js decides about it';

const text =
  (option: string): Row =>
  (value, { options }) => {
    options[option] = value;
    return undefined;
  };
const number =
  (option: string): Row =>
  (value, { options }) => {
    if (!/^\d+$/.test(value)) return 'is not a number';
    options[option] = Number(value);
    return undefined;
  };
const file =
  (option: string): Row =>
  (value, { options }, line) => {
    options[option] = located(inFolder(value), line.file);
    return undefined;
  };

const VERSIONS = ['tlsv1', 'tlsv1.1', 'tlsv1.2', 'tlsv1.3'];

/** A row for each setting of a listener: the reason why it is not taken over, or a function that takes it over. */
const ROWS: Readonly<Record<string, Row>> = {
  max_connections: number('maxConnections'),
  max_conn_rate: number('maxConnRate'),
  backlog: number('backlog'),
  zone: text('zone'),
  mountpoint: text('mountpoint'),
  nodelay: (value, { options }) => {
    options.noDelay = isOn(value);
    return undefined;
  },
  keyfile: file('keyFile'),
  certfile: file('certFile'),
  cacertfile: file('caFile'),
  key_password: text('passphrase'),
  handshake_timeout: text('handshakeTimeout'),
  mqtt_path: text('path'),
  verify: (value, { options }) => {
    options.requestCert = value === 'verify_peer';
    return undefined;
  },
  fail_if_no_peer_cert: (value, { options }) => {
    options.rejectUnauthorized = isOn(value);
    return undefined;
  },
  peer_cert_as_username: (value, { options }) => {
    const name = entryOf({ cn: 'cn', dn: 'subject' }, value);
    if (name === undefined) return 'the user name can be the common name (cn) or the subject (dn) of the certificate';
    options.usernameFrom = name;
    return undefined;
  },
  tls_versions: (value, { options }) => {
    const levels = value.split(',').map((one) => VERSIONS.indexOf(one.trim()));
    const least = Math.min(...levels);
    if (least < 0) return `known versions are ${VERSIONS.join(', ')}`;
    if (least < 2) return 'TLS before 1.2 is not accepted; set minVersion of the listener if a device needs it';
    options.minVersion = least === 2 ? 'TLSv1.2' : 'TLSv1.3';
    if (Math.max(...levels) === 2) options.maxVersion = 'TLSv1.2';
    return undefined;
  },
  ciphers: (value, { options }) => {
    const ciphers = value.split(/\s*,\s*/).join(':');
    try {
      createSecureContext({ ciphers });
    } catch (error) {
      return `OpenSSL does not know these ciphers: ${(error as Error).message}`;
    }
    options.ciphers = ciphers;
    return undefined;
  },
  proxy_protocol: (value) =>
    isOn(value)
      ? 'set proxyProtocol and trustedProxies of the listener: only named proxies may tell addresses of clients'
      : undefined,
  proxy_protocol_timeout: 'the time limit for a PROXY header is part of handshakeTimeout of the listener',
  peer_cert_as_clientid: 'the client id is that of CONNECT; access rules with %u use the name of the certificate',
  psk_ciphers: 'set pskFile of the listener, which allows all ciphers for pre-shared keys',
  reuseaddr: OF_SOCKET,
  acceptors: OF_SOCKET,
  active_n: OF_SOCKET,
  send_timeout: 'see slowConsumerTimeout of zones',
  send_timeout_close: 'see slowConsumerTimeout of zones',
  recbuf: OF_SOCKET,
  sndbuf: OF_SOCKET,
  buffer: OF_SOCKET,
  tune_buffer: OF_SOCKET,
  high_watermark: OF_SOCKET,
  depth: OF_TLS,
  dhfile: OF_TLS,
  secure_renegotiate: OF_TLS,
  reuse_sessions: OF_TLS,
  honor_cipher_order: OF_TLS,
  rate_limit: 'see rateLimit of zones',
  verify_protocol_header: 'the subprotocol mqtt is required, as the specification says',
  fail_if_no_subprotocol: 'the subprotocol mqtt is required, as the specification says',
  supported_subprotocols: 'the subprotocol is mqtt',
  supported_protocols: 'the subprotocol is mqtt',
  compress: 'messages over WebSocket are not compressed',
  idle_timeout: 'idleTimeout of zones applies',
  max_frame_size: 'maxPacketSize of zones applies',
  mqtt_piggyback: 'a frame may contain several packets, as the specification says',
  check_origin_enable: 'web pages of other origins are always refused; see origins of the listener',
  allow_origin_absence: 'clients without an origin are not web pages, and may connect',
  check_origins: 'web pages of other origins are always refused; see origins of the listener',
  proxy_address_header: 'see trustedProxies of the listener',
  proxy_port_header: 'see trustedProxies of the listener'
};

/** The listeners of a file. */
export class EmqxListeners {
  readonly #listeners = new Map<string, EmqxListener>();

  /** Read a line, if it is about a listener. @returns false if it is not */
  read(line: SourceLine, draft: Draft): boolean {
    const [, kind, name, setting] = /^listener\.(tcp|ssl|ws|wss)\.([^.]+)(?:\.(.+))?$/.exec(line.name) ?? [];
    if (kind === undefined) return false;
    const key = `${kind}.${name}`;
    const listener = this.#listeners.get(key) ?? {
      kind: kind as EmqxListener['kind'],
      head: undefined,
      lines: [],
      options: {}
    };
    this.#listeners.set(key, listener);
    if (setting === undefined) {
      if (listener.head !== undefined) draft.refuse(listener.head, `line ${line.line} sets it again`);
      listener.head = line;
      return true;
    }
    listener.lines.push(line);
    const row = entryOf(ROWS, setting) ?? restOf(setting);
    draft.judged(line, typeof row === 'string' ? row : row(line.value, listener, line));
    return true;
  }

  /** Write the listeners. @param zones the zones that exist */
  write(zones: ReadonlySet<string>, draft: Draft): void {
    for (const listener of this.#listeners.values()) writeListener(listener, zones, draft);
  }
}

/** Rows of settings with numbers and nested names. */
function restOf(setting: string): Row {
  if (setting.startsWith('access.'))
    return (value) =>
      /^allow\s+all$/.test(value)
        ? undefined
        : 'addresses are refused by bans (embermq ctl ban add), or by access rules with an address';
  if (setting.startsWith('deflate_opts.')) return 'messages over WebSocket are not compressed';
  return 'is not a setting of listeners that is known here';
}

function writeListener({ kind, head, lines, options }: EmqxListener, zones: ReadonlySet<string>, draft: Draft): void {
  const refuseAll = (reason: string) => {
    for (const line of [...(head === undefined ? [] : [head]), ...lines]) draft.refuse(line, reason);
  };
  if (head === undefined) {
    refuseAll('the listener has no line with its port');
    return;
  }
  const colon = head.value.lastIndexOf(':');
  const port = Number(head.value.slice(colon + 1));
  const host = colon < 0 ? '0.0.0.0' : head.value.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  const zone = options.zone as string | undefined;
  if (zone !== undefined && !zones.has(zone)) {
    delete options.zone;
    for (const line of lines)
      if (line.name.endsWith('.zone')) draft.refuse(line, `no line sets anything for the zone ${zone}`);
  }
  const isSecure = kind === 'ssl' || kind === 'wss';
  // a certificate authority alone asks for no certificates there
  if (isSecure && options.caFile !== undefined) options.requestCert ??= false;
  if (isSecure && options.requestCert === true) options.rejectUnauthorized ??= false;
  if (!isSecure) for (const name of Object.keys(options)) if (OF_SECURE.has(name)) delete options[name];
  const entry = { port, host, ...options };
  try {
    MAKERS[kind](entry);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    refuseAll(error.message);
    return;
  }
  draft.append([head], 'listeners', { kind: KINDS[kind], ...entry });
}

const OF_SECURE = new Set([
  'keyFile',
  'certFile',
  'caFile',
  'passphrase',
  'requestCert',
  'rejectUnauthorized',
  'minVersion',
  'maxVersion',
  'ciphers'
]);

/** A path without the variables that packages of EMQX replace by their folders. */
export function inFolder(path: string): string {
  return path.replace(/^\{\{\s*platform_etc_dir\s*\}\}/, 'etc').replace(/^\{\{\s*\w+\s*\}\}\/?/, '');
}
