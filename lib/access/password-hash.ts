import { createHash, pbkdf2, randomBytes, scrypt, timingSafeEqual } from '../base/builtins.ts';
import { BrokerError, InvalidInput } from '../base/errors.ts';

/** Base-2 logarithm of the cost of new scrypt hashes. One check takes some 30 ms of one core and 16 MB. */
const DEFAULT_COST = 14;
const BLOCK = 8;
const SALT_BYTES = 16;
const KEY_BYTES = 32;
/** Maximum parameters of a hash that is checked: a foreign hash must not occupy a thread for minutes. */
const MAX_ITERATIONS = 10_000_000;
const MAX_SCRYPT_BYTES = 256 * 1024 * 1024;

/** Checks whether a password belongs to a hash. The time does not depend on how much of the password is correct. */
export type PasswordCheck = (password: Buffer) => Promise<boolean>;

/** Checks hashes of a format that needs a package. @throws or rejects if the package is missing */
export type ForeignCheck = (password: Buffer, hash: string) => Promise<boolean>;

/** Parts that are read from a hash. */
type Parts = Readonly<Record<string, string>>;

/** The formats of password hashes, with the parts of each. */
const FORMATS: readonly {
  readonly name: string;
  readonly pattern: RegExp;
  readonly check: (parts: Parts) => PasswordCheck;
}[] = [
  {
    name: 'scrypt',
    pattern: /^\$scrypt\$ln=(?<ln>\d{1,2}),r=(?<r>\d{1,3}),p=(?<p>\d{1,3})\$(?<salt>[\w+/]+)\$(?<key>[\w+/]+)$/,
    check: ({ ln, r, p, salt, key }) => {
      const [cost, blockSize, parallelization] = [2 ** Number(ln), Number(r), Number(p)];
      const maxmem = 128 * cost * blockSize * parallelization + 1_048_576;
      if (Number(ln) < 1 || blockSize < 1 || parallelization < 1 || maxmem > MAX_SCRYPT_BYTES)
        throw tooCostly('scrypt');
      const expected = Buffer.from(key, 'base64');
      return async (password) =>
        timingSafeEqual(
          await scrypt(password, Buffer.from(salt, 'base64'), expected.length, {
            cost,
            blockSize,
            parallelization,
            maxmem
          }),
          expected
        );
    }
  },
  {
    name: 'PBKDF2',
    pattern: /^\$pbkdf2-(?<digest>sha256|sha512)\$(?:i=)?(?<iterations>\d+)\$(?<salt>[\w+/.]+)=*\$(?<key>[\w+/.]+)=*$/,
    check: ({ digest, iterations, salt, key }) => pbkdf2Check(digest, iterations, unpadded(salt), unpadded(key))
  },
  {
    name: 'mosquitto PBKDF2',
    pattern: /^\$7\$(?<iterations>\d+)\$(?<salt>[\w+/]+=*)\$(?<key>[\w+/]+=*)$/,
    check: ({ iterations, salt, key }) =>
      pbkdf2Check('sha512', iterations, Buffer.from(salt, 'base64'), Buffer.from(key, 'base64'))
  },
  {
    name: 'mosquitto SHA-512',
    pattern: /^\$6\$(?<salt>[\w+/]+=*)\$(?<key>[\w+/]+=*)$/,
    check: ({ salt, key }) => {
      const expected = Buffer.from(key, 'base64');
      return async (password) => {
        const hash = createHash('sha512').update(password).update(Buffer.from(salt, 'base64')).digest();
        return hash.length === expected.length && timingSafeEqual(hash, expected);
      };
    }
  }
];

/** Functions for the formats that need a package. */
export interface ForeignChecks {
  /** Checks hashes of bcrypt. Absent: they are not supported. */
  readonly bcrypt?: ForeignCheck | undefined;
  /** Checks hashes of Argon2. Absent: they are not supported. */
  readonly argon2?: ForeignCheck | undefined;
}

