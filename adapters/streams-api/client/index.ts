/** The public names of `embermq/streams-api/client`. */

export type { AnyRequest } from '../../rest-client/index.ts';
export { StreamsClient, type StreamsClientOptions } from './client.ts';
export { StreamsError } from './error.ts';
export type { StreamsOperations } from './operations.ts';
export type { StreamsArguments, StreamsData, StreamsInput, StreamsPath, StreamsRequestSettings } from './types.ts';
