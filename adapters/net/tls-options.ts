import type { SecureVersion } from 'node:tls';
import { type Duration, InvalidInput, type OptionValues, readOptions, optionRow as row } from '../../lib/index.ts';
import { checkTexts } from './options.ts';
import { keyLookup, type PresharedKeys } from './psk.ts';

/** PEM text, or several. */
export type Pem = string | Uint8Array | readonly (string | Uint8Array)[];

/** A certificate of the server and its key: as PEM, or as names of files that hold PEM. */
export interface ServerCertificate {
  /** Certificate of the server, with the chain below its root. */
  cert?: Pem;
  /** File of `cert`. */
  certFile?: string;
  /** Private key of the certificate. */
  key?: Pem;
  /** File of `key`. */
  keyFile?: string;
  /** Of a key that is encrypted. */
  passphrase?: string;
}

/** Certificates and keys: as PEM, or as names of regular files that hold PEM and are read when the listener opens and at each `reload()`. */
export interface TlsMaterial extends ServerCertificate {
  /**
   * Certificates for single server names, which clients tell in the handshake (SNI): `{ 'a.example': { certFile, keyFile }, '*.b.example': ... }`.
   * `*` stands for one level, and a whole name goes over it. For all other names, and for clients that tell none, `cert` stays in force.
   */
  serverNames?: Readonly<Record<string, ServerCertificate>>;
  /** Authorities whose client certificates are believed, in place of the ones Node knows. */
  ca?: Pem;
  /** Files of `ca`. */
  caFile?: string | readonly string[];
  /** Revoked certificates. With a list, there must be one for each authority in a client's chain. */
  crl?: Pem;
  /** Files of `crl`. */
  crlFile?: string | readonly string[];
  /**
   * Pre-shared keys by identity, as bytes or hexadecimal. Whoever proves a key in the handshake has its identity as user name and needs
   * no further authentication. A function must answer at once; a promise counts as an unknown identity.
   */
  psk?: PresharedKeys;
  /** File of `identity:hexkey` lines. */
  pskFile?: string;
}

/** How TLS is spoken. */
export interface TlsSettings extends TlsMaterial {
  /** What stands between identity and key in `pskFile`. Default `:`. */
  pskDelimiter?: string;
  /** Ask clients for a certificate. Default: where `ca`, `caFile` or `usernameFrom` is given. */
  requestCert?: boolean;
  /** Close connections without a certificate that verifies. Default: as `requestCert`. */
  rejectUnauthorized?: boolean;
  /** OpenSSL's list of cipher suites. Default: Node's; with pre-shared keys also theirs. */
  ciphers?: string;
  /** Default `TLSv1.2`. */
  minVersion?: SecureVersion;
  /** Default: the highest that Node knows. */
  maxVersion?: SecureVersion;
  /** Protocols a client may name in the handshake (ALPN). Default `mqtt`; for secure WebSocket `http/1.1`. A client that names none is let in. */
  alpn?: readonly string[];
  /** Look at the files this often and reload when one has changed. 0 (default): only on `reload()`. */
  watchInterval?: Duration;
}

const CERTIFICATE_OPTIONS = {
  cert: row('object', undefined as Pem | undefined, 'Certificate, PEM.', { check: checkPem }),
  certFile: row('text', undefined as string | undefined, 'File of the certificate.', { aliases: ['certfile'] }),
  key: row('object', undefined as Pem | undefined, 'Private key, PEM.', { check: checkPem }),
  keyFile: row('text', undefined as string | undefined, 'File of the private key.', { aliases: ['keyfile'] }),
  passphrase: row('object', undefined as string | undefined, 'Passphrase of the key.', { check: checkPassphrase })
};

/** A certificate's options as read. */
export type CertificateRead = OptionValues<typeof CERTIFICATE_OPTIONS>;

const MATERIAL_OPTIONS = {
  ...CERTIFICATE_OPTIONS,
  serverNames: row(
    'object',
    new Map() as ReadonlyMap<string, CertificateRead>,
    'Certificates for single server names (SNI).',
    { check: checkServerNames }
  ),
  ca: row('object', undefined as Pem | undefined, 'Authorities of client certificates, PEM.', { check: checkPem }),
  caFile: row('object', [] as readonly string[], 'Files of authorities.', {
    check: checkTexts,
    aliases: ['cacertfile']
  }),
  crl: row('object', undefined as Pem | undefined, 'Revoked certificates, PEM.', { check: checkPem }),
  crlFile: row('object', [] as readonly string[], 'Files of revoked certificates.', { check: checkTexts }),
  psk: row('object', undefined as PresharedKeys | undefined, 'Pre-shared keys.', { check: checkKeys }),
  pskFile: row('text', undefined as string | undefined, 'File of pre-shared keys.', { aliases: ['psk.file.path'] })
};

