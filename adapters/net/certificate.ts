import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { ConnectionMeta } from '../../lib/index.ts';
import type { Arrival, Gate, Stage } from './gate.ts';

/** What is known of the peer's certificate; undefined where there is none that was verified. */
export function verifiedCertificate(socket: TLSSocket): ConnectionMeta['certificate'] {
  const certificate = socket.authorized ? (socket.getPeerX509Certificate() as X509Certificate | undefined) : undefined;
  if (certificate === undefined) return undefined;
  const { fingerprint256 } = certificate;
  const parts = certificate.subject.split('\n');
  // Most specific first, as RFC 2253 writes it.
  const subject = parts.toReversed().join(',');
  return { commonName: commonName(socket), subject, fingerprint256 };
}

/** The stage that makes the certificate's name the user name. A connection without one is closed: it could take any name it liked. */
export function usernameStage(gate: Gate, usernameFrom: 'cn' | 'subject', next: Stage): Stage {
  return (arrival: Arrival) => {
    // A pre-shared key has named and proved the user already.
    if (!arrival.isAuthenticated) {
      const username = usernameFrom === 'cn' ? arrival.certificate?.commonName : arrival.certificate?.subject;
      if (username === undefined || username === '') {
        gate.refuse(arrival, 'no_username');
        return;
      }
      arrival.username = username;
    }
    next(arrival);
  };
}

/** With several common names, which one the issuer meant for the user can not be known: none is taken. */
function commonName(socket: TLSSocket): string | undefined {
  const name: unknown = socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' ? name : undefined;
}
