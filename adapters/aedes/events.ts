// The events of Aedes, emitted at the events of the broker. Handlers and listeners get packets in the form of Aedes, which are made only if there is one.

import { isCausedByPeer } from '../../lib/adapter.ts';
import { type Broker, DISCONNECT_REASONS, type DisconnectReason, type Message } from '../../lib/index.ts';
import { asError, ask } from './ask.ts';
import type { Backpressure } from './backpressure.ts';
import type { Client } from './client.ts';
import { type ClientLinks, failed, type HandlerHooks } from './hooks.ts';
import {
  connackOf,
  type PacketNumbers,
  type PubrelPacket,
  packetOf,
  refusalOf,
  type Subscription,
  subscriptionOf
} from './packets.ts';
import type { AedesEvents, Handlers } from './types.ts';

/** The part of the Aedes broker that the events use. */
interface EventsHost extends PacketNumbers, Pick<Handlers, 'published'> {
  readonly broker: Broker;
  emit<E extends keyof AedesEvents>(event: E, ...args: AedesEvents[E]): boolean;
  /** Check whether `published` is a function of the app. */
  hasPublished(): boolean;
  listenerCount(event: keyof AedesEvents): number;
  /** The connected client with this id. */
  clientOf(clientId: string): Client | undefined;
  /** Called when a client has subscribed. */
  subscribed(client: Client, subscriptions: Subscription[]): void;
  /** Called when a client has unsubscribed. */
  unsubscribed(client: Client, filters: string[]): void;
}

/** Reasons for which a connection ends without an error. */
const QUIET: readonly DisconnectReason[] = [
  'normal',
  'disconnect_with_will',
  'closed',
  'kicked',
  'discarded',
  'takeovered',
  'expired',
  'server_shutting_down'
];

/** The error messages of Aedes in these cases. */
const TEXTS: Partial<Record<DisconnectReason, string>> = {
  keepalive_timeout: 'keep alive timeout',
  slow_consumer: 'drain timeout'
};

/** Emits the events of Aedes when the broker emits its own. */
export class EventRelay {
  readonly #host: EventsHost;
  readonly #links: ClientLinks;
  readonly #hooks: HandlerHooks;
  readonly #backpressure: Backpressure;
  #hearsAcks = false;
  /** The topic filters that clients have unsubscribed from in this turn. */
  readonly #unsubscribing = new Map<Client, string[]>();

  constructor(host: EventsHost, links: ClientLinks, hooks: HandlerHooks, backpressure: Backpressure) {
    this.#host = host;
    this.#links = links;
    this.#hooks = hooks;
    this.#backpressure = backpressure;
    this.#relayConnections();
    this.#relaySubscriptions();
    host.broker.on('client.ping', ({ client: info }) => {
      const client = links.of(info);
      if (client !== undefined) host.emit('ping', { cmd: 'pingreq' }, client);
    });
    host.broker.on('message.publish', ({ message, client }) => this.#published(message, client && links.of(client)));
    host.broker.on('error', ({ error, client: info }) => this.#failed(error, info && links.of(info)));
  }

  /** Start emitting `ack`. The broker keeps messages in flight for it, so this happens only with the first listener. */
  hearAcks(): void {
    if (this.#hearsAcks) return;
    this.#hearsAcks = true;
    this.#host.broker.on('message.acked', ({ message, client: info, qos }) => {
      const client = this.#links.of(info);
      if (client === undefined) return;
      const pubrel: PubrelPacket = { cmd: 'pubrel' };
      this.#host.emit('ack', qos === 2 ? pubrel : packetOf(message, this.#host), client);
    });
  }

  #relayConnections(): void {
    const { broker } = this.#host;
    broker.on('client.connack', ({ client: info, reasonCode }) => {
      const client = this.#links.of(info);
      if (client === undefined) return;
      if (reasonCode === 0) {
        client.register();
        return;
      }
      if (client.closed) return; // by `preConnect`
      this.#host.emit('connackSent', connackOf(reasonCode, false, info.protocolVersion), client);
      client.refusalSent(refusalOf(reasonCode)?.about ?? 'the client is refused');
    });
    broker.on('client.connected', ({ client: info, sessionPresent }) => {
      const client = this.#links.of(info);
      if (client === undefined) return;
      this.#host.emit('connackSent', connackOf(0, sessionPresent, info.protocolVersion), client);
      client.ready();
    });
    broker.on('client.rejected', ({ client: info, why }) => {
      if (info !== undefined) this.#links.of(info)?.refused(new Error(why));
    });
    broker.on('client.disconnected', ({ client: info, reason }) => {
      const client = this.#links.of(info);
      if (client === undefined) return;
      if (reason === 'keepalive_timeout') this.#host.emit('keepaliveTimeout', client);
      if (!QUIET.includes(reason)) client.closedFor(new Error(TEXTS[reason] ?? DISCONNECT_REASONS[reason].about));
      client.ended();
    });
    broker.on('session.resumed', ({ client: info }) => {
      const client = this.#links.of(info);
      if (client !== undefined)
        for (const subscription of this.#restored(client)) void this.#authorizeAgain(client, subscription);
    });
  }

  #restored({ id, version }: Client): Subscription[] {
    const { sessions } = this.#host.broker;
    return [...sessions.get(id).subscriptions()].map((record) => subscriptionOf(record.filter, record, version === 5));
  }

