// Handlers of Aedes answer by callbacks, perhaps never and perhaps at once; a hook gets their answer as a value or a
// promise. `authorizePublish` of Aedes decides and changes in one step, so it is asked in the hook `publish`, and the
// hook `authorizePublish` of the broker allows everything. Connections that were not passed to `handle`, such as
// those of a listener, are left to other hooks.

import type {
  Approval,
  AuthenticateRequest,
  Awaitable,
  Broker,
  ChangedFilter,
  ClientInfo,
  ConnectPacket as ConnectOfBroker,
  Hook,
  Message,
  MessageInput,
  NoOpinion,
  Refusal,
  SubscriptionOptions,
  TransportInfo
} from '../../lib/index.ts';
import { type Answer, after, asError, ask, isPromise, noop } from './ask.ts';
import type { Backpressure } from './backpressure.ts';
import type { Client } from './client.ts';
import type { Settings } from './options.ts';
import {
  type AedesPublishPacket,
  applyChanges,
  type ConnectPacket,
  changesOf,
  connectPacketOf,
  type PacketNumbers,
  packetOf,
  type Subscription,
  subscriptionOf
} from './packets.ts';
import type { Handlers } from './types.ts';

/** Reason codes of MQTT 5.0 for the return codes with which `authenticate` can refuse a client. */
const REASON_CODES: Readonly<Record<number, number>> = { 2: 0x85, 3: 0x88, 4: 0x86, 5: 0x87 };
const NOT_AUTHORIZED = 5;
const TEXTS: Readonly<Record<number, string>> = {
  2: 'identifier rejected',
  3: 'Server unavailable',
  4: 'bad user name or password',
  5: 'not authorized'
};

/** The clients by the descriptions of their connections, which hooks and events carry. */
export class ClientLinks {
  readonly #clients = new WeakMap<TransportInfo, Client>();
  /** Connections that did not come through `handle`, for example those of a listener of `embermq/net`. */
  readonly #others = new WeakSet<TransportInfo>();

  add(transportInfo: TransportInfo, client: Client): void {
    this.#clients.set(transportInfo, client);
  }

  of({ transportInfo }: ClientInfo): Client | undefined {
    return this.#clients.get(transportInfo);
  }

  /** Record that this client does not belong to an Aedes client. */
  noteOther({ transportInfo }: ClientInfo): void {
    if (!this.#clients.has(transportInfo)) this.#others.add(transportInfo);
  }

  isOther({ transportInfo }: ClientInfo): boolean {
    return this.#others.has(transportInfo);
  }
}

/** The part of the Aedes broker that the hooks use. */
interface HooksHost extends Handlers, PacketNumbers {
  readonly broker: Broker;
}

/** Answers the hooks of the broker with the handlers of Aedes. */
export class HandlerHooks {
  readonly #host: HooksHost;
  readonly #settings: Settings;
  readonly #links: ClientLinks;
  readonly #backpressure: Backpressure;
  /** The CONNECT of each client, as modified by `preConnect`. */
  readonly #connects = new WeakMap<Client, ConnectPacket>();

