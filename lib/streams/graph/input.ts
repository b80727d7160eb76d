// An input is called for each row of a source, for each rule: a stream that many rules share spends most of its time
// here, and most rows are dropped by the filter of a rule. So it counts in plain fields, which the metrics add to the
// counters of its node, and reads the clock for one item in a sample only.

import { isTrue } from '../operators/condition.ts';
import type { Operator, Output } from '../operators/operator.ts';
import type { Cause } from '../values/cause.ts';
import { type Collection, causeOf, type Evaluate, type StreamRow, type Tuple } from '../values/tuple.ts';
import { type Pulse, SAMPLE } from './counters.ts';
import type { Node } from './node.ts';

/** Receives the output of an operator: an input of the next node, or the sinks. */
export interface Next extends Output<unknown> {
  /** Number of items received so far. */
  readonly items: number;
  /** Take the error of an earlier item. @param cause the rules that caused the item */
  passError(error: unknown, cause: Cause | undefined): void;
}

/** An input of a node: passes each item to the operator, and counts it. Errors of the operator end here. */
export class Input implements Next {
  // fields that each row needs come first, so that they are adjacent in memory
  items = 0;
  /** Value of `items` at which the next item is sampled. */
  #nextSample = 0;
  /** Creates a tuple from a row of a source; undefined if the item itself is the tuple. */
  readonly #tupleOf: ((row: StreamRow) => Tuple) | undefined;
  /** The condition of a filter of rows; undefined for an operator. */
  readonly #condition: Evaluate | undefined;
  /** Samples of the rows that the condition excludes. */
  readonly #rejected: { readonly isOpen: boolean } | undefined;
  readonly #operator: Operator<unknown>;
  readonly #next: Next;
  readonly #port: number;
  protected readonly node: Node;

  /** @param port index of the input, from 0 */
  constructor(node: Node, port: number, pulse: Pulse, tupleOf?: (row: StreamRow) => Tuple) {
    this.node = node;
    const { operator } = node;
    this.#condition = 'condition' in operator ? operator.condition : undefined;
    this.#rejected = node.sampler?.rejected;
    this.#operator = operator as Operator<unknown>;
    this.#next = node.next;
    this.#port = port;
    this.#tupleOf = tupleOf;
    node.inputs.push(this);
    pulse.add(this);
  }

  push(item: unknown): void {
    const tuple = this.#tupleOf === undefined ? item : this.#tupleOf(item as StreamRow);
    const startedAt = this.items++ < this.#nextSample ? undefined : this.sample(tuple as Tuple);
    const condition = this.#condition;
    try {
      if (condition === undefined) this.#operator.push(tuple, this.#port);
      else if (isTrue(condition(tuple as Tuple))) this.#next.push(tuple);
      else if (this.#rejected?.isOpen === true) this.node.reject(tuple as Tuple);
    } catch (error) {
      this.node.fail(error, causeOf(tuple as Tuple | Collection), 1, tuple as Tuple | Collection);
    }
    if (startedAt !== undefined) this.node.took(startedAt);
  }

  flush(time: number): void {
    this.node.flush(time, this.#port);
  }

  passError(error: unknown, cause: Cause | undefined): void {
    this.node.passError(error, cause);
  }

  /** Measure the next item. */
  sampleNext(): void {
    this.#nextSample = 0;
  }

  /** Begin to measure an item. @returns the time for `took` of the node */
  protected sample(_tuple: Tuple): number {
    this.#nextSample = this.items + SAMPLE - 1;
    return this.node.sample();
  }
}
