import type { Server, Socket } from 'node:net';
import type { ListenerAddress, ListenerFigures, ListenerHandle, ListenerProtocol } from '../../lib/listener.ts';
import { bind, boundAddress } from './bind.ts';
import { type Acceptor, Gate, type KnownLocal, type Stage } from './gate.ts';
import type { Transport } from './transport.ts';

/** A listener of an app. The broker opens and closes it; the app may close it earlier. */
export interface Listener extends ListenerHandle, AsyncDisposable {
  /** The real port; undefined while not open, and for a Unix socket. */
  readonly port: number | undefined;
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
  readonly protocol: ListenerProtocol;
  readonly #transport: Transport;
  readonly #gate: Gate;
  #server: Server | undefined;
  #opening: Promise<void> | undefined;

  constructor(acceptor: Acceptor, transport: Transport) {
    this.#transport = transport;
    this.protocol = PROTOCOLS[transport.kind];
    this.#gate = new Gate(acceptor, transport.common);
  }

  get name(): string {
    const { common, kind, place } = this.#transport;
    return common.name ?? `${kind}:${'path' in place ? place.path : (this.port ?? place.port)}`;
  }

  get address(): ListenerAddress | undefined {
    return this.#server === undefined ? undefined : boundAddress(this.#server);
  }

  get port(): number | undefined {
    return this.address?.port;
  }

  /** The bind under way or done; undefined while closed. */
  get opening(): Promise<void> | undefined {
    return this.#opening;
  }

  open(): Promise<void> {
    return (this.#opening ??= this.#bind());
  }

  async close(): Promise<void> {
    // A bind under way is waited for: closing a half-open server would leave the port taken.
    await this.#opening?.catch(() => {});
    this.#opening = undefined;
    // Not awaited: it would wait for the connections, which are the broker's to end. The port itself is free at once.
    this.#server?.close();
    this.#server = undefined;
    this.#gate.shut();
  }

  /** Tell the broker of an error nobody waits for. */
  report(error: unknown): void {
    this.#gate.report(error, 'opening');
  }

  info(): ListenerFigures {
    const { current, shutdownCount, settings } = this.#gate;
    return {
      acceptors: 1,
      maxConnections: settings.maxConnections,
      currentConnections: current,
      shutdownCount: { ...shutdownCount }
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #bind(): Promise<void> {
    try {
      const stages = this.#stages();
      const { kind } = this.#transport;
      let local: KnownLocal | undefined;
      this.#server = await bind(
        this.#transport.place,
        (socket: Socket) => {
          const arrival = this.#gate.admit(socket, kind, local, stages.isStaged);
          if (arrival !== undefined) stages.enter(arrival);
        },
        (error) => this.#gate.report(error, 'accepting a connection')
      );
      local = knownLocal(this.address);
      this.#gate.name = this.name;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  #stages(): { enter: Stage; isStaged: boolean } {
    return { enter: (arrival) => this.#gate.handOver(arrival), isStaged: false };
  }
}

/** What connections need not ask the kernel: nothing where every address of the machine is bound. */
function knownLocal(address: ListenerAddress | undefined): KnownLocal | undefined {
  const { host, port } = address ?? {};
  return host === '0.0.0.0' || host === '::' ? undefined : { address: host, port };
}
