import { createHmac, randomBytes } from 'node:crypto';
import {
  type AuthSource,
  authenticateByScram,
  type ForeignCheck,
  type ScramLookup,
  type SourceContext,
  unknownKey
} from '../../../lib/adapter.ts';
import {
  type Approval,
  type AuthenticateRequest,
  BrokerError,
  type Challenge,
  InvalidInput,
  ReasonCode,
  type Verdict
} from '../../../lib/index.ts';
import { BcryptChecker } from '../hashes/bcrypt.ts';
import { readTextFile } from '../text-file.ts';
import { type FileUser, readUsers } from './users.ts';

/** Options of `passwordFile`. */
export interface PasswordFileOptions {
  /** Path of the file. */
  readonly file: string;
  /** Name of the source at the broker. Default `password-file`. */
  readonly name?: string;
  /**
   * Checks a password against a bcrypt hash, for example `compare` of the package `bcrypt`. Default: the package
   * `bcryptjs`, in a separate thread; it must be installed if the file has bcrypt hashes.
   */
  readonly bcrypt?: ForeignCheck;
}

/**
 * A source with the users of a password file. The broker reads it when it starts, and again with
 * `broker.access.reload('password-file')`.
 *
 * Each line is `name:HASH`; empty lines and lines that begin with `#` are skipped. The hash is one of scrypt, PBKDF2,
 * bcrypt, Argon2 (Node 24.7 or newer) or of mosquitto (`$6$`, `$7$`); password files of mosquitto can be used
 * unchanged. After the hash there may be credentials for SCRAM-SHA-256 and SCRAM-SHA-512. `editPasswordFile` and the
 * command `embermq passwd` write such lines.
 *
 * A file with an error is refused as a whole, with the number of the line: the broker does not start, or keeps the
 * previous users.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function passwordFile(options: PasswordFileOptions): AuthSource<never> {
  return new PasswordFile(options);
}

const OPTIONS = ['file', 'name', 'bcrypt'];

class PasswordFile implements AuthSource<never> {
  readonly name: string;
  readonly timeoutMs = 0; // a password check may be queued for longer than hookTimeout; ended connections give up their place
  readonly provides = ['authentication'] as const;
  readonly #path: string;
  readonly #bcrypt: ForeignCheck | undefined;
  /** Created by each `open`, because `close` ends it. */
  #checker = new BcryptChecker();
  readonly #key = randomBytes(32);
  #users: ReadonlyMap<string, FileUser> = new Map();
  /** The users by number, from which `#pretend` selects one. */
  #list: readonly FileUser[] = [];
  #context: SourceContext | undefined = undefined;

  constructor(options: PasswordFileOptions) {
    if (typeof options !== 'object' || options === null)
      throw new InvalidInput('OPTION_INVALID', 'password-file', "an object such as { file: './users' }", options);
    const { file, name = 'password-file', bcrypt } = options;
    const unknown = Object.keys(options).find((key) => !OPTIONS.includes(key));
    if (unknown !== undefined) throw unknownKey(unknown, OPTIONS, 'password-file');
    if (typeof file !== 'string' || file === '') throw new InvalidInput('OPTION_INVALID', 'file', 'a path', file);
    if (bcrypt !== undefined && typeof bcrypt !== 'function')
      throw new InvalidInput('OPTION_INVALID', 'bcrypt', 'a function', bcrypt);
    this.name = name;
    this.#path = file;
    this.#bcrypt = bcrypt;
  }

  async open(context: SourceContext): Promise<void> {
    this.#context = context;
    this.#checker = new BcryptChecker();
    await this.reload();
  }

  async reload(): Promise<void> {
    const text = await readTextFile(this.#path, '"embermq passwd FILE USER" creates such a file');
    const users = await readUsers(text, this.#path, () => this.#loadBcrypt());
    this.#users = users;
    this.#list = [...users.values()];
  }

  close(): Promise<void> {
    return this.#checker.close();
  }

  authenticate(request: AuthenticateRequest): Promise<Verdict> | Approval<never> | Challenge | Verdict {
    const { username, method } = request;
    if (method !== undefined) return authenticateByScram(this.name, request, this.#scram);
    if (username === undefined || this.#context === undefined) return undefined;
    return this.#verify(this.#context, this.#users.get(username), username, request);
  }

  async #verify(
    context: SourceContext,
    user: FileUser | undefined,
    username: string,
    request: AuthenticateRequest
  ): Promise<Verdict> {
    try {
      if (user === undefined) await this.#pretend(context, username, request);
      else if (await context.verifyPassword(user.hash, request, user.check)) return true;
    } catch (error) {
      if (request.signal.aborted) return false; // the connection has ended
      if (!(error instanceof BrokerError) || error.code !== 'PASSWORD_QUEUE_FULL') throw error;
      return { allow: false, reasonCode: ReasonCode.serverBusy, reasonString: error.message };
    }
    if (user === undefined) return undefined;
    return { allow: false, reasonCode: ReasonCode.badUserNameOrPassword, why: 'the password is wrong' };
  }

  /**
   * Spend the time of a wrong password, for a name that is not in the file. Hash formats take different times; the same
   * name is always checked against a hash of the same user.
   */
  async #pretend(context: SourceContext, username: string, request: AuthenticateRequest): Promise<void> {
    const number = createHmac('sha256', this.#key).update(username).digest().readUInt32BE();
    const other = this.#list[number % this.#list.length] as FileUser | undefined;
    if (other === undefined) await context.verifyPassword(undefined, request);
    else
      await context.verifyPassword('', request, async (password) => {
        await other.check(password);
        return false;
      });
  }

  readonly #scram: ScramLookup = (username, method) => {
    const user = this.#users.get(username);
    if (user === undefined) return undefined;
    const credentials = user.scram.get(method);
    return credentials === undefined ? 'none' : { credentials, isSuperuser: false };
  };

  async #loadBcrypt(): Promise<ForeignCheck> {
    if (this.#bcrypt !== undefined) return this.#bcrypt;
    await this.#checker.load();
    return (password, hash) => this.#checker.check(password, hash);
  }
}
