import { randomUUID } from 'node:crypto';
import {
  BrokerError,
  type Client,
  connectClient,
  type OpenSource,
  type SourceSetup,
  type SourceType
} from '../../../lib/index.ts';
import { dial } from '../../outgoing/index.ts';
import { BackOff } from '../back-off.ts';
import { MQTT_PROPERTIES, type MqttSourceSettings, readMqttSettings } from './settings.ts';

/** Time for connecting, up to the acknowledgement of the subscription. */
const CONNECT_MS = 10_000;
const KEEP_ALIVE_SEC = 60;

/**
 * The source `mqtt` for messages of another server: `createBroker({ streams: { sources: [mqttSource()] } })`.
 *
 * Without the property `server`, a stream has the messages of the broker itself. A connection that is lost, or cannot be made, is made again
 * after 1 to 30 seconds.
 */
export function mqttSource(): SourceType {
  const clientIds = new Set<string>();
  return {
    name: 'mqtt',
    about: 'Messages of another MQTT server.',
    properties: MQTT_PROPERTIES,
    async open(setup) {
      const settings = await readMqttSettings(setup, `source mqtt of ${setup.stream}`);
      const wanted = settings.clientId ?? `embermq_${randomUUID()}`;
      const clientId = clientIds.has(wanted) ? `${wanted}_${setup.stream}` : wanted;
      clientIds.add(clientId);
      const source = new RemoteMessages(setup, settings, clientId);
      return {
        async close() {
          clientIds.delete(clientId);
          await source.close();
        }
      };
    }
  };
}

class RemoteMessages implements OpenSource {
  readonly #setup: SourceSetup;
  readonly #settings: MqttSourceSettings;
  readonly #clientId: string;
  readonly #backOff: BackOff;
  #controller = new AbortController();
  #client: Client | undefined;
  #isClosed = false;

  constructor(setup: SourceSetup, settings: MqttSourceSettings, clientId: string) {
    this.#setup = setup;
    this.#settings = settings;
    this.#clientId = clientId;
    this.#backOff = new BackOff(setup.clock);
    this.#try();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#backOff.cancel();
    const client = this.#client;
    if (client?.isConnected !== true) {
      this.#controller.abort(new BrokerError('SOURCE_CLOSED', 'closed'));
      return;
    }
    const { clock } = this.#setup;
    // a server that does not read must not delay this
    const timer = clock.setTimeout(() => client.destroy(), 1000);
    await client.disconnect();
    clock.clearTimeout(timer);
  }

  #try(): void {
    this.#connect().catch((error) => this.#lost(error));
  }

  #lost(error: unknown): void {
    if (this.#isClosed) return;
    this.#setup.disconnected(error);
    this.#backOff.later(() => this.#try());
  }

  async #connect(): Promise<void> {
    const { clock, datasource } = this.#setup;
    const { dial: where, protocolVersion, username, password, qos } = this.#settings;
    const controller = new AbortController();
    this.#controller = controller;
    const { signal } = controller;
    const fail = () =>
      controller.abort(new BrokerError('SOURCE_DOWN', `no connection to ${where.url.host} within ${CONNECT_MS} ms`));
    const timer = clock.setTimeout(fail, CONNECT_MS);
    try {
      const stream = await dial(where, signal);
      const client = await connectClient(stream, {
        clientId: this.#clientId,
        clean: true,
        protocolVersion,
        keepalive: KEEP_ALIVE_SEC,
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password }),
        clock,
        signal
      });
      this.#client = client;
      this.#listen(client);
      const filters = datasource.split(',').map((filter) => filter.trim());
      await client.subscribe(filters, { qos });
      client.on('close', ({ error }) =>
        this.#lost(error ?? new BrokerError('SOURCE_DOWN', 'the server has closed the connection'))
      );
      if (!client.isConnected) throw new BrokerError('SOURCE_DOWN', 'the server has closed the connection');
      this.#backOff.reset();
      this.#setup.connected();
    } catch (error) {
      this.#client?.destroy();
      throw signal.aborted ? signal.reason : error;
    } finally {
      clock.clearTimeout(timer);
    }
  }

  #listen(client: Client): void {
    let messageid = '0';
    client.on('packet', ({ direction, packet }) => {
      if (direction === 'received' && packet.cmd === 'publish') messageid = String(packet.messageId ?? 0);
    });
    client.on('message', ({ topic, payload, qos, retain, properties }) => {
      const { userProperties = [], topicAlias: _alias, ...others } = properties;
      const entries = [...Object.entries(others), ...userProperties];
      const metadata = { topic, messageid, qos, retain };
      this.#setup.bytes(
        payload,
        entries.length === 0 ? metadata : { ...metadata, properties: Object.fromEntries(entries) }
      );
    });
  }
}
