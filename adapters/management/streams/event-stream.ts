// Listeners exist only while a stream is open, and those of events about messages take the topic filter, so that other
// topics stay on the fast path.

import {
  type Ban,
  type Broker,
  type BrokerEvents,
  checkTopicFilter,
  type EventName,
  InvalidInput,
  type TailOptions
} from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { type EventForm, type EventPayload, eventFields } from './event-fields.ts';
import { QueuedEvents } from './queued-events.ts';
import { TailStream } from './tail-stream.ts';

/** Maximum number of events that wait for a slow reader. */
const MAX_EVENTS = 1_000;

/** The content of a stream. */
interface EventRequest {
  readonly names: readonly EventName[];
  /** Of the message events, only those whose topic matches this topic filter. */
  readonly topic?: string | undefined;
  /** Only the events about this client, bans of its client id, and events about messages it has published. */
  readonly clientId?: string | undefined;
  readonly payload: EventForm;
}

/** The event streams of a mount, limited in number. */
export class EventStreams {
  readonly #broker: Broker;
  readonly #max: number;
  #open = 0;

  constructor(broker: Broker, max: number) {
    this.#broker = broker;
    this.#max = max;
  }

  /**
   * Open a stream.
   * @throws Fault unavailable, tooMany; InvalidInput EVENT_UNKNOWN, TOPIC_FILTER_INVALID
   */
  open(request: EventRequest): EventStream {
    return this.#opened((onEnd) => new EventStream(this.#broker, request, onEnd));
  }

  /** Open a stream of the rows of a tail. @throws Fault unavailable, tooMany; as `Monitor.tail` */
  openTail(options: TailOptions, payload: EventPayload): Promise<TailStream> {
    const { clock, monitor } = this.#broker;
    return this.#opened(async (onEnd) => {
      try {
        return new TailStream(clock, await monitor.tail(options), payload, onEnd);
      } catch (error) {
        onEnd();
        throw error;
      }
    });
  }

  /** @param make makes the stream. The function that it gets is called once, when the stream ends */
  #opened<S>(make: (onEnd: () => void) => S): S {
    if (this.#broker.state === 'disconnected')
      throw new Fault('unavailable', 'the broker has stopped, or is stopping; try again later');
    if (this.#open >= this.#max)
      throw new Fault(
        'tooMany',
        `${this.#max} event streams are already open (option maxEventStreams); close one of them first`
      );
    const stream = make(() => this.#open--);
    this.#open++;
    return stream;
  }
}

/** Events of the broker as server-sent events. The stream ends when the broker stops or the reader closes it. */
class EventStream extends QueuedEvents {
  readonly #broker: Broker;
  readonly #onEnd: () => void;
  readonly #listeners: (() => void)[] = [];
  /** Number of the last event. */
  #number = 0;

  constructor(broker: Broker, request: EventRequest, onEnd: () => void) {
    super(broker.clock, { first: ': the events follow\n\n', discarded: 'dropped', maxEvents: MAX_EVENTS });
    const { topic } = request;
    const fault = topic === undefined ? undefined : checkTopicFilter(topic); // checked even if no message events are requested
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'topic', 'a topic filter', topic, fault);
    this.#broker = broker;
    this.#onEnd = onEnd;
    try {
      for (const name of request.names) this.#listen(name, request);
      this.#on('broker.stopped', () => this.end());
    } catch (error) {
      this.#removeListeners();
      throw error;
    }
    this.begin();
  }

  protected ended(): void {
    this.#removeListeners();
    this.#onEnd();
  }

  #listen(name: EventName, { topic, clientId, payload }: EventRequest): void {
    const { clock } = this.#broker;
    const filter = name.startsWith('message.') ? topic : undefined;
    const listener = (value: BrokerEvents[EventName]) => {
      if (clientId !== undefined && !isAbout(value, clientId)) return;
      const data = JSON.stringify({ at: clock.now(), ...eventFields(value, payload) });
      this.add(`id: ${++this.#number}\nevent: ${name}\ndata: ${data}\n\n`);
    };
    this.#on(name, listener, filter);
  }

  #on<E extends EventName>(name: E, listener: (value: BrokerEvents[E]) => void, filter?: string): void {
    this.#broker.on(name, listener, filter === undefined ? {} : { filter });
    this.#listeners.push(() => this.#broker.off(name, listener));
  }

  #removeListeners(): void {
    for (const remove of this.#listeners.splice(0)) remove();
  }
}

function isAbout(value: object, wanted: string): boolean {
  const { client, message, ban } = value as {
    readonly client?: { readonly clientId: string };
    readonly message?: { readonly clientId: string };
    readonly ban?: Ban;
  };
  const isBan = ban?.kind === 'clientId' && ban.who === wanted;
  return isBan || client?.clientId === wanted || message?.clientId === wanted;
}
