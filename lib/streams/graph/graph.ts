import type { Clock } from '../../base/clock.ts';
import type { FunctionTools } from '../functions/function.ts';
import { streamRow } from '../operators/stream-row.ts';
import type { StreamPlan } from '../plan/plan.ts';
import { PENDING, type Row, type Tuple } from '../tuple.ts';
import type { Value } from '../values.ts';
import { type ConnectionFigures, metricsOf } from './metrics.ts';
import { Figures, isSource, type LookupTable, type Next, Node, type PlannedNode, type PlannedSource } from './node.ts';

/** What a graph uses of its rule. */
export interface GraphHost {
  readonly clock: Clock;
  readonly tools: FunctionTools;
  readonly lookups: ReadonlyMap<number, LookupTable>;
  /** Something has failed for an item. */
  failed(node: string, error: unknown): void;
}

/** Where the rows of a source enter a graph: the source and its preprocessor, which have one count. */
export class Entry {
  readonly source: PlannedSource;
  readonly figures = new Figures();
  readonly #clock: Clock;
  readonly #next: Next;
  readonly #port: number;
  /** Makes a tuple of a row; undefined: the row itself is one. */
  readonly #tupleOf: ((row: Row) => Tuple) | undefined;

  constructor(source: PlannedSource, plan: StreamPlan, host: GraphHost, next: Next, port: number) {
    this.source = source;
    this.#next = next;
    this.#port = port;
    this.#clock = host.clock;
    this.#tupleOf = tupleMaker(source, plan);
  }

  /** A row of the source. */
  push(row: Row): void {
    const { figures } = this;
    if (figures.arrived()) figures.seen(this.#clock.now());
    figures.passed();
    this.#next.push(this.#tupleOf === undefined ? row : this.#tupleOf(row), this.#port);
  }

  /** The rows of a table are complete. */
  end(): void {
    this.#next.flush(this.#clock.now(), this.#port);
  }

  /** Something of the source could not be read. */
  fail(error: unknown): void {
    this.figures.arrived();
    this.figures.failed(error, this.#clock.now());
    this.#next.passError(error);
  }
}

function tupleMaker({ position, wraps }: PlannedSource, { slotCount, sourceCount }: StreamPlan) {
  const order = [position];
  const withSlots = (row: Row) => row.with(new Array<Value>(slotCount).fill(PENDING));
  if (!wraps) return slotCount === 0 ? undefined : withSlots;
  if (slotCount === 0) return (row: Row) => streamRow(row, position, sourceCount, order);
  return (row: Row) => streamRow(withSlots(row), position, sourceCount, order);
}

/** The running operators of a rule. */
export class Graph {
  readonly #nodes = new Map<PlannedNode, Node>();
  readonly #order: readonly Node[];
  /** By position of the source. */
  readonly entries = new Map<number, Entry>();

  /** @param output takes the emissions */
  constructor(plan: StreamPlan, host: GraphHost, output: Next) {
    const nodeHost = {
      clock: host.clock,
      tools: host.tools,
      lookups: host.lookups,
      failed: (node: Node, error: unknown) => host.failed(node.name, error)
    };
    for (const planned of plan.nodes) {
      const node = new Node(planned, nodeHost);
      this.#nodes.set(planned, node);
      for (const [port, input] of planned.inputs.entries()) {
        if (isSource(input)) this.entries.set(input.position, new Entry(input, plan, host, node, port));
        else this.#nodes.get(input)?.connect(node, port);
      }
    }
    this.#nodes.get(plan.root)?.connect(output, 0);
    this.#order = [...this.#nodes.values()];
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

  /** Take over the states of a checkpoint. Called before `open`. */
  load(states: Readonly<Record<string, unknown>>): void {
    for (const { name, operator } of this.#order) if (name in states) operator.load?.(states[name]);
  }

  /** The figures of sources and operators. @param connectionOf that of the source at a position */
  metrics(connectionOf: (position: number) => ConnectionFigures | undefined): [string, number | string][] {
    const entries = [...this.entries];
    return [
      ...entries.flatMap(([position, { source, figures }]) =>
        metricsOf(source.sourceName, figures, 0, connectionOf(position))
      ),
      ...entries.flatMap(([, { source, figures }]) => metricsOf(source.name, figures, 0)),
      ...this.#order.flatMap(({ name, figures, operator }) =>
        metricsOf(name, figures, (operator as { readonly pending?: number }).pending ?? 0)
      )
    ];
  }
}
