/** The public names of `embermq/streams-api/client`. */

export type { AnyRequest, SendFetch } from '../../rest-client/index.ts';
export { RestClientError } from '../../rest-client/index.ts';
export { StreamsClient, type StreamsClientOptions } from './client.ts';
export { StreamsError } from './error.ts';
/** The records of the interface. */
export type * as StreamsTypes from './operations.ts';
export type { StreamsOperations } from './operations.ts';
export type {
  StreamsArguments,
  StreamsData,
  StreamsInput,
  StreamsMethod,
  StreamsOperation,
  StreamsPath,
  StreamsRequestSettings
} from './types.ts';
