/** The public names of `embermq/dashboard`. */

export type {
  FastifyInstance,
  FastifyPlugin,
  FastifyReply,
  FastifyRequest,
  FetchFacts,
  HttpMounts,
  KoaContext,
  KoaMiddleware,
  MountedFetch,
  MountOptions,
  NodeHandler,
  Scope
} from '../rest/index.ts';
export { type Dashboard, dashboard } from './dashboard.ts';
export type { DashboardLogin, DashboardLoginFunction, DashboardOptions } from './options.ts';
