// A trace never slows the broker: if its stream or function has too much to write, entries are dropped and counted, and
// the next line says how many are missing. An entry is made only if there is room for it. `close` is the only end of a
// trace, has an effect once, and is called by timers, errors and the broker alike. The counters are those of its output;
// to ask for them is to read the trace, so the lines that wait are made first.

import type { Writable } from 'node:stream';
import { contains, isNetwork, type Network, networkOf } from '../../access/network.ts';
import { InvalidInput } from '../../base/errors.ts';
import { type Duration, field, type Size, type Values } from '../../base/fields.ts';
import { BaseTimer } from '../../base/timing-wheel.ts';
import type { ClientInfo } from '../../records/client.ts';
import { checkTopicFilter, matches, parseSharedFilter } from '../../topics/topic.ts';
import type { TraceEntry } from './trace-entry.ts';
import type { PayloadForm } from './trace-fields.ts';
import type { Ended, TraceFunction, TraceOutput } from './trace-output.ts';

/** The options of `broker.trace` with a default. */
export const TRACE_OPTIONS = {
  clientId: field('string', undefined as string | undefined, 'Trace this client.', { check: checkClientId }),
  topic: field('string', undefined as string | undefined, 'Trace the messages whose topic matches this topic filter.', {
    check: checkTopic
  }),
  address: field(
    'string',
    undefined as string | undefined,
    'Trace the clients with this IP address, or of this network.',
    {
      check: checkAddress
    }
  ),
  payload: field(
    'choice',
    'text' as PayloadForm['payload'],
    'How payloads are written. With `text`, a payload that is not UTF-8 is written in hexadecimal.',
    { choices: ['text', 'hex', 'base64', 'none'] }
  ),
  maxPayloadBytes: field('size', 1_024, 'Only this many bytes at the beginning of a payload are written.', {
    unit: 'bytes'
  }),
  maxBufferedBytes: field(
    'size',
    1_048_576,
    'While the stream has this many bytes to write, further lines are dropped and counted.',
    { unit: 'bytes', min: 1_024 }
  ),
  durationMs: field('duration', Infinity, 'Stop the trace after this time.', { unit: 'ms', min: 1, max: Infinity })
} as const;

/**
 * Options of `broker.trace`. At least one of `clientId`, `topic` and `address` is required; a trace contains what satisfies all given
 * options.
 */
export interface TraceOptions {
  /** Trace this client: its packets, and the events of its session and its messages. */
  readonly clientId?: string;
  /**
   * Trace the messages whose topic matches this topic filter, which may not be shared. It is compared with the topic as the broker routes
   * it, with the mount point of the client.
   */
  readonly topic?: string;
  /** Trace the clients with this IP address, or of this network (`192.0.2.0/24`). */
  readonly address?: string;
  /**
   * The destination of the lines: a stream, which receives each line as JSON with a line feed; or a function, which receives the object and
   * the same line without line feed. The function is called within the handling of the packet, so it must be fast. Its operations on the
   * broker are not traced.
   */
  readonly to: Writable | TraceFunction;
  /** The form in which payloads are written. Default `text`: a payload that is not valid UTF-8 is written in hexadecimal. */
  readonly payload?: 'text' | 'hex' | 'base64' | 'none';
  /** Maximum number of bytes at the beginning of a payload that are written. Default 1024. */
  readonly maxPayloadBytes?: Size;
  /**
   * While the stream has this many bytes to write, or promises of the function are open for as many, further lines are dropped and counted.
   * Default 1 MB.
   */
  readonly maxBufferedBytes?: Size;
  /** Stop the trace after this time, by the clock of the broker. Default: it lasts until it is stopped. */
  readonly durationMs?: Duration;
  /** End the stream when the trace stops. Default true, except for the standard streams of the process. */
  readonly end?: boolean;
}

/** `TraceOptions` after they have been read, without the destination. */
export type TraceSettings = Values<typeof TRACE_OPTIONS>;

/**
 * The reason why a trace has ended: `stopped` by a call; `duration`: its time was over; `error`: the stream or the function has failed,
 * which is reported as an `error` event; `closed`: the stream was ended by others; `broker_stopped`.
 */
export type TraceEnd = 'stopped' | 'duration' | 'error' | 'closed' | 'broker_stopped';

