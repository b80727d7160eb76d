import { createHmac, randomBytes } from 'node:crypto';
import type { ForeignCheck, SourceContext } from '../../../lib/adapter.ts';
import { type AuthenticateRequest, BrokerError, ReasonCode, type Refusal } from '../../../lib/index.ts';
import { BcryptChecker } from '../hashes/bcrypt.ts';
import type { DatabaseRow } from './lookup.ts';
import type { PasswordFormat, StoredPassword } from './password-format.ts';

/** Maximum number of kinds of hashes of which one is kept, to be checked for unknown names. */
const MAX_KINDS = 16;

/** Checks passwords against those of rows. Once one has been read, the time does not reveal whether there was a row. */
export class PasswordVerifier {
  readonly #format: PasswordFormat;
  readonly #context: SourceContext;
  readonly #bcrypt: ForeignCheck;
  readonly #checker = new BcryptChecker();
  readonly #ownBcrypt: ForeignCheck | undefined;
  readonly #report: (error: unknown) => void;
  readonly #key = randomBytes(32);
  /** A stored password of each kind that was read. */
  readonly #samples = new Map<string, StoredPassword>();

  /** @param report reports that a stored password cannot be read */
  constructor(
    format: PasswordFormat,
    bcrypt: ForeignCheck | undefined,
    context: SourceContext,
    report: (error: unknown) => void
  ) {
    this.#format = format;
    this.#context = context;
    this.#report = report;
    this.#ownBcrypt = bcrypt;
    this.#bcrypt = bcrypt ?? ((password, hash) => this.#check(password, hash));
  }

  /** @throws BrokerError PACKAGE_MISSING if bcryptjs is needed and missing */
  async open(): Promise<void> {
    if (this.#format.needsBcrypt && this.#ownBcrypt === undefined) await this.#checker.load();
  }

  close(): Promise<void> {
    return this.#checker.close();
  }

  /**
   * Check the password of a request.
   * @param row undefined: the name is unknown, and the answer is false, as for a stored password that cannot be read
   * @returns a refusal if too many checks are waiting
   * @throws BrokerError PASSWORD_HASH_INVALID if bcryptjs cannot check the hash; PACKAGE_MISSING; SOURCE_CLOSED; the reason of the signal
   */
  async verify(row: DatabaseRow | undefined, request: AuthenticateRequest): Promise<boolean | Refusal> {
    const stored = row && this.#read(row);
    if (stored !== undefined && this.#samples.size < MAX_KINDS && !this.#samples.has(stored.kind))
      this.#samples.set(stored.kind, stored);
    try {
      if (stored !== undefined && request.password !== undefined)
        return await this.#context.verifyPassword(stored.id, request, stored.check);
      await this.#pretend(request);
      return false;
    } catch (error) {
      if (!(error instanceof BrokerError) || error.code !== 'PASSWORD_QUEUE_FULL') throw error;
      return { allow: false, reasonCode: ReasonCode.serverBusy, reasonString: error.message };
    }
  }

  #read(row: DatabaseRow): StoredPassword | undefined {
    try {
      return this.#format.read(row, this.#bcrypt);
    } catch (error) {
      this.#report(error);
      return undefined;
    }
  }

  /** Spend the time of a wrong password. The same name is always checked against a hash of the same kind. */
  async #pretend(request: AuthenticateRequest): Promise<void> {
    const samples = [...this.#samples.values()];
    const { username = '', client } = request;
    const number = createHmac('sha256', this.#key).update(username).update(client.clientId).digest().readUInt32BE();
    const sample = this.#format.dummy ?? samples[number % samples.length];
    if (sample === undefined) await this.#context.verifyPassword(undefined, request);
    else
      await this.#context.verifyPassword('', request, async (password) => {
        await sample.check(password);
        return false;
      });
  }

  async #check(password: Buffer, hash: string): Promise<boolean> {
    await this.#checker.load();
    return this.#checker.check(password, hash);
  }
}
