// Only hashes of secrets are stored, and hashing takes time: after it, the record is read again, because another call
// may have changed or added it. `changes` is incremented before a change is written, so that credentials which the
// REST interface has verified and remembers are verified again. A secret that is not right and an id that does not
// exist are checked in the same way and take the same time.

import { randomBytes } from '../base/builtins.ts';
import { InvalidInput, NotFound, StateError } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import { checkSecret } from './credential-checks.ts';
import { isPasswordHash } from './password-hash.ts';
import { type NumberedTable, RecordOrder } from './record-order.ts';
import type { Secrets } from './secrets.ts';

/** An application that may use the management interface. */
export interface Application {
  /** The id, which is the user name of its requests. */
  readonly id: string;
  /** A name for people. */
  readonly name: string;
  /** A description for people. */
  readonly description: string;
  /** False: requests of the application are refused. */
  readonly isEnabled: boolean;
  /** Time from which requests of the application are refused, in milliseconds since 1970; undefined: never. */
  readonly expiresAt: number | undefined;
}

/** An application with the hash of its secret. */
export interface ExportedApplication extends Omit<Application, 'expiresAt'> {
  /** The hash of its secret. */
  readonly hash: string;
  /** Time from which its requests are refused, in milliseconds since 1970. Absent: never. */
  readonly expiresAt?: number;
}

/** The fields of an application that can be changed. */
export interface ApplicationChange extends Partial<Omit<Application, 'id'>> {
  /**
   * The secret; the previous one is refused from then on. Default: the current one, and for a new application a random one of 48 letters
   * and digits.
   */
  readonly secret?: string | undefined;
}

/** An application to be added. */
export interface ApplicationInput extends ApplicationChange {
  /** 1 to 256 characters without `:`, which HTTP Basic credentials do not allow. */
  readonly id: string;
}

/** The persisted form of an application. */
interface StoredApplication {
  readonly hash: string;
  readonly name: string;
  readonly description: string;
  readonly isEnabled: boolean;
  readonly expiresAt?: number;
  /** See `RecordOrder`. */
  readonly number?: number;
}

/** The table that keeps the applications; see `Broker.table`. */
interface ApplicationTable extends NumberedTable<StoredApplication> {
  set(key: string, value: StoredApplication): Promise<void>;
  delete(key: string): Promise<boolean>;
}

const CHANGE_NAMES = ['name', 'description', 'isEnabled', 'expiresAt'] as const;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const SECRET_LENGTH = 48;

/**
 * The applications that may use the management interface, with an id and a secret each: `broker.applications`. Only a hash of the secret is
 * kept, so it is shown once, when the application is added.
 *
 * Methods that change applications resolve when the change is persisted, and reject as `Table.set` does.
 */
export class Applications implements Iterable<Application> {
  readonly #table: ApplicationTable;
  readonly #order: RecordOrder<StoredApplication>;
  readonly #secrets: Secrets;
  readonly #now: () => number;
  #changes = 0;

  /**
   * @internal
   * @param now wall-clock milliseconds
   */
  constructor(table: ApplicationTable, secrets: Secrets, now: () => number) {
    this.#table = table;
    this.#order = new RecordOrder(table);
    this.#secrets = secrets;
    this.#now = now;
  }

  /** Number of applications. */
  get size(): number {
    return this.#table.size;
  }

  /** Number of changes so far. Credentials that were verified before a change must be verified again. */
  get changes(): number {
    return this.#changes;
  }

  /** The application of an id. */
  get(id: string): Application | undefined {
    const stored = this.#table.get(id);
    return stored && shown(id, stored);
  }

