import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { ForeignCheck, PasswordCheck } from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { storedPasswordCheck } from '../hashes/stored-password-check.ts';
import type { DatabaseRow } from './lookup.ts';
import { bytesOf, textOf } from './values.ts';

/** The key of digests in memory, which may be digests of passwords. */
const MEMORY_KEY = randomBytes(32);
const pbkdf2Async = promisify(pbkdf2);

/** A password of a row. */
export interface StoredPassword {
  /** A digest of the stored password and of everything else on which its check depends. */
  readonly id: string;
  /** The kind of hash: checks of the same kind take the same time. */
  readonly kind: string;
  readonly check: PasswordCheck;
}

/** A way to store passwords. */
export interface PasswordFormat {
  /** True if the source cannot be opened without bcryptjs. */
  readonly needsBcrypt: boolean;
  /**
   * Read the password of a row.
   * @param bcrypt checks bcrypt hashes
   * @returns undefined if the row has no password
   * @throws Error if it cannot be read
   */
  read(row: DatabaseRow, bcrypt: ForeignCheck): StoredPassword | undefined;
  /**
   * A password that no user has, checked for unknown names; undefined if a hash in the broker's own format is suitable.
   */
  readonly dummy: StoredPassword | undefined;
}

const DIGESTS: Readonly<Record<string, string>> = {
  ...{ md5: 'md5', sha: 'sha1', sha1: 'sha1', sha224: 'sha224', sha256: 'sha256', sha384: 'sha384', sha512: 'sha512' }
};
const SIMPLE = /^(?<before>salt,)?(?<digest>[a-z0-9]+)(?<after>,salt)?$/;
const PBKDF2 = /^pbkdf2,(?<digest>[a-z0-9]+),(?<iterations>[1-9]\d{0,7}),(?<length>[1-9]\d{0,2})$/;
const FORMATS =
  'auto, plain, bcrypt, md5, sha, sha256, sha512, "salt,sha256", "sha256,salt" or "pbkdf2,sha256,1000,20"';
/** A hash for unknown names takes as long as one of these. */
const EMPTY: DatabaseRow = { password: '', salt: '' };

/** Read the option `passwordHash`. @throws InvalidInput OPTION_INVALID */
export function readPasswordFormat(value: unknown, field: string): PasswordFormat {
  const text = String(value).replaceAll(' ', '');
  if (text === 'auto') return selfNamed(false);
  if (text === 'bcrypt' || text === 'salt,bcrypt') return selfNamed(true);
  if (text === 'plain') return fixed(text, false, (salt, password) => Buffer.concat([salt, password]), plainKey);
  const slow = PBKDF2.exec(text)?.groups;
  if (slow !== undefined && Object.hasOwn(DIGESTS, slow.digest)) {
    const [digest, iterations, length] = [DIGESTS[slow.digest], Number(slow.iterations), Number(slow.length)];
    return fixed(text, true, (salt, password) => pbkdf2Async(password, salt, iterations, length, digest), hexKey);
  }
  const simple = SIMPLE.exec(text)?.groups;
  const { digest = '', before, after } = simple ?? {};
  if (!Object.hasOwn(DIGESTS, digest) || (before !== undefined && after !== undefined))
    throw new InvalidInput('OPTION_INVALID', field, FORMATS, value);
  const isSalted = before !== undefined || after !== undefined;
  const compute = (salt: Buffer, password: Buffer) =>
    createHash(DIGESTS[digest])
      .update(before === undefined ? password : salt)
      .update(before === undefined ? salt : password)
      .digest();
  return fixed(text, isSalted, compute, hexKey);
}

/** Hashes that contain the name of their format. */
function selfNamed(needsBcrypt: boolean): PasswordFormat {
  return {
    needsBcrypt,
    dummy: undefined,
    read: ({ password }, bcrypt) => {
      const hash = textOf(password, 'password');
      if (hash === undefined || hash === '') return undefined;
      // without salt and key, only the format and its cost remain
      return { id: digestOf(hash), kind: hash.slice(0, kindEnd(hash)), check: storedPasswordCheck(hash, { bcrypt }) };
    }
  };
}

/**
 * The index at which format and cost of a hash end: the third "$" of bcrypt and mosquitto, and the last but one of
 * others.
 */
function kindEnd(hash: string): number {
  const marks = [...hash.matchAll(/\$/g)].map(({ index }) => index);
  return marks[hash.startsWith('$2') ? 2 : marks.length - 2] ?? 0;
}

/** Hashes of a single format, given by the options. */
function fixed(
  kind: string,
  isSalted: boolean,
  compute: (salt: Buffer, password: Buffer) => Buffer | Promise<Buffer>,
  keyOf: (stored: string) => Buffer | undefined
): PasswordFormat {
  const stored = (row: DatabaseRow, key: Buffer): StoredPassword => {
    const salt = isSalted ? (bytesOf(row.salt, 'salt') ?? Buffer.alloc(0)) : Buffer.alloc(0);
    const check = async (password: Buffer) => isEqual(await compute(salt, password), key);
    return { id: digestOf(`${kind}:${salt.toString('hex')}:${key.toString('hex')}`), kind, check };
  };
  return {
    needsBcrypt: false,
    dummy: stored(EMPTY, Buffer.alloc(0)),
    read: (row) => {
      const text = textOf(row.password, 'password');
      if (text === undefined || text === '') return undefined;
      if (isSalted && row.salt === undefined)
        throw new BrokerError('PASSWORD_HASH_INVALID', `the password format "${kind}" needs a column or field "salt"`);
      const key = keyOf(text);
      if (key !== undefined) return stored(row, key);
      throw new BrokerError('PASSWORD_HASH_INVALID', `the stored password is not of the format "${kind}"`);
    }
  };
}

function digestOf(text: string): string {
  return createHmac('sha256', MEMORY_KEY).update(text).digest('base64');
}

function hexKey(stored: string): Buffer | undefined {
  return /^(?:[0-9a-f]{2})+$/i.test(stored) ? Buffer.from(stored, 'hex') : undefined;
}

function plainKey(stored: string): Buffer {
  return Buffer.from(stored);
}

/** Compare in a time that depends neither on the position of a difference nor on the length. */
function isEqual(a: Buffer, b: Buffer): boolean {
  const [one, other] = [a, b].map((bytes) => createHash('sha256').update(bytes).digest());
  return timingSafeEqual(one, other);
}
