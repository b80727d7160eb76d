import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Connections to a server that a test can interrupt, as if the server had been stopped or did not answer. */
export class TcpProxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  #server: Server;
  #port = 0;

  /** @param target a URL with host and port */
  constructor(target: string) {
    const { hostname, port } = new URL(target);
    this.#target = { host: hostname, port: Number(port) };
    this.#server = this.#create();
  }

  get port(): number {
    return this.#port;
  }

  /** Number of open connections of clients. */
  get connections(): number {
    return this.#sockets.size / 2;
  }

  /** A URL with the port of the proxy. */
  replaceIn(url: string): string {
    const changed = new URL(url);
    changed.port = String(this.#port);
    return changed.href;
  }

  /** Accept connections, always on the same port. */
  async start(): Promise<this> {
    this.#server = this.#create();
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** End all connections and refuse new ones. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Forward nothing that clients send from now on, until `start`, which needs `stop` before. */
  hang(): void {
    for (const socket of this.#sockets) {
      socket.unpipe();
      socket.pause();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #create(): Server {
    return createServer((client) => {
      const server = connect(this.#target);
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          this.#sockets.delete(socket);
          client.destroy();
          server.destroy();
        });
      }
      client.pipe(server);
      server.pipe(client);
    });
  }
}
