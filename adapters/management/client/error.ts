import { RestClientError } from '../../rest-client/index.ts';

/** A request to the management interface that was rejected or not answered. */
export class ManagementError extends RestClientError {
  /** The name of the class. */
  override readonly name = 'ManagementError';
}
