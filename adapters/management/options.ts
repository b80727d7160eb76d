import {
  type Duration,
  InvalidInput,
  type OptionValues,
  readOptions,
  optionRow as row,
  type Size
} from '../../lib/index.ts';
import type { Credentials } from './credentials.ts';
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
   * What happens to paths below the prefix that the interface does not have: they are answered with 404 (default), or left to the host app
   * (`next`), which is asked before credentials are.
   */
  unmatched?: 404 | 'next';
  /** Statuses and codes as the documentation has them (default), or as the original products really answer (`original`). */
  errors?: 'documented' | 'original';
  /** Who may use the interface. Default `applications`: the applications of the broker. */
  credentials?: Credentials;
  /** Greatest `_limit` of a list, and its default. Default 10,000. */
  maxRowLimit?: number;
  /** Greatest size of a request body. Default 1 MB. */
  maxBodyBytes?: Size;
  /** Time from the first look at a request body to its end. Default 15 s. */
  bodyTimeout?: Duration;
}

const MANAGEMENT_OPTIONS = {
  revision: row('choice', 'later' as RevisionName, 'The revision that is served.', { choices: REVISIONS }),
  prefix: row('object', undefined as readonly string[] | undefined, 'Paths under which the interface is mounted.', {
    check: readPrefixes
  }),
  unmatched: row(
    'object',
    404 as 404 | 'next',
    'What happens to paths that the interface does not have: 404 or "next".',
    {
      check: (value, field) => {
        if (value === 404 || value === 'next') return value;
        throw new InvalidInput('OPTION_INVALID', field, '404 or "next"', value);
      }
    }
  ),
  errors: row('choice', 'documented' as 'documented' | 'original', 'Statuses and codes of errors.', {
    choices: ['documented', 'original']
  }),
  credentials: row('object', 'applications' as Credentials, 'Who may use the interface.', { check: readCredentials }),
  maxRowLimit: row('integer', 10_000, 'Greatest _limit of a list, and its default.', { min: 1, max: 10_000 }),
  maxBodyBytes: row('size', 1_048_576, 'Greatest size of a request body.', { unit: 'bytes', min: 1 }),
  bodyTimeout: row('duration', 15_000, 'Time for a request body.', { unit: 'ms', min: 1 })
};

/** Options after checks. */
export type ManagementSettings = OptionValues<typeof MANAGEMENT_OPTIONS> & { readonly prefixes: readonly string[] };

/** Read the options of `managementApi`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readManagementOptions(given: ManagementOptions): ManagementSettings {
  const settings = readOptions(MANAGEMENT_OPTIONS, given, 'managementApi') as unknown as ManagementSettings;
  return { ...settings, prefixes: settings.prefix ?? REVISION_ROWS[settings.revision].prefixes };
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

function readCredentials(value: unknown, field: string): Credentials {
  if (value === 'applications' || value === 'host' || typeof value === 'function') return value as Credentials;
  throw new InvalidInput('OPTION_INVALID', field, '"applications", "host" or a function', value);
}
