import type { AuthSource, SourceContext } from '../../../lib/adapter.ts';
import {
  type Approval,
  type AuthenticateRequest,
  type AuthorizeRequest,
  type ClientInfo,
  ReasonCode,
  type Refusal
} from '../../../lib/index.ts';
import type { HttpCall } from '../../outgoing/index.ts';
import { AnswerCache } from '../outgoing/answer-cache.ts';
import { Slots } from '../outgoing/slots.ts';
import { credentialsOf, type Facts } from '../outgoing/template.ts';
import { undecided } from '../outgoing/undecided.ts';
import { type Decision, Endpoint } from './endpoint.ts';
import { type HttpOptions, type HttpSettings, readHttpOptions } from './options.ts';
import { NotEncodable, type RequestTemplate } from './request-template.ts';

type Login = true | Approval<never> | Refusal | undefined;

const UNAVAILABLE: Refusal = {
  allow: false,
  reasonCode: ReasonCode.serverUnavailable,
  why: 'the server has not answered'
};
const NOT_ENCODABLE = 'a name or the password of the client cannot be sent in the request';
/** The reason codes of refusals by status. */
const REASON_CODES: Readonly<Record<number, number>> = {
  400: ReasonCode.badUserNameOrPassword,
  401: ReasonCode.badUserNameOrPassword,
  429: ReasonCode.serverBusy
};

/**
 * A source that authenticates (`authenticate`, `superuser`) and authorizes (`acl`) clients with an HTTP server.
 *
 * ```ts
 * createBroker({ auth: [http({ authenticate: { url: 'https://auth.example/mqtt' } })] });
 * ```
 *
 * Values of clients are always encoded: in the query and in forms with percent signs, in JSON as strings. The broker
 * caches the answers of `acl` separately (`aclCacheTtl`).
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function http(options: HttpOptions): AuthSource<never> {
  return new HttpSource(readHttpOptions(options));
}

class HttpSource implements AuthSource<never> {
  readonly name: string;
  /** The source limits its requests itself. */
  readonly timeoutMs = 0;
  readonly authenticate: AuthSource<never>['authenticate'];
  readonly authorize: AuthSource<never>['authorize'];
  readonly #settings: HttpSettings;
  #opened: Opened | undefined = undefined;

  constructor(settings: HttpSettings) {
    const { name, authenticate, acl } = settings;
    this.name = name;
    this.#settings = settings;
    this.authenticate = authenticate && ((request) => this.#login(request));
    this.authorize = acl && ((request) => this.#opened?.authorize(request) ?? undecided(request, 'deny'));
  }

  open(context: SourceContext): void {
    this.#opened = new Opened(this.#settings, context);
  }

  close(): void {
    this.#opened?.close();
    this.#opened = undefined;
  }

  /** Discard the cached answers. */
  reload(): void {
    this.#opened?.forget();
  }

  #login(request: AuthenticateRequest): Promise<Login> | Login {
    if (request.method !== undefined) return undefined; // enhanced authentication is left to other sources
    return this.#opened === undefined ? UNAVAILABLE : this.#opened.login(request);
  }
}

/** The source while it is open. */
class Opened {
  readonly #settings: HttpSettings;
  readonly #logins: Endpoint | undefined;
  readonly #superusers: Endpoint | undefined;
  readonly #topics: Endpoint | undefined;
  readonly #answers: AnswerCache<{ readonly login: Login }> | undefined;
  /** The facts on which the answer about a login depends. */
  readonly #letters: readonly string[];

  constructor(settings: HttpSettings, context: SourceContext) {
    const { authenticate, superuser, acl, maxConcurrent, maxQueued, cacheMs, cacheSize } = settings;
    this.#settings = settings;
    const slots = new Slots(maxConcurrent, maxQueued, 'requests');
    const endpoint = (template: RequestTemplate | undefined) =>
      template && new Endpoint(template, settings, context, slots);
    this.#logins = endpoint(authenticate);
    this.#superusers = endpoint(superuser);
    this.#topics = endpoint(acl);
    this.#answers = cacheMs === 0 ? undefined : new AnswerCache(context.clock, cacheSize);
    this.#letters = [...new Set([authenticate, superuser].flatMap((template) => template?.letters ?? []))];
  }

  close(): void {
    for (const endpoint of [this.#logins, this.#superusers, this.#topics]) endpoint?.close();
  }

  forget(): void {
    this.#answers?.clear();
  }

  /** Decide about a CONNECT. Synchronous if the answer is cached. */
  login(request: AuthenticateRequest): Promise<Login> | Login {
    const { client, username, password } = request;
    const facts = { ...factsOf(client), u: username, P: password };
    const key = this.#answers?.keyOf(credentialsOf(facts, this.#letters)) ?? '';
    const known = this.#answers?.get(key);
    if (known !== undefined) return known.login;
    const logins = this.#logins as Endpoint;
    try {
      return this.#askLogin(logins.template.fill(facts), this.#superusers?.template.fill(facts), key, request.signal);
    } catch (error) {
      if (error instanceof NotEncodable)
        return { allow: false, reasonCode: ReasonCode.notAuthorized, why: NOT_ENCODABLE };
      throw error;
    }
  }

  async #askLogin(
    call: HttpCall,
    superuserCall: HttpCall | undefined,
    key: string,
    signal: AbortSignal
  ): Promise<Login> {
    const decision = await (this.#logins as Endpoint).ask(call, signal);
    if (decision.kind === 'failed') return this.#settings.onError === 'ignore' ? undefined : UNAVAILABLE;
    const isAsked = decision.kind === 'allow' && superuserCall !== undefined;
    const rank = isAsked ? await this.#superusers?.ask(superuserCall, signal) : undefined;
    const login = answerFor(decision, rank?.kind === 'allow');
    // without an answer about the superuser rank, the client is not cached
    if (rank?.kind !== 'failed') this.#answers?.set(key, { login }, this.#settings.cacheMs);
    return login;
  }

  async authorize(request: AuthorizeRequest): Promise<boolean | undefined> {
    const { client, action, topic, signal } = request;
    const topics = this.#topics as Endpoint;
    let call: HttpCall;
    try {
      call = topics.template.fill({ ...factsOf(client), t: topic, A: action === 'subscribe' ? '1' : '2' });
    } catch (error) {
      if (error instanceof NotEncodable) return false;
      throw error;
    }
    const { kind } = await topics.ask(call, signal);
    if (kind === 'failed') return undecided(request, this.#settings.onError);
    return kind === 'ignore' ? undefined : kind === 'allow';
  }
}

function answerFor({ kind, status }: Decision, isSuperuser: boolean): Login {
  if (kind === 'ignore') return undefined;
  if (kind === 'allow') return isSuperuser ? { allow: true, isSuperuser } : true;
  const why = `the server refuses the client with the status ${status}`;
  return { allow: false, reasonCode: REASON_CODES[status] ?? ReasonCode.notAuthorized, why };
}

function factsOf({ clientId, username, mountpoint, transportInfo }: ClientInfo): Facts {
  const { remoteAddress, localPort, certificate } = transportInfo;
  return {
    c: clientId,
    u: username,
    a: remoteAddress,
    p: localPort?.toString(),
    C: certificate?.commonName,
    d: certificate?.subject,
    m: mountpoint,
    r: 'mqtt'
  };
}
