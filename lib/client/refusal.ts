import { reasonName } from '../packets/reason-codes.ts';
import type { Properties } from '../packets/types.ts';
import { Refused } from './options.ts';

/** Create the error for a reason code of the server. @param what the action of the server, for the message */
export function refusal(code: string, what: string, reasonCode: number, properties: Properties): Refused {
  const { reasonString } = properties;
  const suffix = reasonString === undefined ? '' : ` (${reasonString})`;
  return new Refused(code, `${what}: ${reasonName(reasonCode)}${suffix}`, reasonCode, properties);
}
