import type { ErrorCodeEntry } from './row.ts';

/** Codes of authentication, access rules and management users. */
export const ACCESS_CODES = {
  ACCESS_RULE_INVALID: { about: 'An access rule is invalid.', remedy: 'See `expected` of the error.' },
  ACL_FILE_INVALID: { about: 'A file of access rules cannot be used.', remedy: 'The message names the line.' },
  ADMIN_PERMANENT: { about: 'The user `admin` cannot be deleted.', remedy: 'Change its password instead.' },
  APPLICATION_INVALID: {
    about: 'An application of the management interface has an invalid field.',
    remedy: 'See `expected` of the error.'
  },
  BAN_INVALID: { about: 'A ban has an invalid field.', remedy: 'See `expected` of the error.' },
  DATABASE_FAILED: {
    about: 'A query of a source of authentication failed.',
    remedy: 'Check the database and the query.'
  },
  JWKS_INVALID: { about: 'The key server sent an answer without keys.', remedy: 'Check the URL.' },
  JWKS_UNAVAILABLE: {
    about: 'The keys of tokens could not be fetched.',
    remedy: 'Check the key server; it is asked again.'
  },
  LAST_ADMINISTRATOR: {
    about: 'The user is the last administrator, which can neither be deleted nor become a viewer.',
    remedy: 'Make another user an administrator first.'
  },
  LDAP_AMBIGUOUS: {
    about: 'The filter finds more than one entry for a user name, so the client is refused.',
    remedy: 'Make the filter more exact.'
  },
  LDAP_CLOSED: {
    about: 'The LDAP server closed the connection.',
    remedy: 'It is opened again; check the server if this recurs.'
  },
  LDAP_FAILED: { about: 'A request to the LDAP server failed.', remedy: 'Check address, credentials and network.' },
  LDAP_FILTER_INVALID: { about: 'The filter is not a valid LDAP filter.', remedy: 'Correct the option.' },
  LDAP_INVALID: {
    about: 'The LDAP server sent something that is not a valid message.',
    remedy: 'Check that the address is that of an LDAP server.'
  },
  LDAP_NAME_INVALID: {
    about: 'An entry has no attribute with the user name.',
    remedy: 'Check the option that names the attribute.'
  },
  LDAP_REFUSED: {
    about: 'The LDAP server refused a request.',
    remedy: 'Check the rights of the account that searches.'
  },
  LDAP_RIGHTS_UNREADABLE: { about: 'The rights in an entry cannot be read.', remedy: 'Correct the entry.' },
  LOGINS_LIMITED: {
    about: 'There were too many failed logins from an address within a minute.',
    remedy: 'Correct the credentials of the client, and try again in a minute.'
  },
  NAME_INVALID: { about: 'The name of a user or client is invalid.', remedy: 'See `expected` of the error.' },
  PASSWORD_FILE_INVALID: { about: 'A line of a password file is invalid.', remedy: 'The message names the line.' },
  PASSWORD_HASH_INVALID: {
    about: 'A password hash has an unknown or incomplete form.',
    remedy: 'Make it with `embermq passwd`, or correct the option.'
  },
  PASSWORD_INVALID: { about: 'A password is empty or too long.', remedy: 'Choose another one.' },
  PASSWORD_QUEUE_FULL: { about: 'Too many logins wait for the check of their passwords.', remedy: 'Try again later.' },
  PASSWORD_WRONG: { about: 'The old password is wrong.', remedy: 'Give the present password.' },
  PSK_INVALID: {
    about: 'A pre-shared key or its identity is invalid.',
    remedy: 'The message names the line or the field.'
  },
  RECORD_EXISTS: { about: 'There is such a record already.', remedy: 'Change it, or delete it first.' },
  RECORD_INVALID: {
    about: 'A record of credentials or rights has an invalid field.',
    remedy: 'See `expected` of the error.'
  },
  RECORD_NOT_FOUND: { about: 'There is no such record.', remedy: 'List the records to find its key.' },
  SCRAM_INVALID: { about: 'A SCRAM credential has the wrong form.', remedy: 'The message shows the right form.' },
  SOURCE_BUSY: {
    about: 'Too many requests to a source wait, so one was dropped.',
    remedy: 'Raise its limits, or make the server that it asks faster.'
  },
  SOURCE_CLOSED: { about: 'The source was closed.', remedy: 'Make a new one.' },
  SOURCE_FAILED: {
    about: 'A source that settings refer to could not be changed, or a source of authentication does not close.',
    remedy: 'The message names the source and the cause.'
  },
  SOURCE_INVALID: {
    about: 'The value is not a source.',
    remedy: 'Use a function of this package, such as `users`, or an object of its form.'
  },
  SOURCE_NAME_IN_USE: { about: 'Another source has this name.', remedy: 'Set the option `name`.' },
  SOURCE_NOT_RELOADED: {
    about: 'A source could not be loaded again; the previous content remains in use.',
    remedy: 'The message names the cause.'
  },
  SOURCE_STOPPED: { about: 'The source is stopped.', remedy: 'Start it first.' },
  SOURCE_TIMEOUT: {
    about: 'The server that a source asks did not answer in time.',
    remedy: 'Check the server, or raise the timeout.'
  },
  SOURCE_UNKNOWN: { about: 'There is no source of this name.', remedy: 'See the names in the message.' },
  USER_UNKNOWN: { about: 'There is no user of this name in the password file.', remedy: 'Check the name.' }
} as const satisfies Readonly<Record<string, ErrorCodeEntry>>;
