// The salted SHA-256 is the form of the documented interface and is kept for it; SCRAM credentials are made beside it
// from the same password and cannot be made later. Making them takes time, so a record is looked up again afterwards.
// The password of a name that does not exist is compared with a record that nothing matches, so the time does not
// tell which names exist. Deleting a record disconnects no client.

import { hash, randomBytes, timingSafeEqual } from '../base/builtins.ts';
import { InvalidInput, NotFound, StateError } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import { CLIENT_NAME, checkSecret, isClientName } from './credential-checks.ts';
import { type ListPart, type NumberedTable, RecordOrder } from './record-order.ts';
import { formatScram, parseScram, type ScramCredentials, type ScramMethod, scramCredentialsOf } from './scram.ts';

/** The exported form of a credential. A weak password can be guessed from its hashes. */
export interface ExportedCredential {
  /** The client id or the user name. */
  readonly name: string;
  /** Hexadecimal, 4 bytes. */
  readonly salt: string;
  /** Hexadecimal SHA-256 of salt and password. */
  readonly hash: string;
  /** The client is exempt from access control. Absent: it is not. */
  readonly isSuperuser?: true;
  /** SCRAM credentials: `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`. */
  readonly scram: readonly string[];
}

/** The persisted form of a record. */
interface StoredCredential extends Omit<ExportedCredential, 'name'> {
  /** See `RecordOrder`. */
  readonly number: number;
}

/** The table that keeps the records; see `Broker.table`. */
interface RecordTable extends NumberedTable<StoredCredential> {
  set(key: string, value: StoredCredential): Promise<void>;
  delete(key: string): Promise<boolean>;
}

/** A credential, as lists and look-ups return it. */
export interface CredentialRecord {
  /** The client id or the user name. */
  readonly name: string;
  /**
   * SHA-256 of salt and password in hexadecimal, without the salt. This is the form of the documented interface; it resists guessing less
   * than the hashes of a password file.
   */
  readonly passwordHash: string;
  /** The client is exempt from access control. */
  readonly isSuperuser: boolean;
}

/** Options of a credential record. */
export interface CredentialOptions {
  /** Access control does not apply to the client. Default false. */
  readonly isSuperuser?: boolean;
}

/**
 * Names with passwords: client ids, user names, or logins of the interface `auth_user`. Changes apply from the next CONNECT.
 *
 * All methods that change records resolve when the change is persisted, and reject as `Table.set` does.
 */
export class CredentialRecords implements Iterable<CredentialRecord> {
  readonly #table: RecordTable;
  readonly #kind: string;
  readonly #pause: () => Promise<void>;
  #added: (() => void) | undefined;
  readonly #order: RecordOrder<StoredCredential>;

  /**
   * @internal
   * @param kind what the names are, for error messages: `client id`
   * @param pause resolves in the next turn
   * @param added called after the first record was added
   */
  constructor(table: RecordTable, kind: string, pause: () => Promise<void>, added?: () => void) {
    this.#table = table;
    this.#order = new RecordOrder(table);
    this.#kind = kind;
    this.#pause = pause;
    this.#added = added;
  }

  /** Number of records. */
  get size(): number {
    return this.#table.size;
  }

  /** The record of a name. */
  get(name: string): CredentialRecord | undefined {
    const stored = this.#table.get(name);
    return stored && shown(name, stored);
  }

