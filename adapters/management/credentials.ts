import { hash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Awaitable, Broker } from '../../lib/index.ts';
import { type Call, Fault } from '../rest/index.ts';

/** What a caller may do: everything, or only look. */
export type Scope = 'administrator' | 'viewer';

/**
 * Who may use the interface: the applications of the broker, whoever the host app has let through, or whom a function accepts.
 *
 * The function gets the user and the password of the HTTP Basic credentials, and answers true (everything), a scope, or false.
 */
export type Credentials =
  | 'applications'
  | 'host'
  | ((id: string, secret: string, facts: { readonly remoteAddress: string | undefined }) => Awaitable<boolean | Scope>);

/** Credentials that were right are not checked again for this time. */
const REMEMBERED_MS = 5_000;
const MAX_REMEMBERED = 1_000;
/** An address with this number of failed logins within a minute is refused until the minute is over. */
const MAX_FAILURES = 10;
const FAILURES_MS = 60_000;
const MAX_ADDRESSES = 10_000;

interface Remembered {
  readonly id: string;
  readonly scope: Scope;
  readonly untilMs: number;
}

/** Checks the credentials of requests. */
export class CredentialCheck {
  readonly #broker: Broker;
  readonly #credentials: Credentials;
  /** The digests of headers depend on it. */
  readonly #secret = randomBytes(32).toString('base64');
  /** By the digest of the header that they came in: neither secrets nor the time of a comparison tell anything. */
  readonly #right = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED });
  readonly #failures = new LRUCache<string, { count: number; readonly untilMs: number }>({ max: MAX_ADDRESSES });

  constructor(broker: Broker, credentials: Credentials) {
    this.#broker = broker;
    this.#credentials = credentials;
  }

  /** Check the credentials of a call. It is synchronous for credentials that were right a moment ago. @throws Fault unauthorized, tooManyLogins */
  check(call: Call): Scope | Promise<Scope> {
    if (this.#credentials === 'host') return 'administrator';
    const header = call.header('authorization');
    const known = header === undefined ? undefined : this.#right.get(this.#keyOf(header));
    if (known !== undefined && known.untilMs > this.#broker.clock.monotonic() && this.#isInForce(known))
      return known.scope;
    return this.#checkNew(header, call.remoteAddress);
  }

  #keyOf(header: string): string {
    return hash('sha256', this.#secret + header, 'base64');
  }

  /** An application may have been deleted, disabled, or have expired. */
  #isInForce({ id }: Remembered): boolean {
    if (this.#credentials !== 'applications') return true;
    const application = this.#broker.applications.get(id);
    if (application === undefined || !application.isEnabled) return false;
    return application.expiresAt === undefined || application.expiresAt > this.#broker.clock.now();
  }

  async #checkNew(header: string | undefined, remoteAddress: string | undefined): Promise<Scope> {
    const address = remoteAddress ?? '';
    const nowMs = this.#broker.clock.monotonic();
    const failures = this.#failures.get(address);
    const isOver = failures === undefined || failures.untilMs <= nowMs;
    if (!isOver && failures.count >= MAX_FAILURES)
      throw new Fault('tooManyLogins', 'there were too many failed logins from this address; try again in a minute');
    const pair = header === undefined ? undefined : basicCredentials(header);
    const scope = pair && (await this.#scopeOf(pair.id, pair.secret, remoteAddress));
    if (header !== undefined && pair !== undefined && scope !== undefined) {
      this.#right.set(this.#keyOf(header), { id: pair.id, scope, untilMs: nowMs + REMEMBERED_MS });
      return scope;
    }
    // a request without credentials is no guess
    if (header !== undefined) {
      if (isOver) this.#failures.set(address, { count: 1, untilMs: nowMs + FAILURES_MS });
      else failures.count++;
    }
    throw new Fault('unauthorized', 'HTTP Basic credentials with the id and the secret of an application are needed');
  }

  async #scopeOf(id: string, secret: string, remoteAddress: string | undefined): Promise<Scope | undefined> {
    if (this.#credentials === 'applications') {
      const application = await this.#broker.applications.verify(id, secret, remoteAddress);
      return application && 'administrator';
    }
    if (this.#credentials === 'host') return 'administrator';
    const answer = await this.#credentials(id, secret, { remoteAddress });
    return answer === true ? 'administrator' : answer === 'administrator' || answer === 'viewer' ? answer : undefined;
  }
}

/** Read HTTP Basic credentials (RFC 7617). @returns undefined if the header has another form */
function basicCredentials(header: string): { readonly id: string; readonly secret: string } | undefined {
  const [, encoded] = /^basic +([a-z0-9+/=_-]+) *$/i.exec(header) ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  return colon < 0 ? undefined : { id: text.slice(0, colon), secret: text.slice(colon + 1) };
}
