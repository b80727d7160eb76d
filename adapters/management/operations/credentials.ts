// A row for each operation; client ids and user names share theirs through `CredentialKind`, which has the
// differences. Answers show hashes, never passwords; a record that is sent back with its hash leaves the password as
// it is. Entries of a batch run one after the other, because records are listed in the order in which their passwords
// were hashed. Misspelt words are those of the documented products.

import type { Static, TString } from 'typebox';
import type { Broker, CredentialRecord, CredentialRecords } from '../../../lib/index.ts';
import type { Fault } from '../../rest/index.ts';
import type { OriginalAnswer, PageRequest } from '../../rest/kit/index.ts';
import { componentOf, flag, listOf, objectOf, optional, recordOf, text } from '../../rest/kit/index.ts';
import { checkEntry, oneOrMany } from '../input.ts';
import { Listing } from '../listing.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import { checkDeleted, checkName, checkNotEmpty, entryWord, errorTerm, lookedUp, resultOf } from '../records.ts';
import { LATER } from '../revisions.ts';

/** A batch whose entries are all refused yields to other work after this many entries. */
const ENTRIES_AT_ONCE = 100;

const PASSWORD = text('The password, in clear');
const IS_SUPERUSER = flag('True if access control does not apply to the client');

const HASH = text('SHA-256 of salt and password, in hexadecimal');
const RESULTS = recordOf(text(), 'For each name `ok`, or the fault: `{error,existed}`');

const HASH_EXAMPLE = 'ef2868be11bf717699bb766af0621e5ae6aac416df8353d690861f3d2d1e3962';

/** Records of names with passwords. */
interface CredentialKind {
  /** The name of the field with the names. */
  readonly field: 'clientid' | 'username';
  /** The noun for the names, for people. */
  readonly subject: string;
  /** The name that the examples use. */
  readonly known: string;
  /**
   * The words of the original products for a name that exists or does not exist; those of client ids are misspelt
   * there.
   */
  readonly originalWords: { readonly existed: string; readonly unknown: string };
  /** The schema of additional fields that are shown when a record is looked up. */
  readonly alsoShown?: { readonly clientid: TString };
  /** See `Operation.named`. */
  readonly named?: Readonly<Record<string, string>>;
  /** The record as shown when it is looked up. */
  shown(record: CredentialRecord): Record<string, string>;
  records(broker: Broker): CredentialRecords;
}

const CLIENT_IDS: CredentialKind = {
  field: 'clientid',
  subject: 'client id',
  known: 'sensor-1',
  originalWords: { existed: 'exitsted', unknown: 'noexitsted' },
  shown: ({ name, passwordHash }) => ({ clientid: name, password: passwordHash }),
  records: (broker) => broker.access.clientIds
};

const USERNAMES: CredentialKind = {
  field: 'username',
  subject: 'user name',
  known: 'sensors',
  originalWords: { existed: 'existed', unknown: 'noexisted' },
  alsoShown: { clientid: text('The user name again') },
  named: { clientid: 'username' },
  // the documentation names it `username` in a table and `clientid` in an example
  shown: ({ name, passwordHash }) => ({ username: name, clientid: name, password: passwordHash }),
  records: (broker) => broker.access.usernames
};

/** The problem of a new record, in the words of the original products; undefined: the record itself is valid. */
function wordOf({ kind, original }: Fault): 'existed' | 'login' | 'password' | 'is_superuser' | undefined {
  if (kind === 'exists') return 'existed';
  if (kind !== 'missingParameter' && kind !== 'wrongParameter' && kind !== 'emptyCredentials') return undefined;
  return original === 'password' || original === 'is_superuser' ? original : 'login';
}

function originalMessage(message: string | undefined): OriginalAnswer | undefined {
  return message === undefined ? undefined : { message };
}

/** True if a password is the hash with which the record is looked up: a client that sends the record back does not change the password. */
function isAsShown(
  { isOriginal }: Context,
  records: CredentialRecords,
  { name, password }: { readonly name: string; readonly password: string }
): boolean {
  return !isOriginal && records.get(name)?.passwordHash === password;
}

function shownOf(kind: CredentialKind, record: CredentialRecord | undefined): Record<string, string> | undefined {
  return record && kind.shown(record);
}

async function update(
  context: Context,
  records: CredentialRecords,
  { name, password }: { readonly name: string; readonly password: string }
): Promise<void> {
  checkNotEmpty({ password });
  if (!isAsShown(context, records, { name, password })) await records.update(name, password);
}

