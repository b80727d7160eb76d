// A handle is a view of a session and has no state. A method that changes a persisted session first checks that the
// store works (`#refusal`) and changes nothing if it does not; only `kick` of a connected client disconnects it
// nevertheless. While a connection is being taken over, `kick` waits until the takeover has ended. Clearing a queue
// runs in slices, one call after the other for each session.

import type { ActorRef } from '../../base/actor.ts';
import { BrokerError, InvalidInput, StateError } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import { INSPECT } from '../../base/symbols.ts';
import { SUBSCRIPTION_NAMES } from '../../events/subscription-options.ts';
import type { MessageInput } from '../../packets/message.ts';
import { reasonName } from '../../packets/reason-codes.ts';
import type { ClientInfo, TransportInfo } from '../../records/client.ts';
import { recordOf } from '../../records/record-table.ts';
import { COUNTER_FIELDS, type SessionCounters } from '../../records/session-counters.ts';
import { SUBSCRIPTION_FIELDS, type SubscriptionRecord } from '../../records/subscription-record.ts';
import { type PageQuery, readQuery } from '../../routing/directory-queries.ts';
import { Subscription } from '../../routing/subscription.ts';
import { CLEARED_AT_ONCE } from '../../session/messages/queue.ts';
import { flightsOf, type QueuePage, queuePage, type SessionFlights } from '../../session/messages/queue-view.ts';
import type { SessionLog } from '../../session/messages/session-log.ts';
import type { Session } from '../../session/session.ts';
import type { Ledger } from '../../store/ledger.ts';
import { checkTopicFilter, mountedFilter, mountedName } from '../../topics/topic.ts';
import { type AutoSubscription, checkSubscription } from '../configuration/auto-subscriptions.ts';
import type { Subscribing } from '../messages/subscribing.ts';
import { newMessage } from '../new-message.ts';
import { sessionText } from './session-text.ts';

/** Options of `session.kick`. */
export interface KickOptions {
  /** Reason code for MQTT 5.0 clients. Default 0x98 (administrative action). */
  readonly reasonCode?: number;
  /** Reason String for MQTT 5.0 clients. Default: none. */
  readonly reasonString?: string;
  /** Server Reference for MQTT 5.0 clients; belongs to the reason codes 0x9C and 0x9D. Default: none. */
  readonly serverReference?: string;
  /** `end` (default): the session ends with the connection. `keep`: it remains until its session expiry interval has passed. */
  readonly session?: 'end' | 'keep';
  /** `publish` or `drop` the will. Default `publish`, as for every close without a DISCONNECT of the client. */
  readonly will?: 'publish' | 'drop';
}

/**
 * For sessions whose queues are being cleared: resolves when the last call is complete. Calls run one after the other, so that they do not
 * all wake at once.
 */
const CLEARING = new WeakMap<Session, Promise<unknown>>();

function inTurn(session: Session, clear: () => Promise<number>): Promise<number> {
  const cleared = (CLEARING.get(session) ?? Promise.resolve()).then(clear);
  const last = cleared
    .catch(() => undefined)
    .then(() => {
      if (CLEARING.get(session) === last) CLEARING.delete(session);
    });
  CLEARING.set(session, last);
  return cleared;
}

async function clearMemory({ outlet, ports }: Session, end: number): Promise<number> {
  for (let count = 0; ; ) {
    const { removed = 0, dropped = 0 } = outlet.queue?.dropUntil(end, Infinity) ?? {};
    count += dropped;
    if (removed < CLEARED_AT_ONCE) return count;
    await ports.turn.pause();
  }
}

async function clearStored(log: SessionLog, ledger: Ledger): Promise<number> {
  const count = await log.session.outlet.ensureQueue().clear();
  if (count > 0) {
    log.flowChanged();
    await ledger.committed(ledger.ticketOf(log));
  }
  return count;
}

/**
 * A session of the broker. Its properties and methods return the current state of the session, not a snapshot.
 *
 * With a store, changes to a persistent session take effect immediately and are persisted with the next commit. While the store cannot be
 * written, methods that change a persistent session throw STORE_FAILED and change nothing, unless stated otherwise.
 */
export class SessionHandle<Data = unknown> {
  readonly #session: Session;
  readonly #subscribing: Subscribing;

  /** @internal */
  constructor(session: Session, subscribing: Subscribing) {
    this.#session = session;
    this.#subscribing = subscribing;
  }

  /** The state of the session: `idle` (no CONNACK yet), `connected`, `disconnected` (waits for its client) or `gone` (ended). */
  get state(): 'idle' | 'connected' | 'disconnected' | 'gone' {
    return this.#session.state;
  }

