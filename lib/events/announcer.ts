import { BrokerError, ProtocolError, StateError } from '../base/errors.ts';
import type { Message } from '../packets/message.ts';
import type { ClientInfo } from '../records/client.ts';
import { asError, type DropReason, type Events } from './events.ts';
import { Metric, type Metrics } from './metrics.ts';

/** Maximum number of process warnings for errors without a listener, because clients can cause any number of errors. */
const MAX_WARNINGS = 10;

/** Counts dropped messages, and emits the events for dropped messages and errors. */
export class Announcer {
  readonly #events: Events;
  readonly #metrics: Metrics;
  #warnings = 0;

  constructor(events: Events, metrics: Metrics) {
    this.#events = events;
    this.#metrics = metrics;
  }

  /**
   * Count a dropped message and emit `message.dropped`. Messages of the broker itself are not counted.
   * @param client the receiver that does not get the message; undefined if no receiver gets it
   */
  dropped(message: Message, reason: DropReason, client: ClientInfo | undefined): void {
    if (message.isSystem) return;
    const { counts } = this.#metrics;
    if (client !== undefined) counts[Metric.deliveryDropped]++;
    else if (reason !== 'not_retained') counts[Metric.messagesDropped]++;
    const counter = client === undefined && reason === 'expired' ? Metric.messagesDroppedExpired : DROPPED[reason];
    if (counter !== undefined) counts[counter]++;
    if (reason === 'expired') counts[Metric.messagesExpired]++;
    if (this.#events.heard['message.dropped']) this.#events.emit('message.dropped', { message, reason, client });
  }

  /** Emit an error that cannot be returned to a caller as an `error` event, or as a process warning if there is no listener. */
  failed(thrown: unknown, during: string, client: ClientInfo | undefined): void {
    const error = asError(thrown);
    if (error instanceof StateError && error.code === 'STORE_CLOSED') return; // the broker stopped during a read
    if (this.#events.heard.error)
      this.#events.emit('error', client === undefined ? { error, during } : { error, during, client });
    else if (!(thrown instanceof ProtocolError) && this.#warnings < MAX_WARNINGS) {
      const isLast = ++this.#warnings === MAX_WARNINGS;
      const hint = `listen to the broker's error event${isLast ? '; further errors are not reported' : ''}`;
      process.emitWarning(new BrokerError('UNHEARD', `${during}: ${error.message} (${hint})`, { cause: error }));
    }
  }
}

const DROPPED: Partial<Record<DropReason, number>> = {
  no_subscribers: Metric.messagesDroppedNoSubscribers,
  expired: Metric.deliveryDroppedExpired,
  queue_full: Metric.deliveryDroppedQueueFull,
  total_queue_full: Metric.deliveryDroppedQueueFull,
  qos0_msg: Metric.deliveryDroppedQos0Msg,
  too_large: Metric.deliveryDroppedTooLarge,
  no_local: Metric.deliveryDroppedNoLocal,
  hook: Metric.deliveryDroppedHook,
  slow_consumer: Metric.deliveryDroppedSlowConsumer,
  not_retained: Metric.messagesNotRetained
};
