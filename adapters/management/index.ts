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
export { type ManagementApi, managementApi, managementApis } from './api.ts';
export type { CredentialFunction, Credentials, Identities, Scope } from './credentials.ts';
export type { OpenApiDocument } from './document.ts';
export type { GuardOptions } from './guard.ts';
export { type HealthOptions, healthHandler } from './health.ts';
export { type MetricsOptions, metricsHandler } from './metrics/handler.ts';
export {
  type ObservableInstrument,
  type ObservationResult,
  type ObservingMeter,
  observeMetrics
} from './metrics/observe.ts';
export type { HttpMounts, ManagementFetch } from './mounts.ts';
export type { ManagementOptions, OptionSource } from './options.ts';
export type { RevisionName } from './revisions.ts';
