import { isIPv4, isIPv6 } from 'node:net';

/**
 * Parser of the PROXY protocol, versions 1 and 2, by HAProxy's specification "The PROXY protocol" (proxy-protocol.txt). A proxy sends a
 * header before the first byte of a connection, with the addresses of the client it forwards.
 */

/** The content of a PROXY header. */
export interface ProxyHeader {
  /** Length of the header in bytes; the data of the connection follows. */
  readonly length: number;
  /**
   * Address of the client. Undefined if the proxy connects on its own behalf (LOCAL) or does not know it: the addresses
   * of the connection apply.
   */
  readonly source: { readonly address: string; readonly port: number } | undefined;
  readonly destination: { readonly address: string; readonly port: number } | undefined;
  /** Common name of the client certificate, if the proxy has terminated TLS and verified the certificate. */
  readonly commonName: string | undefined;
}

/** A header; `more` if the header is incomplete so far; `malformed` if no header can begin with these bytes. */
type ProxyResult = ProxyHeader | 'more' | 'malformed';

/** Maximum length of a version 1 header, with its CRLF. */
const MAX_LINE_BYTES = 107;
/**
 * The format allows 65,535 bytes. Addresses and all known TLVs are far shorter, and a peer cannot make the broker buffer more than this.
 */
const MAX_BODY_BYTES = 4096;
const SIGNATURE = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]);
const LINE_START = Buffer.from('PROXY ');

/** Parse a header from the first bytes of a connection. If it returns `more`, call it again with all bytes received until then. */
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
  const end = bytes.subarray(0, MAX_LINE_BYTES).indexOf('\r\n');
  if (end < 0) return bytes.length < MAX_LINE_BYTES ? 'more' : 'malformed';
  const words = bytes.toString('latin1', 0, end).split(' ');
  const local = { length: end + 2, source: undefined, destination: undefined, commonName: undefined };
  // the rest of the line after UNKNOWN must be ignored
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
/** The client has presented a certificate: on this connection, or in the TLS session that it resumed. */
const SSL_CLIENT_CERT = 0x02 | 0x04;

function parseBinary(bytes: Buffer): ProxyResult {
  if (bytes.length > 12 && (bytes[12] >> 4 !== 2 || (bytes[12] & 0x0f) > 1)) return 'malformed';
  if (bytes.length < 16) return 'more';
  const bodyLength = bytes.readUInt16BE(14);
  if (bodyLength > MAX_BODY_BYTES) return 'malformed';
  const length = 16 + bodyLength;
  if (bytes.length < length) return 'more';
  const nothing: ProxyHeader = { length, source: undefined, destination: undefined, commonName: undefined };
  // LOCAL: a connection of the proxy itself, such as a health check. The rest must be skipped.
  if ((bytes[12] & 0x0f) === 0) return nothing;
  const family = bytes[13] >> 4;
  const protocol = bytes[13] & 0x0f;
  const addressBytes = FAMILY_ADDRESS_BYTES[family];
  // 1 is STREAM; 0 is used with an unspecified family. A stream cannot forward datagrams.
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

/** @returns undefined if there is no verified name; null if the TLVs are malformed */
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

/**
 * Iterate over the TLVs of all types; the caller skips those it does not use (ALPN, authority, unique id, namespace).
 * null: a length is wrong.
 */
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
  // the URL parser shortens the address according to RFC 5952
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
}
