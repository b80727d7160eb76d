import type { Message } from '../../packets/message.ts';
import type { SchemaTable, SchemaValue } from '../configuration/payload-schemas.ts';
import type { MessageHandler, SubscribeOptions } from './handler-subscriber.ts';
import type { MessageStreamOptions } from './message-stream.ts';

/** The subscriptions of the app to filters that have a schema. See the methods of `Broker`. */
export interface TypedSubscriptions<S extends SchemaTable> {
  /** As `Broker.subscribe`; `message.value` is the result of the schema of the filter. */
  subscribe<F extends keyof S & string>(
    filter: F,
    handler: MessageHandler<SchemaValue<S[F]>>,
    options?: SubscribeOptions
  ): () => void;
  /** As `Broker.messages`; `message.value` is the result of the schema of the filter. */
  messages<F extends keyof S & string>(
    filter: F,
    options?: MessageStreamOptions
  ): AsyncIterableIterator<Message<SchemaValue<S[F]>>>;
}
