import type { CryptoKey, FlattenedJWSInput, JWSHeaderParameters } from 'jose';
import type { SourceContext } from '../../../lib/adapter.ts';
import { BrokerError } from '../../../lib/index.ts';
import { HttpClient, withDeadline } from '../../outgoing/index.ts';
import { sourceTimeout } from '../outgoing/source-timeout.ts';
import type { JwtSettings } from './options.ts';

type Jose = typeof import('jose');
type FindKey = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey>;

/** Minimum time between two requests for unknown keys, so that forged tokens cause no load at the issuer. */
const UNKNOWN_KEY_PAUSE_MS = 30_000;
/** Minimum time after a failed request. */
const FAILURE_PAUSE_MS = 5_000;
const MAX_BYTES = 256 * 1024;

/** The keys that an issuer publishes at a URL, fetched on demand and at most a few times a minute. */
export class PublishedKeys {
  /** Changes whenever keys were fetched. */
  version = 0;
  readonly #jose: Jose;
  readonly #settings: JwtSettings;
  readonly #context: SourceContext;
  readonly #client: HttpClient;
  #find: FindKey | undefined = undefined;
  /** Monotonic time of the request that returned `#find`. */
  #fetchedMs = 0;
  /** Monotonic time of the last request. */
  #triedMs = -Infinity;
  #hasFailed = false;
  #fetching: Promise<boolean> | undefined = undefined;
  readonly #closed = new AbortController();

  constructor(jose: Jose, settings: JwtSettings, context: SourceContext) {
    this.#jose = jose;
    this.#settings = settings;
    this.#context = context;
    this.#client = new HttpClient(settings.jwksUrl as URL, {
      tls: settings,
      maxSockets: 1,
      maxBodyBytes: MAX_BYTES
    });
  }

  /**
   * Find the key that has signed a token.
   * @throws BrokerError JWKS_UNAVAILABLE if the keys could not be fetched; errors of jose if no key fits
   */
  readonly find = async (header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> => {
    const find = await this.#current();
    try {
      return await find(header, token);
    } catch (error) {
      const isUnknown = error instanceof this.#jose.errors.JWKSNoMatchingKey;
      if (!isUnknown || !(await this.#fetchUnlessRecent(UNKNOWN_KEY_PAUSE_MS))) throw error;
      return (this.#find as FindKey)(header, token);
    }
  };

  /**
   * Fetch the keys now.
   * @returns false if the request failed, which is reported
   */
  fetch(): Promise<boolean> {
    this.#fetching ??= this.#fetchOnce().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  close(): void {
    this.#closed.abort(new BrokerError('SOURCE_CLOSED', 'the source of authentication is closed'));
    this.#client.close();
  }

  async #current(): Promise<FindKey> {
    const { jwksCacheMs, jwksStaleMs } = this.#settings;
    const ageMs = this.#find === undefined ? Infinity : this.#context.clock.monotonic() - this.#fetchedMs;
    if (ageMs >= jwksCacheMs) {
      const fetched = this.#fetchUnlessRecent(FAILURE_PAUSE_MS);
      const isUsable = ageMs < Math.max(jwksCacheMs, jwksStaleMs);
      if (!isUsable && !(await fetched))
        throw new BrokerError('JWKS_UNAVAILABLE', `the keys of ${this.#settings.jwksUrl?.origin} are not available`);
    }
    return this.#find as FindKey;
  }

  /**
   * Fetch the keys, unless the last request was within this time.
   * @returns true if they were fetched
   */
  #fetchUnlessRecent(pauseMs: number): Promise<boolean> {
    if (this.#fetching !== undefined) return this.#fetching;
    const waitMs = this.#hasFailed ? FAILURE_PAUSE_MS : pauseMs;
    const isRecent = this.#context.clock.monotonic() - this.#triedMs < waitMs;
    return isRecent ? Promise.resolve(false) : this.fetch();
  }

  async #fetchOnce(): Promise<boolean> {
    const { clock } = this.#context;
    const { jwksUrl, timeoutMs } = this.#settings;
    const url = jwksUrl as URL;
    const nowMs = clock.monotonic();
    this.#triedMs = nowMs;
    try {
      const call = { method: 'GET', headers: { accept: 'application/json' } };
      const late = () => sourceTimeout(url.origin + url.pathname, timeoutMs);
      const limit = { clock, ms: timeoutMs, late, outers: [this.#closed.signal] };
      const { status, body } = await withDeadline(limit, (signal) => this.#client.send(call, signal));
      if (status !== 200)
        throw new BrokerError('JWKS_INVALID', `${url.origin}${url.pathname} answered with status ${status}`);
      this.#find = this.#jose.createLocalJWKSet(JSON.parse(body.toString()));
      this.#fetchedMs = nowMs;
      this.version++;
      this.#hasFailed = false;
      return true;
    } catch (error) {
      this.#hasFailed = true;
      if (!this.#closed.signal.aborted)
        this.#context.failed(error, `fetching the keys of the source ${this.#settings.name}`);
      return false;
    }
  }
}
