import type { Clock } from '../../base/clock.ts';
import type { Cause } from '../cause.ts';
import type { FunctionTools } from '../functions/function.ts';
import { type Collection, causeOf, type Tuple } from '../tuple.ts';
import type { OpenLookup, Properties } from '../types.ts';
import { StreamFailure } from '../values.ts';
import type { Operator, OperatorSetup, Output, Timers } from './operator.ts';

/** Latency and the time of the last item are taken for one item in so many, and for the first. */
const SAMPLE = 64;

/** What the status shows of a node. Counters are exact; times are those of a sample of the items. */
export class Figures {
  recordsIn = 0;
  recordsOut = 0;
  exceptions = 0;
  /** Microseconds that the last sampled item took. */
  latencyUs = 0;
  /** Wall-clock milliseconds; 0: never. */
  lastAt = 0;
  lastException = '';
  lastExceptionAt = 0;
  /** Counters of the operator, such as `late_total`. undefined: there are none. */
  more: Map<string, number> | undefined;

  /** Add to a counter of the operator. */
  count(name: string, by: number): void {
    this.more ??= new Map();
    this.more.set(name, (this.more.get(name) ?? 0) + by);
  }

  /** An item has arrived. @returns whether its time is to be taken */
  arrived(): boolean {
    return this.recordsIn++ % SAMPLE === 0;
  }

  /** An item has been passed on. */
  passed(): void {
    this.recordsOut++;
  }

  /** Items have arrived and been passed on that were counted elsewhere. */
  add(recordsIn: number, recordsOut: number): void {
    this.recordsIn += recordsIn;
    this.recordsOut += recordsOut;
  }

  /** The time of an item of the sample. */
  seen(nowMs: number): void {
    this.lastAt = nowMs;
  }

  /** @param startedAt monotonic milliseconds of an item of the sample */
  took(clock: Clock, startedAt: number): void {
    this.latencyUs = Math.round((clock.monotonic() - startedAt) * 1000);
  }

  failed(error: unknown, nowMs: number): void {
    this.exceptions++;
    this.lastException = messageOf(error);
    this.lastExceptionAt = nowMs;
  }
}

/** What the operators of a rule are made with. */
export interface NodeSetup<O> extends OperatorSetup<O> {
  /** One object for all expressions of a rule that starts. */
  readonly tools: FunctionTools;
  /** The lookup tables of the statement, by position. */
  readonly lookups: ReadonlyMap<number, LookupTable>;
}

/** A lookup table that is open. */
export interface LookupTable {
  readonly open: OpenLookup;
  /** The properties of its source. */
  readonly properties: Properties;
}

/** A step of a plan. Plans hold no state, so that a rule can be started again. */
export interface PlannedNode {
  /** Name in the status and the topology: `op_2_filter`. */
  readonly name: string;
  /** What it does, for EXPLAIN. */
  readonly about: string;
  /** Begins the messages of its errors: `run Where error: `. */
  readonly prefix?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the planner connects only operators that fit
  readonly make: (setup: NodeSetup<any>) => Operator<any>;
  readonly inputs: readonly PlannedInput[];
}

/** A source of a plan: the rows of a stream or a table reach the operators through it. */
export interface PlannedSource {
  /** Name of its preprocessor: `op_1_preprocessor_demo`. */
  readonly name: string;
  /** `source_demo`. */
  readonly sourceName: string;
  /** Position among the sources of the statement, from 0. */
  readonly position: number;
  /** Its rows become joined rows with one part, because the statement has several sources. */
  readonly wraps: boolean;
}

export type PlannedInput = PlannedNode | PlannedSource;

export function isSource(input: PlannedInput): input is PlannedSource {
  return 'position' in input;
}

/** What a node uses of its graph. */
export interface NodeHost {
  readonly clock: Clock;
  readonly tools: FunctionTools;
  readonly lookups: ReadonlyMap<number, LookupTable>;
  /** An item has failed: its error goes to the sinks. */
  failed(node: Node, error: unknown): void;
}

/** Takes what a node produces. */
export interface Next {
  push(item: unknown, port: number): void;
  flush(time: number, port: number): void;
  /** The error of an item before it. */
  passError(error: unknown): void;
}

