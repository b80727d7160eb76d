/** The public names of `embermq/management`. */

export type { FetchFacts, NodeHandler } from '../rest/index.ts';
export { type ManagementApi, managementApi } from './api.ts';
export type { Credentials, Scope } from './credentials.ts';
export type { ManagementOptions } from './options.ts';
export type { RevisionName } from './revisions.ts';
