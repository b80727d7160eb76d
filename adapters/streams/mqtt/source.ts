// A rule with `qos` needs a session at the server: a message is acknowledged when its rows are in the store, and
// packet ids of QoS 2 are stored with them, so that a repetition is recognized after a crash. A note in the store is
// written before the server has the session and deleted after it has none, so that no session is left there. When
// rules change, the connection is established again with or without a session. Ids of a session that the server has lost are
// deleted before messages are taken.

import { randomUUID } from 'node:crypto';
import { ClientSession, type OpenSource, type SourceSetup, type SourceType } from '../../../lib/adapter.ts';
import { BrokerError, type Client, type ClientOptions, type ReceivedMessage } from '../../../lib/index.ts';
import { closeClient } from '../../outgoing/index.ts';
import { BackOff } from '../back-off.ts';
import { connectTo } from './connection.ts';
import { NotedSession, Sessions, sessionClientId, sessionKey } from './sessions.ts';
import { MQTT_PROPERTIES, type MqttSourceSettings, readMqttSettings } from './settings.ts';

/** Maximum number of unacknowledged messages of a session, with MQTT 5. */
const RECEIVE_MAXIMUM = 1_000;

/**
 * The source `mqtt` for messages of another server: `createBroker({ streams: { sources: [mqttSource()] } })`.
 *
 * Without the property `server`, a stream has the messages of the broker itself. A lost or failed connection is
 * established again after 1 to 30 seconds. If a rule with `qos` above 0 reads the stream, the server keeps a session
 * for it, and a message is acknowledged when its rows are in the store; the packet ids of QoS 2 messages are stored
 * with them.
 */
export function mqttSource(): SourceType {
  const sessions = new Sessions();
  const clientIds = new Set<string>();
  return {
    name: 'mqtt',
    about: 'Messages of another MQTT server.',
    properties: MQTT_PROPERTIES,
    async open(setup) {
      const settings = await readMqttSettings(setup, `source mqtt of ${setup.stream}`);
      const own = sessionClientId(settings, setup);
      const clientId = clientIds.has(own) ? `${own}_${setup.stream}` : own;
      if (clientId !== own && settings.session !== false)
        setup.warn(
          `stream ${setup.stream}: the client id ${own} is that of another stream, so it is ${clientId}, as long as the other one is open; for a session that is the same after a restart, give it an own clientid`
        );
      clientIds.add(clientId);
      const key = sessionKey(settings, clientId);
      const end = sessions.use(key);
      const source = new RemoteMessages(setup, settings, clientId, new NotedSession(setup.notes, key));
      return {
        changed: () => source.changed(),
        async close() {
          try {
            await source.close();
          } finally {
            clientIds.delete(clientId);
            end();
          }
        }
      };
    },
    tidy: (setup) => sessions.tidy(setup)
  };
}

class RemoteMessages implements OpenSource {
  readonly #setup: SourceSetup;
  readonly #settings: MqttSourceSettings;
  readonly #clientId: string;
  readonly #session: NotedSession;
  readonly #backOff: BackOff;
  #controller = new AbortController();
  #client: Client | undefined;
  /** True if the current connection has a session at the server. */
  #hasSession = false;
  /** True if the server should have a session since an earlier connection. */
  #expectsSession = false;
  /**
   * True if the packet ids in the notes belong to a session that the server has lost. They must be deleted before
   * messages are accepted.
   */
  #hasForeignIds = false;
  /** True if the need for a session has changed: the connection is established again at once. */
  #isSwitching = false;
  #isClosed = false;

  constructor(setup: SourceSetup, settings: MqttSourceSettings, clientId: string, session: NotedSession) {
    this.#setup = setup;
    this.#settings = settings;
    this.#clientId = clientId;
    this.#session = session;
    this.#backOff = new BackOff(setup.clock);
    this.#try();
  }

