// A stream is bounded in events and characters: a reader that is too slow loses the oldest ones, and an event
// `dropped` says how many. Events are made into text at once, so that no message is kept for a slow reader. Listeners
// exist only while a stream is open, and those of events about messages take the topic filter, so that other topics
// stay on the fast path. Comments keep idle connections open; Bun closes them after ten seconds.

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
import { type EventPayload, eventFields } from './event-fields.ts';
import { HEARTBEAT, HEARTBEAT_MS, ServerSentEvents, WRITTEN_AT_ONCE } from './server-sent-events.ts';
import { TailStream } from './tail-stream.ts';

/**
 * Maximum number of events that wait for a slow reader, and their maximum size in characters. Beyond it the oldest are
 * dropped.
 */
const MAX_EVENTS = 1_000;
const MAX_CHARACTERS = 1_048_576;
/** The content of a stream. */
interface EventRequest {
  readonly names: readonly EventName[];
  /** Of the message events, only those whose topic matches this topic filter. */
  readonly topic?: string | undefined;
  /** Only the events about this client, bans of its client id, and events about messages it has published. */
  readonly clientId?: string | undefined;
  readonly payload: EventPayload;
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

/**
 * Events of the broker as server-sent events. The queue is bounded: when a reader is slow, new events displace the
 * oldest waiting ones, and an event `dropped` reports their number. The stream ends when the broker stops or the reader
 * closes it.
 */
class EventStream extends ServerSentEvents {
  readonly #broker: Broker;
  readonly #onEnd: () => void;
  readonly #listeners: (() => void)[] = [];
  #waiting: string[] = [];
  /** Index of the oldest event in `#waiting`. */
  #oldest = 0;
  #characters = 0;
  #dropped = 0;
  /** Number of the last event. */
  #number = 0;
  #hasBegun = false;
  #isOver = false;
  /** Resumes the reader that waits for an event. */
  #resume: (() => void) | undefined;
  #timer: unknown;

  constructor(broker: Broker, request: EventRequest, onEnd: () => void) {
    super();
    const { topic } = request;
    const fault = topic === undefined ? undefined : checkTopicFilter(topic); // checked even if no message events are requested
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'topic', 'a topic filter', topic, fault);
    this.#broker = broker;
    this.#onEnd = onEnd;
    try {
      for (const name of request.names) this.#listen(name, request);
      this.#on('broker.stopped', () => this.#end());
    } catch (error) {
      this.#removeListeners();
      throw error;
    }
    this.#armHeartbeat();
  }

  async next(): Promise<IteratorResult<string>> {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return { done: false, value: ': the events follow\n\n' }; // sent together with the headers
    }
    if (!this.#hasWaiting && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
      this.#resume = undefined;
      if (!this.#hasWaiting && !this.#isOver) return { done: false, value: HEARTBEAT };
    }
    return this.#hasWaiting ? { done: false, value: this.#take() } : { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<string>> {
    this.#waiting = [];
    this.#oldest = 0;
    this.#dropped = 0;
    this.#end();
    return { done: true, value: undefined };
  }

  get #hasWaiting(): boolean {
    return this.#waiting.length > this.#oldest;
  }

  /** Take the waiting events, at most as many as are written at once. */
  #take(): string {
    let text = '';
    if (this.#dropped > 0) {
      text = `event: dropped\ndata: {"count":${this.#dropped}}\n\n`;
      this.#dropped = 0;
    }
    while (this.#hasWaiting && text.length < WRITTEN_AT_ONCE) text += this.#shift();
    return text;
  }

  #shift(): string {
    const event = this.#waiting[this.#oldest];
    this.#waiting[this.#oldest++] = '';
    this.#characters -= event.length;
    if (this.#oldest > MAX_EVENTS || !this.#hasWaiting) {
      this.#waiting = this.#waiting.slice(this.#oldest);
      this.#oldest = 0;
    }
    return event;
  }

  #listen(name: EventName, { topic, clientId, payload }: EventRequest): void {
    const { clock } = this.#broker;
    const filter = name.startsWith('message.') ? topic : undefined;
    const listener = (value: BrokerEvents[EventName]) => {
      if (clientId !== undefined && !isAbout(value, clientId)) return;
      this.#push(name, JSON.stringify({ at: clock.now(), ...eventFields(value, payload) }));
    };
    this.#on(name, listener, filter);
  }

  #on<E extends EventName>(name: E, listener: (value: BrokerEvents[E]) => void, filter?: string): void {
    this.#broker.on(name, listener, filter === undefined ? {} : { filter });
    this.#listeners.push(() => this.#broker.off(name, listener));
  }

  #push(name: EventName, data: string): void {
    const event = `id: ${++this.#number}\nevent: ${name}\ndata: ${data}\n\n`;
    this.#waiting.push(event);
    this.#characters += event.length;
    while (this.#waiting.length - this.#oldest > MAX_EVENTS || this.#characters > MAX_CHARACTERS) {
      this.#shift();
      this.#dropped++;
    }
    this.#resume?.();
  }

  #armHeartbeat(): void {
    const { clock } = this.#broker;
    this.#timer = clock.setTimeout(() => {
      this.#resume?.();
      this.#armHeartbeat();
    }, HEARTBEAT_MS);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#removeListeners();
    this.#broker.clock.clearTimeout(this.#timer);
    this.#onEnd();
    this.#resume?.();
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
