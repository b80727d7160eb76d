// A broker of this project for programs in other processes: on TCP, TLS and WebSocket, with its state in a folder.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { levelStore } from '../../adapters/level/index.ts';
import { type Listener, listen, tcp, tls, ws, wss } from '../../adapters/net/index.ts';
import { type Broker, type BrokerOptions, createBroker } from '../../lib/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';

const KINDS = ['tcp', 'tls', 'ws', 'wss'] as const;

export class Stage implements AsyncDisposable {
  readonly certificates: Certificates = makeCertificates();
  /** The ports of the listeners, which stay the same after a restart. */
  readonly ports: Record<(typeof KINDS)[number], number> = { tcp: 0, tls: 0, ws: 0, wss: 0 };
  readonly #folder = mkdtempSync(join(tmpdir(), 'embermq-stage-'));
  readonly #options: BrokerOptions;
  readonly #prepare: (broker: Broker) => void;
  #broker: Broker | undefined;

  private constructor(options: BrokerOptions, prepare: (broker: Broker) => void) {
    this.#options = options;
    this.#prepare = prepare;
  }

  /** Starts the broker. @param prepare registers hooks and the like on each new broker */
  static async start(options: BrokerOptions = {}, prepare: (broker: Broker) => void = () => {}): Promise<Stage> {
    const stage = new Stage(options, prepare);
    await stage.open();
    return stage;
  }

  get broker(): Broker {
    if (this.#broker === undefined) throw new Error('the broker has not been started');
    return this.#broker;
  }

  get isOpen(): boolean {
    return this.#broker !== undefined;
  }

  /** Starts a new broker with the state of the previous one. */
  async open(): Promise<void> {
    const { certFile, keyFile } = this.certificates.server;
    const { ports } = this;
    const broker = createBroker({ store: levelStore(this.#folder), ...this.#options });
    this.#prepare(broker);
    const listeners: Record<(typeof KINDS)[number], Promise<Listener>> = {
      tcp: Promise.resolve(listen(broker, tcp({ port: ports.tcp }))),
      tls: Promise.resolve(listen(broker, tls({ port: ports.tls, certFile, keyFile }))),
      ws: Promise.resolve(listen(broker, ws({ port: ports.ws }))),
      wss: Promise.resolve(listen(broker, wss({ port: ports.wss, certFile, keyFile })))
    };
    await broker.start();
    for (const kind of KINDS) ports[kind] = (await listeners[kind]).port as number;
    this.#broker = broker;
  }

  /** Stops the broker. @param forget true to delete its state */
  async close(forget = false): Promise<void> {
    await this.#broker?.stop();
    this.#broker = undefined;
    if (forget) rmSync(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(true);
    this.certificates[Symbol.dispose]();
  }
}
