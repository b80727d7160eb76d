import { BrokerError, InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import { SUBSCRIPTION_NAMES } from '../events/subscription-options.ts';
import type { Packet, Properties, ProtocolVersion, SubackPacket, UnsubackPacket } from '../packets/types.ts';
import { filterFault } from '../topics/topic.ts';
import type { ClientConnection } from './connection.ts';
import type { Inbox } from './inbox.ts';
import { checkUnsubscribeOptions } from './option-check.ts';
import type { FilterInput, MessageHandler, SubscribeOptions } from './options.ts';
import type { Pending } from './pending.ts';
import type { ClientSession } from './session.ts';

/** The subscriptions of a client: SUBSCRIBE and UNSUBSCRIBE, their responses, and the handlers of topic filters. */
export class ClientSubscriptions {
  readonly #connection: ClientConnection;
  readonly #session: ClientSession;
  readonly #inbox: Inbox;
  /** The requests that wait for a SUBACK or UNSUBACK, by packet id. Undefined until the first one. */
  #pending: Map<number, Pending<SubackPacket | UnsubackPacket>> | undefined = undefined;

  constructor(connection: ClientConnection, session: ClientSession, inbox: Inbox) {
    this.#connection = connection;
    this.#session = session;
    this.#inbox = inbox;
  }

  /** True if the application waits for a response. */
  get isAwaited(): boolean {
    return this.#pending !== undefined && this.#pending.size > 0;
  }

  /** See `Client.subscribe`. */
  async subscribe(
    filters: string | FilterInput | readonly (string | FilterInput)[],
    options: SubscribeOptions | MessageHandler,
    handler: MessageHandler | undefined
  ): Promise<readonly number[]> {
    this.#connection.checkConnected();
    const handle = typeof options === 'function' ? options : handler;
    if (typeof options !== 'function') {
      checkObject(options, 'options');
      checkNames(options, [...SUBSCRIPTION_NAMES, 'properties'], 'subscribe');
    }
    const { properties, ...rest } = typeof options === 'function' ? {} : options;
    const subscriptions = subscriptionsOf(arrayOf(filters), rest, this.#connection.version);
    // Add the handlers before the SUBACK, because retained messages may arrive before it.
    const added = subscriptions.filter(({ topic }) => handle !== undefined && this.#inbox.addHandler(topic, handle));
    const forget = ({ topic }: FilterInput) => this.#inbox.removeHandler(topic, handle as MessageHandler);
    try {
      const { granted } = await this.#request((messageId) => ({
        cmd: 'subscribe',
        messageId,
        subscriptions,
        properties
      }));
      for (const one of added) if (granted[subscriptions.indexOf(one)] >= 0x80) forget(one);
      for (const [at, { topic }] of subscriptions.entries())
        if (granted[at] < 0x80) this.#session.subscribed.add(topic);
      return granted;
    } catch (error) {
      for (const one of added) forget(one);
      throw error;
    }
  }

  /** See `Client.unsubscribe`. */
  async unsubscribe(
    filters: string | readonly string[],
    options: { readonly properties?: Properties } | MessageHandler
  ): Promise<readonly number[]> {
    this.#connection.checkConnected();
    if (typeof options !== 'function') checkUnsubscribeOptions(options);
    const asked = arrayOf(filters);
    const { version } = this.#connection;
    checkFilters(asked, version);
    const handle = typeof options === 'function' ? options : undefined;
    const properties = typeof options === 'function' ? undefined : options.properties;
    const needed = new Set(
      asked.filter((filter) => handle !== undefined && this.#inbox.removeHandler(filter, handle) > 0)
    );
    const unsubscriptions = asked.filter((filter) => !needed.has(filter));
    if (unsubscriptions.length === 0) return asked.map(() => 0);
    const removed = unsubscriptions.map((filter) => [filter, this.#inbox.handlersOf(filter)] as const);
    const { granted } = await this.#request((messageId) => ({
      cmd: 'unsubscribe',
      messageId,
      unsubscriptions,
      properties
    }));
    for (const filter of unsubscriptions) this.#session.subscribed.delete(filter);
    for (const [filter, handlers] of removed) for (const one of handlers) this.#inbox.removeHandler(filter, one);
    return asked.map((filter) => (version === 5 ? granted[unsubscriptions.indexOf(filter)] : 0) ?? 0);
  }

  /** Process a SUBACK or UNSUBACK. */
  answered(packet: SubackPacket | UnsubackPacket): void {
    const { messageId } = packet;
    this.#session.answered(messageId);
    const waiting = this.#pending?.get(messageId);
    this.#pending?.delete(messageId);
    waiting?.resolve(packet);
  }

  /** Reject everything that waits, because the connection is closed. */
  close(): void {
    for (const { reject } of this.#pending?.values() ?? []) reject(this.#connection.closedError());
    this.#pending = undefined;
  }

  #request(make: (messageId: number) => Packet): Promise<SubackPacket | UnsubackPacket> {
    return new Promise((resolve, reject) => {
      const messageId = this.#session.takeId();
      if (messageId === undefined)
        throw new BrokerError('PACKET_IDS_EXHAUSTED', 'all 65535 packet ids are in use; wait for acknowledgements');
      const packet = make(messageId);
      this.#connection.checkSize(packet);
      this.#session.asked(messageId);
      this.#pending ??= new Map();
      this.#pending.set(messageId, { resolve, reject });
      try {
        this.#connection.send(packet);
      } catch (error) {
        this.#session.answered(messageId);
        this.#pending?.delete(messageId);
        throw error;
      }
      this.#connection.updateFlow();
    });
  }
}

/** Complete the filters of a SUBSCRIBE by common options and defaults. @throws InvalidInput */
function subscriptionsOf(
  filters: readonly (string | FilterInput)[],
  common: Omit<SubscribeOptions, 'properties'>,
  version: ProtocolVersion
) {
  for (const filter of filters)
    if (typeof filter === 'object' && filter !== null)
      checkNames(filter, [...SUBSCRIPTION_NAMES, 'topic'], 'subscribe');
  const subscriptions = filters.map((filter) => ({
    ...({ qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const),
    ...withoutUndefined(common),
    ...(typeof filter === 'string' ? { topic: filter } : withoutUndefined(filter))
  }));
  checkFilters(
    subscriptions.map(({ topic }) => topic),
    version
  );
  const unknown = subscriptions.find(({ qos }) => qos !== 0 && qos !== 1 && qos !== 2);
  if (unknown !== undefined) throw new InvalidInput('OPTION_INVALID', 'qos', '0, 1 or 2', unknown.qos);
  return subscriptions;
}

/**
 * Check that there are filters and that they are well-formed, because others would end the connection. The server may still refuse them.
 */
function checkFilters(filters: readonly unknown[], version: ProtocolVersion): void {
  if (filters.length === 0) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filters', 'topic filters', filters);
  for (const filter of filters) {
    const fault = typeof filter === 'string' ? filterFault(filter, version === 5) : 'the topic filter must be a string';
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filters', 'topic filters', filter, fault);
  }
}

/** A copy without the properties that are undefined, so that it does not override defaults. */
function withoutUndefined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as T;
}

function arrayOf<T>(one: T | readonly T[]): readonly T[] {
  return Array.isArray(one) ? one : [one as T];
}
