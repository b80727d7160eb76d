import type { Clock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { Cause } from '../values/cause.ts';
import { NodeCounters, type Pulse } from './counters.ts';
import { type ConnectionCounters, metricsOf } from './metrics.ts';

/** Rows as the app and sinks see them. */
export type OutputRows = readonly Record<string, unknown>[];

/** The destination of a sink node. */
export interface SinkTarget {
  /** Send an emission. The attempt fails if this throws or rejects. @param cause the rules that caused it */
  push(rows: OutputRows, cause?: Cause): void | Promise<void>;
  /** Number of items that are not sent yet. */
  readonly pending: number;
  /**
   * Send collected items.
   * @returns a promise that resolves when all items so far are sent or have failed; undefined if nothing is being sent
   */
  idle?(): Promise<void> | undefined;
  /** True if further items would be dropped. Absent: never. */
  readonly isFull?: boolean;
  /** Undefined if the target has no connection. */
  readonly connection?: ConnectionCounters | undefined;
  close(): Promise<void>;
}

/** Dependencies of a sink node on its rule. */
interface SinkNodeHost {
  readonly clock: Clock;
  readonly pulse: Pulse;
  /** The option `sendError`. */
  readonly sendsErrors: boolean;
  failed(node: string, error: unknown): void;
  /** Called when the sink has no room for further items, or has room again. */
  filled(node: SinkNode, isFull: boolean): void;
}

/** A sink of a running rule, with its counters. */
export class SinkNode {
  readonly name: string;
  readonly target: SinkTarget;
  readonly counters: NodeCounters;
  readonly #host: SinkNodeHost;
  #isFull = false;

  /** @param name `sink_mqtt_0` */
  constructor(name: string, target: SinkTarget, host: SinkNodeHost) {
    this.name = name;
    this.target = target;
    this.counters = new NodeCounters(host.pulse);
    this.#host = host;
  }

  /**
   * Send an emission.
   * @param cause the rules that caused it
   * @param isCounted false for an error, which has been counted and does not count as sent
   */
  push(rows: OutputRows, cause: Cause | undefined, isCounted = true): void {
    const { counters } = this;
    if (isCounted && counters.arrived()) counters.seen(this.#host.clock.now());
    try {
      const sent = this.target.push(rows, cause);
      if (sent === undefined) {
        if (isCounted) counters.passed();
      } else this.#track(sent, isCounted);
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * Report that an emission, or an item before it, has failed.
   * @param isSent false if it is only counted, because an error of its message was already sent
   */
  passError(error: unknown, cause: Cause | undefined, isSent = true): void {
    const { counters } = this;
    counters.arrived();
    counters.failed(error, this.#host.clock.now());
    if (this.#host.sendsErrors && isSent) this.push([{ error: errorText(error) }], cause, false);
  }

  #track(sent: Promise<void>, isCounted: boolean): void {
    this.#checkRoom();
    sent.then(
      () => {
        if (isCounted) this.counters.passed();
        this.#checkRoom();
      },
      (error) => {
        this.#fail(error);
        this.#checkRoom();
      }
    );
  }

  #checkRoom(): void {
    const isFull = this.target.isFull === true;
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    this.#host.filled(this, isFull);
  }

  /** Report a failure that belongs to no current emission, such as an attempt of the cache. */
  fail(error: unknown): void {
    this.#fail(error);
  }

  #fail(error: unknown): void {
    this.counters.failed(error, this.#host.clock.now());
    this.#host.failed(this.name, error);
  }

  metrics(): [string, number | string][] {
    const { pending, connection } = this.target;
    return metricsOf(this.name, this.counters, { pending, connection });
  }
}
