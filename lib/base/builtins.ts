// An import of embermq loads no module of Node that costs time. Each module here takes 2 to 6 ms of CPU time, together 15 of the 91 ms of an
// import before: some load the streams of Node, and an import evaluates every getter of a module (`node:process` opens
// the standard streams). The functions below load their module synchronously when they are first called. Rejected:
// `await import()`, because synchronous functions would become asynchronous, and `createRequire`, which does not work
// in bundles of the CommonJS format.

import type { Hash, Hmac, ScryptOptions } from 'node:crypto';

/** Make a value when it is first asked for. */
export function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

const buffer = once(() => process.getBuiltinModule('node:buffer'));
const crypto = once(() => process.getBuiltinModule('node:crypto'));
const util = once(() => process.getBuiltinModule('node:util'));
const zlib = once(() => process.getBuiltinModule('node:zlib'));

/** The module `node:net`. */
export const net = once(() => process.getBuiltinModule('node:net'));
/** The module `node:os`. */
export const os = once(() => process.getBuiltinModule('node:os'));
/** The module `node:perf_hooks`. */
export const perfHooks = once(() => process.getBuiltinModule('node:perf_hooks'));
/** The module `node:stream`. */
export const stream: () => typeof import('node:stream') = once(() => process.getBuiltinModule('node:stream'));
/** The module `node:v8`. */
export const v8 = once(() => process.getBuiltinModule('node:v8'));

/** `isUtf8` of `node:buffer`. */
export function isUtf8(bytes: Uint8Array): boolean {
  return buffer().isUtf8(bytes);
}

/** `crc32` of `node:zlib`. */
export function crc32(bytes: Uint8Array | string, start = 0): number {
  return zlib().crc32(bytes, start);
}

/** `isDeepStrictEqual` of `node:util`. */
export function isDeepStrictEqual(one: unknown, other: unknown): boolean {
  return util().isDeepStrictEqual(one, other);
}

/** `randomBytes` of `node:crypto`. */
export function randomBytes(size: number): Buffer {
  return crypto().randomBytes(size);
}

/** `timingSafeEqual` of `node:crypto`. */
export function timingSafeEqual(one: Uint8Array, other: Uint8Array): boolean {
  return crypto().timingSafeEqual(one, other);
}

/** `hash` of `node:crypto`. */
export function hash(algorithm: string, text: string | Buffer, encoding: 'base64' | 'hex' = 'hex'): string {
  return crypto().hash(algorithm, text, encoding);
}

/** `createHash` of `node:crypto`. */
export function createHash(algorithm: string): Hash {
  return crypto().createHash(algorithm);
}

/** `createHmac` of `node:crypto`. */
export function createHmac(algorithm: string, key: string | Buffer): Hmac {
  return crypto().createHmac(algorithm, key);
}

/** `pbkdf2` of `node:crypto`, as a promise. */
export function pbkdf2(
  password: string | Buffer,
  salt: Buffer,
  iterations: number,
  length: number,
  digest: string
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    crypto().pbkdf2(password, salt, iterations, length, digest, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

/** `scrypt` of `node:crypto`, as a promise. */
export function scrypt(password: Buffer, salt: Buffer, length: number, options: ScryptOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Bun passes undefined instead of null
    crypto().scrypt(password, salt, length, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}
