// A row for each option; what depends on several options is completed in `completeTlsOptions`. PEM and files exclude
// each other, and new material replaces either (`withMaterial`). Errors never contain a key or a passphrase. Files
// are read when a listener opens and when it reloads, not here. The type `TlsSettings` repeats the rows with
// documentation for apps: a new row needs a member there.

import type { SecureVersion } from 'node:tls';
import { type FieldValues, field, readOptions } from '../../lib/adapter.ts';
import { type Duration, InvalidInput } from '../../lib/index.ts';
import { checkTexts } from './options.ts';
import { keyLookup, type PresharedKeys } from './psk.ts';

/** PEM as string or bytes, or a list of these. */
export type Pem = string | Uint8Array | readonly (string | Uint8Array)[];

/** A certificate of the server and its key: as PEM, or as names of PEM files. */
export interface ServerCertificate {
  /** Certificate of the server, with its chain but without the root. */
  cert?: Pem;
  /** File of `cert`. */
  certFile?: string;
  /** Private key of the certificate. */
  key?: Pem;
  /** File of `key`. */
  keyFile?: string;
  /** Passphrase of an encrypted key. */
  passphrase?: string;
}

/** Certificates and keys: as PEM, or as names of regular PEM files, which are read when the listener opens and at each `reload()`. */
export interface TlsMaterial extends ServerCertificate {
  /**
   * Certificates by server name, which clients send in the handshake (SNI): `{ 'a.example': { certFile, keyFile }, '*.b.example': ... }`.
   * `*` stands for one level; an exact name takes precedence. For all other names, and for clients that send none, `cert` is used.
   */
  serverNames?: Readonly<Record<string, ServerCertificate>>;
  /** Certificate authorities for client certificates, instead of those of Node. */
  ca?: Pem;
  /** Files of `ca`. */
  caFile?: string | readonly string[];
  /** Certificate revocation lists. If there is one, every authority in the chain of a client needs one. */
  crl?: Pem;
  /** Files of `crl`. */
  crlFile?: string | readonly string[];
  /**
   * Pre-shared keys by identity, as bytes or hexadecimal strings. A client that proves a key in the handshake gets its identity as user
   * name, and needs no further authentication. A function must be synchronous; a promise counts as an unknown identity.
   */
  psk?: PresharedKeys;
  /** File of `identity:hexkey` lines. */
  pskFile?: string;
}

/** TLS settings of a listener. */
export interface TlsSettings extends TlsMaterial {
  /** Delimiter between identity and key in `pskFile`. Default `:`. */
  pskDelimiter?: string;
  /** Ask clients for a certificate. Default: true if `ca`, `caFile` or `usernameFrom` is given. */
  requestCert?: boolean;
  /** Close connections without a valid client certificate. Default: the value of `requestCert`. */
  rejectUnauthorized?: boolean;
  /** Cipher suites in the format of OpenSSL. Default: those of Node; with pre-shared keys also the PSK suites. */
  ciphers?: string;
  /** Lowest TLS version. Default `TLSv1.2`. */
  minVersion?: SecureVersion;
  /** Highest TLS version. Default: the highest that Node supports. */
  maxVersion?: SecureVersion;
  /**
   * Protocols that a client may name in the handshake (ALPN). Default `mqtt`; for secure WebSocket `http/1.1`. A client may also name none.
   */
  alpn?: readonly string[];
  /** Interval for checking the files, which are reloaded if one has changed. 0 (default): only on `reload()`. */
  watchInterval?: Duration;
}

const CERTIFICATE_OPTIONS = {
  cert: field(
    'object',
    undefined as Pem | undefined,
    'Certificate of the server with its chain, without the root, as PEM.',
    { check: checkPem }
  ),
  certFile: field('string', undefined as string | undefined, 'File of the certificate.', { aliases: ['certfile'] }),
  key: field('object', undefined as Pem | undefined, 'Private key of the certificate, as PEM.', { check: checkPem }),
  keyFile: field('string', undefined as string | undefined, 'File of the private key.', { aliases: ['keyfile'] }),
  passphrase: field('object', undefined as string | undefined, 'Passphrase of an encrypted key.', {
    check: checkPassphrase
  })
};

/** The checked options of a certificate. */
export type CertificateRead = FieldValues<typeof CERTIFICATE_OPTIONS>;

