// A row for each option; what depends on several options is checked in `readLdapOptions`. Templates are compiled
// while they are read and accept only the placeholders that make sense there. Errors contain no password. The type
// `LdapOptions` repeats the rows with documentation for apps: a new row needs a member there.

import { type FieldValues, field, readOptions } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { checkTls, OUTGOING_TLS_OPTIONS, type OutgoingTls } from '../../outgoing/index.ts';
import { type LimitOptions, limitRows } from '../outgoing/limits.ts';
import { Template } from '../outgoing/template.ts';

/** Attributes of an entry with the topic filters that the client may use. */
export interface LdapAclAttributes {
  /** Topics to publish to. Default `mqttPublishTopic`. */
  publish?: string;
  /** Topics to subscribe to. Default `mqttSubscriptionTopic`. */
  subscribe?: string;
  /** Topics for both. Default `mqttPubSubTopic`. */
  all?: string;
}

/**
 * Options of `ldap`. Either `baseDn` or `userDn` is needed. The server fails if it cannot be reached, takes too long,
 * or refuses a search or `bindDn`. By default at most 8 requests run concurrently, each on a separate connection.
 */
export interface LdapOptions extends OutgoingTls, LimitOptions {
  /** The server: `ldaps://host`, `ldap://host`, with a port unless it is 636 or 389. */
  url: string | URL;
  /** Start TLS on a connection to `ldap://` before anything else is sent. Default false. */
  startTls?: boolean;
  /** The name under which the broker searches. Default: none, which means a search without authentication. */
  bindDn?: string;
  /** The password of `bindDn`. */
  bindPassword?: string;
  /** The base of the search for the entry of a client. */
  baseDn?: string;
  /** The filter of this search; `%u` stands for the user name and `%c` for the client id. Default `(uid=%u)`. */
  filter?: string;
  /** The depth of the search: all entries below `baseDn` (`sub`), or those directly below (`one`). Default `sub`. */
  scope?: 'sub' | 'one';
  /** The name of the entry instead of a search, with `%u` and `%c`: `uid=%u,ou=people,dc=example,dc=com`. */
  userDn?: string;
  /**
   * The check of the password: `bind` as the client, or `compare` with the attribute `passwordAttribute`, which
   * `bindDn` must be allowed to read. Default `bind`.
   */
  method?: 'bind' | 'compare';
  /** The attribute with the password for `compare`. Default `userPassword`. */
  passwordAttribute?: string;
  /** Clients whose entry has the value `FALSE` here are refused. Default: `isEnabled`, with `userDn` none. */
  enabledAttribute?: string;
  /** The attribute that becomes the user name of the client, for example `uid`. Default: the user name of CONNECT is kept. */
  usernameAttribute?: string;
  /** Clients whose entry has the value `TRUE` here are exempt from access control. Default: none. */
  superuserAttribute?: string;
  /**
   * Clients for whom this filter finds an entry are exempt from access control. `%d` stands for the name of the client's entry, as in
   * `(&(cn=admins)(member=%d))`. Default: none.
   */
  superuserFilter?: string;
  /** The base of the search with `superuserFilter`. Default `baseDn`. */
  superuserBaseDn?: string;
  /**
   * Attributes with access rules; `true` takes the default names. They are read when the broker authorizes a client.
   * Everything that they do not allow is denied; a client without an entry, or whose entry has none of them, is left to
   * the next source. `bindDn`, or without it everyone, must be allowed to read them. With `usernameAttribute`, `filter`
   * or `userDn` must find the entry by this name as well. Default false.
   */
  acl?: boolean | LdapAclAttributes;
  /**
   * Time for which answers about logins, and with `acl` the entries, are cached. After a change, the previous password
   * is accepted for this time, and a withdrawn right for this time and `aclCacheTtl`. Default 0: no cache.
   */
  cacheMs?: number | string;
  /** Name of the source, if there are several. Default `ldap`. */
  name?: string;
}

/** Names of the attributes with access rules. */
export type AclNames = FieldValues<typeof ACL_OPTIONS>;

const ATTRIBUTE = /^[A-Za-z][\w;.-]*$|^\d+(\.\d+)*$/;

const ACL_OPTIONS = {
  publish: attribute('mqttPublishTopic', 'Topics to publish to.'),
  subscribe: attribute('mqttSubscriptionTopic', 'Topics to subscribe to.'),
  all: attribute('mqttPubSubTopic', 'Topics for both.')
};

