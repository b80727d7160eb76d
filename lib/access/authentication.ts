// One authentication asks the hooks once for each message of the client, and passes exactly one decision to
// `AuthOutcome` each time. Whether anonymous clients are admitted is read before the hooks run, so that the removal
// of a hook during its decision admits none. A failing hook refuses. Failed logins are limited by address, name and
// client id, and only wrong credentials count: a challenge, or an approval of a client that no hook knows, says
// nothing about them. `why` is for the operator and is never sent to the client.

import { BrokerError, ProtocolError } from '../base/errors.ts';
import {
  type Approval,
  type AuthenticateRequest,
  type Challenge,
  type HookRegistry,
  isThenable,
  type Refusal,
  readRefusal,
  type Verdict
} from '../events/hooks.ts';
import { Metric } from '../events/metrics.ts';
import { Question } from '../events/questions.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import type { AuthExchange } from '../session/life/lifecycle.ts';
import type { ConnectCode } from '../session/ports.ts';
import type { Session } from '../session/session.ts';
import type { SessionClient } from '../session/session-client.ts';
import type { AccessControl } from './access-control.ts';
import type { LoginAttempt } from './login-limit.ts';
import { loginSourceOf } from './network.ts';
import { scramUserOf } from './scram.ts';
import { refuseByScram } from './scram-login.ts';

type Answer = Verdict | Approval | Challenge;
type Decision = Approval | Refused | Challenge;

/** A refusal, with the code of its record; undefined: by its reason code. */
interface Refused extends Refusal {
  readonly code?: ConnectCode;
}

/** Called with the results of an authentication. */
interface AuthOutcome {
  /** Continue the exchange: send AUTH 0x18 with this data to the client. */
  challenge(data: Buffer | undefined): void;
  approved(approval: Approval): void;
  refused(refusal: Refusal, code: ConnectCode | undefined): void;
  /** Called when a hook has begun to decide asynchronously, and when it has answered. */
  waiting(isWaiting: boolean): void;
}

const FAILED: Refusal = {
  allow: false,
  reasonCode: ReasonCode.unspecifiedError,
  why: 'a hook or a source of authentication has failed'
};
/** The refusal after too many failed logins. */
const LIMITED: Refusal = {
  allow: false,
  reasonCode: ReasonCode.connectionRateExceeded,
  why: 'there were too many failed logins from this address within a minute (option limitFailedLogins)'
};
/** The approval of a client that no hook knows, when all such clients are admitted. */
const ADMITTED: Approval = { allow: true };
/**
 * Reason codes of refusals that mean wrong credentials. Others mean that the credentials could not be checked, or that they do not matter.
 */
const WRONG: readonly (number | undefined)[] = [ReasonCode.badUserNameOrPassword, ReasonCode.notAuthorized];
/** The reasons of refusals that do not come from a source, for the operator. */
const WHYS = {
  hook: 'a hook refuses the client',
  unknown: 'no hook and no source of authentication knows the client (option allowAnonymous)',
  method: 'no source of authentication has the authentication method of the client',
  expired: 'the approval of the client has expired already'
};

/** The request that is passed to the hooks. An object literal with a getter takes ten times as long to create. */
class HookRequest implements AuthenticateRequest {
  readonly client: SessionClient;
  readonly username: string | undefined;
  readonly password: Buffer | undefined;
  readonly method: string | undefined;
  readonly data: Buffer | undefined;
  readonly round: number;
  readonly isReauthentication: boolean;
  readonly state: Map<string, unknown>;
  readonly #cancellation: { readonly signal: AbortSignal };

  constructor(
    client: SessionClient,
    password: Buffer | undefined,
    data: Buffer | undefined,
    round: number,
    isReauthentication: boolean,
    state: Map<string, unknown>,
    cancellation: { readonly signal: AbortSignal }
  ) {
    this.client = client;
    this.username = client.username;
    this.password = password;
    this.method = client.agreement.authMethod;
    this.data = data;
    this.round = round;
    this.isReauthentication = isReauthentication;
    this.state = state;
    this.#cancellation = cancellation;
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal;
  }
}

/**
 * One authentication of a client, at CONNECT or by re-authentication. `begin` calls the authenticate hooks for the first time; `receive`
 * calls them with the answer of the client to a challenge [MQTT-4.12.0-2].
 */
