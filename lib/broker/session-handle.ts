import { BrokerError, InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/options-table.ts';
import { SUBSCRIPTION_NAMES, type SubscriptionOptions } from '../events/events.ts';
import { ReasonCode, reasonName } from '../packets/reason-codes.ts';
import type { ClientInfo, TransportInfo } from '../records/client.ts';
import type { Session } from '../session/session.ts';
import { checkTopicFilter } from '../topics/topic.ts';
import { type AutoSubscription, checkSubscription } from './options.ts';
import { mounted, type Subscribing, unmountedFilter } from './subscribing.ts';

/** One subscription of one session. */
export interface SubscriptionRecord {
  readonly clientId: string;
  /** As the client wrote it, with the share prefix where there is one. */
  readonly filter: string;
  readonly options: SubscriptionOptions;
}

/**
 * Numbers of a session, under their documented names; those of the connection are 0 while there is none. `recv` and `send` count what came
 * from and went to the client: `Oct` bytes, `Cnt` reads and writes of the stream, `Pkt` packets, `Msg` PUBLISH packets. A `max` of 0: no bound.
 */
export interface SessionFigures {
  /** Wall-clock milliseconds. */
  readonly createdAt: number;
  readonly subscriptions: number;
  readonly maxSubscriptions: number;
  readonly inflight: number;
  readonly maxInflight: number;
  /** Messages in the backlog. */
  readonly mqueueLen: number;
  readonly maxMqueue: number;
  /** Messages that this session did not get, for any reason. */
  readonly mqueueDropped: number;
  /** Incoming QoS 2 messages that wait for PUBREL. */
  readonly awaitingRel: number;
  readonly maxAwaitingRel: number;
  readonly recvOct: number;
  readonly recvCnt: number;
  readonly recvPkt: number;
  readonly recvMsg: number;
  readonly sendOct: number;
  readonly sendCnt: number;
  readonly sendPkt: number;
  readonly sendMsg: number;
  /** Bytes written and not yet taken by the stream. */
  readonly sendPend: number;
}

/** How `kick` ends a client. */
export interface KickOptions {
  /** For MQTT 5.0 clients. Default 0x98, administrative action. */
  readonly reasonCode?: number;
  readonly reasonString?: string;
  /** Goes with 0x9C and 0x9D. */
  readonly serverReference?: string;
  /** `end` (default): the session ends with the connection; `keep`: it lives on for its expiry. */
  readonly session?: 'end' | 'keep';
  /** Default `publish`, as MQTT has it for any close that is not the client's DISCONNECT. */
  readonly will?: 'publish' | 'drop';
}

/**
 * What the app sees of a session, and can do with it. A snapshot of nothing: each look is a look at the present.
 *
 * With a store, what its methods change of a persistent session takes effect at once and is kept with the next commit. While the store can
 * not be written they throw STORE_FAILED, and nothing changes but where it says so.
 */
export class SessionHandle {
  readonly #session: Session;
  readonly #subscribing: Subscribing;

  /** @internal */
  constructor(session: Session, subscribing: Subscribing) {
    this.#session = session;
    this.#subscribing = subscribing;
  }

  /** Where its actor is. `gone` once it has ended. */
  get state(): 'idle' | 'connected' | 'disconnected' | 'gone' {
    return this.#session.state;
  }

  /** Client id. */
  get clientId(): string {
    return this.#session.clientId;
  }

  /** Who it is: what hooks and events are given. */
  get client(): ClientInfo {
    return this.#session;
  }

  /** Of the present or last connection. */
  get transportInfo(): TransportInfo {
    return this.#session.transportInfo;
  }

  /** Its numbers as they are now. */
  figures(): SessionFigures {
    const session = this.#session;
    const { connection, zoneSettings, log } = session;
    const flows = log?.flows;
    return {
      createdAt: session.createdAt,
      subscriptions: session.subscriptions.size,
      maxSubscriptions: zoneSettings.maxSubscriptions,
      inflight: flows?.inflight ?? session.inflight?.count ?? 0,
      maxInflight: session.window,
      mqueueLen: Math.max(log?.waiting ?? 0, session.backlog?.length ?? 0),
      maxMqueue: zoneSettings.maxMqueueLen,
      mqueueDropped: session.dropped,
      awaitingRel: flows?.awaitingRel ?? session.awaitingRel?.size ?? 0,
      maxAwaitingRel: zoneSettings.maxAwaitingRel,
      recvOct: connection?.receivedBytes ?? 0,
      recvCnt: connection?.receivedChunks ?? 0,
      recvPkt: connection?.receivedPackets ?? 0,
      recvMsg: connection?.receivedMessages ?? 0,
      sendOct: connection?.sentBytes ?? 0,
      sendCnt: connection?.sentWrites ?? 0,
      sendPkt: connection?.sentPackets ?? 0,
      sendMsg: connection?.sentMessages ?? 0,
      sendPend: connection?.stream.writableLength ?? 0
    };
  }

  /** Why nothing that is kept of the session can be changed now; undefined: it can. */
  get #refusal(): BrokerError | undefined {
    const { state, log, ports } = this.#session;
    return state !== 'gone' && log !== undefined && ports.ledger?.isFailed ? ports.ledger.refusal() : undefined;
  }

  /** Its subscriptions, in the order in which they were made; those that come out of the store first, in the order of their filters' bytes. */
  *subscriptions(): IterableIterator<SubscriptionRecord> {
    const { clientId, mountpoint } = this.#session;
    for (const {
      filter,
      qos,
      noLocal,
      retainAsPublished,
      retainHandling,
      ids
    } of this.#session.subscriptions.values()) {
      yield {
        clientId,
        filter: unmountedFilter(filter, mountpoint),
        options: { qos, noLocal, retainAsPublished, retainHandling, id: ids?.[0] }
      };
    }
  }

  /**
   * Subscribe on the client's behalf. No hook is asked.
   * @returns the granted QoS
   * @throws InvalidInput TOPIC_FILTER_INVALID, OPTION_UNKNOWN, OPTION_INVALID; BrokerError SUBSCRIBE_REFUSED when a bound or switch of the zone forbids it,
   *   or the session has ended; STORE_FAILED
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
      `"${filter}" can not be subscribed for client "${this.clientId}": ${reasonName(code)}`
    );
  }

  /** Unsubscribe on the client's behalf. @returns false if there was no such subscription. @throws BrokerError STORE_FAILED */
  unsubscribe(filter: string): boolean {
    const { subscriptions, mountpoint } = this.#session;
    const refusal = this.#refusal;
    if (refusal !== undefined && subscriptions.get(mounted(filter, mountpoint)) !== undefined) throw refusal;
    return this.#subscribing.unsubscribeFor(this.#session, filter);
  }

  /**
   * Disconnect the client and, unless told otherwise, end its session; ends a session that is offline, too.
   *
   * Within an event it ends whoever has the session then: the client that is connected; from `session.takenover` on the connection that takes
   * over. A client that has had no CONNACK yet is refused by one (0x80: it knows no 0x98) and leaves no will, one that has gets the DISCONNECT.
   * While a clean start discards the session of before, it ends that one, and the new session begins.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID; BrokerError STORE_FAILED where the session can not be ended, or its will not be
   *   dropped: a client that is connected is disconnected all the same
   */
  kick(options: KickOptions = {}): void {
    checkKick(options);
    const session = this.#session;
    if (session.incoming !== undefined) {
      session.whenHandedOver = () => this.kick(options);
      return;
    }
    const { reasonCode = ReasonCode.administrativeAction, will = 'publish', reasonString, serverReference } = options;
    const end = options.session !== 'keep';
    const refusal = this.#refusal;
    if (session.state === 'disconnected') {
      const hasChanges = end || (will === 'drop' && session.will !== undefined);
      if (refusal !== undefined && hasChanges) throw refusal;
      if (will === 'drop') session.dropWill();
      if (end) session.end('discarded', 'kicked');
    } else {
      session.close('kicked', reasonCode, { end: end && refusal === undefined, will, reasonString, serverReference });
      if (end && this.#refusal !== undefined) throw refusal;
    }
  }

  /** End a stored session. @throws BrokerError SESSION_RUNNING while its client is connected; STORE_FAILED */
  discard(): void {
    if (this.#session.state === 'connected' || this.#session.incoming !== undefined) {
      throw new BrokerError('SESSION_RUNNING', `client "${this.clientId}" is connected; kick it instead`);
    }
    const refusal = this.#refusal;
    if (refusal !== undefined) throw refusal;
    this.#session.end('discarded', 'discarded');
  }
}

const KICK_NAMES: readonly (keyof KickOptions)[] = ['reasonCode', 'reasonString', 'serverReference', 'session', 'will'];

/** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
function checkKick(options: KickOptions): void {
  checkObject(options, 'options');
  checkNames(options, KICK_NAMES, 'kick');
  for (const name of ['reasonString', 'serverReference'] as const) {
    const text = options[name];
    if (text !== undefined && typeof text !== 'string') throw new InvalidInput('OPTION_INVALID', name, 'a text', text);
  }
}
