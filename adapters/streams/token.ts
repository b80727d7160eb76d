import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { InvalidInput, type StreamProperties } from '../../lib/index.ts';

/** The header that tells a refused client about the required credentials. */
export const BEARER_CHALLENGE = { 'www-authenticate': 'Bearer realm="embermq"' };

/**
 * Read the property `token`.
 * @param what the owner of the property, for the message, which does not contain the token
 * @returns undefined if there is none
 * @throws InvalidInput PROPERTY_INVALID
 */
export function readToken({ token }: StreamProperties, what: string): string | undefined {
  if (token === undefined) return undefined;
  // the characters of a header value; an empty token would not protect
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token;
  throw tokenFault(what, 'a string of visible ASCII characters without spaces, or be left out');
}

/** The error of a property `token`; its message does not contain the token. @param expected the end of "property token must be" */
export function tokenFault(what: string, expected: string): InvalidInput {
  const text = `${what}: property token must be ${expected}`;
  return new InvalidInput('PROPERTY_INVALID', 'token', expected, undefined, text);
}

/** Check whether an `Authorization` header has the token, in a time that does not depend on the token. */
export function isAuthorized(header: IncomingHttpHeaders['authorization'], token: string): boolean {
  const [, given] = /^bearer +(\S+) *$/i.exec(header ?? '') ?? [];
  const digest = (text: string) => hash('sha256', text, 'buffer');
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}
