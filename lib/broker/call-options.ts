import type { ClientOptions } from '../client/options.ts';
import type { EventName } from '../events/catalogue.ts';
import type { BrokerEvents } from '../events/event-types.ts';
import type { TransportInfo } from '../records/client.ts';

/** Options of `broker.start`. */
export interface StartOptions {
  /** Aborts the start, which then rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
}

/** Options of `broker.connect`. */
export interface ConnectOptions extends ClientOptions {
  /** Facts about the connection, as a listener would pass them. Default: the transport `local`. */
  readonly transportInfo?: Partial<TransportInfo>;
}

/** The result of `broker.publish`. */
export interface Published {
  /** Number of subscribers that accepted the message. */
  readonly receivers: number;
}

/** Options of `broker.on`. */
export interface ListenerOptions {
  /** A topic filter: the listener is called only for messages whose topic it matches. Only for events about messages. */
  readonly filter?: string | undefined;
}

/** Options of `broker.nextEvent`. */
export interface NextEventOptions<E extends EventName = EventName, Data = unknown> {
  /** Ends the wait: the promise is rejected with the reason of the signal. */
  signal?: AbortSignal;
  /** Returns true for the event that is awaited. Default: the next one. */
  where?: (event: BrokerEvents<Data>[E]) => boolean;
}
