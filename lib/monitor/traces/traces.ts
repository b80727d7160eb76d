// While there is no trace, neither taps nor events are observed, so tracing costs nothing; the first trace opens
// them, for all clients, and closes the fast path. A packet or an event is recorded as an entry, of which the output
// makes a line later (trace-entry.ts). What the receiver of a line causes (`#isWriting`) is not traced, because that
// could be endless. An error while an entry is made ends that trace and never reaches the client whose packet it was. A
// packet that cannot be decoded is traced with the error.

import type { BaseServices } from '../../base/base-services.ts';
import { asError, InvalidInput, StateError } from '../../base/errors.ts';
import { readOptions } from '../../base/fields.ts';
import type { BrokerEvents } from '../../events/event-types.ts';
import type { Events } from '../../events/events.ts';
import type { Message } from '../../packets/message.ts';
import { type Packet, PacketType } from '../../packets/types.ts';
import { readVarint, varintEnd } from '../../packets/varint.ts';
import type { ClientInfo } from '../../records/client.ts';
import type { PacketObserver, PacketTaps, TappedSession } from './packet-taps.ts';
import { TRACE_OPTIONS, Trace, type TraceEnd, type TraceOptions, type TraceSettings, TraceTimer } from './trace.ts';
import { type Direction, decode, EventEntry, PacketEntry, type TraceEntry } from './trace-entry.ts';
import { type Ended, FunctionOutput, type OutputHost, StreamOutput, type TraceOutput } from './trace-output.ts';

/** Maximum number of traces at a time. */
const MAX_TRACES = 30;

/** The events about clients that a trace contains. */
const CLIENT_EVENTS = [
  'client.connected',
  'client.disconnected',
  'client.rejected',
  'session.created',
  'session.resumed',
  'session.takenover',
  'session.discarded',
  'session.subscribed',
  'session.unsubscribed',
  'session.terminated',
  'connection.closed'
] as const;
/** The events about messages that a trace contains. */
const MESSAGE_EVENTS = [
  'message.publish',
  'message.queued',
  'message.delivered',
  'message.acked',
  'message.dropped'
] as const;

type TracedEvent = (typeof CLIENT_EVENTS | typeof MESSAGE_EVENTS)[number];

/** The fields that these events have in common. */
interface AnyEvent {
  readonly client?: ClientInfo | undefined;
  readonly message?: Message;
}

/**
 * The active traces: `broker.traces`.
 *
 * Packets come from the taps, and the fates of messages and sessions from the events of the broker. While there is no trace, neither is
 * observed.
 */
