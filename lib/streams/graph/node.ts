import type { Clock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { StreamFunctionTools } from '../function.ts';
import type { LookupTable, Operator, OperatorSetup, RowFilter, Timers } from '../operators/operator.ts';
import type { PlannedNode } from '../plan/plan.ts';
import type { Cause } from '../values/cause.ts';
import type { Collection, Tuple } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';
import { NodeCounters, type Pulse } from './counters.ts';
import type { Next } from './input.ts';
import { metricsOf } from './metrics.ts';
import type { StreamSampler } from './samples.ts';

/** Dependencies of a node on its graph. */
interface NodeHost {
  readonly clock: Clock;
  readonly pulse: Pulse;
  readonly tools: StreamFunctionTools;
  readonly lookups: ReadonlyMap<number, LookupTable>;
  readonly sampler?: StreamSampler;
  /** Called when an item fails: its error goes to the sinks. @param item undefined if there is none */
  failed(node: string, error: unknown, item?: Tuple | Collection): void;
}

/** A running step: an operator with its counters. Its inputs call the operator, whose output is the next node. */
export class Node {
  readonly name: string;
  /** Counters of errors and samples; inputs count the items. */
  readonly counters: NodeCounters;
  readonly operator: Operator<unknown> | RowFilter;
  readonly inputs: { readonly items: number }[] = [];
  readonly #prefix: string;
  readonly sampler: StreamSampler | undefined;
  readonly #host: NodeHost;
  /** Receives what the operator passes on. */
  readonly next: Next;
  /** Functions that cancel the timers. Undefined if there have been none. */
  #timers: Set<() => void> | undefined;

  constructor(plan: PlannedNode, host: NodeHost, next: Next) {
    this.name = plan.name;
    this.#prefix = plan.prefix ?? '';
    this.#host = host;
    this.sampler = host.sampler;
    this.next = next;
    const counters = new NodeCounters(host.pulse);
    this.counters = counters;
    this.operator = plan.make({
      output: next,
      timers: this.#makeTimers(),
      tools: host.tools,
      lookups: host.lookups,
      failed: (reason, cause, times) => this.fail(reason, cause, times),
      count: (name, by = 1) => counters.count(name, by),
      rejected: (reason, tuple, values) => this.#reject(reason, tuple, values)
    });
  }

  /** Begin to measure an item. @returns the time for `took` */
  sample(): number {
    const { clock } = this.#host;
    const startedAt = clock.monotonic();
    this.counters.seen(clock.now());
    return startedAt;
  }

  /** Measure an item that has ended. @param startedAt the time of `sample` */
  took(startedAt: number): void {
    this.counters.took(this.#host.clock, startedAt);
  }

  flush(time: number, port: number): void {
    if (this.operator.flush === undefined) {
      this.next.flush(time);
      return;
    }
    try {
      this.operator.flush(time, port);
    } catch (error) {
      this.fail(error, undefined);
    }
  }

  passError(error: unknown, cause: Cause | undefined): void {
    this.counters.arrived();
    this.counters.failed(error, this.#host.clock.now());
    this.next.passError(error, cause);
  }

  /**
   * Count a failure, and pass its error on.
   * @param cause the rules that caused the failed item
   * @param times number of failures
   * @param item the failed item; undefined if there is none
   */
  fail(reason: unknown, cause: Cause | undefined, times = 1, item?: Tuple | Collection): void {
    const error = this.#prefix === '' ? reason : new StreamFailure(`${this.#prefix}${errorText(reason)}`, reason);
    this.counters.failed(error, this.#host.clock.now(), times);
    this.#host.failed(this.name, error, item);
    this.next.passError(error, cause);
  }

  /** Sample a row that the condition of a filter has excluded. */
  reject(tuple: Tuple): void {
    const { reason, values } = this.operator as RowFilter;
    this.#reject(reason, tuple, values);
  }

  #reject(...[reason, tuple, values]: Parameters<Required<OperatorSetup<unknown>>['rejected']>): void {
    if (this.sampler?.rejected.isOpen === true) this.sampler.addRejected(this.name, reason, tuple, values);
  }

  metrics(): [string, number | string][] {
    const received = this.inputs.reduce((sum, { items }) => sum + items, 0);
    const { pending = 0 } = this.operator as { readonly pending?: number };
    return metricsOf(this.name, this.counters, { received, passed: this.next.items, pending });
  }

  /** Release the operator and its timers. */
  close(): void {
    this.operator.close?.();
    if (this.#timers !== undefined) for (const cancel of [...this.#timers]) cancel();
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
    const startedAt = this.sample();
    try {
      run();
    } catch (error) {
      this.fail(error, undefined);
    }
    this.took(startedAt);
  }
}
