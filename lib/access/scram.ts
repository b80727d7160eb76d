// The side of the server in RFC 5802 and RFC 7677, without channel binding. A user that does not exist gets invented
// credentials, which are always the same for a name, so that a client cannot find out which names exist; therefore
// nothing in the exchange may depend on whether the user exists before the proof has been checked.

import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from '../base/builtins.ts';
import { BrokerError } from '../base/errors.ts';
import { ReasonCode } from '../packets/reason-codes.ts';

/** Iterations of new credentials: the minimum that RFC 7677 requires. */
const ITERATIONS = 4_096;
const SALT_BYTES = 16;
const NONCE_BYTES = 18;
const MAX_ITERATIONS = 1_000_000;

/** The Authentication Methods of MQTT 5.0 that use SCRAM. */
export type ScramMethod = 'SCRAM-SHA-256' | 'SCRAM-SHA-512';

/** The hash of each method. */
export const SCRAM_METHODS = { 'SCRAM-SHA-256': 'sha256', 'SCRAM-SHA-512': 'sha512' } as const satisfies Readonly<
  Record<ScramMethod, string>
>;

/** The data that a server stores of a password for one method (RFC 5802). The password cannot be computed from it. */
export interface ScramCredentials {
  /** The method. */
  readonly method: ScramMethod;
  /** The salt of the password. */
  readonly salt: Buffer;
  /** The number of iterations of PBKDF2. */
  readonly iterations: number;
  /** StoredKey, with which the proof of a client is checked. */
  readonly storedKey: Buffer;
  /** ServerKey, with which the server proves that it knows the credentials. */
  readonly serverKey: Buffer;
}

/** Tell whether an Authentication Method is a method of SCRAM. */
export function isScramMethod(method: string | undefined): method is ScramMethod {
  return method !== undefined && Object.hasOwn(SCRAM_METHODS, method);
}

/** Make the credentials of both methods for a password. */
export async function scramCredentialsOf(
  password: string | Buffer,
  iterations = ITERATIONS
): Promise<ScramCredentials[]> {
  return Promise.all(
    (Object.keys(SCRAM_METHODS) as ScramMethod[]).map(async (method) => {
      const digest = SCRAM_METHODS[method];
      const salt = randomBytes(SALT_BYTES);
      const length = createHash(digest).digest().length;
      const salted = await pbkdf2(password, salt, iterations, length, digest);
      const storedKey = createHash(digest)
        .update(hmac(digest, salted, 'Client Key'))
        .digest();
      return { method, salt, iterations, storedKey, serverKey: hmac(digest, salted, 'Server Key') };
    })
  );
}

/** The table that keeps the key of invented credentials. */
interface ScramKeyTable {
  get(name: string): string | undefined;
  set(name: string, key: string): Promise<void>;
}

const KEY = 'key';

/**
 * Credentials for users that do not exist. They are the same for a name, with a store also after a restart, and no password fits them. They
 * are derived from a key that is never sent. They have the iterations and the salt length that this broker uses, so entries that other
 * programs have written with other values can be distinguished from them.
 */
export class InventedScram {
  readonly #table: ScramKeyTable;
  readonly #failed: (error: unknown) => void;
  #made: string | undefined = undefined;

  /** @param failed reports that the key could not be persisted */
  constructor(table: ScramKeyTable, failed: (error: unknown) => void) {
    this.#table = table;
    this.#failed = failed;
  }

  credentialsOf(username: string, method: ScramMethod): ScramCredentials {
    const digest = SCRAM_METHODS[method];
    const key = Buffer.from(this.#key(), 'base64');
    const derive = (what: string) => hmac(digest, key, `${what} ${method} ${username}`);
    const salt = derive('salt').subarray(0, SALT_BYTES);
    return { method, salt, iterations: ITERATIONS, storedKey: derive('stored'), serverKey: derive('server') };
  }

  /**
   * The key in base64. It is created, and persisted, when the first unknown user asks. A failure is reported once for all users that ask.
   */
  #key(): string {
    const stored = this.#table.get(KEY);
    if (stored !== undefined) return stored;
    if (this.#made === undefined) {
      this.#made = randomBytes(32).toString('base64');
      this.#table.set(KEY, this.#made).catch(this.#failed);
    }
    return this.#made;
  }
}

/** Write credentials as one word: `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>` (RFC 5803). */
export function formatScram({ method, iterations, salt, storedKey, serverKey }: ScramCredentials): string {
  const [saltText, stored, server] = [salt, storedKey, serverKey].map((bytes) => bytes.toString('base64'));
  return `${method}$${iterations}:${saltText}$${stored}:${server}`;
}

