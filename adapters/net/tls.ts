import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket, type TlsOptions as TlsServerOptions } from 'node:tls';
import { BrokerError, plainAddress, verifiedCertificate } from '../../lib/index.ts';
import { type Arrival, type Gate, ignore, type Stage } from './gate.ts';
import { hasProvedKey, type KeyLookup } from './psk.ts';
import { type LoadedMaterial, loadMaterial } from './tls-material.ts';
import { filesOf, type TlsMaterial, type TlsRead, usesKeys, withMaterial } from './tls-options.ts';

/** Changes to files often come in pairs, certificate and key. */
const SETTLE_MS = 100;
/** Node's timers fire at once past this. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The TLS side of a listener: handshakes, and certificates that can be changed while it runs. */
export class TlsEndpoint {
  readonly #gate: Gate;
  #settings: TlsRead;
  #server: Server | undefined;
  #next: Stage | undefined;
  #isOpen = false;
  /** Opening and reloads, one after the other: each begins with what the one before left. */
  #loading: Promise<void> = Promise.resolve();
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
  open(next: Stage): Promise<void> {
    return this.#inTurn(async () => {
      this.#isOpen = true;
      this.#next = next;
      this.#watch(this.#settings);
      try {
        await this.#load(this.#settings);
      } catch (error) {
        this.close();
        throw error;
      }
    });
  }

  close(): void {
    this.#isOpen = false;
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
   * Take new certificates, keys, revocations and pre-shared keys for the handshakes from now on. Connections that stand are not touched.
   * Where the new ones are not good, the old ones stay in force.
   * @param material what changes; files are read again in any case
   * @throws BrokerError TLS_INVALID; InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING, PSK_INVALID
   */
  reload(material: TlsMaterial = {}): Promise<void> {
    return this.#inTurn(async () => {
      const previous = this.#settings;
      const settings = withMaterial(previous, material);
      const isSame = filesOf(settings).join('\0') === filesOf(previous).join('\0');
      // Before they are read: a change that comes after that is seen.
      if (!isSame) this.#watchAnew(settings);
      try {
        await this.#load(settings);
      } catch (error) {
        if (!isSame) this.#watchAnew(previous);
        throw error;
      }
      this.#settings = settings;
    });
  }

  #inTurn(run: () => Promise<void>): Promise<void> {
    const turn = this.#loading.then(run);
    this.#loading = turn.catch(ignore);
    return turn;
  }

  async #load(settings: TlsRead): Promise<void> {
    let material: LoadedMaterial;
    try {
      material = await loadMaterial(settings);
    } catch (error) {
      throw new BrokerError('TLS_INVALID', `certificates of listener ${this.#gate.name}: ${(error as Error).message}`, {
        cause: error
      });
    }
    this.#keys = material.keys;
    // A new one each time, since pre-shared keys can not be added to one that has none. Handshakes under way go on with the old one.
    if (this.#next !== undefined) this.#server = this.#createServer(settings, material, this.#next);
  }

  #createServer(settings: TlsRead, { context, contextFor }: LoadedMaterial, next: Stage): Server {
    const { requestCert, rejectUnauthorized, alpn } = settings;
    const pskCallback = (socket: TLSSocket, identity: string) => this.#findKey(socket, identity);
    const SNICallback: TlsServerOptions['SNICallback'] = (name, done) => done(null, contextFor?.(name));
    // From Node 24 on, rejectUnauthorized also refuses clients that proved a pre-shared key, as they show no certificate. So beside
    // pre-shared keys the certificate is checked here, after the handshake.
    const hasKeys = usesKeys(settings);
    const needsCertificate = hasKeys && requestCert && rejectUnauthorized;
    const server = createServer({
      ...context,
      requestCert,
      rejectUnauthorized: rejectUnauthorized && !hasKeys,
      ALPNProtocols: [...alpn],
      // The gate's own time limit comes first.
      handshakeTimeout: Math.min(this.#gate.settings.handshakeTimeout + 1000, LONGEST_TIMEOUT_MS),
      ...(contextFor === undefined ? {} : { SNICallback }),
      ...(hasKeys ? { pskCallback } : {})
    });
    server.on('secureConnection', (socket) => this.#secured(socket, needsCertificate, next));
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

  #secured(socket: TLSSocket, needsCertificate: boolean, next: Stage): void {
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
      const certificate = verifiedCertificate(socket);
      if (certificate === undefined && needsCertificate) {
        this.#gate.refuse(arrival, 'tls_failed');
        return;
      }
      arrival.certificate = certificate ?? arrival.certificate;
    }
    next(arrival);
  }

  #watchAnew(settings: TlsRead): void {
    this.#unwatch();
    if (this.#isOpen) this.#watch(settings);
  }

  #watch(settings: TlsRead): void {
    const { watchInterval: interval } = settings;
    if (interval === 0) return;
    for (const file of filesOf(settings)) {
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

/** Both ends of a connection, which no other has at the same time. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${plainAddress(remoteAddress)} ${remotePort} ${plainAddress(localAddress)} ${localPort}`;
}
