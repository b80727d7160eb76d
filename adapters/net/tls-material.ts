import { constants } from 'node:crypto';
import { constants as fileConstants } from 'node:fs';
import { open } from 'node:fs/promises';
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext, type SecureContextOptions } from 'node:tls';
import { type KeyLookup, keyLookup, parsePskFile } from './psk.ts';
import { type CertificateRead, type Pem, type TlsRead, usesPresharedKeys } from './tls-options.ts';

/** Certificates and keys for handshakes, read and checked. */
export interface LoadedMaterial {
  readonly context: SecureContextOptions;
  /**
   * Finds the certificate for the server name that a client sends; it returns undefined for the default certificate.
   * Undefined if there are no certificates for server names.
   */
  readonly contextFor: ((serverName: string) => SecureContext | undefined) | undefined;
  readonly keys: KeyLookup;
}

/** Read certificates and keys, and check that they fit together. @throws Error that names the file or the server name */
export async function loadMaterial(settings: TlsRead): Promise<LoadedMaterial> {
  const [certificate, ca, crl] = await Promise.all([
    loadCertificate(settings),
    loadPems(settings.ca, settings.caFile),
    loadPems(settings.crl, settings.crlFile)
  ]);
  const shared: SecureContextOptions = {
    ca: undefinedIfEmpty(ca),
    crl: undefinedIfEmpty(crl),
    ciphers: settings.ciphers ?? cipherList(settings),
    minVersion: settings.minVersion,
    maxVersion: settings.maxVersion,
    honorCipherOrder: true,
    // a resumed session has no identity, and could not be distinguished from one with a proved key
    secureOptions: usesPresharedKeys(settings) ? constants.SSL_OP_NO_TICKET : undefined
  };
  const context = { ...shared, ...certificate };
  checkedContext(context, settings);
  const contextFor = await loadServerNames(settings.serverNames, shared);
  return { context, contextFor, keys: keyLookup(settings.psk, await keysInFile(settings)) };
}

/** @throws Error that names the file and the line */
async function keysInFile({ pskFile, pskDelimiter }: TlsRead): Promise<ReadonlyMap<string, Uint8Array> | undefined> {
  if (pskFile === undefined) return undefined;
  const text = (await readRegularFile(pskFile)).toString();
  try {
    return parsePskFile(text, pskDelimiter);
  } catch (error) {
    throw new Error(`${pskFile}: ${(error as Error).message}`, { cause: error });
  }
}

async function loadServerNames(
  serverNames: ReadonlyMap<string, CertificateRead>,
  shared: SecureContextOptions
): Promise<LoadedMaterial['contextFor']> {
  if (serverNames.size === 0) return undefined;
  const contexts = new Map<string, SecureContext>();
  for (const [name, certificate] of serverNames) {
    try {
      contexts.set(name, checkedContext({ ...shared, ...(await loadCertificate(certificate)) }, certificate));
    } catch (error) {
      throw new Error(`server name "${name}": ${(error as Error).message}`, { cause: error });
    }
  }
  return (serverName) => {
    const name = serverName.toLowerCase();
    return contexts.get(name) ?? contexts.get(`*${name.slice(name.indexOf('.'))}`);
  };
}

type Pems = Readonly<Record<'cert' | 'key', readonly (string | Buffer)[]>>;

/** @throws Error that names certificate and key, if they are swapped or do not belong together */
function checkedContext(context: SecureContextOptions & Pems, { certFile, keyFile }: CertificateRead): SecureContext {
  try {
    return createSecureContext(context);
  } catch (error) {
    const cert = certFile ?? 'the option cert';
    const key = keyFile ?? 'the option key';
    const has = (pems: readonly (string | Buffer)[], sign: string) => pems.some((pem) => pem.includes(sign));
    let text = '';
    if ((error as NodeJS.ErrnoException).code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH')
      text = `the private key in ${key} does not belong to the certificate in ${cert}; use the key that the certificate was issued for`;
    else if (context.cert.length > 0 && !has(context.cert, 'CERTIFICATE-----'))
      text = `${cert} contains no certificate in PEM format; check that it and ${key} are not swapped`;
    else if (context.key.length > 0 && !has(context.key, 'PRIVATE KEY-----'))
      text = `${key} contains no private key in PEM format; check that it and ${cert} are not swapped`;
    throw text === '' ? error : new Error(text, { cause: error });
  }
}

async function loadCertificate({ cert, certFile, key, keyFile, passphrase }: CertificateRead) {
  const [certs, keys] = await Promise.all([loadPems(cert, certFile), loadPems(key, keyFile)]);
  return { cert: certs, key: keys, passphrase };
}

async function loadPems(pem: Pem | undefined, files: string | readonly string[] = []): Promise<(string | Buffer)[]> {
  const read = await Promise.all([files].flat().map(readRegularFile));
  return [...toPemList(pem), ...read];
}

/** Read a regular file. Others are refused: reading a pipe or device may never end, and opening a pipe waits for a writer. */
async function readRegularFile(path: string): Promise<Buffer> {
  const file = await open(path, fileConstants.O_RDONLY | (fileConstants.O_NONBLOCK ?? 0));
  try {
    const found = await file.stat();
    if (!found.isFile()) {
      const kind = found.isDirectory() ? 'a directory' : 'a pipe, a socket or a device';
      throw new Error(`${path}: it is ${kind}; a regular file is needed`);
    }
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/**
 * Cipher list with pre-shared keys: without a certificate only PSK suites, otherwise those of Node followed by PSK
 * suites.
 */
function cipherList(settings: TlsRead): string | undefined {
  if (!usesPresharedKeys(settings)) return undefined;
  if (settings.cert === undefined && settings.certFile === undefined) return 'PSK:!aNULL:!eNULL:!SHA1:!CAMELLIA:!ARIA';
  // in TLS 1.3 a pre-shared key works only with SHA-256 suites [RFC 8446 4.2.11]; if others are preferred, the key is ignored
  const others = DEFAULT_CIPHERS.split(':').filter((cipher) => cipher !== '!PSK' && !TLS13_SHA256.includes(cipher));
  return [...TLS13_SHA256, ...others, 'PSK'].join(':');
}

const TLS13_SHA256 = ['TLS_AES_128_GCM_SHA256', 'TLS_CHACHA20_POLY1305_SHA256'];

function toPemList(pem: Pem | undefined): (string | Buffer)[] {
  if (pem === undefined) return [];
  const list = typeof pem === 'string' || pem instanceof Uint8Array ? [pem] : pem;
  return list.map((item) => (typeof item === 'string' ? item : Buffer.from(item)));
}

function undefinedIfEmpty<T>(list: T[]): T[] | undefined {
  return list.length === 0 ? undefined : list;
}
