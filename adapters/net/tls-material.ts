import { constants } from 'node:crypto';
import { constants as fileConstants } from 'node:fs';
import { open } from 'node:fs/promises';
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext, type SecureContextOptions } from 'node:tls';
import { type KeyLookup, keyLookup, parsePskFile } from './psk.ts';
import { type CertificateRead, type Pem, type TlsRead, usesKeys } from './tls-options.ts';

/** What handshakes are made with: everything read, and good. */
export interface LoadedMaterial {
  readonly context: SecureContextOptions;
  /** The certificate for a server name, told by the client; undefined: the listener's own. Itself undefined where there is but one certificate. */
  readonly contextFor: ((serverName: string) => SecureContext | undefined) | undefined;
  readonly keys: KeyLookup;
}

/** Read the files and make ready for handshakes. Throws whatever is wrong, with the name of the file or the server name. */
export async function loadMaterial(settings: TlsRead): Promise<LoadedMaterial> {
  const [certificate, ca, crl] = await Promise.all([
    loadCertificate(settings),
    loadPems(settings.ca, settings.caFile),
    loadPems(settings.crl, settings.crlFile)
  ]);
  const shared: SecureContextOptions = {
    ca: listOrNothing(ca),
    crl: listOrNothing(crl),
    ciphers: settings.ciphers ?? cipherList(settings),
    minVersion: settings.minVersion,
    maxVersion: settings.maxVersion,
    honorCipherOrder: true,
    // A resumed session would carry no identity, and could not be told from one that a key has proved.
    secureOptions: usesKeys(settings) ? constants.SSL_OP_NO_TICKET : undefined
  };
  const context = { ...shared, ...certificate };
  createSecureContext(context);
  const contextFor = await loadServerNames(settings.serverNames, shared);
  const pskText = settings.pskFile === undefined ? undefined : (await readRegularFile(settings.pskFile)).toString();
  const fromFile = pskText === undefined ? undefined : parsePskFile(pskText, settings.pskDelimiter);
  return { context, contextFor, keys: keyLookup(settings.psk, fromFile) };
}

async function loadServerNames(
  serverNames: ReadonlyMap<string, CertificateRead>,
  shared: SecureContextOptions
): Promise<LoadedMaterial['contextFor']> {
  if (serverNames.size === 0) return undefined;
  const contexts = new Map<string, SecureContext>();
  for (const [name, certificate] of serverNames) {
    try {
      contexts.set(name, createSecureContext({ ...shared, ...(await loadCertificate(certificate)) }));
    } catch (error) {
      throw new Error(`server name "${name}": ${(error as Error).message}`, { cause: error });
    }
  }
  return (serverName) => {
    const name = serverName.toLowerCase();
    return contexts.get(name) ?? contexts.get(`*${name.slice(name.indexOf('.'))}`);
  };
}

async function loadCertificate({ cert, certFile, key, keyFile, passphrase }: CertificateRead) {
  const [certs, keys] = await Promise.all([loadPems(cert, certFile), loadPems(key, keyFile)]);
  return { cert: certs, key: keys, passphrase };
}

async function loadPems(pem: Pem | undefined, files: string | readonly string[] = []): Promise<(string | Buffer)[]> {
  const read = await Promise.all([files].flat().map(readRegularFile));
  return [...pems(pem), ...read];
}

/** Reading a pipe or a device may never end, and opening a pipe would wait for a writer. Every error names the file. */
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

/** PSK alone where there is no certificate; with one, after Node's own. */
function cipherList(settings: TlsRead): string | undefined {
  if (!usesKeys(settings)) return undefined;
  if (settings.cert === undefined && settings.certFile === undefined) return 'PSK:!aNULL:!eNULL:!SHA1:!CAMELLIA:!ARIA';
  // In TLS 1.3 a pre-shared key goes with SHA-256 suites only [RFC 8446 4.2.11]: they must be the ones preferred, or the key is passed over.
  const others = DEFAULT_CIPHERS.split(':').filter((cipher) => cipher !== '!PSK' && !TLS13_SHA256.includes(cipher));
  return [...TLS13_SHA256, ...others, 'PSK'].join(':');
}

const TLS13_SHA256 = ['TLS_AES_128_GCM_SHA256', 'TLS_CHACHA20_POLY1305_SHA256'];

function pems(pem: Pem | undefined): (string | Buffer)[] {
  if (pem === undefined) return [];
  const list = typeof pem === 'string' || pem instanceof Uint8Array ? [pem] : pem;
  return list.map((item) => (typeof item === 'string' ? item : Buffer.from(item)));
}

function listOrNothing<T>(list: T[]): T[] | undefined {
  return list.length === 0 ? undefined : list;
}