  /** The applications, in the order in which they were added. */
  *[Symbol.iterator](): Iterator<Application> {
    for (const [id, stored] of this.#order.oldestFirst()) yield shown(id, stored);
  }

  /**
   * Add an application.
   * @returns its secret, which cannot be read later
   * @throws StateError RECORD_EXISTS; InvalidInput APPLICATION_INVALID, OPTION_UNKNOWN
   */
  async create(input: ApplicationInput): Promise<{
    /** The secret, which cannot be read later. */
    readonly secret: string;
  }> {
    checkObject(input, 'application');
    checkNames(input, ['id', 'secret', ...CHANGE_NAMES], 'an application');
    const { id, secret = randomSecret(), ...change } = input;
    checkId(id);
    checkSecret(secret, 'secret', 'APPLICATION_INVALID');
    checkChange(change);
    this.#checkFree(id);
    const hash = await this.#secrets.hash(secret);
    this.#checkFree(id);
    this.#changes++;
    const { name = id, description = '', isEnabled = true, expiresAt } = change;
    const fields = { name, description, isEnabled, expiresAt };
    await this.#table.set(id, storedOf(hash, fields, this.#order.next()));
    return { secret };
  }

  /** @deprecated Use `create`. */
  add(input: ApplicationInput): Promise<{
    /** The secret, which cannot be read later. */
    readonly secret: string;
  }> {
    return this.create(input);
  }

  /**
   * Change an application. Fields that are not given stay as they are; `expiresAt: undefined` removes the time. All fields change together, the
   * secret too, or none of them.
   * @throws NotFound RECORD_NOT_FOUND; as `create`
   */
  async update(id: string, change: ApplicationChange): Promise<void> {
    checkObject(change, 'application');
    checkNames(change, ['secret', ...CHANGE_NAMES], 'an application');
    const { secret, ...fields } = change;
    checkChange(fields);
    const hash = secret === undefined ? undefined : await this.#otherHash(id, secret);
    const stored = this.#stored(id); // it may have changed in the meantime
    this.#changes++;
    const { name = stored.name, description = stored.description, isEnabled = stored.isEnabled } = fields;
    const expiresAt = 'expiresAt' in fields ? fields.expiresAt : stored.expiresAt;
    const after = { name, description, isEnabled, expiresAt };
    await this.#table.set(id, storedOf(hash ?? stored.hash, after, stored.number));
  }

  /**
   * Give an application another secret. Nothing changes if it has this secret already.
   * @throws NotFound RECORD_NOT_FOUND; InvalidInput APPLICATION_INVALID
   */
  async setSecret(id: string, secret: string): Promise<void> {
    const hash = await this.#otherHash(id, secret);
    if (hash === undefined) return;
    this.#changes++;
    await this.#table.set(id, { ...this.#stored(id), hash });
  }

  /** The hash of another secret; undefined: the application has this one already. @throws as `setSecret` */
  async #otherHash(id: string, secret: string): Promise<string | undefined> {
    checkSecret(secret, 'secret', 'APPLICATION_INVALID');
    const isPresent = await this.#secrets.verify(this.#stored(id).hash, Buffer.from(secret), '');
    return isPresent ? undefined : this.#secrets.hash(secret);
  }

