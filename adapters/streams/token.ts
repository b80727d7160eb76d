import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { InvalidInput, type StreamProperties } from '../../lib/index.ts';

/** The header with which a refused client is told what is needed. */
export const BEARER_CHALLENGE = { 'www-authenticate': 'Bearer realm="embermq"' };

/**
 * Read the property `token`.
 * @param what of which it is a property, for the message, which does not contain the token
 * @returns undefined: there is none
 * @throws InvalidInput PROPERTY_INVALID
 */
export function readToken({ token }: StreamProperties, what: string): string | undefined {
  if (token === undefined) return undefined;
  // what a header can carry; an empty one would be no protection
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token;
  throw tokenFault(what, 'a text of visible ASCII characters without spaces, or be left out');
}

/** The error of a property `token`; its message does not contain the token. @param expected the end of "property token must be" */
export function tokenFault(what: string, expected: string): InvalidInput {
  const text = `${what}: property token must be ${expected}`;
  return new InvalidInput('PROPERTY_INVALID', 'token', expected, undefined, text);
}

/** True if a header `Authorization` has the token. The time that it takes does not depend on the token. */
export function isAuthorized(header: IncomingHttpHeaders['authorization'], token: string): boolean {
  const [, given] = /^bearer +(\S+) *$/i.exec(header ?? '') ?? [];
  const digest = (text: string) => hash('sha256', text, 'buffer');
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}