  /** Called when rules have changed, because they may need a session. */
  changed(): void {
    if (this.#wantsSession === this.#hasSession || this.#client?.isConnected !== true) return;
    this.#isSwitching = true;
    this.#client.destroy();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#backOff.cancel();
    const client = this.#client;
    try {
      if (client?.isConnected === true) await closeClient(client, this.#setup.clock);
      else this.#controller.abort(new BrokerError('SOURCE_CLOSED', 'closed'));
    } finally {
      await this.#session.ids.settled(); // the next source of this session reads them
    }
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
    // pending ids must not be acknowledged before they are in the store
    await this.#session.ids.settled();
    if (this.#isClosed) return;
    this.#controller = new AbortController();
    this.#hasSession = this.#wantsSession;
    const options = this.#hasSession ? await this.#sessionOptions() : this.#plainOptions();
    if (this.#isClosed) return;
    await connectTo(this.#settings, { ...options, clock }, this.#controller, async (client) => {
      this.#client = client;
      await this.#began(client, options.clientId);
      this.#listen(client);
      const filters = datasource.split(',').map((filter) => filter.trim());
      const {
        qos,
        client: { protocolVersion }
      } = this.#settings;
      // retained messages are sent only with a new session, if the server can tell
      const retained = protocolVersion === 5 && this.#hasSession ? { retainHandling: 1 as const } : {};
      this.#checkGranted(filters, await client.subscribe(filters, { qos, ...retained }));
      if (this.#wantsSession !== this.#hasSession) {
        this.#isSwitching = true;
        throw new BrokerError('SOURCE_DOWN', 'the rules have changed');
      }
      if (!client.isConnected) throw new BrokerError('SOURCE_DOWN', 'the server has closed the connection');
      // from here on; earlier errors are thrown
      client.on('close', ({ error }) =>
        this.#lost(error ?? new BrokerError('SOURCE_DOWN', 'the server has closed the connection'))
      );
      this.#backOff.reset();
      this.#setup.connected();
    });
  }

  /**
   * Report filters that the server refuses.
   * @throws BrokerError SOURCE_DOWN if it refuses all of them
   */
  #checkGranted(filters: readonly string[], codes: readonly number[]): void {
    const refused = filters.filter((_, at) => codes[at] >= 0x80);
    if (refused.length === 0) return;
    const text = `the server refuses the subscription to ${refused.join(', ')}; check the rights of the user there`;
    const error = new BrokerError('SOURCE_DOWN', text);
    if (refused.length === filters.length) throw error;
    this.#setup.failed(error);
  }

  /**
   * Connection options without a session. If the server may have a session, the connection uses its client id, which
   * deletes it.
   */
  #plainOptions(): ClientOptions & { readonly clientId: string } {
    // two brokers with the same name may read from the same server
    const isRandom = this.#settings.clientId === undefined && this.#session.note === undefined;
    return { clientId: isRandom ? `embermq_${randomUUID()}` : this.#clientId, clean: true };
  }

  async #sessionOptions(): Promise<ClientOptions & { readonly clientId: string }> {
    const {
      sessionExpiry,
      client: { protocolVersion }
    } = this.#settings;
    const { place } = this.#setup;
    const { note, ids } = this.#session;
    const isNew = note === undefined || note.isNew === true;
    const clean = note !== undefined && (note.isStale === true || note.place !== place);
    this.#expectsSession = !isNew && !clean;
    // before the server has the session
    await this.#session.write({ place, ...(clean ? { isStale: true } : {}), ...(isNew ? { isNew: true } : {}) });
    const session = new ClientSession();
    if (!this.#hasForeignIds) for (const id of ids) session.incoming.set(id, true);
    return {
      clientId: this.#clientId,
      clean,
      session,
      acknowledge: 'manual',
      onReleased: (id) => ids.delete(id),
      ...(protocolVersion === 5 ? { receiveMaximum: RECEIVE_MAXIMUM } : {}),
      ...(protocolVersion === 5 && sessionExpiry !== undefined ? { sessionExpiry } : {})
    };
  }

  /** Called when the server has accepted the client. */
  async #began(client: Client, clientId: string): Promise<void> {
    if (!this.#hasSession) {
      if (clientId === this.#clientId) await this.#session.delete();
      return;
    }
    if (!client.connack.sessionPresent) {
      this.#hasForeignIds = true;
      const { stream, warn } = this.#setup;
      // MQTT 3.1 does not report it
      if (this.#expectsSession && this.#settings.client.protocolVersion > 3)
        warn(
          `stream ${stream}: the server no longer has the session ${clientId}, so messages since the last connection are lost; it may have expired (sessionExpiry)`
        );
    }
    if (this.#hasForeignIds) await this.#session.ids.clear();
    this.#hasForeignIds = false;
    await this.#session.write({ place: this.#setup.place });
  }

  #listen(client: Client): void {
    const { ids } = this.#session;
    const controller = this.#controller;
    client.on('message', (message) => {
      const { qos, messageId } = message;
      if (!this.#hasSession || qos === 0) {
        this.#give(message);
        return;
      }
      let isNoted: Promise<void> | undefined;
      const give = () => {
        // the server sends it again over the next connection
        if (!client.isConnected) throw new BrokerError('SOURCE_DOWN', 'the connection is lost');
        if (qos === 2 && this.#setup.isKept) isNoted = ids.add(messageId);
        this.#give(message);
      };
      this.#setup
        .kept(give)
        .then(() => isNoted)
        .then(
          () => message.ack(),
          (error) => controller.abort(error)
        );
    });
  }

  #give({ topic, payload, qos, retain, properties, messageId }: ReceivedMessage): void {
    const { userProperties = [], topicAlias: _alias, ...others } = properties;
    const entries = [...Object.entries(others), ...userProperties];
    const metadata = { topic, messageid: String(messageId), qos, retain };
    this.#setup.bytes(
      payload,
      entries.length === 0 ? metadata : { ...metadata, properties: Object.fromEntries(entries) }
    );
  }
}
