import { constants } from 'node:crypto';
import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import {
  createSecureContext,
  createServer,
  DEFAULT_CIPHERS,
  type SecureContextOptions,
  type SecureVersion,
  type Server,
  type TLSSocket
} from 'node:tls';
import { BrokerError, type Duration, InvalidInput, type OptionValues, optionRow as row } from '../../lib/index.ts';
import { verifiedCertificate } from './certificate.ts';
import { type Arrival, type Gate, ignore, plainAddress, type Stage } from './gate.ts';
import { checkTexts } from './options.ts';
import { hasProvedKey, type KeyLookup, keyLookup, type PresharedKeys, parsePskFile } from './psk.ts';

/** PEM text, or several. */
export type Pem = string | Uint8Array | readonly (string | Uint8Array)[];

/** Certificates and keys: as PEM, or as names of files that hold PEM and are read when the listener opens and at each `reload()`. */
export interface TlsMaterial {
  /** Certificate of the server, with the chain below its root. */
  cert?: Pem;
  certFile?: string;
  /** Private key of the certificate. */
  key?: Pem;
  keyFile?: string;
  passphrase?: string;
  /** Authorities whose client certificates are believed, in place of the ones Node knows. */
  ca?: Pem;
  caFile?: string | readonly string[];
  /** Revoked certificates. With a list, there must be one for each authority in a client's chain. */
  crl?: Pem;
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
  maxVersion?: SecureVersion;
  /** Protocols a client may name in the handshake (ALPN). Default `mqtt`; for secure WebSocket `http/1.1`. A client that names none is let in. */
  alpn?: readonly string[];
  /** Look at the files this often and reload when one has changed. 0 (default): only on `reload()`. */
  watchInterval?: Duration;
}

export const TLS_OPTIONS = {
  cert: row('object', undefined as Pem | undefined, 'Certificate, PEM.', { check: checkPem }),
  certFile: row('text', undefined as string | undefined, 'File of the certificate.', { aliases: ['certfile'] }),
  key: row('object', undefined as Pem | undefined, 'Private key, PEM.', { check: checkPem }),
  keyFile: row('text', undefined as string | undefined, 'File of the private key.', { aliases: ['keyfile'] }),
  passphrase: row('text', undefined as string | undefined, 'Passphrase of the key.'),
  ca: row('object', undefined as Pem | undefined, 'Authorities of client certificates, PEM.', { check: checkPem }),
  caFile: row('object', [] as readonly string[], 'Files of authorities.', {
    check: checkTexts,
    aliases: ['cacertfile']
  }),
  crl: row('object', undefined as Pem | undefined, 'Revoked certificates, PEM.', { check: checkPem }),
  crlFile: row('object', [] as readonly string[], 'Files of revoked certificates.', { check: checkTexts }),
  psk: row('object', undefined as PresharedKeys | undefined, 'Pre-shared keys.', { check: checkKeys }),
  pskFile: row('text', undefined as string | undefined, 'File of pre-shared keys.', { aliases: ['psk.file.path'] }),
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
  alpn: row('object', undefined as readonly string[] | undefined, 'Protocols of ALPN.', { check: checkTexts }),
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
  const hasCert = read.cert !== undefined || read.certFile !== undefined;
  const hasKey = read.key !== undefined || read.keyFile !== undefined;
  if (hasCert !== hasKey || !(hasCert || usesKeys(read))) {
    const missing = hasCert ? 'key' : 'cert';
    throw new InvalidInput(
      'OPTION_MISSING',
      missing,
      `${missing} or ${missing}File (or only psk or pskFile, without certificates)`,
      undefined
    );
  }
  const requestCert = read.requestCert ?? (needsCertificate || read.ca !== undefined || read.caFile.length > 0);
  return { ...read, requestCert, rejectUnauthorized: read.rejectUnauthorized ?? requestCert, alpn: read.alpn ?? alpn };
}