export class Traces {
  readonly #services: BaseServices;
  readonly #events: Events;
  readonly #taps: PacketTaps;
  readonly #active = new Map<number, { readonly trace: Trace; readonly timer: TraceTimer }>();
  readonly #listeners = new Map<TracedEvent, (value: BrokerEvents[TracedEvent]) => void>();
  readonly #observer: PacketObserver = {
    received: (session, bytes) => this.#packet('in', session, bytes),
    sent: (session, bytes) => this.#packet('out', session, bytes)
  };
  readonly #outputHost: OutputHost = {
    later: (run) => this.#services.later(run),
    untraced: (run) => this.#untraced(run)
  };
  #lastId = 0;
  /** True while a line is being written: the actions of its receiver are not traced, because that could be endless. */
  #isWriting = false;

  /** @internal */
  constructor(services: BaseServices, events: Events, taps: PacketTaps) {
    this.#services = services;
    this.#events = events;
    this.#taps = taps;
    for (const name of [...CLIENT_EVENTS, ...MESSAGE_EVENTS])
      this.#listeners.set(name, (value) => {
        const { client, message, ...fields } = value as AnyEvent;
        if (message !== undefined) this.#messageEvent(name, client, message, fields);
        else if (client !== undefined) this.#clientEvent(name, client, fields);
      });
  }

  /** The active traces, in the order in which they were started. */
  list(): Trace[] {
    return [...this.#active.values()].map(({ trace }) => trace);
  }

  /** An active trace. */
  get(id: number): Trace | undefined {
    return this.#active.get(id)?.trace;
  }

  /** Stop a trace. @returns whether there was an active one with this id */
  stop(id: number): boolean {
    const trace = this.get(id);
    trace?.stop();
    return trace !== undefined;
  }

  /**
   * Trace a client, the messages of a topic, or the clients of an address: write every packet, and every event of a message, as one line of
   * JSON. Passwords and authentication data are omitted. The trace ends with `stop` of the result, after `durationMs`, or with the broker.
   * @throws InvalidInput OPTION_MISSING if nothing is selected, OPTION_UNKNOWN, OPTION_INVALID, TOPIC_FILTER_INVALID; StateError
   * TOO_MANY_TRACES
   */
  start(options: TraceOptions): Trace {
    const settings = readSelection(options);
    return this.begin(settings, readDestination(options, settings, this.#outputHost), () => undefined);
  }

  /** Start a trace with any output. @param onEnd called when the trace has ended @throws StateError TOO_MANY_TRACES @internal */
  begin(settings: TraceSettings, outputOf: (ended: Ended) => TraceOutput, onEnd: (trace: Trace) => void): Trace {
    if (this.#active.size >= MAX_TRACES)
      throw new StateError('TOO_MANY_TRACES', `there are ${MAX_TRACES} traces already; stop one of them first`);
    const trace = new Trace(++this.#lastId, settings, {
      now: this.#services.clock.now(),
      outputOf,
      ended: (ended, error) => {
        this.#ended(ended, error);
        onEnd(ended);
      }
    });
    const timer = new TraceTimer(trace);
    this.#active.set(trace.id, { trace, timer });
    this.#services.wheel.arm(timer, settings.durationMs);
    if (this.#active.size === 1) this.#observe();
    return trace;
  }

  /** End all traces. @internal */
  end(reason: TraceEnd): void {
    for (const trace of this.list()) trace.close(reason);
  }

  #observe(): void {
    for (const [name, listener] of this.#listeners) this.#events.on(name, listener);
    this.#taps.observe(this.#observer);
  }

  #ended(trace: Trace, error: Error | undefined): void {
    const known = this.#active.get(trace.id);
    if (known !== undefined) this.#services.wheel.disarm(known.timer);
    this.#active.delete(trace.id);
    if (known !== undefined && this.#active.size === 0) {
      for (const [name, listener] of this.#listeners) this.#events.off(name, listener);
      this.#taps.observe(undefined);
    }
    if (error !== undefined) this.#services.failed(error, `trace ${trace.id}`);
  }

  // ---------------------------------------------------------------------------------------------------------------- packets

  #packet(direction: Direction, session: TappedSession, bytes: Buffer): void {
    const { client, protocolVersion } = session;
    const type = bytes[0] >>> 4;
    const isPublish = type === PacketType.publish;
    const hasNoTopic = isPublish && isTopicEmpty(bytes);
    let decoded: Packet | Error | undefined;
    const connectId = () => clientIdIn((decoded ??= decode(direction, bytes, protocolVersion)));
    const clientId = () => (type === PacketType.connect ? connectId() : undefined) ?? client.clientId;
    let routed: string | undefined;
    this.#each((trace) => {
      if (trace.topic !== undefined && !isPublish) return;
      if (!trace.selectsClient(client, trace.clientId === undefined ? '' : clientId())) return;
      if (trace.topic !== undefined || hasNoTopic) {
        routed ??= routedTopic(direction, session, bytes);
        if (!trace.selectsTopic(routed)) return;
      }
      const topic = hasNoTopic ? routed?.slice(client.mountpoint.length) : undefined;
      const timeMs = this.#services.clock.now();
      const packet = { timeMs, direction, client, protocolVersion, bytes, topic };
      this.#record(trace, () => new PacketEntry(packet, trace.form));
    });
  }

  // ----------------------------------------------------------------------------------------------------------------- events

  #clientEvent(event: string, client: ClientInfo, fields: object): void {
    this.#each((trace) => {
      if (trace.topic === undefined && trace.selectsClient(client))
        this.#record(trace, () => this.#eventEntry(trace, event, client, undefined, fields));
    });
  }

  /** @param client the receiver; for `message.publish` the publisher; undefined: none */
  #messageEvent(event: string, client: ClientInfo | undefined, message: Message, fields: object): void {
    const { origin } = message;
    const publisher = origin !== undefined && 'transportInfo' in origin ? (origin as ClientInfo) : undefined;
    const isPublisher = (trace: Trace) =>
      publisher === undefined
        ? trace.address === undefined && (trace.clientId === undefined || trace.clientId === message.clientId)
        : trace.selectsClient(publisher);
    this.#each((trace) => {
      if (!trace.selectsTopic(message.topic)) return;
      if (!isPublisher(trace) && (client === undefined || !trace.selectsClient(client))) return;
      this.#record(trace, () => this.#eventEntry(trace, event, client ?? publisher, message, fields));
    });
  }

  #eventEntry(
    { form }: Trace,
    event: string,
    client: ClientInfo | undefined,
    message: Message | undefined,
    fields: object
  ): EventEntry {
    return new EventEntry(this.#services.clock.now(), event, client, message, fields, form);
  }

  // ---------------------------------------------------------------------------------------------------------------- entries

  /** Call a function for each active trace. An error ends the trace, and is not passed on. */
  #each(run: (trace: Trace) => void): void {
    if (this.#isWriting) return;
    for (const { trace } of this.#active.values()) {
      try {
        run(trace);
      } catch (error) {
        trace.close('error', asError(error));
      }
    }
  }

  #record(trace: Trace, make: () => TraceEntry): void {
    this.#untraced(() => trace.record(make));
  }

  /** Run a function whose actions on the broker are not traced. */
  #untraced(run: () => void): void {
    const wasWriting = this.#isWriting;
    this.#isWriting = true;
    try {
      run();
    } finally {
      this.#isWriting = wasWriting;
    }
  }
}

