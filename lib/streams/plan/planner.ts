import type { FunctionTools } from '../functions/function.ts';
import { isSource, type PlannedInput, type PlannedNode, type PlannedSource } from '../graph/node.ts';
import type { MakeOperator } from '../graph/operator.ts';
import type { Collection, Tuple } from '../tuple.ts';
import type { PlanNode, RuleOptions, StreamBounds, Topology } from '../types.ts';
import type { BoundPredicate, BoundSelect, BoundSource } from './bound.ts';
import type { PlannedStream, StreamPlan } from './plan.ts';
import { type Steps, stepsOf } from './steps.ts';

/** What a plan is made for, besides its statement. */
export interface PlanSettings {
  readonly options: RuleOptions;
  readonly bounds: StreamBounds;
  /** Names of the sinks: `sink_mqtt_0`. */
  readonly sinks: readonly string[];
}

/** Decide in which order a statement is evaluated, and by which operators. */
export function planOf(select: BoundSelect, settings: PlanSettings): StreamPlan {
  return new Planner(select, settings).plan();
}

/** A chain of operators under construction. */
interface Chain {
  readonly end: PlannedInput;
  /** Its items are those of windows. */
  readonly isCollected: boolean;
}

/** Numbers the operators of a statement, in the order of the data [stream rules 10.1]. */
class Planner {
  readonly #select: BoundSelect;
  readonly #settings: PlanSettings;
  readonly #steps: Steps;
  readonly #nodes: PlannedNode[] = [];
  readonly #streams: PlannedStream[] = [];
  readonly #sources: PlannedSource[] = [];
  #number = 0;

  constructor(select: BoundSelect, settings: PlanSettings) {
    this.#select = select;
    this.#settings = settings;
    this.#steps = stepsOf(select, settings);
  }

  plan(): StreamPlan {
    const root = this.#output(this.#evaluated(this.#joined()));
    const { sinks } = this.#settings;
    return {
      streams: this.#streams,
      root,
      nodes: this.#nodes,
      slotCount: this.#select.slots.count,
      topology: topologyOf(this.#sources, this.#nodes, root, sinks),
      explain: explainOf(root)
    };
  }

  /** The streams, their window, and the tables that are joined. */
  #joined(): Chain {
    const { sources, joins, window } = this.#select;
    const streams = sources.filter(({ role }) => role === 'stream');
    const tables = sources.filter(({ role }) => role === 'table');
    let chain = this.#windowed(streams.length > 0 ? streams : sources.filter(({ role }) => role !== 'lookup'));
    if (tables.length > 0 && streams.length > 0) {
      const ends = tables.map((table) => this.#filtered(this.#source(table), this.#partsOf(table)));
      chain = this.#add(chain, 'join_aligner', this.#steps.joinAligner(chain.isCollected), ends);
    }
    const found = joins.filter(({ source }) => sources[source].role !== 'lookup');
    if (found.length > 0) chain = this.#add(chain, 'join', this.#steps.join(found, window !== undefined));
    for (const join of joins)
      if (sources[join.source].role === 'lookup') {
        const { definition, position, needed } = sources[join.source];
        this.#streams.push({ definition, position, needed, kind: 'lookup' });
        chain = this.#add(chain, 'lookup', this.#steps.lookup(join, chain.isCollected));
      }
    return chain;
  }

  /** Rows of streams up to their window. */
  #windowed(streams: readonly BoundSource[]): Chain {
    const { window } = this.#select;
    const { isEventTime } = this.#settings.options;
    const isAlone = this.#select.sources.length === 1;
    const ends = streams.map((stream) => {
      const end = this.#source(stream);
      if (isEventTime) return end;
      const analyzed = isAlone ? this.#analyzed({ end, isCollected: false }, 'rows').end : end;
      return this.#filtered(analyzed, this.#partsOf(stream));
    });
    let chain: Chain = { end: ends[0], isCollected: false };
    let others = ends.slice(1);
    if (isEventTime) {
      chain = this.#add(chain, 'watermark', this.#steps.watermark(streams.length), others);
      others = [];
      if (isAlone) chain = this.#analyzed(chain, 'rows');
    }
    if (window === undefined) return chain;
    if (window.filter !== undefined) {
      // it has the number of its window
      const filtered = [chain.end, ...others].map((end) => this.#numbered(this.#number + 1, end, 'windowFilter', this.#steps.windowFilter()));
      chain = { end: filtered[0], isCollected: false };
      others = filtered.slice(1);
    }
    const made = this.#add(chain, 'window', this.#steps.window(streams.length), others);
    return { ...made, isCollected: true };
  }

  /** What is evaluated for rows, or for the rows of windows, up to the output. */
  #evaluated(from: Chain): Chain {
    const { isGrouped, having, orderBy, limit, sources } = this.#select;
    const steps = this.#steps;
    let chain = from;
    if (sources.length > 1) chain = this.#analyzed(chain, 'rows');
    const parts = this.#partsBehind();
    if (parts.length > 0) chain = this.#add(chain, 'filter', steps.filter(parts, chain.isCollected, 'Where'));
    if (isGrouped) chain = { ...this.#add(chain, 'aggregate', steps.aggregate(chain.isCollected)), isCollected: true };
    chain = this.#analyzed(chain, 'groups');
    if (having !== undefined) chain = this.#add(chain, 'having', steps.filter([having], chain.isCollected, 'Having'));
    if (orderBy.length > 0 && chain.isCollected) chain = this.#add(chain, 'order', steps.order());
    if (limit !== undefined) chain = this.#add(chain, 'limit', steps.limit(limit, chain.isCollected));
    return chain;
  }

  #output({ end, isCollected }: Chain): PlannedNode {
    return this.#numbered(++this.#number, end, 'project', this.#steps.project(isCollected));
  }