const MATERIAL_OPTIONS = {
  ...CERTIFICATE_OPTIONS,
  serverNames: field(
    'object',
    new Map() as ReadonlyMap<string, CertificateRead>,
    'Certificates by the server name that clients send (SNI): `{ name: { certFile, keyFile } }`. `*` stands for one level.',
    {
      check: checkServerNames
    }
  ),
  ca: field(
    'object',
    undefined as Pem | undefined,
    'Certificate authorities for client certificates, as PEM, instead of those of Node.',
    {
      check: checkPem
    }
  ),
  caFile: field('object', [] as readonly string[], 'Files of certificate authorities.', {
    check: checkTexts,
    aliases: ['cacertfile']
  }),
  crl: field(
    'object',
    undefined as Pem | undefined,
    'Certificate revocation lists, as PEM. Every authority in the chain of a client needs one.',
    { check: checkPem }
  ),
  crlFile: field('object', [] as readonly string[], 'Files of certificate revocation lists.', { check: checkTexts }),
  psk: field(
    'object',
    undefined as PresharedKeys | undefined,
    'Pre-shared keys by identity, as bytes or hexadecimal strings; or a function that returns the key of an identity.',
    { check: checkKeys }
  ),
  pskFile: field('string', undefined as string | undefined, 'File of pre-shared keys, with lines `identity:KEY`.', {
    aliases: ['psk.file.path']
  })
};

export const TLS_OPTIONS = {
  ...MATERIAL_OPTIONS,
  pskDelimiter: field('string', ':', 'Delimiter between identity and key in `pskFile`.', {
    aliases: ['psk.file.delimiter']
  }),
  requestCert: field('boolean', undefined as boolean | undefined, 'Ask clients for a certificate.'),
  rejectUnauthorized: field(
    'boolean',
    undefined as boolean | undefined,
    'Close connections without a valid client certificate.',
    {
      aliases: ['failIfNoPeerCert', 'fail_if_no_peer_cert']
    }
  ),
  ciphers: field('string', undefined as string | undefined, 'Cipher suites in the format of OpenSSL.'),
  minVersion: field('choice', 'TLSv1.2' as SecureVersion, 'Lowest TLS version.', {
    choices: ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']
  }),
  maxVersion: field('choice', undefined as SecureVersion | undefined, 'Highest TLS version.', {
    choices: ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']
  }),
  alpn: field(
    'object',
    undefined as readonly string[] | undefined,
    'Protocols that a client may name in the handshake (ALPN). A client may also name none.',
    { check: checkAlpn }
  ),
  watchInterval: field(
    'duration',
    0,
    'Interval at which the files are checked; they are loaded again if one has changed. 0: never.',
    { unit: 'ms' }
  )
};

/** The checked TLS options, with the defaults that depend on other options. */
export type TlsRead = FieldValues<typeof TLS_OPTIONS> & {
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
  readonly alpn: readonly string[];
};

/**
 * Add the defaults that depend on other options.
 * @throws InvalidInput OPTION_MISSING if there is neither a certificate with its key nor a pre-shared key
 */
export function completeTlsOptions(
  read: FieldValues<typeof TLS_OPTIONS>,
  needsCertificate: boolean,
  alpn: readonly string[]
): TlsRead {
  checkMaterial(read);
  const requestCert = read.requestCert ?? (needsCertificate || read.ca !== undefined || read.caFile.length > 0);
  return { ...read, requestCert, rejectUnauthorized: read.rejectUnauthorized ?? requestCert, alpn: read.alpn ?? alpn };
}

/**
 * Return the settings with new material. New PEM replaces a file name, and a new file name replaces PEM.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING, PSK_INVALID
 */
export function withMaterial(settings: TlsRead, material: TlsMaterial): TlsRead {
  const read = readOptions(MATERIAL_OPTIONS, material, 'TLS material', {});
  const given = Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined));
  const replaced: Record<string, unknown> = {};
  for (const name of ['cert', 'key', 'ca', 'crl', 'psk']) {
    if (name in given) replaced[`${name}File`] = name === 'ca' || name === 'crl' ? [] : undefined;
    if (`${name}File` in given) replaced[name] = undefined;
  }
  const changed: TlsRead = { ...settings, ...replaced, ...given };
  checkMaterial(changed);
  return changed;
}

