import {
  type Approval,
  type AuthenticateRequest,
  type AuthSource,
  BrokerError,
  ReasonCode,
  type Refusal,
  type SourceContext
} from '../../../lib/index.ts';
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
export function jwt(options: JwtOptions): AuthSource {
  return new JwtSource(readJwtOptions(options));
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
    await verifier.published?.fetch(); // without an answer the broker starts all the same, and asks again for the first client
  }

  close(): void {
    this.#verifier?.published?.close();
    this.#verifier = undefined;
  }

  /** Fetch the keys again. @throws BrokerError JWKS_UNAVAILABLE */
  async reload(): Promise<void> {
    const published = this.#verifier?.published;
    if (published !== undefined && !(await published.fetch()))
      throw new BrokerError('JWKS_UNAVAILABLE', 'the keys could not be fetched; the previous ones stay in force');
  }

  authenticate(request: AuthenticateRequest): Promise<Approval | Refusal | undefined> | undefined {
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
  /** undefined: the key is fixed. */
  readonly published: PublishedKeys | undefined;
  readonly #jose: Jose;
  readonly #settings: JwtSettings;
  readonly #context: SourceContext;

  constructor(jose: Jose, settings: JwtSettings, context: SourceContext) {
    this.#jose = jose;
    this.#settings = settings;
    this.#context = context;
    this.published = settings.jwksUrl === undefined ? undefined : new PublishedKeys(jose, settings, context);
  }

  /** Decide about a token. @returns undefined if it is not a token */
  async check(token: string, request: AuthenticateRequest): Promise<Approval | Refusal | undefined> {
    if (!this.#isToken(token)) return undefined;
    let claims: Claims;
    try {
      claims = await this.#verify(token);
    } catch (error) {
      return this.#refusalFor(error);
    }
    return this.#approve(claims, request);
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
      return { allow: false, reasonCode: ReasonCode.serverUnavailable };
    return refuse(error instanceof this.#jose.errors.JWTExpired ? 'the token has expired' : 'the token is not valid');
  }

  #approve(claims: Claims, { client, username, isReauthentication }: AuthenticateRequest): Approval | Refusal {
    const { usernameClaim, superuserClaim, aclClaim, claims: required, clockToleranceMs, data } = this.#settings;
    const wrong = wrongClaim(claims, required, { clientId: client.clientId, username });
    if (wrong !== undefined) return refuse(`the claim "${wrong}" of the token does not fit`);
    const name = usernameClaim === undefined ? undefined : usernameIn(claims, usernameClaim);
    if (usernameClaim !== undefined && name === undefined)
      return refuse(`the token has no user name (${usernameClaim})`);
    // a connection keeps its user name
    if (isReauthentication && name !== undefined && name !== username) return refuse('the token is of another user');
    let approval: Approval = { allow: true };
    try {
      const rules = rulesIn(claims, aclClaim);
      if (rules !== undefined) approval = { ...approval, rules };
      if (data !== undefined) approval = { ...approval, clientData: data(claims) };
    } catch (error) {
      this.#context.failed(error, `reading the token of the client "${client.clientId}"`);
      return refuse('the content of the token is not valid');
    }
    if (name !== undefined) approval = { ...approval, username: name };
    if (claims.exp !== undefined) approval = { ...approval, expiresAt: Number(claims.exp) * 1000 + clockToleranceMs };
    if (superuserClaim !== undefined) approval = { ...approval, isSuperuser: own(claims, superuserClaim) === true };
    return approval;
  }
}

function refuse(reasonString: string): Refusal {
  return { allow: false, reasonCode: ReasonCode.notAuthorized, reasonString };
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
