import { onAbort } from '../../base/abort-listeners.ts';
import { InvalidInput } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import { isThenable } from '../../events/hooks.ts';
import { Message } from '../../packets/message.ts';
import { APP_RECEIVER, isWithheld } from '../../routing/receiving-rights.ts';
import type { PublishDecision } from '../../session/ports.ts';
import { checkTopicFilter, innerFilter } from '../../topics/topic.ts';
import type { Engine } from '../engine.ts';
import { HandlerSubscriber, type MessageHandler, type SubscribeOptions } from '../messages/handler-subscriber.ts';
import { MessageStream, type MessageStreamOptions } from '../messages/message-stream.ts';
import { type AppRequestHandler, type AppRespondOptions, Responder } from './responder.ts';

const SUBSCRIBE_NAMES: readonly (keyof SubscribeOptions)[] = ['qos', 'retainHandling', 'retainAsPublished', 'signal'];

/** The subscriptions of the app: handlers and iterables of messages, which have no session. See the methods of `Broker`. */
export class AppSubscriptions {
  readonly #engine: Engine;
  readonly #responder: Responder;
  readonly #handlers = new Map<string, Set<HandlerSubscriber>>();
  /** Iterables that end when the broker stops. */
  readonly #streams = new Set<MessageStream>();

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#responder = new Responder(engine);
  }

  /** All handlers; those of one filter in the order in which they subscribed. */
  handlers(): HandlerSubscriber[] {
    return [...this.#handlers.values()].flatMap((known) => [...known]);
  }

  /** See `Broker.subscribe`. */
  subscribe(filter: string, handler: MessageHandler, options: SubscribeOptions): () => void {
    checkFilter(filter);
    if (typeof handler !== 'function') throw new InvalidInput('HANDLER_INVALID', 'handler', 'a function', handler);
    checkObject(options, 'options');
    checkNames(options, SUBSCRIBE_NAMES, 'subscribe');
    const { signal, qos = 2, retainHandling = 0 } = options;
    if (![0, 1, 2].includes(qos)) throw new InvalidInput('OPTION_INVALID', 'qos', '0, 1 or 2', qos);
    if (![0, 1, 2].includes(retainHandling))
      throw new InvalidInput('OPTION_INVALID', 'retainHandling', '0, 1 or 2', retainHandling);
    if (signal?.aborted) return () => undefined;
    const { ledger, routing, services } = this.#engine;
    const onError = (error: Error) => services.failed(error, `a handler of "${filter}"`);
    const { schemas } = services.settings;
    const inner = innerFilter(filter);
    const schemaFilter = schemas.some((schema) => schema.filter === inner) ? inner : undefined;
    const known = schemas.length === 0 ? undefined : { filter: schemaFilter };
    const subscriber = new HandlerSubscriber(filter, handler, options, ledger, onError, known);
    routing.add(subscriber.subscription);
    this.#handlers.set(filter, (this.#handlers.get(filter) ?? new Set()).add(subscriber));
    const end = () => this.#remove(subscriber);
    subscriber.whenEnded(onAbort(signal, end));
    if (retainHandling < 2) this.#deliverRetainedTo(subscriber, schemaFilter);
    return end;
  }

  /** See `Broker.respond`. */
  respond(filter: string, handler: AppRequestHandler, options: AppRespondOptions): () => void {
    if (typeof handler !== 'function') throw new InvalidInput('HANDLER_INVALID', 'handler', 'a function', handler);
    checkObject(options, 'options');
    checkNames(options, ['signal'], 'respond');
    const respond = (message: Message) => this.#responder.respond(message, handler, `a handler of "${filter}"`);
    return this.subscribe(filter, respond, { ...options, retainHandling: 2 });
  }

  /** See `Broker.unsubscribe`. */
  unsubscribe(filter: string, handler: MessageHandler | undefined): number {
    const found = [...(this.#handlers.get(filter) ?? [])].filter(
      (subscriber) => handler === undefined || subscriber.handler === handler
    );
    for (const subscriber of found) this.#remove(subscriber);
    return found.length;
  }

  #remove(subscriber: HandlerSubscriber): void {
    const known = this.#handlers.get(subscriber.filter);
    if (!known?.delete(subscriber)) return;
    if (known.size === 0) this.#handlers.delete(subscriber.filter);
    subscriber.end();
    this.#engine.routing.remove(subscriber.subscription);
  }

  /**
   * Deliver the retained messages when `subscribe` has returned. If a message is published before that, they are delivered first, so that the
   * handler receives them in the order of their publication. While an asynchronous schema decides about them, newer messages are held.
   * @param schemaFilter the filter, if it has a schema: only messages that match are delivered, as some may have been retained before
   */
  #deliverRetainedTo(subscriber: HandlerSubscriber, schemaFilter: string | undefined): void {
    const { retainer, access, services } = this.#engine;
    if (!retainer.isStarted) return;
    if (subscriber.filter.startsWith('$share/') || subscriber.filter.startsWith('$queue/')) return;
    const found = retainer.messages
      .match(subscriber.filter)
      .flatMap(({ isLive, message }) =>
        isLive && !isWithheld(access.deliveryRights, message, APP_RECEIVER) ? [message] : []
      );
    if (found.length === 0) return;
    const matching = schemaFilter === undefined ? found : this.#matching(found, schemaFilter);
    if (!isThenable(matching)) {
      subscriber.queueRetained(matching);
      // A promise, because test frameworks replace `queueMicrotask`.
      services.work.during(Promise.resolve().then(() => subscriber.release()));
      return;
    }
    subscriber.hold();
    matching
      .then((messages) => subscriber.queueRetained(messages))
      .catch((error: unknown) => services.failed(error, `a subscription to "${subscriber.filter}"`))
      .finally(() => subscriber.release());
  }

  /** Views, with values, of the messages that match the schemas of their topics; the others are dropped. Synchronous if the schemas are. */
  #matching(found: readonly Message[], filter: string): Message[] | Promise<Message[]> {
    const { publishing, routing, services } = this.#engine;
    const accepted = (decisions: readonly PublishDecision[]): Message[] => {
      for (const { message, decider } of decisions)
        if (decider !== undefined) services.announcer.dropped(message, 'schema', undefined, undefined, decider);
      return decisions.flatMap(({ message, reasonCode }) =>
        reasonCode === 0 ? [Message.withValue(message, filter)] : []
      );
    };
    const decisions = found.map((message) =>
      publishing.hooks.checkedAgain(Message.viewOf(message), routing.of(message.topic))
    );
    return decisions.some(isThenable)
      ? Promise.all(decisions).then(accepted)
      : accepted(decisions as readonly PublishDecision[]);
  }

  /** See `Broker.messages`. */
  messages(filter: string, options: MessageStreamOptions): AsyncIterableIterator<Message> {
    checkObject(options, 'options');
    const { highWaterMark, signal, ...rest } = options;
    const stream = new MessageStream(highWaterMark, signal, (message) =>
      this.#engine.services.announcer.dropped(message, 'queue_full', undefined)
    );
    try {
      const unsubscribe = this.subscribe(filter, (message) => stream.push(message), rest);
      this.#streams.add(stream);
      stream.onEnd(() => {
        this.#streams.delete(stream);
        unsubscribe();
      });
    } catch (error) {
      void stream.return(); // removes its listener from the signal
      throw error;
    }
    return stream;
  }

  /** End all iterables, because the broker has stopped. */
  endMessages(): void {
    for (const stream of this.#streams) void stream.return();
  }
}

/** @throws InvalidInput TOPIC_FILTER_INVALID */
export function checkFilter(filter: string): void {
  const fault = typeof filter === 'string' ? checkTopicFilter(filter) : 'the topic filter must be a string';
  if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
}
