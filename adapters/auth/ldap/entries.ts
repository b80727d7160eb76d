import type { Entry } from 'ldapts';
import { BrokerError } from '../../../lib/index.ts';

/** The values of an attribute, whose name may be in upper or lower case. */
export function valuesOf(entry: Entry | undefined, name: string): (string | Buffer)[] {
  const [, value = []] = Object.entries(entry ?? {}).find(([key]) => key.toLowerCase() === name.toLowerCase()) ?? [];
  return Array.isArray(value) ? [...value] : [value];
}

/** The values of an attribute that are text. */
export function textsOf(entry: Entry | undefined, name: string): string[] {
  return valuesOf(entry, name).filter((value) => typeof value === 'string');
}

/** Tell whether an attribute is `TRUE` or `FALSE`. @param name undefined: no attribute tells it */
export function isValue(entry: Entry | undefined, name: string | undefined, expected: 'TRUE' | 'FALSE'): boolean {
  return name !== undefined && textsOf(entry, name).some((value) => value.toUpperCase() === expected);
}

/** There is more than one entry for a client. @param username as the client has given it */
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
