import type { TLSSocket } from 'node:tls';
import { InvalidInput } from '../../lib/index.ts';

/** A pre-shared key: bytes, or a hexadecimal string. */
export type PresharedKey = Uint8Array | string;

/** Source of pre-shared keys: a table by identity, or a synchronous function. */
export type PresharedKeys =
  | Readonly<Record<string, PresharedKey>>
  | ReadonlyMap<string, PresharedKey>
  | ((identity: string) => PresharedKey | undefined | null);

/** Finds the key of an identity; undefined if the identity is unknown. */
export type KeyLookup = (identity: string) => Uint8Array | undefined;

/**
 * Parse a file of pre-shared keys, with one `identity:hexkey` per line. Empty lines and lines that begin with `#` are skipped. An identity
 * may contain the delimiter, because a key cannot.
 * @throws InvalidInput PSK_INVALID with the number of the line; the message does not contain the key
 */
export function parsePskFile(text: string, delimiter = ':'): Map<string, Uint8Array> {
  const keys = new Map<string, Uint8Array>();
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    const entry = line.trim();
    if (entry === '' || entry.startsWith('#')) continue;
    const end = entry.lastIndexOf(delimiter);
    const field = `line ${at + 1} of the pre-shared keys`;
    if (end <= 0) throw invalid(field, `an identity, "${delimiter}" and a hexadecimal key`);
    keys.set(entry.slice(0, end), keyBytes(entry.slice(end + delimiter.length), field));
  }
  return keys;
}

/**
 * Combine a table or function with the keys of a file, which are used for identities unknown to it.
 * @throws InvalidInput PSK_INVALID
 */
export function keyLookup(
  keys: PresharedKeys | undefined,
  fromFile: ReadonlyMap<string, Uint8Array> | undefined
): KeyLookup {
  if (typeof keys === 'function') {
    return (identity) => {
      const key = keys(identity);
      return key === undefined || key === null
        ? fromFile?.get(identity)
        : keyBytes(key, `the pre-shared key of "${identity}"`);
    };
  }
  const table = new Map(fromFile);
  for (const [identity, key] of keys instanceof Map ? keys : Object.entries(keys ?? {})) {
    table.set(identity, keyBytes(key, `the pre-shared key of "${identity}"`));
  }
  return (identity) => table.get(identity);
}

/**
 * Check whether the handshake has proved the pre-shared key.
 *
 * A lookup of the key is not a proof: if the TLS 1.3 cipher does not suit the key, a client that has named an identity
 * may complete a handshake by certificate instead. In TLS 1.3 a proved key shows as a resumed session, and a listener
 * with keys allows no other resumption. Before TLS 1.3 the cipher shows it.
 */
export function hasProvedKey(socket: TLSSocket): boolean {
  return socket.getProtocol() === 'TLSv1.3' ? socket.isSessionReused() : /(^|-)PSK-/.test(socket.getCipher().name);
}

function keyBytes(key: PresharedKey, field: string): Uint8Array {
  if (typeof key !== 'string') {
    if (key instanceof Uint8Array && key.length > 0) return key;
    throw invalid(field, 'bytes, or a string of hexadecimal digits');
  }
  const digits = key.trim();
  if (!/^([0-9a-f]{2})+$/i.test(digits)) throw invalid(field, 'an even number of hexadecimal digits');
  return Buffer.from(digits, 'hex');
}

/** Create an error without the value, which may contain most of a secret. */
function invalid(field: string, expected: string): InvalidInput {
  return new InvalidInput('PSK_INVALID', field, expected, undefined, `${field}: expected ${expected}`);
}
