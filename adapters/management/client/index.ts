/** The public names of `embermq/management/client`. */

export { type AnyRequest, RestClientError } from '../../rest-client/index.ts';
export { isStream } from './answers.ts';
export { ManagementClient, type ManagementClientOptions } from './client.ts';
/** The records of the revision `earlier`. */
export type * as EarlierTypes from './earlier.ts';
export type { EarlierOperations } from './earlier.ts';
export { ManagementError } from './error.ts';
export type { HostedOperations } from './hosted.ts';
/** The records of the revisions `later` and `hosted`. */
export type * as LaterTypes from './later.ts';
export type { LaterOperations } from './later.ts';
export type {
  ArgumentsOf,
  ClientMethod,
  ClientRevision,
  DataOf,
  InputOf,
  ListOf,
  OperationOf,
  Operations,
  Page,
  PageMeta,
  PathOf,
  RequestSettings,
  RowOf
} from './types.ts';
