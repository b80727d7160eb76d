// Listeners of changes are called in the turn of the change and not after its commit: a login that has lost its right must not be used while the
// store is slow. A change whose commit has failed is reported again, since the record is as before, and a login may have been made in between.

import { InvalidInput, NotFound, StateError } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import { checkSecret } from './credential-checks.ts';
import { isPasswordHash } from './password-hash.ts';
import { type NumberedTable, RecordOrder } from './record-order.ts';
import type { Secrets } from './secrets.ts';

/** A user of the management interface or the console. */
export interface ManagementUser {
  /** The name, with which it logs in. */
  readonly name: string;
  /** Free text; `administrator` gives the role of that name. */
  readonly tags: string;
  /** A viewer may read, an administrator may also change. */
  readonly role: 'viewer' | 'administrator';
}

/** A user with the hash of its password. */
export interface ExportedUser {
  /** The name. */
  readonly name: string;
  /** The hash of its password. */
  readonly hash: string;
  /** Free text; `administrator` gives the role of that name. */
  readonly tags: string;
}

/** A change of a user after which its earlier logins must not be used. */
export interface UserChange {
  /** The name of the user. */
  readonly name: string;
  /** `user`: it was created or deleted. If the password and the role have changed, `password`. */
  readonly what: 'user' | 'password' | 'role';
}

/** The persisted form of a user. */
interface StoredUser {
  readonly hash: string;
  readonly tags: string;
  /** See `RecordOrder`. */
  readonly number?: number;
}

/** The table that keeps the users; see `Broker.table`. */
interface UserTable extends NumberedTable<StoredUser> {
  set(key: string, value: StoredUser): Promise<void>;
  delete(key: string): Promise<boolean>;
}

/** The tag of administrators. */
const ADMINISTRATOR = 'administrator';
/** The user that cannot be deleted. */
const PERMANENT = 'admin';

/**
 * The users of the management interface: `broker.users`. They are not MQTT clients. Only a hash of the password is kept.
 *
 * Methods that change users resolve when the change is persisted, and reject as `Table.set` does.
 */
export class ManagementUsers implements Iterable<ManagementUser> {
  readonly #table: UserTable;
  readonly #order: RecordOrder<StoredUser>;
  readonly #secrets: Secrets;
  readonly #failed: (error: unknown, during: string) => void;
  readonly #listeners = new Set<(change: UserChange) => void>();
  #changes = 0;

  /**
   * @param failed reports errors of listeners
   * @internal
   */
  constructor(table: UserTable, secrets: Secrets, failed: (error: unknown, during: string) => void) {
    this.#table = table;
    this.#order = new RecordOrder(table);
    this.#secrets = secrets;
    this.#failed = failed;
  }

  /** Number of users. */
  get size(): number {
    return this.#table.size;
  }

  /** Number of changes so far. Passwords that were verified before a change must be verified again. */
  get changes(): number {
    return this.#changes;
  }

  /**
   * Call a function when a user was created or deleted, or its password or its role has changed: for interfaces that keep
   * logins, which end them. Other tags of a viewer are not reported, nor is a user that `restore` leaves as it was.
   *
   * The function is called at once, before the change is persisted; if that fails, it is called again, because the user is as before. Its errors are
   * reported by the event `error` of the broker.
   * @returns a function that removes it
   */
  onChange(listener: (change: UserChange) => void): () => void {
    const one = (change: UserChange) => listener(change); // the same function may be added twice
    this.#listeners.add(one);
    return () => void this.#listeners.delete(one);
  }

  /** The user of a name. */
  get(name: string): ManagementUser | undefined {
    const stored = this.#table.get(name);
    return stored && shown(name, stored);
  }

