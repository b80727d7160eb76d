import assert from 'node:assert/strict';
import { type EventEmitter, once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { Aedes as Original } from 'aedes';
import { connect, type IClientOptions, type MqttClient } from 'mqtt';
import { Aedes, type AedesEvents, type AedesOptions } from '../../adapters/aedes/index.ts';

/** The package `aedes` and the entry point of this package. The same tests run with both. */
export const IMPLEMENTATIONS: readonly { readonly name: string; readonly Aedes: typeof Aedes }[] = [
  { name: 'aedes', Aedes: Original as unknown as typeof Aedes },
  { name: 'embermq/aedes', Aedes }
];

/** A broker with a TCP server, and the clients that a test connects to it. */
export class Fixture implements AsyncDisposable {
  readonly aedes: Aedes;
  readonly #server: Server;
  readonly #clients: MqttClient[] = [];

  private constructor(aedes: Aedes, server: Server) {
    this.aedes = aedes;
    this.#server = server;
  }

  static async start(implementation: { readonly Aedes: typeof Aedes }, options?: AedesOptions): Promise<Fixture> {
    const aedes = await implementation.Aedes.createBroker(options);
    const server = createServer(aedes.handle).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Fixture(aedes, server);
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  /** Connect an MQTT.js client. @throws the error of the client, or one without a code if the connection closes first */
  async connect(options: IClientOptions = {}): Promise<MqttClient> {
    const client = connect(`mqtt://127.0.0.1:${this.port}`, { reconnectPeriod: 0, clientId: 'device', ...options });
    this.#clients.push(client);
    keepMessages(client);
    await new Promise<void>((resolve, reject) => {
      client.on('connect', () => resolve());
      client.on('error', reject);
      client.on('close', () => reject(new Error('the connection was closed')));
    });
    return client;
  }

  /** The arguments of the next event, or of the next one that satisfies `where`. */
  next<E extends keyof AedesEvents>(
    event: E,
    where: (...args: AedesEvents[E]) => boolean = () => true
  ): Promise<AedesEvents[E]> {
    const { aedes } = this;
    return new Promise((resolve) => {
      const listener = (...args: unknown[]) => {
        if (!where(...(args as AedesEvents[E]))) return;
        aedes.removeListener(event as 'closed', listener);
        resolve(args as AedesEvents[E]);
      };
      aedes.on(event as 'closed', listener);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.end(true);
    await new Promise<void>((resolve) => this.aedes.close(() => resolve()));
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** The messages that clients have received, and what waits for the next one. */
const INBOXES = new WeakMap<MqttClient, { readonly messages: string[]; resolve?: (message: string) => void }>();

function keepMessages(client: MqttClient): void {
  const inbox: { readonly messages: string[]; resolve?: (message: string) => void } = { messages: [] };
  INBOXES.set(client, inbox);
  client.on('message', (topic, payload) => {
    const text = `${topic}: ${payload}`;
    if (inbox.resolve === undefined) inbox.messages.push(text);
    else inbox.resolve(text);
    inbox.resolve = undefined;
  });
}

/** The next message of a client that was not asked for yet, as topic and payload. */
export async function message(client: MqttClient): Promise<string> {
  const inbox = INBOXES.get(client) ?? assert.fail('the client is not one of a fixture');
  return inbox.messages.shift() ?? new Promise((resolve) => (inbox.resolve = resolve));
}

/** Call a function that takes a Node callback. @throws the error that it calls back with */
export function called(run: (callback: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => run((error) => (error ? reject(error) : resolve())));
}

/** The arguments of the next event of an MQTT.js client, whose types do not know `once`. */
export function nextOf(client: MqttClient, event: string): Promise<unknown[]> {
  return once(client as unknown as EventEmitter, event);
}
