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
  add(
    topic: string,
    qos: QoS,
    publisher: string,
    reason: DropReason,
    receiver: string | undefined,
    count: number
  ): void;
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
   */
  dropped(message: Message, reason: DropReason, client: ClientInfo | undefined): void {
    if (message.isSystem) return;
    const { counts } = this.#metrics;
    const { one, all } = COUNTED[reason];
    for (const index of client === undefined ? all : one) counts[index]++;
    this.#drops.add(message.topic, message.qos, message.clientId, reason, client?.clientId, 1);
    if (this.#events.heard['message.dropped']) this.#events.emit('message.dropped', { message, reason, client });
  }

  /**
   * Count a run of QoS 0 messages without subscribers. Their drops have no listener, because listeners would close the
   * fast path.
   */
  droppedRun(topic: string, publisher: ClientInfo, count: number): void {
    const { counts } = this.#metrics;
    counts[Metric.messagesDropped] += count;
    counts[Metric.messagesDroppedNoSubscribers] += count;
    this.#drops.add(topic, 0, publisher.clientId, 'no_subscribers', undefined, count);
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