  #source(source: BoundSource): PlannedInput {
    const { position, name, label, role, definition, needed } = source;
    this.#streams.push({ definition, position, needed, kind: role });
    const isTwice = this.#select.sources.some((other) => other !== source && other.name === name);
    const shown = isTwice ? label : name;
    const word = role === 'table' ? 'tableprocessor' : 'preprocessor';
    const planned = { name: `op_${++this.#number}_${word}_${shown}`, sourceName: `source_${shown}`, position };
    this.#sources.push(planned);
    return planned;
  }

  /** The parts of WHERE that filter the rows of a source before the window. */
  #partsOf({ position }: BoundSource): readonly BoundPredicate[] {
    if (!this.#movesParts()) return [];
    const isAlone = this.#select.sources.length === 1;
    return this.#select.where.filter(({ movesTo, uses }) =>
      isAlone ? !uses.frame && !uses.aggregates : movesTo === position
    );
  }

  /** The parts of WHERE behind window and join. */
  #partsBehind(): readonly BoundPredicate[] {
    const { sources } = this.#select;
    const before = new Set(sources.filter(({ role }) => role !== 'lookup').flatMap((source) => this.#partsOf(source)));
    return this.#select.where.filter((part) => !before.has(part));
  }

  /** In event time, and for windows that count rows, WHERE is evaluated behind the window [stream rules 5.1]. */
  #movesParts(): boolean {
    return !this.#settings.options.isEventTime && this.#select.window?.node.kind !== 'count';
  }

  #filtered(end: PlannedInput, parts: readonly BoundPredicate[]): PlannedInput {
    if (parts.length === 0) return end;
    return this.#add({ end, isCollected: false }, 'filter', this.#steps.filter(parts, false, 'Where')).end;
  }

  #analyzed(chain: Chain, phase: 'rows' | 'groups'): Chain {
    const calls = this.#select.analytics.filter((call) => call.phase === phase);
    if (calls.length === 0) return chain;
    return this.#add(chain, 'analytic', this.#steps.analytic(calls, chain.isCollected));
  }

  #add({ end, isCollected }: Chain, kind: string, step: Step, others: readonly PlannedInput[] = []): Chain {
    return { end: this.#numbered(++this.#number, end, kind, step, others), isCollected };
  }

  #numbered(number: number, end: PlannedInput, kind: string, step: Step, others: readonly PlannedInput[] = []): PlannedNode {
    return this.#node({ name: `op_${number}_${kind}`, about: step.about, make: step.make, inputs: [end, ...others] });
  }

  #node(node: PlannedNode): PlannedNode {
    this.#nodes.push(node);
    return node;
  }
}

/** An operator of the plan, and what it does. */
export interface Step {
  readonly about: string;
  // biome-ignore lint/suspicious/noExplicitAny: the planner connects only operators that fit
  readonly make: MakeOperator<any, any>;
}

/** Makes operators of a rule that starts. */
export type MakeWithTools<I extends Tuple | Collection, O> = (tools: FunctionTools) => MakeOperator<I, O>;

function topologyOf(
  sources: readonly PlannedSource[],
  nodes: readonly PlannedNode[],
  root: PlannedNode,
  sinks: readonly string[]
): Topology {
  const edges: Record<string, string[]> = {};
  for (const { name, sourceName } of sources) edges[sourceName] = [name];
  for (const node of nodes) for (const input of node.inputs) (edges[input.name] ??= []).push(node.name);
  edges[root.name] = [...sinks];
  return { sources: sources.map(({ sourceName }) => sourceName), edges };
}

function explainOf(input: PlannedInput): PlanNode {
  if (isSource(input)) return { name: input.name, about: `rows of ${input.sourceName}`, inputs: [] };
  return { name: input.name, about: input.about, inputs: input.inputs.map(explainOf) };
}
