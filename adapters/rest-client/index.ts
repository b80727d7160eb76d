/** Common parts of clients of REST interfaces. They run wherever `fetch` is available. For adapters. */

export {
  type AnyRequest,
  basicAuthorization,
  type ErrorFacts,
  RequestSender,
  reasonOf,
  type SenderOptions,
  type SendFetch
} from './sender.ts';
export { filledPath, isRelative } from './target.ts';
