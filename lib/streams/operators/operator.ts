import type { FunctionTools } from '../function.ts';
import type { OpenLookup, Properties } from '../types.ts';
import type { Cause } from '../values/cause.ts';
import type { Value } from '../values/values.ts';

/** Takes what an operator produces. */
export interface Output<O> {
  push(item: O): void;
  /** The time of events has reached this, in milliseconds since 1970: no earlier row follows. */
  flush(time: number): void;
}

/** Calls a function later. The clock of the broker is the only source of time. */
export interface Timers {
  /** Wall-clock milliseconds. */
  now(): number;
  /** Call a function once, at a wall-clock time. A failure of the function counts as one of the operator. @returns a function that cancels it */
  at(timeMs: number, run: () => void): () => void;
}

/** What an operator is made with. */
export interface OperatorSetup<O> {
  readonly output: Output<O>;
  readonly timers: Timers;
  /** Count something that the status of the rule shows, such as `late_total`. */
  count(name: string, by?: number): void;
  /**
   * Something has failed outside of `push`, `flush` and timers, such as a lookup. It counts as an exception, and its error goes to the sinks.
   * @param cause what has led to the item that has failed
   * @param times how often it has failed: all are counted, and one error is sent
   */
  failed(reason: unknown, cause?: Cause, times?: number): void;
}

/**
 * A step of a running rule. It counts nothing and catches nothing: the graph does this around it. An item whose `push` throws a
 * `StreamFailure` is counted as an exception, and its error goes to the sinks.
 */
export interface Operator<I> {
  /** @param port number of the input, 0 for the first one */
  push(item: I, port: number): void;
  /**
   * Of a filter: the value of its condition for a row. The graph may evaluate it in place of `push`, and then passes on the row itself if it is true.
   * @throws StreamFailure
   */
  condition?(item: I): Value;
  /** The time of events of an input has advanced. Absent: it is passed on as it is. */
  flush?(time: number, port: number): void;
  /** The rule starts: timers may be set. */
  open?(): void;
  /** The rule stops: timers are cancelled. */
  close?(): void;
  /** The state for a checkpoint: what `v8.serialize` can write. Absent: it has none. */
  save?(): unknown;
  /** Take over the state of a checkpoint, before `open`. */
  load?(state: unknown): void;
}

/** Makes an operator. Plans hold these, so that a rule can be started again. */
export type MakeOperator<I, O> = (setup: OperatorSetup<O>) => Operator<I>;

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
