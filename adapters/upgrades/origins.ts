import type { IncomingMessage } from 'node:http';
import { InvalidInput } from '../../lib/index.ts';

/**
 * Checks whether a page of this origin may connect. `origin` is undefined if the client sends none and is therefore not
 * a browser.
 */
export type OriginCheck = (origin: string | undefined, request: IncomingMessage) => boolean;

/**
 * Hosts of pages served by this machine. Browsers resolve `localhost` and every name below it to loopback [RFC 6761
 * 6.3].
 */
const LOOPBACK_HOST = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/;
/** Origins with a scheme for which the URL standard defines no origin, such as `capacitor://localhost`. */
const OPAQUE_SCHEME = /^[a-z][a-z\d+.-]*:\/\/[^/?#\s]*$/;
const ANY: readonly string[] = ['*', 'any'];

/** The default check: admits clients other than browsers, and pages served by this machine. */
export const LOOPBACK_ORIGINS: OriginCheck = (origin) => origin === undefined || isLoopback(origin);

/** Read the option `origins`. @throws InvalidInput OPTION_INVALID */
export function checkOrigins(value: unknown, field: string): OriginCheck {
  if (typeof value === 'function') return value as OriginCheck;
  const list = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(list) || !list.every((item): item is string => typeof item === 'string'))
    throw new InvalidInput('OPTION_INVALID', field, 'a list of strings', value);
  const pattern = list.find((origin) => origin.includes('*') && origin !== '*');
  if (pattern !== undefined) {
    const expected = 'whole origins without wildcards, or a function that compares';
    throw new InvalidInput('OPTION_INVALID', field, expected, pattern);
  }
  const wrong = list.find((origin) => !ANY.includes(origin) && !isOrigin(origin));
  if (wrong !== undefined) {
    const expected = 'origins as browsers send them, such as "https://app.example", or "any"';
    throw new InvalidInput('OPTION_INVALID', field, expected, wrong);
  }
  if (list.some((origin) => ANY.includes(origin))) return () => true;
  const more = new Set(list);
  return (origin, request) => LOOPBACK_ORIGINS(origin, request) || more.has(origin as string);
}

/**
 * Check whether an origin is on loopback. The Host header is not considered: after DNS rebinding it equals the origin
 * of the attacker.
 */
function isLoopback(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, hostname, origin: canonical } = new URL(origin);
  return /^https?:$/.test(protocol) && canonical === origin && LOOPBACK_HOST.test(hostname);
}

function isOrigin(text: string): boolean {
  if (text === 'null') return true;
  if (!URL.canParse(text)) return false;
  const { origin } = new URL(text);
  return origin === 'null' ? OPAQUE_SCHEME.test(text) : origin === text;
}