/** A running step: an operator with its figures. Errors of the operator end here. */
export class Node implements Next {
  readonly name: string;
  readonly figures = new Figures();
  readonly operator: Operator<unknown>;
  readonly #prefix: string;
  readonly #host: NodeHost;
  readonly #next: { readonly node: Next; readonly port: number }[] = [];
  readonly #output: Output<unknown>;
  /** What cancels them. undefined: there have been none. */
  #timers: Set<() => void> | undefined;

  constructor(plan: PlannedNode, host: NodeHost) {
    this.name = plan.name;
    this.#prefix = plan.prefix ?? '';
    this.#host = host;
    const { figures } = this;
    this.#output = {
      push: (item) => {
        figures.passed();
        for (const { node, port } of this.#next) node.push(item, port);
      },
      flush: (time) => this.#passTime(time)
    };
    this.operator = plan.make({
      output: this.#output,
      timers: this.#makeTimers(),
      tools: host.tools,
      lookups: host.lookups,
      failed: (reason, cause) => this.#fail(reason, cause),
      count: (name, by = 1) => figures.count(name, by)
    });
  }

  /** Send what it produces to another node. */
  connect(node: Next, port: number): void {
    this.#next.push({ node, port });
  }

  push(item: unknown, port: number): void {
    const { figures } = this;
    if (figures.arrived()) {
      this.#pushMeasured(item, port);
      return;
    }
    try {
      this.operator.push(item, port);
    } catch (error) {
      this.#fail(error, causeOf(item as Tuple | Collection));
    }
  }

  /** Take an item of the sample. */
  pushMeasured(item: unknown, port: number): void {
    this.figures.arrived();
    this.#pushMeasured(item, port);
  }

  /** Pass on an item that the operator has accepted. */
  pass(item: unknown): void {
    this.figures.arrived();
    this.#output.push(item);
  }

  /** The operator has failed for an item in `accepts`. */
  failed(error: unknown, item: unknown): void {
    this.figures.arrived();
    this.#fail(error, causeOf(item as Tuple | Collection));
  }

  #pushMeasured(item: unknown, port: number): void {
    const { clock } = this.#host;
    const startedAt = clock.monotonic();
    this.figures.seen(clock.now());
    try {
      this.operator.push(item, port);
    } catch (error) {
      this.#fail(error, causeOf(item as Tuple | Collection));
    }
    this.figures.took(clock, startedAt);
  }

  flush(time: number, port: number): void {
    if (this.operator.flush === undefined) {
      this.#passTime(time);
      return;
    }
    try {
      this.operator.flush(time, port);
    } catch (error) {
      this.#fail(error);
    }
  }

  passError(error: unknown): void {
    this.figures.arrived();
    this.figures.failed(error, this.#host.clock.now());
    this.#next[0]?.node.passError(error);
  }

  /** Release the operator and its timers. */
  close(): void {
    this.operator.close?.();
    if (this.#timers !== undefined) for (const cancel of [...this.#timers]) cancel();
  }

  #passTime(time: number): void {
    for (const { node, port } of this.#next) node.flush(time, port);
  }

  /** @param cause what has led to the item that has failed */
  #fail(reason: unknown, cause?: Cause): void {
    const error = this.#prefix === '' ? reason : new StreamFailure(`${this.#prefix}${messageOf(reason)}`, reason);
    this.#host.tools.frame.cause = cause;
    this.figures.failed(error, this.#host.clock.now());
    this.#host.failed(this, error);
    this.#next[0]?.node.passError(error);
  }

  #makeTimers(): Timers {
    const { clock } = this.#host;
    const running = () => (this.#timers ??= new Set());
    return {
      now: () => clock.now(),
      at: (timeMs, run) => {
        const ring = () => {
          // a wall clock that was set back, or a timer that rings early
          const leftMs = timeMs - clock.now();
          if (leftMs > 0) {
            timer = clock.setTimeout(ring, leftMs);
            return;
          }
          running().delete(cancel);
          this.#run(run);
        };
        const cancel = () => {
          running().delete(cancel);
          clock.clearTimeout(timer);
        };
        let timer = clock.setTimeout(ring, Math.max(0, timeMs - clock.now()));
        running().add(cancel);
        return cancel;
      }
    };
  }

  #run(run: () => void): void {
    const { clock } = this.#host;
    const startedAt = clock.monotonic();
    this.figures.seen(clock.now());
    try {
      run();
    } catch (error) {
      this.#fail(error);
    }
    this.figures.took(clock, startedAt);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
