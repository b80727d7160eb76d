import * as crypto from 'node:crypto';
import type { PasswordCheck } from '../../../lib/adapter.ts';

/** `crypto.argon2`, which Node has from 24.7 on. */
type Argon2 = (
  algorithm: string,
  parameters: {
    readonly message: Buffer;
    readonly nonce: Buffer;
    readonly parallelism: number;
    readonly tagLength: number;
    readonly memory: number;
    readonly passes: number;
  },
  callback: (error: Error | null, tag: Buffer) => void
) => void;

const HASH = /^\$(argon2(?:id|i|d))\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([\w+/]+)\$([\w+/]+)$/;
/** Maximum parameters of a hash: a foreign hash must not occupy a thread for minutes. */
const MAX_MEMORY_KB = 262_144;
const MAX_KB_PASSES = 2_097_152;

/** The function of Node; undefined before 24.7. */
export const nodeArgon2 = (crypto as { readonly argon2?: Argon2 }).argon2;

/**
 * Read an Argon2 hash.
 * @param argon2 the implementation; that of Node is `nodeArgon2`
 * @throws Error if it is not valid, too costly, or if this version of Node cannot check it
 */
export function argon2Check(hash: string, argon2: Argon2 | undefined): PasswordCheck {
  if (argon2 === undefined)
    throw new Error(
      `Argon2 hashes need Node 24.7 or newer, this is ${process.versions.node}; set the password again with embermq passwd`
    );
  const [, algorithm, m, t, p, salt, key] = HASH.exec(hash) ?? [];
  const [memory, passes, parallelism] = [Number(m), Number(t), Number(p)];
  const [nonce, expected] = [salt ?? '', key ?? ''].map((text) => Buffer.from(text, 'base64'));
  if (algorithm === undefined || nonce.length < 8 || expected.length < 4)
    throw new Error('expected an Argon2 hash of version 19: $argon2id$v=19$m=...,t=...,p=...$salt$key');
  if (
    memory < 8 * parallelism ||
    memory > MAX_MEMORY_KB ||
    memory * passes > MAX_KB_PASSES ||
    passes < 1 ||
    parallelism < 1
  )
    throw new Error('the parameters of the Argon2 hash are outside the range that is checked');
  return (message) =>
    new Promise((resolve, reject) => {
      const parameters = { message, nonce, parallelism, tagLength: expected.length, memory, passes };
      argon2(algorithm, parameters, (error, tag) => {
        if (error === null || error === undefined) resolve(crypto.timingSafeEqual(tag, expected));
        else reject(error);
      });
    });
}