  /**
   * The actor of the session, for reading and observing. xstate's `waitFor` and `toPromise` accept it. It is the same object while the client
   * disconnects and returns, as long as it is held or observed, and done when the session has ended.
   */
  get actor(): ActorRef {
    return this.#session.ports.chart.actorOf(this.#session);
  }

  /** The client id. */
  get clientId(): string {
    return this.#session.client.clientId;
  }

  /** The record of the client, as hooks and events receive it. */
  get client(): ClientInfo<Data> {
    return this.#session.client as ClientInfo<Data>;
  }

  /** The transport of the current or last connection. */
  get transportInfo(): TransportInfo {
    return this.#session.client.transportInfo;
  }

  /** The counters and gauges of the session at this moment. */
  counters(): SessionCounters {
    return recordOf(COUNTER_FIELDS, this.#session, this.#session.ports.node);
  }

  /** @deprecated Use `counters`. */
  figures(): SessionCounters {
    return this.counters();
  }

  /** The error for a change of persisted state that the store cannot accept now; undefined: changes are possible. */
  get #refusal(): BrokerError | undefined {
    const { state, log, ports } = this.#session;
    return state !== 'gone' && log !== undefined && ports.ledger?.isFailed ? ports.ledger.refusal() : undefined;
  }

  /** The subscriptions in order of creation. Those restored from the store come first, ordered by the bytes of their filters. */
  *subscriptions(): IterableIterator<SubscriptionRecord> {
    const { subscriptions, ports } = this.#session;
    for (const subscription of subscriptions.values()) yield recordOf(SUBSCRIPTION_FIELDS, subscription, ports.node);
  }

  /**
   * Send a message only to this client, whether or not it has a subscription. Otherwise it is sent as for a subscription of its QoS: it is
   * queued while the client is away, and the `deliver` hooks run.
   * @param message its `topic` without the mount point; `retain` is the flag of the packet, nothing is retained
   * @returns false if the message was dropped; the promise resolves when the message is persisted, if the session is
   * @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID, OPTION_UNKNOWN; StateError SESSION_ENDED; BrokerError STORE_FAILED
   */
  async send(message: MessageInput): Promise<boolean> {
    const { client, outlet, log, ports } = this.#session;
    this.#checkBegun();
    const topic = mountedName(message.topic, client.mountpoint);
    if (topic === undefined)
      throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic that fits behind the mount point', message.topic);
    ports.time.read();
    const made = newMessage({ ...message, topic }, undefined, ports.time);
    const isAccepted = outlet.deliver(made, new Subscription(outlet, topic, made.qos, false, true, 0, undefined));
    const ticket = log === undefined || ports.ledger === undefined ? 0 : ports.ledger.ticketOf(log);
    if (ticket > 0) await ports.ledger?.committed(ticket);
    return isAccepted;
  }

