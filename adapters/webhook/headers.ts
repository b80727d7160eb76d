import { BrokerError, InvalidInput } from '../../lib/index.ts';

/** Check whether a string is a valid header name. */
function isHeaderName(name: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name);
}

/** Headers that belong to the connection or the body, and `webhook-id`. */
const OWN_HEADERS =
  /^(content-length|transfer-encoding|connection|keep-alive|proxy-connection|host|upgrade|expect|te|trailer|webhook-id)$/i;

/**
 * Read the headers of a resource or an action.
 * @returns the values as strings, by lower-case names
 * @throws InvalidInput PARAM_INVALID, without the value, which may be a secret
 */
export function readHeaders(given: unknown): Readonly<Record<string, string>> {
  const headers: [string, string][] = [];
  for (const [name, value] of Object.entries((given ?? {}) as object)) {
    const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    const fail = (expected: string): never => {
      throw new InvalidInput('PARAM_INVALID', `headers.${name}`, expected, undefined);
    };
    if (!isHeaderName(name)) fail('a valid name of a header');
    if (OWN_HEADERS.test(name)) fail('a header that the request does not set');
    if (!isPlain || hasControls(String(value))) fail('a string without control characters');
    headers.push([name.toLowerCase(), String(value)]);
  }
  return Object.fromEntries(headers);
}

/**
 * Encode a string as a header value. Characters other than ASCII are sent as UTF-8.
 * @throws BrokerError HEADER_INVALID for control characters, which could start another header
 */
export function headerValue(name: string, text: string): string {
  if (!/[^\x20-\x7e]/.test(text)) return text;
  if (hasControls(text))
    throw new BrokerError('HEADER_INVALID', `the header "${name}" would contain control characters`);
  return Buffer.from(text).toString('latin1');
}

function hasControls(text: string): boolean {
  return /[^\t\x20-\x7e\x80-\u{10ffff}]/u.test(text);
}
