import { asError } from '../../base/errors.ts';
import { detachFromPublisher, type Frame, Message } from '../../packets/message.ts';
import { isDeletion } from '../../packets/message-values.ts';
import type { QoS } from '../../packets/types.ts';
import { type Subscriber, Subscription } from '../../routing/subscription.ts';
import type { Ledger } from '../../store/ledger.ts';

/**
 * Receives the messages of a subscription of the app.
 * @param isRetained the message was retained before the subscription was made, or `retainAsPublished` is set and it was published as retained
 */
export type MessageHandler<Value = unknown> = (message: Message<Value>, isRetained: boolean) => unknown;

/** Options of a subscription of the app. They are the subscription options of MQTT 5.0 that apply without a connection. */
export interface SubscribeOptions {
  /** Maximum QoS. It appears in lists only, because a handler does not acknowledge messages. Default 2. */
  readonly qos?: QoS;
  /** 0 (default): deliver retained messages. 1: the same, because each subscription of the app is new. 2: do not deliver them. */
  readonly retainHandling?: 0 | 1 | 2;
  /** True: `isRetained` is also set for messages that were published as retained. Default false. */
  readonly retainAsPublished?: boolean;
  /** Removes the subscription when it aborts. */
  readonly signal?: AbortSignal;
}

/** The schemas of the broker, as far as they concern a handler. */
interface HandlerSchemas {
  /** The topic filter of the handler, if it has a schema. */
  readonly filter: string | undefined;
}

/** A subscriber that calls a handler of the app. */
export class HandlerSubscriber implements Subscriber {
  readonly receiver = undefined;
  readonly mountpoint = '';
  readonly isOnline = true;
  readonly hasRoom = true;
  readonly isPersisted = false;
  /** Delivers a message whose publisher may send it again after its commit. */
  readonly #ledger: Ledger | undefined;
  readonly outboundFastPath = 0;
  readonly maxFrame = Infinity;
  readonly subscription: Subscription;
  readonly filter: string;
  readonly handler: MessageHandler;
  #onEnd: () => void = () => undefined;
  /** True if the subscription has ended. The route of the current message may still contain it. */
  isEnded = false;
  readonly #schemas: HandlerSchemas | undefined;
  readonly #onError: (error: Error) => void;
  /** Retained messages that are not delivered yet, in reverse order. */
  #queued: Message[] = [];
  /** Newer messages, held until the retained messages are known; undefined: they are delivered at once. */
  #held: (readonly [message: Message, isRetained: boolean])[] | undefined = undefined;

  /** @param ledger undefined if the broker has no store @param schemas undefined if the broker has none */
  constructor(
    filter: string,
    handler: MessageHandler,
    options: SubscribeOptions,
    ledger: Ledger | undefined,
    onError: (error: Error) => void,
    schemas: HandlerSchemas | undefined = undefined
  ) {
    const { qos = 2, retainAsPublished = false, retainHandling = 0 } = options;
    this.filter = filter;
    this.handler = handler;
    this.#ledger = ledger;
    this.#schemas = schemas;
    this.#onError = onError;
    this.subscription = new Subscription(this, filter, qos, false, retainAsPublished, retainHandling, undefined);
  }

  /** Call this when the subscription has ended. */
  whenEnded(run: () => void): void {
    this.#onEnd = run;
  }

  /** Note that the subscription has ended. */
  end(): void {
    this.isEnded = true;
    this.#onEnd();
  }

  deliver(message: Message, subscription: Subscription): boolean {
    if (this.#schemas?.filter !== undefined && isDeletion(message)) return true; // it has no value
    if (this.#queued.length > 0) this.deliverRetained();
    const isRetained = subscription.retainAsPublished && message.retain;
    const shown = this.#schemas === undefined ? message : Message.withValue(message, this.#schemas.filter);
    if (message.isDeferred && this.#ledger !== undefined && message.ticket > this.#ledger.settled) {
      detachFromPublisher(shown);
      this.#ledger.committed(message.ticket).then(
        () => this.#receive(shown, isRetained),
        () => undefined // the publisher was refused and may send the message again
      );
    } else this.#receive(shown, isRetained);
    return true;
  }

  #receive(message: Message, isRetained: boolean): void {
    if (this.#held === undefined || this.isEnded) this.#callHandler(message, isRetained);
    else {
      detachFromPublisher(message);
      this.#held.push([message, isRetained]);
    }
  }

  /** Hold messages until `release`. */
  hold(): void {
    this.#held = [];
  }

  /** Deliver the queued retained messages, then those that are held. */
  release(): void {
    this.deliverRetained();
    const held = this.#held ?? [];
    for (let at = 0; at < held.length; at++) this.#callHandler(...held[at]); // the handler may cause more of them
    this.#held = undefined;
  }

  /** Queue the messages that were retained before the subscription. They are delivered before all others. */
  queueRetained(retained: Message[]): void {
    this.#queued = retained.reverse();
  }

  /** Deliver the queued retained messages. The handler may publish, which calls this method again. */
  deliverRetained(): void {
    for (let message = this.#queued.pop(); message !== undefined; message = this.#queued.pop())
      this.#callHandler(message, true);
  }

  deliverRun(_run: Frame): void {
    throw new Error('unreachable: a handler is not on the fast path'); // outboundFastPath is 0
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
