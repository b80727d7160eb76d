import { connect as connectSocket, isIP, type LookupFunction, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

/** The place that a socket connects to. */
interface SocketTarget {
  readonly host: string;
  readonly port: number;
  /** Undefined: without TLS. */
  readonly tls: ConnectionOptions | undefined;
  /** Default: that of Node. */
  readonly lookup?: LookupFunction | undefined;
}

/** The host of a URL as sockets take it: an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** Open a socket, with TLS if asked. @param signal aborts connecting @throws the error of the socket; the reason of the signal */
export async function openSocket({ host, port, tls, lookup }: SocketTarget, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const target = { host, port, ...(lookup && { lookup }) };
  const servername = isIP(host) === 0 ? host : ''; // an IP address is not a valid server name [RFC 6066, section 3]
  const socket =
    tls === undefined
      ? connectSocket({ ...target, noDelay: true, keepAlive: true })
      : connectTls({ servername, ...tls, ...target });
  const abort = () => socket.destroy(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await new Promise((resolve, reject) => {
      socket.on('error', reject); // kept, because an error may occur before the caller adds its listener
      socket.once('close', () => reject(new Error('the connection was closed before it was established')));
      socket.once(tls === undefined ? 'connect' : 'secureConnect', () => resolve(socket));
    });
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
