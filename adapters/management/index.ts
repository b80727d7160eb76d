/** The public names of `embermq/management`. */

export type {
  FastifyInstance,
  FastifyPlugin,
  FastifyReply,
  FastifyRequest,
  FetchFacts,
  KoaContext,
  KoaMiddleware,
  NodeHandler
} from '../rest/index.ts';
export { type ManagementApi, type ManagementFetch, managementApi, managementApis } from './api.ts';
export type { CredentialFunction, Credentials, Identities, Scope } from './credentials.ts';
export type { ManagementOptions } from './options.ts';
export type { RevisionName } from './revisions.ts';
