import type { Clock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { StreamFunctionTools } from '../function.ts';
import type { LookupTable, Operator, Output, Timers } from '../operators/operator.ts';
import type { PlannedNode } from '../plan/plan.ts';
import type { Cause } from '../values/cause.ts';
import { type Collection, causeOf, type Tuple } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';
import { NodeCounters, type Pulse } from './counters.ts';

/** Dependencies of a node on its graph. */
interface NodeHost {
  readonly clock: Clock;
  readonly pulse: Pulse;
  readonly tools: StreamFunctionTools;
  readonly lookups: ReadonlyMap<number, LookupTable>;
  /** Called when an item fails: its error goes to the sinks. */
  failed(node: Node, error: unknown): void;
}

/** Receives the output of a node. */
export interface Next {
  push(item: unknown, port: number): void;
  flush(time: number, port: number): void;
  /** Pass on the error of an earlier item. */
  passError(error: unknown): void;
}

/** A running step: an operator with its counters. Errors of the operator end here. */
export class Node implements Next {
  readonly name: string;
  readonly counters: NodeCounters;
  readonly operator: Operator<unknown>;
  readonly #prefix: string;
  readonly #host: NodeHost;
  readonly #next: { readonly node: Next; readonly port: number }[] = [];
  /** Receives what the operator passes on. */
  readonly output: Output<unknown>;
  /** Functions that cancel the timers. Undefined if there have been none. */
  #timers: Set<() => void> | undefined;

  constructor(plan: PlannedNode, host: NodeHost) {
    this.name = plan.name;
    this.#prefix = plan.prefix ?? '';
    this.#host = host;
    const counters = new NodeCounters(host.pulse);
    this.counters = counters;
    this.output = {
      push: (item) => {
        counters.passed();
        for (const { node, port } of this.#next) node.push(item, port);
      },
      flush: (time) => this.#passTime(time)
    };
    this.operator = plan.make({
      output: this.output,
      timers: this.#makeTimers(),
      tools: host.tools,
      lookups: host.lookups,
      failed: (reason, cause, times) => this.#fail(reason, cause, times),
      count: (name, by = 1) => counters.count(name, by)
    });
  }

  /** Send the output to another node. */
  connect(node: Next, port: number): void {
    this.#next.push({ node, port });
  }

  /** @param isSampled whether the time that the item takes is measured even if no sample is due */
  push(item: unknown, port: number, isSampled = false): void {
    const startedAt = this.counters.arrived() || isSampled ? this.#sample() : undefined;
    try {
      this.operator.push(item, port);
    } catch (error) {
      this.#fail(error, causeOf(item as Tuple | Collection));
    }
    if (startedAt !== undefined) this.counters.took(this.#host.clock, startedAt);
  }

  /** Report that the operator failed for an item in `accepts`. */
  failed(error: unknown, item: unknown): void {
    this.counters.arrived();
    this.#fail(error, causeOf(item as Tuple | Collection));
  }

  /** Begin to measure an item. @returns the time for `took` */
  #sample(): number {
    const { clock } = this.#host;
    const startedAt = clock.monotonic();
    this.counters.seen(clock.now());
    return startedAt;
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
    this.counters.arrived();
    this.counters.failed(error, this.#host.clock.now());
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

  /** @param cause the rules that caused the failed item @param times number of failures */
  #fail(reason: unknown, cause?: Cause, times = 1): void {
    const error = this.#prefix === '' ? reason : new StreamFailure(`${this.#prefix}${errorText(reason)}`, reason);
    this.#host.tools.frame.cause = cause;
    this.counters.failed(error, this.#host.clock.now(), times);
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
          // a wall clock that was set back, or a timer that fires early
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
    const startedAt = this.#sample();
    try {
      run();
    } catch (error) {
      this.#fail(error);
    }
    this.counters.took(this.#host.clock, startedAt);
  }
}