  /** The applications with the hashes of their secrets, in the order in which they were added: for `restore`. */
  *exported(): Iterable<ExportedApplication> {
    this.#order.oldestFirst(); // the store returns them in the order of their keys
    for (const [id, { number, ...stored }] of this.#order.lasting()) yield { id, ...stored };
  }

  /** Set an application as `exported` has returned it. @throws InvalidInput APPLICATION_INVALID, OPTION_UNKNOWN */
  async restore(application: ExportedApplication): Promise<void> {
    checkApplication(application);
    this.#changes++;
    const { id, hash, ...fields } = application;
    const number = this.#table.get(id)?.number ?? this.#order.next();
    await this.#table.set(id, storedOf(hash, { expiresAt: undefined, ...fields }, number));
  }

  /** Delete an application. @returns whether there was one */
  delete(id: string): Promise<boolean> {
    this.#changes++;
    return this.#table.delete(id);
  }

  /**
   * Check the credentials of a request.
   * @param address of the client; each address has its own queue of checks
   * @returns the application; undefined if the id or the secret is wrong or not a string, or the application is disabled or has expired
   * @throws BrokerError PASSWORD_QUEUE_FULL
   */
  async verify(id: string, secret: string, address = ''): Promise<Application | undefined> {
    if (typeof id !== 'string' || typeof secret !== 'string') return undefined;
    const hash = this.#table.get(id)?.hash;
    const isRight = await this.#secrets.verify(hash, Buffer.from(secret), address);
    // the application may have been replaced meanwhile
    const application = isRight && this.#table.get(id)?.hash === hash ? this.get(id) : undefined;
    if (application === undefined || !application.isEnabled) return undefined;
    return application.expiresAt === undefined || application.expiresAt > this.#now() ? application : undefined;
  }

  #stored(id: string): StoredApplication {
    const stored = this.#table.get(id);
    if (stored === undefined) throw new NotFound('RECORD_NOT_FOUND', `there is no application "${id}"`);
    return stored;
  }

  #checkFree(id: string): void {
    if (this.#table.get(id) !== undefined)
      throw new StateError(
        'RECORD_EXISTS',
        `there is an application "${id}" already; change that one, or use another id`
      );
  }
}

/** Check an application that `exported` may have returned. @throws InvalidInput APPLICATION_INVALID, OPTION_UNKNOWN */
export function checkApplication(application: ExportedApplication): void {
  checkObject(application, 'application');
  checkNames(application, ['id', 'hash', ...CHANGE_NAMES], 'an application');
  const { id, hash, ...change } = application;
  checkId(id);
  if (!isPasswordHash(hash)) {
    const text = 'hash: expected the hash of a secret'; // without the hash
    throw new InvalidInput('APPLICATION_INVALID', 'hash', 'the hash of a secret', undefined, text);
  }
  for (const field of ['name', 'description', 'isEnabled'] as const)
    if (change[field] === undefined) throw new InvalidInput('APPLICATION_INVALID', field, 'a value', undefined);
  checkChange(change);
}

/** @throws InvalidInput APPLICATION_INVALID */
function checkId(id: unknown): void {
  if (typeof id !== 'string' || id === '' || id.length > 256 || id.includes(':'))
    throw new InvalidInput('APPLICATION_INVALID', 'id', '1 to 256 characters without ":"', id);
}

function shown(id: string, { name, description, isEnabled, expiresAt }: StoredApplication): Application {
  return { id, name, description, isEnabled, expiresAt };
}

function storedOf(hash: string, fields: Omit<Application, 'id'>, number = 0): StoredApplication {
  const { name, description, isEnabled, expiresAt } = fields;
  return { hash, name, description, isEnabled, ...(expiresAt === undefined ? {} : { expiresAt }), number };
}

function checkChange({ name, description, isEnabled, expiresAt }: ApplicationChange): void {
  const fail = (field: string, expected: string, got: unknown): never => {
    throw new InvalidInput('APPLICATION_INVALID', field, expected, got);
  };
  if (name !== undefined && typeof name !== 'string') fail('name', 'a string', name);
  if (description !== undefined && typeof description !== 'string') fail('description', 'a string', description);
  if (isEnabled !== undefined && typeof isEnabled !== 'boolean') fail('isEnabled', 'true or false', isEnabled);
  if (expiresAt !== undefined && !Number.isFinite(expiresAt)) fail('expiresAt', 'milliseconds since 1970', expiresAt);
}

function randomSecret(): string {
  let secret = '';
  // bytes of 248 and above are left out, so that all characters are equally likely
  while (secret.length < SECRET_LENGTH)
    for (const byte of randomBytes(SECRET_LENGTH)) if (byte < 248) secret += LETTERS[byte % LETTERS.length];
  return secret.slice(0, SECRET_LENGTH);
}
