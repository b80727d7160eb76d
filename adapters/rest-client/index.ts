/** What clients of REST interfaces have in common. It runs wherever there is `fetch`. For adapters. */

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
