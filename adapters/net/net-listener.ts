import type { Server, Socket } from 'node:net';
import {
  BrokerError,
  type ListenerAddress,
  type ListenerFigures,
  type ListenerHandle,
  type ListenerProtocol
} from '../../lib/index.ts';
import { bind, boundAddress } from './bind.ts';
import { usernameStage } from './certificate.ts';
import { type Acceptor, Gate, ignore, type KnownLocal, type Stage } from './gate.ts';
import { proxyStage } from './proxy-stage.ts';
import { TlsEndpoint } from './tls.ts';
import type { TlsMaterial } from './tls-options.ts';
import type { Transport } from './transport.ts';
import { upgradeStage, WebSocketEndpoint } from './websocket.ts';

/** A listener of an app. The broker opens and closes it; the app may close it earlier. */
export interface Listener extends ListenerHandle, AsyncDisposable {
  /** The real port; undefined while not open, and for a Unix socket. */
  readonly port: number | undefined;
  /**
   * Take new certificates, keys, revocations and pre-shared keys for the handshakes from now on; files are read again. Connections that stand
   * are not touched, and where the new ones are not good the old ones stay in force. Rejects with BrokerError TLS_INVALID or
   * LISTENER_WITHOUT_TLS; InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING or PSK_INVALID.
   */
  reload(material?: TlsMaterial): Promise<void>;
}

const PROTOCOLS: Readonly<Record<Transport['kind'], ListenerProtocol>> = {
  tcp: 'mqtt:tcp',
  tls: 'mqtt:ssl',
  ws: 'mqtt:ws',
  wss: 'mqtt:wss',
  unix: 'mqtt:unix'
};

/** A listener with a socket of its own. */
export class NetListener implements Listener {
  readonly name: string;
  readonly protocol: ListenerProtocol;
  readonly #transport: Transport;
  readonly #gate: Gate;
  readonly #tls: TlsEndpoint | undefined;
  /** The way from the TLS handshake, or from accept where there is none, to the broker. */
  readonly #inner: Stage;
  #server: Server | undefined;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> = Promise.resolve();

  constructor(acceptor: Acceptor, transport: Transport) {
    const { common, kind, place, tls, webSocket } = transport;
    this.#transport = transport;
    this.name = common.name ?? freeName(acceptor, `${kind}:${'path' in place ? place.path : place.port}`);
    this.protocol = PROTOCOLS[kind];
    const zone = acceptor.zone(common.zone);
    this.#gate = new Gate(acceptor, this.name, common);
    this.#tls = tls === undefined ? undefined : new TlsEndpoint(this.#gate, tls);
    let stage: Stage = (arrival) => this.#gate.handOver(arrival);
    if (webSocket !== undefined) stage = upgradeStage(new WebSocketEndpoint(this.#gate, webSocket, zone), stage);
    if (common.usernameFrom !== undefined) stage = usernameStage(this.#gate, common.usernameFrom, stage);
    this.#inner = stage;
  }

  get address(): ListenerAddress | undefined {
    return this.#server === undefined ? undefined : boundAddress(this.#server);
  }

  get port(): number | undefined {
    return this.address?.port;
  }

  open(): Promise<void> {
    if (this.#opening !== undefined) return this.#opening;
    const opening = this.#closing.then(() => this.#open());
    this.#opening = opening;
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  accept(): void {
    this.#gate.accept();
  }

  close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    // A bind under way is waited for: closing a half-open server would leave the port taken.
    this.#closing = Promise.all([this.#closing, opening?.catch(ignore)]).then(() => {
      // Not awaited: it would wait for the connections, which are the broker's to end. The port itself is free at once.
      this.#server?.close();
      this.#server = undefined;
      this.#tls?.close();
      this.#gate.shut();
    });
    return this.#closing;
  }

  reload(material?: TlsMaterial): Promise<void> {
    return this.#tls === undefined ? Promise.reject(noTls(this.name)) : this.#tls.reload(material);
  }

  info(): ListenerFigures {
    return this.#gate.figures();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #open(): Promise<void> {
    const { place, kind, proxies } = this.#transport;
    const gate = this.#gate;
    try {
      await this.#tls?.open(this.#inner);
      const behindProxy = this.#tls?.enter ?? this.#inner;
      const enter =
        proxies === undefined ? behindProxy : proxyStage(gate, proxies === 'anyone' ? undefined : proxies, behindProxy);
      const isStaged = kind !== 'tcp' && kind !== 'unix' ? true : proxies !== undefined;
      let local: KnownLocal | undefined;
      const accept = (socket: Socket) => {
        const arrival = gate.admit(socket, kind, local, isStaged);
        if (arrival !== undefined) gate.enter(arrival, enter);
      };
      this.#server = await bind(place, accept, (error) => gate.report(error, 'accepting a connection'));
      local = knownLocal(this.address);
      gate.open();
    } catch (error) {
      this.#tls?.close();
      throw error;
    }
  }
}

/**
 * The name of a listener that was given none: what it listens on, with a number where another of this broker has that name already, as
 * with several that take any free port.
 */
export function freeName(acceptor: Acceptor, base: string): string {
  const taken = new Set(acceptor.listeners().map(({ name }) => name));
  let name = base;
  for (let number = 2; taken.has(name); number++) name = `${base}#${number}`;
  return name;
}

/** The answer to `reload` of a listener that has nothing to reload. */
export function noTls(name: string): BrokerError {
  return new BrokerError('LISTENER_WITHOUT_TLS', `listener ${name} has no certificates of its own to reload`);
}

/** What connections need not ask the kernel: nothing where every address of the machine is bound. */
function knownLocal(address: ListenerAddress | undefined): KnownLocal | undefined {
  const { host, port } = address ?? {};
  return host === '0.0.0.0' || host === '::' ? undefined : { address: host, port };
}
