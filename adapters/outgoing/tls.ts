import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { field } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';

/** PEM as string or bytes, or a list of these. */
export type Pem = string | Uint8Array | readonly (string | Uint8Array)[];

/** TLS settings of outgoing connections. The certificate of the server is always verified. */
export interface OutgoingTls {
  /** Certificate authorities, instead of those of Node. */
  ca?: Pem;
  /** Certificate of the broker, for servers that ask for one. */
  cert?: Pem;
  /** Private key of `cert`. */
  key?: Pem;
  /** Passphrase of an encrypted key. */
  passphrase?: string;
  /** Name that is sent to the server (SNI) and that its certificate must have. Default: the host name. */
  servername?: string;
}

/** Rows of these options. */
export const OUTGOING_TLS_OPTIONS = {
  ca: field('object', undefined as Pem | undefined, 'Certificate authorities, instead of those of Node.', {
    check: checkPem
  }),
  cert: field('object', undefined as Pem | undefined, 'Certificate of the broker, for servers that ask for one.', {
    check: checkPem
  }),
  key: field('object', undefined as Pem | undefined, 'Private key of `cert`.', { check: checkPem }),
  passphrase: field('string', undefined as string | undefined, 'Passphrase of the key.'),
  servername: field(
    'string',
    undefined as string | undefined,
    'Name that the certificate of the server must have, and that is sent to it (SNI). Default: the host name.'
  )
};

/** The TLS part of settings, without undefined values. */
export function tlsOf({ ca, cert, key, passphrase, servername }: OutgoingTls): SecureContextOptions & OutgoingTls {
  const given = Object.entries({ ca, cert, key, passphrase, servername }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given);
}

/**
 * Check that TLS accepts these settings.
 * @param place for messages: `webhook`
 * @throws InvalidInput OPTION_INVALID
 */
export function checkTls(settings: OutgoingTls, place: string): void {
  const { ca, cert, key, passphrase } = settings;
  const fail = (name: 'ca' | 'cert' | 'key', error: unknown): never => {
    const { message } = error as Error;
    const expected = 'what TLS can use';
    const isPath = [settings[name] ?? []].flat().some((pem) => typeof pem === 'string' && !pem.includes('-----BEGIN '));
    const hint = isPath ? '; expected the text of a PEM file, not its path' : '';
    const text = `${place}.${name}: TLS cannot use it: ${message}${hint}`; // without the value, which may be a private key
    throw new InvalidInput('OPTION_INVALID', `${place}.${name}`, expected, undefined, text);
  };
  const attempt = (name: 'ca' | 'cert' | 'key', options: OutgoingTls) => {
    try {
      createSecureContext(tlsOf(options));
      for (const pem of [options.ca ?? []].flat()) new X509Certificate(pem); // unusable ones would be ignored
    } catch (error) {
      fail(name, error);
    }
  };
  if (ca !== undefined) attempt('ca', { ca });
  if (cert !== undefined) attempt('cert', { cert });
  if (key !== undefined) attempt('key', { cert, key, passphrase });
}

function checkPem(value: unknown, field: string): Pem {
  const list = Array.isArray(value) ? value : [value];
  const isGood =
    list.length > 0 && list.every((pem) => (typeof pem === 'string' && pem !== '') || pem instanceof Uint8Array);
  // the error does not show the value, which may be a private key
  if (!isGood)
    throw new InvalidInput('OPTION_INVALID', field, 'PEM as a string or bytes, or a list of these', typeof value);
  return value as Pem;
}
