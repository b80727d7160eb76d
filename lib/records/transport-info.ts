import type { X509Certificate } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { TransportInfo } from './client.ts';

/** What sockets of node:net and node:tls have; asked by name, so that sockets of other realms and runtimes count, too. */
interface SocketFacts {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  /** The server that accepted it. */
  readonly server?: { address?(): unknown } | null | undefined;
}

/** What a TLS socket knows of its peer's certificate. */
export interface TlsFacts {
  /** Always true for a TLS socket. */
  readonly encrypted?: boolean;
  /** The peer showed a certificate, and it was verified. */
  readonly authorized?: boolean;
  /** The peer's certificate. */
  getPeerX509Certificate?(): X509Certificate | undefined;
  /** The peer's certificate in its older form. */
  getPeerCertificate?(): { readonly subject?: { readonly CN?: unknown } };
}

/** Address, transport and certificate as a socket tells them. For any other Duplex: transport `stream` alone. */
export function transportInfoOf(stream: Duplex & SocketFacts & TlsFacts): TransportInfo {
  if (!('remoteAddress' in stream)) return { transport: 'stream' };
  const { remotePort, localPort } = stream;
  const remoteAddress = plainAddress(stream.remoteAddress);
  const localAddress = plainAddress(stream.localAddress);
  const certificate = stream.encrypted ? verifiedCertificate(stream) : undefined;
  return { transport: transportOf(stream), remoteAddress, remotePort, localAddress, localPort, certificate };
}

/** Clients of a Unix socket count as local, so it takes more than a missing address, which a TCP socket that was reset has, too. */
function transportOf({ encrypted, server, remoteAddress }: SocketFacts & TlsFacts): TransportInfo['transport'] {
  if (encrypted) return 'tls';
  return remoteAddress === undefined && typeof server?.address?.() === 'string' ? 'unix' : 'tcp';
}

/** Did a server accept it, so that whoever handed it over may be that server's `connection` event, where nobody can catch an error? */
export function isAccepted(stream: Duplex & SocketFacts): boolean {
  return typeof stream.server === 'object' && stream.server !== null;
}

/** What is known of the peer's certificate; undefined if it showed none that was verified. For adapters. */
export function verifiedCertificate(socket: TlsFacts): TransportInfo['certificate'] {
  const certificate = socket.authorized ? socket.getPeerX509Certificate?.() : undefined;
  if (certificate === undefined) return undefined;
  // With several common names it is not known which one the issuer meant for the user: none is taken.
  const name = socket.getPeerCertificate?.().subject?.CN;
  const commonName = typeof name === 'string' ? name : undefined;
  // Most specific first, as RFC 2253 writes it.
  const subject = certificate.subject.split('\n').toReversed().join(',');
  return { commonName, subject, fingerprint256: certificate.fingerprint256 };
}

/** An IPv4 address as such, also if a socket for both families shows it as `::ffff:192.0.2.1`. For adapters. */
export function plainAddress(address: string | undefined): string | undefined {
  return address?.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
