import { type Bridge, type BridgeOptions, bridge } from '../../adapters/bridge/index.ts';
import { listen } from '../../adapters/net/index.ts';
import type { ReceivedMessage } from '../../lib/client/options.ts';
import { type Broker, type BrokerOptions, type Client, createBroker } from '../../lib/index.ts';

/** A broker with a TCP listener. */
export async function server(
  options: BrokerOptions = {},
  port = 0
): Promise<{ broker: Broker; port: number; url: string }> {
  const broker = createBroker(options);
  const listener = listen(broker, port);
  await broker.start();
  const { port: actual } = await listener;
  return { broker, port: actual as number, url: `mqtt://127.0.0.1:${actual}` };
}

/** Resolves when the bridge is connected. */
export async function connected(broker: Broker, link: Bridge): Promise<void> {
  if (link.state !== 'connected')
    await broker.nextEvent('bridge.connected', { where: ({ bridge: name }) => name === link.name });
}

/** Two brokers and a bridge between them, with short delays. */
export class Pair implements AsyncDisposable {
  near!: Broker;
  far!: Broker;
  link!: Bridge;
  url = '';

  static async open(
    options: Partial<BridgeOptions>,
    brokers: { near?: BrokerOptions; far?: BrokerOptions } = {}
  ): Promise<Pair> {
    const pair = new Pair();
    const { broker, url } = await server(brokers.far);
    pair.far = broker;
    pair.url = url;
    pair.near = await createBroker(brokers.near).start();
    pair.link = bridge(pair.near, { url, backOff: 5, maxBackOff: 20, ...options });
    await connected(pair.near, pair.link);
    return pair;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.link.close();
    await Promise.all([this.near.stop(), this.far.stop()]);
  }
}

/** A client that is subscribed to everything, and its messages in order of arrival. */
export async function listener(
  broker: Broker,
  filter = '#'
): Promise<{ client: Client; next(): Promise<ReceivedMessage> }> {
  const client = await broker.connect({ clientId: 'listener' });
  const messages = client.messages()[Symbol.asyncIterator]();
  await client.subscribe(filter, { qos: 2, retainAsPublished: true });
  return { client, next: async () => (await messages.next()).value as ReceivedMessage };
}
