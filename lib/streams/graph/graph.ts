// An `Entry` is called for each row of a source, for each rule: a stream that many rules share spends most of its
// time here, and most rows are dropped by the filter of a rule. So the condition is evaluated in the entry, counters
// are plain fields that are added to the metrics when these are read (`count`), and the clock is read for one row in
// a sample only. Operators are opened after their states have been loaded. An operator that throws ends its item, not
// the graph.

import type { Clock } from '../../base/clock.ts';
import type { StreamFunctionTools } from '../function.ts';
import { isTrue } from '../operators/condition.ts';
import type { LookupTable } from '../operators/operator.ts';
import { streamRow } from '../operators/stream-row.ts';
import type { StreamPlan } from '../plan/plan.ts';
import { isSource, type PlannedNode, type PlannedSource } from '../plan/plan.ts';
import { freshSlots } from '../plan/slots.ts';
import type { Cause } from '../values/cause.ts';
import type { Evaluate, Frame, StreamRow, Tuple } from '../values/tuple.ts';
import type { Consumer } from './consumer.ts';
import { NodeCounters, Pulse, SAMPLE } from './counters.ts';
import { type ConnectionCounters, metricsOf } from './metrics.ts';
import { type Next, Node } from './node.ts';

/** Dependencies of a graph on its rule. */
interface GraphHost {
  readonly clock: Clock;
  /** Determines when samples for the status are due. Default: by the number of items only. */
  readonly pulse?: Pulse;
  readonly tools: StreamFunctionTools;
  readonly lookups: ReadonlyMap<number, LookupTable>;
  /** Called when an operator fails on an item. */
  failed(node: string, error: unknown): void;
}

/**
 * The entry of a source's rows into a graph: the source and its preprocessor, which share their counters.
 *
 * When many rules share a stream, most of its rows are dropped by the filter of a rule. The condition is therefore
 * evaluated here, and these rows are only counted.
 */
class Entry implements Consumer {
  // fields that each row needs come first, so that they are adjacent in memory
  /** Rows that the counters do not include yet, and those of them for which the condition was evaluated here. */
  #rows = 0;
  #tested = 0;
  /** Value of `#rows` at which the next row is sampled. */
  #nextSample = 0;
  /** Creates a tuple from a row; undefined if the row itself is the tuple. */
  readonly #tupleOf: ((row: StreamRow) => Tuple) | undefined;
  /** The condition of the node; undefined if it is not a filter. */
  readonly #condition: Evaluate | undefined;
  readonly #node: Node;
  readonly #port: number;
  readonly source: PlannedSource;
  readonly #counters: NodeCounters;
  readonly #clock: Clock;
  readonly #frame: Frame;

  constructor(
    source: PlannedSource,
    plan: StreamPlan,
    host: GraphHost & { readonly pulse: Pulse },
    node: Node,
    port: number
  ) {
    this.source = source;
    this.#node = node;
    this.#port = port;
    this.#clock = host.clock;
    this.#counters = new NodeCounters(host.pulse);
    host.pulse.add(this);
    this.#frame = host.tools.frame;
    this.#tupleOf = tupleMaker(source, plan);
    this.#condition = node.operator.condition;
  }

  /** Process a row of the source. */
  push(row: StreamRow): void {
    const condition = this.#condition;
    const item = this.#tupleOf === undefined ? row : this.#tupleOf(row);
    if (this.#rows++ >= this.#nextSample) {
      this.#nextSample = this.#rows + SAMPLE - 1;
      this.#counters.seen(this.#clock.now());
      this.#node.push(item, this.#port, condition !== undefined);
      return;
    }
    if (condition === undefined) {
      this.#node.push(item, this.#port);
      return;
    }
    try {
      const value = condition(item);
      this.#tested++;
      if (value === false || !isTrue(value)) return;
    } catch (error) {
      this.#node.failed(error, item);
      return;
    }
    this.#node.output.push(item);
  }

  /** Replace the rows of the table. */
  replace(rows: readonly StreamRow[]): void {
    for (const row of rows) this.push(row);
    this.end();
  }

