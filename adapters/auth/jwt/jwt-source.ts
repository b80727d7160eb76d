// A password that is not a token is left to the next source; a token that is not valid is refused here. Verified
// tokens are remembered for a short time, and only while the published keys are the same ones (`version`): a key that
// was withdrawn must not count. `exp` and `nbf` are compared again each time. Reasons for clients are general; those
// for the operator say more, but contain no value of the token.

import type { AuthSource, SourceContext } from '../../../lib/adapter.ts';
import {
  type AccessRule,
  type Approval,
  type AuthenticateRequest,
  type Awaitable,
  BrokerError,
  ReasonCode,
  type Refusal
} from '../../../lib/index.ts';
import { AnswerCache } from '../outgoing/answer-cache.ts';
import { type Claims, own, rulesIn, usernameIn, wrongClaim } from './claims.ts';
import type { FixedKey } from './fixed-key.ts';
import { type JwtOptions, type JwtSettings, readJwtOptions } from './options.ts';
import { PublishedKeys } from './published-keys.ts';

type Jose = typeof import('jose');

/**
 * A source that lets clients in with a JSON Web Token. A client whose password (or user name) is not a token is left to the next source.
 *
 * When the token expires, the broker closes the connection (`expired_token`).
 *
 * ```ts
 * createBroker({ auth: [jwt({ jwksUrl: 'https://id.example/.well-known/jwks.json', audience: 'mqtt', usernameClaim: 'sub' })] });
 * ```
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function jwt<Data = never>(options: JwtOptions<Data>): AuthSource<Data> {
  return new JwtSource(readJwtOptions(options)) as AuthSource as AuthSource<Data>;
}

/** Time for which a verified token is not verified again. */
const VERIFIED_MS = 60_000;
/** Maximum number of verified tokens that are cached. */
const MAX_VERIFIED = 10_000;

const FAULTY_CLAIMS: Readonly<Record<string, string>> = {
  aud: 'the token is for another audience (aud; option audience)',
  iss: 'the token is from another issuer (iss; option issuer)',
  nbf: 'the token is not valid yet (nbf)'
};

/** A token that was verified. */
interface Verified {
  readonly claims: Claims;
  readonly rules: readonly AccessRule[] | undefined;
  /** See `PublishedKeys.version`. */
  readonly version: number;
}

class JwtSource implements AuthSource {
  readonly name: string;
  /** The source limits its requests itself. */
  readonly timeoutMs = 0;
  readonly #settings: JwtSettings;
  #verifier: Verifier | undefined = undefined;

  constructor(settings: JwtSettings) {
    this.name = settings.name;
    this.#settings = settings;
  }

  async open(context: SourceContext): Promise<void> {
    const verifier = new Verifier(await loadJose(), this.#settings, context);
    this.#verifier = verifier;
    await verifier.published?.fetch(); // without an answer the broker still starts, and asks again for the first client
  }

  close(): void {
    this.#verifier?.published?.close();
    this.#verifier = undefined;
  }

  /** Fetch the keys again. @throws BrokerError JWKS_UNAVAILABLE */
  async reload(): Promise<void> {
    const published = this.#verifier?.published;
    if (published !== undefined && !(await published.fetch()))
      throw new BrokerError('JWKS_UNAVAILABLE', 'the keys could not be fetched; the previous ones remain in use');
  }

  authenticate(request: AuthenticateRequest): Awaitable<Approval | Refusal | undefined> {
    const token = this.#tokenOf(request);
    return token === undefined ? undefined : this.#verifier?.check(token, request);
  }

  #tokenOf({ username, password, method, data }: AuthenticateRequest): string | undefined {
    if (method !== undefined) return method === this.#settings.method ? data?.toString() : undefined;
    return this.#settings.from === 'username' ? username : password?.toString();
  }
}

/** Verifies tokens while the source is open. */
class Verifier {
  /** Undefined: the key is fixed. */
  readonly published: PublishedKeys | undefined;
  readonly #jose: Jose;
  readonly #settings: JwtSettings;
  readonly #context: SourceContext;
  readonly #verified: AnswerCache<Verified>;

  constructor(jose: Jose, settings: JwtSettings, context: SourceContext) {
    this.#jose = jose;
    this.#settings = settings;
    this.#context = context;
    this.#verified = new AnswerCache(context.clock, MAX_VERIFIED);
    this.published = settings.jwksUrl === undefined ? undefined : new PublishedKeys(jose, settings, context);
  }

  /**
   * Decide about a token. Synchronous if the token was verified before.
   * @returns undefined if the password is not a token
   */
  check(token: string, request: AuthenticateRequest): Awaitable<Approval | Refusal | undefined> {
    const key = this.#verified.keyOf(token);
    const known = this.#verified.get(key);
    const isKnown = known !== undefined && known.version === this.#version && this.#isInForce(known.claims);
    if (isKnown) return this.#approve(known, request);
    return this.#isToken(token) ? this.#checkNew(token, key, request) : undefined;
  }

