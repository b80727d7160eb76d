import type { Trace, TraceOptions } from './trace.ts';
import type { TraceEntry } from './trace-entry.ts';
import { TraceOutput } from './trace-output.ts';
import { readSelection, type Traces } from './traces.ts';

/** Maximum number of lines of a trace that are kept, and the maximum size of their entries in bytes. The last line is always kept. */
const MAX_LINES = 1_000;
const MAX_BYTES = 262_144;
/** Maximum number of ended traces whose lines are kept. */
const MAX_ENDED = 10;

/** Options of a trace whose lines are kept: those of `broker.trace`, except the destination of the lines. */
export type KeptTraceOptions = Omit<TraceOptions, 'to' | 'end' | 'maxBufferedBytes'>;

/** A line of a trace. */
export interface KeptLine {
  /** Number of the line; the first one of the trace has 1. */
  readonly number: number;
  /** JSON, as traces write it. */
  readonly line: string;
}

/** The entries of the last lines of a trace. A line is made when it is read. */
class EntryBuffer extends TraceOutput {
  readonly isFull = false;
  #entries: (TraceEntry | undefined)[] = [];
  #sizes: number[] = [];
  /** Index of the oldest entry. */
  #oldest = 0;
  /** Number of the oldest line. */
  #first = 1;
  /** Size of the entries. */
  #keptBytes = 0;

  take(entry: TraceEntry): void {
    const bytes = entry.keep();
    this.written(bytes);
    this.#entries.push(entry);
    this.#sizes.push(bytes);
    this.#keptBytes += bytes;
    while (this.size > MAX_LINES || (this.#keptBytes > MAX_BYTES && this.size > 1)) {
      this.#keptBytes -= this.#sizes[this.#oldest];
      this.#entries[this.#oldest++] = undefined;
      this.#first++;
    }
    if (this.#oldest < MAX_LINES) return;
    this.#entries = this.#entries.slice(this.#oldest);
    this.#sizes = this.#sizes.slice(this.#oldest);
    this.#oldest = 0;
  }

  end(): void {}

  /** The lines after a number. */
  after(number: number, limit: number): KeptLine[] {
    const from = Math.max(this.#first, number + 1);
    const begin = this.#oldest + from - this.#first;
    const entries = this.#entries.slice(begin, begin + limit) as TraceEntry[];
    return entries.map((entry, at) => ({ number: from + at, line: JSON.stringify(this.recordOf(entry)) }));
  }

  /** Number of lines that are kept. */
  get size(): number {
    return this.#entries.length - this.#oldest;
  }
}

/**
 * Traces whose last lines are kept in memory, for later readers: `broker.monitor.traces`.
 *
 * The entries of the last 1,000 lines of a trace are kept, and at most 262,144 bytes of them, but always the last one; lines are made when
 * they are read. They are kept also when the trace has ended, until it is deleted or ten others have ended after it.
 */
export class KeptTraces {
  readonly #traces: Traces;
  readonly #kept = new Map<number, { readonly trace: Trace; readonly buffer: EntryBuffer }>();
  /** The ids of the ended traces, in the order in which they ended. */
  readonly #ended = new Set<number>();

  /** @internal */
  constructor(traces: Traces) {
    this.#traces = traces;
  }

  /** Start a trace, and keep its lines. @throws as `Traces.start` */
  start(options: KeptTraceOptions): Trace {
    const buffer = new EntryBuffer();
    const trace = this.#traces.begin(
      readSelection(options),
      () => buffer,
      ({ id }) => this.#keep(id)
    );
    this.#kept.set(trace.id, { trace, buffer });
    return trace;
  }

  /** All active traces, including those whose lines go elsewhere, and the ended ones whose lines are kept; in the order of their ids. */
  list(): Trace[] {
    const all = new Map(this.#traces.list().map((trace) => [trace.id, trace]));
    for (const { trace } of this.#kept.values()) all.set(trace.id, trace);
    return [...all.values()].sort((a, b) => a.id - b.id);
  }

  /** A trace of `list`. */
  get(id: number): Trace | undefined {
    return this.#kept.get(id)?.trace ?? this.#traces.get(id);
  }

  /** Stop a trace, and keep its lines; has no effect on one that has ended. @returns whether there is one with this id */
  stop(id: number): boolean {
    const trace = this.get(id);
    trace?.stop();
    return trace !== undefined;
  }

  /** Stop a trace, and discard its lines. @returns whether there was one with this id */
  delete(id: number): boolean {
    const trace = this.get(id);
    this.#forget(id); // before its end, which would count among those that are kept
    trace?.stop();
    return trace !== undefined;
  }

  /** The number of lines of a trace that are kept; undefined: there is no such trace, or its lines go elsewhere. */
  lineCount(id: number): number | undefined {
    return this.#kept.get(id)?.buffer.size;
  }

  /**
   * The lines of a trace that are kept, the oldest first.
   * @param after the number of the line before the first one to return
   */
  lines(id: number, after: number, limit: number): KeptLine[] {
    return this.#kept.get(id)?.buffer.after(after, limit) ?? [];
  }

  /** Keep the lines of a trace that has ended, until ten others have ended. */
  #keep(id: number): void {
    if (!this.#kept.has(id)) return;
    this.#ended.add(id);
    for (const first of this.#ended) {
      if (this.#ended.size <= MAX_ENDED) break;
      this.#forget(first);
    }
  }

  #forget(id: number): void {
    this.#kept.delete(id);
    this.#ended.delete(id);
  }
}