/** Parse a string that `formatScram` has written. @throws BrokerError SCRAM_INVALID */
export function parseScram(text: string): ScramCredentials {
  const found = /^(SCRAM-SHA-(?:256|512))\$(\d{1,7}):([\w+/]+=*)\$([\w+/]+=*):([\w+/]+=*)$/.exec(text);
  const [, method, count, salt, stored, server] = found ?? [];
  const iterations = Number(count);
  if (found === null || iterations < 1 || iterations > MAX_ITERATIONS)
    throw new BrokerError('SCRAM_INVALID', 'expected SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>');
  const [saltBytes, storedKey, serverKey] = [salt, stored, server].map((part) => Buffer.from(part, 'base64'));
  const length = method === 'SCRAM-SHA-256' ? 32 : 64;
  if (storedKey.length !== length || serverKey.length !== length)
    throw new BrokerError('SCRAM_INVALID', `the keys of ${method} have ${length} bytes each`);
  return { method: method as ScramMethod, iterations, salt: saltBytes, storedKey, serverKey };
}

/** The reason why a SCRAM exchange has failed. */
export class ScramFailure extends Error {
  /** 0x82 if the client has sent something that is not a SCRAM message. */
  readonly reasonCode: number;

  constructor(message: string, reasonCode: number = ReasonCode.protocolError) {
    super(message);
    this.reasonCode = reasonCode;
  }
}

/** The first message of a client: its header, the name to act as, the rest, the user name, and the nonce. */
const FIRST_MESSAGE = /^((?:n|y),(?:a=([^,]*))?,)(n=((?:[^,=]|=2C|=3D)+),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/s;

/** The user name in the first message of a client. @returns undefined if the method is not SCRAM, or the message is not valid */
export function scramUserOf(method: string | undefined, data: Buffer | undefined): string | undefined {
  const name = isScramMethod(method) ? FIRST_MESSAGE.exec(data?.toString() ?? '')?.[4] : undefined;
  return name === undefined ? undefined : unescaped(name);
}

/** The server's side of one SCRAM exchange (RFC 5802, RFC 7677), without channel binding. */
export class ScramExchange {
  /** The user name in the first message of the client. */
  readonly username: string;
  readonly #clientFirstBare: string;
  readonly #gs2Header: string;
  readonly #nonce: string;
  #serverFirst = '';
  #credentials: ScramCredentials | undefined = undefined;

  /** @param data the first message of the client @throws ScramFailure */
  constructor(data: Buffer | undefined, nonce = randomBytes(NONCE_BYTES).toString('base64')) {
    const text = data?.toString() ?? '';
    const found = FIRST_MESSAGE.exec(text);
    if (found === null) throw new ScramFailure('the first message of the client is not valid');
    const [, header, authzid = '', bare, name, clientNonce] = found;
    // Escapes have one spelling, so equal names are equal strings.
    if (authzid !== '' && authzid !== name)
      throw new ScramFailure('the client asks to act as another user (authzid)', ReasonCode.notAuthorized);
    this.#gs2Header = header;
    this.#clientFirstBare = bare;
    this.username = unescaped(name);
    this.#nonce = clientNonce + nonce;
  }

  /** The first message of the server. @param credentials of the user; for an unknown user invented ones */
  challenge(credentials: ScramCredentials): Buffer {
    this.#credentials = credentials;
    this.#serverFirst = `r=${this.#nonce},s=${credentials.salt.toString('base64')},i=${credentials.iterations}`;
    return Buffer.from(this.#serverFirst);
  }

  /**
   * Check the final message of the client.
   * @returns the final message of the server, which proves that it knows the credentials @throws ScramFailure
   */
  finish(data: Buffer | undefined): Buffer {
    const credentials = this.#credentials as ScramCredentials;
    const digest = SCRAM_METHODS[credentials.method];
    const text = data?.toString() ?? '';
    const found = /^(c=([\w+/]+=*),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?),p=([\w+/]+=*)$/s.exec(text);
    if (found === null) throw new ScramFailure('the final message of the client is not valid');
    const [, withoutProof, binding, nonce, proofText] = found;
    if (nonce !== this.#nonce) throw new ScramFailure('the nonce of the client is not the one of this exchange');
    if (Buffer.from(binding, 'base64').toString() !== this.#gs2Header)
      throw new ScramFailure('the channel binding of the client differs from its first message');
    const message = `${this.#clientFirstBare},${this.#serverFirst},${withoutProof}`;
    const signature = hmac(digest, credentials.storedKey, message);
    const proof = Buffer.from(proofText, 'base64');
    if (proof.length !== signature.length) throw new ScramFailure('the proof of the client is not valid');
    const clientKey = Buffer.from(proof.map((byte, at) => byte ^ signature[at]));
    if (!timingSafeEqual(createHash(digest).update(clientKey).digest(), credentials.storedKey))
      throw new ScramFailure('the password is wrong', ReasonCode.badUserNameOrPassword);
    return Buffer.from(`v=${hmac(digest, credentials.serverKey, message).toString('base64')}`);
  }
}

function unescaped(name: string): string {
  return name.replaceAll('=2C', ',').replaceAll('=3D', '=');
}

function hmac(digest: string, key: Buffer, text: string): Buffer {
  return createHmac(digest, key).update(text).digest();
}