function clientIdIn(packet: Packet | Error): string | undefined {
  return !(packet instanceof Error) && packet.cmd === 'connect' ? packet.clientId : undefined;
}

/** Tell whether a PUBLISH has no topic name, because it has a topic alias. */
function isTopicEmpty(bytes: Buffer): boolean {
  readVarint(bytes, 1, bytes.length);
  const at = varintEnd();
  return bytes[at] === 0 && bytes[at + 1] === 0;
}

/** The topic of a PUBLISH as the broker routes it, before topic rewriting; '' if it has none. */
function routedTopic(direction: Direction, session: TappedSession, bytes: Buffer): string {
  readVarint(bytes, 1, bytes.length);
  const at = varintEnd();
  const topicEnd = at + 2 + ((bytes[at] << 8) | bytes[at + 1]);
  if (topicEnd > at + 2) return session.client.mountpoint + bytes.toString('utf8', at + 2, topicEnd);
  const packet = decode(direction, bytes, session.protocolVersion);
  const alias =
    packet instanceof Error ? undefined : (packet as { properties?: { topicAlias?: number } }).properties?.topicAlias;
  if (alias === undefined) return '';
  const topics = direction === 'in' ? session.connection?.reader.topics : session.outlet;
  return topics?.topicOf(alias) ?? '';
}

/** Options of a trace, of which some may be missing or invalid. */
type RawOptions = Omit<TraceOptions, 'to' | 'end'> & Partial<Pick<TraceOptions, 'to' | 'end'>>;

/** Read the options of a trace except its destination. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING, TOPIC_FILTER_INVALID */
export function readSelection(options: RawOptions): TraceSettings {
  const { to, end, ...rest } = options ?? {};
  const values = readOptions(TRACE_OPTIONS, options === null || typeof options !== 'object' ? options : rest, 'trace');
  const { clientId, topic, address } = values;
  if (clientId === undefined && topic === undefined && address === undefined)
    throw new InvalidInput(
      'OPTION_MISSING',
      'trace',
      'clientId, topic or address',
      undefined,
      'trace: give at least one of clientId, topic and address; topic "#" selects all messages'
    );
  return values;
}

/** Read the destination of a trace. @throws InvalidInput OPTION_INVALID */
function readDestination(
  { to, end }: TraceOptions,
  { maxBufferedBytes }: TraceSettings,
  host: OutputHost
): (ended: Ended) => TraceOutput {
  if (typeof to !== 'function' && (typeof to?.write !== 'function' || typeof to.on !== 'function'))
    throw new InvalidInput('OPTION_INVALID', 'trace.to', 'a Writable stream or a function', to);
  if (typeof to !== 'function' && !to.writable)
    throw new InvalidInput('OPTION_INVALID', 'trace.to', 'a stream that can be written to', undefined);
  if (end !== undefined && typeof end !== 'boolean')
    throw new InvalidInput('OPTION_INVALID', 'trace.end', 'true or false', end);
  if (typeof to === 'function') return (ended) => new FunctionOutput(to, maxBufferedBytes, ended);
  const isStandard = to === process.stdout || to === process.stderr;
  const isEnded = end ?? !isStandard;
  return (ended) => new StreamOutput(to, maxBufferedBytes, isEnded, host, ended);
}