/** Changes to files often come in pairs, certificate and key. */
const SETTLE_MS = 100;
/** Node's timers fire at once past this. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The TLS side of a listener: handshakes, and certificates that can be changed while it runs. */
export class TlsEndpoint {
  readonly #gate: Gate;
  #settings: TlsRead;
  #server: Server | undefined;
  #keys: KeyLookup = () => undefined;
  #watched: { readonly file: string; readonly changed: StatsListener }[] = [];
  #reloadTimer: unknown;
  readonly #identities = new WeakMap<TLSSocket, string>();
  /** By the addresses of both ends, since a TLS socket does not tell which socket it was made over. */
  readonly #handshaking = new Map<string, { readonly arrival: Arrival; readonly forget: () => void }>();

  constructor(gate: Gate, settings: TlsRead) {
    this.#gate = gate;
    this.#settings = settings;
  }

  /**
   * Read what has to be read, and make ready for handshakes.
   * @throws BrokerError TLS_INVALID
   */
  async open(next: Stage): Promise<void> {
    this.#watch();
    try {
      const { context, keys } = await this.#load(this.#settings);
      this.#keys = keys;
      this.#server = this.#createServer(context, next);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    this.#unwatch();
    this.#gate.clock.clearTimeout(this.#reloadTimer);
  }

  /** The stage that makes the handshake. */
  readonly enter: Stage = (arrival) => {
    arrival.reason = 'tls_failed';
    const socket = arrival.socket as Socket;
    const ends = endsOf(socket);
    const forget = () => {
      this.#handshaking.delete(ends);
      // Not kept for the life of the connection, which may be long.
      socket.off('close', forget);
    };
    this.#handshaking.set(ends, { arrival, forget });
    socket.on('close', forget);
    this.#server?.emit('connection', socket);
  };

  /**
   * Take new certificates, keys and revocations for the handshakes from now on. Connections that stand are not touched. Where the new ones
   * are not good, the old ones stay in force.
   * @param material what changes; files are read again in any case
   * @throws BrokerError TLS_INVALID
   */
  async reload(material: TlsMaterial = {}): Promise<void> {
    const settings = withMaterial(this.#settings, material);
    if (usesKeys(settings) !== usesKeys(this.#settings)) {
      const message = `listener ${this.#gate.name} can not begin or end to use pre-shared keys while it runs; close it and listen anew`;
      throw new BrokerError('TLS_INVALID', message);
    }
    const { context, keys } = await this.#load(settings);
    this.#server?.setSecureContext(context);
    this.#keys = keys;
    this.#settings = settings;
    if (this.#watched.length > 0 && Object.keys(material).some((name) => name.endsWith('File'))) {
      this.#unwatch();
      this.#watch();
    }
  }

  async #load(settings: TlsRead): Promise<{ context: SecureContextOptions; keys: KeyLookup }> {
    try {
      const files = [settings.certFile, settings.keyFile, settings.caFile, settings.crlFile].map(readAll);
      const [cert, key, ca, crl] = await Promise.all(files);
      const pskText = settings.pskFile === undefined ? undefined : (await readOne(settings.pskFile)).toString();
      const context: SecureContextOptions = {
        cert: [...pems(settings.cert), ...cert],
        key: [...pems(settings.key), ...key],
        ca: listOrNothing([...pems(settings.ca), ...ca]),
        crl: listOrNothing([...pems(settings.crl), ...crl]),
        passphrase: settings.passphrase,
        ciphers: settings.ciphers ?? cipherList(settings),
        minVersion: settings.minVersion,
        maxVersion: settings.maxVersion,
        honorCipherOrder: true,
        // A resumed session would carry no identity, and could not be told from one that a key has proved.
        secureOptions: usesKeys(settings) ? constants.SSL_OP_NO_TICKET : undefined
      };
      createSecureContext(context);
      const fromFile = pskText === undefined ? undefined : parsePskFile(pskText, settings.pskDelimiter);
      return { context, keys: keyLookup(settings.psk, fromFile) };
    } catch (error) {
      throw new BrokerError('TLS_INVALID', `certificates of listener ${this.#gate.name}: ${(error as Error).message}`, {
        cause: error
      });
    }
  }

  #createServer(context: SecureContextOptions, next: Stage): Server {
    const { requestCert, rejectUnauthorized, alpn } = this.#settings;
    const pskCallback = (socket: TLSSocket, identity: string) => this.#findKey(socket, identity);
    const server = createServer({
      ...context,
      requestCert,
      rejectUnauthorized,
      ALPNProtocols: [...alpn],
      // The gate's own time limit comes first.
      handshakeTimeout: Math.min(this.#gate.settings.handshakeTimeout + 1000, LONGEST_TIMEOUT_MS),
      ...(usesKeys(this.#settings) ? { pskCallback } : {})
    });
    server.on('secureConnection', (socket) => this.#secured(socket, next));
    // The socket's close tells the gate; without a listener nothing else would happen either, this says so.
    server.on('tlsClientError', ignore);
    return server;
  }

  #findKey(socket: TLSSocket, identity: string): Uint8Array | null {
    try {
      const key = this.#keys(identity);
      if (key === undefined) return null;
      this.#identities.set(socket, identity);
      return key;
    } catch (error) {
      this.#gate.report(error, 'looking up a pre-shared key');
      return null;
    }
  }

  #secured(socket: TLSSocket, next: Stage): void {
    socket.on('error', ignore);
    const found = this.#handshaking.get(endsOf(socket));
    found?.forget();
    if (found === undefined || found.arrival.isOver) {
      socket.destroy();
      return;
    }
    const { arrival } = found;
    arrival.stream = socket;
    const identity = this.#identities.get(socket);
    if (identity !== undefined && hasProvedKey(socket)) {
      arrival.username = identity;
      arrival.isAuthenticated = true;
    } else {
      arrival.certificate = verifiedCertificate(socket) ?? arrival.certificate;
    }
    next(arrival);
  }

  #watch(): void {
    const { watchInterval: interval, certFile, keyFile, caFile, crlFile, pskFile } = this.#settings;
    if (interval === 0) return;
    for (const file of [certFile, keyFile, pskFile, ...caFile, ...crlFile]) {
      if (file === undefined) continue;
      const changed: StatsListener = () => this.#reloadSoon();
      watchFile(file, { interval, persistent: false }, changed);
      this.#watched.push({ file, changed });
    }
  }

  #unwatch(): void {
    for (const { file, changed } of this.#watched.splice(0)) unwatchFile(file, changed);
  }

  #reloadSoon(): void {
    const { clock } = this.#gate;
    clock.clearTimeout(this.#reloadTimer);
    this.#reloadTimer = clock.setTimeout(() => {
      this.reload().catch((error) => this.#gate.report(error, 'reloading certificates'));
    }, SETTLE_MS);
  }
}

function usesKeys(settings: Pick<TlsRead, 'psk' | 'pskFile'>): boolean {
  return settings.psk !== undefined || settings.pskFile !== undefined;
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

/** PEM given anew takes the place of a file, and the other way round. */
function withMaterial(settings: TlsRead, material: TlsMaterial): TlsRead {
  const replaced: Partial<TlsMaterial> = {};
  for (const name of ['cert', 'key', 'ca', 'crl', 'psk'] as const) {
    if (material[name] !== undefined) replaced[`${name}File`] = undefined;
    if (material[`${name}File`] !== undefined) replaced[name] = undefined;
  }
  const { caFile, crlFile, ...rest } = { ...settings, ...replaced, ...material };
  return {
    ...rest,
    caFile: caFile === undefined ? [] : [caFile].flat(),
    crlFile: crlFile === undefined ? [] : [crlFile].flat()
  };
}

/** Both ends of a connection, which no other has at the same time. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${plainAddress(remoteAddress)} ${remotePort} ${plainAddress(localAddress)} ${localPort}`;
}

function pems(pem: Pem | undefined): (string | Buffer)[] {
  if (pem === undefined) return [];
  const list = typeof pem === 'string' || pem instanceof Uint8Array ? [pem] : pem;
  return list.map((item) => (typeof item === 'string' ? item : Buffer.from(item)));
}

function listOrNothing<T>(list: T[]): T[] | undefined {
  return list.length === 0 ? undefined : list;
}

function readAll(files: string | readonly string[] | undefined): Promise<Buffer[]> {
  return Promise.all((files === undefined ? [] : [files].flat()).map(readOne));
}

function readOne(file: string): Promise<Buffer> {
  return readFile(file);
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
