import { type FieldValues, field } from '../../lib/adapter.ts';
import type { AuditEntry, Size } from '../../lib/index.ts';
import { MOUNT_OPTIONS, type MountOptions, prefixRow, readMountOptions } from '../rest/index.ts';
import { REVISION_ROWS, REVISIONS, type RevisionName } from './revisions.ts';

/** Options of `managementApi`. */
export interface ManagementOptions extends MountOptions {
  /** The revision that is served. Default `later`. */
  revision?: RevisionName;
  /**
   * The path under which the interface is mounted, or several. Default: that of the revision: `/api/v3` (earlier), `/api/v3` and `/api/v4`
   * (later), `/api` (hosted). An app that serves earlier and later on one server gives later `/api/v4`.
   */
  prefix?: string | readonly string[];
  /** Statuses and codes as documented (default), or as the original products actually answer (`original`). */
  errors?: 'documented' | 'original';
  /**
   * False: the operations for applications, and the backup, which has the hashes of their secrets, are refused with 403 and not listed. The
   * section `applications` is left out of exports, and imports that have it are refused. Default true.
   */
  appOperations?: boolean;
  /** Maximum size of a request body. Default 1 MB. An import (`POST /x/import`) may always have 64 MB. */
  maxBodyBytes?: Size;
  /** Maximum `_limit` of a list, and its default. Default 10,000. */
  maxRowLimit?: number;
  /**
   * Called with each entry of the audit log: the changes made through this mount, and the refused ones. Errors that it
   * throws are reported as `error` events.
   */
  audit?: (entry: AuditEntry) => void;
  /** Maximum number of event streams (`/x/events`) open at a time. Default 16. */
  maxEventStreams?: number;
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
  revision: field('choice', 'later' as RevisionName, 'The revision that is served.', { choices: REVISIONS }),
  prefix: prefixRow(undefined),
  errors: field(
    'choice',
    'documented' as 'documented' | 'original',
    'Statuses and codes of errors: as EMQX documents them, or as it actually answers.',
    {
      choices: ['documented', 'original']
    }
  ),
  ...MOUNT_OPTIONS,
  maxBodyBytes: {
    ...MOUNT_OPTIONS.maxBodyBytes,
    about: 'Maximum size of a request body. An import may always have 64 MB.'
  },
  appOperations: field('boolean', true, 'Allow the operations for applications and backups.'),
  maxRowLimit: field('integer', 10_000, 'Maximum _limit of a list, and its default.', { min: 1, max: 10_000 }),
  audit: field(
    'function',
    undefined as ((entry: AuditEntry) => void) | undefined,
    'Called with each entry of the audit log.'
  ),
  maxEventStreams: field('integer', 16, 'Maximum number of event streams (/x/events, /x/tail) open at a time.', {
    min: 0
  }),
  optionSource: field(
    'function',
    undefined as OptionOrigin | undefined,
    'Returns the source of an option of the broker in the app, for GET /x/options.'
  )
};

/** The checked options. */
export type ManagementSettings = FieldValues<typeof MANAGEMENT_OPTIONS> & { readonly prefix: readonly string[] };

/** Read the options of `managementApi`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readManagementOptions(given: ManagementOptions): ManagementSettings {
  const settings = readMountOptions(MANAGEMENT_OPTIONS, given, 'managementApi');
  return { ...settings, prefix: settings.prefix ?? REVISION_ROWS[settings.revision].prefixes };
}
