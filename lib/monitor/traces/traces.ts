// While there is no trace, neither taps nor events are observed, so tracing costs nothing; the first trace opens
// them, for all clients, and closes the fast path. What the receiver of a line causes (`#isWriting`) is not traced,
// because that could be endless. An error while a line is made ends that trace and never reaches the client whose
// packet it was. A packet that cannot be decoded is traced with the error.

import type { Writable } from 'node:stream';
import { asError, InvalidInput, StateError } from '../../base/errors.ts';
import { readOptions } from '../../base/options-table.ts';
import type { TimingWheel } from '../../base/timing-wheel.ts';
import type { BrokerEvents } from '../../events/catalogue.ts';
import type { Events } from '../../events/events.ts';
import { decodeClientPacket } from '../../packets/decode.ts';
import { decodeServerPacket } from '../../packets/decode-server.ts';
import type { Message } from '../../packets/message.ts';
import { type Packet, PacketType } from '../../packets/types.ts';
import { readVarint, varintEnd } from '../../packets/varint.ts';
import type { ClientInfo } from '../../records/client.ts';
import type { PacketObserver, PacketTaps, TappedSession } from './packet-taps.ts';
import { TRACE_OPTIONS, Trace, type TraceEnd, type TraceOptions, type TraceSettings, TraceTimer } from './trace.ts';
import { clientFields, messageFields, packetFields, refusedFields } from './trace-fields.ts';

/** Maximum number of traces at a time. */
const MAX_TRACES = 30;

