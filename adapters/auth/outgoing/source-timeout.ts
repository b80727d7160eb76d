import { BrokerError } from '../../../lib/index.ts';

/** The error of a source that takes too long. @param what the server, for the message */
export function sourceTimeout(what: string, ms: number): BrokerError {
  return new BrokerError('SOURCE_TIMEOUT', `${what} did not answer within ${ms} ms`);
}
