// The tables of the pages about sources and listeners.
import { databaseOptions } from '../../adapters/auth/database/options.ts';
import { HTTP_OPTIONS } from '../../adapters/auth/http/options.ts';
import { JWT_OPTIONS } from '../../adapters/auth/jwt/options.ts';
import { LDAP_OPTIONS } from '../../adapters/auth/ldap/options.ts';
import { LEVEL_OPTIONS } from '../../adapters/level/level-store.ts';
import { LISTENER_OPTIONS, TCP_OPTIONS, UNIX_OPTIONS } from '../../adapters/net/options.ts';
import { TLS_OPTIONS } from '../../adapters/net/tls-options.ts';
import { WEBSOCKET_OPTIONS } from '../../adapters/net/websocket.ts';
import type { FieldTable } from '../../lib/adapter.ts';
import { options } from './table-parts.ts';

/** The tables by the names in the marks around them. */
export const ACCESS_TABLES: Readonly<Record<string, () => string>> = {
  'listener options': () => options(LISTENER_OPTIONS, LISTENER_WORDS),
  'tcp options': () => options(without(TCP_OPTIONS, LISTENER_OPTIONS), { port: ['required'] }),
  'unix options': () =>
    options(without(UNIX_OPTIONS, LISTENER_OPTIONS), { path: ['required'], mode: ['none', 'number or string'] }),
  'tls options': () => options(TLS_OPTIONS, TLS_WORDS),
  'websocket options': () =>
    options(WEBSOCKET_OPTIONS, {
      origins: ['loopback origins only', 'list of strings, or function, see above'],
      maxPayload: ['4 times `maxPacketSize` of the zone']
    }),
  'http source options': () => options(HTTP_OPTIONS, { ...LIMIT_WORDS, ...REQUEST_WORDS }),
  'jwt options': () => options(JWT_OPTIONS, JWT_WORDS),
  'ldap options': () => options(LDAP_OPTIONS, { ...LIMIT_WORDS, ...LDAP_WORDS }),
  'database source options': () =>
    options(databaseOptions('database'), {
      ...LIMIT_WORDS,
      passwordHash: ['`auto`', 'see above'],
      bcrypt: ['`bcryptjs`, in a thread'],
      name: ['the name of the function']
    }),
  'level options': () => options(LEVEL_OPTIONS, { reserve: ['64 MB, at most a fifth of the file system'] })
};

/** Descriptions of the default and the values of options, where the rows do not contain them. */
type Words = Readonly<Record<string, readonly [fallback?: string, values?: string]>>;

const LISTENER_WORDS: Words = {
  name: ['kind and port or path, such as `tcp:1883`'],
  zone: ['`external`'],
  protocolVersions: ['those of the zone', 'list of 3, 4, 5'],
  maxConnections: ['1024000; with TLS or WebSocket 102400'],
  trustedProxies: ['none', 'string or list of strings']
};

const TLS_WORDS: Words = {
  serverNames: ['none'],
  caFile: ['none', 'string or list of strings'],
  crl: ['none', 'PEM'],
  crlFile: ['none', 'string or list of strings'],
  passphrase: ['none', 'string'],
  psk: ['none', 'object, Map or function'],
  requestCert: ['`true` if `ca`, `caFile` or `usernameFrom` is given'],
  rejectUnauthorized: ['as `requestCert`'],
  ciphers: ['those of Node; with pre-shared keys also theirs'],
  maxVersion: ['the highest of Node'],
  alpn: ['`mqtt`; for WebSocket `http/1.1`', 'list of strings']
};

const LIMIT_WORDS: Words = { breaker: ['`{ failures: 5, pauseMs: 30000 }`', '`{ failures, pauseMs }`'] };

const REQUEST_WORDS: Words = Object.fromEntries(
  ['authenticate', 'superuser', 'acl'].map((name) => [name, ['none', 'request, see above']])
);

const JWT_WORDS: Words = {
  secret: ['none', 'string or bytes'],
  publicKey: ['none', 'PEM, JWK or `KeyObject`'],
  algorithms: ['all that fit the key', 'list of strings'],
  claims: ['none', 'object with strings'],
  issuer: ['none', 'string or list of strings'],
  audience: ['none', 'string or list of strings']
};

const LDAP_WORDS: Words = {
  url: ['required', 'URL'],
  filter: ['`(uid=%u)`'],
  enabledAttribute: ['`isEnabled`; with `userDn` none'],
  superuserBaseDn: ['`baseDn`'],
  acl: ['`false`', 'boolean, or `{ publish, subscribe, all }`']
};

/** The rows of a table that another table does not have. */
function without(table: FieldTable, other: FieldTable): FieldTable {
  return Object.fromEntries(Object.entries(table).filter(([name]) => !(name in other)));
}