export class Authentication implements AuthExchange {
  readonly method: string;
  readonly #session: Session;
  readonly #hooks: HookRegistry;
  readonly #access: AccessControl;
  readonly #outcome: AuthOutcome;
  readonly #password: Buffer | undefined;
  readonly #isReauthentication: boolean;
  readonly #state = new Map<string, unknown>();
  readonly #cancellation = new Question();
  #round = 0;
  #isWaiting = false;
  #hasChallenged = false;
  /** The user name in the first message of SCRAM. The CONNECT may have none, or another one. */
  #scramUser: string | undefined = undefined;

  constructor(
    session: Session,
    hooks: HookRegistry,
    access: AccessControl,
    password: Buffer | undefined,
    isReauthentication: boolean,
    outcome: AuthOutcome
  ) {
    this.method = session.client.agreement.authMethod ?? '';
    this.#session = session;
    this.#hooks = hooks;
    this.#access = access;
    this.#password = password;
    this.#isReauthentication = isReauthentication;
    this.#outcome = outcome;
  }

  /** True while a hook has not answered yet. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** This object, if the client may send AUTH. */
  get exchange(): this | undefined {
    return this.#hasChallenged ? this : undefined;
  }

  begin(data: Buffer | undefined): void {
    this.#ask(data);
  }

  receive(data: Buffer | undefined): void {
    this.#round++;
    this.#ask(data);
  }

  /** Abort the signal of the hooks, because the connection is closed. */
  abort(reason: Error): void {
    this.#cancellation.abort(reason);
  }

  #ask(data: Buffer | undefined): void {
    const decision = this.#limited(data);
    if (!isThenable(decision)) {
      this.#tell(decision);
      return;
    }
    this.#isWaiting = true;
    this.#outcome.waiting(true);
    decision.then((value) => {
      this.#isWaiting = false;
      try {
        this.#tell(value);
      } catch (error) {
        if (error instanceof ProtocolError) this.#session.fail(error);
        else this.#session.failInternally(error, 'authentication');
      }
      this.#outcome.waiting(false);
    });
  }

  /** Ask the hooks, within the limit of failed logins. This method never throws or rejects. */
  #limited(data: Buffer | undefined): Decision | Promise<Decision> {
    const { client, ports } = this.#session;
    if (this.#round === 0) this.#scramUser = scramUserOf(this.method, data);
    const attempt = this.#attempt(client);
    if (attempt === undefined) return this.#askHooks(data);
    const refused = (error: unknown): Decision => {
      if (!(error instanceof BrokerError) || error.code !== 'LOGINS_LIMITED') throw error;
      ports.metrics.counts[Metric.clientAuthFailure]++;
      return LIMITED;
    };
    try {
      // the connection may have been closed while the login waited
      const ask = () => (this.#cancellation.isAborted ? FAILED : this.#askHooks(data));
      const decision = this.#access.loginLimit.check<Decision>(attempt, ask, isRight);
      return isThenable(decision) ? decision.catch(refused) : decision;
    } catch (error) {
      return refused(error);
    }
  }

  /** @returns undefined if no limit applies: a client without a password does not guess, and one without an address is local */
  #attempt({ agreement, clientId, username, transportInfo }: SessionClient): LoginAttempt | undefined {
    const { remoteAddress } = transportInfo;
    const secret = this.#password;
    if (remoteAddress === undefined || !agreement.zone.limitFailedLogins) return undefined;
    if (secret === undefined && agreement.authMethod === undefined) return undefined;
    const names = new Set([this.#scramUser, username].filter((name) => name !== undefined));
    const ids = [...[...names].map((name) => `u ${name}`), `c ${clientId}`];
    return { source: loginSourceOf(remoteAddress), ids, secret };
  }

  #askHooks(data: Buffer | undefined): Decision | Promise<Decision> {
    const { client } = this.#session;
    const cancellation = this.#cancellation;
    const request: AuthenticateRequest = new HookRequest(
      client,
      this.#password,
      data,
      this.#round,
      this.#isReauthentication,
      this.#state,
      cancellation
    );
    // Decided before the hooks run: the removal of a hook during its decision must not admit anonymous clients.
    const admits = admitsAnonymous(client.agreement.zone, this.#hooks);
    const answer = this.#hooks.first<AuthenticateRequest, Answer>(
      'authenticate',
      this.#hooks.authenticate,
      request,
      FAILED,
      client,
      cancellation
    );
    const decide = (value: Answer) => this.#decide(value ?? refuseByScram(request, this.#access.inventedScram), admits);
    return isThenable(answer) ? answer.then(decide) : decide(answer);
  }

  /** @param isAnonymous the client is admitted without a user name if no hook decides */
  #count(answer: Answer, isAnonymous: boolean): void {
    const { counts } = this.#session.ports.metrics;
    if (answer === undefined) {
      counts[Metric.clientAuthIgnore]++;
      if (isAnonymous) counts[Metric.clientAuthAnonymous]++;
    } else if (answer === true || (answer !== false && 'allow' in answer && answer.allow === true))
      counts[Metric.clientAuthSuccess]++;
    else if (answer === false || !('challenge' in answer)) counts[Metric.clientAuthFailure]++;
  }

  /** @param admits whether the client is admitted if no hook decides */
  #decide(answer: Answer, admits: boolean): Decision {
    const { username, agreement } = this.#session.client;
    const { authMethod } = agreement;
    this.#count(answer, admits && authMethod === undefined && username === undefined);
    if (answer === true) return { allow: true };
    if (answer === false) return refusal(refusalCode(username), WHYS.hook);
    if (answer === undefined) {
      if (authMethod !== undefined) return refusal(ReasonCode.badAuthenticationMethod, WHYS.method); // [MQTT-4.12.0-1]
      return admits ? ADMITTED : refusal(refusalCode(username), WHYS.unknown);
    }
    if ('challenge' in answer) return authMethod === undefined ? this.#failed() : answer; // [MQTT-4.12.0-6]
    if (answer === FAILED) return this.#failed();
    if (answer.allow !== true) {
      const read = readRefusal(answer, refusalCode(username));
      return { ...read, code: answer.isExpired === true ? 'token_expired' : codeOf(read.reasonCode) };
    }
    return this.#isExpired(answer)
      ? { ...refusal(ReasonCode.notAuthorized, WHYS.expired), code: 'token_expired' }
      : answer;
  }

  /** The refusal after a failure of the hook or the source that was asked last. */
  #failed(): Refused {
    const { asked } = this.#cancellation;
    const origin = asked && this.#hooks.originOf(asked);
    const who = origin !== undefined && 'source' in origin ? `the source "${origin.source}"` : 'a hook';
    return { ...FAILED, why: `${who} has failed, or gave no answer in time` };
  }

  #tell(decision: Decision): void {
    if ('challenge' in decision) {
      this.#hasChallenged = true;
      this.#outcome.challenge(decision.challenge);
    } else if (decision.allow) this.#outcome.approved(decision);
    else this.#outcome.refused(decision, decision.code);
  }

  #isExpired({ expiresAt = Infinity }: Approval): boolean {
    return this.#session.ports.clock.now() >= expiresAt;
  }
}

