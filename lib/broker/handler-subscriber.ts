import { asError } from '../events/events.ts';
import type { Frame, Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import { type Subscriber, Subscription } from '../routing/subscription.ts';
import type { Ledger } from '../store/ledger.ts';

/** Gets the messages of a subscription of the app. `isRetained`: handed out because the subscription is new, or retained as published. */
export type MessageHandler = (message: Message, isRetained: boolean) => unknown;

/** Options of a subscription of the app: those of MQTT 5.0 that have a meaning without a connection. */
export interface SubscribeOptions {
  /** Highest QoS: nothing is acknowledged by a handler, this only shows in lists. Default 2. */
  readonly qos?: QoS;
  /** 0 (default): hand out retained messages; 1: the same, every subscription of the app being new; 2: none. */
  readonly retainHandling?: 0 | 1 | 2;
  /** Tell the handler that a message was published as retained. Default false. */
  readonly retainAsPublished?: boolean;
  /** Unsubscribes when it aborts. */
  readonly signal?: AbortSignal;
}

/** A handler of the app as a target of routes. */
export class HandlerSubscriber implements Subscriber {
  readonly clientId = '';
  readonly mountpoint = '';
  readonly isOnline = true;
  readonly hasRoom = true;
  readonly isPersisted = false;
  /** What a client may send again comes when its commit is kept. */
  ledger: Ledger | undefined = undefined;
  readonly outboundFastPath = 0;
  readonly maxFrame = Infinity;
  readonly subscription: Subscription;
  readonly filter: string;
  readonly handler: MessageHandler;
  /** Called when the subscription has ended. */
  onEnd: () => void = () => undefined;
  /** It has unsubscribed: routes may still hold it for this one message. */
  isEnded = false;
  readonly #onError: (error: Error) => void;
  /** The last one comes first. */
  #queued: Message[] = [];

  constructor(filter: string, handler: MessageHandler, options: SubscribeOptions, onError: (error: Error) => void) {
    const { qos = 2, retainAsPublished = false, retainHandling = 0 } = options;
    this.filter = filter;
    this.handler = handler;
    this.#onError = onError;
    this.subscription = new Subscription(this, filter, qos, false, retainAsPublished, retainHandling, undefined);
  }

  deliver(message: Message, subscription: Subscription): boolean {
    if (this.#queued.length > 0) this.deliverRetained();
    const isRetained = subscription.retainAsPublished && message.retain;
    if (message.isDeferred && this.ledger !== undefined && message.ticket > this.ledger.settled) {
      message.detachFromPublisher();
      this.ledger.committed(message.ticket).then(
        () => this.#callHandler(message, isRetained),
        () => undefined // the publisher has been told, and may send it again
      );
    } else this.#callHandler(message, isRetained);
    return true;
  }

  /** It is to get these, retained before it subscribed, ahead of all others. */
  queueRetained(retained: Message[]): void {
    this.#queued = retained.reverse();
  }

  /** Hand out what it is owed. The handler may publish meanwhile, and so come back here. */
  deliverRetained(): void {
    for (let message = this.#queued.pop(); message !== undefined; message = this.#queued.pop())
      this.#callHandler(message, true);
  }

  deliverRun(_run: Frame): void {
    throw new Error('a handler takes single messages'); // rawLayout is 0
  }

  #callHandler(message: Message, isRetained: boolean): void {
    if (this.isEnded) return;
    try {
      const result = this.handler(message, isRetained);
      if (typeof (result as PromiseLike<unknown> | undefined)?.then === 'function') {
        (result as PromiseLike<unknown>).then(undefined, (error: unknown) => this.#onError(asError(error)));
      }
    } catch (error) {
      this.#onError(asError(error));
    }
  }
}
