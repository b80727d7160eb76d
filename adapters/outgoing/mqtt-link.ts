import type { Duplex } from 'node:stream';
import { BrokerError, type Client, type ClientOptions, type Clock, connectClient } from '../../lib/index.ts';
import { untilAborted } from './deadline.ts';
import { type DialSettings, dial } from './mqtt-dial.ts';

/** Time for connecting, up to the CONNACK. */
const CONNECT_MS = 10_000;
/** Time for an orderly close. */
const CLOSE_MS = 1_000;

/** The server and the identity of a link. */
export interface LinkSettings {
  readonly dial: DialSettings;
  readonly client: ClientOptions;
}

/** A connection to a server. */
export interface OpenLink {
  readonly client: Client;
  readonly stream: Duplex;
}

/**
 * The connection of a resource or a sink to its server. It is established on demand and does not reconnect on its own.
 */
export class MqttLink {
  readonly #settings: LinkSettings;
  readonly #clock: Clock;
  #open: OpenLink | undefined = undefined;
  #connecting: Promise<OpenLink> | undefined = undefined;
  /** Aborts the connection, or connecting. */
  #controller = new AbortController();
  #isClosed = false;

  constructor(settings: LinkSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  /**
   * Return the connection, which is established if there is none. Concurrent calls share one connection.
   * @param signal stops waiting, not connecting
   * @throws the reason why there is no connection
   */
  connected(signal: AbortSignal): Promise<OpenLink> {
    if (this.#isClosed) return Promise.reject(new BrokerError('RESOURCE_DOWN', 'the connection is closed'));
    if (this.#open?.client.isConnected) return Promise.resolve(this.#open);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return untilAborted(signal, this.#connecting);
  }

  /** Close a connection. Its pending operations fail. */
  drop({ client }: OpenLink): void {
    client.destroy();
    if (this.#open?.client === client) this.#open = undefined;
  }

  /** Close the connection, or stop connecting. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const open = this.#open;
    if (open === undefined || !open.client.isConnected)
      this.#controller.abort(new BrokerError('RESOURCE_DOWN', 'closed'));
    else await closeClient(open.client, this.#clock);
  }

  async #connect(): Promise<OpenLink> {
    const controller = new AbortController();
    this.#controller = controller;
    const { signal } = controller;
    const { url } = this.#settings.dial;
    const timer = this.#clock.setTimeout(() => {
      controller.abort(new BrokerError('RESOURCE_DOWN', `no connection to ${url.host} within ${CONNECT_MS} ms`));
    }, CONNECT_MS);
    try {
      const stream = await dial(this.#settings.dial, signal);
      const client = await connectClient(stream, { ...this.#settings.client, clock: this.#clock, signal });
      client.on('message', () => undefined); // there are no subscriptions; without a listener the messages would be kept for one
      return (this.#open = { client, stream });
    } catch (error) {
      throw signal.aborted ? (signal.reason as Error) : error;
    } finally {
      this.#clock.clearTimeout(timer);
    }
  }
}

/** Disconnect a client. A server that does not read delays this by at most one second. */
export async function closeClient(client: Pick<Client, 'disconnect' | 'destroy'>, clock: Clock): Promise<void> {
  const timer = clock.setTimeout(() => client.destroy(), CLOSE_MS);
  try {
    await client.disconnect();
  } finally {
    clock.clearTimeout(timer);
    client.destroy(); // in case it could not be disconnected
  }
}
