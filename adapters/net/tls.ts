// The server of Node here never listens: the gate accepts connections, and each is passed to it for the handshake. A
// reload makes a new server, and handshakes in progress end with the old one. Opens and reloads run one after the
// other; settings are replaced only after their material was loaded, so the old ones stay in use after an error. The
// gate limits the time of a handshake; the timeout of Node is later on purpose.

import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket, type TlsOptions as TlsServerOptions } from 'node:tls';
import { plainAddress, verifiedCertificate } from '../../lib/adapter.ts';
import { BrokerError } from '../../lib/index.ts';
import { FileWatch } from './file-watch.ts';
import { type Arrival, type Gate, ignore, type Stage } from './gate.ts';
import { hasProvedKey, type KeyLookup } from './psk.ts';
import { type LoadedMaterial, loadMaterial } from './tls-material.ts';
import { filesOf, type TlsMaterial, type TlsRead, usesPresharedKeys, withMaterial } from './tls-options.ts';

/** Maximum timeout of Node; with a longer one, a timer fires at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The fault if Node does not distinguish the two cases. */
const UNTRUSTED_OR_CLOSED =
  'the peer has closed the connection, or its certificate is not valid: no authority of the option ca has signed it, it has expired, or it is revoked';

/** The TLS part of a listener: handshakes, and certificates that can be replaced while the listener is open. */
export class TlsEndpoint {
  readonly #gate: Gate;
  #settings: TlsRead;
  #server: Server | undefined;
  #next: Stage | undefined;
  #isOpen = false;
  /** The last open or reload. They run sequentially, because each starts from the settings of the previous one. */
  #loading: Promise<void> = Promise.resolve();
  #keys: KeyLookup = () => undefined;
  readonly #files: FileWatch;
  readonly #identities = new WeakMap<TLSSocket, string>();
  /**
   * Connections in a handshake, by the addresses of both ends: a TLS socket does not reveal the socket that it wraps.
   */
  readonly #handshaking = new Map<string, { readonly arrival: Arrival; readonly forget: () => void }>();

  constructor(gate: Gate, settings: TlsRead) {
    this.#gate = gate;
    this.#settings = settings;
    this.#files = new FileWatch(gate.clock, () => {
      this.reload().catch((error) => this.#gate.report(error, 'reloading certificates'));
    });
  }

  /**
   * Read the certificates and prepare for handshakes.
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
    this.#files.close();
  }

  /** The stage of the TLS handshake. */
  readonly enter: Stage = (arrival) => {
    arrival.reason = 'tls_failed';
    arrival.fault = this.#settings.rejectUnauthorized ? UNTRUSTED_OR_CLOSED : 'the peer has closed the connection';
    const socket = arrival.socket as Socket;
    const ends = endsOf(socket);
    const forget = () => {
      this.#handshaking.delete(ends);
      // removed, because it would take memory for the life of the connection
      socket.off('close', forget);
    };
    this.#handshaking.set(ends, { arrival, forget });
    socket.on('close', forget);
    this.#server?.emit('connection', socket);
  };

  /**
   * Use new certificates, keys, revocation lists and pre-shared keys for all further handshakes. Existing connections
   * stay open. If the new material is invalid, the old one remains in use.
   * @param material the changed settings; files are read again in any case
   * @throws BrokerError TLS_INVALID; InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING, PSK_INVALID
   */
  reload(material: TlsMaterial = {}): Promise<void> {
    return this.#inTurn(async () => {
      const previous = this.#settings;
      const settings = withMaterial(previous, material);
      const isSame = filesOf(settings).join('\0') === filesOf(previous).join('\0');
      // watch before reading, so that no change is missed
      if (!isSame) this.#watch(settings);
      try {
        await this.#load(settings);
      } catch (error) {
        if (!isSame) this.#watch(previous);
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
    // a new server each time, because pre-shared keys cannot be added to a server without any. Handshakes in progress
    // continue with the old one
    if (this.#next !== undefined) this.#server = this.#createServer(settings, material, this.#next);
  }

  #createServer(settings: TlsRead, { context, contextFor }: LoadedMaterial, next: Stage): Server {
    const { requestCert, rejectUnauthorized, alpn } = settings;
    const pskCallback = (socket: TLSSocket, identity: string) => this.#findKey(socket, identity);
    const SNICallback: TlsServerOptions['SNICallback'] = (name, done) => done(null, contextFor?.(name));
    // Since Node 24, rejectUnauthorized also refuses clients that have proved a pre-shared key, because they present no
    // certificate. So with pre-shared keys, the certificate is checked here after the handshake.
    const hasKeys = usesPresharedKeys(settings);
    const needsCertificate = hasKeys && requestCert && rejectUnauthorized;
    const server = createServer({
      ...context,
      requestCert,
      rejectUnauthorized: rejectUnauthorized && !hasKeys,
      ALPNProtocols: [...alpn],
      // later than the handshake timeout of the gate, which applies first
      handshakeTimeout: Math.min(this.#gate.settings.handshakeTimeout + 1000, MAX_TIMEOUT_MS),
      ...(contextFor === undefined ? {} : { SNICallback }),
      ...(hasKeys ? { pskCallback } : {})
    });
    server.on('secureConnection', (socket) => this.#onSecureConnection(socket, needsCertificate, next));
    // the gate handles the close of the socket, which follows
    server.on('tlsClientError', (error, socket) => {
      const failed = this.#handshaking.get(endsOf(socket));
      if (failed !== undefined) failed.arrival.fault = reasonOf(error);
    });
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

  #onSecureConnection(socket: TLSSocket, needsCertificate: boolean, next: Stage): void {
    socket.on('error', ignore);
    const found = this.#handshaking.get(endsOf(socket));
    found?.forget();
    if (found === undefined || found.arrival.isSettled) {
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

  #watch(settings: TlsRead): void {
    if (this.#isOpen) this.#files.watch(filesOf(settings), settings.watchInterval);
  }
}

/** Key of a connection: the addresses of both ends, which are unique at any time. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${plainAddress(remoteAddress)} ${remotePort} ${plainAddress(localAddress)} ${localPort}`;
}

/**
 * The reason for a failed handshake. The messages of OpenSSL contain the reason among numbers and names of its files.
 */
function reasonOf({ message, reason }: Error & { readonly reason?: unknown }): string {
  return typeof reason === 'string' ? reason : message;
}