/** The oldest first: a new record does not move existing ones to another page. */
async function pageOf(
  records: CredentialRecords,
  page: PageRequest,
  shape: (record: CredentialRecord) => object
): Promise<Listing<CredentialRecord>> {
  return new Listing(await records.list(page), shape, { count: records.size });
}

/** The examples of the operations of a kind. */
function examplesOf({ field, known, shown }: CredentialKind) {
  return {
    list: { data: [{ [field]: known }] },
    lookup: {
      params: { [field]: known },
      data: shown({ name: known, passwordHash: HASH_EXAMPLE, isSuperuser: false })
    },
    add: {
      body: [
        { [field]: 'new', password: 'password of the new one' },
        { [field]: known, password: 'another password' }
      ],
      data: { new: 'ok', [known]: '{error,existed}' }
    },
    update: { params: { [field]: known }, body: { password: 'another password' } },
    remove: { params: { [field]: known } }
  };
}

function credentialOperations(kind: CredentialKind): Operation[] {
  const { field, subject, originalWords, records } = kind;
  const examples = examplesOf(kind);
  const list = `/auth_${field}` as const;
  const single = `/auth_${field}/:${field}` as const;
  const name = { [field]: text(`The ${subject}`) };
  const record = objectOf({ ...name, password: PASSWORD });
  const shown = objectOf({ ...name, ...kind.alsoShown, password: HASH });
  const described = (one: string) => `record of the ${subject} "${one}"`;
  const add = async (context: Context, given: Record<string, string>) => {
    checkNotEmpty({ [field]: given[field], password: given.password });
    checkName(context, field, given[field]);
    await records(context.broker).create(given[field], given.password);
  };
  return [
    operation({
      name: `list_${field}`,
      method: 'GET',
      path: list,
      descr: `List available ${field} in the cluster`,
      example: examples.list,
      paged: 'max',
      data: listOf(objectOf(name)),
      run: ({ broker, page }) => pageOf(records(broker), page, ({ name }) => ({ [field]: name }))
    }),
    operation({
      name: `lookup_${field}`,
      method: 'GET',
      path: single,
      descr: `Lookup ${field} in the cluster`,
      isForAdministrators: true,
      example: examples.lookup,
      data: shown,
      run: (context, { params: { [field]: one } }) =>
        lookedUp(context, shownOf(kind, records(context.broker).get(one)), described(one))
    }),
    operation({
      name: `add_${field}`,
      method: 'POST',
      path: list,
      descr: `Add ${field} in the cluster`,
      example: examples.add,
      body: oneOrMany(record),
      data: optional(RESULTS),
      originalAnswer: (fault, { printsTerms }) => {
        const word = wordOf(fault);
        if (word === undefined || printsTerms) return originalMessage(word && errorTerm(word));
        return { message: word === 'existed' ? originalWords.existed : word === 'login' ? field : word };
      },
      run: (context, { body }) =>
        Array.isArray(body)
          ? addEach(context, body, field, (entry) => add(context, checkEntry(record, entry, context.isOriginal)))
          : add(context, body as Record<string, string>)
    }),
    operation({
      name: `update_${field}`,
      method: 'PUT',
      path: single,
      descr: `Update ${field} in the cluster`,
      example: examples.update,
      body: objectOf({ password: PASSWORD }),
      shown,
      named: kind.named ?? {},
      originalAnswer: (fault) =>
        originalMessage(fault.kind === 'unknownRecord' ? originalWords.unknown : wordOf(fault) && 'password'),
      run: (context, { params: { [field]: name }, body: { password } }) =>
        update(context, records(context.broker), { name, password })
    }),
    operation({
      name: `delete_${field}`,
      method: 'DELETE',
      path: single,
      descr: `Delete ${field} in the cluster`,
      example: examples.remove,
      run: async (context, { params: { [field]: one } }) =>
        checkDeleted(context, await records(context.broker).delete(one), described(one))
    })
  ];
}

/**
 * Add the records of a batch.
 * @returns the result for each name; for a name that occurs several times, the first result, which describes the stored
 * record
 */
async function addEach(
  context: Context,
  entries: readonly unknown[],
  field: string,
  add: (entry: unknown) => Promise<void>
): Promise<Record<string, string>> {
  const results = new Map<string, string>();
  const wordOfEntry = entryWord(context, wordOf, [field]);
  // sequentially: records are listed in the order in which their passwords were hashed
  for (const [at, entry] of entries.entries()) {
    if (at > 0 && at % ENTRIES_AT_ONCE === 0) await context.broker.directory.nextSlice();
    const name = (entry as Record<string, unknown> | null)?.[field];
    // there is no better key for a name that is not a string
    const key = typeof name === 'string' ? name : '';
    const result = await resultOf(() => add(entry), wordOfEntry);
    if (!results.has(key)) results.set(key, result);
  }
  return Object.fromEntries(results);
}

