import type { KeyObject, webcrypto } from 'node:crypto';
import { type FieldValues, field, isPlainObject, readOptions } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { checkTls, checkUrl, OUTGOING_TLS_OPTIONS, type OutgoingTls } from '../../outgoing/index.ts';
import { type FixedKey, publicKeyOf, secretKeyOf, UNKNOWN_KEY_ALGORITHMS } from './fixed-key.ts';

/** Options of `jwt`. Exactly one of `secret`, `publicKey` and `jwksUrl` is needed. The TLS options are those of the request to `jwksUrl`. */
export interface JwtOptions<Data = unknown> extends OutgoingTls {
  /** The secret of tokens signed with HS256, HS384 or HS512: at least 32 bytes, as RFC 7518 requires. A string is used as UTF-8. */
  secret?: string | Uint8Array;
  /** The key that verifies tokens: PEM (also of a certificate), a JWK, or a key of node:crypto. RSA, EC or Ed25519. */
  publicKey?: string | Uint8Array | webcrypto.JsonWebKey | KeyObject;
  /** The URL at which the issuer publishes its keys (JWK Set). */
  jwksUrl?: string | URL;
  /** Signature algorithms that are accepted. Default: all that fit the key. `none` is never accepted. */
  algorithms?: readonly string[];
  /**
   * The location of the token in CONNECT. Default `password`. With `username`, the claim of `usernameClaim` becomes the
   * user name. An MQTT 5.0 client with the Authentication Method of `method` sends it as Authentication Data instead,
   * and can renew it by re-authentication.
   */
  from?: 'password' | 'username';
  /** Authentication Method of MQTT 5.0 for tokens in the Authentication Data. Default `JWT`. */
  method?: string;
  /**
   * Claims that a token must have, with their values; `%c` stands for the client id and `%u` for the user name. A claim that is a list must
   * contain the value. Default: none. Without `usernameClaim` or a claim with `%u`, the holder of any valid token may use any user name.
   */
  claims?: Readonly<Record<string, string>>;
  /** The required `iss` claim, or a list of allowed values. */
  issuer?: string | readonly string[];
  /** The required `aud` claim, or a list of which it must contain one. */
  audience?: string | readonly string[];
  /** Refuse tokens that never expire (without `exp`). Default false. */
  requireExpiry?: boolean;
  /** Tolerated difference between the clocks of issuer and broker for `exp` and `nbf`, in milliseconds. Default 0. */
  clockToleranceMs?: number | string;
  /** The claim that becomes the user name. Default: none with `from: 'password'`, `sub` with `from: 'username'`. */
  usernameClaim?: string;
  /**
   * The claim with access rules for the client. Default `acl`. Either a list of rules in the form of `acl`, or
   * `{ pub: [...], sub: [...], all: [...] }` with topic filters, which deny everything else. Topics without a rule in a
   * list are decided by other rules and sources; if none decides, they are denied, unless `aclNomatch` is set to
   * `allow`.
   */
  aclClaim?: string;
  /** The claim that exempts a client from access control if it is `true`. Default: none. */
  superuserClaim?: string;
  /** Returns the `data` of the client from the claims. Default: none. */
  data?: (claims: Readonly<Record<string, unknown>>) => Data;
  /** Keys from `jwksUrl` are fetched again after this time, in milliseconds or such as `10m`. Default 10 minutes. */
  jwksCacheMs?: number | string;
  /** Time for which keys remain in use if the URL does not answer. Default 1 hour. */
  jwksStaleMs?: number | string;
  /** Time limit for the request to `jwksUrl`. Default 5 seconds. */
  timeoutMs?: number | string;
  /** Name of the source, if there are several. Default `jwt`. */
  name?: string;
}

const MINUTE_MS = 60_000;

