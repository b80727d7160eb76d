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
import { ReasonCode } from '../packets/reason-codes.ts';
import type { TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import type { AuthExchange, Session } from '../session/session.ts';

type Answer = Verdict | Approval | Challenge;

/** What an exchange comes to. */
export interface AuthOutcome {
  /** One more round wants AUTH 0x18 with this data. */
  challenge(data: Buffer | undefined): void;
  approved(approval: Approval): void;
  refused(refusal: Refusal): void;
  /** A hook is at work, or has answered. */
  waiting(isWaiting: boolean): void;
}

const FAILED: Refusal = { allow: false, reasonCode: ReasonCode.unspecifiedError };

/**
 * One authentication: of a CONNECT with or without a method, or of a client that re-authenticates. `begin` asks the hooks for the
 * first time, `receive` with what the client answered to a challenge [MQTT-4.12.0-2].
 */
export class Authentication implements AuthExchange {
  readonly method: string;
  readonly #session: Session;
  readonly #hooks: HookRegistry;
  readonly #outcome: AuthOutcome;
  readonly #request: { -readonly [K in keyof AuthenticateRequest]: AuthenticateRequest[K] };
  readonly #abort = new AbortController();
  #isWaiting = false;

  constructor(
    session: Session,
    hooks: HookRegistry,
    password: Buffer | undefined,
    isReauthentication: boolean,
    outcome: AuthOutcome
  ) {
    this.method = session.authMethod ?? '';
    this.#session = session;
    this.#hooks = hooks;
    this.#outcome = outcome;
    this.#request = {
      client: session,
      username: session.username,
      password,
      method: session.authMethod,
      data: undefined,
      round: 0,
      isReauthentication,
      state: new Map(),
      signal: this.#abort.signal
    };
  }

  /** A hook has not answered yet. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  begin(data: Buffer | undefined): void {
    this.#ask(data);
  }

  receive(data: Buffer | undefined): void {
    this.#request.round++;
    this.#ask(data);
  }

  /** The connection has gone. */
  abort(reason: Error): void {
    this.#abort.abort(reason);
  }

  #ask(data: Buffer | undefined): void {
    this.#request.data = data;
    const request = { ...this.#request };
    // decided when the hooks are asked: one that is removed while it works must not admit anybody
    const admits = admitsAnonymous(this.#session.zoneSettings, this.#hooks);
    const answer = this.#hooks.first<AuthenticateRequest, Answer>(
      'authenticate',
      this.#hooks.authenticate,
      request,
      FAILED,
      this.#session,
      this.#abort
    );
    if (!isThenable(answer)) {
      this.#settle(answer, admits);
      return;
    }
    this.#isWaiting = true;
    this.#outcome.waiting(true);
    answer.then((value) => {
      this.#isWaiting = false;
      try {
        this.#settle(value, admits);
      } catch (error) {
        if (error instanceof ProtocolError) this.#session.fail(error);
        else this.#session.failInternally(error, 'authentication');
      }
      this.#outcome.waiting(false);
    });
  }

  /** @param admits what holds where no hook has an opinion */
  #settle(answer: Answer, admits: boolean): void {
    const { username, authMethod } = this.#session;
    if (answer === true) this.#outcome.approved({ allow: true });
    else if (answer === false) this.#outcome.refused({ allow: false, reasonCode: refusalCode(username) });
    else if (answer === undefined) {
      if (authMethod !== undefined)
        this.#outcome.refused({ allow: false, reasonCode: ReasonCode.badAuthenticationMethod }); // [MQTT-4.12.0-1]
      else if (admits) this.#outcome.approved({ allow: true });
      else this.#outcome.refused({ allow: false, reasonCode: refusalCode(username) });
    } else if ('challenge' in answer) {
      if (authMethod === undefined)
        this.#outcome.refused(FAILED); // [MQTT-4.12.0-6]
      else this.#outcome.challenge(answer.challenge);
    } else if (answer.allow === true) this.#outcome.approved(answer);
    else this.#outcome.refused(readRefusal(answer, refusalCode(username)));
  }
}

/** Does this connection need no authentication at all? */
export function isTrusted(transportInfo: TransportInfo, { bypassAuthPlugins }: Zone): boolean {
  return transportInfo.authenticated === true || bypassAuthPlugins;
}

/** Is a client let in on whom no authenticate hook has an opinion? Once a hook is registered, only where the option says so. */
export function admitsAnonymous({ allowAnonymous }: Zone, { authenticate }: HookRegistry): boolean {
  return allowAnonymous ?? authenticate.length === 0;
}

function refusalCode(username: string | undefined): number {
  return username === undefined ? ReasonCode.notAuthorized : ReasonCode.badUserNameOrPassword;
}
