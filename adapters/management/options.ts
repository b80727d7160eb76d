import { type OptionValues, optionField as row } from '../../lib/adapter.ts';
import type { AuditEntry, Duration, Size } from '../../lib/index.ts';
import { type Credentials, MOUNT_OPTIONS, prefixRow, readMountOptions } from '../rest/index.ts';
import { REVISION_ROWS, REVISIONS, type RevisionName } from './revisions.ts';

/** Options of `managementApi`. */
export interface ManagementOptions {
  /** The revision that is served. Default `later`. */
  revision?: RevisionName;
  /**
   * The path under which the interface is mounted, or several. Default: that of the revision: `/api/v3` (earlier), `/api/v3` and `/api/v4`
   * (later), `/api` (hosted). An app that serves earlier and later on one server gives later `/api/v4`.
   */
  prefix?: string | readonly string[];
  /**
   * The answer to paths below the prefix that the interface does not have: 404 (default), or none (`next`): they are
   * left to the host app, before credentials are checked.
   */
  unmatched?: 404 | 'next';
  /** Statuses and codes as documented (default), or as the original products actually answer (`original`). */
  errors?: 'documented' | 'original';
  /** Access control. Default `applications`: the applications of the broker. */
  credentials?: Credentials;
  /**
   * Proxies in front of the server: IP addresses, networks such as `10.0.0.0/8`, or `unix` for Unix sockets. Failed
   * logins are limited by the address in their header `X-Forwarded-For`. Default: none.
   */
  trustedProxies?: string | readonly string[];
  /**
   * False: the operations for applications, and the backup, which has the hashes of their secrets, are refused with 403 and not listed. The
   * section `applications` is left out of exports, and imports that have it are refused. Default true.
   */
  appOperations?: boolean;
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
  /** Maximum `_limit` of a list, and its default. Default 10,000. */
  maxRowLimit?: number;
  /**
   * Called with each entry of the audit log: the changes made through this mount, and the refused ones. Errors that it
   * throws are reported as `error` events.
   */
  audit?: (entry: AuditEntry) => void;
  /** Maximum number of event streams (`/x/events`) open at a time. Default 16. */
  maxEventStreams?: number;
  /** Maximum size of a request body. Default 1 MB. An import (`POST /x/import`) may always have 64 MB. */
  maxBodyBytes?: Size;
  /** Time for reading a request body. Default 15 s. */
  bodyTimeout?: Duration;
  /** Returns the source of an option's value in the app, for `GET /x/options`. Default: the source is not shown. */
  optionSource?: OptionOrigin;
}

/**
 * Returns the source of the value of a broker option, for people: `--max-packet-size`, `EMBERMQ_NODE`,
 * `embermq.json: node`.
 * @param name the name of the option in camelCase
 * @param zone undefined: given for the broker or for all zones
 * @returns undefined: the source is not known
 */
export type OptionOrigin = (name: string, zone?: string) => string | undefined;

/** The options of `managementApi`. */
export const MANAGEMENT_OPTIONS = {
  revision: row('choice', 'later' as RevisionName, 'The revision that is served.', { choices: REVISIONS }),
  prefix: prefixRow(undefined),
  errors: row(
    'choice',
    'documented' as 'documented' | 'original',
    'Statuses and codes of errors: as EMQX documents them, or as it actually answers.',
    {
      choices: ['documented', 'original']
    }
  ),
  ...MOUNT_OPTIONS,
  appOperations: row('boolean', true, 'Allow the operations for applications and backups.'),
  maxRowLimit: row('integer', 10_000, 'Maximum _limit of a list, and its default.', { min: 1, max: 10_000 }),
  audit: row(
    'function',
    undefined as ((entry: AuditEntry) => void) | undefined,
    'Called with each entry of the audit log.'
  ),
  maxEventStreams: row('integer', 16, 'Maximum number of event streams (/x/events) open at a time.', { min: 0 }),
  optionSource: row(
    'function',
    undefined as OptionOrigin | undefined,
    'Returns the source of an option of the broker in the app, for GET /x/options.'
  )
};

/** The checked options. */
export type ManagementSettings = OptionValues<typeof MANAGEMENT_OPTIONS> & { readonly prefix: readonly string[] };

/** Read the options of `managementApi`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readManagementOptions(given: ManagementOptions): ManagementSettings {
  const settings = readMountOptions(MANAGEMENT_OPTIONS, given, 'managementApi');
  return { ...settings, prefix: settings.prefix ?? REVISION_ROWS[settings.revision].prefixes };
}
