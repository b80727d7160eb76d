import { type FieldTable, type FieldValues, field, readOptions } from '../../lib/adapter.ts';
import { type Duration, InvalidInput, type Size } from '../../lib/index.ts';
import { PROXY_HEADERS, type ProxyHeaderName, readProxies, TrustedProxies } from '../upgrades/index.ts';
import { type BrowserSettings, hostName } from './browser-checks.ts';
import type { Credentials } from './credentials.ts';

/** Access options, common to all mounts. */
export const GUARD_OPTIONS = {
  credentials: field('object', 'host' as Credentials, 'Credentials that the interface accepts.', {
    check: (value, field) => readCredentials(value, field)
  }),
  trustedProxies: field(
    'object',
    new TrustedProxies([], false),
    'Proxies in front of the server: IP addresses, networks, or "unix".',
    {
      check: readProxies
    }
  ),
  proxyHeader: field(
    'choice',
    'x-forwarded-for' as ProxyHeaderName,
    'The header in which `trustedProxies` report the address of the client. Others are ignored.',
    { choices: PROXY_HEADERS }
  ),
  hosts: field('object', undefined as ReadonlySet<string> | undefined, 'Names of the server.', {
    check: readHosts
  })
};

/** Options of all REST interfaces. */
export interface MountOptions {
  /** The path under which the interface is mounted, or several. Default: none. */
  prefix?: string | readonly string[];
  /**
   * The answer to paths below the prefix that the interface does not have: 404 (default), or none (`next`): they are
   * left to the host app, before credentials are checked.
   */
  unmatched?: 404 | 'next';
  /** Access control. Default `applications`: the applications of the broker. */
  credentials?: Credentials;
  /**
   * Proxies in front of the server: IP addresses, networks such as `10.0.0.0/8`, or `unix` for Unix sockets. The address
   * of a client is then the last one in their header (`proxyHeader`) that is not one of these; failed logins are limited
   * by it, and the audit log has it. Default: none.
   */
  trustedProxies?: string | readonly string[];
  /**
   * The header in which `trustedProxies` report the address of the client: `x-forwarded-for` (default), or `forwarded`
   * (RFC 7239). The other one is ignored, because a proxy may pass it on as the client has sent it.
   */
  proxyHeader?: 'x-forwarded-for' | 'forwarded';
  /**
   * Origins such as `https://app.example` whose pages may use the interface; `any` for all of them. They get CORS
   * headers, and their preflight requests are answered. Requests that change something and have another `Origin` header
   * are refused with 403, unless it is that of the server itself, taken from the `Host` header. Default: none.
   */
  origins?: string | readonly string[];
  /**
   * Names of the server. Requests with another `Host` header are refused with 403, except IP addresses and `localhost`.
   * It is checked if this option is given, or with `credentials: 'none'`. Default there: none.
   */
  hosts?: string | readonly string[];
  /** Maximum size of a request body. Default 1 MB. */
  maxBodyBytes?: Size;
  /** Time for reading a request body. Default 15 s. */
  bodyTimeout?: Duration;
}

/** Options of interfaces that may change something. */
export const MOUNT_OPTIONS = {
  unmatched: field(
    'object',
    404 as 404 | 'next',
    'The answer to unknown paths below the prefix: 404; "next": the request is left to the app.',
    {
      check: (value, field) => {
        if (value === 404 || value === 'next') return value;
        throw new InvalidInput('OPTION_INVALID', field, '404 or "next"', value);
      }
    }
  ),
  ...GUARD_OPTIONS,
  credentials: { ...GUARD_OPTIONS.credentials, default: 'applications' as Credentials },
  origins: field(
    'object',
    new Set<string>() as BrowserSettings['origins'],
    'Origins whose pages may use the interface; "any": all of them. They get CORS headers.',
    { check: readOrigins }
  ),
  maxBodyBytes: field('size', 1_048_576, 'Maximum size of a request body.', {
    unit: 'bytes',
    min: 1
  }),
  bodyTimeout: field('duration', 15_000, 'Time from the first look at a request body to its end.', {
    unit: 'ms',
    min: 1
  })
};