/** Check whether clients may use pre-shared keys. */
export function usesPresharedKeys({ psk, pskFile }: Pick<TlsRead, 'psk' | 'pskFile'>): boolean {
  return psk !== undefined || pskFile !== undefined;
}

/** List all files that are read, which a listener may watch for changes. */
export function filesOf({ certFile, keyFile, caFile, crlFile, pskFile, serverNames }: TlsRead): string[] {
  const named = [...serverNames.values()].flatMap((certificate) => [certificate.certFile, certificate.keyFile]);
  return [certFile, keyFile, pskFile, ...caFile, ...crlFile, ...named].filter((file) => file !== undefined);
}

function checkMaterial(read: CertificateRead & Pick<TlsRead, 'psk' | 'pskFile' | 'serverNames'>): void {
  const isOptional = usesPresharedKeys(read) && read.serverNames.size === 0;
  checkPair(read, isOptional ? 'none' : 'needed', 'cert', 'key');
}

/** Check that a certificate and its key are given together. */
function checkPair(read: CertificateRead, without: 'none' | 'needed', certField: string, keyField: string): void {
  const hasCert = read.cert !== undefined || read.certFile !== undefined;
  const hasKey = read.key !== undefined || read.keyFile !== undefined;
  if (hasCert === hasKey && (hasCert || without === 'none')) return;
  const missing = hasCert ? keyField : certField;
  throw new InvalidInput(
    'OPTION_MISSING',
    missing,
    `${missing} or ${missing}File (or only psk or pskFile, without certificates)`,
    undefined
  );
}

function checkServerNames(value: unknown, field: string): ReadonlyMap<string, CertificateRead> {
  const names = new Map<string, CertificateRead>();
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidInput('OPTION_INVALID', field, 'an object of certificates by server name', value);
  }
  for (const [name, given] of Object.entries(value)) {
    if (!/^(\*\.)?[\w-]+(\.[\w-]+)*$/.test(name)) {
      throw new InvalidInput('OPTION_INVALID', field, 'server names such as "a.example" or "*.example"', name);
    }
    const where = `${field}["${name}"]`;
    const read = readOptions(CERTIFICATE_OPTIONS, given ?? {}, where);
    checkPair(read, 'needed', `${where}.cert`, `${where}.key`);
    names.set(name.toLowerCase(), read);
  }
  return names;
}

function checkPem(value: unknown, field: string): Pem {
  const list = Array.isArray(value) ? value : [value];
  if (list.some((item) => typeof item === 'string' && item !== '' && !item.includes('-----BEGIN '))) {
    const option = field.slice(field.lastIndexOf('.') + 1);
    const expected = `the text of a PEM file ("-----BEGIN ..."), not its path; for a path, use ${option}File`;
    throw new InvalidInput('OPTION_INVALID', field, expected, undefined, `${field}: expected ${expected}`);
  }
  if (list.every((item) => typeof item === 'string' || item instanceof Uint8Array)) return value as Pem;
  // without the value, which may be a private key
  throw new InvalidInput(
    'OPTION_INVALID',
    field,
    'PEM as string or bytes',
    undefined,
    `${field}: expected PEM as string or bytes`
  );
}

function checkPassphrase(value: unknown, field: string): string {
  if (typeof value === 'string') return value;
  // without the value, which may be the passphrase, read as a number
  throw new InvalidInput('OPTION_INVALID', field, 'a string', undefined, `${field}: expected a string`);
}

/** Read the ALPN protocols. The length of a name is one byte and not 0 [RFC 7301 3.1]. */
function checkAlpn(value: unknown, field: string): readonly string[] {
  const names = checkTexts(value, field);
  if (names.every((name) => name !== '' && Buffer.byteLength(name) <= 255)) return names;
  throw new InvalidInput('OPTION_INVALID', field, 'names of 1 to 255 bytes', value);
}

function checkKeys(value: unknown, field: string): PresharedKeys {
  if (typeof value === 'function') return value as PresharedKeys;
  if (typeof value !== 'object' || value === null) {
    throw new InvalidInput(
      'PSK_INVALID',
      field,
      'an object or Map of keys by identity, or a function',
      undefined,
      `${field}: expected an object or Map of keys by identity, or a function`
    );
  }
  keyLookup(value as PresharedKeys, undefined);
  return value as PresharedKeys;
}
