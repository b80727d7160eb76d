import { plainAddress } from '../../lib/adapter.ts';
import type { TrustedProxies } from '../upgrades/index.ts';
import type { Arrival, Gate, Stage } from './gate.ts';
import { type ProxyHeader, parseProxyHeader } from './proxy-header.ts';

/**
 * Create the stage that reads the PROXY header, which precedes TLS. A connection from an untrusted address is closed unread: without its
 * header, clients could bypass the proxy; with its header, they could claim any address.
 * @param trusted undefined on a Unix socket: every peer that may open it is trusted
 */
export function proxyStage(gate: Gate, trusted: TrustedProxies | undefined, next: Stage): Stage {
  return (arrival) => {
    if (trusted !== undefined && (arrival.remoteAddress === undefined || !trusted.trusts(arrival.remoteAddress))) {
      gate.refuse(arrival, 'proxy_untrusted');
      return;
    }
    // also the reason if the peer disconnects before the header is complete
    arrival.reason = 'proxy_malformed';
    readHeader(gate, arrival, next);
  };
}

function readHeader(gate: Gate, arrival: Arrival, next: Stage): void {
  const { socket } = arrival;
  let bytes: Buffer | undefined;
  const read = () => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    bytes = bytes === undefined ? chunk : Buffer.concat([bytes, chunk]);
    const header = parseProxyHeader(bytes);
    if (header === 'more') return;
    socket.off('readable', read);
    if (header === 'malformed') {
      gate.refuse(arrival, 'proxy_malformed');
      return;
    }
    if (bytes.length > header.length) socket.unshift(bytes.subarray(header.length));
    apply(arrival, header);
    next(arrival);
  };
  socket.on('readable', read);
}

function apply(arrival: Arrival, { source, destination, commonName }: ProxyHeader): void {
  if (source !== undefined && destination !== undefined) {
    arrival.remoteAddress = plainAddress(source.address);
    arrival.remotePort = source.port;
    arrival.localAddress = plainAddress(destination.address);
    arrival.localPort = destination.port;
  }
  if (commonName !== undefined) arrival.certificate = { commonName };
}
