import type { X509Certificate } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { TransportInfo } from './client.ts';

/** Fields of sockets of node:net. They are tested by name, so that sockets of other realms and runtimes are recognized. */
interface SocketFacts {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  /** The server that accepted the socket. */
  readonly server?: { address?(): unknown } | null | undefined;
}

/** Fields of TLS sockets about the certificate of the peer. */
export interface TlsFacts {
  /** Always true for a TLS socket. */
  readonly encrypted?: boolean;
  /** True if the peer sent a certificate and it was verified. */
  readonly authorized?: boolean;
  /** Get the certificate of the peer. */
  getPeerX509Certificate?(): X509Certificate | undefined;
  /** Get the certificate of the peer in the legacy form. */
  getPeerCertificate?(): {
    /** The subject of the certificate. */
    readonly subject?: {
      /** The common name. */
      readonly CN?: unknown;
    };
  };
}

/** Get address, transport and certificate of a socket. For any other Duplex only `transport` is set, to `stream`. */
export function transportInfoOf(stream: Duplex & SocketFacts & TlsFacts): TransportInfo {
  if (!('remoteAddress' in stream)) return { transport: 'stream' };
  const { remotePort, localPort } = stream;
  const remoteAddress = plainAddress(stream.remoteAddress);
  const localAddress = plainAddress(stream.localAddress);
  const certificate = stream.encrypted ? verifiedCertificate(stream) : undefined;
  return { transport: transportOf(stream), remoteAddress, remotePort, localAddress, localPort, certificate };
}

/**
 * Determine the transport of a socket. A missing address does not prove a Unix socket, because a TCP socket that was
 * reset has none either.
 */
function transportOf({ encrypted, server, remoteAddress }: SocketFacts & TlsFacts): TransportInfo['transport'] {
  if (encrypted) return 'tls';
  return remoteAddress === undefined && typeof server?.address?.() === 'string' ? 'unix' : 'tcp';
}

/**
 * Check whether a server accepted the socket. If so, the caller may be the server's `connection` event, where errors
 * cannot be caught.
 */
export function isAccepted(stream: Duplex & SocketFacts): boolean {
  return typeof stream.server === 'object' && stream.server !== null;
}

/**
 * Get the certificate of the peer of a TLS socket. For adapters.
 * @returns undefined if there is no certificate or it was not verified
 */
export function verifiedCertificate(socket: TlsFacts): TransportInfo['certificate'] {
  const certificate = socket.authorized ? socket.getPeerX509Certificate?.() : undefined;
  if (certificate === undefined) return undefined;
  // With several common names, it is unknown which one the issuer intended as the user name: none is used.
  const name = socket.getPeerCertificate?.().subject?.CN;
  const commonName = typeof name === 'string' ? name : undefined;
  // RFC 2253 writes the most specific part first
  const subject = certificate.subject.split('\n').toReversed().join(',');
  return { commonName, subject, fingerprint256: certificate.fingerprint256 };
}

/** Turn an IPv4 address in IPv6 form (`::ffff:192.0.2.1`) into its IPv4 form; other addresses are returned unchanged. For adapters. */
export function plainAddress(address: string | undefined): string | undefined {
  return address?.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
