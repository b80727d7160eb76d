import type { AuthorizeRequest } from '../../../lib/index.ts';
import type { Limits } from './limits.ts';

/** The answer about a topic if the server has failed. The broker does not cache it, and asks again. */
export function undecided(request: AuthorizeRequest, onError: Limits['onError']): false | undefined {
  request.undecided();
  return onError === 'ignore' ? undefined : false;
}
