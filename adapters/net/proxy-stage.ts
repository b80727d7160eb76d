import { BlockList, isIP, isIPv4 } from 'node:net';
import { InvalidInput, plainAddress } from '../../lib/index.ts';
import type { Arrival, Gate, Stage } from './gate.ts';
import { type ProxyHeader, parseProxyHeader } from './proxy-header.ts';

/**
 * The addresses whose PROXY headers are believed.
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
 * The stage that reads the PROXY header, in the clear and before TLS. A connection from an address that is not trusted is closed unread:
 * taking it without a header would let anyone pass by the proxy, taking its header would let anyone be anybody.
 * @param trusted undefined: whoever may open the socket (a Unix socket) is trusted
 */
export function proxyStage(gate: Gate, trusted: BlockList | undefined, next: Stage): Stage {
  return (arrival) => {
    if (trusted !== undefined && !isTrusted(trusted, arrival.remoteAddress)) {
      gate.refuse(arrival, 'proxy_untrusted');
      return;
    }
    // Also what it counts as when the peer leaves before the header is whole.
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
