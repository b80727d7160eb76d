import type { TLSSocket } from 'node:tls';
import { InvalidInput } from '../../lib/index.ts';

/** A pre-shared key: bytes, or hexadecimal text. */
export type PresharedKey = Uint8Array | string;

/** Where keys are looked up during the handshake: a table by identity, or a function that answers at once. */
export type PresharedKeys =
  | Readonly<Record<string, PresharedKey>>
  | ReadonlyMap<string, PresharedKey>
  | ((identity: string) => PresharedKey | undefined | null);

/** A key by its identity; undefined: unknown. */
export type KeyLookup = (identity: string) => Uint8Array | undefined;

/**
 * Read a file of pre-shared keys: one `identity:hexkey` a line. Empty lines and lines that begin with `#` are passed over. An identity may
 * contain the delimiter, since a key can not.
 * @throws InvalidInput PSK_INVALID with the number of the line; the key is not shown
 */
export function parsePskFile(text: string, delimiter = ':'): Map<string, Uint8Array> {
  const keys = new Map<string, Uint8Array>();
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    const entry = line.trim();
    if (entry === '' || entry.startsWith('#')) continue;
    const end = entry.lastIndexOf(delimiter);
    const field = `line ${at + 1} of the pre-shared keys`;
    if (end <= 0) throw invalid(field, `an identity, "${delimiter}" and a key in hexadecimal`);
    keys.set(entry.slice(0, end), keyBytes(entry.slice(end + delimiter.length), field));
  }
  return keys;
}

/**
 * One lookup over a table or function and the keys of a file, which come second.
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
 * Did the handshake prove the pre-shared key? That the key was looked up is not enough: a client may name an identity and be let in by
 * the certificate handshake instead, where its TLS 1.3 cipher does not suit the key. In TLS 1.3 a key shows as a resumed session, and
 * sessions of such a listener can not be resumed otherwise; before it the cipher says so.
 */
export function hasProvedKey(socket: TLSSocket): boolean {
  return socket.getProtocol() === 'TLSv1.3' ? socket.isSessionReused() : /(^|-)PSK-/.test(socket.getCipher().name);
}

function keyBytes(key: PresharedKey, field: string): Uint8Array {
  if (typeof key !== 'string') {
    if (key instanceof Uint8Array && key.length > 0) return key;
    throw invalid(field, 'bytes, or a text of hexadecimal digits');
  }
  const digits = key.trim();
  if (!/^([0-9a-f]{2})+$/i.test(digits)) throw invalid(field, 'an even number of hexadecimal digits');
  return Buffer.from(digits, 'hex');
}

/** Without the value: it may be the better part of a secret. */
function invalid(field: string, expected: string): InvalidInput {
  return new InvalidInput('PSK_INVALID', field, expected, undefined, `${field}: expected ${expected}`);
}
