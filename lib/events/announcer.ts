import { asError, BrokerError, isCausedByPeer, StateError } from '../base/errors.ts';
import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { ClientInfo } from '../records/client.ts';
import type { Events } from './events.ts';
import { COUNTERS, type CounterName, Metric, type Metrics } from './metrics.ts';
import type { DropReason } from './reasons.ts';
import { DROP_REASONS, type DropReasonEntry } from './reasons.ts';

/** Maximum number of process warnings for errors without a listener, because clients can cause any number of errors. */
const MAX_WARNINGS = 10;

/** Records the last drops. */
interface DropRecorder {
  /** @param receiver client id; undefined if no receiver gets the message */
  drop(
    topic: string,
    qos: QoS,
    publisher: string,
    code: string,
    receiver: string | undefined,
    count: number,
    detail: string | undefined,
    last: object | undefined
  ): object | undefined;
  /** Record messages that were dropped because there were no subscribers. */
  dropUnsubscribed(route: UnsubscribedRoute, qos: QoS, publisher: string, count: number): void;
}

/** The route of a topic without subscribers. */
export interface UnsubscribedRoute extends DropPlace {
  readonly topic: string;
  /** The count of the drops of one publisher that are not in the log yet. */
  repeatedDrop: object | undefined;
}

/** The place of drops that are often equal, such as the route of a topic. */
export interface DropPlace {
  /** The record of the last drop. */
  lastDrop: object | undefined;
}

/** The reason of a refusal for the log of reasons: the code of a row of `RECORDED`, and details for people. */
interface RefusalReason {
  readonly code: string;
  readonly detail: string | undefined;
}

/** Counts and records dropped messages, and emits the events for dropped messages and errors. */
export class Announcer {
  readonly #events: Events;
  readonly #metrics: Metrics;
  readonly #drops: DropRecorder;
  #warnings = 0;

  constructor(events: Events, metrics: Metrics, drops: DropRecorder) {
    this.#events = events;
    this.#metrics = metrics;
    this.#drops = drops;
  }

  /**
   * Count a dropped message and emit `message.dropped`. Messages of the broker itself are not counted.
   * @param client the receiver that does not get the message; undefined if no receiver gets it
   * @param refusal recorded in place of `reason`
   */
  dropped(
    message: Message,
    reason: DropReason,
    client: ClientInfo | undefined,
    place?: DropPlace,
    refusal?: RefusalReason
  ): void {
    if (message.isSystem) return;
    const { counts } = this.#metrics;
    const { one, all } = COUNTED[reason];
    for (const index of client === undefined ? all : one) counts[index]++;
    const { topic, qos, clientId } = message;
    const code = refusal?.code ?? reason;
    const last = this.#drops.drop(topic, qos, clientId, code, client?.clientId, 1, refusal?.detail, place?.lastDrop);
    if (place !== undefined) place.lastDrop = last;
    if (this.#events.heard['message.dropped']) this.#events.emit('message.dropped', { message, reason, client });
  }

  /** Record a message that is refused to the app or to a rule. An error informs the publisher, so there is no event. */
  refused({ topic, qos, clientId }: Message, reason: DropReason, refusal: RefusalReason | undefined): void {
    this.#drops.drop(topic, qos, clientId, refusal?.code ?? reason, undefined, 1, refusal?.detail, undefined);
  }

  /** Count a message without subscribers, as `dropped` does. */
  unsubscribed(message: Message, route: UnsubscribedRoute): void {
    if (message.isSystem) return;
    const { counts } = this.#metrics;
    counts[Metric.messagesDropped]++;
    counts[Metric.messagesDroppedNoSubscribers]++;
    this.#drops.dropUnsubscribed(route, message.qos, message.clientId, 1);
    if (this.#events.heard['message.dropped'])
      this.#events.emit('message.dropped', { message, reason: 'no_subscribers', client: undefined });
  }

  /**
   * Count a run of QoS 0 messages without subscribers. Their drops have no listener, because listeners would close the
   * fast path.
   */
  droppedRun(route: UnsubscribedRoute, publisher: ClientInfo, count: number): void {
    const { counts } = this.#metrics;
    counts[Metric.messagesDropped] += count;
    counts[Metric.messagesDroppedNoSubscribers] += count;
    this.#drops.dropUnsubscribed(route, 0, publisher.clientId, count);
  }

  /**
   * Emit an error that cannot be returned to a caller as an `error` event. If there is no listener, it becomes a
   * process warning, unless a peer caused it.
   */
  failed(thrown: unknown, during: string, client: ClientInfo | undefined): void {
    const error = asError(thrown);
    if (error instanceof StateError && error.code === 'STORE_CLOSED') return; // the broker stopped during a read
    if (this.#events.heard.error) this.#events.emit('error', { error, during, client });
    else if (!isCausedByPeer(thrown) && this.#warnings < MAX_WARNINGS) {
      const isLast = ++this.#warnings === MAX_WARNINGS;
      const hint = `listen to the broker's error event${isLast ? '; further errors are not reported' : ''}`;
      process.emitWarning(new BrokerError('UNHEARD', `${during}: ${error.message} (${hint})`, { cause: error }));
    }
  }
}

/** The indexes of the counters of each reason, for a drop for one receiver and for all receivers. */
const COUNTED = Object.fromEntries(
  Object.entries<DropReasonEntry>(DROP_REASONS).map(([reason, { delivery, message }]) => [
    reason,
    { one: indexes(delivery ?? ['delivery.dropped']), all: indexes(message ?? ['messages.dropped']) }
  ])
) as Readonly<Record<DropReason, { one: number[]; all: number[] }>>;

function indexes(names: readonly CounterName[]): number[] {
  return names.map((name) => COUNTERS.indexOf(name));
}
