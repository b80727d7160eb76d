/** Authentication against an LDAP directory. This entry point needs the `ldapts` package, an optional peer dependency, when the broker starts. */

export type { OutgoingTls, Pem } from '../../outgoing/index.ts';
export type { BreakerOptions, LimitOptions } from '../outgoing/limits.ts';
export { ldap } from './ldap-source.ts';
export type { LdapAclAttributes, LdapOptions } from './options.ts';
