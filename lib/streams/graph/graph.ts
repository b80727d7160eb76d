// Nodes are made from the sinks backwards, so each has what follows it from the start. Operators are opened after their
// states have been loaded. An operator that throws ends its item, not the graph.

import type { Clock } from '../../base/clock.ts';
import type { StreamFunctionTools } from '../function.ts';
import type { LookupTable } from '../operators/operator.ts';
import { streamRow } from '../operators/stream-row.ts';
import { isSource, type PlannedInput, type PlannedSource, type StreamPlan } from '../plan/plan.ts';
import { freshSlots } from '../plan/slots.ts';
import type { Cause } from '../values/cause.ts';
import { type Collection, type Frame, type Metadata, type StreamRow, type Tuple, topicIn } from '../values/tuple.ts';
import type { Consumer } from './consumer.ts';
import { NodeCounters, Pulse } from './counters.ts';
import { Input, type Next } from './input.ts';
import { type ConnectionCounters, metricsOf } from './metrics.ts';
import { Node } from './node.ts';
import type { StreamSampler } from './samples.ts';

/** Dependencies of a graph on its rule. */
interface GraphHost {
  readonly clock: Clock;
  /** Determines when samples for the status are due. Default: by the number of items only. */
  readonly pulse?: Pulse;
  readonly tools: StreamFunctionTools;
  readonly lookups: ReadonlyMap<number, LookupTable>;
  /** Takes samples. Default: none are taken. */
  readonly sampler?: StreamSampler;
  /** Called when an operator fails. @param item undefined if it fails outside of an item */
  failed(node: string, error: unknown, item?: Tuple | Collection): void;
}

/** The entry of a source's rows into a graph: the source and its preprocessor, which share their counters, and an input. */
class SourceInput extends Input implements Consumer {
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
    super(node, port, host.pulse, tupleMaker(source, plan));
    this.source = source;
    this.#clock = host.clock;
    this.#counters = new NodeCounters(host.pulse);
    this.#frame = host.tools.frame;
  }

  /** Replace the rows of the table. */
  replace(rows: readonly StreamRow[]): void {
    for (const row of rows) this.push(row);
    this.end();
  }

  /** Note that the rows of a table are complete. */
  end(): void {
    this.flush(this.#clock.now());
  }

  /** Report that input of the source could not be read. */
  fail(error: unknown, cause?: Cause, metadata?: Metadata): void {
    this.#counters.arrived();
    this.#counters.failed(error, this.#clock.now());
    this.node.sampler?.addError(this.source.sourceName, error, () => topicIn(metadata));
    this.passError(error, cause);
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
      fail: (...failure) => within(() => this.fail(...failure))
    };
  }

  protected override sample(tuple: Tuple): number {
    const { sampler } = this.node;
    if (sampler?.inputs.isOpen === true) sampler.addInput(this.source.sourceName, tuple.columns());
    this.#counters.seen(this.#clock.now());
    return super.sample(tuple);
  }

  /** The counters of the source or of its preprocessor. @param connection the connection of the source */
  metrics(name: string, connection?: ConnectionCounters): [string, number | string][] {
    return metricsOf(name, this.#counters, { received: this.items, passed: this.items, connection });
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
  /** In the order of the data. */
  readonly #nodes: readonly Node[];
  /** By position of the source. */
  readonly inputs = new Map<number, SourceInput>();

  /** @param output receives the emissions */
  constructor(plan: StreamPlan, host: GraphHost, output: Next) {
    const given = { ...host, pulse: host.pulse ?? new Pulse() };
    const next = new Map<PlannedInput, Next>([[plan.root, output]]);
    const entries: SourceInput[] = [];
    const nodes = plan.nodes.toReversed().map((planned) => {
      const node = new Node(planned, given, next.get(planned) as Next);
      for (const [port, input] of [...planned.inputs.entries()].reverse())
        if (isSource(input)) entries.push(new SourceInput(input, plan, given, node, port));
        else next.set(input, new Input(node, port, given.pulse));
      return node;
    });
    this.#nodes = nodes.reverse();
    for (const entry of entries.reverse()) this.inputs.set(entry.source.position, entry);
  }

  open(): void {
    for (const { operator } of this.#nodes) operator.open?.();
  }

  close(): void {
    for (const node of this.#nodes) node.close();
  }

  /** The states of the operators, for a checkpoint, by node. */
  save(): Record<string, unknown> {
    const states: Record<string, unknown> = {};
    for (const { name, operator } of this.#nodes) if (operator.save !== undefined) states[name] = operator.save();
    return states;
  }

  /** Load the states of a checkpoint. Called before `open`. */
  load(states: Readonly<Record<string, unknown>>): void {
    for (const { name, operator } of this.#nodes) if (name in states) operator.load?.(states[name]);
  }

  /** The counters of sources and operators. @param connectionOf the connection of the source at a position */
  metrics(connectionOf: (position: number) => ConnectionCounters | undefined): [string, number | string][] {
    const entries = [...this.inputs.values()];
    return [
      ...entries.flatMap((entry) => entry.metrics(entry.source.sourceName, connectionOf(entry.source.position))),
      ...entries.flatMap((entry) => entry.metrics(entry.source.name)),
      ...this.#nodes.flatMap((node) => node.metrics())
    ];
  }
}