  /** Note that the rows of a table are complete. */
  end(): void {
    this.#node.flush(this.#clock.now(), this.#port);
  }

  /** Report that input of the source could not be read. */
  fail(error: unknown, cause?: Cause): void {
    this.#frame.cause = cause;
    this.#counters.arrived();
    this.#counters.failed(error, this.#clock.now());
    this.#node.passError(error);
  }

  /** A consumer for the rows of one message, of whose errors sinks receive only the first. */
  many(): Consumer {
    const frame = this.#frame;
    const many = { hasFailed: false };
    const within = (run: () => void) => {
      frame.many = many;
      try {
        run();
      } finally {
        frame.many = undefined;
      }
    };
    return {
      push: (row) => within(() => this.push(row)),
      fail: (error, cause) => within(() => this.fail(error, cause))
    };
  }

  /** Update the counters, including those of the node, with all rows so far. */
  count(): NodeCounters {
    this.#counters.add(this.#rows, this.#rows);
    this.#node.counters.add(this.#tested, 0);
    this.#rows = 0;
    this.#nextSample = 0;
    this.#tested = 0;
    return this.#counters;
  }

  sampleNext(): void {
    this.#nextSample = 0;
  }
}

function tupleMaker({ position, wraps }: PlannedSource, { slotCount, sourceCount }: StreamPlan) {
  const order = [position];
  const withSlots = (row: StreamRow) => row.with(freshSlots(slotCount));
  if (!wraps) return slotCount === 0 ? undefined : withSlots;
  if (slotCount === 0) return (row: StreamRow) => streamRow(row, position, sourceCount, order);
  return (row: StreamRow) => streamRow(withSlots(row), position, sourceCount, order);
}

/** The running operators of a rule. */
export class Graph {
  readonly #order: readonly Node[];
  /** By position of the source. */
  readonly entries = new Map<number, Entry>();

  /** @param output receives the emissions */
  constructor(plan: StreamPlan, host: GraphHost, output: Next) {
    const { pulse = new Pulse() } = host;
    const nodeHost = {
      clock: host.clock,
      pulse,
      tools: host.tools,
      lookups: host.lookups,
      failed: (node: Node, error: unknown) => host.failed(node.name, error)
    };
    const nodes = new Map<PlannedNode, Node>();
    for (const planned of plan.nodes) {
      const node = new Node(planned, nodeHost);
      nodes.set(planned, node);
      for (const [port, input] of planned.inputs.entries()) {
        if (isSource(input)) this.entries.set(input.position, new Entry(input, plan, { ...host, pulse }, node, port));
        else nodes.get(input)?.connect(node, port);
      }
    }
    nodes.get(plan.root)?.connect(output, 0);
    this.#order = [...nodes.values()];
  }

  open(): void {
    for (const node of this.#order) node.operator.open?.();
  }

  close(): void {
    for (const node of this.#order) node.close();
  }

  /** The states of the operators, for a checkpoint, by node. */
  save(): Record<string, unknown> {
    const states: Record<string, unknown> = {};
    for (const { name, operator } of this.#order) if (operator.save !== undefined) states[name] = operator.save();
    return states;
  }

  /** Load the states of a checkpoint. Called before `open`. */
  load(states: Readonly<Record<string, unknown>>): void {
    for (const { name, operator } of this.#order) if (name in states) operator.load?.(states[name]);
  }

  /** The counters of sources and operators. @param connectionOf the connection of the source at a position */
  metrics(connectionOf: (position: number) => ConnectionCounters | undefined): [string, number | string][] {
    const entries = Array.from(this.entries, ([position, entry]) => {
      return { position, source: entry.source, counters: entry.count() };
    });
    return [
      ...entries.flatMap(({ position, source, counters }) =>
        metricsOf(source.sourceName, counters, 0, connectionOf(position))
      ),
      ...entries.flatMap(({ source, counters }) => metricsOf(source.name, counters, 0)),
      ...this.#order.flatMap(({ name, counters, operator }) =>
        metricsOf(name, counters, (operator as { readonly pending?: number }).pending ?? 0)
      )
    ];
  }
}
