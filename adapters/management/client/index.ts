/** The public names of `embermq/management/client`. */

export type { AnyRequest } from '../../rest-client/index.ts';
export { isStream } from './answers.ts';
export { ManagementClient, type ManagementClientOptions } from './client.ts';
export type { EarlierOperations } from './earlier.ts';
export { ManagementError } from './error.ts';
export type { HostedOperations } from './hosted.ts';
export type { LaterOperations } from './later.ts';
export type {
  ArgumentsOf,
  ClientRevision,
  DataOf,
  InputOf,
  ListOf,
  Operations,
  Page,
  PageMeta,
  PathOf,
  RequestSettings,
  RowOf
} from './types.ts';
