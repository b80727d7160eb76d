/** The public names of `embermq/streams-api`. */

export type {
  FetchFacts,
  HttpMounts,
  Json,
  MountedFetch,
  MountOptions,
  NodeHandler,
  OpenApiDocument
} from '../rest/index.ts';
export { type StreamsHttp, streamsApi } from './api.ts';
export type { StreamsApiOptions } from './options.ts';
