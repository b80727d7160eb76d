import { BlockList, isIP, isIPv4 } from 'node:net';
import { plainAddress } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';
import type { Arrival, Gate, Stage } from './gate.ts';
import { type ProxyHeader, parseProxyHeader } from './proxy-header.ts';

/**
 * Build the list of addresses whose PROXY headers are trusted.
 * @param sources addresses (`127.0.0.1`, `::1`) and networks (`10.0.0.0/8`, `fd00::/8`)
 * @throws InvalidInput OPTION_INVALID
 */
export function trustedSources(sources: readonly string[], field: string): BlockList {
  const list = new BlockList();
  for (const source of sources) {
    const [address, bits, ...rest] = source.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    const width = family === 'ipv4' ? 32 : 128;
    const isGood =
      isIP(address) !== 0 &&
      rest.length === 0 &&
      (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= width));
    if (!isGood)
      throw new InvalidInput(
        'OPTION_INVALID',
        field,
        'addresses and networks such as "127.0.0.1" or "10.0.0.0/8"',
        source
      );
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/**
 * Create the stage that reads the PROXY header, which precedes TLS. A connection from an untrusted address is closed unread: without its
 * header, clients could bypass the proxy; with its header, they could claim any address.
 * @param trusted undefined on a Unix socket: every peer that may open it is trusted
 */
export function proxyStage(gate: Gate, trusted: BlockList | undefined, next: Stage): Stage {
  return (arrival) => {
    if (trusted !== undefined && !isTrusted(trusted, arrival.remoteAddress)) {
      gate.refuse(arrival, 'proxy_untrusted');
      return;
    }
    // also the reason if the peer disconnects before the header is complete
    arrival.reason = 'proxy_malformed';
    readHeader(gate, arrival, next);
  };
}

function isTrusted(trusted: BlockList, address: string | undefined): boolean {
  return address !== undefined && trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
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