/** The part of the broker that `Traces` uses. */
interface TracesHost {
  readonly clock: { now(): number };
  readonly wheel: TimingWheel;
  readonly events: Events;
  readonly taps: PacketTaps;
  failed(error: unknown, during: string): void;
}

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
  readonly #host: TracesHost;
  readonly #active = new Map<number, { readonly trace: Trace; readonly timer: TraceTimer }>();
  readonly #listeners = new Map<TracedEvent, (value: BrokerEvents[TracedEvent]) => void>();
  readonly #observer: PacketObserver = {
    received: (session, bytes) => this.#packet('in', session, bytes),
    sent: (session, bytes) => this.#packet('out', session, bytes)
  };
  #lastId = 0;
  /** True while a line is being written: the actions of its receiver are not traced, because that could be endless. */
  #isWriting = false;

  /** @internal */
  constructor(host: TracesHost) {
    this.#host = host;
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
    return this.begin(options, () => undefined);
  }

  /** As `start`. @param onEnd called when the trace has ended @internal */
  begin(options: TraceOptions, onEnd: (trace: Trace) => void): Trace {
    const settings = readTraceOptions(options);
    if (this.#active.size >= MAX_TRACES)
      throw new StateError('TOO_MANY_TRACES', `there are ${MAX_TRACES} traces already; stop one of them first`);
    const trace = new Trace(++this.#lastId, settings, {
      now: this.#host.clock.now(),
      ended: (ended, error) => {
        this.#ended(ended, error);
        onEnd(ended);
      }
    });
    const timer = new TraceTimer(trace);
    this.#active.set(trace.id, { trace, timer });
    this.#host.wheel.arm(timer, settings.durationMs);
    if (this.#active.size === 1) this.#observe();
    return trace;
  }

  /** End all traces. @internal */
  end(reason: TraceEnd): void {
    for (const trace of this.list()) trace.close(reason);
  }

  #observe(): void {
    const { events, taps } = this.#host;
    for (const [name, listener] of this.#listeners) events.on(name, listener);
    taps.observe(this.#observer);
  }

  #ended(trace: Trace, error: Error | undefined): void {
    const { events, taps, wheel } = this.#host;
    const known = this.#active.get(trace.id);
    if (known !== undefined) wheel.disarm(known.timer);
    this.#active.delete(trace.id);
    if (known !== undefined && this.#active.size === 0) {
      for (const [name, listener] of this.#listeners) events.off(name, listener);
      taps.observe(undefined);
    }
    if (error !== undefined) this.#host.failed(error, `trace ${trace.id}`);
  }

  // ---------------------------------------------------------------------------------------------------------------- packets

  #packet(direction: 'in' | 'out', session: TappedSession, bytes: Buffer): void {
    const { client } = session;
    const type = bytes[0] >>> 4;
    let decoded: Packet | Error | undefined;
    const packet = () => (decoded ??= decode(direction, type, bytes, session));
    const clientId = () => (type === PacketType.connect ? clientIdIn(packet()) : undefined) ?? client.clientId;
    let routed: string | undefined;
    this.#each((trace) => {
      if (trace.topic !== undefined && type !== PacketType.publish) return;
      if (!trace.selectsClient(client, trace.clientId === undefined ? '' : clientId())) return;
      if (trace.topic !== undefined) {
        routed ??= routedTopic(direction, session, bytes);
        if (!trace.selectsTopic(routed)) return;
      }
      this.#write(trace, () => {
        const content = packet();
        const fields =
          content instanceof Error
            ? refusedFields(PACKET_NAMES[type], bytes, session.protocolVersion, content, trace.form)
            : packetFields(content, trace.form);
        if (type === PacketType.publish && 'topic' in fields && fields.topic === '')
          fields.topic = (routed ??= routedTopic(direction, session, bytes)).slice(client.mountpoint.length);
        return { ...clientFields(client), direction, ...fields };
      });
    });
  }

  // ----------------------------------------------------------------------------------------------------------------- events

  #clientEvent(event: string, client: ClientInfo, fields: object): void {
    this.#each((trace) => {
      if (trace.topic === undefined && trace.selectsClient(client))
        this.#write(trace, () => ({ ...clientFields(client), event, ...fields }));
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
      const about = client ?? publisher;
      this.#write(trace, () => ({
        ...(about === undefined ? {} : clientFields(about)),
        event,
        ...messageFields(message, trace.form),
        ...fields
      }));
    });
  }

  // ------------------------------------------------------------------------------------------------------------------ lines

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

  #write(trace: Trace, fields: () => object): void {
    this.#isWriting = true;
    try {
      trace.write(() => ({ time: new Date(this.#host.clock.now()).toISOString(), ...fields() }));
    } finally {
      this.#isWriting = false;
    }
  }
}

const PACKET_NAMES: readonly string[] = ['reserved', ...Object.keys(PacketType)];

function decode(direction: 'in' | 'out', type: number, bytes: Buffer, session: TappedSession): Packet | Error {
  const decodeIt = direction === 'in' ? decodeClientPacket : decodeServerPacket;
  readVarint(bytes, 1, bytes.length);
  try {
    return decodeIt(type, bytes[0] & 15, bytes, varintEnd(), bytes.length, session.protocolVersion);
  } catch (error) {
    return asError(error);
  }
}

function clientIdIn(packet: Packet | Error): string | undefined {
  return !(packet instanceof Error) && packet.cmd === 'connect' ? packet.clientId : undefined;
}

/** The topic of a PUBLISH as the broker routes it, before topic rewriting; '' if it has none. */
function routedTopic(direction: 'in' | 'out', session: TappedSession, bytes: Buffer): string {
  readVarint(bytes, 1, bytes.length);
  const at = varintEnd();
  const topicEnd = at + 2 + ((bytes[at] << 8) | bytes[at + 1]);
  if (topicEnd > at + 2) return session.client.mountpoint + bytes.toString('utf8', at + 2, topicEnd);
  const packet = decode(direction, PacketType.publish, bytes, session);
  const alias =
    packet instanceof Error ? undefined : (packet as { properties?: { topicAlias?: number } }).properties?.topicAlias;
  if (alias === undefined) return '';
  const topics = direction === 'in' ? session.inbound : session.delivery.flows;
  return topics?.topicOf(alias) ?? '';
}

/** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING, TOPIC_FILTER_INVALID */
function readTraceOptions(options: TraceOptions): TraceSettings {
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
  if (typeof to !== 'function' && (typeof to?.write !== 'function' || typeof to.on !== 'function'))
    throw new InvalidInput('OPTION_INVALID', 'trace.to', 'a Writable stream or a function', to);
  if (typeof to !== 'function' && !to.writable)
    throw new InvalidInput('OPTION_INVALID', 'trace.to', 'a stream that can be written to', undefined);
  if (end !== undefined && typeof end !== 'boolean')
    throw new InvalidInput('OPTION_INVALID', 'trace.end', 'true or false', end);
  const isStandard = (to as Writable) === process.stdout || (to as Writable) === process.stderr;
  return { ...values, to, end: end ?? !isStandard } as TraceSettings;
}