  constructor(host: HooksHost, settings: Settings, links: ClientLinks, backpressure: Backpressure) {
    this.#host = host;
    this.#settings = settings;
    this.#links = links;
    this.#backpressure = backpressure;
    const { broker } = host;
    broker.hook('preConnect', ({ packet, client }) => this.#preConnect(packet, client));
    broker.hook('authenticate', (request) => this.#authenticate(request));
    broker.hook('authorizePublish', ({ client }) => (this.#links.isOther(client) ? undefined : true)); // `publish` decides
    broker.hook('publish', ({ message, client }) => this.#publish(message, client));
    broker.hook('authorizeSubscribe', ({ client, filter, options }) => this.#subscribe(client, filter, options));
  }

  /**
   * The hook `deliver`, which is registered only if `authorizeForward` was set, because it costs time for every
   * receiver.
   */
  readonly deliver: Hook<'deliver'> = ({ message, client: info }) => {
    const client = this.#links.of(info);
    if (client === undefined) return undefined;
    const packet = packetOf(message, this.#host);
    const before = { ...packet };
    const forwarded: unknown = this.#host.authorizeForward(client, packet);
    if (isPromise(forwarded)) {
      forwarded.then(undefined, noop); // reported here
      throw new TypeError('authorizeForward must return a packet or null, and cannot be asynchronous');
    }
    if (!isPacket(forwarded)) return false;
    const changes = changesOf(forwarded, before);
    if (changes === undefined) return true;
    const { qos = 0 } = changes;
    return qos > message.qos ? { ...changes, qos: message.qos } : changes;
  };

  #preConnect(packet: ConnectOfBroker, info: ClientInfo): Awaitable<boolean | NoOpinion> {
    const client = this.#links.of(info);
    if (client === undefined) {
      this.#links.noteOther(info);
      return undefined;
    }
    const given = connectPacketOf(packet);
    this.#connects.set(client, given);
    client.connectArrived();
    const asked = ask<boolean>((callback) => this.#host.preConnect(client, given, callback));
    return after(asked, ({ error, value }) => {
      if (error !== undefined) {
        client.closedFor(error);
        client.conn.destroy();
        return false;
      }
      if (value !== true) {
        client.close();
        return false;
      }
      return this.#accept(client, given, packet);
    });
  }

  /** @returns false if the CONNECT is refused */
  #accept(client: Client, given: ReturnType<typeof connectPacketOf>, packet: ConnectOfBroker): boolean | NoOpinion {
    const { keepaliveLimit, maxClientsIdLength } = this.#settings;
    try {
      applyChanges(given, packet);
    } catch (error) {
      client.refused(asError(error));
      return false;
    }
    const { keepalive, protocolVersion, clientId } = packet;
    if (keepaliveLimit > 0 && (keepalive === 0 || keepalive > keepaliveLimit)) {
      client.refused(withCode(new Error('keep alive limit exceeded'), 6));
      return false;
    }
    if (protocolVersion === 3 && clientId.length > maxClientsIdLength) {
      client.refused(withCode(new Error(TEXTS[2]), 2));
      return false;
    }
    return undefined;
  }

  #authenticate(request: AuthenticateRequest): Awaitable<NoOpinion | Approval | Refusal> {
    const client = this.#links.of(request.client);
    if (client === undefined || request.method !== undefined) return undefined;
    const { clientId, cleanStart, protocolVersion } = request.client;
    const { username, password, will = null } = this.#connects.get(client) ?? {};
    client.identified(clientId, cleanStart, protocolVersion, will);
    const asked = ask<boolean>((callback) => this.#host.authenticate(client, username, password, callback));
    return after(asked, (answer): Approval | Refusal => {
      if (answer.error === undefined && answer.value) {
        const renamed = username === undefined || username === request.username ? {} : { username };
        // `authorizePublish` decides about `$SYS` topics as about all others
        return { allow: true, rules: [{ access: 'allow', action: 'publish', topic: '$SYS/#' }], ...renamed };
      }
      const error = refusalError(answer);
      client.refused(error);
      return { allow: false, reasonCode: REASON_CODES[error.errorCode] };
    });
  }

  #publish(message: Message, info: ClientInfo | undefined): Awaitable<boolean | NoOpinion | MessageInput> {
    if (info === undefined || this.#links.isOther(info)) return undefined;
    const client = this.#links.of(info) ?? null; // null: the will of a client from before the start
    const decide = () => this.#authorizePublish(message, client);
    const busy = client === null || client.closed ? undefined : this.#backpressure.of(client);
    return busy === undefined ? decide() : busy.then(decide);
  }

  #authorizePublish(message: Message, client: Client | null): Awaitable<boolean | MessageInput> {
    const packet = packetOf(message, this.#host);
    const before = { ...packet };
    const asked = ask<never>((callback) => this.#host.authorizePublish(client, packet, callback));
    return after(asked, ({ error }) => {
      if (error === undefined) return (changesOf(packet, before) as MessageInput | undefined) ?? true;
      failed(client, error);
      return false;
    });
  }

  #subscribe(
    info: ClientInfo,
    filter: string,
    options: SubscriptionOptions
  ): Awaitable<NoOpinion | boolean | number | ChangedFilter | Refusal> {
    const client = this.#links.of(info);
    if (client === undefined) return undefined;
    const subscription = subscriptionOf(filter, options, client.version === 5);
    return after(this.authorizeSubscribe(client, subscription), ({ error, value }) => {
      if (error !== undefined) failed(client, error);
      if (error !== undefined || !value) return { allow: false };
      if (value.topic === filter) return value.qos;
      return { filter: value.topic, qos: value.qos };
    });
  }

  /** Ask `authorizeSubscribe`. */
  authorizeSubscribe(client: Client, subscription: Subscription): Answer<Subscription> | Promise<Answer<Subscription>> {
    return ask((callback) => this.#host.authorizeSubscribe(client, subscription, callback));
  }
}

function isPacket(value: unknown): value is AedesPublishPacket {
  return typeof (value as AedesPublishPacket | null | undefined)?.topic === 'string';
}

/** A handler has answered with an error: report it and close the connection. */
export function failed(client: Client | null, error: Error): void {
  if (client !== null && !client.closed) client.emit('error', error);
}

function refusalError({ error }: Answer<boolean>): Error & { readonly errorCode: number } {
  const asked = (error as { readonly returnCode?: unknown } | undefined)?.returnCode;
  const code = typeof asked === 'number' && asked >= 2 && asked <= 5 ? asked : NOT_AUTHORIZED;
  if (error === undefined) return withCode(new Error(TEXTS[code]), code);
  if (error.message === '') error.message = TEXTS[code];
  return withCode(error, code);
}

function withCode(error: Error, errorCode: number): Error & { readonly errorCode: number } {
  return Object.assign(error, { errorCode });
}