  async #checkNew(token: string, key: string, request: AuthenticateRequest): Promise<Approval | Refusal> {
    const version = this.#version; // keys that arrive meanwhile may not contain that of the token
    let claims: Claims;
    try {
      claims = Object.freeze(await this.#verify(token));
    } catch (error) {
      return this.#refusalFor(error);
    }
    try {
      const verified = { claims, rules: rulesIn(claims, this.#settings.aclClaim), version };
      this.#verified.set(key, verified, VERIFIED_MS);
      return this.#approve(verified, request);
    } catch (error) {
      this.#context.failed(error, `reading the token of the client "${request.client.clientId}"`);
      return refuse('the content of the token is not valid');
    }
  }

  get #version(): number {
    return this.published?.version ?? 0;
  }

  /** Check whether a token that was valid is still valid now. */
  #isInForce({ exp, nbf }: Claims): boolean {
    const { clockToleranceMs } = this.#settings;
    const nowMs = this.#context.clock.now();
    // in whole seconds, as jose compares them
    const isFrom = (seconds: unknown, differenceMs: number) =>
      Math.floor(nowMs / 1000) >= (seconds as number) + differenceMs / 1000;
    return (
      (exp === undefined || !isFrom(exp, clockToleranceMs)) && (nbf === undefined || isFrom(nbf, -clockToleranceMs))
    );
  }

  #isToken(token: string): boolean {
    if (token.split('.', 4).length !== 3) return false;
    try {
      this.#jose.decodeProtectedHeader(token);
      return true;
    } catch {
      return false;
    }
  }

  async #verify(token: string): Promise<Claims> {
    const { secret, publicKey, algorithms, issuer, audience, requireExpiry, clockToleranceMs } = this.#settings;
    const options = {
      algorithms: [...algorithms],
      currentDate: new Date(this.#context.clock.now()),
      clockTolerance: clockToleranceMs / 1000,
      ...(issuer === undefined ? {} : { issuer }),
      ...(audience === undefined ? {} : { audience }),
      requiredClaims: requireExpiry ? ['exp'] : []
    };
    const { published } = this;
    const { payload } =
      published === undefined
        ? await this.#jose.jwtVerify(token, ((secret ?? publicKey) as FixedKey).key, options)
        : await this.#jose.jwtVerify(token, published.find, options);
    return payload;
  }

  #refusalFor(error: unknown): Refusal {
    if ((error as BrokerError).code === 'JWKS_UNAVAILABLE')
      return { allow: false, reasonCode: ReasonCode.serverUnavailable, why: (error as BrokerError).message };
    if (error instanceof this.#jose.errors.JWTExpired) return { ...refuse('the token has expired'), isExpired: true };
    return refuse('the token is not valid', this.#whyNot(error));
  }

  /** The reason why a token is not valid, for the operator. Contains no value of the token. */
  #whyNot(error: unknown): string {
    const { JWTClaimValidationFailed, JWSSignatureVerificationFailed, JOSEAlgNotAllowed, JWKSNoMatchingKey } =
      this.#jose.errors;
    if (error instanceof JWSSignatureVerificationFailed) return 'the signature of the token does not fit the key';
    if (error instanceof JOSEAlgNotAllowed) return 'the signature algorithm of the token is not accepted (alg)';
    if (error instanceof JWKSNoMatchingKey) return 'none of the published keys is that of the token (kid, alg)';
    if (!(error instanceof JWTClaimValidationFailed)) return 'the token cannot be read';
    const { claim, reason } = error;
    if (reason === 'missing') return `the claim "${claim}" of the token is missing`;
    return FAULTY_CLAIMS[claim] ?? `the claim "${claim}" of the token is not accepted`;
  }

  /** @throws errors of the option `data` */
  #approve({ claims, rules }: Verified, request: AuthenticateRequest): Approval | Refusal {
    const { client, username, isReauthentication } = request;
    const { usernameClaim, superuserClaim, claims: required, clockToleranceMs, data } = this.#settings;
    const wrong = wrongClaim(claims, required, { clientId: client.clientId, username });
    if (wrong !== undefined) return refuse(`the claim "${wrong}" of the token does not fit`);
    const name = usernameClaim === undefined ? undefined : usernameIn(claims, usernameClaim);
    if (usernameClaim !== undefined && name === undefined)
      return refuse(`the token has no user name (${usernameClaim})`);
    // a connection keeps its user name
    if (isReauthentication && name !== undefined && name !== username)
      return refuse('the token belongs to another user');
    const approval: { -readonly [K in keyof Approval]: Approval[K] } = { allow: true };
    if (rules !== undefined) approval.rules = rules;
    if (data !== undefined) approval.clientData = data(claims);
    if (name !== undefined) approval.username = name;
    if (claims.exp !== undefined) approval.expiresAt = Number(claims.exp) * 1000 + clockToleranceMs;
    if (superuserClaim !== undefined) approval.isSuperuser = own(claims, superuserClaim) === true;
    return approval;
  }
}

/**
 * @param reasonString sent to the client
 * @param why for the operator
 */
function refuse(reasonString: string, why = reasonString): Refusal {
  return { allow: false, reasonCode: ReasonCode.notAuthorized, reasonString, why };
}

async function loadJose(): Promise<Jose> {
  try {
    return await import('jose');
  } catch (cause) {
    throw new BrokerError('PACKAGE_MISSING', 'authentication with tokens needs the package jose: npm install jose', {
      cause
    });
  }
}
