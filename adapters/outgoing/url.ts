import { InvalidInput } from '../../lib/index.ts';

/**
 * Read the URL of a server.
 * @throws InvalidInput OPTION_INVALID for a URL that is not absolute, has another scheme, contains credentials, or contains placeholders
 */
export function checkUrl(value: unknown, field: string): URL {
  const fail = (expected: string): never => {
    throw new InvalidInput('OPTION_INVALID', field, expected, value);
  };
  const isText = typeof value === 'string' || value instanceof URL;
  if (!isText || !URL.canParse(String(value))) return fail('a URL such as "https://app.example/mqtt"');
  const url = new URL(value);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return fail('a URL that begins with http:// or https://');
  if (url.username !== '' || url.password !== '') return fail('a URL without user name and password; use a header');
  if (/%(?![0-9a-f]{2})/i.test(String(value)))
    return fail('a URL without placeholders; they are possible in "query", "form", "json" and "headers"');
  return url;
}