  /** The users, in the order in which they were added. */
  *[Symbol.iterator](): Iterator<ManagementUser> {
    for (const [name, stored] of this.#order.oldestFirst()) yield shown(name, stored);
  }

  /** Add a user. @throws StateError RECORD_EXISTS; InvalidInput NAME_INVALID, PASSWORD_INVALID, OPTION_INVALID */
  async create(name: string, password: string, tags = ''): Promise<void> {
    checkName(name);
    checkSecret(password, 'password', 'PASSWORD_INVALID');
    checkTags(tags);
    this.#checkFree(name);
    const hash = await this.#secrets.hash(password);
    this.#checkFree(name);
    await this.#set(name, { hash, tags, number: this.#order.next() });
  }

  /** @deprecated Use `create`. */
  add(name: string, password: string, tags = ''): Promise<void> {
    return this.create(name, password, tags);
  }

  /**
   * Change the tags of a user.
   * @throws NotFound RECORD_NOT_FOUND; InvalidInput OPTION_INVALID; StateError LAST_ADMINISTRATOR: it would become a viewer
   */
  async update(name: string, tags: string): Promise<void> {
    checkTags(tags);
    if (tags !== ADMINISTRATOR) this.#checkNotLast(name);
    await this.#set(name, { ...this.#known(name), tags });
  }

  /** Change the password of a user who knows the old one. @throws StateError PASSWORD_WRONG; NotFound RECORD_NOT_FOUND; as `create` */
  async changePassword(name: string, oldPassword: string, newPassword: string): Promise<void> {
    checkSecret(newPassword, 'password', 'PASSWORD_INVALID');
    const { hash: before } = this.#known(name);
    if (typeof oldPassword !== 'string' || !(await this.#secrets.verify(before, Buffer.from(oldPassword), '')))
      throw new StateError('PASSWORD_WRONG', `the old password of the user "${name}" is wrong`);
    const hash = await this.#secrets.hash(newPassword);
    const present = this.#known(name);
    if (present.hash !== before)
      throw new StateError('PASSWORD_WRONG', `the password of the user "${name}" was changed meanwhile`);
    await this.#set(name, { ...present, hash });
  }

  /**
   * Set the password of a user without the old one, for example because it is lost.
   * @throws NotFound RECORD_NOT_FOUND; InvalidInput PASSWORD_INVALID; as `create`
   */
  async setPassword(name: string, password: string): Promise<void> {
    checkSecret(password, 'password', 'PASSWORD_INVALID');
    this.#known(name);
    const hash = await this.#secrets.hash(password);
    await this.#set(name, { ...this.#known(name), hash });
  }

  /** The users with the hashes of their passwords, in the order in which they were added: for `restore`. */
  *exported(): Iterable<ExportedUser> {
    this.#order.oldestFirst(); // the store returns them in the order of their keys
    for (const [name, { hash, tags }] of this.#order.lasting()) yield { name, hash, tags };
  }

  /**
   * Set a user as `exported` has returned it.
   * @throws InvalidInput NAME_INVALID, RECORD_INVALID, OPTION_INVALID, OPTION_UNKNOWN; StateError LAST_ADMINISTRATOR: it would become a viewer
   */
  async restore(user: ExportedUser): Promise<void> {
    checkUser(user);
    const { name, ...stored } = user;
    if (user.tags !== ADMINISTRATOR && this.#table.get(name) !== undefined) this.#checkNotLast(name);
    await this.#set(name, { ...stored, number: this.#table.get(name)?.number ?? this.#order.next() });
  }

  /**
   * Delete a user.
   * @throws StateError ADMIN_PERMANENT for the user `admin`, LAST_ADMINISTRATOR for the last one that is an administrator; NotFound
   * RECORD_NOT_FOUND
   */
  async delete(name: string): Promise<void> {
    this.#known(name);
    if (name === PERMANENT) throw new StateError('ADMIN_PERMANENT', 'the user "admin" cannot be deleted');
    this.#checkNotLast(name);
    await this.#change(name, () => this.#table.delete(name));
  }

  /**
   * Check the credentials of a request.
   * @param address of the client; each address has its own queue of checks
   * @returns the user; undefined if the name or the password is wrong or not a string
   * @throws BrokerError PASSWORD_QUEUE_FULL
   */
  async verify(name: string, password: string, address = ''): Promise<ManagementUser | undefined> {
    if (typeof name !== 'string' || typeof password !== 'string') return undefined;
    const hash = this.#table.get(name)?.hash;
    const isRight = await this.#secrets.verify(hash, Buffer.from(password), address);
    // the password may have been changed meanwhile
    return isRight && this.#table.get(name)?.hash === hash ? this.get(name) : undefined;
  }

  #set(name: string, user: StoredUser): Promise<void> {
    return this.#change(name, () => this.#table.set(name, user));
  }

  /** @param write changes the user in the table at once, and resolves when this is persisted */
  async #change(name: string, write: () => Promise<unknown>): Promise<void> {
    const before = this.#table.get(name);
    const written = write();
    const after = this.#table.get(name);
    this.#changed(name, before, after);
    try {
      await written;
    } catch (error) {
      this.#changed(name, after, this.#table.get(name));
      throw error;
    }
  }

  #changed(name: string, before: StoredUser | undefined, after: StoredUser | undefined): void {
    this.#changes++;
    const what = changeOf(name, before, after);
    if (what === undefined) return;
    for (const listener of this.#listeners)
      try {
        listener({ name, what });
      } catch (error) {
        this.#failed(error, 'reporting the change of a management user');
      }
  }

  #known(name: string): StoredUser {
    const stored = this.#table.get(name);
    if (stored === undefined) throw new NotFound('RECORD_NOT_FOUND', `there is no user "${name}"`);
    return stored;
  }

  /** Check that a user is not the only administrator. @throws StateError LAST_ADMINISTRATOR; NotFound RECORD_NOT_FOUND */
  #checkNotLast(name: string): void {
    if (this.#known(name).tags !== ADMINISTRATOR) return;
    for (const [other, { tags }] of this.#table) if (other !== name && tags === ADMINISTRATOR) return;
    const message = `the user "${name}" is the last administrator; make another user an administrator first`;
    throw new StateError('LAST_ADMINISTRATOR', message);
  }

  #checkFree(name: string): void {
    if (this.#table.get(name) !== undefined)
      throw new StateError('RECORD_EXISTS', `there is a user "${name}" already; change that one, or use another name`);
  }
}

/** Check a user that `exported` may have returned. @throws InvalidInput NAME_INVALID, RECORD_INVALID, OPTION_INVALID, OPTION_UNKNOWN */
export function checkUser(user: ExportedUser): void {
  checkObject(user, 'user');
  checkNames(user, ['name', 'hash', 'tags'], 'a user');
  checkName(user.name);
  checkTags(user.tags);
  if (isPasswordHash(user.hash)) return;
  const text = 'hash: expected the hash of a password'; // without the hash
  throw new InvalidInput('RECORD_INVALID', 'hash', 'the hash of a password', undefined, text);
}

/** @throws InvalidInput NAME_INVALID */
function checkName(name: unknown): void {
  if (typeof name !== 'string' || name === '')
    throw new InvalidInput('NAME_INVALID', 'user name', 'a string that is not empty', name);
}

/** @returns undefined if logins of the user stay valid */
function changeOf(
  name: string,
  before: StoredUser | undefined,
  after: StoredUser | undefined
): UserChange['what'] | undefined {
  if (before === undefined || after === undefined) return before === after ? undefined : 'user';
  if (before.hash !== after.hash) return 'password';
  return shown(name, before).role === shown(name, after).role ? undefined : 'role';
}

function shown(name: string, { tags }: StoredUser): ManagementUser {
  return { name, tags, role: tags === ADMINISTRATOR ? ADMINISTRATOR : 'viewer' };
}

function checkTags(tags: string): void {
  if (typeof tags !== 'string') throw new InvalidInput('OPTION_INVALID', 'tags', 'a string', tags);
}
