// Listeners begin to accept together. Node accepts connections as soon as `listen()` succeeds. A listener of
// `embermq/net` keeps them unread, within `handshakeTimeout` and `maxConnections`, until the broker calls `accept`
// after all listeners have opened. If one fails to open, these connections are closed. A listener opened while the
// broker runs accepts at once.

import { createServer, type Server, type Socket } from 'node:net';
import {
  INSPECT,
  type ListenerAddress,
  type ListenerCounters,
  type ListenerHandle,
  type ListenerProtocol,
  listenerText
} from '../../lib/adapter.ts';
import { BrokerError } from '../../lib/index.ts';
import type { Acceptor } from './acceptor.ts';
import { bind, boundAddress } from './bind.ts';
import { usernameStage } from './certificate.ts';
import { type Arrival, Gate, ignore, type KnownLocal, type LimitReport, type Stage } from './gate.ts';
import { proxyStage } from './proxy-stage.ts';
import { TlsEndpoint } from './tls.ts';
import type { TlsMaterial } from './tls-options.ts';
import type { Transport } from './transport.ts';
import { upgradeStage, WebSocketEndpoint } from './websocket.ts';

/** A listener of the app. The broker opens and closes it; the app may close it earlier. */
export interface Listener extends ListenerHandle, AsyncDisposable {
  /** The bound port; undefined while the listener is closed, and for a Unix socket. */
  readonly port: number | undefined;
  /**
   * Use new certificates, keys, revocation lists and pre-shared keys for all further handshakes. Files are read again,
   * existing connections stay open, and invalid material is refused while the old material remains in use. Rejects with
   * BrokerError TLS_INVALID or LISTENER_WITHOUT_TLS; InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING or
   * PSK_INVALID.
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

/** A listener with its own server socket. */
export class NetListener implements Listener {
  readonly name: string;
  readonly protocol: ListenerProtocol;
  readonly #transport: Transport;
  readonly #gate: Gate;
  readonly #tls: TlsEndpoint | undefined;
  /** The first stage after the TLS handshake, or after accept if there is no TLS. */
  readonly #afterTls: Stage;
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
    this.#afterTls = stage;
  }

  get address(): ListenerAddress | undefined {
    return this.#server === undefined ? undefined : boundAddress(this.#server);
  }

  get port(): number | undefined {
    return this.address?.port;
  }

  get exposure(): ListenerHandle['exposure'] {
    const { exposedHost: host, common } = this.#transport;
    return host === undefined ? undefined : { host, zone: common.zone ?? 'external' };
  }

  attached(arriving: () => void, limited?: LimitReport): void {
    this.#gate.attached(arriving, limited);
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
    // wait for a bind in progress, because closing a server during its bind would leave the port in use
    this.#closing = Promise.all([this.#closing, opening?.catch(ignore)]).then(() => {
      // not awaited, because it would wait for the connections, which the broker closes; the port is free at once
      this.#server?.close();
      this.#server = undefined;
      this.#tls?.close();
      this.#gate.close();
    });
    return this.#closing;
  }

  reload(material?: TlsMaterial): Promise<void> {
    return this.#tls === undefined ? Promise.reject(withoutTlsError(this.name)) : this.#tls.reload(material);
  }

  refused(reason: string): void {
    this.#gate.count(reason);
  }

  info(): ListenerCounters {
    return this.#gate.counters();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  [INSPECT](depth: number, options: object): string {
    return listenerText(this, depth, options);
  }

  async #open(): Promise<void> {
    const { place, kind, proxies } = this.#transport;
    const gate = this.#gate;
    try {
      await this.#tls?.open(this.#afterTls);
      const behindProxy = this.#tls?.enter ?? this.#afterTls;
      const enter =
        proxies === undefined ? behindProxy : proxyStage(gate, proxies === 'anyone' ? undefined : proxies, behindProxy);
      const isStaged = kind !== 'tcp' && kind !== 'unix' ? true : proxies !== undefined;
      let local: KnownLocal | undefined;
      const admitted = (arrival: Arrival) => gate.enter(arrival, enter);
      const accept = (socket: Socket) => {
        gate.admit(socket, kind, local, isStaged, admitted);
      };
      this.#server = await bind(
        place,
        (options) => createServer(options, accept),
        (error) => gate.report(error, 'accepting a connection')
      );
      local = knownLocal(this.address);
      gate.open();
    } catch (error) {
      this.#tls?.close();
      throw error;
    }
  }
}

/**
 * Choose the name of a listener without option `name`: its address, with a number if another listener of the broker
 * already has that name, for example if several use port 0.
 */
export function freeName(acceptor: Acceptor, base: string): string {
  const taken = new Set(acceptor.listeners().map(({ name }) => name));
  let name = base;
  for (let number = 2; taken.has(name); number++) name = `${base}#${number}`;
  return name;
}

/** Create the error for `reload` of a listener without TLS. */
export function withoutTlsError(name: string): BrokerError {
  return new BrokerError('LISTENER_WITHOUT_TLS', `listener ${name} has no certificates to reload`);
}

/** The local address of all connections; undefined if the listener is bound to every address of the machine. */
function knownLocal(address: ListenerAddress | undefined): KnownLocal | undefined {
  const { host, port } = address ?? {};
  return host === '0.0.0.0' || host === '::' ? undefined : { address: host, port };
}
