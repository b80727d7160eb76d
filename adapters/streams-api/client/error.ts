import { RestClientError } from '../../rest-client/index.ts';

/** A request to the interface of streams that was rejected or not answered. `code` is 1002 if something does not exist. */
export class StreamsError extends RestClientError {
  /** The name of the class. */
  override readonly name = 'StreamsError';
}