/** The options of `jwt`. */
export const JWT_OPTIONS = {
  ...OUTGOING_TLS_OPTIONS,
  secret: field(
    'object',
    undefined as FixedKey | undefined,
    'Secret of tokens signed with HS256, HS384 or HS512. A string is used as UTF-8.',
    { check: secretKeyOf }
  ),
  publicKey: field('object', undefined as FixedKey | undefined, 'Key that verifies tokens.', { check: publicKeyOf }),
  jwksUrl: field('object', undefined as URL | undefined, 'URL at which the issuer publishes its keys.', {
    check: checkUrl
  }),
  algorithms: field('object', undefined as readonly string[] | undefined, 'Signature algorithms that are accepted.', {
    check: checkList
  }),
  from: field('choice', 'password' as 'password' | 'username', 'Location of the token in CONNECT.', {
    choices: ['password', 'username']
  }),
  method: field('string', 'JWT', 'Authentication Method of MQTT 5.0 for tokens in the Authentication Data.'),
  claims: field(
    'object',
    new Map() as ReadonlyMap<string, string>,
    'Claims that a token must have, with their values; `%c` stands for the client id and `%u` for the user name.',
    { check: checkClaims }
  ),
  issuer: field('object', undefined as string[] | undefined, 'The required claim `iss`, or a list of allowed values.', {
    check: checkTexts
  }),
  audience: field(
    'object',
    undefined as string[] | undefined,
    'The required claim `aud`, or a list of which it must contain one.',
    { check: checkTexts }
  ),
  requireExpiry: field('boolean', false, 'Refuse tokens that never expire (without `exp`).'),
  clockToleranceMs: field(
    'duration',
    0,
    'Tolerated difference between the clocks of issuer and broker for `exp` and `nbf`.',
    { unit: 'ms' }
  ),
  usernameClaim: field(
    'string',
    undefined as string | undefined,
    'Claim that becomes the user name. With `from: username` the default is `sub`.'
  ),
  aclClaim: field('string', 'acl', 'Claim with access rules for the client.'),
  superuserClaim: field(
    'string',
    undefined as string | undefined,
    'Claim that exempts a client from access control if it is `true`.'
  ),
  data: field(
    'function',
    undefined as JwtOptions['data'],
    'Function that returns the `data` of the client from the claims.'
  ),
  jwksCacheMs: field('duration', 10 * MINUTE_MS, 'Age at which the keys of `jwksUrl` are fetched again.', {
    unit: 'ms'
  }),
  jwksStaleMs: field('duration', 60 * MINUTE_MS, 'Age up to which they remain in use if the URL does not answer.', {
    unit: 'ms'
  }),
  timeoutMs: field('duration', 5_000, 'Time limit for the request to `jwksUrl`.', { unit: 'ms', min: 1 }),
  name: field('string', 'jwt', 'Name of the source.')
};

/** The checked options. */
export interface JwtSettings extends Omit<FieldValues<typeof JWT_OPTIONS>, 'algorithms'> {
  readonly algorithms: readonly string[];
}

/** Read the options of `jwt`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readJwtOptions(given: JwtOptions): JwtSettings {
  const read = readOptions(JWT_OPTIONS, given, 'jwt') as unknown as FieldValues<typeof JWT_OPTIONS>;
  checkTls(read, 'jwt');
  const { secret, publicKey, jwksUrl, from, claims } = read;
  const fail = (field: string, expected: string, got: unknown): never => {
    throw new InvalidInput('OPTION_INVALID', `jwt.${field}`, expected, got);
  };
  const count = [secret, publicKey, jwksUrl].filter((key) => key !== undefined).length;
  if (count !== 1)
    fail('secret', 'exactly one of "secret", "publicKey" and "jwksUrl"', count === 0 ? 'none' : 'several');
  const usernameClaim = read.usernameClaim ?? (from === 'username' ? 'sub' : undefined);
  const usesName = [...claims.values()].some((text) => text.includes('%u'));
  if (usesName && usernameClaim !== undefined)
    fail('claims', 'no claim with %u, because the token itself names the user (usernameClaim)', given.claims);
  const fitting = secret?.algorithms ?? publicKey?.algorithms ?? UNKNOWN_KEY_ALGORITHMS;
  const { algorithms = fitting } = read;
  const misfit = algorithms.find((name) => !fitting.includes(name));
  if (misfit !== undefined) fail('algorithms', `algorithms that fit the key: ${fitting.join(', ')}`, misfit);
  return { ...read, usernameClaim, algorithms };
}

function checkList(value: unknown, field: string): readonly string[] {
  const isGood = Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string');
  if (!isGood) throw new InvalidInput('OPTION_INVALID', field, 'a list of strings', value);
  return [...(value as string[])];
}

function checkTexts(value: unknown, field: string): readonly string[] {
  return checkList(typeof value === 'string' ? [value] : value, field);
}

function checkClaims(value: unknown, field: string): ReadonlyMap<string, string> {
  const entries = isPlainObject(value) ? Object.entries(value) : [];
  if (!isPlainObject(value) || !entries.every(([, text]) => typeof text === 'string'))
    throw new InvalidInput('OPTION_INVALID', field, 'an object with a string for each claim', value);
  return new Map(entries as [string, string][]);
}
