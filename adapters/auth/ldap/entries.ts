import type { Entry } from 'ldapts';
import { BrokerError } from '../../../lib/index.ts';

/** The values of an attribute, whose name is compared without case. */
export function valuesOf(entry: Entry | undefined, name: string): (string | Buffer)[] {
  const [, value = []] = Object.entries(entry ?? {}).find(([key]) => key.toLowerCase() === name.toLowerCase()) ?? [];
  return Array.isArray(value) ? [...value] : [value];
}

/** The text values of an attribute. */
export function textsOf(entry: Entry | undefined, name: string): string[] {
  return valuesOf(entry, name).filter((value) => typeof value === 'string');
}

/**
 * Check whether an attribute is `TRUE` or `FALSE`.
 * @param name name of the attribute; undefined: the option does not name one
 */
export function isValue(entry: Entry | undefined, name: string | undefined, expected: 'TRUE' | 'FALSE'): boolean {
  return name !== undefined && textsOf(entry, name).some((value) => value.toUpperCase() === expected);
}

/**
 * The error for more than one entry of a client.
 * @param username as given by the client
 */
export function ambiguity(username: string): BrokerError {
  const who = shownName(username);
  return new BrokerError(
    'LDAP_AMBIGUOUS',
    `the filter finds more than one entry for the user name ${who}, who is refused`
  );
}

/** A user name for an error message. */
export function shownName(username: string): string {
  return JSON.stringify(username.slice(0, 80));
}
