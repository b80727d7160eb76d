import type { Approval, AuthenticateRequest, Challenge, Refusal } from '../events/hooks.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import { isScramMethod, type ScramCredentials, ScramExchange, ScramFailure, type ScramMethod } from './scram.ts';

/** What a source knows of a user: `undefined`: nothing; `none`: the user, but no SCRAM credentials of the method. */
export type ScramLookup = (
  username: string,
  method: ScramMethod
) => { readonly credentials: ScramCredentials; readonly isSuperuser: boolean } | 'none' | undefined;

/** An exchange in progress, as the state of the request keeps it. */
interface Progress {
  readonly exchange: ScramExchange;
  readonly isSuperuser: boolean;
}

/**
 * Authenticate a client by SCRAM, if its CONNECT asks for that: one round for each message of the client.
 * @param source name of the source, which finds the exchange of the earlier rounds by it
 * @returns undefined if the client does not use SCRAM, or the source does not know the user
 */
export function authenticateByScram(
  source: string,
  request: AuthenticateRequest,
  lookUp: ScramLookup
): Approval | Challenge | Refusal | undefined {
  const { method, data, round, state } = request;
  if (!isScramMethod(method)) return undefined;
  const key = `scram:${source}`;
  try {
    if (round > 0) {
      const progress = state.get(key) as Progress | undefined;
      return progress && finish(progress, data);
    }
    const exchange = new ScramExchange(data);
    const known = lookUp(exchange.username, method);
    if (known === undefined) return undefined;
    if (known === 'none') return { allow: false, reasonCode: ReasonCode.badAuthenticationMethod };
    state.set(key, { exchange, isSuperuser: known.isSuperuser } satisfies Progress);
    return { challenge: exchange.challenge(known.credentials) };
  } catch (error) {
    if (!(error instanceof ScramFailure)) throw error;
    const { badUserNameOrPassword, protocolError } = ReasonCode;
    const reasonCode = error.isMalformed ? protocolError : badUserNameOrPassword;
    return { allow: false, reasonCode, reasonString: error.message };
  }
}

function finish({ exchange, isSuperuser }: Progress, data: Buffer | undefined): Approval {
  return { allow: true, data: exchange.finish(data), username: exchange.username, isSuperuser };
}
