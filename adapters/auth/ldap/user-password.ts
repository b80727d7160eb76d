import { createHash, timingSafeEqual } from 'node:crypto';
import { foreignFormatOf, type PasswordCheck, passwordCheckOf } from '../../../lib/adapter.ts';
import { BrokerError } from '../../../lib/index.ts';

/** A hash function, and whether a salt follows the digest. */
interface Scheme {
  readonly digest: string;
  readonly bytes: number;
  readonly isSalted: boolean;
}

const DIGESTS = [
  ['MD5', 'SMD5', 'md5', 16],
  ['SHA', 'SSHA', 'sha1', 20],
  ['SHA256', 'SSHA256', 'sha256', 32],
  ['SHA384', 'SSHA384', 'sha384', 48],
  ['SHA512', 'SSHA512', 'sha512', 64]
] as const;
const SCHEMES = new Map<string, Scheme>(
  DIGESTS.flatMap(([plain, salted, digest, bytes]) => [
    [plain, { digest, bytes, isSalted: false }],
    [salted, { digest, bytes, isSalted: true }]
  ])
);

/**
 * Read a value of `userPassword` [RFC 2307 section 5.3]: a password, or a hash after the name of its scheme in braces.
 * @throws BrokerError PASSWORD_HASH_INVALID for a scheme that cannot be checked here, without the hash
 */
export function checkOfUserPassword(value: Buffer): PasswordCheck {
  const text = value.toString('latin1');
  const [, name, hash] = /^\{([^{}]{1,40})\}(.*)$/s.exec(text) ?? [];
  if (name === undefined) return hashInText(text) ?? equality(value);
  const scheme = SCHEMES.get(name.toUpperCase());
  if (name.toUpperCase() === 'CLEARTEXT') return equality(Buffer.from(hash, 'latin1'));
  if (scheme === undefined) throw unknown(`{${name}}`);
  return digestCheck(scheme, Buffer.from(hash, 'base64'), name);
}

/** Refuse a hash without a scheme as a password: anyone who knows the hash could log in with it. */
function hashInText(text: string): PasswordCheck | undefined {
  if (!text.startsWith('$')) return undefined;
  const foreign = foreignFormatOf(text);
  if (foreign !== undefined) throw unknown(foreign);
  try {
    return passwordCheckOf(text);
  } catch {
    return undefined; // a password that begins with a dollar sign
  }
}

function digestCheck({ digest, bytes, isSalted }: Scheme, stored: Buffer, name: string): PasswordCheck {
  const isGood = isSalted ? stored.length > bytes : stored.length === bytes;
  if (!isGood) throw new BrokerError('PASSWORD_HASH_INVALID', `the {${name}} hash in the directory is not valid`);
  const salt = stored.subarray(bytes);
  return async (password) => {
    const found = createHash(digest).update(password).update(salt).digest();
    return timingSafeEqual(found, stored.subarray(0, bytes));
  };
}

function equality(expected: Buffer): PasswordCheck {
  const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
  return async (password) => timingSafeEqual(digestOf(password), digestOf(expected));
}

function unknown(format: string): BrokerError {
  const known = [...SCHEMES.keys()].map((name) => `{${name}}`).join(', ');
  return new BrokerError(
    'PASSWORD_HASH_INVALID',
    `the password in the directory has the format ${format}, which only the server can check (method "bind"); known here are ${known}`
  );
}
