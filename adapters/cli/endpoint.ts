import { connect as connectSocket, isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { BrokerError, InvalidInput } from '../../lib/index.ts';
import { readFileFor, type Shell } from './command.ts';
import { type FlagValues, flag } from './flags.ts';

/** The flags that give the address of the broker. The letters are those of mosquitto_pub. */
export const ENDPOINT_FLAGS = {
  url: flag(
    'string',
    undefined as string | undefined,
    'URL of the broker: mqtt://, mqtts://, ws:// or wss:// user:password@host:port/path, or unix:/path',
    {
      short: 'L',
      value: 'URL'
    }
  ),
  host: flag('string', 'localhost', 'host of the broker', { short: 'h', value: 'HOST' }),
  port: flag('integer', undefined as number | undefined, 'port of the broker; default 1883, with TLS 8883', {
    short: 'p',
    value: 'PORT',
    max: 65_535
  }),
  username: flag('string', undefined as string | undefined, 'user name', {
    short: 'u',
    value: 'NAME',
    aliases: ['user']
  }),
  password: flag('string', undefined as string | undefined, 'password', {
    short: 'P',
    value: 'PASSWORD',
    aliases: ['pw']
  }),
  tls: flag('boolean', false, 'use TLS and trust the certificate authorities of the system'),
  ca: flag(
    'string',
    undefined as string | undefined,
    'use TLS and trust the certificate authorities in this PEM file',
    {
      value: 'FILE',
      aliases: ['cafile']
    }
  ),
  cert: flag('string', undefined as string | undefined, 'client certificate (PEM)', { value: 'FILE' }),
  key: flag('string', undefined as string | undefined, 'private key of the client certificate (PEM)', {
    value: 'FILE'
  }),
  insecure: flag('boolean', false, 'do not check the certificate of the broker')
};

/** The address of a broker, and the credentials to connect with. */
export interface Endpoint {
  readonly kind: 'mqtt' | 'mqtts' | 'ws' | 'wss' | 'unix';
  readonly host: string;
  readonly port: number;
  /** The path of the WebSocket, including its query, or of the Unix socket. */
  readonly path: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly tls: TlsFiles;
}

interface TlsFiles {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly rejectUnauthorized: boolean;
}

const PORTS = { mqtt: 1883, mqtts: 8883, ws: 80, wss: 443, unix: 0 } as const;

/**
 * Read the endpoint from the flags, including the certificate files.
 * @throws InvalidInput URL_INVALID; BrokerError FILE_UNREADABLE
 */
export async function readEndpoint(flags: FlagValues<typeof ENDPOINT_FLAGS>, shell: Shell): Promise<Endpoint> {
  const place = flags.url === undefined ? fromFlags(flags) : fromUrl(flags.url);
  const [ca, cert, key] = await Promise.all(
    [flags.ca, flags.cert, flags.key].map((path) => (path === undefined ? undefined : readFileFor(shell, path)))
  );
  const { username = flags.username, password = flags.password, ...rest } = place;
  return { ...rest, username, password, tls: { ca, cert, key, rejectUnauthorized: !flags.insecure } };
}

type Place = Omit<Endpoint, 'tls'>;

function fromFlags({ host, port, tls, ca, cert }: FlagValues<typeof ENDPOINT_FLAGS>): Place {
  const kind = tls || ca !== undefined || cert !== undefined ? 'mqtts' : 'mqtt';
  return { kind, host, port: port ?? PORTS[kind], path: '', username: undefined, password: undefined };
}

function fromUrl(text: string): Place {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const kind = url?.protocol.slice(0, -1) as Endpoint['kind'];
  if (url === undefined || !Object.hasOwn(PORTS, kind)) {
    throw new InvalidInput('URL_INVALID', 'url', 'a URL such as mqtt://host:1883, wss://host/mqtt or unix:/path', text);
  }
  const isWeb = kind === 'ws' || kind === 'wss';
  return {
    kind,
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? PORTS[kind] : Number(url.port),
    path: isWeb ? (url.pathname === '/' ? '/mqtt' : url.pathname) + url.search : decodeURI(url.pathname),
    username: url.username === '' ? undefined : decodeURIComponent(url.username),
    password: url.password === '' ? undefined : decodeURIComponent(url.password)
  };
}

/** The name of an endpoint in messages. */
export function nameOf({ kind, host, port, path }: Endpoint): string {
  if (kind === 'unix') return `unix:${path}`;
  return `${kind}://${isIP(host) === 6 ? `[${host}]` : host}:${port}${path}`;
}

/**
 * Open a stream to a broker.
 * @throws BrokerError BROKER_UNREACHABLE; the reason of the signal if it aborts
 */
export async function openStream(endpoint: Endpoint, signal: AbortSignal): Promise<Duplex> {
  const { kind } = endpoint;
  try {
    if (kind === 'ws' || kind === 'wss') return await openWebSocket(endpoint, signal);
    return await openSocket(endpoint, signal);
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    const { message, code } = cause as Error & { code?: string };
    throw new BrokerError('BROKER_UNREACHABLE', `cannot reach ${nameOf(endpoint)}: ${message || code}`, { cause });
  }
}

function openSocket({ kind, host, port, path, tls }: Endpoint, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const servername = isIP(host) === 0 ? host : ''; // an IP address is not a valid server name [RFC 6066, section 3]
    const socket =
      kind === 'mqtts'
        ? connectTls({ host, port, servername, ...tls })
        : connectSocket(kind === 'unix' ? { path } : { host, port, noDelay: true });
    const abort = () => socket.destroy(signal.reason);
    signal.addEventListener('abort', abort);
    // not removed: an error may occur before the client adds its own listener, which then reads it from
    // `stream.errored`
    socket.on('error', reject);
    socket.once(kind === 'mqtts' ? 'secureConnect' : 'connect', () => {
      signal.removeEventListener('abort', abort);
      resolve(socket);
    });
  });
}

async function openWebSocket(endpoint: Endpoint, signal: AbortSignal): Promise<Duplex> {
  const { WebSocket, createWebSocketStream } = await import('ws');
  const socket = new WebSocket(nameOf(endpoint), ['mqtt'], { perMessageDeflate: false, ...endpoint.tls });
  return new Promise<Duplex>((resolve, reject) => {
    const abort = () => socket.terminate();
    signal.addEventListener('abort', abort);
    socket.on('error', reject);
    socket.once('open', () => {
      signal.removeEventListener('abort', abort);
      const stream = createWebSocketStream(socket, { readableObjectMode: false });
      stream.on('error', reject); // not removed either, as in openSocket
      resolve(stream);
    });
  });
}
