import { createPublicKey, createSecretKey, type JsonWebKeyInput, KeyObject, type PublicKeyInput } from 'node:crypto';
import { InvalidInput } from '../../../lib/index.ts';

/** A constant key with its algorithms. */
export interface FixedKey {
  readonly key: KeyObject;
  readonly algorithms: readonly string[];
}

const SECRET_ALGORITHMS = ['HS256', 'HS384', 'HS512'];
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const ED_ALGORITHMS = ['EdDSA', 'Ed25519'];
/** Keyed by the name of the curve. */
const EC_ALGORITHMS: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' };

/** The algorithms of published keys: none with a secret, because these keys are public. */
export const UNKNOWN_KEY_ALGORITHMS = [...RSA_ALGORITHMS, ...Object.values(EC_ALGORITHMS), ...ED_ALGORITHMS];

/** Shorter secrets are refused: from one token, its secret can be guessed [RFC 7518 section 3.2]. */
const MIN_SECRET_BYTES = 32;
/** Shorter RSA keys are refused [RFC 7518 section 3.3]. */
const MIN_RSA_BITS = 2048;

/** Check a secret. @throws InvalidInput OPTION_INVALID, without the secret */
export function secretKeyOf(value: unknown, field: string): FixedKey {
  const fail = (expected: string): never => {
    throw new InvalidInput('OPTION_INVALID', field, expected, kindOf(value));
  };
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) return fail('a string or bytes');
  const bytes = Buffer.from(value as Uint8Array);
  // with a public key as the secret, anyone could sign tokens
  if (bytes.includes('-----BEGIN')) return fail('a secret; a key in PEM belongs to "publicKey"');
  if (bytes.length < MIN_SECRET_BYTES) return fail(`a secret of at least ${MIN_SECRET_BYTES} bytes (RFC 7518)`);
  return { key: createSecretKey(bytes), algorithms: SECRET_ALGORITHMS };
}

/** Read a public key. @throws InvalidInput OPTION_INVALID, without the key */
export function publicKeyOf(value: unknown, field: string): FixedKey {
  const fail = (expected: string): never => {
    throw new InvalidInput('OPTION_INVALID', field, expected, kindOf(value));
  };
  let key: KeyObject;
  try {
    key = read(value);
  } catch {
    return fail('a public key: PEM, a JWK, or a key of node:crypto');
  }
  const { asymmetricKeyType, asymmetricKeyDetails = {} } = key;
  if (asymmetricKeyType === 'rsa') {
    const { modulusLength = 0 } = asymmetricKeyDetails;
    return modulusLength < MIN_RSA_BITS
      ? fail(`an RSA key of at least ${MIN_RSA_BITS} bits`)
      : { key, algorithms: RSA_ALGORITHMS };
  }
  if (asymmetricKeyType === 'ed25519') return { key, algorithms: ED_ALGORITHMS };
  const algorithm = EC_ALGORITHMS[asymmetricKeyDetails.namedCurve ?? ''];
  if (algorithm === undefined) return fail('a key of type RSA, EC (P-256, P-384, P-521) or Ed25519');
  return { key, algorithms: [algorithm] };
}

function read(value: unknown): KeyObject {
  if (value instanceof KeyObject) return value.type === 'public' ? value : createPublicKey(value as never);
  if (typeof value === 'string' || value instanceof Uint8Array)
    return createPublicKey(Buffer.from(value as Uint8Array) as unknown as PublicKeyInput);
  return createPublicKey({ key: value as JsonWebKeyInput['key'], format: 'jwk' });
}

/** A description of a value, without its content. */
function kindOf(value: unknown): string {
  if (typeof value === 'string' || value instanceof Uint8Array)
    return `${value.length} ${typeof value === 'string' ? 'characters' : 'bytes'}`;
  return value instanceof KeyObject ? `a ${value.type} key of type ${value.asymmetricKeyType}` : typeof value;
}
