import { Broker, engineOf, handlersOf } from '../broker/broker.ts';
import type { MessageHandler, SubscribeOptions } from '../broker/messages/handler-subscriber.ts';
import { originOf, traceOf } from './origin.ts';

/** A broker that notes which line of the code under test has subscribed or connected. */
export class TracedBroker<Data> extends Broker<Data> {
  readonly #traces = new WeakMap<object, Error>();

  override subscribe(filter: string, handler: MessageHandler, options?: SubscribeOptions): () => void {
    const end = super.subscribe(filter, handler, options);
    this.#noteHandler(filter, traceOf(this.subscribe));
    return end;
  }

  override messages(...args: Parameters<Broker<Data>['messages']>): ReturnType<Broker<Data>['messages']> {
    const messages = super.messages(...args);
    this.#noteHandler(args[0], traceOf(this.messages));
    return messages;
  }

  override respond(...args: Parameters<Broker<Data>['respond']>): ReturnType<Broker<Data>['respond']> {
    const end = super.respond(...args);
    this.#noteHandler(args[0], traceOf(this.respond));
    return end;
  }

  override stream(...args: Parameters<Broker<Data>['stream']>): ReturnType<Broker<Data>['stream']> {
    const stream = super.stream(...args);
    this.#note([...engineOf(this as Broker).connections.all].at(-1), traceOf(this.stream));
    return stream;
  }

  override connect(...args: Parameters<Broker<Data>['connect']>): ReturnType<Broker<Data>['connect']> {
    const connecting = super.connect(...args);
    this.#note([...engineOf(this as Broker).connections.all].at(-1), traceOf(this.connect));
    return connecting;
  }

  /** The line that has made a handler or a connection. */
  originOf(resource: object): string {
    return originOf(this.#traces.get(resource));
  }

  #noteHandler(filter: string, trace: Error): void {
    this.#note(
      handlersOf(this as Broker).findLast((handler) => handler.filter === filter),
      trace
    );
  }

  /** @param resource the newest one, which is an older one if none was made */
  #note(resource: object | undefined, trace: Error): void {
    if (resource !== undefined && !this.#traces.has(resource)) this.#traces.set(resource, trace);
  }
}
