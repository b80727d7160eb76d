/** Common parts of clients of REST interfaces. They run wherever `fetch` is available. For adapters. */

export { type ErrorFacts, RestClientError } from './error.ts';
export {
  type AnyRequest,
  basicAuthorization,
  RequestSender,
  reasonOf,
  type SenderOptions,
  type SendFetch
} from './sender.ts';
export { filledPath, isRelative } from './target.ts';
