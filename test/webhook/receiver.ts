import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse
} from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';

/** A request that has arrived. */
interface Received {
  readonly method: string | undefined;
  /** Path and query. */
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
}

/** A web server that receives the events of webhooks. */
export class Receiver {
  readonly received: Received[] = [];
  /** Sends the answer. Default: 200 without a body. */
  answer: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => response.end();
  /** Connections that were accepted so far. */
  connections = 0;
  #waiting: (() => void)[] = [];
  readonly #server: Server;
  readonly #scheme: string;

  /** @param tls for HTTPS */
  constructor(tls?: ServerOptions) {
    const receive = (request: IncomingMessage, response: ServerResponse) => this.#receive(request, response);
    this.#scheme = tls === undefined ? 'http' : 'https';
    this.#server = tls === undefined ? createServer(receive) : createSecureServer(tls, receive);
    this.#server.on('connection', () => this.connections++);
  }

  /** @param port default: a free one */
  async open(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}/hook`;
  }

  /** The bodies that have arrived. */
  get bodies(): Record<string, unknown>[] {
    return this.received.flatMap(({ text }) => JSON.parse(text));
  }

  /** Waits until this many requests have arrived. */
  async until(count: number): Promise<Record<string, unknown>[]> {
    while (this.received.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.bodies;
  }

  /** Cuts all connections. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url, headers } = request;
      const bytes = Buffer.concat(chunks);
      this.received.push({ method, url, headers, bytes, text: bytes.toString() });
      this.answer(request, response);
      for (const go of this.#waiting.splice(0)) go();
    });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** For `using`. */
export function disposable(dispose: () => void): Disposable {
  return { [Symbol.dispose]: dispose };
}