/** The formats that need a function of the caller, by the prefix of their hashes. */
const FOREIGN: Readonly<Record<keyof ForeignChecks, RegExp>> = {
  bcrypt: /^\$2[abxy]\$\d\d\$[\w./]{53}$/,
  argon2: /^\$argon2(?:id|i|d)\$/
};

/** Tell whether a hash is of a format that needs a package. */
export function foreignFormatOf(hash: string): keyof ForeignChecks | undefined {
  return (Object.keys(FOREIGN) as (keyof ForeignChecks)[]).find((name) => FOREIGN[name].test(hash));
}

/**
 * Hash a password with scrypt.
 * @param cost base-2 logarithm of the cost, 10 to 20; default 14. One more doubles time and memory
 * @returns `$scrypt$ln=14,r=8,p=1$<salt>$<key>`
 * @throws InvalidInput PASSWORD_INVALID, OPTION_INVALID
 */
export async function hashPassword(password: string | Buffer, cost = DEFAULT_COST): Promise<string> {
  if (password.length === 0) throw new InvalidInput('PASSWORD_INVALID', 'password', 'a password that is not empty', '');
  if (!Number.isInteger(cost) || cost < 10 || cost > 20)
    throw new InvalidInput('OPTION_INVALID', 'passwordCost', 'a whole number from 10 to 20', cost);
  const salt = randomBytes(SALT_BYTES);
  const options = {
    cost: 2 ** cost,
    blockSize: BLOCK,
    parallelization: 1,
    maxmem: 2 ** cost * BLOCK * 128 + 1_048_576
  };
  const key = await scrypt(Buffer.from(password), salt, KEY_BYTES, options);
  return `$scrypt$ln=${cost},r=${BLOCK},p=1$${base64(salt)}$${base64(key)}`;
}

/**
 * Read a password hash.
 * @param hash of one of the formats scrypt, PBKDF2, bcrypt, Argon2, or of a password file of mosquitto (`$6$`, `$7$`)
 * @throws BrokerError PASSWORD_HASH_INVALID if the format is unknown, or a check would take too long
 */
export function passwordCheckOf(hash: string, foreign: ForeignChecks = {}): PasswordCheck {
  const format = foreignFormatOf(hash);
  if (format !== undefined) {
    const check = foreign[format];
    if (check === undefined) throw new BrokerError('PASSWORD_HASH_INVALID', `${format} hashes cannot be checked here`);
    return (password) => check(password, hash);
  }
  for (const { pattern, check } of FORMATS) {
    const found = pattern.exec(hash);
    if (found !== null) return check(found.groups as Parts);
  }
  const known = [...FORMATS.map(({ name }) => name), ...Object.keys(FOREIGN)].join(', ');
  throw new BrokerError('PASSWORD_HASH_INVALID', `the format of the password hash is unknown; known are ${known}`);
}

function pbkdf2Check(digest: string, iterations: string, salt: Buffer, expected: Buffer): PasswordCheck {
  const count = Number(iterations);
  if (count < 1 || count > MAX_ITERATIONS || expected.length === 0) throw tooCostly('PBKDF2');
  return async (password) => timingSafeEqual(await pbkdf2(password, salt, count, expected.length, digest), expected);
}

function tooCostly(name: string): BrokerError {
  return new BrokerError(
    'PASSWORD_HASH_INVALID',
    `the parameters of the ${name} hash are outside the range that is checked`
  );
}

/** Base64 without padding, as in the PHC string format. */
function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}

/** Read base64 without padding, with "." for "+" as some libraries write it. */
function unpadded(text: string): Buffer {
  return Buffer.from(text.replaceAll('.', '+'), 'base64');
}

/** Tell whether a value is a hash that `passwordCheckOf` can check without other packages. */
export function isPasswordHash(value: unknown): value is string {
  try {
    return typeof value === 'string' && passwordCheckOf(value) !== undefined;
  } catch {
    return false;
  }
}