/**
 * Read the options of a mount. With `credentials: 'none'`, the `Host` header is checked although `hosts` is not given.
 * @param what the function of the options, for errors
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function readMountOptions<T extends FieldTable & typeof GUARD_OPTIONS>(
  table: T,
  given: object,
  what: string
): FieldValues<T> {
  const settings = readOptions(table, given, what) as unknown as FieldValues<T>;
  const { credentials, hosts, trustedProxies, proxyHeader } = settings as FieldValues<typeof GUARD_OPTIONS>;
  const proxies = trustedProxies.with(proxyHeader);
  return { ...settings, trustedProxies: proxies, hosts: hosts ?? (credentials === 'none' ? new Set() : undefined) };
}

/** The row of the option for the paths of a mount. */
export function prefixRow<D extends readonly string[] | undefined>(paths: D) {
  return field('object', paths as readonly string[] | D, 'Paths at which the interface is mounted.', {
    check: readPrefixes
  });
}

function readPrefixes(value: unknown, field: string): readonly string[] {
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0) throw new InvalidInput('OPTION_INVALID', field, 'a path or a list of paths', value);
  return list.map((one) => {
    if (typeof one !== 'string' || (one !== '' && !one.startsWith('/')) || /[?#]/.test(one))
      throw new InvalidInput('OPTION_INVALID', field, 'a path such as "/api/v4"', one);
    return one.replace(/\/+$/, '');
  });
}

const WORDS = ['remote', 'host', 'none'] as const;

/**
 * Check the option `credentials`.
 * @param words the allowed words, in addition to the identities of the broker; a function is allowed only with all of
 * them
 * @throws InvalidInput OPTION_INVALID
 */
export function readCredentials(value: unknown, field: string, words: readonly string[] = WORDS): Credentials {
  const isIdentity = (one: unknown) => one === 'applications' || one === 'users';
  const isInApp = words === WORDS;
  const isGood =
    Array.isArray(value) && value.length > 0
      ? value.every(isIdentity)
      : isIdentity(value) || words.includes(value as string) || (isInApp && typeof value === 'function');
  if (isGood) return Array.isArray(value) ? [...new Set(value)] : (value as Credentials);
  const listed = words.map((word) => JSON.stringify(word)).join(', ');
  const expected = `"applications", "users", a list of these, ${listed}${isInApp ? ' or a function' : ''}`;
  throw new InvalidInput('OPTION_INVALID', field, expected, value);
}

/**
 * Read a string or a list of strings.
 * @param expected the expected value, for errors
 */
function readTexts(
  value: unknown,
  field: string,
  { isGood, expected }: { readonly isGood: (text: string) => boolean; readonly expected: string }
): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  for (const one of list)
    if (typeof one !== 'string' || !isGood(one)) throw new InvalidInput('OPTION_INVALID', field, expected, one);
  return list as string[];
}

/** Check the option `origins`. @throws InvalidInput OPTION_INVALID */
export function readOrigins(value: unknown, field: string): BrowserSettings['origins'] {
  const isGood = (one: string) =>
    one === 'any' || one === 'null' || (/^[a-z][a-z\d+.-]*:\/\/[^/?#\s*]+$/.test(one) && URL.canParse(one));
  const expected = 'origins as browsers send them, such as "https://app.example", or "any"';
  const list = readTexts(value, field, { isGood, expected });
  return list.includes('any') ? 'any' : new Set(list);
}

function readHosts(value: unknown, field: string): ReadonlySet<string> {
  const nameIn = (one: string) => (/:\d*$/.test(one) ? undefined : hostName(one));
  const expected = 'host names such as "broker.example", without a port';
  const list = readTexts(value, field, { isGood: (one) => nameIn(one) !== undefined, expected });
  return new Set(list.map((one) => nameIn(one) as string));
}
