import type { Trace, TraceOptions } from './trace.ts';
import type { TraceRecord } from './trace-output.ts';
import type { Traces } from './traces.ts';

/** Maximum number of lines of a trace that are kept, and their maximum size in characters. */
const MAX_LINES = 1_000;
const MAX_CHARACTERS = 262_144;
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

/** The last lines of a trace. */
class LineBuffer {
  #lines: string[] = [];
  /** Index of the oldest line. */
  #oldest = 0;
  /** Number of the oldest line. */
  #first = 1;
  #characters = 0;

  add(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    while (this.#lines.length - this.#oldest > MAX_LINES || this.#characters > MAX_CHARACTERS) {
      this.#characters -= this.#lines[this.#oldest].length;
      this.#lines[this.#oldest++] = '';
      this.#first++;
    }
    if (this.#oldest < MAX_LINES) return;
    this.#lines = this.#lines.slice(this.#oldest);
    this.#oldest = 0;
  }

  /** The lines after a number. */
  after(number: number, limit: number): KeptLine[] {
    const from = Math.max(this.#first, number + 1);
    const begin = this.#oldest + from - this.#first;
    return this.#lines.slice(begin, begin + limit).map((line, at) => ({ number: from + at, line }));
  }

  /** Number of lines that are kept. */
  get size(): number {
    return this.#lines.length - this.#oldest;
  }
}

/**
 * Traces whose last lines are kept in memory, for later readers: `broker.monitor.traces`.
 *
 * The last 1,000 lines of a trace are kept, and at most 262,144 characters of them; also when the trace has ended, until it is deleted or
 * ten others have ended after it.
 */
export class KeptTraces {
  readonly #traces: Traces;
  readonly #kept = new Map<number, { readonly trace: Trace; readonly buffer: LineBuffer }>();
  /** The ids of the ended traces, in the order in which they ended. */
  readonly #ended = new Set<number>();

  /** @internal */
  constructor(traces: Traces) {
    this.#traces = traces;
  }

  /** Start a trace, and keep its lines. @throws as `Traces.start` */
  start(options: KeptTraceOptions): Trace {
    const buffer = new LineBuffer();
    const to = (_record: TraceRecord, line: string) => buffer.add(line);
    const trace = this.#traces.begin({ ...options, to }, ({ id }) => this.#keep(id));
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
