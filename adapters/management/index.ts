/** The public names of `embermq/management`. */

export type {
  CredentialFunction,
  Credentials,
  FastifyInstance,
  FastifyPlugin,
  FastifyReply,
  FastifyRequest,
  FetchFacts,
  HttpMounts,
  Identities,
  Json,
  KoaContext,
  KoaMiddleware,
  MountedFetch as ManagementFetch,
  MountOptions,
  NodeHandler,
  OpenApiDocument,
  Scope
} from '../rest/index.ts';
export { type ManagementApi, managementApi, managementApis } from './api.ts';
export type { GuardOptions } from './guard.ts';
export { type HealthOptions, healthHandler } from './health.ts';
export { type MetricsOptions, metricsHandler } from './metrics/handler.ts';
export {
  type ObservableInstrument,
  type ObservationResult,
  type ObservingMeter,
  observeMetrics
} from './metrics/observe.ts';
export type {
  ManagementOptions,
  OptionOrigin,
  /** @deprecated Use `OptionOrigin`. */
  OptionOrigin as OptionSource
} from './options.ts';
export type { RevisionName } from './revisions.ts';
export { observeSpans, type SpansOptions } from './spans/observe.ts';
export type {
  SpanAttributes,
  SpanContext,
  SpanParent,
  SpanStart,
  SpanTime,
  SpanTracer,
  StartedSpan,
  TraceState
} from './spans/tracer.ts';
