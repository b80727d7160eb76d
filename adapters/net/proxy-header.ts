import { isIPv4, isIPv6 } from 'node:net';

/**
 * The PROXY protocol, versions 1 and 2, after "The PROXY protocol" of HAProxy (proxy-protocol.txt): a header before the first byte of
 * a connection that tells whom the proxy speaks for.
 */

/** What a header told. */
export interface ProxyHeader {
  /** Bytes of the header; what follows is the connection's own. */
  readonly length: number;
  /** Undefined where the proxy speaks for itself (LOCAL) or does not know: the connection's own addresses hold. */
  readonly source: { readonly address: string; readonly port: number } | undefined;
  readonly destination: { readonly address: string; readonly port: number } | undefined;
  /** Common name of the client certificate, where the proxy has ended TLS and verified it. */
  readonly commonName: string | undefined;
}

/** `more`: a header so far, go on reading. `malformed`: no header can begin like this. */
export type ProxyResult = ProxyHeader | 'more' | 'malformed';

/** Longest version 1 line, with its CRLF. */
const LONGEST_LINE = 107;
/** The format allows 65535; addresses and all known TLVs stay far below this, and a peer can make us hold no more. */
const LONGEST_BODY = 4096;
const SIGNATURE = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]);
const LINE_START = Buffer.from('PROXY ');

/** Read a header from the first bytes of a connection. Call it again with more bytes while it says `more`. */
export function parseProxyHeader(bytes: Buffer): ProxyResult {
  if (bytes.length === 0) return 'more';
  if (bytes[0] === SIGNATURE[0]) return startsLike(bytes, SIGNATURE) ? parseBinary(bytes) : 'malformed';
  return startsLike(bytes, LINE_START) ? parseLine(bytes) : 'malformed';
}

function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.compare(start, 0, length, 0, length) === 0;
}

function parseLine(bytes: Buffer): ProxyResult {
  const end = bytes.subarray(0, LONGEST_LINE).indexOf('\r\n');
  if (end < 0) return bytes.length < LONGEST_LINE ? 'more' : 'malformed';
  const words = bytes.toString('latin1', 0, end).split(' ');
  const local = { length: end + 2, source: undefined, destination: undefined, commonName: undefined };
  // After UNKNOWN anything may follow, and none of it means anything.
  if (words[1] === 'UNKNOWN') return local;
  const [, family, from, to, fromPort, toPort] = words;
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isIPv6 : undefined;
  if (isAddress === undefined || words.length !== 6 || !isAddress(from) || !isAddress(to)) return 'malformed';
  if (!isPort(fromPort) || !isPort(toPort)) return 'malformed';
  return {
    ...local,
    source: { address: from, port: Number(fromPort) },
    destination: { address: to, port: Number(toPort) }
  };
}

function isPort(text: string): boolean {
  return /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
}

const FAMILY_ADDRESS_BYTES: Readonly<Record<number, number>> = { 0: 0, 1: 4, 2: 16, 3: 108 };
const TLV_SSL = 0x20;
const TLV_SSL_CN = 0x22;
/** The client gave a certificate: on this connection, or in the TLS session that it resumed. */
const SSL_CLIENT_CERT = 0x02 | 0x04;

function parseBinary(bytes: Buffer): ProxyResult {
  if (bytes.length > 12 && (bytes[12] >> 4 !== 2 || (bytes[12] & 0x0f) > 1)) return 'malformed';
  if (bytes.length < 16) return 'more';
  const bodyLength = bytes.readUInt16BE(14);
  if (bodyLength > LONGEST_BODY) return 'malformed';
  const length = 16 + bodyLength;
  if (bytes.length < length) return 'more';
  const nothing: ProxyHeader = { length, source: undefined, destination: undefined, commonName: undefined };
  // LOCAL: the proxy's own connection, a health check for example. What follows must be skipped.
  if ((bytes[12] & 0x0f) === 0) return nothing;
  const family = bytes[13] >> 4;
  const protocol = bytes[13] & 0x0f;
  const addressBytes = FAMILY_ADDRESS_BYTES[family];
  // 1 is STREAM; 0 goes with an unspecified family. Datagrams can not arrive on a stream.
  if (addressBytes === undefined || protocol > 1) return 'malformed';
  const body = bytes.subarray(16, length);
  const hasPorts = family === 1 || family === 2;
  const tlvsAt = addressBytes * 2 + (hasPorts ? 4 : 0);
  if (body.length < tlvsAt) return 'malformed';
  const commonName = readCommonName(body.subarray(tlvsAt));
  if (commonName === null) return 'malformed';
  if (!hasPorts || protocol === 0) return { ...nothing, commonName };
  const ports = addressBytes * 2;
  return {
    length,
    source: { address: addressText(body.subarray(0, addressBytes)), port: body.readUInt16BE(ports) },
    destination: { address: addressText(body.subarray(addressBytes, ports)), port: body.readUInt16BE(ports + 2) },
    commonName
  };
}

/** @returns undefined: none, or not verified; null: the TLVs are malformed */
function readCommonName(tlvs: Buffer): string | undefined | null {
  let commonName: string | undefined;
  for (const tlv of walkTlvs(tlvs)) {
    if (tlv === null) return null;
    if (tlv.type !== TLV_SSL) continue;
    if (tlv.value.length < 5) return null;
    const isVerified = (tlv.value[0] & SSL_CLIENT_CERT) !== 0 && tlv.value.readUInt32BE(1) === 0;
    for (const inner of walkTlvs(tlv.value.subarray(5))) {
      if (inner === null) return null;
      if (inner.type === TLV_SSL_CN && isVerified) commonName = inner.value.toString('utf8');
    }
  }
  return commonName;
}

/** Types we have no use for (ALPN, authority, unique id, namespace) are passed over by the caller. null: the length is wrong. */
function* walkTlvs(bytes: Buffer): Generator<{ type: number; value: Buffer } | null> {
  for (let at = 0; at < bytes.length; ) {
    if (bytes.length - at < 3) return yield null;
    const end = at + 3 + bytes.readUInt16BE(at + 1);
    if (end > bytes.length) return yield null;
    yield { type: bytes[at], value: bytes.subarray(at + 3, end) };
    at = end;
  }
}

function addressText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16));
  // The URL parser shortens by the rules of RFC 5952.
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
}
