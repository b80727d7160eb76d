import { unknownKey } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import type { DashboardOptions } from '../../dashboard/index.ts';
import type { HealthOptions, ManagementOptions, MetricsOptions } from '../../management/index.ts';
import { readCredentials } from '../../rest/index.ts';
import { SERVED } from './credentials.ts';

/**
 * The content of an HTTP port: the management interface without its earlier revision, only the earlier revision,
 * stream rules, or the console.
 */
export type HttpKind = 'later' | 'earlier' | 'rules' | 'dashboard';

/** The option `dashboard` of the config file. */
export type ServedDashboardOptions = Pick<
  DashboardOptions,
  'bodyTimeout' | 'hosts' | 'maxBodyBytes' | 'proxyHeader' | 'trustedProxies' | 'viewerPayloads'
>;

/** The options of `dashboard` that are determined by the port, or need code. */
const DECIDED_OF_DASHBOARD = ['prefix', 'unmatched', 'login', 'loginUrl', 'plugins', 'optionSource', 'audit'];

/** The option `management` of the config file. */
export interface ServedOptions extends Omit<ManagementOptions, 'revision' | 'prefix' | 'unmatched'> {
  readonly metrics?: Omit<MetricsOptions, 'prefix'>;
  readonly health?: Omit<HealthOptions, 'prefix'>;
}

/** The options that are determined by the ports. */
const DECIDED = ['revision', 'prefix', 'unmatched'];
const NESTED = ['metrics', 'health'] as const;

/**
 * Check the form of the option `management`; the functions of `embermq/management` check its values.
 * @param place the place of the option, for messages
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function readServedOptions(value: unknown, place: string): ServedOptions {
  if (value === undefined) return {};
  for (const [given, field] of [
    [value, place],
    ...NESTED.map((name) => [(value as ServedOptions)?.[name] ?? {}, `${place}.${name}`] as const)
  ] as const) {
    if (typeof given !== 'object' || given === null || Array.isArray(given))
      throw new InvalidInput('OPTION_INVALID', field, 'an object of options', given);
    const decided = DECIDED.find((name) => name in given);
    if (decided !== undefined) throw unknownKey(decided, [], field);
    const { credentials } = given as ServedOptions;
    if (credentials !== undefined) readCredentials(credentials, `${field}.credentials`, SERVED);
  }
  return value as ServedOptions;
}

/**
 * Check the form of the option `dashboard`; `embermq/dashboard` checks its values.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function readServedDashboardOptions(value: unknown, place: string): ServedDashboardOptions {
  if (value === undefined) return {};
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InvalidInput('OPTION_INVALID', place, 'an object of options', value);
  const decided = DECIDED_OF_DASHBOARD.find((name) => name in value);
  if (decided !== undefined) throw unknownKey(decided, [], place);
  return value;
}