/** The options of `ldap`. */
export const LDAP_OPTIONS = {
  ...OUTGOING_TLS_OPTIONS,
  ...limitRows(8),
  url: field(
    'object',
    undefined as URL | undefined,
    'The server: `ldaps://host` or `ldap://host`, with a port unless it is 636 or 389.',
    { check: checkUrl }
  ),
  startTls: field('boolean', false, 'Start TLS on a connection to `ldap://` before anything else is sent.'),
  bindDn: field(
    'string',
    undefined as string | undefined,
    'Name under which the broker searches; without it, the search is not authenticated.',
    { check: checkFilled }
  ),
  bindPassword: field('string', undefined as string | undefined, 'Password of `bindDn`.', { check: checkFilled }),
  baseDn: field('string', undefined as string | undefined, 'Base of the search for the entry of a client.'),
  filter: template('uc', 'Filter of this search, with `%u` and `%c`.'),
  scope: field(
    'choice',
    'sub' as 'sub' | 'one',
    'Depth of the search: all entries below `baseDn`, or those directly below.',
    { choices: ['sub', 'one'] }
  ),
  userDn: template('uc', 'Name of the entry instead of a search, with `%u` and `%c`.'),
  method: field('choice', 'bind' as 'bind' | 'compare', 'Method of checking a password.', {
    choices: ['bind', 'compare']
  }),
  passwordAttribute: attribute('userPassword', 'Attribute with the password, for `compare`.'),
  enabledAttribute: attribute(
    undefined as string | undefined,
    'A client whose entry has the value `FALSE` here is refused.'
  ),
  usernameAttribute: attribute(undefined as string | undefined, 'Attribute that becomes the user name of the client.'),
  superuserAttribute: attribute(
    undefined as string | undefined,
    'A client whose entry has the value `TRUE` here is exempt from access control.'
  ),
  superuserFilter: template(
    'ucd',
    'A client for whom this filter finds an entry is exempt from access control; `%d` is the name of its entry.'
  ),
  superuserBaseDn: field('string', undefined as string | undefined, 'Base of the search with `superuserFilter`.'),
  acl: field(
    'object',
    undefined as AclNames | undefined,
    'Attributes with access rules; `true` takes the default names.',
    { check: checkAcl }
  ),
  name: field('string', 'ldap', 'Name of the source.')
};

/** The checked options. */
export interface LdapSettings extends Omit<FieldValues<typeof LDAP_OPTIONS>, 'url' | 'filter'> {
  readonly url: URL;
  readonly filter: Template;
}

/** Read the options of `ldap`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN; the error contains no password */
export function readLdapOptions(given: LdapOptions): LdapSettings {
  const read = readOptions(LDAP_OPTIONS, given, 'ldap') as unknown as FieldValues<typeof LDAP_OPTIONS>;
  checkTls(read, 'ldap');
  const { url, userDn, baseDn, bindDn, bindPassword, startTls, superuserFilter } = read;
  const fail = (field: string, expected: string, got: unknown): never => {
    throw new InvalidInput('OPTION_INVALID', `ldap.${field}`, expected, got);
  };
  if (url === undefined) return fail('url', 'a URL such as "ldaps://ldap.example"', undefined);
  if (startTls && url.protocol === 'ldaps:') fail('startTls', 'a URL that begins with ldap://', url.href);
  if ((userDn === undefined) === (baseDn === undefined)) fail('baseDn', 'exactly one of "baseDn" and "userDn"', baseDn);
  if (userDn !== undefined && given.filter !== undefined) fail('filter', '"baseDn" instead of "userDn"', given.filter);
  if ((bindDn === undefined) !== (bindPassword === undefined))
    fail('bindPassword', '"bindDn" and "bindPassword" together', bindPassword === undefined ? undefined : 'only one');
  if (superuserFilter !== undefined && (read.superuserBaseDn ?? baseDn) === undefined)
    fail('superuserBaseDn', 'a base for the search with "superuserFilter"', undefined);
  const filter = read.filter ?? new Template('(uid=%u)', 'uc', 'ldap.filter');
  for (const [name, one] of Object.entries({ userDn: userDn ?? filter, superuserFilter }))
    if (one !== undefined && one.letters.length === 0)
      fail(name === 'userDn' && userDn === undefined ? 'filter' : name, 'a placeholder for the client', 'none');
  const enabledAttribute = read.enabledAttribute ?? (userDn === undefined ? 'isEnabled' : undefined);
  return { ...read, url, filter, enabledAttribute };
}

function template(letters: string, about: string) {
  return field('string', undefined as Template | undefined, about, {
    check: (value, field) => new Template(value as string, letters, field)
  });
}

function attribute<T extends string | undefined>(name: T, about: string) {
  return field('string', name, about, {
    check: (value, field) => {
      if (!ATTRIBUTE.test(value as string))
        throw new InvalidInput('OPTION_INVALID', field, 'the name of an attribute', value);
      return value;
    }
  });
}

function checkAcl(value: unknown, field: string): AclNames | undefined {
  if (value === false) return undefined;
  return readOptions(ACL_OPTIONS, value === true ? {} : (value as object), field);
}

/** In particular, an empty password would be an unauthenticated bind, which servers accept [RFC 4513 section 5.1.2]. */
function checkFilled(value: unknown, field: string): unknown {
  if (value === '') throw new InvalidInput('OPTION_INVALID', field, 'a string that is not empty', value);
  return value;
}

function checkUrl(value: unknown, field: string): URL {
  const fail = (expected: string): never => {
    throw new InvalidInput('OPTION_INVALID', field, expected, value);
  };
  const isText = typeof value === 'string' || value instanceof URL;
  if (!isText || !URL.canParse(String(value))) return fail('a URL such as "ldaps://ldap.example"');
  const url = new URL(value);
  if (url.protocol !== 'ldap:' && url.protocol !== 'ldaps:') return fail('a URL that begins with ldap:// or ldaps://');
  if (url.hostname === '') return fail('a URL with the name of the server');
  if (url.username !== '' || url.password !== '') return fail('a URL without credentials; use "bindDn"');
  if (!['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== '')
    return fail('a URL with nothing after the server; use "baseDn" and "filter"');
  return url;
}