  /**
   * List the messages that wait for the client, in order of arrival; of a persistent session, those that are only in memory come first.
   * Nothing changes: messages of the store are read page by page, and not kept. A message that waits from the first page to the last is
   * listed once.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, CURSOR_INVALID; errors of the store
   */
  async queue(query: PageQuery = {}): Promise<
    QueuePage & {
      /** Number of messages that wait for the client. */
      readonly count: number;
    }
  > {
    const { cursor, limit, skip } = readQuery<never, PageQuery>(query, {});
    const page = await queuePage(this.#session, { limit, cursor, skip });
    return { ...page, count: this.counters().mqueueLen };
  }

  /** The messages in flight between the session and its client. */
  flights(): SessionFlights {
    return flightsOf(this.#session);
  }

  /**
   * Drop the messages that wait for the client, whether or not it is connected, some of them in each turn: each is counted, and reported as
   * `message.dropped` with the reason `queue_cleared`. Messages in flight and retained messages of new subscriptions stay, and so do
   * messages that arrive in the meantime.
   * @returns the number of messages that were dropped; the promise resolves when that is persisted, if the session is
   * @throws StateError SESSION_ENDED; BrokerError STORE_FAILED
   */
  async clearQueue(): Promise<number> {
    const { outlet, log, ports } = this.#session;
    this.#checkBegun();
    const { ledger } = ports;
    if (log !== undefined && ledger !== undefined) return inTurn(this.#session, () => clearStored(log, ledger));
    const end = outlet.queue?.end ?? 0; // later messages stay
    return inTurn(this.#session, () => clearMemory(this.#session, end));
  }

  /** @internal */
  [INSPECT](depth: number, options: object): string {
    return sessionText(this, depth, options);
  }

  /** Check that there is a session and that its store works. @throws StateError SESSION_ENDED; BrokerError STORE_FAILED */
  #checkBegun(): void {
    const { state } = this.#session;
    if (state === 'gone' || state === 'idle')
      throw new StateError(
        'SESSION_ENDED',
        `client "${this.clientId}" has no session: it has ended, or has no CONNACK yet`
      );
    const refusal = this.#refusal;
    if (refusal !== undefined) throw refusal;
  }

  /**
   * Subscribe on behalf of the client. No hook runs.
   * @param filter the topic filter as the client would write it, without the mount point
   * @returns the granted QoS
   * @throws InvalidInput TOPIC_FILTER_INVALID, OPTION_UNKNOWN, OPTION_INVALID; BrokerError SUBSCRIBE_REFUSED if a limit or setting of the
   *   zone forbids it or the session has ended; BrokerError STORE_FAILED
   */
  subscribe(filter: string, options: Omit<AutoSubscription, 'topic'> = {}): number {
    const fault = checkTopicFilter(filter);
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
    checkObject(options, 'options');
    checkNames(options, SUBSCRIPTION_NAMES, 'subscribe');
    const request = { ...options, topic: filter };
    checkSubscription(request);
    const refusal = this.#refusal;
    if (refusal !== undefined) throw refusal;
    const code = this.#subscribing.subscribeFor(this.#session, request);
    if (code < 0x80) return code;
    throw new BrokerError(
      'SUBSCRIBE_REFUSED',
      `client "${this.clientId}" cannot subscribe to "${filter}": ${reasonName(code)}`
    );
  }

  /** Unsubscribe on behalf of the client. @returns whether the subscription existed @throws BrokerError STORE_FAILED */
  unsubscribe(filter: string): boolean {
    const { subscriptions, client } = this.#session;
    const refusal = this.#refusal;
    if (refusal !== undefined && subscriptions.get(mountedFilter(filter, client.mountpoint)) !== undefined)
      throw refusal;
    return this.#subscribing.unsubscribeFor(this.#session, filter);
  }

  /**
   * Disconnect the client and end its session, whether or not the client is connected. With `session: 'keep'` the session remains.
   *
   * A connected client receives a DISCONNECT. A client that has not received a CONNACK yet is refused with one (0x80, since 0x98 is not
   * a CONNACK code), and its will is not published.
   *
   * In a listener of an event, the current owner of the session is disconnected: from `session.takenover` on, this is the connection that
   * takes over. While a clean start discards the previous session, that session ends and the new one begins. In a listener of
   * `client.disconnected`, the session ends after the listeners have been called.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID; BrokerError STORE_FAILED if the session cannot be ended or its will cannot be
   *   dropped. A connected client is disconnected nevertheless
   */
  kick(options: KickOptions = {}): void {
    checkKick(options);
    const { lifecycle } = this.#session;
    if (lifecycle.takeover?.isPending) {
      lifecycle.takeover.afterwards(() => this.kick(options));
      return;
    }
    const { reasonCode, will = 'publish', reasonString, serverReference } = options;
    const end = options.session !== 'keep';
    const refusal = this.#refusal;
    if (this.#session.state === 'disconnected') {
      const hasChanges = end || (will === 'drop' && lifecycle.will !== undefined);
      if (refusal !== undefined && hasChanges) throw refusal;
      if (will === 'drop') lifecycle.dropWill('kicked');
      if (end) lifecycle.end('discarded', 'kicked');
    } else {
      lifecycle.close('kicked', { reasonCode, end: end && refusal === undefined, will, reasonString, serverReference });
      if (end && this.#refusal !== undefined) throw refusal;
    }
  }

  /**
   * End the session of a client that is not connected. In a listener of `client.disconnected`, it ends after the listeners have been called.
   * @throws BrokerError SESSION_RUNNING if the client is connected; STORE_FAILED
   */
  discard(): void {
    const { lifecycle, state } = this.#session;
    if (state === 'connected' || lifecycle.takeover?.isPending) {
      throw new BrokerError('SESSION_RUNNING', `client "${this.clientId}" is connected; disconnect it first`);
    }
    const refusal = this.#refusal;
    if (refusal !== undefined) throw refusal;
    lifecycle.end('discarded', 'discarded');
  }
}

const KICK_NAMES: readonly (keyof KickOptions)[] = ['reasonCode', 'reasonString', 'serverReference', 'session', 'will'];

/** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
function checkKick(options: KickOptions): void {
  checkObject(options, 'options');
  checkNames(options, KICK_NAMES, 'kick');
  for (const name of ['reasonString', 'serverReference'] as const) {
    const text = options[name];
    if (text !== undefined && typeof text !== 'string')
      throw new InvalidInput('OPTION_INVALID', name, 'a string', text);
  }
}