export const TLS_OPTIONS = {
  ...MATERIAL_OPTIONS,
  pskDelimiter: row('text', ':', 'Between identity and key.', { aliases: ['psk.file.delimiter'] }),
  requestCert: row('boolean', undefined as boolean | undefined, 'Ask for a client certificate.'),
  rejectUnauthorized: row(
    'boolean',
    undefined as boolean | undefined,
    'Close connections without a certificate that verifies.',
    {
      aliases: ['failIfNoPeerCert', 'fail_if_no_peer_cert']
    }
  ),
  ciphers: row('text', undefined as string | undefined, 'Cipher suites.'),
  minVersion: row('choice', 'TLSv1.2' as SecureVersion, 'Lowest version.', {
    choices: ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']
  }),
  maxVersion: row('choice', undefined as SecureVersion | undefined, 'Highest version.', {
    choices: ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']
  }),
  alpn: row('object', undefined as readonly string[] | undefined, 'Protocols of ALPN.', { check: checkAlpn }),
  watchInterval: row('duration', 0, 'How often to look at the files; 0: never.', { unit: 'ms' })
};

/** TLS options as read, with their dependent defaults filled in. */
export type TlsRead = OptionValues<typeof TLS_OPTIONS> & {
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
  readonly alpn: readonly string[];
};

/**
 * Fill in what depends on other options.
 * @throws InvalidInput OPTION_MISSING where there is neither a certificate with its key nor a pre-shared key
 */
export function settleTls(
  read: OptionValues<typeof TLS_OPTIONS>,
  needsCertificate: boolean,
  alpn: readonly string[]
): TlsRead {
  checkWhole(read);
  const requestCert = read.requestCert ?? (needsCertificate || read.ca !== undefined || read.caFile.length > 0);
  return { ...read, requestCert, rejectUnauthorized: read.rejectUnauthorized ?? requestCert, alpn: read.alpn ?? alpn };
}

/**
 * The settings with other material. PEM given anew takes the place of a file, and the other way round.
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
  checkWhole(changed);
  return changed;
}

/** Are clients let in by a pre-shared key? */
export function usesKeys({ psk, pskFile }: Pick<TlsRead, 'psk' | 'pskFile'>): boolean {
  return psk !== undefined || pskFile !== undefined;
}

/** Every file that is read, for those who watch over them. */
export function filesOf({ certFile, keyFile, caFile, crlFile, pskFile, serverNames }: TlsRead): string[] {
  const named = [...serverNames.values()].flatMap((certificate) => [certificate.certFile, certificate.keyFile]);
  return [certFile, keyFile, pskFile, ...caFile, ...crlFile, ...named].filter((file) => file !== undefined);
}

function checkWhole(read: CertificateRead & Pick<TlsRead, 'psk' | 'pskFile' | 'serverNames'>): void {
  const isOptional = usesKeys(read) && read.serverNames.size === 0;
  checkPair(read, isOptional ? 'none' : 'needed', 'cert', 'key');
}

/** A certificate goes with its key. */
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
    throw new InvalidInput('OPTION_INVALID', field, 'a table of certificates by server name', value);
  }
  for (const [name, given] of Object.entries(value)) {
    if (!/^(\*\.)?[\w-]+(\.[\w-]+)*$/.test(name)) {
      throw new InvalidInput('OPTION_INVALID', field, 'server names such as "a.example" or "*.example"', name);
    }
    const where = `${field}["${name}"]`;
    const read = readOptions(CERTIFICATE_OPTIONS, given ?? {}, where) as CertificateRead;
    checkPair(read, 'needed', `${where}.cert`, `${where}.key`);
    names.set(name.toLowerCase(), read);
  }
  return names;
}

function checkPem(value: unknown, field: string): Pem {
  const list = Array.isArray(value) ? value : [value];
  if (list.every((item) => typeof item === 'string' || item instanceof Uint8Array)) return value as Pem;
  // Without the value: it may be a private key.
  throw new InvalidInput(
    'OPTION_INVALID',
    field,
    'PEM as text or bytes',
    undefined,
    `${field}: expected PEM as text or bytes`
  );
}

function checkPassphrase(value: unknown, field: string): string {
  if (typeof value === 'string') return value;
  // Without the value: it may be the passphrase, read as a number.
  throw new InvalidInput('OPTION_INVALID', field, 'a text', undefined, `${field}: expected a text`);
}

/** The length of a name stands in one byte, and is not 0 [RFC 7301 3.1]. */
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
      'a table of keys by identity, or a function',
      undefined,
      `${field}: expected a table of keys by identity, or a function`
    );
  }
  keyLookup(value as PresharedKeys, undefined);
  return value as PresharedKeys;
}