  /** The records, the newest first. */
  [Symbol.iterator](): Iterator<CredentialRecord> {
    const all = [...this.#order.oldestFirst()].reverse();
    return all.map(([name, stored]) => shown(name, stored))[Symbol.iterator]();
  }

  /** A part of the list of records, the oldest first. A long list is walked in slices. */
  list(part: ListPart): Promise<CredentialRecord[]> {
    return this.#order.part(part, this.#pause, shown);
  }

  /** Sort the records that were read from the store. @internal */
  restored(): void {
    this.#order.oldestFirst();
  }

  /** Add a record. @throws StateError RECORD_EXISTS; InvalidInput NAME_INVALID, PASSWORD_INVALID, OPTION_INVALID, OPTION_UNKNOWN */
  async create(name: string, password: string, options: CredentialOptions = {}): Promise<void> {
    this.#check(name, password, options);
    if (this.#table.get(name) !== undefined) throw this.#exists(name);
    const scram = await scramOf(password);
    if (this.#table.get(name) !== undefined) throw this.#exists(name);
    await this.#put(name, password, options, scram, this.#order.next());
    this.#added?.();
    this.#added = undefined;
  }

  /** @deprecated Use `create`. */
  add(name: string, password: string, options: CredentialOptions = {}): Promise<void> {
    return this.create(name, password, options);
  }

  /** Change the password of a record. `isSuperuser` stays as it is if it is not given. @throws NotFound RECORD_NOT_FOUND; as `create` */
  async update(name: string, password: string, options: CredentialOptions = {}): Promise<void> {
    this.#check(name, password, options);
    if (this.#table.get(name) === undefined) throw this.#unknown(name);
    const scram = await scramOf(password);
    const stored = this.#table.get(name);
    if (stored === undefined) throw this.#unknown(name);
    const { isSuperuser = stored.isSuperuser === true } = options;
    await this.#put(name, password, { isSuperuser }, scram, stored.number);
  }

  /**
   * Make the clients of a record superusers, or revoke that, with the current password. @throws NotFound RECORD_NOT_FOUND; as `Table.set`
   */
  async setSuperuser(name: string, isSuperuser: boolean): Promise<void> {
    const stored = this.#table.get(name);
    if (stored === undefined) throw this.#unknown(name);
    if (isSuperuser === (stored.isSuperuser === true)) return;
    const { isSuperuser: _, ...kept } = stored;
    await this.#table.set(name, { ...kept, ...(isSuperuser && { isSuperuser }) });
  }

  /** The records as they are stored, with salted hashes, the oldest first: for `restore`. */
  *exported(): Iterable<ExportedCredential> {
    for (const [name, { salt, hash, isSuperuser, scram }] of this.#order.lasting()) {
      const superuser = isSuperuser === true ? { isSuperuser } : {};
      yield { name, salt, hash, ...superuser, scram };
    }
  }

  /** Set a record as `exported` has returned it. @throws InvalidInput NAME_INVALID, RECORD_INVALID, OPTION_UNKNOWN */
  async restore(record: ExportedCredential): Promise<void> {
    checkCredential(record);
    const { name, ...stored } = record;
    await this.#table.set(name, { ...stored, number: this.#table.get(name)?.number ?? this.#order.next() });
    this.#added?.();
    this.#added = undefined;
  }

  /** Delete a record. Connected clients stay connected. @returns whether there was one */
  delete(name: string): Promise<boolean> {
    return this.#table.delete(name);
  }

  /**
   * Check the password of a client.
   * @internal
   * @returns undefined if there is no record of the name
   */
  verify(
    name: string,
    password: Buffer | undefined
  ): { readonly isRight: boolean; readonly isSuperuser: boolean } | undefined {
    if (this.#table.size === 0) return undefined;
    const stored = this.#table.get(name) ?? UNKNOWN;
    const isRight = timingSafeEqual(Buffer.from(digestOf(stored.salt, password ?? '')), Buffer.from(stored.hash));
    return stored === UNKNOWN ? undefined : { isRight, isSuperuser: isRight && stored.isSuperuser === true };
  }

  /**
   * The SCRAM credentials of a name.
   * @internal
   */
  scram(
    name: string,
    method: ScramMethod
  ): { readonly credentials: ScramCredentials; readonly isSuperuser: boolean } | undefined {
    const stored = this.#table.get(name);
    const text = stored?.scram.find((one) => one.startsWith(`${method}$`));
    if (stored === undefined || text === undefined) return undefined;
    return { credentials: parseScram(text), isSuperuser: stored.isSuperuser === true };
  }

  #put(name: string, password: string, options: CredentialOptions, scram: string[], number: number): Promise<void> {
    const salt = randomBytes(4).toString('hex');
    const digest = digestOf(salt, password);
    const superuser = options.isSuperuser === true ? ({ isSuperuser: true } as const) : {};
    return this.#table.set(name, { salt, hash: digest, ...superuser, scram, number });
  }

  #check(name: string, password: string, options: CredentialOptions): void {
    if (!isClientName(name)) throw new InvalidInput('NAME_INVALID', this.#kind, CLIENT_NAME, name);
    checkSecret(password, 'password', 'PASSWORD_INVALID');
    checkObject(options, 'options');
    checkNames(options, ['isSuperuser'], 'a credential record');
    const { isSuperuser } = options;
    if (isSuperuser !== undefined && typeof isSuperuser !== 'boolean')
      throw new InvalidInput('OPTION_INVALID', 'isSuperuser', 'true or false', isSuperuser);
  }

  #exists(name: string): StateError {
    return new StateError('RECORD_EXISTS', `there is a record of the ${this.#kind} "${name}" already; change that one`);
  }

  #unknown(name: string): NotFound {
    return new NotFound('RECORD_NOT_FOUND', `there is no record of the ${this.#kind} "${name}"`);
  }
}

/** Check a record that `exported` may have returned. @throws InvalidInput NAME_INVALID, RECORD_INVALID, OPTION_UNKNOWN */
export function checkCredential(record: ExportedCredential): void {
  checkObject(record, 'record');
  checkNames(record, ['name', 'salt', 'hash', 'isSuperuser', 'scram'], 'a credential record');
  const { name, salt, hash, isSuperuser, scram } = record;
  if (!isClientName(name)) throw new InvalidInput('NAME_INVALID', 'name', CLIENT_NAME, name);
  const fail = (field: string, expected: string): never => {
    const text = `${field}: expected ${expected}`; // without the hash
    throw new InvalidInput('RECORD_INVALID', field, expected, undefined, text);
  };
  if (typeof salt !== 'string' || !/^[\da-f]{8}$/.test(salt)) fail('salt', '4 bytes in hexadecimal');
  if (typeof hash !== 'string' || !/^[\da-f]{64}$/.test(hash)) fail('hash', 'SHA-256 in hexadecimal');
  if (isSuperuser !== undefined && isSuperuser !== true) fail('isSuperuser', 'true or undefined');
  if (!Array.isArray(scram) || !scram.every(isScram)) fail('scram', 'a list of SCRAM credentials');
}

function isScram(text: unknown): boolean {
  try {
    return typeof text === 'string' && parseScram(text) !== undefined;
  } catch {
    return false;
  }
}

/** Takes the place of a record that does not exist, so that the check takes the same time. */
const UNKNOWN: StoredCredential = { salt: '00000000', hash: '00'.repeat(32), scram: [], number: 0 };

function shown(name: string, { hash, isSuperuser }: StoredCredential): CredentialRecord {
  return { name, passwordHash: hash, isSuperuser: isSuperuser === true };
}

/** Hexadecimal. `createHash` takes four times as long as `hash`. */
function digestOf(salt: string, password: string | Buffer): string {
  return hash(
    'sha256',
    Buffer.concat([Buffer.from(salt, 'hex'), typeof password === 'string' ? Buffer.from(password) : password])
  );
}

async function scramOf(password: string): Promise<string[]> {
  return (await scramCredentialsOf(password)).map(formatScram);
}
