import type { StreamFunctionTools } from '../function.ts';
import type { OpenLookup, Properties, StreamRejectedSample } from '../types.ts';
import type { Cause } from '../values/cause.ts';
import type { Evaluate, Tuple } from '../values/tuple.ts';
import type { StreamValueObject } from '../values/values.ts';

/** Receives the output of an operator. */
export interface Output<O> {
  push(item: O): void;
  /** Event time has reached this time, in milliseconds since 1970: no earlier row follows. */
  flush(time: number): void;
}

/** Calls a function later. The clock of the broker is the only source of time. */
export interface Timers {
  /** Wall-clock milliseconds. */
  now(): number;
  /**
   * Call a function once, at a wall-clock time. A failure of the function counts as a failure of the operator.
   * @returns a function that cancels the timer
   */
  at(timeMs: number, run: () => void): () => void;
}

/** Dependencies of an operator. */
export interface OperatorSetup<O> {
  readonly output: Output<O>;
  readonly timers: Timers;
  /** Count an occurrence that the status of the rule shows, such as `late_total`. */
  count(name: string, by?: number): void;
  /**
   * Report a failure outside of `push`, `flush` and timers, such as that of a lookup. It counts as an exception, and
   * its error goes to the sinks.
   * @param cause the rules that caused the failed item
   * @param times number of failures: all are counted, and one error is sent
   */
  failed(reason: unknown, cause?: Cause, times?: number): void;
  /** Note that a tuple was excluded, for the samples. Absent: no samples are taken. @param values returns the values that the condition has read */
  rejected?(reason: StreamRejectedSample['reason'], tuple: Tuple, values: (tuple: Tuple) => StreamValueObject): void;
}

/** Optional methods of steps, besides those for items. */
interface Life {
  /** Note that the event time of an input has advanced. If absent, the time is passed on unchanged. */
  flush?(time: number, port: number): void;
  /** Called when the rule starts: timers may be set. */
  open?(): void;
  /** Called when the rule stops: cancel timers. */
  close?(): void;
  /** The state for a checkpoint, in a form that `v8.serialize` can write. Absent if the operator has no state. */
  save?(): unknown;
  /** Load the state of a checkpoint, before `open`. */
  load?(state: unknown): void;
}

/**
 * A step of a running rule. Operators count nothing and catch nothing: the graph does this around them. An item whose
 * `push` throws a `StreamFailure` is counted as an exception, and its error goes to the sinks.
 */
export interface Operator<I> extends Life {
  /** @param port index of the input, from 0 */
  push(item: I, port: number): void;
}

/** A step that keeps or drops rows. Most rows of a stream that many rules share are dropped, so its inputs call the condition. */
export interface RowFilter extends Life {
  /** A row for which it is true is passed on. @throws StreamFailure */
  readonly condition: Evaluate;
  /** The clause of the condition. */
  readonly reason: StreamRejectedSample['reason'];
  /** The values that the condition reads, for a sample. */
  readonly values: (tuple: Tuple) => StreamValueObject;
}

/** Makes an operator. Plans contain these functions, so that a rule can be started again. */
export type MakeOperator<I, O> = (setup: OperatorSetup<O>) => Operator<I>;

/** Dependencies of the operators of a rule. */
export interface NodeSetup<O> extends OperatorSetup<O> {
  /** One object for all expressions of a rule that starts. */
  readonly tools: StreamFunctionTools;
  /** The lookup tables of the statement, by position. */
  readonly lookups: ReadonlyMap<number, LookupTable>;
}

/** An open lookup table. */
export interface LookupTable {
  readonly open: OpenLookup;
  /** The properties of its source. */
  readonly properties: Properties;
}