  /** Call `authorizeSubscribe` for the subscriptions of a resumed session as well. */
  async #authorizeAgain(client: Client, subscription: Subscription): Promise<void> {
    const { topic, qos } = subscription;
    try {
      const { error, value } = await this.#hooks.authorizeSubscribe(client, subscription);
      if (client.closed) return;
      if (error !== undefined) throw error;
      if (value?.topic === topic && value.qos === qos) return;
      const session = this.#host.broker.sessions.get(client.id);
      if (value?.topic !== topic) session.unsubscribe(topic);
      if (value) session.subscribe(value.topic, { qos: value.qos, retainHandling: 2 });
    } catch (error) {
      failed(client, asError(error)); // includes an invalid topic filter from the handler
    }
  }

  #relaySubscriptions(): void {
    const { broker } = this.#host;
    broker.on('client.suback', ({ client: info, results }) => {
      const client = this.#links.of(info);
      if (client === undefined || client.closed) return; // closed: `authorizeSubscribe` has answered with an error
      const last = new Map<string, Subscription>();
      for (const { filter, grantedFilter = filter, options, reasonCode } of results) {
        const subscription = subscriptionOf(grantedFilter, options, info.protocolVersion === 5);
        const qos = (reasonCode >= 0x80 ? 128 : reasonCode) as Subscription['qos'];
        last.set(filter, { ...subscription, qos });
      }
      this.#host.subscribed(client, [...last.values()]);
    });
    broker.on('session.subscribed', ({ client, filter }) => this.#links.of(client)?.noteSubscription(filter, true));
    broker.on('session.unsubscribed', ({ client, filter }) => this.#links.of(client)?.noteSubscription(filter, false));
    broker.on('client.unsubscribe', ({ client: info, filter }) => {
      const client = this.#links.of(info);
      if (client !== undefined) this.#unsubscribed(client, filter);
    });
  }

  /** Report all filters that arrive in one turn together. */
  #unsubscribed(client: Client, filter: string): void {
    const filters = this.#unsubscribing.get(client);
    if (filters !== undefined) {
      filters.push(filter);
      return;
    }
    const begun = [filter];
    this.#unsubscribing.set(client, begun);
    queueMicrotask(() => {
      this.#unsubscribing.delete(client);
      this.#host.unsubscribed(client, begun);
    });
  }

  /** Call `published` and emit `publish`, after the message was delivered. */
  #published(message: Message, by: Client | undefined): void {
    const host = this.#host;
    const client = by ?? host.clientOf(message.clientId) ?? null;
    const hasPublished = host.hasPublished();
    if (!hasPublished && host.listenerCount('publish') === 0) {
      host.nextCount(); // the packet counts even if there are no listeners
      return;
    }
    const packet = packetOf(message, host);
    const call = async (): Promise<Error | undefined> => {
      await undefined;
      const { error } = await ask<never>((callback) => host.published(packet, client as Client, callback)); // null, as in Aedes
      if (error !== undefined) failed(client, error);
      return error;
    };
    if (hasPublished) this.#backpressure.add(client, call()); // registered now, so that the next packet of the client waits
    queueMicrotask(() => host.emit('publish', packet, client));
  }

  #failed(error: Error, client: Client | undefined): void {
    if (client !== undefined) client.closedFor(error);
    else if (this.#host.listenerCount('error') > 0) this.#host.emit('error', error);
    else if (!isCausedByPeer(error)) process.emitWarning(error);
  }
}
