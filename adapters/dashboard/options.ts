import type { IncomingMessage } from 'node:http';
import { type FieldValues, field } from '../../lib/adapter.ts';
import { type AuditEntry, type Awaitable, InvalidInput } from '../../lib/index.ts';
import type { OptionOrigin } from '../management/index.ts';
import { MOUNT_OPTIONS, type MountOptions, prefixRow, readMountOptions, type Scope } from '../rest/index.ts';
import type { PluginsApi } from '../streams-plugins/index.ts';

/** A person that the host app has logged in. */
export interface DashboardLogin {
  /** The name that the console and the audit log show. */
  readonly id: string;
  /** `viewer` reads, `administrator` also changes. */
  readonly scope: Scope;
}

/**
 * Returns the person who has sent a request, from a login of the host app; undefined: none. It is called for each request
 * to the console. An error means the same as undefined, and is reported by the event `error` of the broker.
 * @param request that of node:http, which Express, Fastify and Koa have as well, or that of the Fetch API
 */
export type DashboardLoginFunction = (request: IncomingMessage | Request) => Awaitable<DashboardLogin | undefined>;

/** Options of `dashboard`. */
export interface DashboardOptions
  extends Pick<
    MountOptions,
    'bodyTimeout' | 'hosts' | 'maxBodyBytes' | 'proxyHeader' | 'trustedProxies' | 'unmatched'
  > {
  /** The path under which the console is mounted. Default: none. */
  prefix?: string;
  /**
   * The source of logins: `users`, with the name and the password of a management user (`broker.users`), or a function that
   * returns who the host app has logged in. Default `users`.
   */
  login?: 'users' | DashboardLoginFunction;
  /**
   * A page of the host app at which people log in; the console links to it. `{return}` in it is replaced by the encoded address of the view: its
   * path, or its URL if the page has another origin. Default: none.
   */
  loginUrl?: string;
  /** False: viewers get no payloads of messages, neither in the page nor over `/api`, `/streams` and `/live`. Default true. */
  viewerPayloads?: boolean;
  /** The plugins of stream rules. Default: none. */
  plugins?: PluginsApi;
  /** Returns the source of an option's value in the app, for the page of options. Default: the source is not shown. */
  optionSource?: OptionOrigin;
  /** Called with each entry of the audit log, as in the options of `managementApi`: changes, logins and logouts. */
  audit?: (entry: AuditEntry) => void;
}

const { credentials: _, origins: __, ...SHARED } = MOUNT_OPTIONS;

const DASHBOARD_OPTIONS = {
  prefix: { ...prefixRow(['']), about: 'Path at which the console is mounted.' },
  ...SHARED,
  credentials: MOUNT_OPTIONS.credentials,
  login: field('object', 'users' as 'users' | DashboardLoginFunction, 'How people log in.', {
    check: (value, name) => {
      if (value === 'users' || typeof value === 'function') return value as 'users' | DashboardLoginFunction;
      throw new InvalidInput('OPTION_INVALID', name, '"users" or a function', value);
    }
  }),
  loginUrl: field('string', undefined as string | undefined, 'A page of the host app at which people log in.', {
    check: readUrl
  }),
  viewerPayloads: field('boolean', true, 'Let viewers see payloads of messages.'),
  plugins: field('object', undefined as PluginsApi | undefined, 'The plugins of stream rules.'),
  optionSource: field('function', undefined as OptionOrigin | undefined, 'Returns the source of an option in the app.'),
  audit: field(
    'function',
    undefined as ((entry: AuditEntry) => void) | undefined,
    'Called with each entry of the audit log.'
  )
};

/** The checked options. */
export type DashboardSettings = Omit<FieldValues<typeof DASHBOARD_OPTIONS>, 'prefix'> & { readonly prefix: string };

/** Read the options of `dashboard`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readDashboardOptions(given: DashboardOptions): DashboardSettings {
  if ('credentials' in given)
    throw new InvalidInput('OPTION_UNKNOWN', 'credentials', 'the option login', 'credentials');
  const { prefix, ...settings } = readMountOptions(DASHBOARD_OPTIONS, { ...given, credentials: 'users' }, 'dashboard');
  if (prefix.length !== 1) throw new InvalidInput('OPTION_INVALID', 'prefix', 'one path', given.prefix);
  return { ...settings, prefix: prefix[0] };
}

/** The page links to it, so a URL that runs code is refused. */
function readUrl(value: unknown, name: string): string {
  const text = value as string;
  const isPath = /^[/?.]/.test(text);
  if (URL.canParse(text, 'http://host') && (isPath || /^https?:/i.test(text))) return text;
  throw new InvalidInput('OPTION_INVALID', name, 'a path, or a URL that begins with http:// or https://', value);
}

/** The options that the two interfaces have as well, as they were given. */
export function sharedOptions({
  hosts,
  trustedProxies,
  proxyHeader,
  maxBodyBytes,
  bodyTimeout
}: DashboardOptions): Pick<MountOptions, 'bodyTimeout' | 'hosts' | 'maxBodyBytes' | 'proxyHeader' | 'trustedProxies'> {
  return {
    ...(hosts !== undefined && { hosts }),
    ...(trustedProxies !== undefined && { trustedProxies }),
    ...(proxyHeader !== undefined && { proxyHeader }),
    ...(maxBodyBytes !== undefined && { maxBodyBytes }),
    ...(bodyTimeout !== undefined && { bodyTimeout })
  };
}