function refusal(reasonCode: number, why: string): Refused {
  const code = codeOf(reasonCode);
  return code === undefined ? { allow: false, reasonCode, why } : { allow: false, reasonCode, why, code };
}

function codeOf(reasonCode: number): ConnectCode | undefined {
  return WRONG.includes(reasonCode) ? 'wrong_password' : undefined;
}

/** True if a decision accepts the credentials. */
function isRight(decision: Decision): boolean | undefined {
  if ('challenge' in decision || decision === ADMITTED) return undefined;
  return decision.allow || (WRONG.includes(decision.reasonCode) ? false : undefined);
}

/**
 * True if a connection needs no authentication. In a zone with `bypassAuthPlugins`, the start value of the chain decides: `allowAnonymous`.
 * @returns undefined if it is refused without authentication
 */
export function isTrusted(
  { authenticated }: TransportInfo,
  { bypassAuthPlugins, allowAnonymous = true }: Zone
): boolean | undefined {
  if (authenticated === true) return true;
  if (bypassAuthPlugins) return allowAnonymous || undefined;
  return false;
}

/**
 * True if clients are admitted when no authenticate hook decides. If a hook or a source decides, only the option `allowAnonymous` admits
 * them.
 */
export function admitsAnonymous({ allowAnonymous }: Zone, hooks: HookRegistry): boolean {
  return allowAnonymous ?? !hooks.decides('authenticate');
}

function refusalCode(username: string | undefined): number {
  return username === undefined ? ReasonCode.notAuthorized : ReasonCode.badUserNameOrPassword;
}