/** The part of `Traces` that a trace uses. */
interface TraceHost {
  readonly now: number;
  /** Make the destination of the entries. @param ended called when it has failed, or was ended by others */
  outputOf(ended: Ended): TraceOutput;
  /** Called when the trace has ended. */
  ended(trace: Trace, error: Error | undefined): void;
}

/** An active or ended trace: the result of `broker.trace`. */
export class Trace {
  /** Number of the trace; the first one has 1. */
  readonly id: number;
  /** The client that is traced; undefined: any. */
  readonly clientId: string | undefined;
  /** The topic filter of the messages that are traced; undefined: any, and other packets as well. */
  readonly topic: string | undefined;
  /** The IP address or network of the clients that are traced; undefined: any. */
  readonly address: string | undefined;
  /** Time at which the trace has started, in milliseconds since 1970. */
  readonly startedAt: number;
  readonly #form: PayloadForm;
  readonly #network: Network | undefined;
  readonly #output: TraceOutput;
  readonly #host: TraceHost;
  #endReason: TraceEnd | undefined = undefined;

  /** @internal */
  constructor(id: number, settings: TraceSettings, host: TraceHost) {
    const { clientId, topic, address } = settings;
    this.id = id;
    this.clientId = clientId;
    this.topic = topic;
    this.address = address;
    this.startedAt = host.now;
    this.#form = settings;
    this.#network = address === undefined ? undefined : networkOf(address);
    this.#host = host;
    this.#output = host.outputOf((error) => this.close(error === undefined ? 'closed' : 'error', error));
  }

  /** Number of lines written. */
  get lines(): number {
    this.#output.flush();
    return this.#output.lines;
  }

  /**
   * Bytes written. Lines of `broker.monitor.traces` are made when they are read, so for such a trace this is the size of what was recorded
   * for them.
   */
  get bytes(): number {
    this.#output.flush();
    return this.#output.bytes;
  }

  /** Number of lines dropped because the stream was too slow. The next line that is written contains it as `droppedBefore`. */
  get dropped(): number {
    this.#output.flush();
    return this.#output.dropped;
  }

  /** The reason why the trace has ended; undefined while it is active. */
  get endReason(): TraceEnd | undefined {
    return this.#endReason;
  }

  /** Stop the trace. Has no effect on a trace that has ended. */
  stop(): void {
    this.close('stopped');
  }

  /** The form in which payloads are written. @internal */
  get form(): PayloadForm {
    return this.#form;
  }

  /** Tell whether a client is traced. @param clientId the client id of a client that is not known yet @internal */
  selectsClient(client: ClientInfo, clientId = client.clientId): boolean {
    if (this.clientId !== undefined && this.clientId !== clientId) return false;
    return this.#network === undefined || contains(this.#network, client.transportInfo.remoteAddress);
  }

  /** Tell whether messages of a topic are traced. @internal */
  selectsTopic(topic: string): boolean {
    return this.topic === undefined || matches(this.topic, topic);
  }

  /** Record an entry. @param make called if there is room for it @internal */
  record(make: () => TraceEntry): void {
    if (this.#endReason !== undefined) return;
    if (this.#output.isFull) this.#output.drop();
    else this.#output.take(make());
  }

  /** End the trace. @internal */
  close(reason: TraceEnd, error?: Error): void {
    if (this.#endReason !== undefined) return;
    this.#endReason = reason;
    this.#output.end();
    this.#host.ended(this, error);
  }
}

/** Ends a trace after its time. */
export class TraceTimer extends BaseTimer {
  readonly #trace: Trace;

  constructor(trace: Trace) {
    super();
    this.#trace = trace;
  }

  ring(): void {
    this.#trace.close('duration');
  }
}

function checkClientId(value: unknown, field: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new InvalidInput('OPTION_INVALID', field, 'a client id', value);
}

function checkTopic(value: unknown, field: string): string {
  const fault = typeof value === 'string' ? checkTopicFilter(value) : 'the topic filter must be a string';
  if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', field, 'a topic filter', value, fault);
  if (parseSharedFilter(value as string) !== undefined)
    throw new InvalidInput('TOPIC_FILTER_INVALID', field, 'a topic filter that is not shared', value);
  return value as string;
}

function checkAddress(value: unknown, field: string): string {
  if (isNetwork(value)) return value;
  throw new InvalidInput('OPTION_INVALID', field, 'an IP address, or a network such as "192.0.2.0/24"', value);
}
