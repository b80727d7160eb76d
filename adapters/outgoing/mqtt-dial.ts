import type { Duplex } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { hostOf, openSocket } from './socket.ts';
import { type OutgoingTls, tlsOf } from './tls.ts';
import { withTrustHint } from './trust-hint.ts';

/** The destination of a connection to an MQTT server. */
export interface DialSettings extends OutgoingTls {
  /** An mqtt, mqtts, ws or wss URL. */
  readonly url: URL;
  /** True if the certificate of the server is verified. Default true. */
  readonly verifies?: boolean;
  /** Names of cipher suites in the form of OpenSSL. Default: those of Node. */
  readonly ciphers?: string;
  /** Remedy in the error for a certificate of the server that is not trusted. */
  readonly trustRemedy?: string;
}

const PORTS: Readonly<Record<string, number>> = { 'mqtt:': 1883, 'mqtts:': 8883 };

/** Open a stream to an MQTT server. @param signal aborts connecting @throws the error of the socket */
export async function dial(settings: DialSettings, signal: AbortSignal): Promise<Duplex> {
  const { url, ciphers, verifies = true, trustRemedy } = settings;
  const tls: ConnectionOptions = {
    ...tlsOf(settings),
    ...(ciphers === undefined ? {} : { ciphers }),
    rejectUnauthorized: verifies
  };
  try {
    return await (url.protocol.startsWith('ws') ? dialWebSocket : dialSocket)(url, tls, signal);
  } catch (error) {
    throw trustRemedy === undefined ? error : withTrustHint(error, trustRemedy, 'RESOURCE_DOWN');
  }
}

function dialSocket(url: URL, tls: ConnectionOptions, signal: AbortSignal): Promise<Duplex> {
  const port = url.port === '' ? PORTS[url.protocol] : Number(url.port);
  return openSocket({ host: hostOf(url), port, tls: url.protocol === 'mqtts:' ? tls : undefined }, signal);
}

async function dialWebSocket(url: URL, tls: ConnectionOptions, signal: AbortSignal): Promise<Duplex> {
  const { WebSocket, createWebSocketStream } = await import('ws');
  signal.throwIfAborted();
  const { protocol, host, pathname, search } = url;
  const target = `${protocol}//${host}${pathname === '/' ? '/mqtt' : pathname}${search}`;
  const socket = new WebSocket(target, ['mqtt'], { perMessageDeflate: false, ...tls });
  return new Promise<Duplex>((resolve, reject) => {
    const abort = () => socket.terminate();
    signal.addEventListener('abort', abort, { once: true });
    socket.on('error', reject);
    socket.once('open', () => {
      signal.removeEventListener('abort', abort);
      const stream = createWebSocketStream(socket, { readableObjectMode: false });
      stream.on('error', reject);
      resolve(stream);
    });
  });
}
