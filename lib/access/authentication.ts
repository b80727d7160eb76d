import { Cancellation } from '../base/cancellation.ts';
import { ProtocolError } from '../base/errors.ts';
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
import { ReasonCode } from '../packets/reason-codes.ts';
import type { TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import type { AuthExchange } from '../session/lifecycle.ts';
import type { Session } from '../session/session.ts';
import type { SessionClient } from '../session/session-client.ts';
import type { InventedScram } from './scram.ts';
import { refuseByScram } from './scram-login.ts';

type Answer = Verdict | Approval | Challenge;

/** Called with the results of an authentication. */
interface AuthOutcome {
  /** The exchange continues: send AUTH 0x18 with this data to the client. */
  challenge(data: Buffer | undefined): void;
  approved(approval: Approval): void;
  refused(refusal: Refusal): void;
  /** A hook has begun to decide asynchronously, or has answered. */
  waiting(isWaiting: boolean): void;
}

const FAILED: Refusal = {
  allow: false,
  reasonCode: ReasonCode.unspecifiedError,
  why: 'a hook or a source of authentication has failed'
};
/** The reasons of refusals that no source gives, for the operator. */
const WHYS = {
  hook: 'a hook refuses the client',
  unknown: 'no hook and no source of authentication knows the client (option allowAnonymous)',
  method: 'no source of authentication has the authentication method of the client',
  expired: 'the approval of the client has expired already'
};

/** What the hooks are asked. An object literal with a getter takes ten times as long to make. */
class HookRequest implements AuthenticateRequest {
  readonly client: SessionClient;
  readonly username: string | undefined;
  readonly password: Buffer | undefined;
  readonly method: string | undefined;
  readonly data: Buffer | undefined;
  readonly round: number;
  readonly isReauthentication: boolean;
  readonly state: Map<string, unknown>;
  readonly #cancellation: Cancellation;

  constructor(
    client: SessionClient,
    password: Buffer | undefined,
    data: Buffer | undefined,
    round: number,
    isReauthentication: boolean,
    state: Map<string, unknown>,
    cancellation: Cancellation
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
 * One authentication of a client, at CONNECT or by re-authentication. `begin` calls the authenticate hooks for the first time; `receive` calls
 * them with the answer of the client to a challenge [MQTT-4.12.0-2].
 */
export class Authentication implements AuthExchange {
  readonly method: string;
  readonly #session: Session;
  readonly #hooks: HookRegistry;
  readonly #invented: InventedScram;
  readonly #outcome: AuthOutcome;
  readonly #password: Buffer | undefined;
  readonly #isReauthentication: boolean;
  readonly #state = new Map<string, unknown>();
  readonly #cancellation = new Cancellation();
  #round = 0;
  #isWaiting = false;
  #hasChallenged = false;

  /** @param invented credentials for users that do not exist */
  constructor(
    session: Session,
    hooks: HookRegistry,
    invented: InventedScram,
    password: Buffer | undefined,
    isReauthentication: boolean,
    outcome: AuthOutcome
  ) {
    this.method = session.client.agreement.authMethod ?? '';
    this.#session = session;
    this.#hooks = hooks;
    this.#invented = invented;
    this.#password = password;
    this.#isReauthentication = isReauthentication;
    this.#outcome = outcome;
  }

  /** A hook has not answered yet. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Itself, when the client may send AUTH. */
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
    if (!isThenable(answer)) {
      this.#settle(answer ?? refuseByScram(request, this.#invented), admits);
      return;
    }
    this.#isWaiting = true;
    this.#outcome.waiting(true);
    answer.then((value) => {
      this.#isWaiting = false;
      try {
        this.#settle(value ?? refuseByScram(request, this.#invented), admits);
      } catch (error) {
        if (error instanceof ProtocolError) this.#session.fail(error);
        else this.#session.failInternally(error, 'authentication');
      }
      this.#outcome.waiting(false);
    });
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
  #settle(answer: Answer, admits: boolean): void {
    const { username, agreement } = this.#session.client;
    const { authMethod } = agreement;
    this.#count(answer, admits && authMethod === undefined && username === undefined);
    if (answer === true) this.#outcome.approved({ allow: true });
    else if (answer === false) this.#refuse(refusalCode(username), WHYS.hook);
    else if (answer === undefined) {
      if (authMethod !== undefined)
        this.#refuse(ReasonCode.badAuthenticationMethod, WHYS.method); // [MQTT-4.12.0-1]
      else if (admits) this.#outcome.approved({ allow: true });
      else this.#refuse(refusalCode(username), WHYS.unknown);
    } else if ('challenge' in answer) {
      if (authMethod === undefined)
        this.#outcome.refused(FAILED); // [MQTT-4.12.0-6]
      else {
        this.#hasChallenged = true;
        this.#outcome.challenge(answer.challenge);
      }
    } else if (answer.allow === true && !this.#isExpired(answer)) this.#outcome.approved(answer);
    else if (answer.allow === true) this.#refuse(ReasonCode.notAuthorized, WHYS.expired);
    else this.#outcome.refused(readRefusal(answer, refusalCode(username)));
  }

  #refuse(reasonCode: number, why: string): void {
    this.#outcome.refused({ allow: false, reasonCode, why });
  }

  #isExpired({ expiresAt = Infinity }: Approval): boolean {
    return this.#session.ports.clock.now() >= expiresAt;
  }
}

/**
 * Whether a connection needs no authentication. In a zone with `bypassAuthPlugins`, the start value of the chain decides: `allowAnonymous`.
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

/** Whether clients are admitted if no authenticate hook decides. If a hook or a source decides, only the option `allowAnonymous` admits them. */
export function admitsAnonymous({ allowAnonymous }: Zone, hooks: HookRegistry): boolean {
  return allowAnonymous ?? !hooks.decides('authenticate');
}

function refusalCode(username: string | undefined): number {
  return username === undefined ? ReasonCode.notAuthorized : ReasonCode.badUserNameOrPassword;
}
