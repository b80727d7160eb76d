import type { Approval, AuthenticateRequest, Challenge, Refusal } from '../events/hooks.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import {
  type InventedScram,
  isScramMethod,
  type ScramCredentials,
  ScramExchange,
  ScramFailure,
  type ScramMethod
} from './scram.ts';

/** The knowledge of a source about a user: `undefined`: none; `none`: the user exists, but has no SCRAM credentials of the method. */
export type ScramLookup = (
  username: string,
  method: ScramMethod
) =>
  | {
      /** The credentials of the method. */
      readonly credentials: ScramCredentials;
      /** The client is exempt from access control. */
      readonly isSuperuser: boolean;
    }
  | 'none'
  | undefined;

/** An exchange in progress, as it is kept in the state of the request. */
interface Progress {
  readonly exchange: ScramExchange;
  readonly isSuperuser: boolean;
}

/** The key in the state of a request: a source supports SCRAM, but does not know the user. */
const UNKNOWN = 'scram:unknown';
const UNKNOWN_USER = 'no source with SCRAM knows the user';
/** The key in the state of a request: the exchange with invented credentials. */
const INVENTED = 'scram:invented';

/**
 * Authenticate a client by SCRAM if its CONNECT asks for it, with one round for each message of the client.
 *
 * A user without credentials of the method is refused with 0x8C. If no source knows the user, the broker continues with invented
 * credentials and refuses at the end, as for a wrong password.
 * @param source name of the source, which finds the exchange of the earlier rounds by it
 * @returns undefined if the client does not use SCRAM, or the source does not know the user
 */
export function authenticateByScram(
  source: string,
  request: AuthenticateRequest,
  lookUp: ScramLookup
): Approval<never> | Challenge | Refusal | undefined {
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
    if (known === undefined) {
      state.set(UNKNOWN, true);
      return undefined;
    }
    if (known === 'none')
      return {
        allow: false,
        reasonCode: ReasonCode.badAuthenticationMethod,
        why: `the user has no credentials for ${method}`
      };
    state.set(key, { exchange, isSuperuser: known.isSuperuser } satisfies Progress);
    return { challenge: exchange.challenge(known.credentials) };
  } catch (error) {
    return refusalFor(error);
  }
}

/**
 * Continue a SCRAM authentication whose user no source knows, and refuse it at the end as for a wrong password, so that the answers do not
 * reveal which users exist.
 * @returns undefined if no source supports SCRAM, or one knows the user
 */
export function refuseByScram(request: AuthenticateRequest, invented: InventedScram): Challenge | Refusal | undefined {
  const { method, data, round, state } = request;
  if (!isScramMethod(method) || !state.has(UNKNOWN)) return undefined;
  try {
    if (round === 0) {
      const exchange = new ScramExchange(data);
      state.set(INVENTED, exchange);
      return { challenge: exchange.challenge(invented.credentialsOf(exchange.username, method)) };
    }
    (state.get(INVENTED) as ScramExchange | undefined)?.finish(data); // throws, because no password fits the invented keys
    return { allow: false, reasonCode: ReasonCode.badUserNameOrPassword, why: UNKNOWN_USER };
  } catch (error) {
    return { ...refusalFor(error), why: UNKNOWN_USER };
  }
}

function refusalFor(error: unknown): Refusal {
  if (!(error instanceof ScramFailure)) throw error;
  return { allow: false, reasonCode: error.reasonCode, reasonString: error.message };
}

function finish({ exchange, isSuperuser }: Progress, data: Buffer | undefined): Approval<never> {
  return { allow: true, data: exchange.finish(data), username: exchange.username, isSuperuser };
}
