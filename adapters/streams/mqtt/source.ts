import { randomUUID } from 'node:crypto';
import {
  BrokerError,
  type Client,
  type ClientOptions,
  type OpenSource,
  type ReceivedMessage,
  type SourceSetup,
  type SourceType
} from '../../../lib/index.ts';
import { BackOff } from '../back-off.ts';
import { connectTo } from './connection.ts';
import { Sessions, sessionClientId } from './sessions.ts';
import { MQTT_PROPERTIES, type MqttSourceSettings, readMqttSettings } from './settings.ts';

/**
 * The source `mqtt` for messages of another server: `createBroker({ streams: { sources: [mqttSource()] } })`.
 *
 * Without the property `server`, a stream has the messages of the broker itself. A connection that is lost, or cannot be made, is made again
 * after 1 to 30 seconds. If a rule with `qos` above 0 reads the stream, the server keeps a session for it, and a message is acknowledged when its rows
 * are in the store.
 */
export function mqttSource(): SourceType {
  const clientIds = new Set<string>();
  const sessions = new Sessions();
  const idOf = (own: string, stream: string) => (clientIds.has(own) ? `${own}_${stream}` : own);
  return {
    name: 'mqtt',
    about: 'Messages of another MQTT server.',
    properties: MQTT_PROPERTIES,
    async open(setup) {
      const settings = await readMqttSettings(setup, `source mqtt of ${setup.stream}`);
      const own = sessionClientId(settings, setup);
      const clientId = idOf(own, setup.stream);
      if (clientId !== own && settings.session !== false)
        setup.warn(
          `stream ${setup.stream}: the client id ${own} is that of another stream, so it is ${clientId}, as long as the other one is open; for a session that is the same after a restart, give it an own clientid`
        );
      clientIds.add(clientId);
      let isCleanFirst = false;
      // with a client id, each connection without a session deletes it
      if (settings.session === false && settings.clientId === undefined) sessions.delete(settings, clientId, setup);
      else isCleanFirst = sessions.taken(settings, clientId);
      const source = new RemoteMessages(setup, settings, clientId, isCleanFirst);
      return {
        attached: () => source.attached(),
        async close() {
          clientIds.delete(clientId);
          await source.close();
        }
      };
    },
    async dropped(setup) {
      const settings = await readMqttSettings(setup, `source mqtt of ${setup.stream}`);
      const clientId = idOf(sessionClientId(settings, setup), setup.stream);
      if (settings.session !== false) sessions.delete(settings, clientId, setup);
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
  /** The present connection has a session at the server. */
  #hasSession = false;
  /** The server may have a session that is to be deleted. */
  #isCleanFirst: boolean;
  /** A session is needed now: the connection is made again at once. */
  #isSwitching = false;
  #isChecking = false;
  #isClosed = false;

  constructor(setup: SourceSetup, settings: MqttSourceSettings, clientId: string, isCleanFirst: boolean) {
    this.#setup = setup;
    this.#settings = settings;
    this.#clientId = clientId;
    this.#isCleanFirst = isCleanFirst;
    this.#backOff = new BackOff(setup.clock);
    this.#try();
  }

  /** Another rule reads the stream: it may need a session. */
  attached(): void {
    if (this.#isChecking) return; // many rules may start at once
    this.#isChecking = true;
    void this.#setup.ready().then(() => {
      this.#isChecking = false;
      if (!this.#wantsSession || this.#hasSession || this.#client?.isConnected !== true) return;
      this.#isSwitching = true;
      this.#client.destroy();
    });
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

  get #wantsSession(): boolean {
    return this.#settings.session ?? this.#setup.isKept;
  }

  #try(): void {
    this.#connect().catch((error) => this.#lost(error));
  }

  #lost(error: unknown): void {
    if (this.#isClosed) return;
    if (this.#isSwitching) {
      this.#isSwitching = false;
      this.#try();
      return;
    }
    this.#setup.disconnected(error);
    this.#backOff.later(() => this.#try());
  }

  async #connect(): Promise<void> {
    const { clock, datasource } = this.#setup;
    await this.#setup.ready();
    if (this.#isClosed) return;
    this.#controller = new AbortController();
    const isNew5 = this.#settings.protocolVersion === 5;
    this.#hasSession = this.#wantsSession;
    await connectTo(this.#settings, { ...this.#sessionOptions(), clock }, this.#controller, async (client) => {
      this.#client = client;
      this.#listen(client);
      this.#isCleanFirst = false;
      const filters = datasource.split(',').map((filter) => filter.trim());
      const { qos } = this.#settings;
      // retained messages come with a new session only, if the server can tell
      const options = { qos, ...(isNew5 && this.#hasSession ? { retainHandling: 1 as const } : {}) };
      this.#checkGranted(filters, await client.subscribe(filters, options));
      client.on('close', ({ error }) =>
        this.#lost(error ?? new BrokerError('SOURCE_DOWN', 'the server has closed the connection'))
      );
      if (this.#wantsSession && !this.#hasSession) {
        this.#isSwitching = true;
        throw new BrokerError('SOURCE_DOWN', 'a session is needed now');
      }
      if (!client.isConnected) throw new BrokerError('SOURCE_DOWN', 'the server has closed the connection');
      this.#backOff.reset();
      this.#setup.connected();
    });
  }

  /** Report filters that the server refuses. @throws BrokerError SOURCE_DOWN if these are all */
  #checkGranted(filters: readonly string[], codes: readonly number[]): void {
    const refused = filters.filter((_, at) => codes[at] >= 0x80);
    if (refused.length === 0) return;
    const text = `the server refuses the subscription to ${refused.join(', ')}; check the rights of the user there`;
    const error = new BrokerError('SOURCE_DOWN', text);
    if (refused.length === filters.length) throw error;
    this.#setup.failed(error);
  }

  #sessionOptions(): ClientOptions {
    const { clientId, sessionExpiry, protocolVersion } = this.#settings;
    if (!this.#hasSession) {
      // two brokers with the same name may read the same server
      const id = clientId === undefined ? `embermq_${randomUUID()}` : this.#clientId;
      return { clientId: id, clean: true };
    }
    return {
      clientId: this.#clientId,
      clean: this.#isCleanFirst,
      acknowledge: 'manual',
      ...(protocolVersion === 5 && sessionExpiry !== undefined ? { sessionExpiry } : {})
    };
  }

  #listen(client: Client): void {
    const controller = this.#controller;
    let messageid = '0';
    client.on('packet', ({ direction, packet }) => {
      if (direction === 'received' && packet.cmd === 'publish') messageid = String(packet.messageId ?? 0);
    });
    client.on('message', (message) => {
      const id = messageid;
      if (!this.#hasSession || message.qos === 0) {
        this.#give(message, id);
        return;
      }
      this.#setup
        .kept(() => this.#give(message, id))
        .then(
          () => message.ack(),
          // the server sends it again with the next connection
          (error) => controller.abort(error)
        );
    });
  }

  #give({ topic, payload, qos, retain, properties }: ReceivedMessage, messageid: string): void {
    const { userProperties = [], topicAlias: _alias, ...others } = properties;
    const entries = [...Object.entries(others), ...userProperties];
    const metadata = { topic, messageid, qos, retain };
    this.#setup.bytes(
      payload,
      entries.length === 0 ? metadata : { ...metadata, properties: Object.fromEntries(entries) }
    );
  }
}
