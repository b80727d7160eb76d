import { createServer, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type FieldValues, field, readOptions } from '../../lib/adapter.ts';
import type { Clock } from '../../lib/index.ts';
import { type Answer, type Call, MountedServices, type Service, toNode } from '../rest/index.ts';
import { DescriptorReserve, HttpPlaces } from '../upgrades/index.ts';

/** The port of sources and sinks served over HTTP. */
export interface StreamsPortOptions {
  /** Port, default 10081. It is open while a rule uses it. 0: any free port. */
  readonly port?: number;
  /** Address, default 127.0.0.1. Requests need no credentials, unless a stream or a sink has the property `token`. */
  readonly host?: string;
  /**
   * Maximum number of concurrent connections without WebSockets, which have a separate limit. If there is no room, a
   * connection of the address with the most waiting ones is closed: the one that has waited longest for a complete
   * request. Default 1024; 0: unlimited.
   */
  readonly maxConnections?: number;
  /**
   * File descriptors of the process that connections leave free for the store, as for listeners. If fewer are free,
   * waiting connections are closed for new ones, and a rule that uses the port has the error in its status. At most a
   * quarter of the limit; 0: none. Default 64.
   */
  readonly reservedDescriptors?: number;
}

const PORT_OPTIONS = {
  port: field('integer', 10_081, 'Port; 0: any free port.', { max: 65_535 }),
  host: field('string', '127.0.0.1', 'Address that the port is bound to.'),
  maxConnections: field('integer', 1024, 'Maximum number of concurrent connections, without WebSockets; 0: unlimited.'),
  reservedDescriptors: field('integer', 64, 'File descriptors of the process that connections leave free; 0: none.')
};

/** A service at a port. */
export interface PortUser {
  readonly service: Service;
  /**
   * Called with the server when it is open.
   * @param upgraded to be called with each connection that has become a WebSocket
   * @returns a function to call before it is closed
   */
  attach?(server: Server, upgraded: (socket: Duplex) => void): () => void;
}

/** The dependencies of an open port. */
interface PortNeeds {
  readonly clock: Clock;
  failed(error: unknown): void;
}

/**
 * Time limit from the start of a request to the end of its headers, in milliseconds; also for the handshake of a
 * WebSocket.
 */
const HEADERS_MS = 10_000;
const LIMITS = { headersTimeout: HEADERS_MS, requestTimeout: 60_000, connectionsCheckingInterval: 2_000 };

interface Use {
  count: number;
  detach: (() => void) | undefined;
}

/**
 * A port that several types of sources and sinks share. It is open while one of them is used.
 *
 * ```ts
 * const port = new StreamsPort({ port: 10081 });
 * const { source, sink } = webSockets({ port });
 * createBroker({ streams: { sources: [httpPushSource({ port }), source], sinks: [sink] } });
 * ```
 */
export class StreamsPort {
  /** The prefixes of paths: none. */
  readonly prefixes = [''];
  readonly #settings: FieldValues<typeof PORT_OPTIONS>;
  readonly #uses = new Map<PortUser, Use>();
  #server: Server | undefined;
  #places: HttpPlaces | undefined;
  #reserve: DescriptorReserve | undefined;
  /** The last opening or closing. */
  #last: Promise<void> = Promise.resolve();

  /** @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
  constructor(options: StreamsPortOptions = {}) {
    this.#settings = readOptions(PORT_OPTIONS, options, 'StreamsPort') as unknown as FieldValues<typeof PORT_OPTIONS>;
  }

  /** The open port; undefined: none. */
  get number(): number | undefined {
    const address = this.#server?.address();
    return typeof address === 'object' && address !== null ? address.port : undefined;
  }

  /**
   * Serve a user until the returned function is called.
   * @throws the error of the port @internal
   */
  async use(user: PortUser, needs: PortNeeds): Promise<() => Promise<void>> {
    await this.#inTurn(async () => {
      const server = (this.#server ??= await this.#open(needs));
      const upgraded = (socket: Duplex) => this.#places?.release(socket);
      const use = this.#uses.get(user) ?? { count: 0, detach: user.attach?.(server, upgraded) };
      this.#uses.set(user, use);
      use.count++;
    });
    return () => this.#inTurn(() => this.#leave(user));
  }

  /** @internal */
  methods(path: string): readonly string[] {
    return [...this.#uses.keys()].flatMap(({ service }) => service.methods(path));
  }

  /** @internal */
  async answer(call: Call): Promise<Answer | undefined> {
    for (const { service } of this.#uses.keys()) {
      const answer = await service.answer(call);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  async #leave(user: PortUser): Promise<void> {
    const use = this.#uses.get(user);
    if (use === undefined || --use.count > 0) return;
    this.#uses.delete(user);
    use.detach?.();
    const server = this.#server;
    if (this.#uses.size > 0 || server === undefined) return;
    this.#server = undefined;
    this.#reserve?.close();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  #open({ clock, failed }: PortNeeds): Promise<Server> {
    const { port, host, maxConnections, reservedDescriptors } = this.#settings;
    this.#reserve = new DescriptorReserve({ clock, failed }, `streams:${port}`, reservedDescriptors);
    const places = new HttpPlaces(maxConnections, clock, this.#reserve);
    const server = places.watch(createServer(LIMITS), toNode(new MountedServices([this]), { clock, failed }));
    this.#places = places;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        server.on('error', failed);
        resolve(server);
      });
    });
  }

  #inTurn(run: () => Promise<void>): Promise<void> {
    const result = this.#last.then(run);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** The shared port, or a new one for a number. */
export function portOf(port: number | StreamsPort | undefined, host: string | undefined): StreamsPort {
  return port instanceof StreamsPort
    ? port
    : new StreamsPort({ ...(port === undefined ? {} : { port }), ...(host === undefined ? {} : { host }) });
}
