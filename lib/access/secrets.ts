import { createHmac, once, randomBytes, timingSafeEqual } from '../base/builtins.ts';
import { growingLru } from '../base/collections/growing-lru.ts';
import type { PasswordChecks } from './password-checks.ts';
import { hashPassword, type PasswordCheck, passwordCheckOf } from './password-hash.ts';

/** Maximum number of passwords that are remembered as correct. */
const MAX_REMEMBERED = 10_000;
/** A signal that does not abort. It is made late, because Node loads the class when it is first used. */
const never = once(() => new AbortController().signal);

/**
 * Checks passwords against their hashes. A correct password is remembered as a keyed digest in memory, so the next check of it takes some
 * microseconds.
 */
export class Secrets {
  readonly #checks: PasswordChecks;
  readonly #cost: number;
  readonly #key = once(() => randomBytes(32));
  /** Digest of the correct password, by hash. */
  readonly #right = growingLru<Buffer>(MAX_REMEMBERED);
  #dummy: Promise<string> | undefined = undefined;

  /** @param cost of new hashes, as `hashPassword` takes it */
  constructor(checks: PasswordChecks, cost: number) {
    this.#checks = checks;
    this.#cost = cost;
  }

  /** Hash a password with scrypt. @throws as `hashPassword` */
  hash(password: string | Buffer): Promise<string> {
    return hashPassword(password, this.#cost);
  }

  /**
   * Check a password.
   * @param hash undefined: the name is unknown. The answer is false, after the same time
   * @param address of the client; see `PasswordChecks`
   * @param check checks the hash; default: `passwordCheckOf`
   * @throws as `PasswordChecks.check`
   */
  async verify(
    hash: string | undefined,
    password: Buffer,
    address: string,
    signal: AbortSignal = never(),
    check?: PasswordCheck
  ): Promise<boolean> {
    const digest = createHmac('sha256', this.#key())
      .update(hash ?? '')
      .update(password)
      .digest();
    const known = hash === undefined ? undefined : this.#right.get(hash);
    if (known !== undefined && timingSafeEqual(known, digest)) return true;
    this.#dummy ??= hashPassword(randomBytes(16), this.#cost);
    const compared = hash ?? (await this.#dummy);
    const run = check !== undefined && hash !== undefined ? check : passwordCheckOf(compared);
    const isRight = (await this.#checks.check(() => run(password), address, signal)) && hash !== undefined;
    if (isRight) this.#right.set(hash, digest);
    return isRight;
  }
}
