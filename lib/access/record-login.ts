import type { Approval, AuthenticateRequest, Challenge, Refusal } from '../events/hooks.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { CredentialRecords } from './credential-records.ts';
import { authenticateByScram } from './scram-login.ts';

/** The records that are searched for a client. */
interface LoginRecords {
  readonly clientIds: CredentialRecords;
  readonly usernames: CredentialRecords;
  readonly logins: CredentialRecords;
}

/**
 * Authenticate a client by the records of its client id and its user name. The password must fit one of them. A client id with a record
 * needs a password; with enhanced authentication the client is refused.
 * @returns undefined if there is no record of either name
 */
export function authenticateByRecords(
  { clientIds, usernames, logins }: LoginRecords,
  request: AuthenticateRequest
): boolean | Approval<never> | Challenge | Refusal | undefined {
  const { client, username, password, method } = request;
  if (method !== undefined && clientIds.get(client.clientId) === undefined)
    return authenticateByScram('records', request, (name, asked) => {
      const found = logins.scram(name, asked) ?? usernames.scram(name, asked);
      return found ?? (logins.get(name) !== undefined || usernames.get(name) !== undefined ? 'none' : undefined);
    });
  if (method !== undefined)
    return {
      allow: false,
      reasonCode: ReasonCode.badAuthenticationMethod,
      why: 'records: the client id has a password, and the client uses enhanced authentication'
    };
  const byClientId = clientIds.verify(client.clientId, password);
  const byName = username === undefined ? undefined : usernames.verify(username, password);
  const byLogin = username === undefined ? undefined : logins.verify(username, password);
  if (byClientId === undefined && byName === undefined && byLogin === undefined) return undefined;
  const isRight = byClientId?.isRight === true || byName?.isRight === true || byLogin?.isRight === true;
  if (!isRight)
    return {
      allow: false,
      reasonCode: ReasonCode.badUserNameOrPassword,
      why: `records: the password is ${password === undefined ? 'missing' : 'wrong'}`
    };
  const isSuperuser = byClientId?.isSuperuser === true || byName?.isSuperuser === true || byLogin?.isSuperuser === true;
  return isSuperuser ? { allow: true, isSuperuser } : true;
}