const LOGIN = objectOf({
  login: text('The user name'),
  password: PASSWORD,
  is_superuser: IS_SUPERUSER
});
const STORED_LOGIN = componentOf('Login', 'A user name with the hash of its password', {
  ...LOGIN.properties,
  password: HASH
});
const OPERATOR = { login: 'operator', password: HASH_EXAMPLE, is_superuser: false };
type Login = Static<typeof LOGIN>;

async function addLogin(context: Context, { login, password, is_superuser: isSuperuser }: Login): Promise<void> {
  checkNotEmpty({ login, password });
  checkName(context, 'login', login);
  await context.broker.access.logins.create(login, password, { isSuperuser });
}

function loginOf({ name, passwordHash, isSuperuser }: CredentialRecord): Login {
  return { login: name, password: passwordHash, is_superuser: isSuperuser };
}

const namedLogin = (login: string) => `record of the login "${login}"`;

const LOGINS = [
  operation({
    name: 'list_emqx_user',
    method: 'GET',
    path: '/auth_user',
    descr: 'List available mnesia in the cluster',
    isForAdministrators: true,
    example: { data: [OPERATOR] },
    in: LATER,
    paged: 'max',
    data: listOf(STORED_LOGIN),
    run: ({ broker, page }) => pageOf(broker.access.logins, page, loginOf)
  }),
  operation({
    name: 'lookup_emqx_user',
    method: 'GET',
    path: '/auth_user/:login',
    descr: 'Lookup mnesia in the cluster',
    isForAdministrators: true,
    example: { params: { login: 'operator' }, data: OPERATOR },
    in: LATER,
    data: STORED_LOGIN,
    run: (context, { params: { login } }) => {
      const found = context.broker.access.logins.get(login);
      return lookedUp(context, found && loginOf(found), namedLogin(login));
    }
  }),
  operation({
    name: 'add_emqx_user',
    method: 'POST',
    path: '/auth_user',
    descr: 'Add mnesia in the cluster',
    example: {
      body: [{ login: 'new', password: 'password of the new one', is_superuser: true }],
      data: { new: 'ok' }
    },
    in: LATER,
    body: oneOrMany(LOGIN),
    data: RESULTS,
    originalAnswer: (fault) => {
      const word = wordOf(fault);
      return originalMessage(word && errorTerm(word));
    },
    run: async (context, { body }) => {
      // the original products answer a single record as a list of one
      if (Array.isArray(body) || context.isOriginal)
        return addEach(context, [body].flat(), 'login', (entry) =>
          addLogin(context, checkEntry<Login>(LOGIN, entry, context.isOriginal))
        );
      await addLogin(context, body as Login);
      return { [(body as Login).login]: 'ok' };
    }
  }),
  operation({
    name: 'update_emqx_user',
    method: 'PUT',
    path: '/auth_user/:login',
    descr: 'Update mnesia in the cluster',
    example: { params: { login: 'operator' }, body: { password: 'another password', is_superuser: true } },
    in: LATER,
    body: objectOf({ password: PASSWORD, is_superuser: IS_SUPERUSER }),
    shown: STORED_LOGIN,
    originalAnswer: (fault) => originalMessage(fault.kind === 'unknownRecord' ? 'noexisted' : wordOf(fault)),
    run: (context, { params: { login }, body: { password, is_superuser: isSuperuser } }) => {
      checkNotEmpty({ password });
      const { logins } = context.broker.access;
      return isAsShown(context, logins, { name: login, password })
        ? logins.setSuperuser(login, isSuperuser)
        : logins.update(login, password, { isSuperuser });
    }
  }),
  operation({
    name: 'delete_emqx_user',
    method: 'DELETE',
    path: '/auth_user/:login',
    descr: 'Delete mnesia in the cluster',
    example: { params: { login: 'operator' } },
    in: LATER,
    run: async (context, { params: { login } }) =>
      checkDeleted(context, await context.broker.access.logins.delete(login), namedLogin(login))
  })
];

/** The records of client ids, user names and logins that authenticate MQTT clients. */
export const CREDENTIALS: readonly Operation[] = [
  ...credentialOperations(CLIENT_IDS),
  ...credentialOperations(USERNAMES),
  ...LOGINS
];
